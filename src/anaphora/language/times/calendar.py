"""The calendar behind the reading of times: which days a month, season or holiday has.

All datetimes are naive wall-clock times, all spans half-open pairs (start, end) of whole days. A
date that the calendar does not have (30 February, year 0) raises ValueError or OverflowError.
"""

from __future__ import annotations

from datetime import datetime, timedelta

Days = tuple[datetime, datetime]

DAY = timedelta(days=1)

# Hours of the day, past 24 into the next one. People's evenings and nights overlap; so do these.
DAYPARTS = {"morning": (5, 12), "afternoon": (12, 18), "evening": (17, 24), "night": (18, 30)}
# First month: meteorological, of the northern hemisphere, as English text mostly means it.
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "winter": 12}
OFFSETS = {"last": -1, "this": 0, "now": 0, "next": 1}
# Middle and half-width, in units: "a few weeks ago" is 1.5 to 4.5 weeks.
VAGUE = {"couple": (2.0, 1.0), "few": (3.0, 1.5), "several": (4.0, 2.0)}
# Month and day; those that move have a function.
HOLIDAYS = {
    "christmas": (12, 25),
    "new year": (1, 1),
    "new year eve": (12, 31),
    "valentine": (2, 14),
    "halloween": (10, 31),
    "thanksgiving": None,
    "easter": None,
}
_UNIT_DAYS = {"day": 1.0, "week": 7.0, "month": 30.44, "quarter": 91.31, "year": 365.25}


def day_of(moment: datetime, offset: int = 0) -> Days:
    """The whole day of `moment`, `offset` days on."""
    start = moment.replace(hour=0, minute=0, second=0, microsecond=0) + offset * DAY
    return start, start + DAY


def month_of(year: int, month: int, count: int = 1) -> Days:
    """`count` whole months from the first of `month`."""
    start = datetime(year, month, 1)  # noqa: DTZ001 - wall clock; the reader attaches the zone
    return start, add_months(start, count)


def add_months(moment: datetime, count: int) -> datetime:
    """The same day `count` months on, or the last day of that month where it is shorter."""
    months = moment.year * 12 + moment.month - 1 + count
    first_day = moment.replace(year=months // 12, month=months % 12 + 1, day=1)
    last_day = (first_day.replace(day=28) + 4 * DAY).replace(day=1) - DAY
    return first_day.replace(day=min(moment.day, last_day.day))


def unit_of(moment: datetime, unit: str, offset: int) -> Days:
    """The calendar week (from Monday), weekend, month, quarter or year of `moment`, `offset` on."""
    day = day_of(moment)[0]
    monday = day - day.weekday() * DAY + offset * 7 * DAY
    if unit == "week":
        return monday, monday + 7 * DAY
    if unit == "weekend":
        return monday + 5 * DAY, monday + 7 * DAY
    if unit == "month":
        first_day = add_months(day.replace(day=1), offset)
        return first_day, add_months(first_day, 1)
    if unit == "quarter":
        first_day = add_months(day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1), 3 * offset)
        return first_day, add_months(first_day, 3)
    return month_of(day.year + offset, 1, 12)


def holiday(year: int, name: str) -> datetime:
    """The day of a holiday of `HOLIDAYS` in a year, at midnight."""
    fixed_date = HOLIDAYS[name]
    if fixed_date is not None:
        return month_of(year, fixed_date[0])[0].replace(day=fixed_date[1])
    if name == "easter":
        # The anonymous Gregorian algorithm (Nature, 20 April 1876; Meeus, Astronomical
        # Algorithms, 8).
        golden, century, year_of_century = year % 19, year // 100, year % 100
        moon = (
            19 * golden + century - century // 4 - (century - (century + 8) // 25 + 1) // 3 + 15
        ) % 30
        sunday = (
            32 + 2 * (century % 4) + 2 * (year_of_century // 4) - moon - year_of_century % 4
        ) % 7
        late_correction = (golden + 11 * moon + 22 * sunday) // 451
        month, day = divmod(moon + sunday - 7 * late_correction + 114, 31)
        return month_of(year, month)[0].replace(day=day + 1)
    first_day = month_of(year, 11)[0]  # Thanksgiving: the fourth Thursday of November
    return first_day + ((3 - first_day.weekday()) % 7 + 21) * DAY


def around(moment: datetime, unit: str, count: float, slack: float) -> Days:
    """The days about `count` units before `moment`, `slack` units to either side.

    One day exactly for days with a slack of half a unit; hours keep the time of day.
    """
    if unit == "hour":
        middle = moment - timedelta(hours=count)
        return middle - timedelta(hours=slack), middle + timedelta(hours=slack)
    middle = day_of(back(moment, unit, count))[0]
    margin = int(slack * _UNIT_DAYS[unit])
    return middle - margin * DAY, middle + (margin + 1) * DAY


def back(moment: datetime, unit: str, count: float) -> datetime:
    """`moment` moved back by `count` units; whole months and years by the calendar."""
    months = {"month": 1, "quarter": 3, "year": 12}.get(unit)
    if unit == "hour":
        return moment - timedelta(hours=count)
    if months and float(count).is_integer():
        return add_months(moment, -int(count) * months)
    return moment - timedelta(days=round(count * _UNIT_DAYS[unit]))


def beside(days: Days, side: str, unit: str) -> Days:
    """The unit "before" or "after" some days, or the week "of" a day."""
    start, end = days
    if side == "of":
        return unit_of(start, "week", 0)
    return (back(start, unit, 1), start) if side == "before" else (end, back(end, unit, -1))


def third_of(days: Days, which: int) -> Days:
    """The first, middle or last third (0, 1, 2): in whole months where it divides, else days.

    Under three days it is all of the span.
    """
    start, end = days
    months = (end.year - start.year) * 12 + end.month - start.month
    if start.day == end.day == 1 and months >= 3 and months % 3 == 0:
        return add_months(start, which * months // 3), add_months(start, (which + 1) * months // 3)
    third = (end - start).days // 3
    if third == 0:
        return days
    cuts = (start, start + third * DAY, start + 2 * third * DAY, end)
    return cuts[which], cuts[which + 1]
