"""Times that a question names from its own day: "yesterday", "last week", "two months ago".

In: the words of a question and a place among them. Out: a `Match`, the naive span and the place
after it, or None. Weeks begin on Monday. "last week" is the calendar's, "the past week" and "in
the last week" go from this day a week ago to the end of today. "Two weeks ago" is that day and
half a week to either side, because that is how exactly people count.
"""

from __future__ import annotations

from anaphora.recall.times import calendar
from anaphora.recall.times.names import holiday_at, in_year, weekday_at
from anaphora.recall.times.words import (
    OFFSETS,
    RANGE,
    VERBS,
    Match,
    Matcher,
    Words,
    nearest,
    part_of_day,
)

_ROLLING_LEADS = frozenset({"in", "over", "during", "within", "for"})
_WEEKEND_LEADS = frozenset(RANGE | {"over", "on", "at", "during"})
_NOT_SEASON = frozenset({"boot", "framework", "bean", "beans", "cloud", "security", "mvc", "data"})


def relative(words: Words, index: int) -> Match | None:
    """What follows last, this, next, past: a count of units, a unit, or something with a name."""
    which, word = words.at(index), words.at(index + 1)
    counted = _quantity(words, index + 1)
    if counted is not None:
        return _rolling(words, counted) if which in {"last", "past", "previous"} else None
    if word in {"week", "month", "quarter", "year", "weekend"}:
        return _calendar_unit(words, index)
    if word in calendar.DAYPARTS:
        return _this_part(words, index)
    return _named_relative(words, index)


def _calendar_unit(words: Words, index: int) -> Match | None:
    which, unit = words.at(index), words.at(index + 1)
    if words.at(index + 2) == "of":
        return None
    # "last week" is the calendar's; "the past week" and "in the last week" are seven days.
    led = words.at(index - 1) == "the" and words.stated(index, _ROLLING_LEADS)
    if unit != "weekend" and (which == "past" or (which == "last" and led)):
        return _rolling(words, (1.0, unit, index + 2))
    return Match(*calendar.unit_of(words.now, unit, OFFSETS[which]), index + 2)


def _rolling(words: Words, counted: tuple[float, str, int]) -> Match | None:
    count, unit, after = counted
    if words.at(after) == "of":
        return None
    start = calendar.back(words.now, unit, count)
    end = calendar.day_of(words.now)[1]
    return Match(start if unit == "hour" else calendar.day_of(start)[0], end, after)


def _this_part(words: Words, index: int) -> Match | None:
    which, part = words.at(index), words.at(index + 1)
    if (which, part) in {("last", "night"), ("last", "evening")}:
        day = calendar.day_of(words.now, -1)
    elif which == "this":
        day = calendar.day_of(words.now)
    else:
        return None
    return part_of_day(words, Match(*day, index + 1))


def _named_relative(words: Words, index: int) -> Match | None:
    which, name = words.at(index), words.at(index + 1)
    if which not in {"last", "past", "this", "next", "previous", "coming"}:
        return None
    ahead = Words(words.words, words.now, forward=which in {"next", "coming"})
    if name in calendar.WEEKDAYS or name in calendar.WEEKDAY_SHORT:
        return _this_weekday(words, ahead, index)
    if name in calendar.SEASONS:
        if words.at(index + 2) in _NOT_SEASON:
            return None
        span = nearest(ahead, lambda year: calendar.season_of(year, name))
        return Match(*span, index + 2)
    if name in calendar.HOLIDAYS or name == "new":
        return holiday_at(ahead, index + 1, True)
    month = calendar.MONTHS.get(name)
    if month is None or (name in VERBS and not words.capital(index + 1)):
        return None
    if which == "this":
        return Match(*calendar.month_of(words.now.year, month), index + 2)
    return in_year(ahead, month, None, index + 2)


def _this_weekday(words: Words, ahead: Words, index: int) -> Match | None:
    match = weekday_at(ahead, index + 1, True)
    if match is None or words.at(index) != "this":
        return match
    # "this Tuesday", asked on a Tuesday, is today; otherwise the past one unless it is planned.
    today = calendar.day_of(words.now)
    number = calendar.WEEKDAYS.get(
        words.at(index + 1), calendar.WEEKDAY_SHORT.get(words.at(index + 1))
    )
    if today[0].weekday() == number:
        return part_of_day(words, Match(*today, index + 2))
    return weekday_at(words, index + 1, True)


def _quantity(words: Words, index: int) -> tuple[float, str, int] | None:
    """A count and its unit ("3 weeks", "couple of days"): count, unit, index after."""
    counted = _count(words, index)
    unit = calendar.UNITS.get(words.at(counted[2])) if counted else None
    return (counted[0], unit, counted[2] + 1) if counted and unit else None


def _count(words: Words, index: int) -> tuple[float, float, int] | None:
    """A number in digits or words: its middle, its slack in units, and the index after it."""
    word = words.at(index)
    if word == "a" and words.at(index + 1) in calendar.VAGUE:
        return _count(words, index + 1)
    if word in calendar.VAGUE:
        return (*calendar.VAGUE[word], index + 2 if words.at(index + 1) == "of" else index + 1)
    if word.isascii() and word.isdigit() and len(word) <= 4:
        return float(word), 0.5, index + 1
    number = calendar.NUMBERS.get(word)
    return None if number is None else (float(number), 0.5, index + 1)


def ago(words: Words, index: int) -> Match | None:
    """A count of units ago: "three days ago", "a couple of weeks ago"."""
    counted = _count(words, index)
    if counted is None or words.at(index - 1) in {"half", "than", "over", "nearly", "almost"}:
        return None
    unit = calendar.UNITS.get(words.at(counted[2]))
    if unit is None or words.at(counted[2] + 1) != "ago":
        return None
    span = calendar.around(words.now, unit, counted[0], counted[1])
    return Match(*span, counted[2] + 2)


def _half(words: Words, index: int) -> Match | None:
    after = index + 2 if words.at(index + 1) in {"a", "an"} else index + 1
    unit = words.at(after)
    if unit not in {"year", "month", "day"} or words.at(after + 1) != "ago":
        return None
    count, smaller = {"year": (6.0, "month"), "month": (2.0, "week"), "day": (12.0, "hour")}[unit]
    return Match(*calendar.around(words.now, smaller, count, 1.0), after + 2)


def _single_day(offset: int) -> Matcher:
    def matcher(words: Words, index: int) -> Match | None:
        return part_of_day(words, Match(*calendar.day_of(words.now, offset), index + 1))

    return matcher


def _tonight(words: Words, index: int) -> Match | None:
    start, end = (calendar.back(calendar.day_of(words.now)[0], "hour", -hour) for hour in (18, 30))
    return Match(start, end, index + 1)


def _weekend(words: Words, index: int) -> Match | None:
    if words.at(index - 1) != "the" or not words.stated(index, _WEEKEND_LEADS):
        return None
    this = calendar.unit_of(words.now, "weekend", 0)
    begun = this[0] <= words.now
    return Match(
        *(this if begun or words.forward else calendar.unit_of(words.now, "weekend", -1)), index + 1
    )


BY_WORD: dict[str, Matcher] = {
    "today": _single_day(0),
    "yesterday": _single_day(-1),
    "tomorrow": _single_day(1),
    "tonight": _tonight,
    "weekend": _weekend,
    "half": _half,
} | dict.fromkeys(OFFSETS, relative)
