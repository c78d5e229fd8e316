"""Reads what is written for training alone, by hands: `read_groups()` and its like.

In: a folder with one file a hand, or a folder a hand, of JSON Lines. Out: frozen values whose
places all exist. A line of another form is an error that names the file and the line.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Final, Literal, TypeVar, get_args

from corpus.reading import FOLDER, LANES, Key, Lane, Node, NotJson, Story

__all__ = [
    "ROOT",
    "Chain",
    "Exchange",
    "Group",
    "Label",
    "Later",
    "Said",
    "Wanted",
    "WantedThen",
    "read_chains",
    "read_exchanges",
    "read_groups",
    "read_wanted",
]

ROOT: Final = FOLDER.parent

Label = Literal["replaces", "holds", "same", "other"]
Then = Literal["former", "first", "last", "month", "now", "before", "until"]
LABELS: Final[tuple[Label, ...]] = get_args(Label)
THEN: Final[tuple[Then, ...]] = get_args(Then)
RowT = TypeVar("RowT")


@dataclass(frozen=True, slots=True)
class Said:
    """A statement: who said it, and the turn before it; both empty for a fact."""

    text: str
    by: str
    before: str


@dataclass(frozen=True, slots=True)
class Later:
    """A later statement, what it is to the earlier one, and by which wording."""

    said: Said
    label: Label
    change: str


@dataclass(frozen=True, slots=True)
class Group:
    """An earlier statement and later ones, each of which stands alone after it."""

    hand: str
    lane: Lane
    language: str
    subject: str
    older: Said
    newer: tuple[Later, ...]


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question with a short reply among `turns` (who, what), and what is asked weeks later.

    `ask` and `reply` are places in `turns`. `misleading` are exchanges about something near.
    """

    hand: str
    language: str
    turns: tuple[tuple[str, str], ...]
    ask: int
    reply: int
    questions: tuple[str, ...] = ()
    misleading: tuple[Exchange, ...] = ()


@dataclass(frozen=True, slots=True)
class WantedThen:
    """A question about the past, asked on a day; `answer` are places of statements."""

    text: str
    now: date
    kind: Then
    answer: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Chain:
    """The values of one attribute, one after the other: when, who and what."""

    hand: str
    lane: Lane
    language: str
    statements: tuple[tuple[date, str, str], ...]
    questions: tuple[WantedThen, ...]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A short question over a story. Without `turns` and `facts` it was never answered.

    `misleading` are statements of the same subject that do not answer; `gap` is what lies between
    the words of the question and those of the answer.
    """

    hand: str
    story: str
    text: str
    language: str
    gap: str
    turns: tuple[Key, ...]
    facts: tuple[Key, ...]
    misleading: Mapping[Lane, tuple[Key, ...]]


def read_groups(folder: Path = ROOT / "groups") -> tuple[Group, ...]:
    """All groups, by hand. Raises `NotJson` or `WrongForm`, as all of these do."""
    return _read(folder, "*.jsonl", _group)


def read_exchanges(folder: Path = ROOT / "exchanges") -> tuple[Exchange, ...]:
    """All exchanges, by hand."""
    return _read(folder, "*.jsonl", _exchange)


def read_chains(folder: Path = ROOT / "past") -> tuple[Chain, ...]:
    """All chains of values, by hand."""
    return _read(folder, "*.jsonl", _chain)


def read_wanted(stories: Iterable[Story], folder: Path = ROOT / "questions") -> tuple[Wanted, ...]:
    """The questions over these stories, by hand; those over others are left out."""
    by_id = {story.id: story for story in stories}
    return tuple(
        _wanted(row, by_id[file.stem], file.parent.name)
        for file in sorted(folder.glob("*/*.jsonl"))
        if file.stem in by_id
        for row in _lines(file)
    )


def _read(folder: Path, pattern: str, read: Callable[[Node, str], RowT]) -> tuple[RowT, ...]:
    files = sorted(folder.glob(pattern))
    return tuple(read(row, file.stem) for file in files for row in _lines(file))


def _lines(file: Path) -> Iterator[Node]:
    for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
        try:
            yield Node(file, f"line {number}", json.loads(line))
        except json.JSONDecodeError as error:
            raise NotJson(file, f"line {number}", error.msg) from error


def _lane(node: Node) -> Lane:
    return "facts" if node.choice(("fact", "turn")) == "fact" else "turns"


def _said(node: Node) -> Said:
    return Said(node["text"].text(), node["by"].words(), node["before"].words())


def _group(node: Node, hand: str) -> Group:
    node.only("lane", "language", "older", "newer", optional=("subject",))
    node["older"].only("text", "by", "before")
    newer = []
    for later in node["newer"].items():
        later.only("text", "by", "before", "label", "change")
        newer.append(Later(_said(later), later["label"].choice(LABELS), later["change"].text()))
    return Group(
        hand,
        _lane(node["lane"]),
        node["language"].text(),
        node.text_of("subject"),
        _said(node["older"]),
        tuple(newer),
    )


def _exchange(node: Node, hand: str, language: str = "") -> Exchange:
    optional = ("language", "register", "when", "questions", "misleading")
    node.only("turns", "ask", "reply", optional=optional)
    language = node.text_of("language", language)
    turns = tuple((turn["by"].text(), turn["text"].text()) for turn in node["turns"].items())
    near = node["misleading"].items() if "misleading" in node.value else ()
    return Exchange(
        hand,
        language,
        turns,
        node["ask"].place_in(len(turns)),
        node["reply"].place_in(len(turns)),
        node["questions"].texts() if "questions" in node.value else (),
        tuple(_exchange(one, hand, language) for one in near),
    )


def _chain(node: Node, hand: str) -> Chain:
    node.only("lane", "language", "statements", "questions", optional=("subject",))
    statements = tuple(
        (_day(one["when"]), one["by"].words(), one["text"].text())
        for one in node["statements"].items()
    )
    questions = tuple(
        WantedThen(
            one["q"].text(),
            _day(one["now"]),
            one["kind"].choice(THEN),
            tuple(place.place_in(len(statements)) for place in one["answer"].items()),
        )
        for one in node["questions"].items()
    )
    return Chain(hand, _lane(node["lane"]), node["language"].text(), statements, questions)


def _day(node: Node) -> date:
    try:
        return datetime.fromisoformat(node.text()).date()
    except ValueError as error:
        raise node.error("not a day of ISO 8601") from error


def _wanted(node: Node, story: Story, hand: str) -> Wanted:
    node.only("q", "kind", "turns", "facts", "misleading", optional=("gap", "language"))
    known = {lane: story.texts(lane) for lane in LANES}
    answers = {lane: _keys(node[lane], lane, known[lane]) for lane in LANES}
    if (node["kind"].choice(("answered", "near")) == "near") == any(answers.values()):
        raise node["kind"].error("it is near exactly where nothing answers")
    near = node["misleading"]
    return Wanted(
        hand,
        story.id,
        node["q"].text(),
        node.text_of("language", story.lang),
        node.text_of("gap"),
        answers["turns"],
        answers["facts"],
        {lane: _keys(near[lane], lane, known[lane]) for lane in LANES if lane in near.value},
    )


def _keys(node: Node, lane: Lane, known: Mapping[Key, str]) -> tuple[Key, ...]:
    return tuple(one.key(lane, known) for one in node.items())
