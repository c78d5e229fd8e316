"""What a phrase that names a time means: its kind and the words that it caught give the days.

A date that does not exist raises ValueError or OverflowError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple, TypeAlias

from anaphora.language.times import calendar
from anaphora.language.times.calendar import Days

Groups: TypeAlias = Mapping[str, str]
Detail: TypeAlias = tuple[str, ...]


class Asked(NamedTuple):
    """The naive wall clock that a text is read at, and whether it is about the future."""

    now: datetime
    forward: bool


def read_days(kind: str, detail: Detail, groups: Groups, asked: Asked) -> Days:
    """The days that a phrase names: naive and half-open, with the hours of a part of the day."""
    start, end = _READERS[kind](detail, groups, asked)
    hours = calendar.DAYPARTS.get(key_of(groups, "part") or (detail[-1] if detail else ""))
    if hours is None:
        return start, end
    return start + timedelta(hours=hours[0]), end - calendar.DAY + timedelta(hours=hours[1])


def key_of(groups: Groups, kind: str) -> str:
    """Which of the alternatives of a kind it was: the rest of the group's name, "" for none."""
    for name in groups:
        if name.startswith(f"{kind}_") and not name.endswith("_digits"):
            return name.removeprefix(f"{kind}_")
    return ""


def _read_unit(detail: Detail, groups: Groups, asked: Asked) -> Days:
    offset = int(detail[0]) if detail else calendar.OFFSETS[key_of(groups, "offset")]
    return calendar.unit_of(asked.now, key_of(groups, "unit") or "week", offset)


def _read_weekend(detail: Detail, groups: Groups, asked: Asked) -> Days:
    this_weekend = calendar.unit_of(asked.now, "weekend", 0)
    if this_weekend[0] <= asked.now or asked.forward:
        return this_weekend
    return calendar.unit_of(asked.now, "weekend", -1)


def _read_count(groups: Groups) -> tuple[str, float, float]:
    """The unit, and the middle and slack of how many."""
    unit = key_of(groups, "unit")
    if unit == "weekend":
        raise ValueError(unit)
    if vague := key_of(groups, "vague"):
        return (unit, *calendar.VAGUE[vague])
    return unit, float(groups.get("digits") or key_of(groups, "number") or 1), 0.5


def _read_ahead(detail: Detail, groups: Groups, asked: Asked) -> Days:
    unit, count, slack = _read_count(groups)
    return calendar.around(asked.now, unit, -count, slack)


def _read_rolling(detail: Detail, groups: Groups, asked: Asked) -> Days:
    unit, count, _ = _read_count(groups)
    start = calendar.back(asked.now, unit, count)
    end = calendar.day_of(asked.now)[1]
    return (start if unit == "hour" else calendar.day_of(start)[0]), end


def _goes_forward(detail: Detail, groups: Groups, asked: Asked) -> bool:
    direction = key_of(groups, "offset") or (detail[0] if detail else "")
    return {"last": False, "next": True}.get(direction, asked.forward)


def _read_weekday(detail: Detail, groups: Groups, asked: Asked) -> Days:
    number = int(key_of(groups, "weekday"))
    week = key_of(groups, "week")
    if week or (detail and detail[0] not in ("next", "last")):
        offset = calendar.OFFSETS[week] if week else int(detail[0])
        return calendar.day_of(calendar.unit_of(asked.now, "week", offset)[0], number)
    days_ahead = (number - asked.now.weekday() - 1) % 7 + 1
    if days_ahead == 7 and key_of(groups, "offset") == "this":
        return calendar.day_of(asked.now)
    if _goes_forward(detail, groups, asked):
        return calendar.day_of(asked.now, days_ahead)
    return calendar.day_of(asked.now, days_ahead % 7 - 7)


def _read_numeric(detail: Detail, groups: Groups, asked: Asked) -> Days:
    month = calendar.month_of(int(groups["y"]), int(groups["m"]))
    return calendar.day_of(month[0].replace(day=int(groups["d"]))) if "d" in groups else month


