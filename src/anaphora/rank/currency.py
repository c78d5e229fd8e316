"""Puts what holds now before what it replaced, among statements that are about one thing.

For each pair of candidates of one question, an older and a newer one, `compare_statements` reads
how alike their words are, which words of the question each holds, whether they speak of the same
subject, how long lies between them, how near each is to the question. Two logistic regressions of
that say whether the newer one should stand before the older, if one of the two is right at all, and
whether it replaces it, whatever else the two may be. They are fitted by `python -m
tools.fit_currency` on stories in which facts change and on questions of real chats
(`currency_weights`). Words of change ("moved to", "no longer"), values of the same kind and the
closeness of the two vectors were tried as features and are worth nothing beside these:
docs/decisions/0027.

`order_by_currency` then puts statements before those that they outdate; where the question asks for
the past, those stand first that held then. A short turn that only asks, or says that it does not
know, counts for less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anaphora.rank.currency_weights import BEFORE, CONSTANT, REPLACES
from anaphora.rank.statements import QuestionCues, StatementReading, read_cues, read_statement

Floats = NDArray[np.float32]

WINDOW: Final = 12
"""Candidates that are read, best first: those that answer nothing are put behind the others."""

COMPARED: Final = 8
"""Of those, the ones that are compared: a newer one from further down seldom answers."""

REPLACED: Final = 0.4
"""The probability from which on a statement is said to be replaced by another one."""

LEAST_SHARE: Final = 0.4
"""The score that a statement must have, as a share of that of the one that it replaces."""

WHOLLY_ASKED: Final = 0.3
"""What is taken from the probability that a statement stands before one that holds every word of
the question, where it lacks any and is not known to replace it: the other one is about what was
asked, and this one perhaps not."""

UNANSWERED: Final = 0.15
"""What a turn without an answer loses, as a share of the best score."""

ASKED_AGAIN: Final = 0.5
"""What one loses that holds half of the question's words: it asks the same, or does not know it."""

_SHORT: Final = 100
"""Characters of a mere question or "I do not know": longer ones tell something as well."""

_DAY: Final = 86_400.0
_MOMENT: Final = 0.5
_WHOLE: Final = 3
"""Words of a statement at least that must be repeated nearly all to be repeated."""


@dataclass(frozen=True, slots=True)
class Statements:
    """S candidates of one question, best first.

    `at` (S,) is when each was said, in seconds (NaN: not known), `speakers` (S,) by whom ("": not
    known), `assistant` (S,) whether by an assistant. `scores` (S,) is what they are ordered by,
    `meaning` (S,) the cosine to the question, 0 where it is not known. `asked_for` (S,): it is
    by whom the question names.
    """

    texts: Sequence[str]
    at: NDArray[np.float64]
    speakers: Sequence[str]
    assistant: NDArray[np.bool_]
    scores: Floats
    meaning: Floats
    asked_for: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def readings(self) -> list[StatementReading]:
        """What is read of each text."""
        return [read_statement(text) for text in self.texts]

    def take(self, places: Sequence[int]) -> Statements:
        """Those at some places, in this order."""
        chosen = list(places)
        return Statements(
            [self.texts[place] for place in chosen],
            self.at[chosen],
            [self.speakers[place] for place in chosen],
            self.assistant[chosen],
            self.scores[chosen],
            self.meaning[chosen],
            self.asked_for[chosen],
        )


OF_PAIR: Final = (
    "alike",  # words in common, as a share of the words of both
    "held",  # the same as a share of the shorter text's
    "asked in both",  # words of the question that both hold, as a share of them
    "else in both",  # words in common beside those
    "days",  # between the two, as a logarithm
    "reply",  # the newer one was said within a minute
    "gap",  # score of the newer one over that of the older, as a share of the best
    "meaning gap",
    "asked gap",
    "same subject",
    "other subject",
    "other person",  # both speak in the first person, and are not the same speaker
)
OF_ONE: Final = (
    "meaning",
    "asked",  # words of the question in what it tells, as a share of them
    "of asked",  # names of the question that it is about, as a share
    "of others",  # it is about somebody else than whom the question names
    "words",
    "size",
    "pasted",
    "personal",
    "asks",
    "unknown",
)
OF_QUESTION: Final = ("past", "now", "long", "longer")
# These mean another thing in long messages, which hold much else, than in short statements.
IN_LONG: Final = (
    "days",
    "gap",
    "meaning gap",
    "asked gap",
    "newer asked",
    "older of asked",
)
FEATURES: Final = (
    *OF_PAIR,
    *(f"{side} {name}" for side in ("older", "newer") for name in OF_ONE),
    *OF_QUESTION,
    "message",
    *(f"{name} in a message" for name in IN_LONG),
)
_OLDER: Final = slice(len(OF_PAIR), len(OF_PAIR) + len(OF_ONE))
_NEWER: Final = slice(_OLDER.stop, _OLDER.stop + len(OF_ONE))
_ASKED: Final = slice(_NEWER.stop, _NEWER.stop + len(OF_QUESTION))
_MESSAGE: Final = FEATURES.index("message")
_PLACES: Final = [FEATURES.index(name) for name in IN_LONG]
_FROM_LENGTH, _TO_LENGTH = 140, 260


