"""Says what a later statement makes of an earlier one, independently of any question.

It replaces it, holds beside it, repeats it, or is about something else. Few and simple features of
the two, what they share, who said them and when, go through boosted trees that `tools/judge` fits:
each verdict is a calibrated probability. There is no rule in front, but that nothing replaces what
is not older, and no question replaces anything. Where a model has read a pair, both judgements are
put together (`Stack`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final, Self, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from anaphora.rank.statements import (
    CLOCK,
    DAY,
    StatementReading,
    read_statement,
    tokens_of_time,
)
from anaphora.values.fitted import fitted

_NUMBERS: Final = fitted("links")

UNDECIDED: Final[float] = _NUMBERS["UNDECIDED"]
"""The probability of a replacement from which on a model reads a pair, where there is one."""

REPLACED: Final[float] = _NUMBERS["REPLACED"]
"""The probability from which on a statement is said to be replaced by another one."""

REPEATED: Final[float] = _NUMBERS["REPEATED"]
"""The probability from which on a statement says the same as an earlier one."""

OUTDONE: Final[float] = _NUMBERS["OUTDONE"]
"""The odds of a replacement, as a share of the surest one's, below which it is another thing; and
the probability from which on two earlier ones tell of one thing."""

_EDGE: Final = 1e-6

UNKNOWN: Final = -1.0
"""The closeness of two statements of which one has no vector yet."""

_NAMED: Final = re.compile(r"([^\W\d_]\w{1,20}): ")
_CAPITAL: Final = re.compile(r"(?<=[\w,;:’'\"(] )[^\W\d_a-z][^\W\d_]\w*")
_NUMBER: Final = re.compile(r"\d+(?:[.,:/-]\d+)*")
_DAY: Final = 86_400.0
_AT_ONCE: Final = 64
_LONG_WORD: Final = 6

Rows: TypeAlias = npt.NDArray[np.float32]
KeyT = TypeVar("KeyT", str, int)

OF_ONE: Final = (
    "length",
    "size",
    "personal",
    "asks",
    "unknown",
    "changes",
    "negated",
    "several",
    "tentative",
    "adds",
    "unchanged",
    "complains",
    "no subject",
    "numbers",
    "names",
    "of now",
    "question mark",
    "measured",
    "assistant",
)
OF_PAIR: Final = (
    "closeness",
    "alike",
    "held",
    "common",
    "long words",
    "longest word",
    "gone",
    "new",
    "gone share",
    "new share",
    "days",
    "reply",
    "other person",
    "same person",
    "both personal",
    "subject held",
    "older subject held",
    "subjects in both",
    "same head",
    "first word",
    "last word",
    "begins alike",
    "ends alike",
    "older place",
    "newer place",
    "frame",
    "word pairs",
    "number for number",
    "same numbers",
    "name for name",
    "same names",
    "same kind of value",
    "other kind of value",
    "same value",
    "value for value",
    "both days",
    "both times",
    "one negates",
    "before held",
    "held before",
    "befores alike",
    "has before",
    "english",
    "time apart",
)
FEATURES: Final = (
    *OF_PAIR,
    *(f"{side} {name}" for side in ("older", "newer") for name in OF_ONE),
)

_BESIDE: Final = tuple(map(FEATURES.index, ("closeness", "has before", "other person")))
_PERSONS: Final = tuple(map(FEATURES.index, ("other person", "both personal")))
_OF_NEWER: Final = tuple(map(FEATURES.index, ("newer unchanged", "newer tentative")))
_SIZES: Final = tuple(map(FEATURES.index, ("older size", "newer size")))
_SHORT: Final = math.log1p(120)
"""The size of a short statement: more than it would say several things."""


@dataclass(frozen=True)
class Statement:
    """A statement: its time `at` in seconds, its speaker ("": not known), and its reading.

    `before` is the turn before it, "" where there is none or it is not known.
    """

    text: str
    at: float
    speaker: str
    assistant: bool
    reading: StatementReading
    before: str = ""

    @cached_property
    def name(self) -> str:
        """The speaker: as it is known, or the name before a colon with which the text begins."""
        name_match = None if self.speaker else _NAMED.match(self.text)
        return (name_match.group(1) if name_match else self.speaker).casefold()

    @property
    def by(self) -> str:
        """The speaker's name, or "assistant"."""
        return "assistant" if self.assistant else self.speaker

    @property
    def is_personal(self) -> bool:
        """It is in the first person, and no assistant's."""
        return self.reading.personal and not self.assistant

    @cached_property
    def signs(self) -> _Signs:
        """What the judge needs of it alone."""
        return _read_signs(self)


