"""Puts what holds now before what it replaced, among statements that are about one thing.

Candidates stand in groups. The best one left opens a group, and what is judged to speak of the same
thing as that one, never as a third, belongs to it. A group stands where its best one stands, so
that statements about other things change nothing in it.

For a pair, an older and a newer one, `rank/replacement` says whether the newer one replaces the
older, whatever is asked. A logistic regression of features of the pair and the question says
whether it should stand before the older, if one of the two is right at all. It is fitted by
`make fit ONLY=currency` on stories in which facts change and on questions of real chats
(`currency_weights`): docs/decisions/0027.

Where the question asks for the past, those stand first that held then. A short turn that only asks,
or says that it does not know, counts for less.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anaphora.rank import replacement
from anaphora.rank.currency_weights import BEFORE, CONSTANT
from anaphora.rank.frames import Frame, compare_frames
from anaphora.rank.replacement import (
    REPLACED,
    SURE,
    PairJudge,
    Statement,
    StatementPair,
    judge_pairs,
    reason_of,
    says_nothing_new,
    share_a_word,
    statement_features,
    tells_of_another,
)
from anaphora.rank.statements import (
    QuestionCues,
    StatementReading,
    read_cues,
    read_statement,
)
from anaphora.rank.subjects import share_a_subject

Floats = NDArray[np.float32]

COMING: Final = "dated in the future"
"""How what is told of a date that lies ahead begins."""

COMPARED: Final = 8
"""Candidates, best first, that tell whether anything answers (`rank/silence`)."""

OFTEN: Final = 2
"""How many times more a statement must have been said again for one without a word of change to be
no reason against it."""

LEAST_SHARE: Final = 0.4
"""The score that each of two statements must have, as a share of the other's, to be compared."""

PAST: Final = 0.6
"""The least probability by which an older statement stands first where the past is asked for."""

EVIDENT: Final = 0.38
"""The cosine to the question from which on a statement without a word of it is compared: what has
nothing to do with the question has no order in time."""

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


@dataclass(frozen=True)
class Statements:
    """S candidates of one question, best first.

    `at` (S,) is when each was said, in seconds (NaN: not known), `speakers` (S,) by whom ("": not
    known), `assistant` (S,) whether by an assistant. `scores` (S,) is what they are ordered by,
    `meaning` (S,) the cosine to the question, 0 where it is not known. `asked_for` (S,): it is
    by whom the question names. `restated` (S,): how many times it was said again. `closeness` (S,):
    the cosine to the best one, place 0 (NaN: not known). `known` are their readings, if they are.
    """

    texts: Sequence[str]
    at: NDArray[np.float64]
    speakers: Sequence[str]
    assistant: NDArray[np.bool_]
    scores: Floats
    meaning: Floats
    asked_for: NDArray[np.bool_]
    restated: NDArray[np.int64] | None = None
    closeness: Floats = field(default_factory=lambda: np.empty(0, np.float32))
    known: Sequence[StatementReading] = ()

    def __post_init__(self) -> None:
        if len(self.closeness) != len(self.texts):
            object.__setattr__(self, "closeness", np.full(len(self.texts), np.nan, np.float32))

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def readings(self) -> list[StatementReading]:
        """What is read of each text."""
        return list(self.known) or [read_statement(text) for text in self.texts]

    @cached_property
    def as_list(self) -> list[Statement]:
        """The statements one by one."""
        at, assistant = self.at.tolist(), self.assistant.tolist()
        return [
            Statement(*columns)
            for columns in zip(self.texts, at, self.speakers, assistant, self.readings, strict=True)
        ]

    def select(self, indexes: Sequence[int]) -> Statements:
        """Those at some places, in this order."""
        chosen_indexes = list(indexes)
        return Statements(
            [self.texts[index] for index in chosen_indexes],
            self.at[chosen_indexes],
            [self.speakers[index] for index in chosen_indexes],
            self.assistant[chosen_indexes],
            self.scores[chosen_indexes],
            self.meaning[chosen_indexes],
            self.asked_for[chosen_indexes],
            None if self.restated is None else self.restated[chosen_indexes],
            self.closeness[chosen_indexes],
            [self.readings[index] for index in chosen_indexes],
        )


