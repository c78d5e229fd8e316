"""The names of items: a kind and an id. Records are items of their own kinds, see `kinds`."""

from __future__ import annotations

from typing import Final

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
