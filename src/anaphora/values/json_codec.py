"""Converts frozen values to JSON types and back.

The caller decides the form of times and the members of a value: the surfaces round numbers, the
database stores every digit, an export has times in UTC. Texts are not changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import cache, lru_cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

Members = Callable[[Any], Mapping[str, Any]]
Scalar = Callable[[Any], Any]
_AS_THEY_ARE = frozenset((str, int, bool, type(None)))


def members_of(value: Any) -> dict[str, Any]:
    """The fields of a frozen value, by name."""
    return {name: getattr(value, name) for name in _names(type(value))}  # type: ignore[arg-type]  # as below


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def iso_time(value: Any) -> Any:
    """A time in ISO 8601, everything else as it is."""
    return value.isoformat() if isinstance(value, datetime) else value


def plain(value: Any, scalar: Scalar = iso_time, members: Members = members_of) -> Any:
    """`value` in JSON types: `members` gives the fields of a dataclass, `scalar` converts others.

    Texts, integers, booleans and None are not changed.
    """
    if type(value) in _AS_THEY_ARE:
        return value
    if type(value) is float:
        return scalar(value)
    if is_dataclass(value) and not isinstance(value, type):
        value = members(value)
    if isinstance(value, Mapping):
        # Most members need no call.
        return {
            str(key): part if type(part) in _AS_THEY_ARE else plain(part, scalar, members)
            for key, part in value.items()
        }
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(part, scalar, members) for part in value]
    return scalar(value)


def as_json(value: Any) -> str:
    """A value, a list or a mapping of values as JSON text, times to the microsecond."""
    return json.dumps(plain(value), ensure_ascii=False, separators=(",", ":"))


def from_plain(kind: Any, stored: Any) -> Any:
    """The value of type `kind` that `plain` wrote.

    Unknown fields of a later version are left out; missing fields of an older one have their
    defaults. Raises TypeError, ValueError or AttributeError for anything that `plain` cannot write.
    """
    generic = get_origin(kind) or kind
    if isinstance(generic, type) and is_dataclass(generic):
        hints = _hints(generic, get_args(kind))
        return generic(
            **{
                name: from_plain(hints[name], part)
                for name, part in stored.items()
                if name in hints
            }
        )
    if generic in {tuple, list}:
        return generic(from_plain(get_args(kind)[0], part) for part in stored)
    if get_origin(kind) in {Union, UnionType}:
        return None if stored is None else from_plain(get_args(kind)[0], stored)
    return datetime.fromisoformat(stored) if kind is datetime else stored


@lru_cache(maxsize=64)
def _hints(kind: type[Any], parameters: tuple[Any, ...]) -> dict[str, Any]:
    """The types of a dataclass's fields; `parameters` are the type arguments of a generic one."""
    hints = get_type_hints(kind)
    if parameters:
        hints = {
            name: hint[parameters] if getattr(hint, "__parameters__", ()) else hint
            for name, hint in hints.items()
        }
    return hints
