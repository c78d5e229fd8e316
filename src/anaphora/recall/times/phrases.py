"""The phrases that name a time: "March 5", "2026-03", "Q1", "Christmas"; "yesterday", "last week".

A matcher gets the words of a question and an index into them and returns a `TimeMatch` (the naive
span, and the index after it) or None. A word that is more often something else (may, march, fall,
Sun, June as a name) needs a sign that a time is meant: a preposition, a day or a year. Weeks begin
on Monday. "last week" is the calendar's, "the past week" and "in the last week" go from this day a
week ago to the end of today. "Two weeks ago" is that day and half a week to either side, because
that is how exactly people count. A date that does not exist raises ValueError.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from anaphora.core.dates import MONTH_OF, MONTH_SHORT, MONTHS
from anaphora.core.word_lists import words
from anaphora.recall.times import calendar
from anaphora.recall.times.calendar import Days


class QuestionWord(NamedTuple):
    """A word of the question: its form, folded to lower case without "'s", and its place."""

    raw: str
    lower: str
    start: int
    end: int


class TimeMatch(NamedTuple):
    """A named time, naive and half-open, and the index of the first word after it."""

    start: datetime
    end: datetime
    next: int


@dataclass(frozen=True, slots=True)
class QuestionWords:
    """A question's words, the wall clock it is read at, and whether it asks about the future."""

    words: tuple[QuestionWord, ...]
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
        lead_index = index - 2 if self.at(index - 1) == "the" else index - 1
        return self.at(lead_index) in leads

    def ends(self, index: int) -> bool:
        """Whether a phrase may end before this index: a break, a comma, or a joining word."""
        return self.at(index) in _AFTER


Matcher = Callable[[QuestionWords, int], TimeMatch | None]
RANGE = {"since", "before", "after", "until", "till", "between"}
LEADS = frozenset(
    RANGE | {"in", "on", "during", "throughout", "around", "early", "mid", "late", "of"}
)
OFFSETS = {"last": -1, "previous": -1, "past": -1, "this": 0, "current": 0, "next": 1, "coming": 1}
# What may follow "the 14th" where it is a day: "the 14th floor" is none.
_AFTER = frozenset({"", ".", ",", *calendar.DAYPARTS}) | words(
    "of at and or to when about did do was were with in we i you they he she until till"
)
VERBS = frozenset({"may", "march"})


def year_at(words: QuestionWords, index: int) -> int | None:
    """The year written at an index, 1990 to 2099."""
    word = words.at(index)
    if len(word) == 4 and word.isascii() and word.isdigit() and 1990 <= int(word) <= 2099:
        return int(word)
    return None


def nearest(words: QuestionWords, place: Callable[[int], Days]) -> Days:
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


def part_of_day(words: QuestionWords, match: TimeMatch) -> TimeMatch:
    """The morning, evening … of a matched day, when the next word names one."""
    hours = calendar.DAYPARTS.get(words.at(match.next))
    if hours is None:
        return match
    start, end = (calendar.back(match.start, "hour", -hour) for hour in hours)
    return TimeMatch(start, end, match.next + 1)


# Joined by these, several words are one: a path, a version, an identifier, a time of day.
_WORD = re.compile(r"\w+(?:[-.'’/:@–#+=\\]+\w+)*")
_JOINS = "_-.'’/:@–#+=\\"
# Marks that may stand inside a phrase without ending it.
_SOFT = " \t\r\n\f\v\u00a0*_\"'“”‘’()[]{}<>«»~`"
_FUTURE = frozenset({"will", "shall", "upcoming", "planned", "scheduled"}) | {
    f"{who}'ll" for who in ("i", "you", "we", "they", "he", "she", "it", "that", "there")
}
_PAST = frozenset({"did", "was", "were", "had", "said", "happened", "ago", "yesterday"})


