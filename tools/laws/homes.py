"""The values of generated homes: what is told, what is asked, and what is known of both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

Lane = Literal["memories", "turns"]
LANES: Final[tuple[Lane, ...]] = ("memories", "turns")
Act = Literal["tells", "negates", "considers", "asks", "complains", "foreign"]
Kind = Literal["plain", "changes", "metamorphic"]

NOW: Final = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
BEGIN: Final = NOW - timedelta(days=120)
"""Everything is told between these two; no question names a time between them."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large homes are: unrelated `facts`, statements of a `story`, and `spare` ones.

    `shared` says whether the stories and chats of `../shared/data` may be used.
    """

    facts: int = 20
    story: int = 40
    spare: int = 120
    shared: bool = True


SMALL: Final = Size(12, 24, 30, shared=False)
"""That of the homes in the suite, out of what the repository has."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One thing that is told, at `at`.

    `group` labels subject and attribute, "" where the label does not say. `value` is what is told
    of it. `holds` is False where a later statement took its place; `replaced_by` are the places of
    those that say otherwise later. `conversation` is where it is said, "" for one of its own;
    `path` is what it is kept under as a memory.
    """

    text: str
    at: datetime
    group: str = ""
    value: str = ""
    act: Act = "tells"
    holds: bool = True
    replaced_by: frozenset[int] = frozenset()
    speaker: str | None = None
    conversation: str = ""
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a `group` ("" where that is not known).

    `tense` is what it asks for; "unknown" where no label says. `temporal` is True where it has a
    word of time that asks for nothing in the past.
    """

    text: str
    group: str = ""
    tense: Literal["present", "past", "unknown"] = "present"
    temporal: bool = False

    @property
    def plain(self) -> bool:
        """Whether it asks for what holds now of a labelled group, without a word of time."""
        return bool(self.group) and self.tense == "present" and not self.temporal


@dataclass(frozen=True, slots=True)
class Home:
    """What is told in the order of `statements`, and what may be asked about it.

    `labelled` says that `group` of every statement is known. `spare` are unrelated statements that
    are not told, but may be added.
    """

    name: str
    kind: Kind
    statements: tuple[Statement, ...]
    questions: tuple[Question, ...]
    labelled: bool = True
    lanes: tuple[Lane, ...] = LANES
    spare: tuple[Statement, ...] = field(default=(), repr=False)

    def groups(self) -> dict[str, list[int]]:
        """The places of the statements of each labelled group."""
        members: dict[str, list[int]] = {}
        for place, statement in enumerate(self.statements):
            if statement.group:
                members.setdefault(statement.group, []).append(place)
        return members

    def lines(self) -> Iterator[str]:
        """The texts as they were told, for a reader."""
        for place, statement in enumerate(self.statements):
            note = statement.act if statement.holds else f"{statement.act}, replaced"
            who = f"{statement.speaker}: " if statement.speaker else ""
            where = f" [{statement.group}: {note}]" if statement.group else ""
            yield f"  {place:3} {statement.at:%Y-%m-%d} {who}{statement.text}{where}"
