"""When is recall rightly silent? `python -m bench.silence --data DIR`.

Questions that what is searched answers, questions about what was never said there, and questions
that were asked of somebody else, over stories (told as chats and as facts) and over REALTALK and
BEAM. Reported on what had no part in the fit: the share of each kind of question that gets nothing,
and how far what hits say of themselves lies from how many answer. `fit` and `fit_hits` find the
weights of `rank/silence`. Written to bench/results/silence.json and .md.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import cycle, product
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from unittest import mock

import numpy as np
from corpus.reading import Story as Told
from corpus.reading import read_split
from corpus.reading import read_stories as read_corpus

from anaphora.embed.base import Embedder
from anaphora.rank.silence import (
    FACT_FLOOR,
    FLOOR_OF,
    HIT_WEIGHTS,
    LANES,
    TURN_FLOOR,
    HitEvidence,
    Lane,
    Weights,
    bounded,
    hit_probability,
    probability,
)
from anaphora.recall import answers as recall_answers
from anaphora.recall.answers import Likelihood, with_floor
from anaphora.values.conversations import Recall
from bench.changes import ABSENT, CHATS, FITTED, Story, holds_any, read_stories, told_both_ways
from bench.datasets import SETS, haystacks
from bench.figures import Figure, keep, run_alone
from bench.fitting import fit_added, fit_logistic
from bench.homes import home_of, load_reader
from bench.told import (
    asked_chat,
    asked_story,
    find_hits,
    read_everyday_stories,
    spread_questions,
    turn_texts,
)

if TYPE_CHECKING:
    from anaphora.recall.candidates import Candidate

FLOORS: Final = tuple(
    sorted({0.02, 0.05, 0.08, 0.1, 0.15, 0.2, 0.25, 0.3, 0.5, TURN_FLOOR, FACT_FLOOR})
)
OF_OTHER_STORY: Final = 8
"""Questions of the next story of a corpus that each story is asked."""
READ_FITTED: Final = 3
"""Of the held-out authors of corpus/ so many have a part in what a reader's judgement is worth."""
CORPUS: Final = "corpus"
FEW_SIZES: Final = (2, 5, 10)
GROUPS: Final = 3
"""Small homes that are made of each story and lane."""
SEED: Final = 11
ANSWERED, NEVER_SAID, OF_OTHERS = "answered", "never said", "asked of others"
KINDS: Final = (ANSWERED, NEVER_SAID, OF_OTHERS)
TENTHS: Final = 10
LOST: Final = 0.03
"""The share of answered questions that may be lost, where silence is compared."""
MEANING_AT: Final = 0
UNSEEN_AT: Final = 1
"""The places of the best cosine and of the unseen words among the features."""
FEW_AT: Final = 2
FEW_OF_HIT_AT: Final = 6
"""Those of few statements among the features, and among those of a hit."""
CROWD_RIDGE: Final = 0.1
"""What many statements take off is found from few features, whose scale is known."""
COSINES_AT: Final = frozenset({0, 5})
"""Those of the cosine and of its lead among the features of a hit."""
NEVER_FOR: Final = frozenset({1, 4})
"""Those of missing words and of a hit that only asks."""
# The strength of the ridge; with so few weights it hardly matters.
RIDGE: Final = 1.0
NOTHING: Final = (0.0, 1.0, None, 1.0)
"""What is seen of a question that finds nothing."""

Right: TypeAlias = Callable[[str], bool]
"""Whether a text answers a question."""

SeenHits: TypeAlias = tuple[tuple[HitEvidence, bool], ...]
"""What is seen of hits, best first, and whether each answers."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What is seen of one question: the best cosine (None: not measured), the share of words that
    nothing holds, the best log-odds of a reader (None: nothing was read), how few statements there
    are, and its hits, if it is known how probably they answer."""

    meaning: float | None
    unseen: float
    read: float | None
    few: float
    hits: SeenHits

    @property
    def crowded(self) -> bool:
        """Whether it was asked among more statements than weights are usually fitted in."""
        return any(hit.many for hit, _ in self.hits)

    @property
    def answered(self) -> float:
        """The probability that anything answers, as shipped."""
        return probability(self.meaning, self.unseen, self.read, self.few) if self.hits else 0.0


@dataclass(frozen=True, slots=True)
class Asked:
    """One question: where it was asked, in which lane, of which kind, by whom it was written."""

    where: str
    lane: Lane
    kind: str
    fitted: bool
    author: str
    seen: Seen

    @property
    def is_silent(self) -> bool:
        """Whether it gets no hit, as shipped."""
        hits: Any = tuple(SimpleNamespace(answers=chance) for chance, _ in self.chances())
        return not with_floor(Recall(hits), self.seen.answered, FLOOR_OF[self.lane]).hits

    def chances(self) -> list[tuple[float, bool]]:
        """Of each hit, best first: how probably it answers, and whether it does."""
        answered = self.seen.answered
        calibrated = self.seen.meaning is not None
        return [
            (hit_probability(answered, hit, self.lane, calibrated=calibrated), right)
            for hit, right in self.seen.hits
        ]


