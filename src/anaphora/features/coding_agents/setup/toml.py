"""TOML: reading, and edits of one table that touch no byte of any other.

What cannot be edited in this simple way, such as an inline table, is refused: ValueError.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

_REFUSED = "its format cannot be edited automatically"


def read(text: str) -> dict[str, Any]:
    """The value of a whole text. ValueError."""
    return tomllib.loads(text)


def put(text: str, path: Sequence[str], value: Any) -> str:
    """The text with a table at `path`, or with a value in an existing table."""
    end = "\r\n" if "\r\n" in text else "\n"
    if isinstance(value, Mapping):
        remainder = _without(text, path)
        remainder += end if remainder and not remainder.endswith("\n") else ""
        lines = [
            f"[{'.'.join(path)}]",
            *(f"{_shown_key(k)} = {_shown(v)}" for k, v in value.items()),
        ]
        edited_text = remainder + (end if remainder else "") + end.join(lines) + end
    else:
        start, stop = next(iter(_blocks(text.splitlines(keepends=True), path[:-1])), (0, 0))
        lines = text.splitlines(keepends=True)
        pattern = re.compile(rf"[ \t]*\"?{re.escape(path[-1])}\"?[ \t]*=")
        old = [n for n in range(start + 1, stop) if pattern.match(lines[n])]
        at = old[0] if old else start + 1
        lines[at : at + len(old)] = [f"{path[-1]} = {_shown(value)}{end}"]
        edited_text = "".join(lines)
    return _verified(text, edited_text, path, value)


def take(text: str, path: Sequence[str]) -> str:
    """The text without the table at `path` and its subtables."""
    return _verified(text, _without(text, path), path, None)


def _without(text: str, path: Sequence[str]) -> str:
    lines = text.splitlines(keepends=True)
    for start, stop in reversed(_blocks(lines, path)):
        # The blank line that keeps a table apart goes with it.
        del lines[start - (start > 0 and not lines[start - 1].strip()) : stop]
    return "".join(lines)


def _blocks(lines: Sequence[str], path: Sequence[str]) -> list[tuple[int, int]]:
    """The lines of the table and of its subtables, from the header to the last key of each.

    Comments behind the last key belong to what follows.
    """
    name = r"[ \t]*\.[ \t]*".join(rf"(?:{re.escape(key)}|\"{re.escape(key)}\")" for key in path)
    header = re.compile(rf"[ \t]*\[[ \t]*{name}[ \t]*[.\]]")
    heads = [n for n, line in enumerate(lines) if line.lstrip().startswith("[")] + [len(lines)]
    blocks = []
    for start, after in pairwise(heads):
        if header.match(lines[start]):
            keys = [n for n in range(start, after) if lines[n].partition("#")[0].strip()]
            blocks.append((start, keys[-1] + 1))
    return blocks


def _verified(before: str, after: str, path: Sequence[str], value: Any) -> str:
    """The edited text, if nothing but the value at `path` is another one in it."""
    expected = read(before)
    parents: list[Any] = [expected]
    try:
        for key in path[:-1]:
            parents.append(parents[-1].setdefault(key, {}))
        if value is None:
            del parents[-1][path[-1]]
        else:
            parents[-1][path[-1]] = value
        edited = read(after)
    except (ValueError, TypeError, AttributeError, LookupError) as error:
        raise ValueError(_REFUSED) from error
    if edited == expected:
        return after
    # A table that only held others need not be there without them.
    for key, parent in zip(reversed(path[:-1]), reversed(parents[:-1]), strict=True):
        if not parent[key]:
            del parent[key]
    if edited != expected:
        raise ValueError(_REFUSED)
    return after


def _shown_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key)


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_shown_key(k)} = {_shown(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_shown, value)) + "]"
    # A JSON string, number or boolean is also valid TOML; times are written as they are read.
    is_plain = isinstance(value, str | int | float)
    return json.dumps(value, ensure_ascii=False) if is_plain else value.isoformat()
