"""Says whether a statement replaces an earlier one, independently of the question.

Where both are worded alike but for one place or a negation, `rank/frames` tells. Else a logistic
regression of what the two say, by whom and when, gives a probability. `make fit
ONLY=currency` fits it on stories in which each change is labelled (`currency_weights`). A
question has no part in it: what is replaced for one question is so for every other.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from operator import mul
from typing import Final, TypeAlias

from anaphora.rank.currency_weights import CONSTANT, REPLACES
from anaphora.rank.frames import Frame, compare_frames
from anaphora.rank.odds import probability_of
from anaphora.rank.statements import StatementKeys, StatementReading, tokens_of_time
from anaphora.rank.subjects import (
    OF_KEYS,
    agreement,
    name_subject,
    name_value,
    read_keys,
    share_a_subject,
)

SURE: Final = 0.9
"""The probability of what the wording of two statements tells."""

REPLACED: Final = 0.6
"""The probability from which on a statement is said to be replaced by another one."""

_NAMED: Final = re.compile(r"([^\W\d_]\w{1,20}): ")
_DAY: Final = 86_400.0
_MOST_WORDS: Final = 12
_LONG_WORD: Final = 6
_FEW: Final = 8
"""Words of a mere complaint at most."""
_FROM_LENGTH, _TO_LENGTH = 140, 260

OF_PAIR: Final = (
    "alike",  # words in common, as a share of the words of both
    "held",  # the same as a share of the shorter text's
    "in both",  # words in common, as a share of six
    "days",  # between the two, as a logarithm
    "reply",  # a speaker said the newer one within a minute: facts are stored many at a time
    "other person",  # they are not by the same speaker
    "closeness",  # the cosine of the two, where it is known
    "closeness known",
    "gone",  # words that the newer one lacks
    "new",  # words that only the newer one has
    "long words",  # of six letters or more, in common, as a share of four
    "another thing",
    *OF_KEYS,
)
OF_ONE: Final = (
    "words",
    "size",
    "pasted",
    "personal",
    "asks",
    "unknown",
    "changes",
    "negated",
    "several",
    "tentative",
    "adds",
)
ABOUT: Final = "no subject"
"""It has no word before a verb that is known: each of the two has it as a feature."""
IN_LONG: Final = ("days", "closeness")
"""These mean another thing in long messages, which hold much else, than in short statements."""

FEATURES: Final = (
    *OF_PAIR,
    *(f"{side} {name}" for side in ("older", "newer") for name in (*OF_ONE, ABOUT)),
    "message",
    *(f"{name} in a message" for name in IN_LONG),
)


@dataclass(frozen=True)
class Statement:
    """A statement: its time `at` in seconds, its speaker ("": not known), and its reading."""

    text: str
    at: float
    speaker: str
    assistant: bool
    reading: StatementReading

    @cached_property
    def name(self) -> str:
        """The speaker: as it is known, or the name before a colon with which the text begins."""
        name_match = None if self.speaker else _NAMED.match(self.text)
        return (name_match.group(1) if name_match else self.speaker).casefold()

    @cached_property
    def keys(self) -> StatementKeys:
        """What it is about, and what it says of that."""
        return read_keys(self.reading, "" if self.assistant else self.name)

    @property
    def is_personal(self) -> bool:
        """It is in the first person, and no assistant's."""
        return self.reading.personal and not self.assistant

    def shares_a_subject(self, other: Statement) -> bool:
        """Whether two statements may be about one thing."""
        return share_a_subject(self.reading, self.keys, other.reading, other.keys)


@dataclass(frozen=True, slots=True)
class StatementPair:
    """An earlier and a later statement, and the cosine of the two (NaN: not known)."""

    older: Statement
    newer: Statement
    closeness: float


PairJudge: TypeAlias = Callable[[Sequence[StatementPair]], Sequence[float]]
"""The probability of each pair that the newer statement replaces the older, 0 to 1."""


def is_possible(older: Statement, newer: Statement) -> bool:
    """Whether the newer one can replace the older at all.

    Both are dated, neither asks, and they share a subject and a word that is none of time. Each
    tells something that the other does not. A first-person statement changes nothing of another
    speaker, and what two people tell changes only if the later one says so.
    """
    older_reading, newer_reading = older.reading, newer.reading
    if not older.at < newer.at or older_reading.asks or newer_reading.asks:
        return False
    if not share_a_word(older_reading, newer_reading, tokens_of_time()):
        return False
    # The newer one only says that nothing changed: no day and no number is new in it.
    added_words = newer_reading.news - older_reading.words
    still_holds = (
        newer_reading.unchanged
        and not added_words & tokens_of_time()
        and not any(letter.isdigit() for word in added_words for letter in word)
        and compare_frames(older_reading, newer_reading) is not Frame.VALUE
    )
    # Two different people speak, and one of themselves, or the later one of no change.
    names = (older.name, newer.name)
    personal = older.is_personal or newer.is_personal
    silent = not (newer_reading.changes or older.assistant or newer.assistant)
    of_two_people = all(names) and names[0] != names[1] and (personal or silent)
    complaint = newer_reading.complains and not (
        newer_reading.changes or newer_reading.negated or newer_reading.length > _FEW
    )
    return older.shares_a_subject(newer) and not (
        says_nothing_new(older_reading, newer_reading)
        # The newer one contains all that the older tells, and tells of no change.
        or (
            older_reading.lasting <= newer_reading.words
            and older_reading.negated == newer_reading.negated
            and not newer_reading.changes
        )
        or still_holds
        # It tells what is wrong, and no value that is known.
        or (complaint and not newer.keys.attributes)
        or of_two_people
    )


