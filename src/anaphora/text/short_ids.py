"""Ids short enough to type: the end of an id, which is random where its beginning is a time."""

from __future__ import annotations

import re
from typing import Final

SHORT: Final = 8
"""Characters of a short id."""
LEAST: Final = 4
"""Characters with which an end may be given."""

_BRANCH: Final = re.compile(r"~\d+$")


def short_id(full: str) -> str:
    """How an id is shown: its last characters; that of a branch with what makes it one."""
    branch = _BRANCH.search(full)
    head = full[: branch.start()] if branch else full
    return full if len(head) <= SHORT + LEAST else full[len(head) - SHORT :]


def short_place(full: str) -> str:
    """How a part of something is shown: its owner and its number, as in "owner#number"."""
    owner, mark, number = full.rpartition("#")
    return f"{short_id(owner)}#{number}" if mark else short_id(full)


def short_turn(conversation_id: str, index: int) -> str:
    """How a turn is shown: its conversation and its place."""
    return f"{short_id(conversation_id)}#{index}"
