"""The frozen values of the audit trail."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from anaphora.values.actions import AuditAction

AuditFault = Literal["changed", "missing", "truncated", "other_tip"]

# What the parameters of the trail's routes and commands mean.
BEFORE: Final = "Only entries with lower numbers: the next page."
ACTION: Final = "Only entries of this kind."
ABOUT: Final = "Only entries about this memory, note or conversation."
QUESTION: Final = "Only entries of this question, in exactly this wording."
TIP: Final = "An earlier tip: `NUMBER:LINK`."


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One thing that was done, without a word of what it was about.

    "recovered" says that the trail was switched on or off while its head or key was damaged or
    older than its entries: it goes on from the last entry that was there.

    `lane` says to what ("memory", "observation", "diary", "tool_call", "turn", "everything" …),
    `ids` to which: ids of memories and notes; conversations are digests under a key of the home.
    `count` is how many there were, also where ids are not listed. `query` is the digest of the
    question under that key. `surface`, `token` and `agent` say by whom, "" where that is not known.
    """

    number: int
    at: datetime
    action: AuditAction
    lane: str
    ids: tuple[str, ...] = ()
    count: int = 0
    query: str = ""
    surface: str = ""
    token: str = ""
    agent: str = ""


@dataclass(frozen=True, slots=True)
class AuditStatus:
    """Whether a trail is kept, how many entries it has, and its tip ("number:link"; "" if none)."""

    on: bool
    entries: int
    tip: str


@dataclass(frozen=True, slots=True)
class AuditProblem:
    """The first thing that is wrong with a trail: from which entry on, and what.

    "changed": it is not what was written, or its link is not; "missing": it is not there, later
    ones are; "truncated": it and all later ones are not there; "other_tip": the trail is whole, but
    has never had the tip that was given.
    """

    fault: AuditFault
    number: int
    detail: str


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What looking at a whole trail has found: None where every entry follows from the last."""

    entries: int
    tip: str
    problem: AuditProblem | None