def share_a_word(
    first: StatementReading, second: StatementReading, temporal: frozenset[str]
) -> bool:
    """Whether two statements share a word that is none of time (`temporal`)."""
    # A single Chinese character is in too many words to tell of one thing.
    return any(len(word) > 1 for word in (first.words & second.words) - temporal)


def says_nothing_new(older: StatementReading, newer: StatementReading) -> bool:
    """Whether the newer one tells only words of the older, and negates as that does."""
    return newer.news <= older.words and (
        newer.negated == older.negated or (not newer.negated and newer.news < older.words)
    )


def worded_probability(older: Statement, newer: Statement) -> float | None:
    """What the wording of two statements tells of a replacement; None where it does not tell."""
    if not is_possible(older, newer):
        return 0.0
    older_reading, newer_reading = older.reading, newer.reading
    frame = compare_frames(older_reading, newer_reading)
    both_hold = older_reading.several and not (newer_reading.changes or newer_reading.negated)
    other_thing = frame is Frame.APART or tells_of_another(older_reading, newer_reading)
    if newer_reading.tentative or both_hold or other_thing or frame is Frame.ADDED:
        return 0.0
    return SURE if frame in (Frame.VALUE, Frame.NEGATION) else None


def replacement_probability(older: Statement, newer: Statement, closeness: float) -> float:
    """The probability that `newer` replaces `older`; `closeness` is their cosine (NaN: unknown)."""
    probability_by_wording = worded_probability(older, newer)
    if probability_by_wording is not None:
        return probability_by_wording
    features = replacement_features(older, newer, closeness)
    odds = sum(map(mul, features, _weights())) + REPLACES[CONSTANT]
    return probability_of(odds)


def judge_pairs(pairs: Sequence[StatementPair]) -> list[float]:
    """The judge of this module: `replacement_probability` of each pair."""
    return [replacement_probability(pair.older, pair.newer, pair.closeness) for pair in pairs]


def tells_of_another(older: StatementReading, newer: StatementReading) -> bool:
    """Whether the newer one is worded alike and tells of another thing.

    "The car insurance is 112" and "the house insurance is 94"; but not "because of the quiz the
    meetings moved to Thursdays", which tells of a change and lacks nothing of what the older one is
    about.
    """
    if compare_frames(older, newer) is not Frame.OTHER:
        return False
    shared_words, older_only = older.subject & newer.words, older.subject - newer.words
    return not newer.changes or bool(shared_words and older_only)


def replacement_features(older: Statement, newer: Statement, closeness: float) -> tuple[float, ...]:
    """What is known of two statements, in the order of `FEATURES`."""
    older_reading, newer_reading = older.reading, newer.reading
    common_words = older_reading.words & newer_reading.words
    common = len(common_words)
    sizes = (len(older_reading.words), len(newer_reading.words))
    days = max(newer.at - older.at, 0.0) / _DAY
    dropped_words, added_words = (
        older_reading.told - newer_reading.words,
        newer_reading.told - older_reading.words,
    )
    frame, is_known = compare_frames(older_reading, newer_reading), not math.isnan(closeness)
    pair = (
        common / max(sum(sizes) - common, 1),
        common / max(min(sizes), 1),
        min(common / 6, 1.0),
        math.log1p(days) / 6,
        days < 60 / _DAY and bool(newer.name),
        bool(older.name) and older.name != newer.name,
        closeness if is_known else 0.0,
        is_known,
        min(len(dropped_words), _MOST_WORDS) / _MOST_WORDS,
        min(len(added_words), _MOST_WORDS) / _MOST_WORDS,
        min(sum(len(word) >= _LONG_WORD for word in common_words), 4) / 4,
        frame is Frame.OTHER,
        *agreement(older_reading, older.keys, newer_reading, newer.keys),
    )
    longest = max(older_reading.size, newer_reading.size)
    message = message_share(longest)
    in_long = (pair[OF_PAIR.index(name)] * message for name in IN_LONG)
    sides = (
        (
            *statement_features(statement.reading, assistant=statement.assistant),
            not statement.reading.subject,
        )
        for statement in (older, newer)
    )
    return (*pair, *chain(*sides), message, *in_long)


def message_share(size: int) -> float:
    """How much a text of so many characters is a long message, 0 to 1."""
    return min(max((size - _FROM_LENGTH) / (_TO_LENGTH - _FROM_LENGTH), 0.0), 1.0)


def statement_features(read: StatementReading, *, assistant: bool) -> tuple[float, ...]:
    """What is known of one statement, in the order of `OF_ONE`."""
    return (
        min(read.length, 60) / 60,
        min(read.size, 400) / 400,
        min(read.size, 2_000) / 2_000,
        read.personal and not assistant,
        read.asks,
        read.unknown,
        read.changes,
        read.negated,
        read.several,
        read.tentative,
        read.adds,
    )


@lru_cache(maxsize=1)
def _weights() -> tuple[float, ...]:
    return tuple(REPLACES[name] for name in FEATURES)


def reason_of(older: Statement, newer: Statement, probability: float) -> str:
    """Why a statement is said to be replaced: by the wording of both, or how probably.

    It names what both are about, and the value of each, where their keys tell.
    """
    frame = compare_frames(older.reading, newer.reading)
    by_wording = frame in (Frame.VALUE, Frame.NEGATION)
    both_own = older.reading.personal and newer.reading.personal
    about = name_subject(older.text, older.keys, newer.keys)
    about = about or (older.name.title() if both_own else "")
    of = f" of {about}" if about else ""
    reason = (
        frame.value + of if by_wording else f"a later statement{of}, probability {probability:.2f}"
    )
    old_value = name_value(older.text, older.keys, newer.reading)
    new_value = name_value(newer.text, newer.keys, older.reading)
    return f"{reason}: {old_value}, then {new_value}" if old_value and new_value else reason