def statement_of(text: str, at: float, speaker: str = "", before: str = "") -> Statement:
    """A statement with its reading; the speaker may be "assistant"."""
    assistant = speaker == "assistant"
    name = "" if assistant else speaker
    return Statement(text, at, name, assistant, read_statement(text), before)


@dataclass(frozen=True, slots=True)
class StatementPair:
    """An earlier and a later statement, and the cosine of the two (NaN: not known)."""

    older: Statement
    newer: Statement
    closeness: float


@dataclass(frozen=True, slots=True)
class PairVerdict:
    """The probabilities of what the later statement does; the rest is that of another matter."""

    replaces: float
    both: float
    repeats: float

    @property
    def of_one(self) -> float:
        """The probability that both tell of one thing: the one value of it, or two."""
        return self.replaces + self.repeats


JudgePairs: TypeAlias = Callable[[Sequence[StatementPair]], Sequence[PairVerdict]]
"""Says of each pair what the later statement makes of the earlier."""


@dataclass(frozen=True, slots=True)
class _Signs:
    """What is read of one statement, once: `features` as `OF_ONE`, and its words by kind."""

    features: tuple[float, ...]
    words: frozenset[str]
    told: frozenset[str]
    tokens: tuple[str, ...]
    together: frozenset[tuple[str, str]]
    subject: frozenset[str]
    numbers: frozenset[str]
    names: frozenset[str]
    written: frozenset[str]
    kinds: frozenset[str]
    values: frozenset[str]
    days: frozenset[str]
    before: frozenset[str]


@dataclass(frozen=True, slots=True)
class CalibratedTrees:
    """Oblivious trees: `features` and `limits` (trees, depth), `leaves` (trees, 2 ** depth, 3).

    `scale` and `shift` (3,) make the sums of their leaves calibrated log-odds.
    """

    features: Any
    limits: Any
    leaves: Any
    scale: Any
    shift: Any

    @classmethod
    def of(cls, arrays: Mapping[str, Any]) -> Self:
        """The trees as they are stored."""
        leaves, features = arrays["leaves"].astype(np.float32), arrays["features"].astype(np.intp)
        return cls(features, arrays["limits"], leaves, arrays["scale"], arrays["shift"])

    def log_odds(self, rows: Rows) -> Rows:
        """The log-odds of replacing, holding beside and repeating against another matter.

        `rows` (n, features) have the order of `FEATURES`; out come (n, 3).
        """
        numbers = np.arange(len(self.leaves))
        bits = 1 << np.arange(self.features.shape[1])
        sums = np.empty((len(rows), len(self.scale)), np.float32)
        # As many at a time as stay in the cache.
        for start in range(0, len(rows), _AT_ONCE):
            above = rows[start : start + _AT_ONCE, self.features] > self.limits
            sums[start : start + _AT_ONCE] = self.leaves[numbers, above @ bits].sum(axis=1)
        odds: Rows = sums * self.scale + self.shift
        return odds

    def judge(self, pairs: Sequence[StatementPair]) -> list[PairVerdict]:
        """What the later statement of each pair makes of the earlier, by their features alone."""
        return verdicts_of(pairs, self.log_odds(features_of(pairs)))


@dataclass(frozen=True, slots=True)
class Stack:
    """How the judgements of trees and of the model of a name are put together.

    `weights` are (features of the stack, 3).
    """

    weights: Any
    model: str

    def log_odds(self, rows: Rows, odds: Rows, read: Rows) -> Rows:
        """The log-odds (n, 3) of pairs with these features.

        `odds` (n, 3) are what the trees make of those, `read` (n, 3) what the model says.
        """
        whole_odds: Rows = stack_features(rows, odds, read) @ self.weights
        return whole_odds


def features_of(pairs: Sequence[StatementPair]) -> Rows:
    """The features of each pair, (pairs, features)."""
    rows = np.array([pair_features(pair) for pair in pairs], np.float32)
    return rows.reshape(len(pairs), len(FEATURES))


def is_undecided(pair: StatementPair, odds: Rows) -> bool:
    """Whether a model has to read a pair with these log-odds (3,) by its features."""
    return can_replace(pair) and bool(probabilities(odds[None])[0, 0] >= UNDECIDED)


def stack_features(rows: Rows, odds: Rows, read: Rows) -> Rows:
    """What the judgements of trees and model are put together from, (pairs, features)."""
    trees, model = odds[:, :1], read[:, :1]
    closeness, told_before, other_person = (rows[:, [column]] for column in _BESIDE)
    # Two people, and each speaks of themselves.
    selves = rows[:, _PERSONS].prod(axis=1, keepdims=True)
    short = (rows[:, _SIZES].max(axis=1, keepdims=True) < _SHORT).astype(np.float32)
    columns: Rows = np.hstack(
        (
            *(odds, read, trees * model / 10, trees**2 / 10, model**2 / 10),
            np.minimum(trees, model),
            *(short, short * trees, short * read),
            *(closeness, closeness * model),
            *(told_before, told_before * model, other_person),
            *(rows[:, _OF_NEWER], selves, selves * model, selves * trees),
            np.ones_like(trees),
        )
    )
    return columns


