"""What hands wrote, as tasks for any search: statements, and questions with the places that answer.

In: the stories and what `corpus.written` reads. Out: tasks of one form, and their scores:
`questions` over stories, `exchanges` (a short reply is told with its question), `past` (values one
after the other). Only Python is needed, so that others can measure a search of their own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeVar, get_args

from corpus.reading import LANES, Key, Lane, Story
from corpus.scoring import TEN
from corpus.written import (
    LABELS,
    Chain,
    Exchange,
    Group,
    Label,
    Wanted,
    read_chains,
    read_exchanges,
    read_wanted,
)

__all__ = [
    "SETS",
    "Asked",
    "LabelScore",
    "Score",
    "Set",
    "Task",
    "as_told",
    "exchange_tasks",
    "past_tasks",
    "question_tasks",
    "read_tasks",
    "score_labels",
    "score_task",
]

Set = Literal["questions", "exchanges", "past"]
SETS: Final[tuple[Set, ...]] = get_args(Set)

RowT = TypeVar("RowT")
KeyT = TypeVar("KeyT", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question: places of the statements that answer it, and of those that mislead.

    `neutral` are places that are neither: the turns of its own exchange, other values of its chain.
    Without an answer it was never said.
    """

    text: str
    right: frozenset[int]
    misleading: tuple[int, ...] = ()
    neutral: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Task:
    """Statements of one lane, and questions in one language about them.

    `told` is the language of the statements, `author` the hand or the story's author, and `name`
    tells it from other tasks of its set.
    """

    set: Set
    name: str
    author: str
    lane: Lane
    told: str
    language: str
    statements: tuple[str, ...]
    asked: tuple[Asked, ...]

    @property
    def languages(self) -> str:
        """The language, or `en of de` where it is asked in another than was told."""
        return self.told if self.language == self.told else f"{self.language} of {self.told}"


def read_tasks(name: Set, stories: Iterable[Story]) -> Iterator[Task]:
    """All tasks of a set; questions are asked over these stories."""
    if name == "questions":
        of_story = list(stories)
        yield from question_tasks(of_story, read_wanted(of_story))
    elif name == "exchanges":
        yield from exchange_tasks(read_exchanges())
    else:
        yield from past_tasks(read_chains())


def question_tasks(stories: Iterable[Story], wanted: Iterable[Wanted]) -> Iterator[Task]:
    """A task a story, hand, lane and language of asking; near misses are in both lanes."""
    by_story = _gather(wanted, lambda one: one.story)
    for story in stories:
        gathered = _gather(by_story.get(story.id, ()), lambda one: (one.hand, one.language))
        for (hand, language), rows in gathered.items():
            for lane in LANES:
                texts = story.texts(lane)
                asked = tuple(_wanted_of(rows, lane, list(texts)))
                if not asked:
                    continue
                name = f"{story.id}/{hand}/{language}/{lane}"
                told = tuple(texts.values())
                yield Task("questions", name, story.author, lane, story.lang, language, told, asked)


def _wanted_of(rows: Iterable[Wanted], lane: Lane, keys: Sequence[Key]) -> Iterator[Asked]:
    places = {key: place for place, key in enumerate(keys)}
    for one in rows:
        answers = one.turns if lane == "turns" else one.facts
        # What answers in the other lane alone is not asked here: here it was not said.
        if answers or not (one.turns or one.facts):
            misleading = tuple(places[key] for key in one.misleading.get(lane, ()))
            yield Asked(one.text, frozenset(places[key] for key in answers), misleading)


def exchange_tasks(exchanges: Iterable[Exchange]) -> Iterator[Task]:
    """A task a hand and language: the replies as they are told, and the other turns beside them."""
    gathered = _gather(exchanges, lambda one: (one.hand, one.language))
    for (hand, language), rows in gathered.items():
        statements: list[str] = []
        asked: list[Asked] = []
        for one in rows:
            place = len(statements)
            statements += map(as_told, (one, *one.misleading))
            beside = len(statements)
            statements += [text for at, (_, text) in enumerate(one.turns) if at != one.reply]
            whole = Asked(
                "",
                frozenset({place}),
                tuple(range(place + 1, beside)),
                frozenset(range(beside, len(statements))),
            )
            asked += [replace(whole, text=question) for question in one.questions]
        name = f"{hand}/{language}"
        yield Task(
            "exchanges", name, hand, "turns", language, language, tuple(statements), tuple(asked)
        )


