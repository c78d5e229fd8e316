"""Says whether two texts state one fact, or two that only look alike.

In: two short texts whose vectors are close. Out: why they differ, or nothing when they do not.
Closeness says nothing here: "allergic to peanuts" and "not allergic to peanuts" lie closer to each
other than most paraphrases. So two texts are the same only if, after differences that never carry
meaning are taken away, the same words stand in the same order. Calling one fact two costs a line on
a screen; calling two facts one hides the truth, so whatever is in doubt is a difference.

Taken away: letter case and punctuation (where they carry nothing), formatting, contractions,
articles on one side only, fillers, spelling variants and a few plain synonyms, number words,
ways of writing dates, times and units, "likes to hike" against "likes hiking", a clause moved to
the front. All else stays: negation, tense, person, quantity, modality, order, names, symbols.

Never sees a vector, a clock, a disk or a language model.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import chain

from anaphora.rank.sameness.reading import Reading, Word, read
from anaphora.rank.sameness.words import MODALS, NEGATIONS, QUANTITIES, TENSES, TIME_WORDS

# Words after which a comma decides what is meant: "no, tests are needed", "no tests are needed".
_COMMA_MATTERS = NEGATIONS | {"only", "but", "except", "unless", "yes", "if", "just", "let"}


def same_fact(a: str, b: str) -> bool:
    """Whether `a` and `b` state the same fact. Symmetric; every text is the same as itself."""
    return not differences(a, b)


def differences(a: str, b: str) -> tuple[str, ...]:
    """Why `a` and `b` are not the same fact, sorted; empty when they are.

    Among: articles, case, names, negation, numbers, order, punctuation, quantity, question,
    modality, symbols, tense, time, words.
    """
    if a == b:
        return ()
    one, other = read(a), read(b)
    if not one.words or not other.words:
        return ("words",)
    if [word.text for word in one.words] == [word.text for word in other.words]:
        return _fine_differences(one, other)
    if one.moved or other.moved:
        for left, right in ((one.moved, other), (one, other.moved)):
            if left is not None and right is not None and not differences_of(left, right):
                return ()
    return _coarse_differences(one, other)


def differences_of(one: Reading, other: Reading) -> tuple[str, ...]:
    """The same for two readings, without looking for a clause that was moved."""
    if [word.text for word in one.words] == [word.text for word in other.words]:
        return _fine_differences(one, other)
    return _coarse_differences(one, other)


def _fine_differences(one: Reading, other: Reading) -> tuple[str, ...]:
    """What can still differ between texts of the same words in the same order."""
    found: set[str] = set()
    if one.question != other.question:
        found.add("question")
    for left, right in zip(one.words, other.words, strict=True):
        if left.article and right.article and left.article != right.article:
            found.add("articles")
        if left.case and right.case and left.case != right.case:
            found.add("case")
    commas = one.commas != other.commas
    if commas and any(word.text in _COMMA_MATTERS for word in one.words):
        found.add("punctuation")
    return tuple(sorted(found))


def _coarse_differences(one: Reading, other: Reading) -> tuple[str, ...]:
    left, right = (Counter(word.text for word in side.words) for side in (one, other))
    changed = (left - right) + (right - left)
    found = {_kind(word) for word in chain(one.words, other.words) if word.text in changed}
    if one.question != other.question:
        found.add("question")
    return tuple(sorted(found)) or ("order",)


def _kind(word: Word) -> str:
    text = word.text
    for kind, words in _KINDS:
        if text in words:
            return kind
    if _IS_TIME.match(text):
        return "time"
    if any(character.isdigit() for character in text):
        return "numbers"
    if not any(character.isalnum() for character in text):
        return "punctuation" if text in ".?" else "symbols"
    return "names" if word.name else "words"


# As `sameness_reading` writes times and dates.
_IS_TIME = re.compile(r"t\d\dh\d\d|d\d{4}x\d\dx\d\d")
_KINDS = (
    ("negation", NEGATIONS),
    ("quantity", QUANTITIES),
    ("modality", MODALS),
    ("tense", TENSES),
    ("time", TIME_WORDS),
)
