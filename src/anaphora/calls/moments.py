"""Moments in time: which can be kept, out of seconds since 1970, and checks of those passed in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from anaphora.errors import InvalidInput

EARLIEST: Final = datetime.min.replace(tzinfo=UTC)
"""The first moment that can be kept."""

LATEST: Final = datetime.max.replace(tzinfo=UTC)
"""The last one."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def utc_moment(seconds: float) -> datetime:
    """The moment so many seconds after 1970 UTC. ValueError or OverflowError where there is none.

    `datetime.fromtimestamp` fails on Windows for what was before 1970.
    """
    return _EPOCH + timedelta(seconds=seconds)


def from_epoch(seconds: float) -> datetime:
    """The moment so many seconds after 1970 UTC, or the nearest that there is.

    A float cannot tell the last microseconds of the year 9999 from the year 10000.
    """
    try:
        return utc_moment(seconds)
    except (ValueError, OverflowError):
        return LATEST if seconds > 0 else EARLIEST


def checked_moment(what: str, value: object) -> datetime:
    """The aware datetime that `value` is. Raises `InvalidInput` naming `what`.

    With an offset, it can be a moment outside the years of datetimes, such as the first hours of
    the year 1 east of Greenwich: the database could store it, but it could not be read again.
    """
    if not isinstance(value, datetime):
        raise InvalidInput(what, value, "must be a datetime")
    if value.utcoffset() is None:
        raise InvalidInput(what, value, "must have a time zone (an offset)")
    if not has_utc(value):
        raise InvalidInput(what, value, "must lie in the years 1 to 9999 in UTC")
    return value


def has_utc(value: datetime) -> bool:
    """Whether an aware datetime has a form in UTC."""
    try:
        value.astimezone(UTC)
    except OverflowError:
        return False
    return True