OF_PAIR: Final = (
    "alike",  # words in common, as a share of the words of both
    "held",  # the same as a share of the shorter text's
    "asked in both",  # words of the question that both hold, as a share of them
    "else in both",  # words in common beside those
    "days",  # between the two, as a logarithm
    "reply",  # a speaker said the newer one within a minute
    "gap",  # score of the newer one over that of the older, as a share of the higher
    "meaning gap",
    "asked gap",
    "same subject",  # of what the question asks
    "other subject",
    "other person",  # both speak in the first person, and are not the same speaker
    "subject lost",  # the older one is about a word of the question, the newer one is about none
    "subject gained",
    "closeness",  # the cosine of the two, where it is known
    "closeness known",
    "gone",  # words that the newer one lacks
    "new",  # words that only the newer one has
    "number for number",  # each has one that the other lacks
    "perhaps another thing",
    "another thing",
    "replaces",  # the probability of `rank/replacement`
)
OF_ONE: Final = (
    "meaning",
    "asked",  # words of the question in what it tells, as a share of them
    "of asked",  # words of the question that it is about, at most two
    *replacement.OF_ONE,
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
    "closeness",
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
_MOST_WORDS: Final = 12


def pair_features(statements: Statements, cues: QuestionCues, replaces: Floats) -> Floats:
    """What is known of the pair of each statement and the best one, place 0, shape (S, F).

    F in the order of `FEATURES`; `replaces` (S,) are the probabilities of replacement. Which of
    the two is the older one depends on `at`; if a time is not known, and for index 0 itself, the
    row means nothing.
    """
    readings = statements.readings
    # The words of the question that each statement is about, and the speakers that it names.
    names = [_first_name(name) for name in statements.speakers]
    speaking = frozenset(name for name in names if name)
    subjects = []
    for statement, name in zip(statements.as_list, names, strict=True):
        about = (statement.keys.subjects & cues.terms) | (statement.reading.written & speaking)
        personal = name and statement.reading.personal and not statement.assistant
        subjects.append(about | {name} if personal else about)
    features_of_each = _make_statement_rows(statements, readings, subjects, cues)
    with np.errstate(invalid="ignore"):
        later = statements.at > statements.at[0]
    rows = [
        _make_pair_row(statements, readings, subjects, cues, older, newer)
        for older, newer in (
            ((0, index) if later[index] else (index, 0)) for index in range(len(later))
        )
    ]
    older = np.where(later[:, None], features_of_each[0], features_of_each)
    newer = np.where(later[:, None], features_of_each, features_of_each[0])
    table = np.empty((len(later), len(FEATURES)), np.float32)
    table[:, : len(OF_PAIR)] = rows
    table[:, OF_PAIR.index("replaces")] = replaces
    table[:, _OLDER], table[:, _NEWER] = older, newer
    term_count = len(cues.terms)
    table[:, _ASKED] = (cues.past / 2, cues.now, min(term_count, 6) / 6, min(term_count, 16) / 16)
    lengths = np.array([read.size for read in readings], np.float32)
    message = (np.maximum(lengths, lengths[0]) - _FROM_LENGTH) / (_TO_LENGTH - _FROM_LENGTH)
    table[:, _MESSAGE] = np.minimum(np.maximum(message, 0), 1)
    table[:, _MESSAGE + 1 :] = table[:, _PLACES] * table[:, _MESSAGE, None]
    return table


def _make_pair_row(
    statements: Statements,
    readings: Sequence[StatementReading],
    subjects: Sequence[frozenset[str]],
    cues: QuestionCues,
    older: int,
    newer: int,
) -> tuple[float, ...]:
    """The features of one pair, in the order of `OF_PAIR`."""
    older_reading, newer_reading = readings[older], readings[newer]
    common, term_count = older_reading.words & newer_reading.words, max(1, len(cues.terms))
    shared_terms = len(common & cues.terms)
    sizes = (len(older_reading.words), len(newer_reading.words))
    days = float(statements.at[newer] - statements.at[older]) / _DAY
    days = 0.0 if math.isnan(days) else days
    scores = (
        max(float(statements.scores[older]), 1e-6),
        max(float(statements.scores[newer]), 1e-6),
    )
    shares_subject = bool(subjects[older] & subjects[newer])
    speakers = (statements.speakers[older], statements.speakers[newer])
    personal = all(
        readings[index].personal and not statements.assistant[index] for index in (older, newer)
    )
    of_asked = [bool(subjects[index] & cues.terms) for index in (older, newer)]
    closeness = statements.closeness[older or newer]
    dropped_words, added_words = (
        older_reading.told - newer_reading.words,
        newer_reading.told - older_reading.words,
    )
    frame = compare_frames(older_reading, newer_reading)
    return (
        len(common) / max(sum(sizes) - len(common), 1),
        len(common) / max(min(sizes), 1),
        shared_terms / term_count,
        min((len(common) - shared_terms) / 6, 1.0),
        math.log1p(max(days, 0.0)) / 6,
        days < 60 / _DAY and bool(speakers[1]),
        (scores[1] - scores[0]) / max(scores),
        float(statements.meaning[newer] - statements.meaning[older]),
        (len(newer_reading.told & cues.terms) - len(older_reading.told & cues.terms)) / term_count,
        shares_subject,
        bool(subjects[older]) and bool(subjects[newer]) and not shares_subject,
        personal and bool(speakers[0]) and speakers[0] != speakers[1],
        of_asked[0] and not of_asked[1],
        of_asked[1] and not of_asked[0],
        0.0 if math.isnan(closeness) else float(closeness),
        not math.isnan(closeness),
        min(len(dropped_words), _MOST_WORDS) / _MOST_WORDS,
        min(len(added_words), _MOST_WORDS) / _MOST_WORDS,
        bool(_keep_digits(dropped_words)) and bool(_keep_digits(added_words)),
        frame is Frame.APART,
        frame is Frame.OTHER,
        0.0,
    )


@dataclass(frozen=True, slots=True)
class BestPairFeatures:
    """What the pair of each statement and the best one, place 0, is; each (S,), 0 at place 0.

    `before` is the probability that the newer of the two should stand before the older, given that
    one of them is right, `replaces` that it contradicts it on the same thing. `holds`: the older
    one was said again so often that the newer one, which tells of no change, is beside it. `later`:
    the best one is the older one. `able`: the two can be a change at all. `echoes` are those of
    `find_echoes`.
    """

    before: Floats
    replaces: Floats
    holds: NDArray[np.bool_]
    later: NDArray[np.bool_]
    able: NDArray[np.bool_]
    echoes: Mapping[int, int]


def compare_statements(
    statements: Statements, cues: QuestionCues, judge: PairJudge = judge_pairs
) -> BestPairFeatures:
    """Compare each with the best one. Where a time is not known, both probabilities are 0.

    `judge` gives the probabilities of replacement.
    """
    echoes = find_echoes(statements)
    dated_statements = (
        replace(statements, at=_date_statements(statements, echoes)) if echoes else statements
    )
    able = comparable_pairs(dated_statements, cues)
    with np.errstate(invalid="ignore"):
        later = dated_statements.at > dated_statements.at[0]
    replaces = replacements(
        dated_statements, dated_statements.at != statements.at, np.flatnonzero(able), judge
    )
    before_probabilities, holds = np.zeros(len(able), np.float32), np.zeros(len(able), np.bool_)
    indexes = np.flatnonzero(able)
    if not len(indexes):
        return BestPairFeatures(before_probabilities, replaces, holds, later, able, echoes)
    readings = dated_statements.readings
    compared_statements = dated_statements.select([0, *indexes.tolist()])
    odds = (
        pair_features(compared_statements, cues, replaces[[0, *indexes]])[1:] @ _weights()
        + BEFORE[CONSTANT]
    )
    counts = dated_statements.restated
    chances = 1.0 / (1.0 + np.exp(-np.clip(odds, -60, 60)))
    for index, chance in zip(indexes.tolist(), chances.tolist(), strict=True):
        older, newer = (0, index) if later[index] else (index, 0)
        # An assistant's repetition of what was just said does not precede it.
        if dated_statements.at[newer] != statements.at[newer]:
            if dated_statements.at[newer] - dated_statements.at[older] > _MOMENT:
                before_probabilities[index] = chance
            continue
        # 0.9 is a little less in 32 bits.
        replacing = round(float(replaces[index]), 6)
        older_reading, newer_reading = readings[older], readings[newer]
        # The older one was said again that much more often than the newer one.
        often = counts is not None and bool(counts[older] > counts[newer] + OFTEN)
        before_probabilities[index], holds[index] = _judge_order(
            older_reading, newer_reading, cues, chance, replacing, often=often
        )
        if holds[index]:
            replaces[index] = 0.0
    return BestPairFeatures(before_probabilities, replaces, holds, later, able, echoes)


def replacements(
    statements: Statements,
    echoes: NDArray[np.bool_],
    indexes: NDArray[np.intp],
    judge: PairJudge = judge_pairs,
) -> Floats:
    """The probability that one of each pair replaces the other, (S,); an echo replaces nothing."""
    read = statements.as_list
    pairs: dict[int, StatementPair] = {}
    for index in indexes.tolist():
        older, newer = (0, index) if read[0].at < read[index].at else (index, 0)
        if not echoes[newer]:
            closeness = float(statements.closeness[index])
            pairs[index] = StatementPair(read[older], read[newer], closeness)
    probabilities = np.zeros(len(read), np.float32)
    if pairs:
        probabilities[list(pairs)] = judge(list(pairs.values()))
    return probabilities


def comparable_pairs(statements: Statements, cues: QuestionCues) -> NDArray[np.bool_]:
    """Which statements can be a change of the best one, place 0, or it of them, (S,).

    None is where the two share no subject, or no word but those of time; where one has nothing to
    do with the question or far less than the other; where the newer one says nothing new, lacks a
    number or identifier of the question that the older one holds, or is another person's than that
    the question names; nor where the question says the older one word for word.
    """
    able = np.zeros(len(statements), np.bool_)
    scores, at, meaning = (
        column.tolist() for column in (statements.scores, statements.at, statements.meaning)
    )
    readings, asked_for = statements.readings, statements.asked_for.tolist()

    def is_evident(index: int) -> bool:
        return meaning[index] >= EVIDENT or bool(
            (readings[index].words & cues.terms) - cues.temporal
        )

    if len(scores) < 2 or not is_evident(0):
        return able
    exact, names = _keep_digits(cues.terms), [_first_name(name) for name in statements.speakers]
    for index in range(1, len(scores)):
        lowest, highest = sorted((scores[0], scores[index]))
        older, newer = (0, index) if at[0] < at[index] else (index, 0)
        # What takes least to tell comes first: most pairs need no more.
        if (
            lowest < LEAST_SHARE * highest
            or not at[older] < at[newer]
            or not share_a_word(readings[older], readings[newer], cues.temporal)
            or not is_evident(index)
            or exact & readings[older].words - readings[newer].words
        ):
            continue
        other_speaker = not asked_for[newer] and names[older] not in readings[newer].written
        able[index] = not (
            (other_speaker and asked_for[older])
            or says_nothing_new(readings[older], readings[newer])
            or _is_in_question(readings[older], readings[newer], cues)
        ) and _share_a_subject(statements.as_list[older], statements.as_list[newer])
    return able


def _is_in_question(older: StatementReading, newer: StatementReading, cues: QuestionCues) -> bool:
    """Whether the question says the older one word for word, and the newer one does not negate."""
    return older.words <= cues.terms and compare_frames(older, newer) is not Frame.NEGATION


def _share_a_subject(older: Statement, newer: Statement) -> bool:
    return share_a_subject(older.reading, older.keys, newer.reading, newer.keys)


def _judge_order(
    older_reading: StatementReading,
    newer_reading: StatementReading,
    cues: QuestionCues,
    chance: float,
    replaces: float,
    *,
    often: bool,
) -> tuple[float, bool]:
    """The probability that the newer of a pair stands first, by the wording too, and `holds`."""
    if often and not newer_reading.changes and replaces < SURE:
        return chance, True
    if replaces >= REPLACED:
        # What is marked as replaced never precedes what replaced it.
        return max(chance, replaces), False
    frame = compare_frames(older_reading, newer_reading)
    if frame is Frame.ADDED or tells_of_another(older_reading, newer_reading):
        return 0.0, False
    if newer_reading.tentative and not newer_reading.changes:
        return 0.0, False
    if (
        frame in (Frame.OTHER, Frame.APART)
        and (older_reading.words - newer_reading.words) & cues.terms
    ):
        # "Nora wears size 31" does not stand before "Emil wears size 34" where Emil is asked for.
        return 0.0, False
    loses_a_term = cues.terms <= older_reading.words and not cues.terms <= newer_reading.words
    # What holds every word of the question is about what was asked, and the newer one perhaps not.
    return (0.0 if loses_a_term and len(cues.terms) > 1 else chance), False


@lru_cache(maxsize=1)
def _weights() -> Floats:
    return np.array([BEFORE[name] for name in FEATURES], np.float32)


def _make_statement_rows(
    statements: Statements,
    readings: Sequence[StatementReading],
    subjects: Sequence[frozenset[str]],
    cues: QuestionCues,
) -> Floats:
    """The features of each statement alone, (S, `OF_ONE`)."""
    term_count = max(1, len(cues.terms))
    rows = [
        (
            meaning,
            len(read.told & cues.terms) / term_count,
            min(len(about & cues.terms), 2) / 2,
            *statement_features(read, assistant=assistant),
        )
        for meaning, assistant, read, about in zip(
            statements.meaning.tolist(),
            statements.assistant.tolist(),
            readings,
            subjects,
            strict=True,
        )
    ]
    return np.array(rows, np.float32).reshape(len(rows), len(OF_ONE))


def _first_name(name: str) -> str:
    parts = name.split()
    return parts[0].casefold() if parts else ""


def _keep_digits(words: frozenset[str]) -> frozenset[str]:
    return frozenset(word for word in words if any(map(str.isdigit, word)))


def put_coming_first(at: NDArray[np.float64], coming: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Times (S,) in seconds, those that are `coming` (S,) put before all others, in their order.

    A date in the future is a clock's or an export's mistake, or a plan: what is dated so replaces
    nothing that is said now.
    """
    if not coming.any():
        return at
    settled_times, past_times = at.copy(), at[~coming & ~np.isnan(at)]
    first_time = past_times.min(initial=np.inf) if len(past_times) else at[coming].min()
    order = np.argsort(np.argsort(at[coming], kind="stable"), kind="stable")
    settled_times[coming] = first_time - _DAY + order
    return settled_times


def date_echoes(statements: Statements) -> NDArray[np.float64]:
    """When each was said first, (S,): an assistant's repetition has the time of what it repeats.

    It supports the user's statement and is no news.
    """
    return _date_statements(statements, find_echoes(statements))


def _date_statements(statements: Statements, echoes: Mapping[int, int]) -> NDArray[np.float64]:
    at = statements.at.copy()
    for echo, source in echoes.items():
        # A moment later: it must not count as the older of the two.
        at[echo] = statements.at[source] + _MOMENT
    return at


def find_echoes(statements: Statements) -> dict[int, int]:
    """The places where an assistant repeats what a user had said, and of what it repeats.

    It repeats where half of its words, and every number in it, were the user's, or where it holds
    nearly all that the user said: of several statements the one that it has most words of, then the
    last one.
    """
    echoes: dict[int, int] = {}
    if not statements.assistant.any():
        return echoes
    readings = statements.readings
    telling = np.array([not (read.asks or read.unknown) for read in readings], np.bool_)
    # Without what is put together of other words ("host:5433/name").
    numbers = [
        frozenset(word for word in _keep_digits(read.told) if word.isalnum() or word[0].isdigit())
        for read in readings
    ]
    users = np.flatnonzero(~statements.assistant & telling).tolist()
    for index in np.flatnonzero(statements.assistant & telling).tolist():
        words, numeric = readings[index].told, numbers[index]
        sources = []
        for user in users:
            if not statements.at[user] < statements.at[index]:
                continue
            shared_count, length = len(words & readings[user].words), len(readings[user].words)
            mostly_repeated = 2 * shared_count >= max(1, len(words)) and numeric <= numbers[user]
            if mostly_repeated or (length >= _WHOLE and shared_count >= 0.9 * length):
                sources.append((shared_count, float(statements.at[user]), user))
        if sources:
            echoes[index] = max(sources)[2]
    return echoes


@dataclass(frozen=True, slots=True)
class GroupJudgement:
    """What is about the same thing as place 0 of S statements.

    `lifted` are the places that stand before it, in their order. `replaced` are (older, newer)
    places, each with why; one of the two is place 0, or the older one repeats that.
    """

    lifted: tuple[int, ...] = ()
    replaced: Mapping[tuple[int, int], str] = field(default_factory=dict)


def judge_group(
    statements: Statements,
    question: str,
    threshold: float,
    spans: Sequence[tuple[float, float]] = (),
    judge: PairJudge = judge_pairs,
) -> GroupJudgement:
    """Judge each statement against the best one, place 0: a newer one is lifted by `threshold`.

    `spans` are the times that the question names, in seconds: of two statements the one counts that
    held at the end of the last of them. Where it asks for the past and names no time, the older one
    of two stands first. `judge` says what replaces what.
    """
    cues = read_cues(question)
    pairs = compare_statements(statements, cues, judge)
    if not pairs.able.any():
        return GroupJudgement()
    statement_lists, reason_by_pair = statements.as_list, {}
    for index in np.argsort(-pairs.replaces, kind="stable").tolist():
        sure = float(pairs.replaces[index])
        if sure >= REPLACED:
            older, newer = (0, index) if pairs.later[index] else (index, 0)
            reason_by_pair[older, newer] = reason_of(
                statement_lists[older], statement_lists[newer], sure
            )
    # What an assistant repeated is outdated with it, and it with what was repeated.
    for (older, newer), reason in list(reason_by_pair.items()):
        source = pairs.echoes.get(older, older)
        for index in (source, *(echo for echo, of in pairs.echoes.items() if of == source)):
            if statements.at[index] < statements.at[newer]:
                reason_by_pair.setdefault((index, newer), reason)
    lifted_indexes = _find_lifted(statements.at, pairs, cues, threshold, spans)
    return GroupJudgement(tuple(lifted_indexes), reason_by_pair)


def arrange_group(
    best: int,
    lifted: Sequence[int],
    replaced: Sequence[int],
    question: str,
    taking_back: Collection[int] = (),
) -> tuple[list[int], list[int]]:
    """The places of a group that stand together, and those that stand behind other groups.

    What holds, then one of the `replaced`, which are the best first; where the past is asked for,
    what was `lifted` for being older, and the best one: of these first what was replaced, then
    those `taking_back` something, unless it is the oldest that is asked for.
    """
    cues = read_cues(question)
    if cues.past >= 2:
        front = [*lifted, best]
        if not cues.first:
            front.sort(key=lambda index: 2 * (index not in replaced) + (index in taking_back))
        return front, []
    holding = [index for index in (*lifted, best) if index not in replaced]
    return [*holding, *replaced[:1]], list(replaced[1:])


def _find_lifted(
    at: NDArray[np.float64],
    pairs: BestPairFeatures,
    cues: QuestionCues,
    threshold: float,
    spans: Sequence[tuple[float, float]],
) -> list[int]:
    """Which of the others, best first, speak of the same thing as place 0 and stand before it.

    The surest first, and of equal ones the latest; where the past is asked for, the best first.
    """
    end = max((end for _, end in spans), default=None) if cues.past or spans else None
    # What is lifted for being older was not said to have changed: it must be surer.
    least_probability = threshold if cues.past < 2 else max(threshold, PAST)
    lifted_ranks: list[tuple[float, float, int]] = []
    for index in np.flatnonzero(pairs.able).tolist():
        probability, is_newer = float(pairs.before[index]), bool(pairs.later[index])
        newer_first = cues.past < 2
        if end is not None and cues.past:
            newer_first = float(at[index if is_newer else 0]) < end
        if pairs.holds[index]:
            newer_first = False
        if probability < least_probability or is_newer != newer_first:
            continue
        if cues.first:
            key = (-float(at[index]), 0.0)
        elif cues.past < 2:
            key = (round(probability, 1), float(at[index]))
        else:
            key = (-float(index), 0.0)
        lifted_ranks.append((*key, index))
    return [index for *_, index in sorted(lifted_ranks, reverse=True)]


def answer_loss(read: StatementReading, score: float, cues: QuestionCues) -> float:
    """What a short text of this score loses that only asks, or that says that it does not know."""
    if read.size > _SHORT:
        return 0.0
    question_words = read.words - read.told
    asks_again = (
        len(question_words & cues.terms) >= 0.6 * len(cues.terms) and not read.told & cues.terms
    )
    # A statement that takes another one back is an answer: "we do not know him any more".
    takes_back = read.unknown and read.changes
    if not (read.asks or (read.unknown and not takes_back) or (question_words and asks_again)):
        return 0.0
    mostly_repeated = 2 * len(read.words & cues.terms) >= len(cues.terms)
    return max(0.0, score) * (ASKED_AGAIN if mostly_repeated else UNANSWERED)