def split(text: str, now: datetime) -> QuestionWords:
    """The words of a question read at the naive wall clock `now`.

    "mid-March" is two; a possessive and marks of emphasis are left out.
    """
    words: list[QuestionWord] = []
    end = 0
    for match in _WORD.finditer(text):
        start = match.start()
        gap = text[end:start]
        if gap != " " and (mark := gap.strip(_SOFT)):
            words.append(QuestionWord(mark, "," if mark == "," else ".", end, start))
        end = match.end()
        raw = match.group()
        if raw.isalnum():
            words.append(QuestionWord(raw, raw.lower(), start, end))
            continue
        # An underscore joins like a letter, and may hide a mark behind it ("_:the").
        plain = raw.strip(_JOINS)
        start += raw.find(plain)
        folded_text = plain.lower().replace("’", "'")
        if folded_text.endswith("'s"):
            plain, folded_text = plain[:-2], folded_text[:-2]
        head, dash, tail = folded_text.partition("-")
        if dash and head in {"early", "mid", "late"}:
            words.append(QuestionWord(plain[: len(head)], head, start, start + len(head)))
            plain, folded_text, start = plain[len(head) + 1 :], tail, start + len(head) + 1
        if folded_text:
            words.append(QuestionWord(plain, folded_text, start, start + len(plain)))
    lowered_words = {word.lower for word in words}
    future = not lowered_words.isdisjoint(_FUTURE)
    return QuestionWords(tuple(words), now, forward=future and lowered_words.isdisjoint(_PAST))


_YEAR_LEADS = frozenset(LEADS - {"on", "around", "of"})
_ORDINAL_LEADS = frozenset(RANGE | {"on", "from"})
_AROUND = frozenset({"at", "over", "around", "during", "about"})
_HOLIDAY_LEADS = frozenset(RANGE | _AROUND | {"on"})
_OWNERS = frozenset({"the", "our", "my", "your", "their", "his", "her", "its"})
# "after 2048 tokens" counts; it names no year.
_COUNTED = words(
    "bits bytes dollars euros files items jobs lines messages ms parcels people points records"
    " requests rows steps times tokens users words"
)
_NOT_WEEKDAY = frozenset({"every", "each", "any", "most", "black", "good", "cyber", "ash", "palm"})
_AMBIGUOUS = frozenset({"april", "may", "june", "august", "march"})
_ISO = re.compile(r"(\d{4})([-/])(\d{1,2})\2(\d{1,2})(?:t[\d:.]+z?)?", re.ASCII)
_ISO_MONTH = re.compile(r"(\d{4})-(\d{2})", re.ASCII)
_SLASHES = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})", re.ASCII)
_DOTS = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})", re.ASCII)
_DAYS = re.compile(r"(\d{1,2})[-–](\d{1,2})", re.ASCII)
_DAY_NUMBER = re.compile(r"(\d{1,2})(st|nd|rd|th)?", re.ASCII)
_LONGEST = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_QUARTER = re.compile(r"q([1-4])", re.ASCII)


def numeric_at(words: QuestionWords, index: int) -> TimeMatch | None:
    """A date in digits that reads one way only: 2026-03-05, 2026-03, 5.3.2026, 25/3/2026, …"""
    text = words.at(index)
    if iso := _ISO.fullmatch(text):
        return _read_day(words, int(iso[1]), int(iso[3]), int(iso[4]), index + 1)
    if iso := _ISO_MONTH.fullmatch(text):
        if not 1990 <= int(iso[1]) <= 2099:
            return None
        return TimeMatch(*calendar.month_of(int(iso[1]), int(iso[2])), index + 1)
    # With dots the day stands first wherever they are in use. 1.2.2024 may be a version, too: one
    # that is a day of our time is taken for it.
    if (dots := _DOTS.fullmatch(text)) and 1990 <= int(dots[3]) <= 2099:
        return _read_day(words, int(dots[3]), int(dots[2]), int(dots[1]), index + 1)
    if days := _DAYS.fullmatch(text):
        month = _read_month(words, index + 1)
        return None if month is None else _read_days(words, month, days, index + 2)
    if slashes := _SLASHES.fullmatch(text):
        low, high = sorted((int(slashes[1]), int(slashes[2])))
        # 5/3/2026 is March in one country and May in another: only what reads one way is read.
        if high > 12 or low == high:
            return _read_day(words, int(slashes[3]), low, high, index + 1)
    return None