@dataclass(frozen=True, slots=True)
class Example:
    """What a weight is fitted on: values, whether they are those of what is right, its count, and
    whether it is of a story that small homes are made of."""

    values: Weights
    right: bool
    counts: float
    of_story: bool


@contextmanager
def watched() -> Iterator[Callable[[Iterable[str], Right], Seen]]:
    """What is seen of the texts that a question asked from now on finds, with which are right."""
    hits: dict[str, HitEvidence] = {}
    answers: list[tuple[float | None, float, float | None, float]] = []
    evidence_of = Likelihood.evidence

    def watch_hit(one: Likelihood, candidate: Candidate, place: int) -> HitEvidence:
        evidence = evidence_of(one, candidate, place)
        hits.setdefault(candidate.text, evidence)
        return evidence

    def watch_answer(meaning: float | None, unseen: float, read: float | None, few: float) -> float:
        answers.append((meaning, unseen, read, few))
        return probability(meaning, unseen, read, few)

    def seen_of(texts: Iterable[str], right: Right) -> Seen:
        found = tuple((hits[text], right(text)) for text in texts if text in hits)
        return Seen(*(answers[-1] if answers else NOTHING), found)

    with (
        mock.patch.object(Likelihood, "evidence", watch_hit),
        mock.patch.object(recall_answers, "probability", watch_answer),
    ):
        yield seen_of


def ask_stories(data: Path, homes: Path | None = None, read: int = 0) -> Iterator[Asked]:
    """The questions of every story, and those of the next one of its part.

    With `homes` the homes are kept there; a reader reads the first `read` hits."""
    for part, stories in read_stories(data).items():
        for at, story in enumerate(stories):
            others = stories[(at + 1) % len(stories)]["questions"]
            asked = [q for q in others if q["kind"] != ABSENT]
            with home_of(homes, f"changes-{story['id']}") as home:
                yield from _ask_story(part, story, asked, home, read)


def _ask_story(
    part: str, story: Story, others: Sequence[Story], home: Path, read: int
) -> Iterator[Asked]:
    questions = [
        *((NEVER_SAID if one["kind"] == ABSENT else ANSWERED, one) for one in story["questions"]),
        *((OF_OTHERS, one) for one in others),
    ]
    with told_both_ways(home, story, read, min_confidence=0.0) as ways:
        for told, ask in ways.items():
            lane: Lane = "turns" if told == CHATS else "facts"
            for kind, question in questions:
                answers = question["answer"] if kind == ANSWERED else ()
                with watched() as seen_of:
                    texts = [text for text, _ in ask(question)]
                    seen = seen_of(texts, partial(holds_any, strings=answers))
                where = f"{part.partition(':')[0]}, {told}"
                yield Asked(where, lane, kind, part == FITTED, "changes", seen)


def ask_chats(data: Path, homes: Path | None = None, read: int = 0) -> Iterator[Asked]:
    """Questions of every chat of both data sets, and those of a chat of the other one.

    With `homes` the homes are kept there; a reader reads the first `read` hits."""
    chats = {form: [chat for _, chat in haystacks(data, form)] for form, _ in SETS}
    for form, own in chats.items():
        (strangers,) = (found for other, found in chats.items() if other != form)
        for at, chat in enumerate(own):
            asked = {ANSWERED: chat, OF_OTHERS: strangers[at % len(strangers)]}
            fitted = chat.number <= 5
            where = f"{form}, {'1-5' if fitted else '6-10'}"
            texts, author = turn_texts(chat), f"{form} {chat.number}"
            with asked_chat(homes, form, chat) as (memory, _):
                load_reader(memory, read)
                for kind, of in asked.items():
                    for question in spread_questions(of):
                        keys = question.evidence if kind == ANSWERED else ()
                        evidence = {texts.get(key) for key in keys}
                        with watched() as seen_of:
                            hits = find_hits(memory, "turns", question.text, read)
                            seen = seen_of((hit.text for hit in hits), evidence.__contains__)
                        yield Asked(where, "turns", kind, fitted, author, seen)


