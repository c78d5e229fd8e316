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
from functools import lru_cache
from operator import mul
from typing import Final

from anaphora.rank import replacement
from anaphora.rank.currency_weights import BEFORE, CONSTANT
from anaphora.rank.frames import Frame, compare_frames
from anaphora.rank.odds import probability_of
from anaphora.rank.replacement import (
    REPLACED,
    SURE,
    PairJudge,
    Statement,
    StatementPair,
    judge_pairs,
    message_share,
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
)

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


@dataclass(frozen=True, slots=True)
class RankedStatement:
    """A statement as one question found it.

    `score` is what it is ordered by, `meaning` its cosine to the question, 0 where it is not known.
    `asked_for`: it is by whom the question names. `restated`: how many times it was said again.
    `closeness`: its cosine to the best one of its group (NaN: not known).
    """

    statement: Statement
    score: float
    meaning: float
    asked_for: bool = False
    restated: int = 0
    closeness: float = math.nan

    @property
    def at(self) -> float:
        """When it was said, in seconds (NaN: not known)."""
        return self.statement.at

    @property
    def reading(self) -> StatementReading:
        """What is read of its text."""
        return self.statement.reading


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
_PLACES: Final = [FEATURES.index(name) for name in IN_LONG]
_MOST_WORDS: Final = 12


def pair_features(
    best: RankedStatement,
    other: RankedStatement,
    cues: QuestionCues,
    replaces: float,
    speaking: frozenset[str] = frozenset(),
) -> list[float]:
    """What is known of the best statement and another one, in the order of `FEATURES`.

    `replaces` is the probability of replacement, `speaking` are the `speaking_names` of a group.
    """
    older, newer = (best, other) if best.at < other.at else (other, best)
    older_about, newer_about = (_asked_subjects(side, cues, speaking) for side in (older, newer))
    message = message_share(max(best.reading.size, other.reading.size))
    row = [
        *_compare_words(older, newer, cues),
        *_compare_scores(older, newer, older_about, newer_about, cues),
        *_compare_tellings(older, newer, other.closeness),
        replaces,
        *_describe_side(older, older_about, cues),
        *_describe_side(newer, newer_about, cues),
        cues.past / 2,
        cues.now,
        min(len(cues.terms), 6) / 6,
        min(len(cues.terms), 16) / 16,
        message,
    ]
    row += [row[index] * message for index in _PLACES]
    return row


def speaking_names(statements: Sequence[RankedStatement]) -> frozenset[str]:
    """The first names of the speakers of some statements."""
    names = (_first_name(ranked.statement.speaker) for ranked in statements)
    return frozenset(filter(None, names))


def _asked_subjects(
    ranked: RankedStatement, cues: QuestionCues, speaking: frozenset[str]
) -> frozenset[str]:
    """The words of the question that a statement is about, and the speakers that it names."""
    statement = ranked.statement
    about = statement.keys.subjects & cues.terms
    if speaking:
        about |= statement.reading.written & speaking
        if statement.is_personal and (name := _first_name(statement.speaker)):
            about |= {name}
    return about


def _compare_words(
    older: RankedStatement, newer: RankedStatement, cues: QuestionCues
) -> tuple[float, ...]:
    common = older.reading.words & newer.reading.words
    sizes = (len(older.reading.words), len(newer.reading.words))
    shared_terms, term_count = len(common & cues.terms), max(1, len(cues.terms))
    days = (newer.at - older.at) / _DAY
    return (
        len(common) / max(sum(sizes) - len(common), 1),
        len(common) / max(min(sizes), 1),
        shared_terms / term_count,
        min((len(common) - shared_terms) / 6, 1.0),
        math.log1p(max(days, 0.0)) / 6,
        days < 60 / _DAY and bool(newer.statement.speaker),
    )


def _compare_scores(
    older: RankedStatement,
    newer: RankedStatement,
    older_about: frozenset[str],
    newer_about: frozenset[str],
    cues: QuestionCues,
) -> tuple[float, ...]:
    scores = (max(older.score, 1e-6), max(newer.score, 1e-6))
    speakers = (older.statement.speaker, newer.statement.speaker)
    personal = older.statement.is_personal and newer.statement.is_personal
    older_asked, newer_asked = bool(older_about & cues.terms), bool(newer_about & cues.terms)
    shares_subject, term_count = bool(older_about & newer_about), max(1, len(cues.terms))
    asked_gap = len(newer.reading.told & cues.terms) - len(older.reading.told & cues.terms)
    return (
        (scores[1] - scores[0]) / max(scores),
        newer.meaning - older.meaning,
        asked_gap / term_count,
        shares_subject,
        bool(older_about) and bool(newer_about) and not shares_subject,
        personal and bool(speakers[0]) and speakers[0] != speakers[1],
        older_asked and not newer_asked,
        newer_asked and not older_asked,
    )


