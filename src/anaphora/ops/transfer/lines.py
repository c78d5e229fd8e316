"""Lines of an export: JSON objects as text, and their members as the fields of values.

A line is valid UTF-8 and keeps every character as it was: lone surrogates and NUL are JSON escapes.
Two surrogates side by side that were two characters would be read back as one: a line that has them
is wrapped, see docs/formats.md. Nothing here touches a disk.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, fields
from datetime import UTC, datetime
from typing import Any, Final, get_origin, get_type_hints

from anaphora.core.arguments import has_utc
from anaphora.core.json_codec import plain
from anaphora.errors import InvalidInput
from anaphora.ingest.export_child import read_object
from anaphora.store.escaping import escape

FORMAT = 1

Line = Mapping[str, Any]
Reader = Callable[[Line, str], Any]
"""What reads a member of a line by its name. ValueError for one that is not as it was written."""

# What some reader or other takes for the end of a line, and what UTF-8 has no bytes for.
_TO_ESCAPE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_SPLIT_CHARACTER = re.compile("[\ud800-\udbff][\udc00-\udfff]")
# Ours are UUIDs; another's may be anything that no text around it is confused with.
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,127}")
# What an integer column of every database holds.
_MOST = 2**31


def to_line(value: Line) -> bytes:
    """One line for `value`, which leaves out what is None or empty; its end included."""
    written = json.dumps(
        plain(present(value), _scalar), ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )
    if _SPLIT_CHARACTER.search(written):
        return to_line({"kind": "escaped", "line": escape(written)})
    return _TO_ESCAPE.sub(lambda m: f"\\u{ord(m[0]):04x}", written).encode() + b"\n"


def present(members: Line) -> dict[str, Any]:
    """The members without those that are None or empty."""
    return {name: item for name, item in members.items() if item is not None and item != ()}


def _scalar(value: object) -> object:
    if isinstance(value, datetime):
        return time_text(value)
    if value is None or isinstance(value, (str, int, float)):
        return value
    raise InvalidInput("export", value, "cannot be written as JSON")


def time_text(moment: datetime) -> str:
    """RFC 3339 in UTC, to the microsecond."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def from_line(line: bytes | str) -> dict[str, Any]:
    """The object of a line. ValueError for what is none, or is nested too deeply."""
    return read_object(line if isinstance(line, str) else line.decode())


class LineFields:
    """The members of a line that are fields of a value: one description for both directions.

    `order` is the order of the file; other fields of the value follow, but for those `left_out`.
    What a member must be follows from the type of its field, unless `readers` has it by name.
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
        # False, and an object without members where there always is one, say nothing.
        self._silent = {n for n, of in types.items() if of is bool or get_origin(of) is Mapping}
        self._optional = {
            one.name
            for one in fields(value)
            if one.default is not MISSING or one.default_factory is not MISSING
        }

    def write(self, value: Any) -> dict[str, Any]:
        """The members for a value, None for those that say nothing."""
        given = {name: getattr(value, name) for name in self._readers}
        return {name: one or None if name in self._silent else one for name, one in given.items()}

    def read(self, line: Line) -> dict[str, Any]:
        """The fields that a line has a value for. ValueError names the member that is wrong."""
        given = {
            name: read(line, name)
            for name, read in self._readers.items()
            if name in line or name not in self._optional
        }
        return {name: one for name, one in given.items() if one is not None}


def one_of(values: Collection[str], otherwise: str) -> Reader:
    """Reads a member that is one of these words; `otherwise` where it is missing."""

    def read(line: Line, name: str) -> str:
        value: str = line.get(name, otherwise)
        if value not in values:
            raise ValueError(f'"{name}" is {value!r}')
        return value

    return read


def string(line: Line, name: str) -> str:
    """A member that must be a string. ValueError."""
    value = line.get(name)
    if not isinstance(value, str):
        raise ValueError(f'"{name}" is not a string')
    return value


def id_in(line: Line, name: str = "id") -> str:
    """A name that no text around it can be confused with. ValueError."""
    value = string(line, name)
    if _ID.fullmatch(value) is None:
        raise ValueError(
            f'"{name}" is not an id: 1 to 128 ASCII letters, digits, "_", "-", ".", ":"'
        )
    return value


def time_in(line: Line, name: str) -> datetime | None:
    """A time with an offset, or None. ValueError."""
    written = text_in(line, name)
    if written is None:
        return None
    moment = datetime.fromisoformat(written)
    if moment.utcoffset() is None:
        raise ValueError(f'"{name}" has no offset')
    if not has_utc(moment):
        raise ValueError(f'"{name}" is outside the years 1 to 9999')
    return moment.astimezone(UTC)


def text_in(line: Line, name: str) -> str | None:
    """A member that is a string, or None where it is missing. ValueError."""
    return None if line.get(name) is None else string(line, name)


def texts_in(line: Line, name: str) -> tuple[str, ...]:
    """A member that is a list of strings, each once; () where it is missing. ValueError."""
    value = line.get(name, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(f'"{name}" is not a list of strings')
    return tuple(dict.fromkeys(value))


def number_in(line: Line, name: str) -> int | None:
    """A member that is a whole number from 0 on, or None. ValueError."""
    value = line.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _MOST:
        raise ValueError(f'"{name}" is not an integer, 0 or more')
    return value


def real_in(line: Line, name: str) -> float:
    """A member that must be a number. ValueError."""
    value = line.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f'"{name}" is not a number')
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f'"{name}" is too large a number') from None


def real_or_none(line: Line, name: str) -> float | None:
    """A member that is a number from 0 on, or None. ValueError."""
    value = None if line.get(name) is None else real_in(line, name)
    if value is not None and value < 0:
        raise ValueError(f'"{name}" is below 0')
    return value


def object_in(line: Line, name: str) -> dict[str, Any] | None:
    """A member that is an object, or None where it is missing. ValueError."""
    value = line.get(name)
    if value is not None and not isinstance(value, dict):
        raise ValueError(f'"{name}" is not an object')
    return value


def list_in(line: Line, name: str) -> list[Any]:
    """A member that is a list, empty where it is missing. ValueError."""
    value = line.get(name, [])
    if not isinstance(value, list):
        raise ValueError(f'"{name}" is not a list')
    return value


def flag_in(line: Line, name: str) -> bool:
    """Whether a member is true."""
    return line.get(name) is True


# By the type of a field. A time that a value must have may be missing in a line: its reader says
# what holds instead.
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
