"""Recalled blocks as a reader of a prompt sees them."""

from __future__ import annotations

from anaphora import strip_recalled

BEGIN = "<recalled-memory>"
END = "</recalled-memory>"


def quotes_recalled(text: str) -> bool:
    """Whether there is a recalled block in a text."""
    return strip_recalled(text) != text
