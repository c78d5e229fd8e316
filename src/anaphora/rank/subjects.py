"""Reads of one statement what it is about, what it says of that, and the values that it gives.

These keys are a function of the text and of who speaks, so that they can be kept with a statement:
`to_text` and `from_text` write and read them. Two statements that share no subject are about two
things (`share_a_subject`); how far the keys of two agree is evidence that one value changed
(`agreement`, in `rank/replacement`). Words are cut at the function words and verbs of the text's
language (`language/languages`): a language needs no code here. A capital counts for nothing.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Final

from anaphora.language.analyser import analyse
from anaphora.language.folding import typed_text
from anaphora.rank.statements import (
    HEAD,
    StatementReading,
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
    segments = reading.segments
    paths = _PATH.findall(typed_text(text))
    # What stands before the verb; if no verb is known, all but the last words.
    words_before = reading.subject or chain(*(segments[:-1] or segments))
    subjects = {*words_before, *map(str.casefold, paths)}
    if reading.personal:
        subjects.add(SPEAKER + (speaker.split() or [""])[0].casefold())
    attributes, numbers = set[str](), set[str]()
    lower_text = typed_text(text).casefold()
    if _CLOCK.search(lower_text):
        attributes.add(CLOCK)
    if reading.told & tokens_of_time():
        attributes.add(DAY)
    if paths:
        attributes.add(PATH)
    for segment in segments:
        for index, token in enumerate(segment):
            if token[:1].isdigit():
                numbers.add(token)
                # With the word beside the number.
                beside = (*segment[index + 1 : index + 2], *segment[max(0, index - 1) : index])
                noun = next((word for word in beside if not word[:1].isdigit()), "")
                attributes.add(f"{NUMBER} {noun}" if noun else NUMBER)
    values = (reading.told & tokens_of_time()) | numbers
    if len(segments) > 1:
        values |= frozenset(segments[-1]) - subjects
    return StatementKeys(frozenset(subjects), frozenset(attributes), values & reading.told)


def share_a_subject(
    first: StatementReading,
    first_keys: StatementKeys,
    second: StatementReading,
    second_keys: StatementKeys,
) -> bool:
    """Whether a word of what one of two statements is about stands in the other, or the same
    speaker tells both of themselves; words of time are no subject."""
    if not (first.subject and second.subject):
        # Where no verb shows what one is about, any word may.
        shared_words = first.words & second.words
    else:
        shared_words = first_keys.subjects & second.words | second_keys.subjects & first.words
    # A single Chinese character is in too many words to tell of one thing.
    if any(len(word) > 1 for word in shared_words - tokens_of_time()):
        return True
    speakers = [
        {word for word in keys.subjects if word.startswith(SPEAKER)}
        for keys in (first_keys, second_keys)
    ]
    return all(speakers) and (
        SPEAKER in speakers[0] | speakers[1] or bool(speakers[0] & speakers[1])
    )


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
    older: StatementReading,
    older_keys: StatementKeys,
    newer: StatementReading,
    newer_keys: StatementKeys,
) -> tuple[float, ...]:
    """How far the keys of an older and a newer statement agree, each 0 to 1, as `OF_KEYS`."""
    older_subjects, newer_subjects = (
        older_keys.subjects - tokens_of_time(),
        newer_keys.subjects - tokens_of_time(),
    )
    newer_words, older_words = newer.words | newer_keys.subjects, older.words | older_keys.subjects
    measures = [
        {kind for kind in keys.attributes if " " in kind} for keys in (older_keys, newer_keys)
    ]
    kinds = older_keys.attributes & newer_keys.attributes
    return (
        len(newer_subjects & older_words) / max(1, len(newer_subjects)),
        min(len(older_subjects & newer_subjects), _MOST_SHARED) / _MOST_SHARED,
        all(measures) and not measures[0] & measures[1],
        DAY in kinds,
        CLOCK in kinds,
        bool(older_keys.attributes and newer_keys.attributes) and not kinds,
        min(len(older_keys.values & newer_keys.values), _MOST_SHARED) / _MOST_SHARED,
        bool(older_keys.values - newer_words and newer_keys.values - older_words and kinds),
        bool(older_keys.attributes),
        bool(newer_keys.attributes),
    )


def name_subject(text: str, keys: StatementKeys, other_keys: StatementKeys) -> str:
    """The words of `text` for what both keys are about; "" for none."""
    return _write_tokens(text, keys.subjects & other_keys.subjects)


def name_value(text: str, keys: StatementKeys, other: StatementReading) -> str:
    """The words of `text` for the values that another statement lacks; "" for none."""
    return _write_tokens(text, keys.values - other.words)


def _write_tokens(text: str, tokens: frozenset[str]) -> str:
    """The words of a text that have these tokens, each once, in their order."""
    words = (word.strip("'’.,:") for word in _WORD.findall(typed_text(text)[:HEAD]))
    named_words = (word for word in words if word and tokens.intersection(_tokenise(word)))
    return " ".join(dict.fromkeys(named_words))


@lru_cache(maxsize=8192)
def _tokenise(part: str) -> tuple[str, ...]:
    return tuple(analyse(part.lower(), keep_stop_words=False))