def _read_days(
    words: QuestionWords, month: int, days: re.Match[str], after: int
) -> TimeMatch | None:
    last_day = in_year(words, month, int(days[2]), after)
    if last_day is None or int(days[1]) >= int(days[2]):
        return None
    return TimeMatch(last_day.start.replace(day=int(days[1])), last_day.end, last_day.next)


def _read_day(words: QuestionWords, year: int, month: int, day: int, after: int) -> TimeMatch:
    start = calendar.month_of(year, month)[0].replace(day=day)
    return part_of_day(words, TimeMatch(*calendar.day_of(start), after))


def _read_day_number(words: QuestionWords, index: int) -> int | None:
    match = _DAY_NUMBER.fullmatch(words.at(index))
    return int(match[1]) if match and 1 <= int(match[1]) <= 31 else None


def day_month_at(words: QuestionWords, index: int, stated: bool) -> TimeMatch | None:
    """ "5 March", "5th of March 2026", "the 14th" after a preposition."""
    day = _read_day_number(words, index)
    if day is None:
        return None
    next_index = index + 2 if words.at(index + 1) == "of" else index + 1
    month = _read_month(words, next_index)
    ordinal = words.at(index)[-1].isalpha()
    # "5 may" or "5 march" is a date by its capital, its ordinal or its year.
    is_date = words.at(next_index) not in VERBS or words.capital(next_index) or ordinal
    if month is not None and (is_date or year_at(words, next_index + 1) is not None):
        return in_year(words, month, day, next_index + 1)
    ordinal = ordinal and words.at(index - 1) == "the"
    if ordinal and (stated or words.stated(index, _ORDINAL_LEADS)) and words.ends(index + 1):
        step = 1 if words.forward else -1
        for count in range(13):
            first_day = calendar.unit_of(words.now, "month", step * count)[0]
            start, end = calendar.day_of(first_day, day - 1)
            fits_direction = start > words.now if words.forward else start <= words.now
            if start.month == first_day.month and fits_direction:
                return part_of_day(words, TimeMatch(start, end, index + 1))
        raise ValueError(day)
    return None


def _read_month(words: QuestionWords, index: int) -> int | None:
    name = words.at(index)
    if name in MONTH_SHORT and not words.capital(index) and not year_at(words, index + 1):
        return None
    return MONTH_OF.get(name)


def month_at(words: QuestionWords, index: int, stated: bool) -> TimeMatch | None:
    """ "March", "March 5", "March 5th, 2026"."""
    month = _read_month(words, index)
    if month is None:
        return None
    if days := _DAYS.fullmatch(words.at(index + 1)):
        return _read_days(words, month, days, index + 2)
    day = _read_day_number(words, index + 1)
    verb = words.at(index) in VERBS and not words.capital(index)
    is_led = stated or words.stated(index, LEADS)
    # "in March 5 people left" has no day.
    if (
        day is not None
        and (is_led or not verb)
        and (
            words.at(index + 1)[-1].isalpha()
            or words.at(index - 1) != "in"
            or words.ends(index + 2)
            or year_at(words, index + 2) is not None
        )
    ):
        return in_year(words, month, day, index + 2)
    name, previous_word = words.at(index), words.at(index - 1)
    is_listed = previous_word in {"and", "or", ","} and words.at(index - 2) in MONTHS
    by_name = name not in _AMBIGUOUS or (
        words.capital(index) and (is_listed or previous_word in _OWNERS)
    )
    if (
        is_led
        or (by_name and name not in MONTH_SHORT)
        or _read_year_after(words, index + 1) is not None
    ):
        return in_year(words, month, None, index + 1)
    return None