def verdicts_of(pairs: Sequence[StatementPair], odds: Rows) -> list[PairVerdict]:
    """The verdicts of pairs with calibrated log-odds (pairs, 3)."""
    chances: list[list[float]] = probabilities(odds).tolist() if pairs else []
    return [
        PairVerdict(replaces if can_replace(pair) else 0.0, holds, repeats)
        for pair, (replaces, holds, repeats) in zip(pairs, chances, strict=True)
    ]


def beside_rivals(
    verdicts: Mapping[tuple[KeyT, KeyT], PairVerdict],
    earlier: Mapping[tuple[KeyT, KeyT], float] = MappingProxyType({}),
) -> dict[tuple[KeyT, KeyT], PairVerdict]:
    """What later statements make of earlier ones, (older, newer), each beside its rivals.

    They come in the order in which the later ones were said. A later statement replaces one thing,
    however often that was said or changed: of forty that are worded alike, it replaces one at most,
    so they share one probability. Those of which one replaces or repeats the other are one thing;
    `earlier` are the probabilities of that for pairs that were judged before. What is far less sure
    than the surest one keeps a share only, and takes nothing from that.
    """
    by_newer: dict[KeyT, dict[KeyT, float]] = {}
    for (older, newer), verdict in verdicts.items():
        odds = verdict.replaces / max(1.0 - verdict.replaces, _EDGE)
        by_newer.setdefault(newer, {})[older] = odds
    beside: dict[tuple[KeyT, KeyT], PairVerdict] = {}
    of_one = dict(earlier)
    for newer, odds_of in by_newer.items():
        first_of = _first_of_things(odds_of, of_one)
        best = max(*odds_of.values(), _EDGE)
        firsts = {first for first in first_of.values() if odds_of[first] >= OUTDONE * best}
        total = 1.0 + sum(odds_of[first] for first in firsts)
        for older, first in first_of.items():
            odds = odds_of[older]
            if odds < OUTDONE * best and odds_of[first] < best:
                odds *= odds / best
            instead = total - odds_of[first] if first in firsts else total
            chance = odds / (instead + odds)
            verdict = beside[older, newer] = replace(verdicts[older, newer], replaces=chance)
            of_one[older, newer] = verdict.of_one
    return beside


def _first_of_things(
    odds: Mapping[KeyT, float], of_one: Mapping[tuple[KeyT, KeyT], float]
) -> dict[KeyT, KeyT]:
    """For each statement the surest of those that tell of the same thing, the surest ones first."""
    first_of: dict[KeyT, KeyT] = {}
    for statement in sorted(odds, key=odds.__getitem__, reverse=True):
        for first in dict.fromkeys(first_of.values()):
            pairs = (first, statement), (statement, first)
            if max(of_one.get(pair, 0.0) for pair in pairs) >= OUTDONE:
                first_of[statement] = first
                break
        else:
            first_of[statement] = statement
    return first_of


def can_replace(pair: StatementPair) -> bool:
    """Whether the later one is later, and both tell something."""
    asks = pair.older.reading.asks or pair.newer.reading.asks
    return pair.older.at < pair.newer.at and not asks


def probabilities(odds: Rows) -> Rows:
    """The probability of each class but the last, (n, 3), of log-odds against the last."""
    peak = np.maximum(odds.max(axis=1, keepdims=True), 0.0)
    shares = np.exp(odds - peak)
    chances: Rows = shares / (shares.sum(axis=1, keepdims=True) + np.exp(-peak))
    return chances


def pair_features(pair: StatementPair) -> tuple[float, ...]:
    """What is known of two statements, in the order of `FEATURES`."""
    older, newer = pair.older.signs, pair.newer.signs
    return (
        UNKNOWN if math.isnan(pair.closeness) else pair.closeness,
        *_compare_words(older, newer),
        *_compare_speakers(pair.older, pair.newer),
        *_compare_subjects(pair.older.reading, pair.newer.reading, older, newer),
        *_compare_order(older.tokens, newer.tokens, older.together, newer.together),
        *_compare_values(older, newer),
        pair.older.reading.negated != pair.newer.reading.negated,
        *_compare_befores(older, newer),
        bool(pair.newer.before),
        pair.newer.reading.code in ("", "en"),
        len(older.days ^ newer.days),
        *older.features,
        *newer.features,
    )


