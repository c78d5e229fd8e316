"""Puts what holds now before what it replaced, and says of what was replaced that it was.

Of two statements it is known whatever is asked what the later one makes of the earlier
(`rank/pairs`). Which of the two stands first also depends on how well each fits the question: a
logistic regression of few features, fitted by `make fit ONLY=holding` (`values/fitted.json`). Where
the question asks for the past, those stand first that held then. A short turn that only asks, or
says that it does not know, counts for less.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import mul
from typing import Final, TypeAlias

from anaphora.rank.odds import log_odds_of, probability_of
from anaphora.rank.pairs import REPLACED, PairVerdict, Statement
from anaphora.rank.statements import QuestionCues, StatementReading
from anaphora.values.fitted import fitted

COMING: Final = "dated in the future"
"""How what is told of a date that lies ahead begins."""

COMPARED: Final = 8
"""Candidates, best first, that tell whether anything answers (`rank/silence`)."""

_NUMBERS: Final = fitted("standing")
CONSTANT: Final = "constant"
BEFORE: Final[Mapping[str, float]] = fitted("holding")
"""The weights of `FEATURES`, and the constant."""

LEADS: Final[float] = _NUMBERS["LEADS"]
"""The probability from which on the newer of two statements stands before the older."""

TRUSTED: Final[float] = _NUMBERS["TRUSTED"]
"""The probability from which on the newer one may name another subject than the question."""

LINKED: Final[float] = _NUMBERS["LINKED"]
"""The probability of a replacement from which on two statements have an order at all."""

UNANSWERED: Final[float] = _NUMBERS["UNANSWERED"]
"""What a turn without an answer loses, as a share of its score."""

ASKED_AGAIN: Final[float] = _NUMBERS["ASKED_AGAIN"]
"""What one loses that holds half of the question's words: it asks the same, or does not know it."""

_SHORT: Final = 100
"""Characters of a mere question or "I do not know": longer ones tell something as well."""

_DAY: Final = 86_400.0
_MINUTE: Final = 60.0
_WHOLE: Final = 3
"""Words of a statement at least that must be repeated nearly all to be repeated."""
_EDGE: Final = 0.005
"""A probability counts as no less, and as no more than one without it."""

Verdicts: TypeAlias = Mapping[tuple[int, int], PairVerdict]
"""By the indexes (older, newer) of two statements, what the newer one makes of the older."""


@dataclass(frozen=True, slots=True)
class FoundStatement:
    """A statement as one question found it.

    `score` is what it is ordered by, `meaning` its cosine to the question, 0 where it is not known.
    `restated`: how many times it was said again. `at` is when it was said, in seconds.
    """

    statement: Statement
    score: float
    meaning: float
    at: float
    restated: int = 0


FEATURES: Final = (
    "replaces",  # the log-odds of a replacement
    "both",  # the probability that both hold
    "repeats",
    "gap",  # score of the newer one over that of the older, as a share of the higher
    "meaning gap",
    "newer meaning",
    "asked gap",  # words of the question in what it tells, as a share of them
    "days",  # between the two, as a logarithm
    "reply",  # within a minute
    "now",  # the question asks for now
    "restated",  # how often the older one was said again, and not the newer, as a logarithm
    "message",  # one of the two is long
    "newer tentative",
    "newer unknown",
)


def precedence_features(
    older: FoundStatement, newer: FoundStatement, verdict: PairVerdict, cues: QuestionCues
) -> tuple[float, ...]:
    """What tells whether the newer of two statements stands first, in the order of `FEATURES`."""
    old, new = older.statement.reading, newer.statement.reading
    scores = max(older.score, 1e-6), max(newer.score, 1e-6)
    days = max(newer.at - older.at, 0.0) / _DAY
    asked_gap = len(new.told & cues.terms) - len(old.told & cues.terms)
    return (
        log_odds_of(verdict.replaces, _EDGE),
        verdict.both,
        verdict.repeats,
        (scores[1] - scores[0]) / max(scores),
        newer.meaning - older.meaning,
        newer.meaning,
        asked_gap / max(1, len(cues.terms)),
        math.log1p(days) / 6,
        days < _MINUTE / _DAY,
        cues.now,
        math.log1p(max(0, older.restated - newer.restated)),
        max(old.size, new.size) > 200,
        new.tentative,
        new.unknown,
    )


