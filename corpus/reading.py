"""Reads the stories: `read_stories(FOLDER)`.

In: a folder with a folder of JSON files for each author. Out: frozen values whose references all
exist. A file of another form is an error that names the file and the place in it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, TypeVar, get_args

__all__ = [
    "FOLDER",
    "KINDS",
    "LANES",
    "SPLIT",
    "CorpusError",
    "Fact",
    "Key",
    "Kind",
    "Lane",
    "Node",
    "NotJson",
    "Question",
    "Relation",
    "RelationKind",
    "Session",
    "Split",
    "Story",
    "Turn",
    "UnknownAuthor",
    "WrongForm",
    "as_key",
    "parse_story",
    "read_split",
    "read_stories",
    "read_story",
]

FOLDER: Final = Path(__file__).parent / "stories"
SPLIT: Final = Path(__file__).parent / "split.json"

Kind = Literal[
    "plain",
    "current",
    "past",
    "stable",
    "implicit",
    "negation",
    "tentative",
    "both",
    "person",
    "list",
    "first",
    "timeword",
    "absent",
]
Lane = Literal["turns", "facts"]
RelationKind = Literal["replaces", "both", "same"]
Role = Literal["user", "assistant"]
FactType = Literal["semantic", "episodic", "procedural"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
LANES: Final[tuple[Lane, ...]] = get_args(Lane)
RELATIONS: Final[tuple[RelationKind, ...]] = get_args(RelationKind)
ROLES: Final[tuple[Role, ...]] = get_args(Role)
FACT_TYPES: Final[tuple[FactType, ...]] = get_args(FactType)
ChoiceT = TypeVar("ChoiceT", bound=str)

Key: TypeAlias = tuple[str, int]
"""A turn by its session's id and its place there, from 0; a fact by "" and its place."""


class CorpusError(Exception):
    """What is wrong with a file of the corpus, or with results about it, and where."""

    def __init__(self, file: Path | str, place: str, problem: str) -> None:
        super().__init__(f"{file}{': ' if place else ''}{place}: {problem}")
        self.file, self.place, self.problem = file, place, problem


class NotJson(CorpusError):
    """A file that cannot be read as JSON."""


class WrongForm(CorpusError):
    """A value that is missing, of another type, or that refers to nothing."""


class UnknownAuthor(CorpusError):
    """An author without a folder."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One message. Where one person talks to an assistant, nobody may have a name."""

    role: Role
    speaker: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Session:
    """Turns without a long pause. The first has the session's time, each further one a minute
    more."""

    id: str
    when: datetime
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class Fact:
    """A lasting memory of what the turns say, in other words."""

    when: datetime
    text: str
    type: FactType