def ask_corpus(
    stories: Sequence[Told],
    homes: Path | None = None,
    read: int = 0,
    *,
    name: str = CORPUS,
    fitted: bool = False,
    embedder: Embedder | None = None,
) -> Iterator[Asked]:
    """The questions of every story, and a few of the next one, in both lanes.

    `name` is that of the set, `embedder` another than the bundled one. With `homes` the homes are
    kept there; a reader reads the first `read` hits."""
    for at, story in enumerate(stories):
        others = [one for one in stories[(at + 1) % len(stories)].questions if one.facts]
        questions = [
            *((ANSWERED if one.facts else NEVER_SAID, one) for one in story.questions),
            *((OF_OTHERS, one) for one in others[:OF_OTHER_STORY]),
        ]
        language = "English" if story.lang == "en" else "other languages"
        for lane in LANES:
            texts = story.texts(lane)
            with asked_story(homes, story, lane, read, embedder) as ask:
                for kind, question in questions:
                    keys = question.answers(lane) if kind == ANSWERED else ()
                    evidence = {texts[key] for key in keys}
                    with watched() as seen_of:
                        hits = ask(question)
                        seen = seen_of((hit.text for hit in hits), evidence.__contains__)
                    where = f"{name}, {lane}, {language}"
                    yield Asked(where, lane, kind, fitted, story.author, seen)


def ask_few(
    stories: Sequence[Told],
    sizes: Sequence[int] = FEW_SIZES,
    read: int = 0,
    *,
    fitted: bool = False,
) -> Iterator[Asked]:
    """Homes of some statements of a story that follow each other, of the next of `sizes` in turn:
    questions that they answer, and as many that only the rest of the story or another answers."""
    rng = random.Random(SEED)
    places = product(range(len(stories)), LANES)
    for (at, lane), size in zip(places, cycle(sizes), strict=False):
        story, other = stories[at], stories[(at + 1) % len(stories)]
        strangers = [question for question in other.questions if question.answers(lane)]
        texts = list(story.texts(lane).items())
        groups = [dict(texts[start : start + size]) for start in range(0, len(texts), size)]
        for group in rng.sample(groups, min(GROUPS, len(groups))):
            there = [bool(group.keys() & set(q.answers(lane))) for q in story.questions]
            answered = [q for q, own in zip(story.questions, there, strict=True) if own]
            unanswered = [q for q, own in zip(story.questions, there, strict=True) if not own]
            most = min(map(len, (answered, unanswered, strangers)))
            questions = [
                *((ANSWERED, question) for question in answered),
                *((NEVER_SAID, question) for question in rng.sample(unanswered, most)),
                *((OF_OTHERS, question) for question in rng.sample(strangers, most)),
            ]
            if not questions:
                continue
            with asked_story(None, story, lane, read, only=group) as ask:
                for kind, question in questions:
                    right = {group[key] for key in question.answers(lane) if key in group}
                    with watched() as seen_of:
                        hits = ask(question)
                        seen = seen_of((hit.text for hit in hits), right.__contains__)
                    yield Asked(f"{size} statements", lane, kind, fitted, story.author, seen)


def features(seen: Seen) -> tuple[float, ...]:
    """What the probability that anything answers is made of, a reader's log-odds if it read."""
    values = seen.meaning or 0.0, seen.unseen, seen.few
    return values if seen.read is None else (*values, bounded(seen.read))


def fit(asked: Sequence[Asked], *, cosine: bool = True) -> Weights:
    """The constant and the weights of meaning, unseen words and few statements, then of a reader.

    The last one is there where all was read. Without `cosine` that of meaning is 0. Every group
    counts the same. A word that nothing holds never speaks for an answer: where the fit says so,
    because the reader knows it already, that weight is 0 and the others are found without it. That
    of few is found with the others as they are, in homes of few statements.
    """
    fitted = _fitted(asked)
    sizes = Counter((one.where, one.kind == ANSWERED) for one in fitted)
    rows = [
        Example(
            features(one.seen),
            one.kind == ANSWERED,
            100.0 / sizes[one.where, one.kind == ANSWERED],
            one.where.startswith(CORPUS),
        )
        for one in fitted
    ]
    without = frozenset() if cosine else frozenset({MEANING_AT})
    weights = _fit_examples(rows, without, FEW_AT)
    if weights[1 + UNSEEN_AT] > 0.0:
        weights = _fit_examples(rows, without | {UNSEEN_AT}, FEW_AT)
    return weights


def fit_hits(asked: Sequence[Asked], lane: Lane, *, cosine: bool = True) -> Weights:
    """The weights of a lane's hits of answered questions, in the order of `HitEvidence.features`.

    Without `cosine` those of meaning and lead are 0, as is a weight by which a missing word or a
    question would speak for a hit: a reader knows these already. What was sought by name has no
    part in it.
    """
    hits = [
        (hit, right, one.where)
        for one in _fitted(asked)
        if one.lane == lane and one.kind == ANSWERED
        for hit, right in one.seen.hits
        if not hit.sought and (hit.read is None) == (one.seen.read is None)
    ]
    sizes = Counter(where for *_, where in hits)
    rows = [
        Example(hit.features(), right, 100.0 / sizes[where], where.startswith(CORPUS))
        for hit, right, where in hits
    ]
    without = frozenset() if cosine else COSINES_AT
    while True:
        weights = _fit_examples(rows, without, FEW_OF_HIT_AT)
        wrong = {at for at in NEVER_FOR if weights[1 + at] > 0.0}
        if not wrong:
            return tuple(round(value, 3) for value in weights)
        without |= wrong


