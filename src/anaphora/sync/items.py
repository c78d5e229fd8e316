"""The names of items: a kind and an id."""

from __future__ import annotations

from typing import Final

from anaphora.store.records.rows import DIARY, MEMORY, OBSERVATION, TOOL_CALL

RECORD_KINDS: Final = (MEMORY, OBSERVATION, DIARY, TOOL_CALL)
"""Kinds of items that are records."""
THREAD: Final = "thread"
LINK: Final = "link"
KILLED: Final = "killed"
"""An identity that was forgotten for good: only the time of it."""


def item_name(kind: str, key: str) -> str:
    """The name of an item."""
    return f"{kind}:{key}"


def kind_and_key(item: str) -> tuple[str, str]:
    """The kind of an item, and its id."""
    kind, _, key = item.partition(":")
    return kind, key
