"""Reads of one statement what it is about, what it says of that, and the values that it gives.

These keys are a function of the text and of who speaks, so that they can be kept with a statement:
`to_text` and `from_text` write and read them. Two statements that share no subject are about two
things (`share_a_subject`); how far the keys of two agree is evidence that one value changed
(`agreement`, in `rank/replacement`). Words are cut at the function words and verbs of the text's
language (`core/languages`): a language needs no code here. A capital counts for nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from anaphora.core.analyser import analyse
from anaphora.core.folding import typed_text
from anaphora.rank.statements import (
    HEAD,
    StatementReading,
    cut_at_function_words,
    read_statement,
    tokens_of_time,
)

SPEAKER: Final = "@"
"""Begins the subject of a first-person statement; the speaker's first name follows, if known."""

DAY, CLOCK, NUMBER, PATH = "day", "time", "number", "path"

_CLOCK: Final = re.compile(r"\b\d{1,2}[:.h]\d{2}\b(?![.,]\d)|\b\d{1,2} ?(?:am|pm|uhr)\b")
_NUMBER: Final = re.compile(r"\d[\d.,]*")
_WORD: Final = re.compile(r"[\w'’.,:/@-]+")
_PATH: Final = re.compile(r"[\w.-]*/[\w./-]+\w")


@dataclass(frozen=True, slots=True)
class StatementKeys:
    """What one statement is about, and what it says of it.

    `subjects` are the tokens of what it is about: what stands before the verb, paths, and in a
    first-person statement "@" with the speaker's first name. `attributes` are the kinds of value
    that it gives: "day", "time", "path", "number", and "number" with the word beside it ("number
    port"). `values` are the tokens of the values.
    """

    subjects: frozenset[str]
    attributes: frozenset[str]
    values: frozenset[str]

    def to_text(self) -> str:
        """The keys as one line of JSON, the same for equal keys."""
        parts = (self.subjects, self.attributes, self.values)
        return json.dumps([sorted(part) for part in parts], ensure_ascii=False)

    @classmethod
    def from_text(cls, text: str) -> StatementKeys:
        """The keys that `to_text` wrote. Raises ValueError for any other text."""
        subjects, attributes, values = (frozenset(part) for part in json.loads(text))
        return cls(subjects, attributes, values)


@lru_cache(maxsize=8192)
def read_keys(text: str, speaker: str = "") -> StatementKeys:
    """The keys of a statement; `speaker` is the speaker's name ("": not known)."""
    reading = read_statement(text)
    segments = cut_at_function_words(text)
    paths = _PATH.findall(typed_text(text))
    subjects = {*_subjects(reading, segments), *map(str.casefold, paths)}
    if reading.personal:
        subjects.add(SPEAKER + (speaker.split() or [""])[0].casefold())
    attributes, numbers = set[str](), set[str]()
    small = typed_text(text).casefold()
    if _CLOCK.search(small):
        attributes.add(CLOCK)
    if reading.told & tokens_of_time():
        attributes.add(DAY)
    if paths:
        attributes.add(PATH)
    for noun, number in _numbers(segments):
        numbers.add(number)
        attributes.add(f"{NUMBER} {noun}" if noun else NUMBER)
    values = (reading.told & tokens_of_time()) | numbers
    if len(segments) > 1:
        values |= frozenset(segments[-1]) - subjects
    return StatementKeys(frozenset(subjects), frozenset(attributes), values & reading.told)


def share_a_subject(
    first: StatementReading, one: StatementKeys, second: StatementReading, other: StatementKeys
) -> bool:
    """Whether a word of what one of two statements is about stands in the other, or the same
    speaker tells both of themselves; words of time are no subject."""
    speakers = [
        {word for word in keys.subjects if word.startswith(SPEAKER)} for keys in (one, other)
    ]
    if all(speakers) and (SPEAKER in speakers[0] | speakers[1] or speakers[0] & speakers[1]):
        return True
    if not (first.subject and second.subject):
        # Where no verb shows what one is about, any word may.
        shared = first.words & second.words
    else:
        shared = one.subjects & second.words | other.subjects & first.words
    # A single Chinese character is in too many words to tell of one thing.
    return any(len(word) > 1 for word in shared - tokens_of_time())


OF_KEYS: Final = (
    "newer subject held",  # the share of the newer one's subject that stands in the older
    "subjects in both",  # words of both subjects, as a share of three
    "other measure",  # each gives a number, with other words beside them
    "both days",  # each gives a day
    "both times",  # each gives a time of day
    "other kind",  # they give values of different kinds
    "same value",  # values that both give, as a share of three
    "value for value",  # each gives a value that the other lacks, and of one kind
    "older measured",  # it gives a value of a kind that is known
    "newer measured",
)
_MOST_SHARED: Final = 3


def agreement(
    first: StatementReading, one: StatementKeys, second: StatementReading, other: StatementKeys
) -> tuple[float, ...]:
    """How far the keys of an older and a newer statement agree, each 0 to 1, as `OF_KEYS`."""
    own, others = one.subjects - tokens_of_time(), other.subjects - tokens_of_time()
    held, lacking = second.words | other.subjects, first.words | one.subjects
    measures = [{kind for kind in keys.attributes if " " in kind} for keys in (one, other)]
    kinds = one.attributes & other.attributes
    return (
        len(others & lacking) / max(1, len(others)),
        min(len(own & others), _MOST_SHARED) / _MOST_SHARED,
        all(measures) and not measures[0] & measures[1],
        DAY in kinds,
        CLOCK in kinds,
        bool(one.attributes and other.attributes) and not kinds,
        min(len(one.values & other.values), _MOST_SHARED) / _MOST_SHARED,
        bool(one.values - held and other.values - lacking and kinds),
        bool(one.attributes),
        bool(other.attributes),
    )


def name_subject(text: str, one: StatementKeys, other: StatementKeys) -> str:
    """The words of `text` for what both keys are about; "" for none."""
    return _as_written(text, one.subjects & other.subjects)


def name_value(text: str, keys: StatementKeys, other: StatementReading) -> str:
    """The words of `text` for the values that another statement lacks; "" for none."""
    return _as_written(text, keys.values - other.words)


def _as_written(text: str, tokens: frozenset[str]) -> str:
    """The words of a text that have these tokens, each once, in their order."""
    words = (word.strip("'’.,:") for word in _WORD.findall(typed_text(text)[:HEAD]))
    named = (word for word in words if word and tokens.intersection(_tokens(word)))
    return " ".join(dict.fromkeys(named))


@lru_cache(maxsize=8192)
def _tokens(part: str) -> tuple[str, ...]:
    return tuple(analyse(part.lower(), keep_stop_words=False))


def _subjects(reading: StatementReading, segments: list[tuple[str, ...]]) -> Iterable[str]:
    """What stands before the verb; where no verb is known, all but the last words."""
    if reading.subject:
        return reading.subject
    return (token for segment in segments[:-1] or segments for token in segment)


def _numbers(segments: list[tuple[str, ...]]) -> Iterator[tuple[str, str]]:
    """Each number with the word beside it, "" for none."""
    for segment in segments:
        for place, token in enumerate(segment):
            if token[:1].isdigit():
                beside = (*segment[place + 1 : place + 2], *segment[max(0, place - 1) : place])
                noun = next((one for one in beside if not one[:1].isdigit()), "")
                yield noun, token
