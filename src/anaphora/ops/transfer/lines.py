"""Lines of an export: JSON objects as text, and the readers of their members.

A line is valid UTF-8 and keeps every character as it was: lone surrogates and NUL are JSON escapes.
Two surrogates side by side that were two characters would be read back as one: a line that has them
is wrapped, see docs/formats.md. Nothing here touches a disk.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from anaphora.core.arguments import has_utc
from anaphora.core.json_codec import plain
from anaphora.errors import InvalidInput
from anaphora.store.escaping import escape, unescape
from anaphora.store.nesting import is_too_deep

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
    kept = {name: item for name, item in value.items() if item is not None and item != ()}
    written = json.dumps(
        plain(kept, _scalar), ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )
    if _SPLIT_CHARACTER.search(written):
        return to_line({"kind": "escaped", "line": escape(written)})
    return _TO_ESCAPE.sub(lambda m: f"\\u{ord(m[0]):04x}", written).encode() + b"\n"


def _scalar(value: object) -> object:
    if isinstance(value, datetime):
        return time_text(value)
    if value is None or isinstance(value, (str, int, float)):
        return value
    raise InvalidInput("export", value, "is nothing that JSON has")


def time_text(moment: datetime) -> str:
    """RFC 3339 in UTC, to the microsecond."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def from_line(line: bytes) -> dict[str, Any]:
    """The object of a line. ValueError for what is none, or is nested too deeply."""
    found = _object(line.decode())
    if isinstance(found, dict) and found.get("kind") == "escaped":
        found = _object(unescape(string(found, "line")))
    if not isinstance(found, dict):
        raise ValueError("it is no JSON object")
    return found


def _object(text: str) -> object:
    try:
        found = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if is_too_deep(found, text):
        raise ValueError("it is nested too deeply")
    return found


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    """A number of JSON; one that is beyond what a float holds could not be written again."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is no number that can be kept")
    return number


def members(found: Line, fields: Mapping[str, Reader]) -> dict[str, Any]:
    """The members of a line by the readers of its kind. ValueError names the wrong one."""
    return {name: read(found, name) for name, read in fields.items()}


def string(found: Line, name: str) -> str:
    """A member that must be a string. ValueError."""
    value = found.get(name)
    if not isinstance(value, str):
        raise ValueError(f'"{name}" is no string')
    return value


def id_in(found: Line, name: str = "id") -> str:
    """A name that no text around it can be confused with. ValueError."""
    value = string(found, name)
    if _ID.fullmatch(value) is None:
        raise ValueError(f'"{name}" is no id: 1 to 128 ASCII letters, digits, "_", "-", ".", ":"')
    return value


def time_in(found: Line, name: str) -> datetime | None:
    """A time with an offset, or None. ValueError."""
    written = text_in(found, name)
    if written is None:
        return None
    moment = datetime.fromisoformat(written)
    if moment.utcoffset() is None:
        raise ValueError(f'"{name}" has no offset')
    if not has_utc(moment):
        raise ValueError(f'"{name}" lies beyond the years that there are')
    return moment.astimezone(UTC)


def text_in(found: Line, name: str) -> str | None:
    """A member that is a string, or None where it is missing. ValueError."""
    return None if found.get(name) is None else string(found, name)


def texts_in(found: Line, name: str) -> tuple[str, ...]:
    """A member that is a list of strings, each once; () where it is missing. ValueError."""
    value = found.get(name, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(f'"{name}" is no list of strings')
    return tuple(dict.fromkeys(value))


def number_in(found: Line, name: str) -> int | None:
    """A member that is a whole number from 0 on, or None. ValueError."""
    value = found.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _MOST:
        raise ValueError(f'"{name}" is no whole number from 0 on')
    return value


def real_in(found: Line, name: str) -> float:
    """A member that must be a number. ValueError."""
    value = found.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f'"{name}" is no number')
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f'"{name}" is beyond every number that is kept') from None


def object_in(found: Line, name: str) -> dict[str, Any] | None:
    """A member that is an object, or None where it is missing. ValueError."""
    value = found.get(name)
    if value is not None and not isinstance(value, dict):
        raise ValueError(f'"{name}" is no object')
    return value


def list_in(found: Line, name: str) -> list[Any]:
    """A member that is a list, empty where it is missing. ValueError."""
    value = found.get(name, [])
    if not isinstance(value, list):
        raise ValueError(f'"{name}" is no list')
    return value


def flag_in(found: Line, name: str) -> bool:
    """Whether a member is true."""
    return found.get(name) is True