def _read_year_after(words: QuestionWords, index: int) -> tuple[int, int] | None:
    """The year written here ("2026", ", 2026", "of 2026", "last year") and the place after."""
    if words.at(index + 1) == "year" and words.at(index) in OFFSETS:
        return words.now.year + OFFSETS[words.at(index)], index + 2
    year_index = index + 1 if words.at(index) in {",", "of"} else index
    year = year_at(words, year_index)
    return None if year is None else (year, year_index + 1)


def in_year(words: QuestionWords, month: int, day: int | None, after: int) -> TimeMatch | None:
    """The month or day in the year written after it, or else in the nearest year that has it."""

    def place(year: int) -> Days:
        if day is None:
            return calendar.month_of(year, month)
        return calendar.day_of(calendar.month_of(year, month)[0].replace(day=day))

    if day is not None and day > _LONGEST[month - 1]:
        return None
    match = _returning(words, place, after)
    return match if day is None or match is None else part_of_day(words, match)


def _returning(
    words: QuestionWords, place: Callable[[int], Days], after: int, led: bool = True
) -> TimeMatch | None:
    """What returns every year: in the year written after it, or where it is `led` the nearest."""
    written_year = _read_year_after(words, after)
    if written_year is not None:
        return TimeMatch(*place(written_year[0]), written_year[1])
    return TimeMatch(*nearest(words, place), after) if led else None


def plain_year_at(words: QuestionWords, index: int, stated: bool) -> TimeMatch | None:
    """A year after a preposition, or "2026 Q1"."""
    year = year_at(words, index)
    quarter = _QUARTER.fullmatch(words.at(index + 1))
    if year is not None and quarter:
        return TimeMatch(*calendar.month_of(year, int(quarter[1]) * 3 - 2, 3), index + 2)
    is_led = stated or words.stated(index, _YEAR_LEADS)
    if year is None or not is_led or words.at(index + 1) in _COUNTED:
        return None
    return TimeMatch(*calendar.month_of(year, 1, 12), index + 1)


def quarter_at(words: QuestionWords, index: int, stated: bool) -> TimeMatch | None:
    """ "Q1 2026", and "Q1" after a preposition."""
    quarter = _QUARTER.fullmatch(words.at(index))
    if quarter is None:
        return None
    first_month = int(quarter[1]) * 3 - 2
    is_led = stated or words.stated(index, LEADS)
    return _returning(
        words, lambda year: calendar.month_of(year, first_month, 3), index + 1, is_led
    )


def season_at(words: QuestionWords, index: int, stated: bool) -> TimeMatch | None:
    """ "spring 2026", and "summer" or "winter" after a preposition."""
    name = words.at(index)
    # "in Spring" is a framework and "in the fall of" a drop as often as a season.
    plain = name in {"summer", "winter", "autumn"}
    is_led = plain and (stated or words.stated(index, LEADS))
    return _returning(words, lambda year: calendar.season_of(year, name), index + 1, is_led)


def holiday_at(words: QuestionWords, index: int, stated: bool) -> TimeMatch | None:
    """ "around Christmas", "New Year's Eve 2025"; three days to either side unless "on"."""
    name, next_index = words.at(index), index + 1
    if name == "new":
        name, next_index = f"new {words.at(next_index)}", next_index + 1
        if words.at(next_index) in {"eve", "day"}:
            name, next_index = f"{name} {words.at(next_index)}", next_index + 1
    elif words.at(next_index) == "day":
        next_index += 1
    if name not in calendar.HOLIDAYS or not words.capital(index):
        return None
    is_led = stated or words.stated(index, _HOLIDAY_LEADS)
    day = _returning(
        words, lambda year: calendar.day_of(calendar.holiday(year, name)), next_index, is_led
    )
    if day is None or not words.stated(index, _AROUND):
        return day
    return TimeMatch(calendar.day_of(day.start, -3)[0], calendar.day_of(day.start, 3)[1], day.next)


