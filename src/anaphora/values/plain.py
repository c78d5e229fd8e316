"""Values as plain data that can be JSON, and back: how results of another process come in.

A frozen dataclass becomes its name and its fields; only classes that the reader names are made
again, so that a process that was taken over can send nothing but values of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from functools import cache
from typing import Any, Final

Types = Mapping[str, type]

_ATOMS: Final = frozenset((str, int, float, bool, type(None)))
_MAP: Final = "map"
_TUPLE: Final = "tuple"
_SET: Final = "set"
_TIME: Final = "time"
_OBJECT: Final = "object"


def types_of(*classes: type) -> Types:
    """The classes by name, as `from_plain` takes them."""
    return {class_.__name__: class_ for class_ in classes}


def to_plain(value: Any) -> Any:
    """A value of dataclasses, collections, times and plain data. Raises TypeError for others."""
    if type(value) in _ATOMS or isinstance(value, str | int | float):
        return value
    if isinstance(value, datetime):
        return {_TIME: value.isoformat()}
    if isinstance(value, list):
        return [to_plain(part) for part in value]
    if isinstance(value, tuple):
        return {_TUPLE: [to_plain(part) for part in value]}
    if isinstance(value, frozenset):
        return {_SET: [to_plain(part) for part in value]}
    if isinstance(value, Mapping):
        return {_MAP: [[key, to_plain(part)] for key, part in value.items()]}
    # The kinds that come by the thousand are told apart here, without a call for each part.
    parts = [getattr(value, name) for name in _fields_of(type(value))]  # type: ignore[arg-type]  # a type is hashable
    plain = [part if type(part) in _ATOMS else to_plain(part) for part in parts]
    return {_OBJECT: [type(value).__name__, *plain]}


@cache
def _fields_of(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def from_plain(data: Any, types: Types) -> Any:
    """The value again. Raises ValueError, TypeError or LookupError for what is none."""
    if isinstance(data, list):
        return [from_plain(part, types) for part in data]
    if not isinstance(data, dict):
        return data
    ((tag, content),) = data.items()
    if tag == _TIME:
        return datetime.fromisoformat(content)
    if tag == _MAP:
        return {key: from_plain(part, types) for key, part in content}
    if tag == _OBJECT:
        name, *parts = content
        return types[name](
            *[part if type(part) in _ATOMS else from_plain(part, types) for part in parts]
        )
    return {_TUPLE: tuple, _SET: frozenset}[tag](from_plain(part, types) for part in content)
