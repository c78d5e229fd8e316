"""What a text says, and what a question asks, as far as their words tell: read once, then compared.

Of a text: its words, names, whether it asks or does not know, negates, speaks of the speaker. Of a
question: its words and names, and whether it asks for now, for the past, or for the first of all.
The known words are English, with the commonest of German and Spanish. It needs no numpy.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from anaphora.core.analyser import STOP_WORDS, analyse, query_terms
from anaphora.rank.dates import MONTH_OF, WEEKDAYS

_HEAD: Final = 600
"""Characters of a text that are read: what is pasted below says nothing of change."""


def _any_of(*parts: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(parts)})\b", re.IGNORECASE)


_UNKNOWN: Final = _any_of(
    r"(?:do|does|did)(?:n['’]t| not) (?:know|have|see|find|recall|remember|mention|say|tell)",
    r"(?:have|has)(?:n['’]t| not) (?:been (?:told|given)|come up|any|told|said|heard|seen|got)",
    r"(?:nobody|no one) (?:has )?(?:told|said|mentioned)",
    r"no (?:idea|record|note|information|mention)",
    r"nothing (?:about|on|noted|recorded|in my notes)",
    r"not sure|unknown|never (?:told|said|mentioned|came up)|can(?:['’]?t|not) (?:find|say|tell)",
    r"(?:is|are|was)(?:n['’]t| not) (?:in my notes|known|recorded)",
    r"weiß (?:ich )?(?:es )?nicht|keine (?:ahnung|notiz|information|angabe)\w*",
    r"no (?:lo )?s[eé]|no (?:me )?(?:consta|tengo|han dicho|ha dicho)|nadie (?:me )?(?:lo )?ha",
)
_QUESTION_WORD: Final = re.compile(
    r"(?:(?:and|so|hey|hi|hello|ok(?:ay)?|sorry|quick (?:one|question)|remind me|again|btw"
    r"|by the way|also|und|oye|y)\b[,:!. ]*)*"
    r"(?:what|which|who|whose|whom|when|where|why|how|is|are|was|were|do|does|did|has|have|can|could"
    r"|will|would|should|wer|wie|was|wann|wo|welche\w*|qué|quién|cuándo|dónde|cómo|cuál|cuánto)\b",
    re.IGNORECASE,
)
_ASKED: Final = _any_of("asked", "wanted to know", "wondered", "fragte", "preguntó")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+|\n+")
_CAPITAL: Final = re.compile(r"\b[A-Z\u00c0-\u00dd][^\W\d_]+")
_PERSONAL: Final = re.compile(
    r"\b(?:I|[Mm]y|[Mm]ine|me|I['’](?:m|ve|d|ll)|[Ii]ch|[Mm]ein\w*|mir|mich|[Mm]i|[Yy]o)\b"
)
_NEGATION: Final = _any_of(
    r"not?|\w+n['’]t|never|none|without|off|out|stopped|quit|nicht|kein\w*|nunca|ya no"
)
_CALENDAR: Final = frozenset((*MONTH_OF, *WEEKDAYS))
_MONTHS: Final = (
    "january|february|march|april|may|june|july|august|september|october|november|december"
    "|spring|summer|autumn|winter"
)
_FIRST: Final = _any_of(
    r"at first|original(?:ly)?|initial(?:ly)?|in the beginning|to begin with",
    r"start(?:ed)? (?:out|off)|first(?! (?:name|aid|floor|class|thing))",
    r"at the (?:very )?(?:start|beginning|outset)",
    r"ursprünglich|zuerst|anfangs|erste[rnms]?|al principio|primer[oa]?|inicialmente|originalmente",
)
_BEFORE: Final = _any_of(
    r"before|used to|former(?:ly)?|previous(?:ly)?|earlier|prior|back (?:in|then)",
    rf"last (?:year|{_MONTHS})|in (?:{_MONTHS}|(?:19|20)\d\d)",
    r"früher|vorher|antes|im (?:frühling|sommer|herbst|januar|februar|märz|mai|juni|juli|oktober)",
)
_PAST_TENSE: Final = _any_of("did", "was", "were", "had", "until", "old", "war", "hatte", "era")
_NOW: Final = _any_of(
    r"now(?:adays)?|these days|current(?:ly)?|latest|newest|at (?:the moment|present)|today|still",
    r"any ?more|most recent(?:ly)?|present(?:ly)?|jetzt|aktuell\w*|derzeit|momentan|inzwischen",
    r"ahora|actual(?:mente)?|hoy",
)


@dataclass(frozen=True, slots=True)
class StatementReading:
    """What is read of one text, whoever asks.

    `words` are its tokens without stop words, `told` those outside its questions, `names` what is
    written like a name, folded. `personal`: it speaks in the first person; `negated`: it
    holds a negation; `asks`: it is a question and little else; `unknown`: it says that something is
    not known.
    """

    words: frozenset[str]
    told: frozenset[str]
    names: frozenset[str]
    personal: bool
    negated: bool
    asks: bool
    unknown: bool
    length: int


@lru_cache(maxsize=8192)
def read_statement(text: str) -> StatementReading:
    """Read the first 600 characters of `text`."""
    head = text[:_HEAD]
    sentences = [one for one in _SENTENCE_END.split(head) if one.strip()]
    asking = [one for one in sentences if one.rstrip("\"')”’ ").endswith("?")]
    tokens = analyse(head, keep_stop_words=False)
    told, asks = tokens, False
    if asking:
        rest = " ".join(one for one in sentences if one not in asking)
        told, asks = analyse(rest, keep_stop_words=False), len(rest) <= len(head) / 3
    elif len(sentences) == 1 and not head.rstrip().endswith((".", "!")):
        asks = _QUESTION_WORD.match(head.strip()) is not None
    return StatementReading(
        frozenset(tokens),
        frozenset(told),
        _names(head),
        _PERSONAL.search(head) is not None,
        _NEGATION.search(head) is not None,
        asks or _ASKED.search(head) is not None,
        _UNKNOWN.search(head) is not None,
        len(tokens),
    )


def _names(text: str) -> frozenset[str]:
    found = {match.group().casefold() for match in _CAPITAL.finditer(text)}
    return frozenset(found - STOP_WORDS - _CALENDAR)


@dataclass(frozen=True, slots=True)
class QuestionCues:
    """What a question says of time, its words and the names in it.

    `past` is 0 for the present, 1 where only a tense speaks of the past ("was"), 2 where words do
    ("before", "used to"); `first` asks for the oldest ("at first"); `now` says so ("these days").
    """

    terms: frozenset[str]
    names: frozenset[str]
    past: int
    first: bool
    now: bool


@lru_cache(maxsize=1024)
def read_cues(question: str) -> QuestionCues:
    """Read what `question` says of time."""
    first, now = _FIRST.search(question) is not None, _NOW.search(question) is not None
    past = 0
    if first or _BEFORE.search(question):
        past = 2
    elif not now and _PAST_TENSE.search(question):
        past = 1
    names = _names(question)
    opening = _CAPITAL.match(question)
    if opening is not None and _QUESTION_WORD.match(question):
        names -= {opening.group().casefold()}
    return QuestionCues(frozenset(query_terms(question)), names, past, first, now)