def _compare_words(older: _Signs, newer: _Signs) -> tuple[float, ...]:
    common_words = older.words & newer.words
    common, sizes = len(common_words), (len(older.words), len(newer.words))
    lost, added = len(older.told - newer.words), len(newer.told - older.words)
    return (
        common / max(sum(sizes) - common, 1),
        common / max(min(sizes), 1),
        common,
        sum(len(word) >= _LONG_WORD for word in common_words),
        max(map(len, common_words), default=0),
        lost,
        added,
        lost / max(1, len(older.told)),
        added / max(1, len(newer.told)),
    )


def _compare_speakers(older: Statement, newer: Statement) -> tuple[float, ...]:
    days = max(newer.at - older.at, 0.0) / _DAY
    named = bool(older.name and newer.name)
    return (
        math.log1p(days),
        days < 60 / _DAY and bool(newer.name),
        named and older.name != newer.name,
        named and older.name == newer.name,
        older.is_personal and newer.is_personal,
    )


def _compare_subjects(
    older: StatementReading, newer: StatementReading, old: _Signs, new: _Signs
) -> tuple[float, ...]:
    common = old.subject & new.subject
    return (
        len(new.subject & old.words) / len(new.subject) if new.subject else UNKNOWN,
        len(old.subject & new.words) / len(old.subject) if old.subject else UNKNOWN,
        len(common),
        bool(older.head_noun) and older.head_noun == newer.head_noun,
    )


def _compare_order(
    older: Sequence[str],
    newer: Sequence[str],
    older_pairs: frozenset[tuple[str, str]],
    newer_pairs: frozenset[tuple[str, str]],
) -> tuple[float, ...]:
    """How far two texts are worded alike: their ends, and words that stand side by side."""
    least, most = min(len(older), len(newer)), max(len(older), len(newer), 1)
    begins = 0
    while begins < least and older[begins] == newer[begins]:
        begins += 1
    ends = 0
    while ends < least - begins and older[-1 - ends] == newer[-1 - ends]:
        ends += 1
    pairs = min(len(older_pairs), len(newer_pairs))
    return (
        begins > 0,
        ends > 0,
        begins,
        ends,
        min(len(older) - begins - ends, 12),
        min(len(newer) - begins - ends, 12),
        (begins + ends) / most,
        len(older_pairs & newer_pairs) / max(1, pairs),
    )


def _compare_values(older: _Signs, newer: _Signs) -> tuple[float, ...]:
    """Numbers, names and values that are the same, and those that stand against each other."""
    kinds = older.kinds & newer.kinds
    return (
        bool(older.numbers - newer.numbers and newer.numbers - older.numbers),
        len(older.numbers & newer.numbers),
        bool(older.names - newer.written and newer.names - older.written),
        len(older.names & newer.names),
        len(kinds),
        bool(older.kinds and newer.kinds) and not kinds,
        len(older.values & newer.values),
        bool(older.values - newer.words and newer.values - older.words),
        DAY in kinds,
        CLOCK in kinds,
    )


def _compare_befores(older: _Signs, newer: _Signs) -> tuple[float, ...]:
    """How far the turns before them tell of one thing."""
    common, union = newer.before & older.words, older.before | newer.before
    return (
        len(common) / max(1, len(newer.before)),
        len(common) / max(1, len(older.words)),
        len(older.before & newer.before) / max(1, len(union)),
    )


def _read_signs(statement: Statement) -> _Signs:
    reading = statement.reading
    keys, tokens = reading.keys, reading.tokens
    head = statement.text[:600]
    names = frozenset(map(str.casefold, _CAPITAL.findall(head)))
    numbers = frozenset(_NUMBER.findall(head))
    before = read_statement(statement.before).words if statement.before else frozenset[str]()
    features = (
        math.log1p(reading.length),
        math.log1p(reading.size),
        statement.is_personal,
        reading.asks,
        reading.unknown,
        reading.changes,
        reading.negated,
        reading.several,
        reading.tentative,
        reading.adds,
        reading.unchanged,
        reading.complains,
        not reading.subject,
        len(numbers),
        len(names),
        len(reading.told) - len(reading.lasting),
        "?" in head,
        bool(keys.attributes),
        statement.assistant,
    )
    return _Signs(
        features,
        reading.words,
        reading.told,
        tokens,
        frozenset(pairwise(tokens)),
        reading.subject - tokens_of_time(),
        numbers,
        names,
        reading.written,
        keys.attributes,
        keys.values,
        reading.told & tokens_of_time(),
        before,
    )
