"""The worker side of `export_lines`: lines of JSON are checked, and written again.

Two surrogates side by side that were two characters would be read back as one: a line that has them
is wrapped, see docs/formats.md.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from anaphora.store.disk import open_regular
from anaphora.store.escaping import escape, unescape
from anaphora.store.nesting import is_too_deep

_SPLIT_CHARACTER = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_CHUNK = 1 << 16
_EVERY = 64


def is_beginning(head: bytes) -> Iterator[bool]:
    """Whether a line is the first one of an export."""
    try:
        yield read_object(head.decode()).get("anaphora") == "export"
    except ValueError:
        yield False


def read(path: str, most: int, parts: int) -> Iterator[str | int | list[str]]:
    """Every line of a file in order, or a list with the reason why it is invalid; at times how many
    bytes were read."""
    with open_regular(Path(path)) as file:
        number = 0
        while line := file.readline(most):
            overflow = b"" if line.endswith(b"\n") else file.readline(_CHUNK)
            if number % _EVERY == 0:
                yield file.tell()
            number += 1
            if overflow:
                yield [f"longer than {most:,} bytes; it was skipped"]
                # It is never held.
                while overflow and not overflow.endswith(b"\n"):
                    overflow = file.readline(_CHUNK)
            elif len(line) > parts and sum(line.count(mark) for mark in b"[{,") > parts:
                yield [f"more than {parts:,} values in one line; it was skipped"]
            else:
                checked_line: str | list[str]
                try:
                    checked_line = write_object(read_object(line.decode()))
                except MemoryError:
                    checked_line = ["there is not memory enough for it"]
                except (ValueError, TypeError) as error:
                    checked_line = [str(error)[:300]]
                yield checked_line


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
