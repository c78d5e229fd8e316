"""Puts what holds now before what it replaced, among statements that are about one thing.

Candidates stand in groups. The best one left opens a group, and what is judged to speak of the same
thing as that one, never as a third, belongs to it. A group stands where its best one stands, so
that statements about other things change nothing in it.

For a pair, an older and a newer one, two judges decide. Where both are worded alike but for one
place or a negation, `rank/frames` says what became of the older one. Else two logistic regressions
of features of the pair and the question say whether the newer one should stand before the older,
if one of the two is right at all, and whether it replaces it. They are fitted by `python -m
tools.fit_currency` on stories in which facts change and on questions of real chats
(`currency_weights`). Words of change ("moved to", "no longer"), values of the same kind and the
closeness of the two vectors were tried as features and are worth nothing beside these:
docs/decisions/0027.

Where the question asks for the past, those stand first that held then. A short turn that only asks,
or says that it does not know, counts for less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anaphora.rank.currency_weights import BEFORE, CONSTANT, REPLACES
from anaphora.rank.frames import Frame, compare_frames
from anaphora.rank.statements import QuestionCues, StatementReading, read_cues, read_statement

Floats = NDArray[np.float32]

WINDOW: Final = 12
"""Candidates that are read, best first: those that answer nothing are put behind the others."""

COMPARED: Final = 8
"""Of those, the ones that tell whether anything answers (`rank/silence`)."""

SURE: Final = 0.9
"""The probability of what the wording of two statements tells."""

CHANGED: Final = 0.6
"""The least probability where the newer one says that something changed, and both hold most words
of the question."""

OFTEN: Final = 2
"""How many times more a statement must have been said again for one without a word of change to be
no reason against it."""

REPLACED: Final = 0.5
"""The probability from which on a statement is said to be replaced by another one."""

LEAST_SHARE: Final = 0.4
"""The score that each of two statements must have, as a share of the other's, to be compared."""

PAST: Final = 0.6
"""The least probability by which an older statement stands first where the past is asked for."""

EVIDENT: Final = 0.2
"""The cosine to the question from which on a statement without a word of it is compared: what has
nothing to do with the question has no order in time."""

MARKED_SHARE: Final = 0.6
"""The score that one of two must have as a share of the other's to be marked: what is less about
the question is not said to be replaced."""

WHOLLY_ASKED: Final = 0.3
"""What is taken from the probability that a statement stands before one that holds every word of
the question, where it lacks any and is not known to replace it: the other one is about what was
asked, and this one perhaps not."""

UNANSWERED: Final = 0.15
"""What a turn without an answer loses, as a share of its score."""

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
    by whom the question names. `restated` (S,): how many times it was said again.
    """

    texts: Sequence[str]
    at: NDArray[np.float64]
    speakers: Sequence[str]
    assistant: NDArray[np.bool_]
    scores: Floats
    meaning: Floats
    asked_for: NDArray[np.bool_]
    restated: NDArray[np.int64] | None = None

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
            None if self.restated is None else self.restated[chosen],
        )


OF_PAIR: Final = (
    "alike",  # words in common, as a share of the words of both
    "held",  # the same as a share of the shorter text's
    "asked in both",  # words of the question that both hold, as a share of them
    "else in both",  # words in common beside those
    "days",  # between the two, as a logarithm
    "reply",  # the newer one was said within a minute
    "gap",  # score of the newer one over that of the older, as a share of the higher
    "meaning gap",
    "asked gap",
    "same subject",
    "other subject",
    "other person",  # both speak in the first person, and are not the same speaker
    "name lost",  # the older one is about a name of the question, the newer one is not
    "name gained",
    "other name",  # the same as the first, and the newer one holds another name
)
OF_ONE: Final = (
    "meaning",
    "asked",  # words of the question in what it tells, as a share of them
    "of asked",  # names of the question that it is about, at most two
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
    asked_of = one[:, OF_ONE.index("of asked")] > 0
    has_names = np.array([bool(read.names) for read in readings], np.bool_)
    scores = np.maximum(statements.scores, 1e-6)
    higher = np.maximum(scores[:, None], scores[None, :])
    lengths = np.array([len(text) for text in statements.texts], np.float32)
    longest = np.maximum(lengths[:, None], lengths[None, :])
    pairs = (
        common / np.maximum(count[:, None] + count[None, :] - common, 1),
        common / np.maximum(np.minimum(count[:, None], count[None, :]), 1),
        both / asked,
        np.minimum((common - both) / 6, 1),
        np.log1p(np.maximum(days, 0)) / 6,
        days < 60 / _DAY,
        (scores[None, :] - scores[:, None]) / higher,
        meaning[None, :] - meaning[:, None],
        told[None, :] - told[:, None],
        shared,
        named[:, None] & named[None, :] & ~shared,
        personal[:, None] & personal[None, :] & others,
        asked_of[:, None] & ~asked_of[None, :],
        ~asked_of[:, None] & asked_of[None, :],
        asked_of[:, None] & (~asked_of & has_names)[None, :],
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
    the two is right, `replaces` that it says otherwise of the same thing. `holds`: the older one
    was said again so often that the newer one, which tells of no change, is beside it. `at` (S,) is
    when each was said first, as `date_echoes` has it.
    """

    before: Floats
    replaces: Floats
    holds: NDArray[np.bool_]
    at: NDArray[np.float64]