def as_told(exchange: Exchange) -> str:
    """A reply with its question before it: alone it means nothing."""
    return f"{exchange.turns[exchange.ask][1]} \u2014 {exchange.turns[exchange.reply][1]}"


def past_tasks(chains: Iterable[Chain]) -> Iterator[Task]:
    """A task a hand, lane and language: which value answers is told by times, not by words.

    The other values of a chain mislead.
    """
    gathered = _gather(chains, lambda one: (one.hand, one.lane, one.language))
    for (hand, lane, language), rows in gathered.items():
        statements: list[str] = []
        asked: list[Asked] = []
        for chain in rows:
            first = len(statements)
            statements += [text for _, _, text in chain.statements]
            for question in chain.questions:
                right = frozenset(first + at for at in question.answer)
                rest = tuple(at for at in range(first, len(statements)) if at not in right)
                asked.append(Asked(question.text, right, rest))
        name = f"{hand}/{lane}/{language}"
        yield Task("past", name, hand, lane, language, language, tuple(statements), tuple(asked))


@dataclass(frozen=True, slots=True)
class Score:
    """Of so many answered `questions`: shares with an answer first, or among the first ten, and
    with something misleading before any answer. Of so many `near` misses: the share in silence."""

    questions: int = 0
    first: float = 0.0
    ten: float = 0.0
    misled: float = 0.0
    near: int = 0
    silent: float = 0.0

    @classmethod
    def over(cls, scores: Iterable[Score]) -> Score:
        """The score over the questions of several tasks."""
        rows = list(scores)
        questions, near = sum(row.questions for row in rows), sum(row.near for row in rows)

        def share(name: str, of: str, most: int) -> float:
            summed: float = sum(getattr(row, name) * getattr(row, of) for row in rows)
            return summed / max(1, most)

        return cls(
            questions,
            share("first", "questions", questions),
            share("ten", "questions", questions),
            share("misled", "questions", questions),
            near,
            share("silent", "near", near),
        )


def score_task(task: Task, rankings: Iterable[Sequence[int]]) -> Score:
    """Score what a search found for each question: places, best first; none is silence."""
    first = ten = misled = silent = near = 0
    for one, ranking in zip(task.asked, rankings, strict=True):
        if not one.right:
            near += 1
            silent += not ranking
            continue
        # A turn that is neither right nor wrong does not count against a search.
        counted = [place for place in ranking if place not in one.neutral]
        first += bool(counted) and counted[0] in one.right
        ten += not one.right.isdisjoint(counted[:TEN])
        told = (place for place in counted if place in one.right or place in one.misleading)
        misled += next(told, None) not in one.right
    answered = len(task.asked) - near
    most = max(1, answered)
    return Score(answered, first / most, ten / most, misled / most, near, silent / max(1, near))


@dataclass(frozen=True, slots=True)
class LabelScore:
    """Of pairs: the share labelled right, and precision and recall of each label."""

    pairs: int
    right: float
    precision: Mapping[Label, float]
    recall: Mapping[Label, float]


def score_labels(
    groups: Iterable[Group], judge: Callable[[Group, Sequence[str]], Sequence[Label]]
) -> LabelScore:
    """Have the later statements of groups labelled. `judge` gets a group and their texts."""
    wanted: list[Label] = []
    given: list[Label] = []
    for group in groups:
        wanted += [later.label for later in group.newer]
        given += judge(group, [later.said.text for later in group.newer])
    pairs = list(zip(wanted, given, strict=True))

    def share(label: Label, labels: Sequence[Label]) -> float:
        return sum(one == two == label for one, two in pairs) / max(1, labels.count(label))

    return LabelScore(
        len(pairs),
        sum(one == two for one, two in pairs) / max(1, len(pairs)),
        {label: share(label, given) for label in LABELS},
        {label: share(label, wanted) for label in LABELS},
    )


def _gather(rows: Iterable[RowT], key: Callable[[RowT], KeyT]) -> dict[KeyT, list[RowT]]:
    gathered: defaultdict[KeyT, list[RowT]] = defaultdict(list)
    for row in rows:
        gathered[key(row)].append(row)
    return gathered
