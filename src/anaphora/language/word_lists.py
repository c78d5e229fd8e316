"""Lists and tables that are written as words with spaces between them."""

from __future__ import annotations

from collections.abc import Mapping


def words(written: str) -> frozenset[str]:
    """The words of a list."""
    return frozenset(written.split())


def by_word(table: Mapping[str, str]) -> dict[str, str]:
    """What each word stands under: `{"go": "a b"}` becomes `{"a": "go", "b": "go"}`."""
    return {word: name for name, word_list in table.items() for word in word_list.split()}
