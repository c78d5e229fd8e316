"""Members of a JSON object as the fields of a value: one description for both directions."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, fields
from datetime import UTC, datetime
from typing import Any, Final, get_origin, get_type_hints

from anaphora.calls.moments import has_utc
from anaphora.store.lines import Line

Reader = Callable[[Line, str], Any]
"""A function that reads a member of a line by its name. ValueError for an invalid one."""

# Ids made here are UUIDs; others may be anything that cannot be confused with surrounding text.
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,127}")
# The range of an integer column in every database.
_MOST = 2**31


class LineFields:
    """The members of a line that are fields of a value: one description for both directions.

    `order` is the order of the file; other fields of the value follow, except those `left_out`.
    The type of a field determines the reader of its member, unless `readers` has one by name.
    """

    def __init__(
        self,
        value: type,
        order: tuple[str, ...],
        *,
        left_out: Collection[str] = (),
        readers: Mapping[str, Reader] | None = None,
    ) -> None:
        types = get_type_hints(value)
        special = {"id": id_in, **(readers or {})}
        self._readers = {
            name: special.get(name) or _READERS[types[name]]
            for name in dict.fromkeys((*order, *types))
            if name not in left_out
        }
        # Not written: False, and an empty object in a field that always has one.
        self._silent = {
            name for name, kind in types.items() if kind is bool or get_origin(kind) is Mapping
        }
        self._optional = {
            spec.name
            for spec in fields(value)
            if spec.default is not MISSING or spec.default_factory is not MISSING
        }

    def write(self, value: Any) -> dict[str, Any]:
        """The members for a value, None for those that are not written."""
        members = {name: getattr(value, name) for name in self._readers}
        return {
            name: member or None if name in self._silent else member
            for name, member in members.items()
        }

    def read(self, line: Line) -> dict[str, Any]:
        """The fields that the line has values for. ValueError names the wrong member."""
        values = {
            name: read(line, name)
            for name, read in self._readers.items()
            if name in line or name not in self._optional
        }
        return {name: member for name, member in values.items() if member is not None}


def one_of(values: Collection[str], otherwise: str) -> Reader:
    """Reads a member that is one of these words; `otherwise` if it is missing."""

    def read(line: Line, name: str) -> str:
        member: str = line.get(name, otherwise)
        if member not in values:
            raise ValueError(f'"{name}" is {member!r}')
        return member

    return read


def string(line: Line, name: str) -> str:
    """A member that must be a string. ValueError."""
    member = line.get(name)
    if not isinstance(member, str):
        raise ValueError(f'"{name}" is not a string')
    return member


def id_in(line: Line, name: str = "id") -> str:
    """An id that cannot be confused with surrounding text. ValueError."""
    member = string(line, name)
    if _ID.fullmatch(member) is None:
        raise ValueError(
            f'"{name}" is not an id: 1 to 128 ASCII letters, digits, "_", "-", ".", ":"'
        )
    return member


def time_in(line: Line, name: str) -> datetime | None:
    """A time with an offset, or None. ValueError."""
    written_time = text_in(line, name)
    if written_time is None:
        return None
    moment = datetime.fromisoformat(written_time)
    if moment.utcoffset() is None:
        raise ValueError(f'"{name}" has no offset')
    if not has_utc(moment):
        raise ValueError(f'"{name}" is outside the years 1 to 9999')
    return moment.astimezone(UTC)


def text_in(line: Line, name: str) -> str | None:
    """A member that is a string, or None if it is missing. ValueError."""
    return None if line.get(name) is None else string(line, name)


def texts_in(line: Line, name: str) -> tuple[str, ...]:
    """A member that is a list of strings, each once; () if it is missing. ValueError."""
    member = line.get(name, [])
    if not isinstance(member, list) or not all(isinstance(text, str) for text in member):
        raise ValueError(f'"{name}" is not a list of strings')
    return tuple(dict.fromkeys(member))


def number_in(line: Line, name: str) -> int | None:
    """A member that is a whole number from 0 on, or None. ValueError."""
    member = line.get(name)
    if member is None:
        return None
    if isinstance(member, bool) or not isinstance(member, int) or not 0 <= member < _MOST:
        raise ValueError(f'"{name}" is not an integer, 0 or more')
    return member


def real_in(line: Line, name: str) -> float:
    """A member that must be a number. ValueError."""
    member = line.get(name)
    if isinstance(member, bool) or not isinstance(member, (int, float)):
        raise ValueError(f'"{name}" is not a number')
    try:
        return float(member)
    except OverflowError:
        raise ValueError(f'"{name}" is too large a number') from None


def real_or_none(line: Line, name: str) -> float | None:
    """A member that is a number from 0 on, or None. ValueError."""
    member = None if line.get(name) is None else real_in(line, name)
    if member is not None and member < 0:
        raise ValueError(f'"{name}" is below 0')
    return member


def object_in(line: Line, name: str) -> dict[str, Any] | None:
    """A member that is an object, or None if it is missing. ValueError."""
    member = line.get(name)
    if member is not None and not isinstance(member, dict):
        raise ValueError(f'"{name}" is not an object')
    return member


def list_in(line: Line, name: str) -> list[Any]:
    """A member that is a list, empty if it is missing. ValueError."""
    member = line.get(name, [])
    if not isinstance(member, list):
        raise ValueError(f'"{name}" is not a list')
    return member


def flag_in(line: Line, name: str) -> bool:
    """Whether a member is true."""
    return line.get(name) is True


# By the type of a field. A required time may be missing in a line: the caller has a default.
_READERS: Final[Mapping[Any, Reader]] = {
    str: string,
    str | None: text_in,
    int: number_in,
    int | None: number_in,
    float: real_in,
    float | None: real_or_none,
    bool: flag_in,
    datetime: time_in,
    datetime | None: time_in,
    tuple[str, ...]: texts_in,
    Mapping[str, Any]: object_in,
    Mapping[str, Any] | None: object_in,
}
