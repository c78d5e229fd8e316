"""The names of items: what kind of thing each is, and its id."""

from __future__ import annotations

from typing import Final

from anaphora.store.records.rows import DIARY, MEMORY, OBSERVATION, TOOL_CALL

RECORD_KINDS: Final = (MEMORY, OBSERVATION, DIARY, TOOL_CALL)
"""Kinds of items that are records."""
THREAD: Final = "thread"
LINK: Final = "link"
KILLED: Final = "killed"
"""An identity that was forgotten for good: when that was, and nothing of what it was."""


def item_name(kind: str, key: str) -> str:
    """The name of an item."""
    return f"{kind}:{key}"


def kind_and_key(item: str) -> tuple[str, str]:
    """What an item is, and its id."""
    kind, _, key = item.partition(":")
    return kind, key
