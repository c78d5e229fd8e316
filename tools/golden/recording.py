"""A recording: named values, one JSON line each, floats to the bit.

In: values of any kind. Out: a file of lines, and the differences between two such files.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

__all__ = ["Recording", "differences", "plain"]

# What a wall clock or the size of a disposable file decides.
MOMENTARY = frozenset({"seconds", "bytes"})
_STORED_SECONDS = re.compile(r'("seconds": ?)[0-9.e-]+')


class Recording:
    """Named values in the order of their making. `aliases` maps texts that differ from one run to
    the next, such as folders, to the names that are written instead of them.
    """

    def __init__(self, path: Path, aliases: Mapping[str, str]) -> None:
        self._file = path.open("w", encoding="utf-8", errors="surrogatepass")
        self._aliases = dict(aliases)
        self._names: set[str] = set()

    @property
    def length(self) -> int:
        """How many values were kept."""
        return len(self._names)

    def add_alias(self, text: str, name: str) -> None:
        """Write `name` instead of `text` from now on."""
        self._aliases[text] = name

    def keep(self, name: str, value: Any) -> None:
        """Write one value. Raises ValueError for a name that was recorded before."""
        if name in self._names:
            raise ValueError(f"{name} was recorded before")
        self._names.add(name)
        line = json.dumps([name, plain(value)], ensure_ascii=True, sort_keys=True)
        # The longest first: one folder may lie inside another.
        for text in sorted(self._aliases, key=len, reverse=True):
            line = line.replace(text, f"<{self._aliases[text]}>")
        self._file.write(line + "\n")

    def keep_call(self, name: str, function: Callable[[], Any]) -> Any:
        """Call `function`, write what it answers or raises, and return that."""
        try:
            answer = function()
        except Exception as error:  # noqa: BLE001 - an error is an answer to record
            answer = error
        self.keep(name, answer)
        return answer

    def close(self) -> None:
        """End the file."""
        self._file.close()


def plain(value: Any) -> Any:
    """A value as JSON can hold it: floats as hexadecimal digits, bytes in base 64."""
    if isinstance(value, str):
        return _STORED_SECONDS.sub(r"\1…", value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return f"float {value.hex()}"
    if isinstance(value, bytes):
        return f"bytes {base64.b64encode(value).decode()}"
    if isinstance(value, datetime):
        return f"time {value.isoformat()}"
    if isinstance(value, BaseException):
        return {"error": type(value).__name__, "says": str(value)}
    return _compound(value)


def _compound(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return {"is": type(value).__name__, **_members(fields)}
    if isinstance(value, Mapping):
        return _members(value)
    if isinstance(value, set | frozenset):
        return sorted(map(plain, value), key=repr)
    if isinstance(value, Sequence):
        return [plain(one) for one in value]
    return str(value)


def _members(members: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(k): plain(v) for k, v in members.items() if str(k) not in MOMENTARY}


def differences(old: Path, new: Path) -> Iterator[str]:
    """Each named value that is not the same in both, in words; nothing when all is."""
    one, other = _lines(old), _lines(new)
    for name in one.keys() | other.keys():
        if name not in other:
            yield f"{name}: only in the old build"
        elif name not in one:
            yield f"{name}: only in the new build"
        elif one[name] != other[name]:
            yield from (f"{name}{where}" for where in _apart(one[name], other[name]))


def _lines(place: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for line in place.read_text("utf-8").splitlines():
        name, value = json.loads(line)
        assert name not in found, f"{name} was recorded twice"
        found[name] = value
    return found


def _apart(old: Any, new: Any, where: str = "") -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            if old.get(key) != new.get(key):
                yield from _apart(old.get(key), new.get(key), f"{where}.{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for place, (one, other) in enumerate(zip(old, new, strict=True)):
            if one != other:
                yield from _apart(one, other, f"{where}[{place}]")
    else:
        yield f"{where}: {_short(old)} -> {_short(new)}"


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 160 else f"{text[:160]}…"