def compare_statements(statements: Statements, cues: QuestionCues) -> Comparison:
    """Compare each with each. Where one of two has no known time, both probabilities are 0."""
    dated = replace(statements, at=date_echoes(statements))
    odds = pair_features(dated, cues) @ _weights() + _constants()
    able = comparable_pairs(dated, cues)
    chances = np.where(able[..., None], 1.0 / (1.0 + np.exp(-np.clip(odds, -60, 60))), 0.0)
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
    holds = _judge_frames(dated, cues, able & ~echoes, before, replaces)
    return Comparison(before, replaces, holds, dated.at)


def comparable_pairs(statements: Statements, cues: QuestionCues) -> NDArray[np.bool_]:
    """Which pairs, an older and a newer one, can be a change, (S, S): [older, newer].

    None is where the two share no word but those of time; where one has nothing to do with the
    question or far less than the other; where the newer one says nothing new, lacks a number or
    identifier of the question that the older one holds, or is another person's than the one that
    the question names; nor where the question says the older one word for word.
    """
    with np.errstate(invalid="ignore"):
        later = statements.at[None, :] > statements.at[:, None]
    readings, scores = statements.readings, statements.scores
    lower = np.minimum(scores[:, None], scores[None, :])
    higher = np.maximum(scores[:, None], scores[None, :])
    able: NDArray[np.bool_] = later & (lower >= LEAST_SHARE * higher)
    evident = (statements.meaning >= EVIDENT) | np.array(
        [bool((read.words & cues.terms) - cues.temporal) for read in readings], np.bool_
    )
    able &= evident[:, None] & evident[None, :]
    exact, asked_for = _with_digits(cues.terms), statements.asked_for.tolist()
    for older, newer in np.argwhere(able).tolist():
        read, other = readings[newer], readings[older]
        again = read.news <= other.words and (
            read.negated == other.negated or (not read.negated and read.news < other.words)
        )
        another = not asked_for[newer] and not read.names & cues.written
        person = another and asked_for[older]
        lacking = exact & other.words - read.words
        # A single Chinese character is in too many words to tell of one thing.
        common = (read.words & other.words) - cues.temporal
        unrelated = not any(len(word) > 1 for word in common)
        said = other.words <= cues.terms and compare_frames(other, read) is not Frame.NEGATION
        if unrelated or again or person or lacking or said:
            able[older, newer] = False
    return able


def _judge_frames(
    statements: Statements,
    cues: QuestionCues,
    able: NDArray[np.bool_],
    before: Floats,
    replaces: Floats,
) -> NDArray[np.bool_]:
    """Put what the wording of comparable pairs tells over what the regressions say, in place.

    Returns `Comparison.holds`.
    """
    readings, often, holds = statements.readings, np.zeros_like(able), np.zeros_like(able)
    if statements.restated is not None:
        often = statements.restated[:, None] > statements.restated[None, :] + OFTEN
    for older, newer in np.argwhere(able).tolist():
        read, other = readings[newer], readings[older]
        pair = (float(before[older, newer]), float(replaces[older, newer]))
        frame = compare_frames(other, read)
        untold = frame in (Frame.OPEN, Frame.APART)
        holds[older, newer] = often[older, newer] and untold and not read.changes
        if frame in (Frame.VALUE, Frame.NEGATION):
            judged = (SURE, SURE)
        elif not untold:
            judged = (0.0, 0.0)
        elif frame is Frame.APART or holds[older, newer]:
            judged = (pair[0], 0.0)
        else:
            judged = _judge_change(other, read, cues, pair)
        both_hold = other.several and not (read.changes or read.negated)
        if read.tentative and not read.changes:
            judged = (0.0, 0.0)
        if read.tentative or read.asks or other.asks or both_hold:
            judged = (judged[0], 0.0)
        before[older, newer], replaces[older, newer] = judged
    return holds


def _judge_change(
    older: StatementReading, newer: StatementReading, cues: QuestionCues, pair: tuple[float, float]
) -> tuple[float, float]:
    """The two probabilities of a pair, at least `CHANGED` where the newer one tells a change."""
    if not (newer.changes and _of_one_question(older, newer, cues)):
        return pair
    another = bool(_with_digits(newer.told - older.words))
    return max(pair[0], CHANGED), max(pair[1], CHANGED * another)


