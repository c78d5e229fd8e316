"""Values as the cells of a database hold them, and back; and what is done about damaged cells.

Times are microseconds since 1970 UTC; tags, payloads and the like are JSON that keeps every
character, lone surrogates too (the column's escaping takes care of them). A time beyond the years
that datetimes have is read as the nearest one that they have. A row that makes no sense is
`Unreadable`, and `readable` passes it over, named in the log once for each reason. Nothing here
reads a database or imports SQLAlchemy.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final, TypeVar, overload

from anaphora.calls.moments import EARLIEST, LATEST
from anaphora.errors import Unreadable

DAMAGE: Final = (TypeError, ValueError, KeyError, AttributeError, RecursionError)
"""What reading a row raises whose columns hold what no program of ours has written."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_log = logging.getLogger("anaphora")

RowT = TypeVar("RowT")
ValueT = TypeVar("ValueT")


@overload
def to_micros(time: datetime) -> int: ...
@overload
def to_micros(time: datetime | None) -> int | None: ...
def to_micros(time: datetime | None) -> int | None:
    """Microseconds since 1970 UTC of an aware time, exactly."""
    return None if time is None else (time - _EPOCH) // _MICROSECOND


def from_micros(micros: int | None) -> datetime | None:
    """The inverse of `to_micros`, in UTC; the nearest time that there is, where it is beyond."""
    if micros is None:
        return None
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return _nearest(micros)


@lru_cache(maxsize=64)
def _nearest(micros: int) -> datetime:
    # Cached, so that each is logged once: a listing of many memories must not fill the log.
    nearest = LATEST if micros > 0 else EARLIEST
    _log.warning(
        "a stored time (%d microseconds from 1970) is outside the years 1 to 9999 and is "
        "treated as %s; `doctor --repair` repairs it", micros, nearest,
    )  # fmt: skip
    return nearest


def moment(micros: int | None) -> datetime:
    """The time that a column holds which is never empty. Raises `ValueError` where it is."""
    time = from_micros(micros)
    if time is None:
        raise ValueError("a time is missing")
    return time


def as_json(value: object, *, sort_keys: bool = False) -> str:
    """JSON of a value, every character kept as it is."""
    # Not in ASCII: two lone surrogates side by side would be read back as one character.
    return json.dumps(
        value, ensure_ascii=False, allow_nan=False, sort_keys=sort_keys, separators=(",", ":"),
        default=dict,
    )  # fmt: skip


def parsed(stored: str | None, kind: type) -> Any:
    """The list of texts, or the mapping, that a column of JSON holds; an empty one for None.

    Raises one of `DAMAGE`.
    """
    if not stored:
        return kind()
    parsed_value: Any = json.loads(stored)
    sound = isinstance(parsed_value, kind)
    if isinstance(parsed_value, list):
        sound = sound and all(isinstance(text, str) for text in parsed_value)
    if not sound:
        # Not its content: a log must not hold the words of a user.
        raise ValueError(f"a column holds no {kind.__name__}")
    return parsed_value


def readable(rows: Iterable[RowT], make: Callable[[RowT], ValueT]) -> Iterator[ValueT]:
    """What the rows stand for, but for those of which `make` raises `Unreadable`."""
    for row in rows:
        try:
            yield make(row)
        except Unreadable as error:
            _tell(str(error))


@lru_cache(maxsize=1024)
def _tell(message: str) -> None:
    _log.warning("an unreadable row is left out: %s", message)