def weekday_at(words: QuestionWords, index: int, stated: bool) -> TimeMatch | None:
    """ "Tuesday", "Tuesday morning", "Tuesday last week", "Tuesday, March 5"."""
    name = words.at(index)
    is_short = name in calendar.WEEKDAY_SHORT
    is_led = stated or words.at(index - 1) == "on"
    if (is_short and not (is_led and words.capital(index))) or words.at(index - 1) in _NOT_WEEKDAY:
        return None
    number = calendar.WEEKDAY_OF[name]
    next_index = index + 1
    while words.at(next_index) in {",", "the"}:
        next_index += 1
    # "Tuesday, March 5" is one day, and the date says which.
    date_match = month_at(words, next_index, False) or day_month_at(words, next_index, True)
    if date_match is not None and (date_match.end - date_match.start).days <= 1:
        return date_match
    next_index = index + 2 if words.at(index + 1) == "of" else index + 1
    if words.at(next_index) in OFFSETS and words.at(next_index + 1) == "week":
        monday = calendar.unit_of(words.now, "week", OFFSETS[words.at(next_index)])[0]
        return TimeMatch(*calendar.day_of(monday, number), next_index + 2)
    days_ahead = number - words.now.weekday()
    offset = (days_ahead - 1) % 7 + 1 if words.forward else -((-days_ahead - 1) % 7 + 1)
    return part_of_day(words, TimeMatch(*calendar.day_of(words.now, offset), index + 1))


_ROLLING_LEADS = frozenset({"in", "over", "during", "within", "for"})
_WEEKEND_LEADS = frozenset(RANGE | {"over", "on", "at", "during"})
_NOT_SEASON = frozenset({"boot", "framework", "bean", "beans", "cloud", "security", "mvc", "data"})


def relative(words: QuestionWords, index: int) -> TimeMatch | None:
    """What follows last, this, next, past: a count of units, a unit, or something with a name."""
    lead, word = words.at(index), words.at(index + 1)
    count_match = _read_count(words, index + 1)
    unit = calendar.UNITS.get(words.at(count_match[2])) if count_match else None
    if count_match and unit:
        # "3 weeks", "couple of days".
        quantity = (count_match[0], unit, count_match[2] + 1)
        return _read_rolling(words, quantity) if lead in {"last", "past", "previous"} else None
    if word in {"week", "month", "quarter", "year", "weekend"}:
        if words.at(index + 2) == "of":
            return None
        # "last week" is the calendar's; "the past week" and "in the last week" are seven days.
        is_led = words.at(index - 1) == "the" and words.stated(index, _ROLLING_LEADS)
        if word != "weekend" and (lead == "past" or (lead == "last" and is_led)):
            return _read_rolling(words, (1.0, word, index + 2))
        return TimeMatch(*calendar.unit_of(words.now, word, OFFSETS[lead]), index + 2)
    if word not in calendar.DAYPARTS:
        return _read_named_relative(words, index)
    if (lead, word) in {("last", "night"), ("last", "evening")}:
        return part_of_day(words, TimeMatch(*calendar.day_of(words.now, -1), index + 1))
    if lead == "this":
        return part_of_day(words, TimeMatch(*calendar.day_of(words.now), index + 1))
    return None


def _read_rolling(words: QuestionWords, counted: tuple[float, str, int]) -> TimeMatch | None:
    count, unit, next_index = counted
    if words.at(next_index) == "of":
        return None
    start = calendar.back(words.now, unit, count)
    end = calendar.day_of(words.now)[1]
    return TimeMatch(start if unit == "hour" else calendar.day_of(start)[0], end, next_index)