@dataclass(frozen=True, slots=True)
class Relation:
    """How a later statement stands to an earlier one of its lane.

    `replaces`: the same attribute of the same thing, now another value. `both`: alike, and both
    hold. `same`: the same value again.
    """

    lane: Lane
    older: Key
    newer: Key
    kind: RelationKind


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked when the story is over; `number` is its place in the story.

    `answer` and `stale` are pieces of text that mark right and outdated (or other persons', or only
    considered) statements. `evidence` and `facts` are all that a careful reader accepts. `mixed`: a
    statement holds the old value and the new one. `near`: never said, but said of another one.
    """

    number: int
    text: str
    kind: Kind
    now: datetime
    answer: tuple[str, ...]
    stale: tuple[str, ...]
    evidence: tuple[Key, ...]
    facts: tuple[Key, ...]
    mixed: bool = False
    near: bool = False

    def answers(self, lane: Lane) -> tuple[Key, ...]:
        """The evidence of one lane."""
        return self.evidence if lane == "turns" else self.facts


@dataclass(frozen=True, slots=True)
class Story:
    """Months of talk, the same as facts, and what is asked afterwards."""

    id: str
    author: str
    lang: str
    register: str
    domain: str
    sessions: tuple[Session, ...]
    facts: tuple[Fact, ...]
    relations: tuple[Relation, ...]
    questions: tuple[Question, ...]

    def texts(self, lane: Lane) -> dict[Key, str]:
        """Every statement of a lane, in order."""
        if lane == "facts":
            return {("", at): fact.text for at, fact in enumerate(self.facts)}
        return {key: turn.text for key, turn in self.turns().items()}

    def turns(self) -> dict[Key, Turn]:
        """Every turn, in order."""
        return {
            (session.id, at): turn
            for session in self.sessions
            for at, turn in enumerate(session.turns)
        }


@dataclass(frozen=True, slots=True)
class Split:
    """Authors to train on, and those that nothing may be trained on or chosen by."""

    train: tuple[str, ...]
    held_out: tuple[str, ...]


def read_stories(
    folder: Path = FOLDER, authors: Collection[str] | None = None
) -> tuple[Story, ...]:
    """The stories of all authors, or of some, by author and id.

    Raises `UnknownAuthor`, `NotJson` or `WrongForm`.
    """
    there = sorted(place.name for place in folder.iterdir() if place.is_dir())
    for author in authors or ():
        if author not in there:
            raise UnknownAuthor(folder, author, f"there are {', '.join(there)}")
    return tuple(
        read_story(file)
        for author in there
        if authors is None or author in authors
        for file in sorted((folder / author).glob("*.json"))
    )


def read_split(file: Path = SPLIT) -> Split:
    """Which authors are held out."""
    node = Node(file, "", _json(file))
    node.only("train", "held_out")
    return Split(node["train"].texts(), node["held_out"].texts())


def read_story(file: Path) -> Story:
    """One file; the author is the name of its folder."""
    return parse_story(_json(file), file, file.parent.name)


def parse_story(value: object, file: Path, author: str) -> Story:
    """A story as JSON, of `file`, which errors name.

    Raises `WrongForm`.
    """
    node = Node(file, "", value)
    node.only("id", "lang", "register", "domain", "sessions", "facts", "changes", "questions")
    sessions = tuple(_session(one) for one in node["sessions"].items())
    facts = tuple(_fact(one) for one in node["facts"].items())
    keys: Mapping[Lane, frozenset[Key]] = {
        "turns": frozenset((s.id, at) for s in sessions for at in range(len(s.turns))),
        "facts": frozenset(("", at) for at in range(len(facts))),
    }
    return Story(
        id=node["id"].text(),
        author=author,
        lang=node["lang"].text(),
        register=node["register"].text(),
        domain=node["domain"].text(),
        sessions=sessions,
        facts=facts,
        relations=tuple(_relation(one, keys) for one in node["changes"].items()),
        questions=tuple(
            _question(number, one, keys) for number, one in enumerate(node["questions"].items())
        ),
    )


def as_key(value: object, lane: Lane) -> Key | None:
    """A statement as files name it: a turn as [session, place], a fact as its place."""
    match value:
        case [str(session), int(at)] if lane == "turns" and not isinstance(at, bool):
            return (session, at)
        case int(at) if lane == "facts" and not isinstance(at, bool):
            return ("", at)
    return None


def _json(file: Path) -> Any:
    try:
        return json.loads(file.read_text("utf-8"))
    except OSError as error:
        raise NotJson(file, "", error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise NotJson(file, f"byte {error.start}", "not UTF-8") from error
    except json.JSONDecodeError as error:
        raise NotJson(file, f"line {error.lineno}", error.msg) from error


@dataclass(frozen=True, slots=True)
class Node:
    """A value of a file, with the place where it stands. What is wrong with it is `WrongForm`."""

    file: Path
    place: str
    value: Any

    def error(self, problem: str) -> WrongForm:
        """What is wrong at this place."""
        return WrongForm(self.file, self.place, problem)

    def only(self, *names: str, optional: Sequence[str] = ()) -> None:
        """It is an object with these names and, at most, the optional ones."""
        if not isinstance(self.value, dict):
            raise self.error("not an object")
        for name in names:
            if name not in self.value:
                raise self.error(f"{name} is missing")
        for name in self.value:
            if name not in names and name not in optional:
                raise self.error(f"{name} is no part of the form")

    def __getitem__(self, name: str) -> Node:
        return Node(self.file, f"{self.place}{'.' if self.place else ''}{name}", self.value[name])

    def items(self) -> list[Node]:
        """The values of a list."""
        if not isinstance(self.value, list):
            raise self.error("not a list")
        return [
            Node(self.file, f"{self.place}[{at}]", value) for at, value in enumerate(self.value)
        ]

    def text(self) -> str:
        """A text that is not empty."""
        if not isinstance(self.value, str) or not self.value.strip():
            raise self.error("not a text")
        return self.value

    def choice(self, allowed: Sequence[ChoiceT]) -> ChoiceT:
        """One of the texts that are allowed."""
        written = self.text()
        for choice in allowed:
            if choice == written:
                return choice
        raise self.error(f"{written} is none of {', '.join(allowed)}")

    def text_of(self, name: str, default: str = "") -> str:
        """The text that a name has, `default` without it."""
        return self[name].text() if name in self.value else default

    def texts(self) -> tuple[str, ...]:
        """A list of texts."""
        return tuple(one.text() for one in self.items())

    def words(self) -> str:
        """A text that may be empty."""
        return self.value if self.value == "" else self.text()

    def place_in(self, count: int) -> int:
        """A place among so many, from 0."""
        if type(self.value) is not int or not 0 <= self.value < count:
            raise self.error("no such place")
        return self.value

    def time(self) -> datetime:
        """A moment with its zone."""
        try:
            moment = datetime.fromisoformat(self.text())
        except ValueError as error:
            raise self.error("not a time of ISO 8601") from error
        if moment.tzinfo is None:
            raise self.error("a time without a zone")
        return moment

    def key(self, lane: Lane, known: Collection[Key]) -> Key:
        """A turn as [session, place], a fact as its place."""
        key = as_key(self.value, lane)
        if key is None:
            raise self.error(f"not an id of {lane}")
        if key not in known:
            raise self.error("there is no such statement")
        return key

    def flag(self, name: str) -> bool:
        """Whether a name is set; False without it."""
        value = self.value.get(name, False)
        if not isinstance(value, bool):
            raise self[name].error("neither true nor false")
        return value


def _session(node: Node) -> Session:
    node.only("id", "when", "turns")
    turns = tuple(_turn(one) for one in node["turns"].items())
    return Session(node["id"].text(), node["when"].time(), turns)


def _turn(node: Node) -> Turn:
    node.only("role", "text", optional=("speaker",))
    speaker = node["speaker"].text() if "speaker" in node.value else None
    return Turn(node["role"].choice(ROLES), speaker, node["text"].text())


def _fact(node: Node) -> Fact:
    node.only("when", "text", "type")
    return Fact(node["when"].time(), node["text"].text(), node["type"].choice(FACT_TYPES))


def _relation(node: Node, keys: Mapping[Lane, Collection[Key]]) -> Relation:
    node.only("lane", "older", "newer", "relation")
    lane = node["lane"].choice(LANES)
    return Relation(
        lane,
        node["older"].key(lane, keys[lane]),
        node["newer"].key(lane, keys[lane]),
        node["relation"].choice(RELATIONS),
    )


def _question(number: int, node: Node, keys: Mapping[Lane, Collection[Key]]) -> Question:
    names = ("q", "kind", "now", "answer", "stale", "evidence", "facts")
    node.only(*names, optional=("mixed", "near"))
    return Question(
        number=number,
        text=node["q"].text(),
        kind=node["kind"].choice(KINDS),
        now=node["now"].time(),
        answer=node["answer"].texts(),
        stale=node["stale"].texts(),
        evidence=tuple(one.key("turns", keys["turns"]) for one in node["evidence"].items()),
        facts=tuple(one.key("facts", keys["facts"]) for one in node["facts"].items()),
        mixed=node.flag("mixed"),
        near=node.flag("near"),
    )
