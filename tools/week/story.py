"""The week that is played, as story.txt tells it: sessions, prompts, and what each needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

STORY: Final = Path(__file__).with_name("story.txt")
MONDAY: Final = datetime(2026, 11, 9, tzinfo=UTC)
PER_PROMPT: Final = timedelta(minutes=4)
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri")


@dataclass(frozen=True, slots=True)
class Expectation:
    """What must come with a prompt or at a start.

    One of `needs` has to come; of `useful` any is welcome; none of `outdated` may come without a
    mark. Texts in small letters.
    """

    needs: tuple[str, ...] = ()
    useful: tuple[str, ...] = ()
    outdated: tuple[str, ...] = ()


@dataclass(slots=True)
class Prompt:
    """A prompt: its words, the answer, the calls of tools before it, and the facts to store."""

    text: str
    at: datetime
    answer: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    expected: Expectation = field(default_factory=Expectation)


@dataclass(slots=True)
class Session:
    """A session of one client in one project; the end of one that `crashes` is never reported."""

    id: str
    client: str
    project: str
    at: datetime
    crashes: bool
    prompts: list[Prompt] = field(default_factory=list)
    expected: Expectation = field(default_factory=Expectation)


def read_story(place: Path = STORY) -> list[Session]:
    """All sessions of the week in order. `ValueError` for a line that has no known mark."""
    sessions: list[Session] = []
    for number, line in enumerate(place.read_text("utf-8").splitlines(), 1):
        mark, _, rest = line.partition(" ")
        if not line.strip() or mark == "#":
            continue
        if mark == "@":
            sessions.append(_session(rest))
        elif mark == ">":
            session = sessions[-1]
            session.prompts.append(
                Prompt(rest, session.at + PER_PROMPT * (len(session.prompts) + 1))
            )
        elif mark in "=~x":
            _expect(sessions[-1], mark, rest)
        elif mark in "<!+":
            _act(sessions[-1].prompts[-1], mark, rest)
        else:
            raise ValueError(f"{place}:{number}: unknown mark {mark!r}")
    return sessions


def _session(head: str) -> Session:
    name, client, project, day, time, *more = head.split()
    hours, minutes = map(int, time.split(":"))
    at = MONDAY + timedelta(days=_DAYS.index(day), hours=hours, minutes=minutes)
    return Session(name, client, project, at, crashes=more == ["crash"])


def _expect(session: Session, mark: str, rest: str) -> None:
    subject: Session | Prompt = session.prompts[-1] if session.prompts else session
    texts = tuple(part.strip().casefold() for part in rest.split("|"))
    old = subject.expected
    subject.expected = Expectation(
        old.needs + texts * (mark == "="),
        old.useful + texts * (mark == "~"),
        old.outdated + texts * (mark == "x"),
    )


def _act(prompt: Prompt, mark: str, rest: str) -> None:
    if mark == "<":
        prompt.answer = rest
    elif mark == "!":
        tool, _, file = rest.partition(" ")
        prompt.calls.append((tool, file))
    else:
        prompt.facts.append(rest)
