"""Which moments can be kept: those whose UTC lies in the years 1 to 9999.

In: what a caller gave as a time. Out: the same, or `InvalidInput` that names it. A datetime with an
offset can stand for a moment outside the years that datetimes have, such as the first hours of the
year 1 east of Greenwich: truth could keep it, and nobody could read it back. Never reads a clock.
"""

from __future__ import annotations

from datetime import UTC, datetime

from anaphora.errors import InvalidInput

EARLIEST = datetime.min.replace(tzinfo=UTC)
"""The first moment that can be kept."""
LATEST = datetime.max.replace(tzinfo=UTC)
"""The last one."""


def from_epoch(seconds: float) -> datetime:
    """The moment so many seconds after 1970 UTC, or the nearest that there is.

    A float cannot tell the last microseconds of the year 9999 from the year 10000.
    """
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return LATEST if seconds > 0 else EARLIEST


def checked_moment(what: str, value: object) -> datetime:
    """The aware datetime that `value` is. Raises `InvalidInput` naming `what`."""
    if not isinstance(value, datetime):
        raise InvalidInput(what, value, "must be a datetime")
    if value.utcoffset() is None:
        raise InvalidInput(what, value, "must have a time zone")
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
