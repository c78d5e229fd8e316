"""RFC 3339 texts in, instants out, and back, as Go's time.Time reads and writes them in JSON.

A datetime holds microseconds and Go writes nanoseconds: whoever must give back the same bytes
keeps the text, whoever compares uses `nanoseconds`. Never reads a clock.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from anaphora.core.arguments import EARLIEST, LATEST, has_utc

ZERO_TIME = "0001-01-01T00:00:00Z"
"""What Go writes for a time that was never set."""

_AT_THE_ENDS = ("0000-", "0001-01-", "9999-12-")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
# Go takes an hour of one digit and a comma before the fraction; it never writes them.
_RFC3339 = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})T([0-9]{1,2})(:[0-5][0-9]:[0-5][0-9])(?:[.,]([0-9]+))?"
    r"(Z|[+-][0-9]{2}:[0-5][0-9])\Z"
)
_CANONICAL = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3])(?::[0-5][0-9]){2}(?:\.[0-9]{0,8}[1-9])?"
    r"(?:Z|[+-](?!00:00)[0-9]{2}:[0-5][0-9])\Z"
)


def read_time(text: str) -> datetime:
    """The instant, with the offset of the text, cut to microseconds. ValueError if Go refuses it.

    The year 0, which Go knows and Python does not, reads as the first instant that Python has; so
    does, or as the last one, what leaves the years 1 to 9999 in UTC.
    """
    if _CANONICAL.match(text) and not text.startswith(_AT_THE_ENDS):
        # Python cuts what is beyond microseconds.
        return datetime.fromisoformat(text)
    date, clock, fraction, zone = _parts(text)
    if date.startswith("0000-"):
        datetime.fromisoformat("0004" + date[4:])
        return EARLIEST
    found = datetime.fromisoformat(f"{date}T{clock}.{fraction[:6]}{zone}")
    if has_utc(found):
        return found
    return EARLIEST if date.startswith("0001-") else LATEST


def sound_time(text: object) -> str:
    """The text, if it is a time that `read_time` reads; else `ZERO_TIME`."""
    if isinstance(text, str):
        with suppress(ValueError):
            read_time(text)
            return text
    return ZERO_TIME


def nanoseconds(text: str) -> int:
    """Nanoseconds since 1970 in UTC, exact to the nine digits that Go keeps."""
    instant = read_time(text)
    return (instant - _EPOCH) // _MICROSECOND * 1000 + int(_parts(text)[2][6:])


def format_time(instant: datetime) -> str:
    """An aware datetime as Go writes it: its own offset, no trailing zeros in the fraction."""
    offset = instant.utcoffset()
    if offset is None:
        raise ValueError("the time has no offset")
    if offset % timedelta(minutes=1):
        # RFC 3339 has no seconds in an offset, and Go refuses to write such a time.
        instant = instant.astimezone(UTC)
    return canonical_time(instant.isoformat(timespec="microseconds"))


def utc_text(text: str) -> str:
    """The same instant in UTC, every digit of its fraction kept."""
    if text.endswith("Z"):
        return canonical_time(text)
    fraction = _parts(text)[2]
    whole = read_time(text).astimezone(UTC).isoformat(timespec="seconds")
    return canonical_time(f"{whole[:19]}.{fraction}Z")


def canonical_time(text: str) -> str:
    """The text that Go would write after it has read this one; ValueError if it refuses it."""
    if _CANONICAL.match(text):
        return text
    date, clock, fraction, zone = _parts(text)
    fraction = fraction.rstrip("0")
    zone = "Z" if zone[1:] == "00:00" else zone
    return f"{date}T{clock}{'.' if fraction else ''}{fraction}{zone}"


def _parts(text: str) -> tuple[str, str, str, str]:
    """Date, time of day, fraction of exactly nine digits, and zone."""
    match = _RFC3339.match(text)
    if match is None:
        raise ValueError(f"{text[:40]!r} is no RFC 3339 time")
    date, hour, rest, fraction, zone = match.groups()
    return date, hour.zfill(2) + rest, ((fraction or "") + "000000000")[:9], zone
