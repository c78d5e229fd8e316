"""Says whether two memories seem to contradict each other: close, about one thing, and different.

It proposes and never decides: a person or an agent says which holds. A pair is proposed where the
words of both say so, or where `rank/replacement` is nearly sure that the newer one replaces the
older. Of the pairs that it proposes among facts of held-out authors, seven of eight are one value
that changed, and a quarter of such changes is proposed; most others are near misses ("opens at
seven", "is closed on Mondays"). A reader adds nothing to that: docs/decisions/0056.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from anaphora.language.analyser import analyse
from anaphora.rank.sameness import same_fact
from anaphora.rank.statements import read_statement

if TYPE_CHECKING:
    from anaphora.rank.replacement import Statement

NEAR: Final = 0.66
"""The cosine from which on two memories can contradict each other."""

SHARED: Final = 0.4
"""The words that they share, as a share of the shorter one's."""

REPLACES: Final = 0.8
"""The probability of a replacement from which on two memories can contradict each other, however
few words they share."""

_OPENING: Final = 200
"""Characters in which the word that a memory begins with is looked for."""


def contradicts(older: Statement, newer: Statement, closeness: float) -> bool:
    """Whether a newer memory seems to contradict an older one; `closeness` is their cosine."""
    # A process that only reads memories does without it.
    from anaphora.rank.replacement import replacement_probability

    return (
        _tell_otherwise(older.text, newer.text)
        or replacement_probability(older, newer, closeness) >= REPLACES
    ) and not same_fact(older.text, newer.text)


def seem_to_contradict(older: str, newer: str) -> bool:
    """Whether the two differ about one thing, as far as their words tell. For texts that are near.

    They share words, one contains what the other begins with, neither only asks, and the newer one
    says something that the older one does not.
    """
    return _tell_otherwise(older, newer) and not same_fact(older, newer)


def _tell_otherwise(older: str, newer: str) -> bool:
    older_reading, newer_reading = read_statement(older), read_statement(newer)
    # Words first: of the pairs that are near, most do not share enough, and reading is more work.
    older_words, newer_words = older_reading.words, newer_reading.words
    shorter = min(len(older_words), len(newer_words))
    if not shorter or len(older_words & newer_words) < SHARED * shorter:
        return False
    if _first_word(older) not in newer_words and _first_word(newer) not in older_words:
        return False
    if older_reading.asks or older_reading.unknown or newer_reading.asks or newer_reading.unknown:
        return False
    return not newer_words <= older_words or newer_reading.negated != older_reading.negated


@lru_cache(maxsize=1024)
def _first_word(text: str) -> str:
    return (analyse(text[:_OPENING], keep_stop_words=False) or [""])[0]