def _fit_examples(rows: Sequence[Example], without: frozenset[int], few: int) -> Weights:
    """The constant and the weights, those at `without` 0, that at `few` from homes of few."""
    many = [row for row in rows if not row.values[few]]
    scarce = [row for row in rows if row.values[few]]
    weights, constant = fit_logistic(
        [_without(row.values, without) for row in many],
        [row.right for row in many],
        [row.counts for row in many],
        RIDGE,
    )
    if scarce:
        # What these stories are harder or easier by is no matter of the number of statements.
        own = [*scarce, *(row for row in many if row.of_story)]
        _, weights[few] = fit_added(
            [[1.0, row.values[few]] for row in own],
            [row.right for row in own],
            [row.counts for row in own],
            [constant + float(np.dot(weights, row.values)) for row in own],
            RIDGE,
        )
    return constant, *(0.0 if at in without else weight for at, weight in enumerate(weights))


def _without(values: Sequence[float], places: Collection[int]) -> Weights:
    return tuple(0.0 if at in places else value for at, value in enumerate(values))


def fit_crowd(asked: Sequence[Asked]) -> Weights:
    """What many statements take off hits of both lanes, in the order of `crowd_features`.

    The other weights are as shipped. In other words and by name, in each lane, count the same.
    """
    hits = [
        (hit, right, question)
        for question in _fitted(asked, crowded=True)
        if question.kind == ANSWERED
        for hit, right in question.seen.hits
        if not hit.sought and hit.read is None
    ]
    sizes = Counter(question.where for *_, question in hits)
    weights = fit_added(
        [hit.crowd_features() for hit, *_ in hits],
        [right for _, right, _ in hits],
        [100.0 / sizes[question.where] for *_, question in hits],
        [
            float(np.dot(HIT_WEIGHTS[True, False][question.lane], (1.0, *hit.features())))
            for hit, _, question in hits
        ],
        CROWD_RIDGE,
    )
    return tuple(round(weight, 3) for weight in weights)


def _fitted(asked: Sequence[Asked], *, crowded: bool = False) -> list[Asked]:
    fitted = [one for one in asked if one.fitted and one.seen.crowded == crowded]
    # Where a reader reads, a question that finds nothing has nothing to be read.
    return [one for one in fitted if one.seen.read is not None] or fitted


def reliability(asked: Sequence[Asked]) -> list[tuple[float, float, int]]:
    """Of each tenth of all hits, by their probability: its mean, the share right, the number."""
    hits = sorted(hit for one in asked for hit in one.chances())
    tenths = [part for part in np.array_split(np.array(hits, np.float64), TENTHS) if len(part)]
    return [(float(p[:, 0].mean()), float(p[:, 1].mean()), len(p)) for p in tenths]


def figures_of(asked: Sequence[Asked]) -> Iterator[Figure]:
    """The share of questions without a hit, by kind and group, and how far hits say too much."""
    held_out = [one for one in asked if not one.fitted]
    for kind in KINDS:
        of_kind = [one for one in held_out if one.kind == kind]
        yield Figure(f"all: questions, {kind}", len(of_kind))
        yield Figure(f"all: silent, {kind}", sum(one.is_silent for one in of_kind) / len(of_kind))
        for where in dict.fromkeys(one.where for one in of_kind):
            own = [one for one in of_kind if one.where == where]
            silent = sum(one.is_silent for one in own) / len(own)
            yield Figure(f"{where}: silent, {kind}", silent)
    for where in dict.fromkeys(one.where for one in held_out):
        yield Figure(f"{where}: farthest tenth of hits", farthest(held_out, where))


def farthest(asked: Sequence[Asked], where: str) -> float:
    """How far what hits of a group say lies from how many are right, in the worst tenth."""
    tenths = reliability([one for one in asked if one.where == where])
    return max((abs(said - right) for said, right, _ in tenths), default=0.0)


def run(data: Path, homes: Path | None = None) -> list[Figure]:
    """Ask everything; print and keep the figures. `homes` keeps the homes, to ask again."""
    asked = [
        *ask_stories(data, homes),
        *ask_chats(data, homes),
        *ask_corpus(read_everyday_stories(data), homes, name="stories"),
        *ask_corpus(read_corpus(authors=read_split().held_out), homes),
    ]
    figures = list(figures_of(asked))
    keep("silence", "Silence, as shipped", figures)
    return figures


if __name__ == "__main__":
    run_alone("bench.silence", __doc__, run, homes=True)
