"""One JSON object as one line of text, and back: lines of exports and of what devices exchange.

A line is valid UTF-8 and keeps every character as it was: lone surrogates and NUL are JSON escapes.
Two surrogates side by side that were two characters would be read back as one: a line that has them
is wrapped, see docs/formats.md. Nothing here touches a disk.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from anaphora.errors import InvalidInput
from anaphora.store.escaping import escape, unescape
from anaphora.store.nesting import is_too_deep
from anaphora.values.json_codec import plain

Line = Mapping[str, Any]

# Characters that some readers take for the end of a line, and those that UTF-8 cannot encode.
_TO_ESCAPE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_SPLIT_CHARACTER = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def to_line(members: Line) -> bytes:
    """One line of these members, without members that are None or empty; its end included."""
    json_text = json.dumps(
        as_object(members), ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )
    if _SPLIT_CHARACTER.search(json_text):
        return to_line({"kind": "escaped", "line": escape(json_text)})
    return _TO_ESCAPE.sub(lambda m: f"\\u{ord(m[0]):04x}", json_text).encode() + b"\n"


def from_line(line: bytes | str) -> dict[str, Any]:
    """The object of a line. ValueError for another value, or one nested too deeply."""
    return read_object(line if isinstance(line, str) else line.decode())


def as_object(members: Line) -> dict[str, Any]:
    """The object that `from_line` reads from the line of these members."""
    json_object: dict[str, Any] = plain(present(members), _scalar)
    return json_object


def present(members: Line) -> dict[str, Any]:
    """The members without those that are None or empty."""
    return {name: member for name, member in members.items() if member is not None and member != ()}


def _scalar(value: object) -> object:
    if isinstance(value, datetime):
        return time_text(value)
    if value is None or isinstance(value, (str, int, float)):
        return value
    raise InvalidInput("export", value, "cannot be written as JSON")


def time_text(moment: datetime) -> str:
    """RFC 3339 in UTC, to the microsecond."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def read_object(text: str) -> dict[str, Any]:
    """The object of a line. ValueError if there is none, or it is nested too deeply."""
    parsed_line = _parse(text)
    if isinstance(parsed_line, dict) and parsed_line.get("kind") == "escaped":
        wrapped_line = parsed_line.get("line")
        if not isinstance(wrapped_line, str):
            raise ValueError('"line" is not a string')
        parsed_line = _parse(unescape(wrapped_line))
    if not isinstance(parsed_line, dict):
        raise ValueError("it is not a JSON object")
    return parsed_line


def write_object(value: dict[str, Any]) -> str:
    """The JSON that `read_object` reads as this object."""
    json_text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if _SPLIT_CHARACTER.search(json_text) is None:
        return json_text
    return json.dumps({"kind": "escaped", "line": escape(json_text)}, ensure_ascii=False)


def _parse(text: str) -> object:
    try:
        parsed_line = json.loads(text, parse_constant=_refuse, parse_float=_parse_finite)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if is_too_deep(parsed_line, text):
        raise ValueError("it is nested too deeply")
    return parsed_line


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _parse_finite(text: str) -> float:
    """A number of JSON; one that is beyond what a float holds could not be written again."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is not a number that can be stored")
    return number
