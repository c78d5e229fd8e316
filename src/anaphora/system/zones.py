"""The user's time zone: by name, of a program's clock, of the machine.

A zone is a `ZoneInfo`, which knows when its days have 23 or 25 hours. Stored times stay what they
are; only what days mean and how a time is shown depends on the zone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from anaphora.errors import InvalidInput

_LOCALTIME: Final = Path("/etc/localtime")
_TIMEZONE: Final = Path("/etc/timezone")
_FOLDER: Final = "zoneinfo/"
_UTC_NAMES: Final = frozenset(
    ("UTC", "Etc/UTC", "Etc/UCT", "Etc/Universal", "Etc/Zulu", "UCT", "Universal", "Zulu")
)


def named_zone(what: str, name: str) -> ZoneInfo:
    """The zone of an IANA name. Raises `InvalidInput` naming `what`."""
    zone = _zone_if_known(name)
    if zone is None:
        reason = "expected the IANA name of a time zone, such as Europe/Berlin"
        raise InvalidInput(what, name, reason)
    return zone


def environment_zone(variable: str | None) -> ZoneInfo:
    """The zone that `TZ` names, else the machine's, else UTC.

    `TZ` may also be a file, as C has it; rules spelled out there ("CET-1CEST") name no zone.
    """
    text = (variable or "").strip().removeprefix(":")
    if text:
        zone = _zone_of_file(Path(text)) if text.startswith("/") else _zone_if_known(text)
        if zone is not None:
            return zone
    return _machine_zone()


def _zone_if_known(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        # OSError: the name of a folder of zones, or one that no file can have.
        return None


def _zone_of_file(path: Path) -> ZoneInfo | None:
    """The zone of a file: by its name among the zones, where links lead, else by what it says."""
    try:
        resolved_path = path.resolve(strict=True)
        _, _, name = resolved_path.as_posix().rpartition(_FOLDER)
        for prefix in ("posix/", "right/"):
            name = name.removeprefix(prefix)
        zone = _zone_if_known(name) if _FOLDER in resolved_path.as_posix() else None
        if zone is not None:
            return zone
        with resolved_path.open("rb") as file:
            return ZoneInfo.from_file(file)
    except (ValueError, OSError):
        return None


@lru_cache(maxsize=1)
def _machine_zone() -> ZoneInfo:
    if sys.platform == "win32":
        return _zone_if_known(_windows_zone()) or ZoneInfo("UTC")
    zone = _zone_of_file(_LOCALTIME)
    if zone is None and _TIMEZONE.is_file():
        zone = _zone_if_known(_TIMEZONE.read_text("utf-8", "replace").strip())
    return zone or ZoneInfo("UTC")


def _windows_zone() -> str:
    """The IANA name of the system's zone, which Windows' own ICU (since 2019) knows; else ""."""
    import ctypes

    name, error = ctypes.create_unicode_buffer(128), ctypes.c_int(0)
    try:
        length = ctypes.CDLL("icu.dll").ucal_getDefaultTimeZone(name, 128, ctypes.byref(error))
    except (AttributeError, OSError):
        return ""
    return name.value if error.value <= 0 < length else ""


def is_utc(zone: tzinfo | None) -> bool:
    """Whether this is UTC itself, and not a zone that has its time for now."""
    if isinstance(zone, timezone):
        return zone.utcoffset(None) == timedelta(0)
    return getattr(zone, "key", None) in _UTC_NAMES


class UserClock:
    """The clock of a home as it was given, and the present in the zone of its user.

    That zone is the one `chosen`, else the one that the clock's times carry, unless that is UTC,
    else `fallback`. A clock that tells the fallback's time with a bare offset has that zone.
    """

    def __init__(
        self, clock: Callable[[], datetime], chosen: tzinfo | None, fallback: tzinfo
    ) -> None:
        self._clock, self._chosen, self._fallback = clock, chosen, fallback
        self._seen: datetime | None = None

    def __call__(self) -> datetime:
        """The present, as the clock tells it."""
        self._seen = self._clock()
        return self._seen

    def local(self) -> datetime:
        """The present in the user's zone."""
        now = self()
        if now.tzinfo is None:
            # A time without a zone is refused by the function that it is passed to.
            return now
        try:
            return now.astimezone(self._zone_at(now))
        except OverflowError:
            # At the ends of the calendar another zone has no such day.
            return now

    def zone(self) -> tzinfo:
        """The user's zone."""
        if self._chosen is not None:
            return self._chosen
        # Not a reading of its own, where there was one: clocks of tests move when they are read.
        return self._zone_at(self._seen or self())

    def _zone_at(self, now: datetime) -> tzinfo:
        if self._chosen is not None:
            return self._chosen
        if now.tzinfo is None or is_utc(now.tzinfo):
            return self._fallback
        if isinstance(now.tzinfo, timezone):
            try:
                local = now.astimezone(self._fallback)
            except OverflowError:
                return now.tzinfo
            return self._fallback if local.utcoffset() == now.utcoffset() else now.tzinfo
        return now.tzinfo


_calling: ContextVar[Callable[[], tzinfo] | None] = ContextVar("anaphora_zone", default=None)


@contextmanager
def times_shown_in(zone: Callable[[], tzinfo]) -> Iterator[None]:
    """Times that are shown within it are shown in this zone, which is asked for when it is used."""
    mark = _calling.set(zone)
    try:
        yield
    finally:
        _calling.reset(mark)


def calling_zone() -> tzinfo | None:
    """The time zone of the current call's user, None outside of calls."""
    zone = _calling.get()
    return None if zone is None else zone()