def pair_features(statements: Statements, cues: QuestionCues) -> Floats:
    """What is known of every pair, shape (S, S, F): [older, newer], F in the order of `FEATURES`.

    For every two places, whichever was said first: the caller looks at those of the right order.
    """
    size, readings = len(statements), statements.readings
    subjects = _subjects(statements, readings, cues)
    one = _of_each(statements, readings, subjects, cues)
    asked = max(1, len(cues.terms))
    common = _in_common([read.words for read in readings])
    both = _in_common([read.words & cues.terms for read in readings])
    about = _in_common(subjects)
    count, shared, named = common.diagonal(), about > 0, about.diagonal() > 0
    days = statements.at[None, :] - statements.at[:, None]
    days = np.where(np.isnan(days), 0.0, days) / _DAY
    personal = one[:, OF_ONE.index("personal")] > 0
    others = _other_speaker(statements.speakers)
    meaning, told = one[:, 0], one[:, 1]
    best = max(float(statements.scores[0]), 1e-6)
    lengths = np.array([len(text) for text in statements.texts], np.float32)
    longest = np.maximum(lengths[:, None], lengths[None, :])
    pairs = (
        common / np.maximum(count[:, None] + count[None, :] - common, 1),
        common / np.maximum(np.minimum(count[:, None], count[None, :]), 1),
        both / asked,
        np.minimum((common - both) / 6, 1),
        np.log1p(np.maximum(days, 0)) / 6,
        days < 60 / _DAY,
        (statements.scores[None, :] - statements.scores[:, None]) / best,
        meaning[None, :] - meaning[:, None],
        told[None, :] - told[:, None],
        shared,
        named[:, None] & named[None, :] & ~shared,
        personal[:, None] & personal[None, :] & others,
    )
    features = np.empty((size, size, len(FEATURES)), np.float32)
    for place, values in enumerate(pairs):
        features[..., place] = values
    features[..., _OLDER] = one[:, None, :]
    features[..., _NEWER] = one[None, :, :]
    features[..., _ASKED] = (cues.past / 2, cues.now, min(asked, 6) / 6, min(asked, 16) / 16)
    message = (longest - _FROM_LENGTH) / (_TO_LENGTH - _FROM_LENGTH)
    features[..., _MESSAGE] = np.minimum(np.maximum(message, 0), 1)
    features[..., _MESSAGE + 1 :] = features[..., _PLACES] * features[..., _MESSAGE, None]
    return features


def _other_speaker(speakers: Sequence[str]) -> NDArray[np.bool_]:
    """Whether two were said by different ones, that of the older one being known; (S, S)."""
    if not any(speakers):
        return np.zeros((len(speakers), len(speakers)), np.bool_)
    names = np.array(speakers)
    differ: NDArray[np.bool_] = (names[:, None] != names[None, :]) & (names != "")[:, None]
    return differ


@dataclass(frozen=True, slots=True)
class Comparison:
    """What pairs are, (S, S): [older, newer]; 0 where the second was not said after the first.

    `before` is the probability that the newer one should stand before the older, given that one of
    the two is right, `replaces` that it says otherwise of the same thing. `at` (S,) is when each
    was said first, as `date_echoes` has it.
    """

    before: Floats
    replaces: Floats
    at: NDArray[np.float64]


def compare_statements(statements: Statements, cues: QuestionCues) -> Comparison:
    """Compare each with each. Where one of two has no known time, both probabilities are 0."""
    dated = replace(statements, at=date_echoes(statements))
    odds = pair_features(dated, cues) @ _weights() + _constants()
    with np.errstate(invalid="ignore"):
        later = dated.at[None, :] > dated.at[:, None]
    able = _comparable(dated, cues, later)[..., None]
    chances = np.where(able, 1.0 / (1.0 + np.exp(-np.clip(odds, -60, 60))), 0.0)
    # An assistant who repeats what was said replaces nothing, and does not stand before it.
    echoes = (dated.at != statements.at)[None, :]
    with np.errstate(invalid="ignore"):
        of_this = dated.at[None, :] - dated.at[:, None] <= _MOMENT
    before = np.where(echoes & of_this, 0.0, chances[..., 0])
    replaces = np.where(echoes, 0.0, chances[..., 1])
    whole = np.array([cues.terms <= read.words for read in dated.readings], np.bool_)
    if len(cues.terms) > 1:
        doubtful = whole[:, None] & ~whole[None, :] & (replaces < REPLACED)
        before = np.maximum(before - WHOLLY_ASKED * doubtful, 0.0)
    return Comparison(before, replaces, dated.at)


