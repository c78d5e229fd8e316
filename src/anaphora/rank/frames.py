"""Says what a statement makes of an earlier one that is worded like it.

Two statements are compared word by word, stop words left out. What they share is their frame. Where
one place of it differs, the newer one gives another value ("the rent is 950", "the rent is 1,020
now"), unless several values of the kind hold at once ("allergic to nuts", "allergic to kiwi").
Where none differs and one of the two is negated, it takes the other back. Where two places differ,
they tell of two things ("server alpha runs Debian", "server beta runs Ubuntu"). Anything else is
left to other judges.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from enum import Enum
from functools import lru_cache
from typing import Final

from anaphora.rank.statements import StatementReading

SHARED: Final = 0.6
"""The share of both statements' words that they must share, in one order, to be one frame."""

OF_OTHERS: Final = 0.4
"""The share of the longer one's words from which on two places that differ tell of two things."""

NEGATED: Final = 0.6
"""The share of the shorter one's words from which on a negation takes the other statement back."""

_SHORT: Final = 12
"""Words of a statement at most that its wording is looked at: a longer one tells several things."""
_NAMED: Final = 5
"""Words of a subject at most: more are no name of a thing."""


class Frame(Enum):
    """What becomes of the older of two statements."""

    VALUE = "another value"
    NEGATION = "a negation"
    OTHER = "another thing"
    APART = "perhaps another thing"
    ADDED = "holds beside it"
    OPEN = "not told by the wording"


@lru_cache(maxsize=4096)
def compare_frames(older: StatementReading, newer: StatementReading) -> Frame:
    """What `newer` makes of `older`, as far as their wording tells."""
    older_tokens, newer_tokens = older.tokens, newer.tokens
    sizes = (len(older_tokens), len(newer_tokens))
    if not min(sizes) or max(sizes) > _SHORT or newer.asks or older.asks:
        return Frame.OPEN
    codes = SequenceMatcher(None, older_tokens, newer_tokens, autojunk=False).get_opcodes()
    shared_count = sum(end - start for tag, start, end, _, _ in codes if tag == "equal")
    changed_spans = [
        (older_tokens[a:b], newer_tokens[c:d]) for tag, a, b, c, d in codes if tag == "replace"
    ]
    if not changed_spans and older.negated != newer.negated:
        least_size = min(sizes) if newer.negated else max(sizes)
        if shared_count >= NEGATED * least_size and shared_count >= 2:
            return Frame.NEGATION
    if len(changed_spans) >= 2 and shared_count >= OF_OTHERS * max(sizes):
        return Frame.OTHER
    # "The key of the garage" and "the key of the attic" are of one kind, which both begin with;
    # "class 8b" and "the lessons of 8b" are one thing.
    kind = older.subject & newer.subject
    of_one_kind = (
        max(len(older.subject), len(newer.subject)) <= _NAMED and older.head_noun == newer.head_noun
    )
    if kind and of_one_kind and not _has_digit(tuple(kind)):
        older_only = frozenset(older_tokens) - frozenset(newer_tokens)
        newer_only = frozenset(newer_tokens) - frozenset(older_tokens)
        # Each has a subject that the other one lacks, and another value.
        named_apart = older_only & older.subject and newer_only & newer.subject
        if named_apart and older_only - older.subject and newer_only - newer.subject:
            return Frame.APART
    if len(changed_spans) != 1 or 2 * shared_count < SHARED * sum(sizes):
        return Frame.OPEN
    old_tokens, new_tokens = changed_spans[0]
    # "It is Doctor Amrani now" and "Doctor Amrani is fine" name no other value.
    is_named = _tells(old_tokens, older) and _tells(new_tokens, newer)
    if not is_named or _has_digit(old_tokens) != _has_digit(new_tokens):
        return Frame.OPEN
    several = not newer.changes and (older.several or newer.several)
    return Frame.ADDED if newer.tentative or newer.adds or several else Frame.VALUE


def _tells(words: tuple[str, ...], reading: StatementReading) -> bool:
    """Whether a place holds more than words that say that it holds now, or still."""
    return any(part in reading.news for word in words for part in word.split())


def _has_digit(words: tuple[str, ...]) -> bool:
    return any(letter.isdigit() for word in words for letter in word)