def _of_one_question(older: StatementReading, newer: StatementReading, cues: QuestionCues) -> bool:
    """Whether both hold most of the question, and numbers where the other one does."""
    asked = cues.terms - cues.temporal
    # Two of three words may be a name alone, which is in statements about much else.
    most = all(3 * len(read.told & asked) > 2 * len(asked) for read in (older, newer))
    numbers = bool(_with_digits(older.told)) == bool(_with_digits(newer.told))
    return most and numbers and len(asked) > 1


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
    asked = max(1, len(cues.terms))
    rows = [
        (
            meaning,
            len(read.told & cues.terms) / asked,
            min(len(about & cues.written), 2) / 2,
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
    """Whom each statement is about: the names in it that are in the question or a speaker's.

    Who speaks of themselves is one of them.
    """
    own = [_first_name(name) for name in statements.speakers]
    known = cues.written | frozenset(name for name in own if name)
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

    `groups` (S,) is the score of the best one of each one's group: it descends in that order.
    `lowered` is what one without an answer lost. `replaced` are (older, newer) places, surest
    first, each with why.
    """

    order: tuple[int, ...]
    groups: Mapping[int, float]
    lowered: Mapping[int, float] = field(default_factory=dict)
    replaced: Mapping[tuple[int, int], str] = field(default_factory=dict)


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
    pairs = compare_statements(statements, cues)
    lost = unanswered(statements, cues)
    for _, newer in np.argwhere(pairs.replaces >= SURE).tolist():
        # A statement that takes another one back is an answer: "we do not know him any more".
        lost.pop(newer, None)
    scores = [float(s) - lost.get(at, 0.0) for at, s in enumerate(statements.scores.tolist())]
    left = sorted(range(len(scores)), key=lambda place: -scores[place])
    order: list[int] = []
    groups: dict[int, float] = {}
    replaced: list[tuple[float, int, int]] = []
    waiting: list[int] = []
    last = np.inf
    while left:
        best = left[0]
        last = min(last, scores[best])
        first = _before_the_best(best, left[1:], pairs, cues, threshold, spans)
        order += (*first, best)
        groups.update(dict.fromkeys((*first, best), last))
        left = [place for place in left[1:] if place not in first]
        marks = [
            mark
            for place in (*first, *left)
            if (mark := _mark(best, place, pairs, scores)) and not lost.keys() & set(mark[1:])
        ]
        replaced += marks
        # Of what was replaced one stands before the next group, which may be the best itself.
        older = {old for _, old, _ in marks}
        more = [place for place in left if place in older][not older & {*first, best} :]
        left = [place for place in left if place not in more]
        if not left:
            left, more = more, []
        left = sorted((*left, *waiting), key=lambda place: -scores[place])
        waiting = more
    readings = statements.readings
    reasons = {
        (older, newer): _reason(sure, compare_frames(readings[older], readings[newer]))
        for sure, older, newer in sorted(replaced, reverse=True)
    }
    return CurrencyOrder(tuple(order), groups, lost, reasons)


def _reason(sure: float, frame: Frame) -> str:
    """Why a statement is said to be replaced: by the wording of both, or how probably."""
    told = frame in (Frame.VALUE, Frame.NEGATION)
    return frame.value if told else f"a later statement of it, probability {sure:.2f}"


def _mark(
    best: int, place: int, pairs: Comparison, scores: Sequence[float]
) -> tuple[float, int, int] | None:
    """How surely one of the two replaced the other, the older and the newer; None for neither."""
    older, newer = (place, best) if pairs.at[place] < pairs.at[best] else (best, place)
    sure = float(pairs.replaces[older, newer])
    about = scores[place] >= MARKED_SHARE * scores[best]
    return (sure, older, newer) if sure >= REPLACED and about else None


def _before_the_best(
    best: int,
    others: Sequence[int],
    pairs: Comparison,
    cues: QuestionCues,
    threshold: float,
    spans: Sequence[tuple[float, float]],
) -> list[int]:
    """Which of the `others`, best first, speak of the same thing as the best and stand before it.

    The surest first, and of equal ones the latest; where the past is asked for, the best first.
    """
    end = max((end for _, end in spans), default=None) if cues.past or spans else None
    # What is lifted for being older was not said to have changed: it must be surer.
    least = threshold if cues.past < 2 else max(threshold, PAST)
    first: list[tuple[float, float, int]] = []
    for rank, place in enumerate(others):
        at = float(pairs.at[place])
        is_newer = at > float(pairs.at[best])
        older, newer = (best, place) if is_newer else (place, best)
        sure = float(pairs.before[older, newer])
        newer_first = cues.past < 2
        if end is not None and cues.past:
            newer_first = bool(pairs.at[newer] < end)
        if pairs.holds[older, newer]:
            newer_first = False
        if sure < least or is_newer != newer_first:
            continue
        if cues.first:
            key = (-at, 0.0)
        elif cues.past < 2:
            key = (round(sure, 1), at)
        else:
            key = (-float(rank), 0.0)
        first.append((*key, place))
    return [place for *_, place in sorted(first, reverse=True)]


def unanswered(statements: Statements, cues: QuestionCues) -> dict[int, float]:
    """What short turns lose that only ask, or that say that they do not know."""
    found = {}
    for place, text in enumerate(statements.texts):
        if len(text) > _SHORT:
            continue
        read = read_statement(text)
        asked = read.words - read.told
        again = len(asked & cues.terms) >= 0.6 * len(cues.terms) and not read.told & cues.terms
        if read.asks or read.unknown or (asked and again):
            same = 2 * len(read.words & cues.terms) >= len(cues.terms)
            score = max(0.0, float(statements.scores[place]))
            found[place] = score * (ASKED_AGAIN if same else UNANSWERED)
    return found