def _comparable(
    statements: Statements, cues: QuestionCues, later: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Which pairs, of those of which the second was said `later`, can be a change, (S, S).

    None is where the two share no word but those of time; where the newer one says nothing new,
    scores far below the older one, lacks a number or
    identifier of the question that the older one holds, or is another person's than the one that
    the question names; nor where the question says the older one word for word.
    """
    readings, scores = statements.readings, statements.scores
    found: NDArray[np.bool_] = later & (scores[None, :] >= LEAST_SHARE * scores[:, None])
    exact, asked_for = _with_digits(cues.terms), statements.asked_for.tolist()
    for older, newer in np.argwhere(found).tolist():
        read, other = readings[newer], readings[older]
        again = read.told <= other.words and read.negated == other.negated
        another = not asked_for[newer] and not read.names & cues.names
        person = another and asked_for[older]
        lacking = exact & other.words - read.words
        unrelated = not (read.words & other.words) - cues.temporal
        if unrelated or again or person or lacking or other.words <= cues.terms:
            found[older, newer] = False
    return found


@lru_cache(maxsize=1)
def _weights() -> Floats:
    """(F, 2): of standing before, of replacing."""
    return np.array([[BEFORE[name], REPLACES[name]] for name in FEATURES], np.float32)


@lru_cache(maxsize=1)
def _constants() -> Floats:
    return np.array([BEFORE[CONSTANT], REPLACES[CONSTANT]], np.float32)


def _of_each(
    statements: Statements,
    readings: Sequence[StatementReading],
    subjects: Sequence[frozenset[str]],
    cues: QuestionCues,
) -> Floats:
    """The features of each statement alone, (S, `OF_ONE`)."""
    asked, named = max(1, len(cues.terms)), max(1, len(cues.names))
    rows = [
        (
            meaning,
            len(read.told & cues.terms) / asked,
            len(about & cues.names) / named,
            bool(cues.names and about and not about & cues.names),
            min(read.length, 60) / 60,
            min(len(text), 400) / 400,
            min(len(text), 2_000) / 2_000,
            read.personal and not assistant,
            read.asks,
            read.unknown,
        )
        for text, meaning, assistant, read, about in zip(
            statements.texts,
            statements.meaning.tolist(),
            statements.assistant.tolist(),
            readings,
            subjects,
            strict=True,
        )
    ]
    return np.array(rows, np.float32).reshape(len(rows), len(OF_ONE))


def _subjects(
    statements: Statements, readings: Sequence[StatementReading], cues: QuestionCues
) -> list[frozenset[str]]:
    """Whom each statement is about: the names in it that the question or a speaker bears.

    Who speaks of themselves is one of them.
    """
    own = [_first_name(name) for name in statements.speakers]
    known = cues.names | frozenset(name for name in own if name)
    found = []
    for read, name, assistant in zip(readings, own, statements.assistant.tolist(), strict=True):
        about = read.names & known
        found.append(about | {name} if name and read.personal and not assistant else about)
    return found


def _first_name(name: str) -> str:
    parts = name.split()
    return parts[0].casefold() if parts else ""


def _with_digits(words: frozenset[str]) -> frozenset[str]:
    return frozenset(word for word in words if any(map(str.isdigit, word)))


def _in_common(sets: Sequence[frozenset[str]]) -> Floats:
    """How many members each two sets share, (S, S)."""
    # Of so few small sets this takes a tenth of the time of a product of matrices.
    rows = [[0.0] * len(sets) for _ in sets]
    for at, one in enumerate(sets):
        rows[at][at] = float(len(one))
        for other in range(at):
            rows[at][other] = rows[other][at] = float(len(one & sets[other]))
    return np.array(rows, np.float32)


def date_echoes(statements: Statements) -> NDArray[np.float64]:
    """When each was said first, (S,): an assistant's repetition has the time of what it repeats.

    It supports the user's statement and is no news. It repeats where half of its words, and every
    number in it, were the user's, or where it holds nearly all that the user said: of several
    statements the one that it has most words of, then the last one.
    """
    at = statements.at.copy()
    if not statements.assistant.any():
        return at
    readings = statements.readings
    told = np.array([not (read.asks or read.unknown) for read in readings], np.bool_)
    numbers = [_with_digits(read.words) for read in readings]
    users = np.flatnonzero(~statements.assistant & told).tolist()
    for place in np.flatnonzero(statements.assistant & told).tolist():
        words, numeric = readings[place].words, numbers[place]
        said = []
        for other in users:
            if not statements.at[other] < statements.at[place]:
                continue
            shared, whole = len(words & readings[other].words), len(readings[other].words)
            half = 2 * shared >= max(1, len(words)) and numeric <= numbers[other]
            if half or (whole >= _WHOLE and shared >= 0.9 * whole):
                said.append((shared, float(statements.at[other])))
        if said:
            # A moment later: it must not count as the older of the two.
            at[place] = max(said)[1] + _MOMENT
    return at


@dataclass(frozen=True, slots=True)
class CurrencyOrder:
    """Places of S statements in their new order, and why.

    `scores` (S,) descend in that order; `raised` says what was added to the score of a place that
    stands before what it replaces, or what held at the time that the question asks for; `lowered`
    what one without an answer lost. `replaced` are (older, newer) places, surest first.
    """

    order: tuple[int, ...]
    scores: Mapping[int, float]
    raised: Mapping[int, float] = field(default_factory=dict)
    lowered: Mapping[int, float] = field(default_factory=dict)
    replaced: tuple[tuple[int, int], ...] = ()


def order_by_currency(
    statements: Statements,
    question: str,
    threshold: float,
    spans: Sequence[tuple[float, float]] = (),
) -> CurrencyOrder:
    """Order `statements` for `question`: a newer one stands before an older by `threshold`.

    `spans` are the times that the question names, in seconds: of two statements the one counts that
    held at the end of the last of them. Where it asks for the past and names no time, the older one
    of two stands first.
    """
    cues = read_cues(question)
    lost = unanswered(statements, cues)
    scores = [float(s) - lost.get(at, 0.0) for at, s in enumerate(statements.scores.tolist())]
    ranked = sorted(range(len(scores)), key=lambda place: -scores[place])
    chosen = sorted(ranked[:COMPARED])
    best = statements.take(chosen)
    pairs = compare_statements(best, cues)
    dated = replace(best, at=pairs.at)
    lifted = _lifted(dated, cues, pairs.before, threshold, spans, [scores[at] for at in chosen])
    order = [chosen[at] for at in lifted] + ranked[COMPARED:]
    raised: dict[int, float] = {}
    final: dict[int, float] = {}
    least = -np.inf
    for place in reversed(order):
        # As high as whatever it stands before.
        if scores[place] < least:
            raised[place] = least - scores[place]
        least = final[place] = max(least, scores[place])
    chance = pairs.replaces
    sure = np.argwhere(chance >= REPLACED).tolist()
    sure.sort(key=lambda pair: -chance[pair[0], pair[1]])
    named = [(chosen[older], chosen[newer]) for older, newer in sure]
    replaced = tuple(pair for pair in named if not lost.keys() & set(pair))
    return CurrencyOrder(tuple(order), final, raised, lost, replaced)


def unanswered(statements: Statements, cues: QuestionCues) -> dict[int, float]:
    """What short turns lose that only ask, or that say that they do not know."""
    best = max(0.0, float(statements.scores[0]))
    found = {}
    for place, text in enumerate(statements.texts):
        if len(text) > _SHORT:
            continue
        read = read_statement(text)
        asked = read.words - read.told
        again = len(asked & cues.terms) >= 0.6 * len(cues.terms) and not read.told & cues.terms
        if read.asks or read.unknown or (asked and again):
            same = 2 * len(read.words & cues.terms) >= len(cues.terms)
            found[place] = best * (ASKED_AGAIN if same else UNANSWERED)
    return found


def _lifted(
    statements: Statements,
    cues: QuestionCues,
    chance: Floats,
    threshold: float,
    spans: Sequence[tuple[float, float]],
    scores: Sequence[float],
) -> list[int]:
    """Places by score, each after those that come before it by their relation."""
    end = max((end for _, end in spans), default=None) if cues.past or spans else None
    before: dict[int, list[tuple[float, int]]] = {}
    for older, newer in np.argwhere(chance >= threshold).tolist():
        sure = float(chance[older, newer])
        if end is not None and cues.past:
            newer_first = bool(statements.at[newer] < end)
        else:
            newer_first = cues.past < 2
        first, second = (newer, older) if newer_first else (older, newer)
        before.setdefault(second, []).append((-statements.at[older] if cues.first else sure, first))
    out: list[int] = []
    under_way: set[int] = set()

    def put(place: int) -> None:
        if place in under_way:
            return
        under_way.add(place)
        for _, first in sorted(before.get(place, ()), reverse=True):
            put(first)
        out.append(place)

    for place in sorted(range(len(statements)), key=lambda at: -scores[at]):
        put(place)
    return out