def _compare_tellings(
    older: RankedStatement, newer: RankedStatement, closeness: float
) -> tuple[float, ...]:
    dropped_words = older.reading.told - newer.reading.words
    added_words = newer.reading.told - older.reading.words
    frame, is_known = compare_frames(older.reading, newer.reading), not math.isnan(closeness)
    return (
        closeness if is_known else 0.0,
        is_known,
        min(len(dropped_words), _MOST_WORDS) / _MOST_WORDS,
        min(len(added_words), _MOST_WORDS) / _MOST_WORDS,
        bool(_keep_digits(dropped_words)) and bool(_keep_digits(added_words)),
        frame is Frame.APART,
        frame is Frame.OTHER,
    )


def _describe_side(
    ranked: RankedStatement, about: frozenset[str], cues: QuestionCues
) -> tuple[float, ...]:
    """What is known of one statement alone, in the order of `OF_ONE`."""
    statement, reading = ranked.statement, ranked.statement.reading
    return (
        ranked.meaning,
        len(reading.told & cues.terms) / max(1, len(cues.terms)),
        min(len(about & cues.terms), 2) / 2,
        *statement_features(reading, assistant=statement.assistant),
    )


@dataclass(frozen=True, slots=True)
class BestPair:
    """What a statement that may be a change of the best one is to that, or the best one to it.

    `is_newer`: it is the newer of the two. `replaces` is the probability that the newer one
    contradicts the older on the same thing, `before` that this one should stand before the best,
    given that one of them is right: 0 where the question asks for the other of the two.
    """

    is_newer: bool
    replaces: float
    before: float


def compare_statements(
    statements: Sequence[RankedStatement],
    cues: QuestionCues,
    judge: PairJudge = judge_pairs,
    spans: Sequence[tuple[float, float]] = (),
    echoes: Mapping[int, int] | None = None,
) -> dict[int, BestPair]:
    """Compare the best statement, place 0, with each that can be a change, by their places.

    `judge` gives the probabilities of replacement, `echoes` are those of `find_echoes`.
    """
    echoes = find_echoes(statements) if echoes is None else echoes
    dated_statements = date_echoes(statements, echoes)
    able = comparable_pairs(dated_statements, cues)
    replaces = replacements(dated_statements, able, echoes, judge)
    speaking = speaking_names([dated_statements[index] for index in (0, *able)])
    end = max((end for _, end in spans), default=math.inf)
    pairs = {}
    for index in able:
        best, member, replacing = dated_statements[0], dated_statements[index], replaces[index]
        is_newer = best.at < member.at
        older, newer = (best, member) if is_newer else (member, best)
        newer_index = index if is_newer else 0
        holds = _still_holds(older, newer, replacing) and newer_index not in echoes
        newer_first = not holds and (
            statements[newer_index].at < end if spans and cues.past else cues.past < 2
        )
        before = 0.0
        # An assistant's repetition of what was just said does not precede it.
        if is_newer == newer_first and (
            newer.at - older.at > _MOMENT
            if newer_index in echoes
            else holds or replacing >= REPLACED or _may_precede(older.reading, newer.reading, cues)
        ):
            row = pair_features(best, member, cues, replacing, speaking)
            odds = sum(map(mul, row, _weights())) + BEFORE[CONSTANT]
            before = probability_of(odds)
            if replacing >= REPLACED and not holds:
                # What is marked as replaced never precedes what replaced it.
                before = max(before, replacing)
        pairs[index] = BestPair(is_newer, 0.0 if holds else replacing, before)
    return pairs


