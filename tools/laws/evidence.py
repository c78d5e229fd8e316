"""What speaks for a statement, judged from outside: matched words, meaning, time, restating.

Words are compared by a tokeniser of this tool's own. A match is `strict` where a word of the
question stands in the text as it is, and `loose` where one begins like it: whoever stems or
respells words finds at most the loose ones and at least the strict ones.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Final

MARGIN: Final = 0.01
"""The difference of two cosines from which on one is greater."""

_EVERYWHERE: Final = """
    a about all am an and any are as at be been but by can could did do does for from had has have
    he her him his how i if in into is it its me my no not of on or our out over shall she should so
    some than that the their them then there these they this those to too up was we were what when
    where which while who whom whose why with would you your
"""
_STOP: Final = frozenset(_EVERYWHERE.split())
"""Words that match nothing. Only such as nobody would count, or a match would be overlooked."""

_OF_TIME: Final = """
    after again ago already anymore before current currently earlier earliest ever finally first
    former formerly last lately later latest now nowadays once originally past previous previously
    prior recent recently still today until yet
    zuerst früher vorher vor jetzt avant premier maintenant antes primero ahora przed najpierw teraz
    wcześniej
"""
CUES: Final = frozenset(_OF_TIME.split())
"""Words of time that are no evidence of a match. Months, weekdays and parts of a day may be."""

_WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_UNSPACED: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
_BEGINNING: Final = 3
_REPORTED: Final = re.compile(
    r"\?|\b(?:asked(?! for)|asks|wondered|wonders|fragte|gefragt|preguntó|perguntou|demandait)\b"
    r"|\b(?:nothing|nobody|no one)\b.*\b(?:says|said|told|known|notes)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for one statement: matched words, cosine, times restated, when it was told.

    `cues` are words of time of the question that stand in it: they speak for nothing. `unnamed` is
    the cosine to the question without the names of those who speak: who is asked for is told by
    `speaker`, and would count twice.
    """

    strict: frozenset[str]
    loose: frozenset[str]
    cosine: float
    restated: int
    at: datetime
    speaker: str | None = None
    cues: frozenset[str] = frozenset()
    unnamed: float = 0.0


def without_names(question: str, speakers: Iterable[str | None]) -> str:
    """A question without the first names of speakers; as it is where nothing else is left."""
    names = {name.split()[0] for name in speakers if name and name.strip()}
    if not names:
        return question
    listed = "|".join(map(re.escape, sorted(names)))
    left = " ".join(re.sub(rf"\b(?:{listed})(?:['’]s)?\b", " ", question, flags=re.I).split())
    return left if words_of(left) - _STOP else question


def reports_a_question(text: str) -> bool:
    """Whether a text tells that somebody asked, or that nothing is known: it is no statement."""
    return _REPORTED.search(text) is not None


@cache
def words_of(text: str) -> frozenset[str]:
    """The words of a text; of a script without spaces, its characters."""
    plain = unicodedata.normalize("NFC", text).casefold()
    words = {re.sub(r"['’]s$", "", word) for word in _WORD.findall(plain)}
    single = {sign for word in words for sign in word if _UNSPACED.match(sign)}
    return frozenset({word for word in words if not _UNSPACED.search(word)} | single)


@cache
def asked_words(question: str) -> frozenset[str]:
    """The words of a question that may match."""
    return words_of(question) - _STOP - CUES


@cache
def matched(question: str, text: str) -> tuple[frozenset[str], frozenset[str]]:
    """The words of a question that a text holds, strictly and loosely."""
    asked, held = asked_words(question), words_of(text)
    loose = {word for word in asked if any(_alike(word, other) for other in held)}
    return asked & held, frozenset(loose)


@cache
def matched_cues(question: str, text: str) -> frozenset[str]:
    """The words of time that both hold."""
    return words_of(question) & words_of(text) & CUES


def _alike(word: str, other: str) -> bool:
    if word == other:
        return True
    if min(len(word), len(other)) < _BEGINNING:
        return False
    return word[:_BEGINNING] == other[:_BEGINNING]


def dominates(one: Evidence, other: Evidence, *, timed: bool, by: str = "") -> bool:
    """Whether no part of `one` is smaller and one is greater.

    `timed`: age and restating count too, as they do in memories. `by` names the part that must be
    greater ("words" or "meaning"), "" for any of the two.
    """
    if not other.loose <= one.strict:
        return False
    closer_by = min(one.cosine - other.cosine, one.unnamed - other.unnamed)
    if closer_by < 0.0:
        return False
    if other.speaker is not None and one.speaker != other.speaker:
        return False
    if timed and (one.at < other.at or one.restated < other.restated):
        return False
    more_words = other.loose < one.strict
    closer = closer_by >= MARGIN
    return {"words": more_words, "meaning": closer}.get(by, more_words or closer)
