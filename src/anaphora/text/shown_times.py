"""Times as people and agents see them: in the user's zone, which stands beside them."""

from __future__ import annotations

from datetime import datetime, tzinfo

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
