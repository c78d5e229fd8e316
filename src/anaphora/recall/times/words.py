"""The words of a question, as the reading of times sees them.

In: the text of a question. Out: `Words`, folded, with their places, commas and breaks between them.
Nothing here knows a calendar word but the prepositions and pronouns that stand around one. Reading
is linear in the length of the text, whatever the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from anaphora.recall.times import calendar
from anaphora.recall.times.calendar import Days


class Word(NamedTuple):
    """A word of the question: its form, folded to lower case without "'s", and its place."""

    raw: str
    lower: str
    start: int
    end: int


class Match(NamedTuple):
    """A named time, naive and half-open, and the index of the first word after it."""

    start: datetime
    end: datetime
    next: int


@dataclass(frozen=True, slots=True)
class Words:
    """A question's words, the wall clock it is read at, and whether it asks about the future."""

    words: tuple[Word, ...]
    now: datetime
    forward: bool

    def at(self, index: int) -> str:
        """The folded word at an index; empty outside, "," for a comma, "." for any other break."""
        return self.words[index].lower if 0 <= index < len(self.words) else ""

    def capital(self, index: int) -> bool:
        """Whether the word has a capital and then small letters (all capitals say nothing)."""
        raw = self.words[index].raw
        return raw[:1].isupper() and raw[1:2].islower()

    def stated(self, index: int, leads: frozenset[str]) -> bool:
        """Whether a word of `leads` stands before the index, "the" aside."""
        before = index - 2 if self.at(index - 1) == "the" else index - 1
        return self.at(before) in leads

    def ends(self, index: int) -> bool:
        """Whether a phrase may end before this index: a break, a comma, or a joining word."""
        return self.at(index) in _AFTER


Matcher = Callable[[Words, int], Match | None]
RANGE = {"since", "before", "after", "until", "till", "between"}
LEADS = frozenset(
    RANGE | {"in", "on", "during", "throughout", "around", "early", "mid", "late", "of"}
)
OFFSETS = {"last": -1, "previous": -1, "past": -1, "this": 0, "current": 0, "next": 1, "coming": 1}
# What may follow "the 14th" where it is a day: "the 14th floor" is none.
_AFTER = frozenset(
    {
        "",
        ".",
        ",",
        "of",
        "at",
        "and",
        "or",
        "to",
        "when",
        "about",
        "did",
        "do",
        "was",
        "were",
        "with",
    }
    | {"in", "we", "i", "you", "they", "he", "she", "until", "till", *calendar.DAYPARTS}
)
VERBS = frozenset({"may", "march"})


def year_at(words: Words, index: int) -> int | None:
    """The year written at an index, 1990 to 2099."""
    word = words.at(index)
    if len(word) == 4 and word.isascii() and word.isdigit() and 1990 <= int(word) <= 2099:
        return int(word)
    return None


def nearest(words: Words, place: Callable[[int], Days]) -> Days:
    """What returns every year: the latest that has begun, or the next one in a forward question.

    Eight years are tried, because 29 February can stay away that long (1896 to 1904).
    """
    step = 1 if words.forward else -1
    for count in range(-1, 9):
        try:
            span = place(words.now.year + step * count)
        except ValueError:
            continue
        if (span[0] > words.now) if words.forward else (span[0] <= words.now):
            return span
    raise ValueError("no year has it")


def part_of_day(words: Words, match: Match) -> Match:
    """The morning, evening … of a matched day, when the next word names one."""
    hours = calendar.DAYPARTS.get(words.at(match.next))
    if hours is None:
        return match
    start, end = (calendar.back(match.start, "hour", -hour) for hour in hours)
    return Match(start, end, match.next + 1)


# Joined by these, several words are one: a path, a version, an identifier, a time of day.
_WORD = re.compile(r"\w+(?:[-.'’/:@–#+=\\]+\w+)*")
_JOINS = "_-.'’/:@–#+=\\"
# Marks that may stand inside a phrase without ending it.
_SOFT = " \t\r\n\f\v\u00a0*_\"'“”‘’()[]{}<>«»~`"
_FUTURE = frozenset({"will", "shall", "upcoming", "planned", "scheduled"}) | {
    f"{who}'ll" for who in ("i", "you", "we", "they", "he", "she", "it", "that", "there")
}
_PAST = frozenset({"did", "was", "were", "had", "said", "happened", "ago", "yesterday"})


def split(text: str, now: datetime) -> Words:
    """The words of a question read at the naive wall clock `now`."""
    words: list[Word] = []
    end = 0
    for found in _WORD.finditer(text):
        start = found.start()
        gap = text[end:start]
        if gap != " " and (mark := gap.strip(_SOFT)):
            words.append(Word(mark, "," if mark == "," else ".", end, start))
        end = found.end()
        raw = found.group()
        if raw.isalnum():
            words.append(Word(raw, raw.lower(), start, end))
        else:
            words.extend(_parts(raw, start))
    seen = {word.lower for word in words}
    future = not seen.isdisjoint(_FUTURE)
    return Words(tuple(words), now, forward=future and seen.isdisjoint(_PAST))


def _parts(raw: str, start: int) -> Iterator[Word]:
    """One word, or two for "mid-March"; without a possessive and without marks of emphasis."""
    # An underscore joins like a letter, and may hide a mark behind it ("_:the").
    plain = raw.strip(_JOINS)
    start += raw.find(plain)
    folded = plain.lower().replace("’", "'")
    if folded.endswith("'s"):
        plain, folded = plain[:-2], folded[:-2]
    head, dash, tail = folded.partition("-")
    if dash and head in {"early", "mid", "late"}:
        yield Word(plain[: len(head)], head, start, start + len(head))
        plain, folded, start = plain[len(head) + 1 :], tail, start + len(head) + 1
    if folded:
        yield Word(plain, folded, start, start + len(plain))
