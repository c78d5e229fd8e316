"""Times as people and agents see them: in the user's zone, which stands beside them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, tzinfo
from functools import lru_cache

from anaphora.language.languages.language import language_of
from anaphora.language.times.told import told_days
from anaphora.settings import zones_of
from anaphora.system.environment import environment
from anaphora.system.zones import calling_zone


def shown_zone() -> tzinfo:
    """The zone in which times are shown: that of the call under way, else of the environment."""
    zone = calling_zone()
    if zone is not None:
        return zone
    chosen_zone, fallback = zones_of(environment())
    return chosen_zone or fallback


def in_shown_zone(moment: datetime) -> datetime:
    """The moment in the zone in which times are shown; one at the ends of time as it is."""
    try:
        return moment.astimezone(shown_zone())
    except OverflowError:
        return moment


def in_speakers_zone(moment: datetime) -> datetime:
    """The moment in its own zone, the speaker's; one in UTC, which says none, in the user's."""
    return moment if moment.utcoffset() else in_shown_zone(moment)


def tell_days(
    text: str, told_at: datetime, asked: Callable[[datetime, datetime], bool] = lambda *_: True
) -> str:
    """The days other than its own that a text means: "on 2026-09-25, told 2026-09-26", or "".

    Of several only those that are `asked` for: naive, from the first moment to before the last.
    """
    at = in_speakers_zone(told_at)
    parts = [
        days_between(f"{start:%Y-%m-%d}", f"{end - timedelta(days=1):%Y-%m-%d}")
        for start, end in _told_days(text, at.replace(tzinfo=None))
        if not start.date() <= at.date() < end.date() and asked(start, end)
    ]
    return f"{', '.join(parts)}, told {at:%Y-%m-%d}" if parts else ""


# Several lanes and the answer made of them tell of the same hits.
@lru_cache(maxsize=64)
def _told_days(text: str, at: datetime) -> tuple[tuple[datetime, datetime], ...]:
    return told_days(text, at, language_of(text))


def days_between(first: str, last: str) -> str:
    """The days from the first to the last in words."""
    return f"on {first}" if first == last else f"from {first} to {last}"


def shown_day(moment: datetime | None) -> str:
    """The user's day of a moment, "2026-11-24"; "" where it is not known (None, the year 1)."""
    if moment is None or moment.year <= 1:
        return ""
    return f"{in_shown_zone(moment):%Y-%m-%d}"


def shown_minute(moment: datetime | None, *, day: bool = True, seconds: bool = False) -> str:
    """The same with the minute and the zone: "2026-11-24 17:59 -08:00", "2026-11-25 01:59 UTC".

    Without the `day` it is "17:59 -08:00".
    """
    if moment is None or moment.year <= 1:
        return ""
    local = in_shown_zone(moment)
    offset = f"{local:%z}"
    offset = f"{offset[:3]}:{offset[3:5]}" if local.utcoffset() else "UTC"
    form = f"{'%Y-%m-%d ' if day else ''}%H:%M{':%S' if seconds else ''}"
    return f"{local.strftime(form)} {offset}"
