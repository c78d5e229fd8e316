"""What holds now first, in both lanes: repetitions become one candidate, and the order changes.

In: candidates of one question, best first. Out: the same, those that say the same folded into one,
what holds now before what it replaced, with what was added to or taken from each score.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from heapq import merge
from itertools import chain, islice
from typing import Final, TypeAlias

import numpy as np

from anaphora.core.recalled import strip_recalled
from anaphora.rank.currency import (
    WINDOW,
    CurrencyOrder,
    Statements,
    order_by_currency,
)
from anaphora.rank.silence import answer_probability
from anaphora.rank.statements import read_cues

__all__ = ["WINDOW", "Candidate", "order_memories", "order_turns"]

THRESHOLD: Final = 0.45
"""The probability from which on a statement stands before the one that it replaces."""

READ: Final = 18
"""Candidates among which repetitions are folded."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One that was found: its place among the scores, and what its order depends on.

    `at` is when it was said, in seconds (NaN: not known); `asked_for`: by whom the question names.
    `told` is the passage of a very long text that is compared, None where that is all of it.
    `again` are the places of those that say the same, oldest first; `restated` is how many times it
    was said again. `group` is the score of its group, None for its own. `changes` are the factors
    that this module adds. `older_than` is the place of what replaces it and `reason` why,
    `previous` are those of what it replaces, the surest first.
    """

    place: int
    text: str
    score: float
    meaning: float
    at: float
    speaker: str = ""
    assistant: bool = False
    asked_for: bool = False
    told: str | None = None
    again: tuple[int, ...] = ()
    restated: int = 0
    group: float | None = None
    changes: Mapping[str, float] = field(default_factory=dict)
    older_than: int | None = None
    reason: str = ""
    previous: tuple[int, ...] = ()

    @property
    def standing(self) -> float:
        """The score by which it stands among the others: its group's."""
        return self.score if self.group is None else self.group


@dataclass(frozen=True, slots=True)
class Ordered:
    """Candidates in their order, and the probability that one of them answers the question."""

    candidates: Iterator[Candidate]
    confidence: float


def order_turns(
    found: Iterable[Candidate],
    question: str,
    spans: Sequence[tuple[float, float]] = (),
    *,
    repetitions: bool = False,
) -> Ordered:
    """`found` with its first `WINDOW` different candidates in the order of what holds now.

    Those that follow come as they are, and are not read before they are asked for. With
    `repetitions` what says the same is not folded into one.
    """
    rest = iter(found)
    if repetitions:
        return _ordered(list(islice(rest, WINDOW)), question, spans, rest)
    window, left = _folded(islice(rest, READ))
    return _ordered(window, question, spans, chain(left, rest))


def order_memories(found: Iterable[Candidate], question: str) -> Ordered:
    """As `order_turns`; what says the same was linked when it was kept, and is not looked for."""
    return order_turns(found, question, repetitions=True)


def _ordered(
    window: Sequence[Candidate],
    question: str,
    spans: Sequence[tuple[float, float]],
    rest: Iterator[Candidate],
) -> Ordered:
    if not window:
        return Ordered(rest, 0.0)
    judged = tuple(
        (
            strip_recalled(one.told or one.text),
            one.at,
            one.speaker,
            one.assistant,
            # A score falls with every second: what lies behind six digits decides nothing.
            round(one.score, 6),
            round(one.meaning, 6),
            one.asked_for,
            one.restated,
        )
        for one in window
    )
    ordered, confidence = _judge(judged, question, tuple(spans))
    # What was lowered may come after some of the rest.
    merged = merge(_related(window, ordered), rest, key=lambda one: -one.standing)
    return Ordered(merged, confidence)


_Judged: TypeAlias = tuple[str, float, str, bool, float, float, bool, int]


@lru_cache(maxsize=128)
def _judge(
    judged: tuple[_Judged, ...], question: str, spans: tuple[tuple[float, float], ...]
) -> tuple[CurrencyOrder, float]:
    """The order of what is judged, and how probably it answers; most of a repeated question."""
    texts, at, speakers, assistant, scores, meaning, asked_for, restated = zip(*judged, strict=True)
    statements = Statements(
        texts,
        np.array(at),
        speakers,
        np.array(assistant),
        np.array(scores, np.float32),
        np.array(meaning, np.float32),
        np.array(asked_for),
        np.array(restated),
    )
    ordered = order_by_currency(statements, question, THRESHOLD, spans)
    return ordered, answer_probability(statements, read_cues(question))


def _folded(found: Iterable[Candidate]) -> tuple[list[Candidate], list[Candidate]]:
    """The first `WINDOW` that differ, those that say the same folded into them, and the others."""
    first: dict[tuple[str, str, bool], Candidate] = {}
    again: dict[tuple[str, str, bool], list[Candidate]] = {}
    left: list[Candidate] = []
    for one in found:
        key = (one.text.strip(" .!?\n").casefold(), one.speaker, one.assistant)
        if key in first:
            again.setdefault(key, []).append(one)
        elif len(first) < WINDOW:
            first[key] = one
        else:
            left.append(one)
    window = []
    for key, one in first.items():
        others = sorted(again.get(key, ()), key=lambda other: other.at)
        # What was said again holds from then on; an assistant only repeats it.
        at = one.at if one.assistant or not others else max(one.at, others[-1].at)
        window.append(replace(one, at=at, again=tuple(other.place for other in others)))
    return window, left


def _related(window: Sequence[Candidate], ordered: CurrencyOrder) -> Iterator[Candidate]:
    newer: dict[int, int] = {}
    older: dict[int, list[int]] = {}
    past = {old for old, _ in ordered.replaced}
    for old, new in ordered.replaced:
        older.setdefault(new, []).append(old)
        # What replaces it in the end, where that is known.
        if old not in newer or (newer[old] in past and new not in past):
            newer[old] = new
    for at in ordered.order:
        one = window[at]
        lost = ordered.lowered.get(at, 0.0)
        previous = older.get(at, ())
        yield replace(
            one,
            score=one.score - lost,
            # The order was computed in single precision: no hit stands below its own score.
            group=max(ordered.groups[at], one.score - lost),
            changes={"unanswered": -lost} if lost else {},
            older_than=window[newer[at]].place if at in newer else None,
            reason=ordered.replaced[at, newer[at]] if at in newer else "",
            previous=tuple(window[place].place for place in previous),
        )