def _read_nth(detail: Detail, groups: Groups, asked: Asked) -> Days:
    """ "The 14th": of the nearest month that has it, or of the month so many on."""
    if detail:
        first_day = calendar.unit_of(asked.now, "month", int(detail[0]))[0]
        return calendar.day_of(first_day.replace(day=int(groups["nth"])))
    forward = _goes_forward(detail, groups, asked)
    for count in range(13):
        first_day = calendar.unit_of(asked.now, "month", count if forward else -count)[0]
        days = calendar.day_of(first_day, int(groups["nth"]) - 1)
        fits_direction = (days[0] > asked.now) if forward else (days[0] <= asked.now)
        if days[0].month == first_day.month and fits_direction:
            return days
    raise ValueError(groups["nth"])


def _read_date(detail: Detail, groups: Groups, asked: Asked) -> Days:
    day = int(groups.get("day_digits") or key_of(groups, "day") or 0)
    if day > 31:
        raise ValueError(day)

    def place(year: int) -> Days:
        month = calendar.month_of(year, int(key_of(groups, "month")))
        return calendar.day_of(month[0].replace(day=day)) if day else month

    start, end = _place(place, detail, groups, asked)
    if "first" not in groups:
        return start, end
    first_day = start.replace(day=int(groups["first"]))
    if first_day >= start:
        raise ValueError(day)
    return first_day, end


def _read_quarter(detail: Detail, groups: Groups, asked: Asked) -> Days:
    first_month = int(groups["quarter"]) * 3 - 2
    return _place(lambda year: calendar.month_of(year, first_month, 3), detail, groups, asked)


def _read_season(detail: Detail, groups: Groups, asked: Asked) -> Days:
    first_month = calendar.SEASONS[key_of(groups, "season")]
    # A winter is named for the year in which it ends.
    earlier = 1 if first_month == 12 else 0
    return _place(
        lambda year: calendar.month_of(year - earlier, first_month, 3), detail, groups, asked
    )


def _read_holiday(detail: Detail, groups: Groups, asked: Asked) -> Days:
    name = key_of(groups, "holiday").replace("_", " ")

    def place(year: int) -> Days:
        return calendar.day_of(calendar.holiday(year, name))

    start, end = _place(place, detail, groups, asked)
    return (
        (start - 3 * calendar.DAY, end + 3 * calendar.DAY) if "around" in groups else (start, end)
    )


def _place(place: Callable[[int], Days], detail: Detail, groups: Groups, asked: Asked) -> Days:
    """What returns every year: in its year, or else the latest that has begun, or the next one.

    Eight years are tried, because 29 February can stay away that long (1896 to 1904).
    """
    if "year" in groups:
        return place(int(groups["year"]))
    if year := key_of(groups, "year"):
        return place(asked.now.year + calendar.OFFSETS[year])
    if detail:
        return place(asked.now.year + int(detail[0]))
    forward = _goes_forward(detail, groups, asked)
    for count in range(-1, 9):
        try:
            days = place(asked.now.year + (count if forward else -count))
        except ValueError:
            continue
        if (days[0] > asked.now) if forward else (days[0] <= asked.now):
            return days
    raise ValueError("no year has it")


_READERS: Final[Mapping[str, Callable[[Detail, Groups, Asked], Days]]] = {
    "day": lambda detail, groups, asked: calendar.day_of(asked.now, int(detail[0])),
    "unit": _read_unit,
    "weekend": _read_weekend,
    "ago": lambda detail, groups, asked: calendar.around(asked.now, *_read_count(groups)),
    "ahead": _read_ahead,
    "around": lambda detail, groups, asked: calendar.around(
        asked.now, detail[1], float(detail[0]), 1.0
    ),
    "rolling": _read_rolling,
    "weekday": _read_weekday,
    "numeric": _read_numeric,
    "nth": _read_nth,
    "date": _read_date,
    "quarter": _read_quarter,
    "year": lambda detail, groups, asked: calendar.month_of(int(groups["year"]), 1, 12),
    "season": _read_season,
    "holiday": _read_holiday,
}
