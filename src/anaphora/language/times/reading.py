"""Reads the times that a question names, as `TimeSpan`s in the asker's time zone.

The table of a language says how a time is worded (`patterns.py`), the kind of a phrase what it is
(`meaning.py`). Of several readings of a place the longest counts; then the words around it are
read: the day before, at the end of, between, since. Pure and conservative: a wrong span costs more
than a missed one, so what is not surely a time gives nothing. `read_times` states the rules that a
caller may rely on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Final

from anaphora.errors import InvalidInput
from anaphora.language.languages.language import (
    ENGLISH,
    Language,
    english,
    language_of,
    languages,
)
from anaphora.language.times import calendar
from anaphora.language.times.calendar import Days
from anaphora.language.times.meaning import Asked, Groups, key_of, read_days
from anaphora.language.times.patterns import (
    Affixes,
    MeaningT,
    Patterns,
    Phrase,
    Range,
    patterns_of,
)
from anaphora.language.times.words import line_of, small_letters, words_of
from anaphora.values.conversations import TimeSpan

__all__ = [
    "MAX_SPANS",
    "OPEN_END",
    "OPEN_START",
    "is_open_end",
    "is_open_start",
    "read_times",
    "read_told",
]

OPEN_START = datetime(1970, 1, 1)  # noqa: DTZ001 - wall clock; the zone is the asker's
"""Where "before" begins: turns without a time (year 1) are not in it."""
OPEN_END = datetime(2200, 1, 1)  # noqa: DTZ001
"""Where "since" ends."""
# The open sides of what lies beyond these: "before 1950", "since 2300".
_ANCIENT = datetime(2, 1, 1)  # noqa: DTZ001
_DISTANT = datetime(9999, 1, 1)  # noqa: DTZ001

# A pasted log names thousands of times; a question names few.
MAX_SPANS = 16
# A question that is so short may have no word that tells its language.
_SHORT = 200
# Several of these are one time only with the words around them; what stands before it is no sign
# of a beginning or an end where it is a part of the phrase.
_NAMED: Final = frozenset({"date", "weekday", "season", "holiday", "year"})
# Of a date: what `dates.py` reads, and a year.
_WRITTEN: Final = frozenset({"day_digits", "year", "first"})
# What is done every Friday names no day.
_USUAL: Final = frozenset({"weekday", "date"})
# A word for a day that is a name: "USA Today".
_CAPITAL_INSIDE: Final = re.compile(r"\w\s[^\W\d_a-z](?=[^\W\d_A-Z])")
# Kinds that lie behind or before the day of telling in a sentence of any tense.
_TENSELESS: Final = frozenset({"day", "ago", "rolling"})
_REACH: Final = 48
"""Characters before a time in which the words stand that relate it."""


def read_times(question: str, now: datetime) -> tuple[TimeSpan, ...]:
    """The spans of time that `question`, asked at `now`, names; at most `MAX_SPANS`.

    Spans are half-open and in the zone of `now`; days are whole days there, weeks begin on Monday.
    What returns (a weekday, a month, a day of the month, a holiday) is the most recent one that has
    begun (a weekday: before today), or the next one where the question speaks of the future
    ("will", "planned"). "Since X" and "after X" end at `OPEN_END`, "before X" and "until X" begin
    at `OPEN_START`. Raises InvalidInput when `now` has no zone.

    A question in a language that a file of `language/languages` has times of is read by that; one
    in no known language as English, and if that finds nothing by whichever language finds most.
    """
    if now.tzinfo is None:
        raise InvalidInput("now", now, "expected a datetime with a time zone")
    wall = now.replace(tzinfo=None, fold=0)
    code, by_code = language_of(question), languages()
    language = by_code[code] if code and by_code[code].times else english()
    times = _read_in(language, question, wall)
    if not times and language.code != code and len(question) <= _SHORT:
        readings = (
            _read_in(other, question, wall, digits=False)
            for other in by_code.values()
            if other.code != ENGLISH
        )
        times = max(readings, key=lambda times: sum(time.last - time.first for time in times))
    return tuple(
        TimeSpan(
            start=time.start.replace(tzinfo=now.tzinfo),
            end=time.end.replace(tzinfo=now.tzinfo),
            text=question[time.first : time.last],
            start_char=time.first,
            end_char=time.last,
        )
        for time in times
    )


def read_told(patterns: Patterns, sentence: str, now: datetime) -> Iterator[Days]:
    """The days of which a sentence, told at `now` (naive), speaks by the day of telling.

    What returns is the latest one in a sentence of the past, else the next one.
    """
    text = line_of(sentence) if patterns.by_words else sentence
    yield from _TimeReader(patterns, text).read_told(now)


def is_open_start(span: TimeSpan) -> bool:
    """Whether a span has no beginning: "before 1995"."""
    return span.start.replace(tzinfo=None) in (OPEN_START, _ANCIENT)


def is_open_end(span: TimeSpan) -> bool:
    """Whether a span has no end: "since March"."""
    return span.end.replace(tzinfo=None) in (OPEN_END, _DISTANT)


@dataclass(frozen=True, slots=True)
class _Named:
    """A time in a text: naive and half-open, and the characters that name it.

    `core` is where its own words begin (-1: nothing before relates it). `unsure`: it is a time only
    as one side of a relation.
    """

    start: datetime
    end: datetime
    first: int
    last: int
    core: int
    phrase: Phrase
    groups: Groups
    unsure: bool = False

    @property
    def days(self) -> Days:
        return self.start, self.end

    @property
    def is_day(self) -> bool:
        """Whether it is one day, all of it."""
        return (self.end - self.start).days == 1

    def related(self, days: Days, first: int | None = None, last: int | None = None) -> _Named:
        """It with the days that the words around it give it, and with these words."""
        time = replace(self, start=days[0], end=days[1], last=last or self.last, unsure=False)
        if first is None:
            return time
        first = min(self.first, first)
        return replace(time, first=first, core=first)


def _read_in(
    language: Language, question: str, now: datetime, *, digits: bool = True
) -> list[_Named]:
    """The times that `question` names in a language, in their order; `now` is naive.

    `digits`: dates in digits alone, too, the day before the month, as everywhere but in English.
    """
    patterns = patterns_of(language)
    if patterns is None:
        return []
    words = words_of(question) if patterns.by_words else None
    text = words.line if words else question
    if patterns.signs and not patterns.signs.search(text):
        return []
    times = _TimeReader(patterns, text).read(now, digits)
    if words is None:
        return times
    return [
        replace(time, first=words.starts[time.first], last=words.ends[time.last]) for time in times
    ]


@dataclass(frozen=True, slots=True)
class _TimeReader:
    """Reads a text by the patterns of a language."""

    patterns: Patterns
    text: str

    def read(self, now: datetime, digits: bool) -> list[_Named]:
        """The times that the text names, asked at `now`, in their order."""
        patterns, text = self.patterns, self.text
        lower_text = small_letters(text)
        asks_forward = patterns.tells(lower_text, "future")
        asks_forward = asks_forward and not patterns.tells(lower_text, "past")
        context = Asked(now, asks_forward)
        times_read = (
            self._read_match(phrase, match, context)
            for phrase in patterns.phrases
            if digits or phrase.kind != "numeric"
            for match in phrase.pattern.finditer(text)
        )
        readings = sorted(filter(None, times_read), key=lambda time: (time.first, -time.last))
        while True:
            times = list(islice(self._relate(_choose_longest(readings)), MAX_SPANS))
            unrelated = {time.first for time in times if time.unsure}
            if not unrelated:
                return [time for time in times if time.start < time.end]
            readings = [time for time in readings if not (time.unsure and time.first in unrelated)]

    def read_told(self, now: datetime) -> Iterator[Days]:
        """The days that the text, told at `now`, means without writing them out."""
        patterns, text = self.patterns, self.text
        lower_text = small_letters(text)
        matches = [
            (phrase, match)
            for group in patterns.told
            if group.gate.search(lower_text)
            for start in group.starts.finditer(lower_text)
            for phrase in group.phrases
            if (match := phrase.pattern.match(text, start.start()))
        ]
        matches.sort(key=lambda pair: (_first_of(pair[1]), -pair[1].end()))
        kinds = {phrase.kind for phrase, _ in matches}
        is_past = not kinds <= _TENSELESS and bool(
            patterns.tells(lower_text, "past") or patterns.happened.search(text)
        )
        context = Asked(now, not is_past or patterns.tells(lower_text, "future"))
        is_usual = not kinds <= _TENSELESS and patterns.tells(lower_text, "usual")
        is_lasting = "ahead" in kinds and (is_usual or patterns.tells(lower_text, "lasting"))
        least = end = 0
        for phrase, match in matches:
            # The earliest, of those the longest, and what follows behind it.
            named = self._read_match(phrase, match, context) if _first_of(match) >= end else None
            if named is None or named.unsure:
                continue
            end = named.last
            time, kind = self._read_part(named, least), named.phrase.kind
            least = time.last
            if is_usual and kind in _USUAL and not _is_explicit(named):
                continue
            if kind == "day" and _CAPITAL_INSIDE.match(text, max(0, named.first - 2)):
                continue
            if kind == "ahead" and (is_lasting or not context.forward):
                continue
            offset = key_of(named.groups, "offset")
            # The unit that is under way: "this year".
            if kind == "unit" and (named.phrase.detail == ("0",) or offset in {"this", "now"}):
                if key_of(named.groups, "unit") != "weekend":
                    continue
                if not context.forward and time.start > now:
                    # "At the weekend", told on the Monday after it.
                    time = time.related(calendar.unit_of(now, "weekend", -1))
            if kind != "date" or _is_explicit(named) or not named.groups.keys() & _WRITTEN:
                yield time.days

    def _read_match(self, phrase: Phrase, match: re.Match[str], asked: Asked) -> _Named | None:
        """What a phrase means, None if it only has the form of a time: 30 February."""
        with suppress(ValueError, OverflowError):
            reading = self._read_form(phrase, match, asked)
            return reading if reading is not None and reading.start < reading.end else None
        return None

    def _read_form(self, phrase: Phrase, match: re.Match[str], asked: Asked) -> _Named | None:
        first = core = _first_of(match)
        unsure = False
        if phrase.lead and ("unsure" not in match.re.groupindex or match.start("unsure") >= 0):
            led = self._before(phrase.lead, first) or self._before(self.patterns.relations, first)
            unsure = not led
            if unsure and not self._before(self.patterns.sides_of_relations, first):
                return None
        groups = _groups(match)
        if phrase.kind == "holiday":
            at = match.start(f"holiday_{key_of(groups, 'holiday')}")
            if around := self._before(self.patterns.around, at):
                groups["around"] = around[0]
        days = read_days(phrase.kind, phrase.detail, groups, asked)
        if phrase.kind in _NAMED and not self.patterns.by_words:
            core = min((match.start(name) for name in groups), default=core)
        elif phrase.kind == "ago" and not phrase.detail:
            core = -1
        return _Named(*days, first, match.end(), core, phrase, groups, unsure)

    def _before(self, pattern: re.Pattern[str], end: int, least: int = 0) -> re.Match[str] | None:
        """What stands directly before a place, behind the previous time."""
        return pattern.search(self.text, max(least, end - _REACH), end)

    def _relate(self, times: Sequence[_Named]) -> Iterator[_Named]:
        """The times as the words around them say: since, before, between, at the beginning of."""
        at = least = 0
        while at < len(times):
            time = self._read_part(times[at], least)
            following = times[at + 1] if at + 1 < len(times) else None
            joined_time = None
            with suppress(ValueError, OverflowError):
                joined_time = self._join(times[at], time, following, least)
            related_time = (
                joined_time or self._change(time, self.patterns.sides, _open_sided, least) or time
            )
            at += 1
            if joined_time and following and joined_time.last >= following.last:
                at += 1
            least = related_time.last
            yield related_time

    def _read_part(self, time: _Named, least: int) -> _Named:
        """A third of a time, or what lies beside it, where the words around it say so."""
        if time.core < 0:
            return time
        if third := self._change(time, self.patterns.thirds, calendar.third_of, least):
            return third
        if match := self._before(self.patterns.beside, time.core, least):
            groups = _groups(match)
            side = key_of(groups, "side")
            if side != "of" or (time.end - time.start).days <= 1:
                with suppress(ValueError, OverflowError):
                    days = calendar.beside(time.days, side, key_of(groups, "unit"))
                    return time.related(days, match.start())
        return time

    def _join(
        self, whole: _Named, time: _Named, following: _Named | None, least: int
    ) -> _Named | None:
        """Two times as the ends of one: "between X and Y". `time` is a part of `whole`, or all."""
        for pattern in self.patterns.ranges:
            core = max(time.core, time.first)
            match = self._before(pattern.before_with_day, core, least) if time.is_day else None
            if match:
                first_day = time.start.replace(day=int(match["bare"]))
                if (start := calendar.day_of(first_day)[0]) < time.end:
                    return time.related((start, time.end), match.start())
            lead = self._before(pattern.before, core, least)
            if lead is None and self.patterns.spaced:
                continue
            second = self._find_second(pattern, time, following)
            if second is None:
                continue
            if time.start >= second.start:
                # "from November to February", "between Friday and Monday": the X before that Y.
                phrase, asked_then = whole.phrase, Asked(second.start, forward=False)
                days = read_days(phrase.kind, phrase.detail, whole.groups, asked_then)
                time = self._read_part(replace(whole, start=days[0], end=days[1]), least)
            if time.start < second.end:
                first = lead.start() if lead and self.patterns.by_words else None
                return time.related((time.start, second.end), first, second.last)
        return None

    def _find_second(self, pattern: Range, time: _Named, following: _Named | None) -> _Named | None:
        if following is not None:
            second = self._read_part(following, time.last)
            core = max(second.core, second.first)
            if pattern.between.fullmatch(self.text, time.last, core):
                return second
        match = pattern.behind_with_day.match(self.text, time.last) if time.is_day else None
        if match is None or (following is not None and following.first < match.end()):
            return None
        day = calendar.day_of(time.start.replace(day=int(match["bare"])))
        return time.related(day, last=match.end())

    def _change(
        self,
        time: _Named,
        affixes: Affixes[MeaningT],
        change: Callable[[Days, MeaningT], Days],
        least: int,
    ) -> _Named | None:
        """The time with its days changed by the words around it; None where none relate it so."""
        if time.core < 0:
            return None
        for meaning, pattern in affixes.before.items():
            if match := self._before(pattern, time.core, least):
                return time.related(change(time.days, meaning), match.start())
        for meaning, pattern in affixes.behind.items():
            if match := pattern.match(self.text, time.last):
                return time.related(change(time.days, meaning), last=match.end())
        return None


def _first_of(match: re.Match[str]) -> int:
    """Where the words of a time begin in what its phrase matches."""
    return match.start("core") if "core" in match.re.groupindex else match.start()


def _choose_longest(readings: Sequence[_Named]) -> list[_Named]:
    """The earliest, of those the longest, and what follows behind it."""
    times: list[_Named] = []
    for time in readings:
        if not times or time.first >= times[-1].last:
            times.append(time)
    return times


def _is_explicit(time: _Named) -> bool:
    """Whether it says which one is meant: "last Friday", "May of last year"."""
    return bool(time.phrase.detail) or any(
        key_of(time.groups, kind) for kind in ("offset", "week", "year")
    )


def _groups(match: re.Match[str]) -> dict[str, str]:
    return {name: words for name, words in match.groupdict().items() if words}


def _open_sided(days: Days, side: str) -> Days:
    """What lies "since", "after", "before" or "until" some days: one side is open."""
    if side in {"since", "after"}:
        start = days[0] if side == "since" else days[1]
        return start, OPEN_END if start < OPEN_END else _DISTANT
    end = days[0] if side == "before" else days[1]
    return OPEN_START if end > OPEN_START else _ANCIENT, end
