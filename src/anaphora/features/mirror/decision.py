"""Decides by the home, the file, and their last common state what to do with a page."""

from __future__ import annotations

from typing import Literal

Decision = Literal["same", "write", "remove", "edit", "add", "hide", "lose", "adopt", "conflict"]


def decide(before: str | None, home: str | None, file: str | None) -> Decision:
    """How to bring home and file to the same state; each is a digest, None if it is missing.

    `before` is the digest of both at the last comparison. The unchanged side follows the changed
    one; a page that one side deleted while the other changed it stays, with the change.
    """
    if home is None and file is None:
        return "lose"
    if home == file:
        return "same" if before == home else "adopt"
    if home is None:
        return "remove" if file == before else "add"
    if file is None:
        return "hide" if home == before else "write"
    if file == before:
        return "write"
    return "edit" if home == before else "conflict"