def replacements(
    statements: Sequence[RankedStatement],
    indexes: Sequence[int],
    echoes: Collection[int] = (),
    judge: PairJudge = judge_pairs,
) -> dict[int, float]:
    """The probability that one of the best and each of some others replaces the other, by the
    places of these; an echo replaces nothing."""
    pairs = {}
    for index in indexes:
        older, newer = (0, index) if statements[0].at < statements[index].at else (index, 0)
        if newer not in echoes:
            pairs[index] = StatementPair(
                statements[older].statement,
                statements[newer].statement,
                statements[index].closeness,
            )
    probabilities = map(float, judge(list(pairs.values()))) if pairs else ()
    return dict.fromkeys(indexes, 0.0) | dict(zip(pairs, probabilities, strict=True))


def comparable_pairs(statements: Sequence[RankedStatement], cues: QuestionCues) -> list[int]:
    """The places of statements that can be a change of the best one, place 0, or it of them.

    None is where the two share no subject, or no word but those of time; where one has nothing to
    do with the question or far less than the other; where the newer one says nothing new, lacks a
    number or identifier of the question that the older one holds, or is another person's than that
    the question names; nor where the question says the older one word for word.
    """
    best, exact, asked_terms = statements[0], _keep_digits(cues.terms), cues.terms - cues.temporal
    if not _is_evident(best, asked_terms):
        return []
    able = []
    for index, member in enumerate(statements[1:], 1):
        # What takes least to tell comes first: most pairs need no more.
        if best.at < member.at:
            older, newer = best, member
        elif member.at < best.at:
            older, newer = member, best
        else:
            continue
        lowest, highest = sorted((best.score, member.score))
        if lowest < LEAST_SHARE * highest or not _is_evident(member, asked_terms):
            continue
        if not share_a_word(older.reading, newer.reading, cues.temporal) or (
            exact and exact & older.reading.words - newer.reading.words
        ):
            continue
        other_person = (
            older.asked_for
            and not newer.asked_for
            and _first_name(older.statement.speaker) not in newer.reading.written
        )
        if not (
            other_person
            or _is_in_question(older.reading, newer.reading, cues)
            or says_nothing_new(older.reading, newer.reading)
        ) and older.statement.shares_a_subject(newer.statement):
            able.append(index)
    return able


def _is_evident(ranked: RankedStatement, asked: frozenset[str]) -> bool:
    """Whether a statement has anything to do with the question."""
    return ranked.meaning >= EVIDENT or not asked.isdisjoint(ranked.reading.words)


def _is_in_question(older: StatementReading, newer: StatementReading, cues: QuestionCues) -> bool:
    """Whether the question says the older one word for word, and the newer one does not negate."""
    return older.words <= cues.terms and compare_frames(older, newer) is not Frame.NEGATION


def _still_holds(older: RankedStatement, newer: RankedStatement, replaces: float) -> bool:
    """Whether the older one was said again that much more often than one without a change."""
    often = older.restated > newer.restated + OFTEN
    return often and not newer.reading.changes and replaces < SURE


def _may_precede(older: StatementReading, newer: StatementReading, cues: QuestionCues) -> bool:
    """Whether the newer of a pair can stand first, by the wording."""
    frame = compare_frames(older, newer)
    if frame is Frame.ADDED or tells_of_another(older, newer):
        return False
    if newer.tentative and not newer.changes:
        return False
    if frame in (Frame.OTHER, Frame.APART) and (older.words - newer.words) & cues.terms:
        # "Nora wears size 31" does not stand before "Emil wears size 34" where Emil is asked for.
        return False
    # What holds every word of the question is about what was asked, and the newer one perhaps not.
    loses_a_term = cues.terms <= older.words and not cues.terms <= newer.words
    return not (loses_a_term and len(cues.terms) > 1)


@lru_cache(maxsize=1)
def _weights() -> tuple[float, ...]:
    return tuple(BEFORE[name] for name in FEATURES)


def _first_name(name: str) -> str:
    parts = name.split()
    return parts[0].casefold() if parts else ""


def _keep_digits(words: frozenset[str]) -> frozenset[str]:
    return frozenset(word for word in words if any(map(str.isdigit, word)))


def put_coming_first(at: Sequence[float], coming: Sequence[bool]) -> list[float]:
    """Times in seconds, those that are `coming` put before all others, in their order.

    A date in the future is a clock's or an export's mistake, or a plan: what is dated so replaces
    nothing that is said now.
    """
    settled_times = list(at)
    ahead = sorted(
        (index for index, lies_ahead in enumerate(coming) if lies_ahead), key=at.__getitem__
    )
    past_times = [time for index, time in enumerate(at) if not (coming[index] or math.isnan(time))]
    for order, index in enumerate(ahead):
        settled_times[index] = min(past_times, default=at[ahead[0]]) - _DAY + order
    return settled_times


