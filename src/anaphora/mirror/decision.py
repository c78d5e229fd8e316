"""What to do with a page where the home, its file, and what both had before differ."""

from __future__ import annotations

from typing import Literal

Decision = Literal["same", "write", "remove", "edit", "add", "hide", "lose", "adopt", "conflict"]


def decide(before: str | None, home: str | None, file: str | None) -> Decision:
    """What makes home and file alike: each a digest of what it says, None where it is not there.

    `before` is what both said when they were compared last. Who did not change follows who did;
    a page that one side took away while the other changed it stays, with the change.
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