def precedence(
    older: FoundStatement, newer: FoundStatement, verdict: PairVerdict, cues: QuestionCues
) -> float:
    """The probability that the newer one stands first, if one of the two is right."""
    exact = _keep_digits(cues.terms)
    old, new = older.statement.reading, newer.statement.reading
    is_named = _starts_held(new.words, exact) < _starts_held(old.words, exact)
    lost_subject = cues.terms & old.subject - new.words
    is_of_another = bool(lost_subject and new.subject - old.words) and verdict.replaces < TRUSTED
    if is_named or is_of_another:
        # It lacks an identifier that is asked for, or tells of another one than what is asked for.
        return 0.0
    row = precedence_features(older, newer, verdict, cues)
    odds = sum(map(mul, row, map(BEFORE.__getitem__, FEATURES))) + BEFORE[CONSTANT]
    before = probability_of(odds)
    # What is said to be replaced never precedes what replaced it.
    return max(before, verdict.replaces) if verdict.replaces >= REPLACED else before


@dataclass(frozen=True, slots=True)
class Standing:
    """How statements stand to each other, by their indexes.

    `leaders` are those that stand before one, the first of them first. `marks` have for each
    replaced one what replaces it, in the end, and how probably; `replacing` are all that do.
    """

    leaders: Mapping[int, Sequence[int]]
    marks: Mapping[int, tuple[int, float]]
    replacing: Mapping[int, Collection[int]] = field(default_factory=dict, compare=False)


def find_standing(
    found: Mapping[int, FoundStatement],
    verdicts: Verdicts,
    cues: QuestionCues,
    spans: Sequence[tuple[float, float]] = (),
) -> Standing:
    """Which statements stand before which, and which are replaced.

    `spans` are the times that the question names, in seconds: of two statements the one counts that
    held at the end of the last of them. Where it asks for the past and names no time, the older one
    of two stands first.
    """
    echoes = find_echoes({index: entry.statement for index, entry in found.items()})
    end = max((end for _, end in spans), default=math.inf)
    leading: dict[int, list[tuple[float, float, int]]] = {}
    newest: dict[int, tuple[float, float, int, float]] = {}
    replacing: dict[int, set[int]] = {}
    for (old, new), verdict in verdicts.items():
        source = echoes.get(new, new)
        if not found[source].at > found[old].at:
            # An assistant's repetition of what was just said replaces nothing.
            continue
        older, newer = found[old], found[new]
        if verdict.replaces >= REPLACED and new not in echoes:
            chance = round(verdict.replaces, 1), newer.at, new, verdict.replaces
            newest[old] = max(newest.get(old, chance), chance)
            replacing.setdefault(old, set()).add(new)
        if newer.at < end if spans and cues.past else cues.past < 2:
            # What only says the same again, many times at once perhaps, leads nothing.
            is_news = verdict.replaces >= max(LINKED, min(verdict.repeats, REPLACED))
            if is_news and (before := precedence(older, newer, verdict, cues)) >= LEADS:
                leading.setdefault(old, []).append((round(before, 1), newer.at, new))
        elif verdict.replaces >= LINKED:
            key = (-older.at, 0.0) if cues.first else (older.score, older.at)
            leading.setdefault(new, []).append((*key, old))
    leaders = {
        index: [leader for *_, leader in sorted(ranks, reverse=True)]
        for index, ranks in leading.items()
    }
    return Standing(leaders, _find_marks(found, newest, echoes), replacing)


def _find_marks(
    found: Mapping[int, FoundStatement],
    newest: Mapping[int, tuple[float, float, int, float]],
    echoes: Mapping[int, int],
) -> dict[int, tuple[int, float]]:
    """What replaces each replaced one in the end, and how probably."""
    marks = {}
    for old, (_, _, new, chance) in newest.items():
        last = new
        while last in newest:
            last = newest[last][2]
        marks[old] = last, chance
    for echo, source in echoes.items():
        # What an assistant repeated is outdated with it.
        if source in marks and found[echo].at < found[marks[source][0]].at:
            marks.setdefault(echo, marks[source])
    return marks


def find_echoes(statements: Mapping[int, Statement]) -> dict[int, int]:
    """Where an assistant repeats what a user had said, and what it repeats, by their indexes.

    It repeats where half of its words, and every number in it, were the user's, or where it holds
    nearly all that the user said: of several statements the one that it has most words of, then the
    last one. It supports the user's statement and is no news.
    """
    echoes: dict[int, int] = {}
    if not any(statement.assistant for statement in statements.values()):
        return echoes
    telling = [
        (index, statement, _keep_plain_numbers(statement.reading.told))
        for index, statement in statements.items()
        if not (statement.reading.asks or statement.reading.unknown)
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


def _keep_digits(words: frozenset[str]) -> frozenset[str]:
    return frozenset(word for word in words if any(map(str.isdigit, word)))


def _starts_held(words: frozenset[str], exact: Iterable[str]) -> frozenset[str]:
    """Which numbers and identifiers are there, or longer ones that begin so."""
    return frozenset(token for token in exact if any(word.startswith(token) for word in words))


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