def date_echoes(
    statements: Sequence[RankedStatement], echoes: Mapping[int, int]
) -> Sequence[RankedStatement]:
    """Each with the time when it was said first: an assistant's repetition has that of its source.

    It supports the user's statement and is no news.
    """
    dated_statements = list(statements)
    for echo, source in echoes.items():
        # A moment later: it must not count as the older of the two.
        statement = replace(statements[echo].statement, at=statements[source].at + _MOMENT)
        dated_statements[echo] = replace(statements[echo], statement=statement)
    return dated_statements


def find_echoes(statements: Sequence[RankedStatement]) -> dict[int, int]:
    """The places where an assistant repeats what a user had said, and of what it repeats.

    It repeats where half of its words, and every number in it, were the user's, or where it holds
    nearly all that the user said: of several statements the one that it has most words of, then the
    last one.
    """
    echoes: dict[int, int] = {}
    if not any(ranked.statement.assistant for ranked in statements):
        return echoes
    telling = [
        (index, ranked.statement, _keep_plain_numbers(ranked.reading.told))
        for index, ranked in enumerate(statements)
        if not (ranked.reading.asks or ranked.reading.unknown)
    ]
    for index, statement, numbers in telling:
        words, sources = statement.reading.told, []
        for user, source, user_numbers in telling if statement.assistant else ():
            if source.assistant or not source.at < statement.at:
                continue
            shared_count, length = len(words & source.reading.words), len(source.reading.words)
            mostly_repeated = 2 * shared_count >= max(1, len(words)) and numbers <= user_numbers
            if mostly_repeated or (length >= _WHOLE and shared_count >= 0.9 * length):
                sources.append((shared_count, source.at, user))
        if sources:
            echoes[index] = max(sources)[2]
    return echoes


def _keep_plain_numbers(words: frozenset[str]) -> frozenset[str]:
    # Without what is put together of other words ("host:5433/name").
    return frozenset(word for word in _keep_digits(words) if word.isalnum() or word[0].isdigit())


@dataclass(frozen=True, slots=True)
class GroupJudgement:
    """What is about the same thing as place 0 of S statements.

    `lifted` are the places that stand before it, in their order. `replaced` are (older, newer)
    places, each with why; one of the two is place 0, or the older one repeats that.
    """

    lifted: tuple[int, ...] = ()
    replaced: Mapping[tuple[int, int], str] = field(default_factory=dict)


def judge_group(
    statements: Sequence[RankedStatement],
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
    cues, echoes = read_cues(question), find_echoes(statements)
    pairs = compare_statements(statements, cues, judge, spans, echoes)
    reason_by_pair = {}
    for index in sorted(pairs, key=lambda index: -pairs[index].replaces):
        if (sure := pairs[index].replaces) >= REPLACED:
            older, newer = (0, index) if pairs[index].is_newer else (index, 0)
            reason_by_pair[older, newer] = reason_of(
                statements[older].statement, statements[newer].statement, sure
            )
    # What an assistant repeated is outdated with it, and it with what was repeated.
    for (older, newer), reason in list(reason_by_pair.items()):
        source = echoes.get(older, older)
        for index in (source, *(echo for echo, of in echoes.items() if of == source)):
            if statements[index].at < statements[newer].at:
                reason_by_pair.setdefault((index, newer), reason)
    return GroupJudgement(tuple(_find_lifted(statements, pairs, cues, threshold)), reason_by_pair)


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
    statements: Sequence[RankedStatement],
    pairs: Mapping[int, BestPair],
    cues: QuestionCues,
    threshold: float,
) -> list[int]:
    """Which of the others, best first, speak of the same thing as place 0 and stand before it.

    The surest first, and of equal ones the latest; where the past is asked for, the best first.
    """
    # What is lifted for being older was not said to have changed: it must be surer.
    least_probability = threshold if cues.past < 2 else max(threshold, PAST)
    lifted_ranks: list[tuple[float, float, int]] = []
    for index, pair in pairs.items():
        if pair.before < least_probability:
            continue
        if cues.first:
            key = (-statements[index].at, 0.0)
        elif cues.past < 2:
            key = (round(pair.before, 1), statements[index].at)
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