def _read_named_relative(words: QuestionWords, index: int) -> TimeMatch | None:
    lead, name = words.at(index), words.at(index + 1)
    if lead not in {"last", "past", "this", "next", "previous", "coming"}:
        return None
    forward_words = QuestionWords(words.words, words.now, forward=lead in {"next", "coming"})
    if name in calendar.WEEKDAY_OF:
        match = weekday_at(forward_words, index + 1, True)
        if match is None or words.at(index) != "this":
            return match
        # "this Tuesday", asked on a Tuesday, is today; otherwise the past one unless it is planned.
        today = calendar.day_of(words.now)
        if today[0].weekday() == calendar.WEEKDAY_OF[words.at(index + 1)]:
            return part_of_day(words, TimeMatch(*today, index + 2))
        return weekday_at(words, index + 1, True)
    if name in calendar.SEASONS:
        if words.at(index + 2) in _NOT_SEASON:
            return None
        span = nearest(forward_words, lambda year: calendar.season_of(year, name))
        return TimeMatch(*span, index + 2)
    if name in calendar.HOLIDAYS or name == "new":
        return holiday_at(forward_words, index + 1, True)
    month = MONTHS.get(name)
    if month is None or (name in VERBS and not words.capital(index + 1)):
        return None
    if lead == "this":
        return TimeMatch(*calendar.month_of(words.now.year, month), index + 2)
    return in_year(forward_words, month, None, index + 2)


def _read_count(words: QuestionWords, index: int) -> tuple[float, float, int] | None:
    """A number in digits or words: its middle, its slack in units, and the index after it."""
    word = words.at(index)
    if word == "a" and words.at(index + 1) in calendar.VAGUE:
        return _read_count(words, index + 1)
    if word in calendar.VAGUE:
        return (*calendar.VAGUE[word], index + 2 if words.at(index + 1) == "of" else index + 1)
    if word.isascii() and word.isdigit() and len(word) <= 4:
        return float(word), 0.5, index + 1
    number = calendar.NUMBERS.get(word)
    return None if number is None else (float(number), 0.5, index + 1)


def ago(words: QuestionWords, index: int) -> TimeMatch | None:
    """A count of units ago: "three days ago", "a couple of weeks ago"."""
    count_match = _read_count(words, index)
    if count_match is None or words.at(index - 1) in {"half", "than", "over", "nearly", "almost"}:
        return None
    unit = calendar.UNITS.get(words.at(count_match[2]))
    if unit is None or words.at(count_match[2] + 1) != "ago":
        return None
    span = calendar.around(words.now, unit, count_match[0], count_match[1])
    return TimeMatch(*span, count_match[2] + 2)


def _read_half(words: QuestionWords, index: int) -> TimeMatch | None:
    next_index = index + 2 if words.at(index + 1) in {"a", "an"} else index + 1
    unit = words.at(next_index)
    if unit not in {"year", "month", "day"} or words.at(next_index + 1) != "ago":
        return None
    count, smaller = {"year": (6.0, "month"), "month": (2.0, "week"), "day": (12.0, "hour")}[unit]
    return TimeMatch(*calendar.around(words.now, smaller, count, 1.0), next_index + 2)


def _single_day(offset: int) -> Matcher:
    def matcher(words: QuestionWords, index: int) -> TimeMatch | None:
        return part_of_day(words, TimeMatch(*calendar.day_of(words.now, offset), index + 1))

    return matcher


def _read_tonight(words: QuestionWords, index: int) -> TimeMatch | None:
    start, end = (calendar.back(calendar.day_of(words.now)[0], "hour", -hour) for hour in (18, 30))
    return TimeMatch(start, end, index + 1)


def _read_weekend(words: QuestionWords, index: int) -> TimeMatch | None:
    if words.at(index - 1) != "the" or not words.stated(index, _WEEKEND_LEADS):
        return None
    this = calendar.unit_of(words.now, "weekend", 0)
    begun = this[0] <= words.now
    return TimeMatch(
        *(this if begun or words.forward else calendar.unit_of(words.now, "weekend", -1)), index + 1
    )


BY_WORD: dict[str, Matcher] = {
    "today": _single_day(0),
    "yesterday": _single_day(-1),
    "tomorrow": _single_day(1),
    "tonight": _read_tonight,
    "weekend": _read_weekend,
    "half": _read_half,
} | dict.fromkeys(OFFSETS, relative)
