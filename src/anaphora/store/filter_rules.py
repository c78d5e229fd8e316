"""The operators of the filter language: what operand each one takes, and what it holds between.

In: an operand as the caller wrote it, with its place; later a record's value. Out: the operand as
it is compared, or a `FilterError` that names the place; later true or false. `RULES` is the whole
table, by kind of field and name of operator; `exists` needs no value and is answered elsewhere.
Never touches a record's missing fields, a disk or a clock.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from operator import ge, gt, le, lt
from typing import Any

from anaphora.core.arguments import has_utc
from anaphora.errors import FilterError
from anaphora.store.threads.gojson import read_time

Read = Callable[[object, str], Any]
Holds = Callable[[Any, Any], bool]
Rules = dict[str, tuple[Read, Holds]]
_Key = tuple[str, Any]


def fault(place: str, value: object, reason: str) -> FilterError:
    """The error for `value` at `place`, to be raised."""
    # The repr of a deeply nested value would overrun the stack.
    plain = value is None or isinstance(value, str | int | float | datetime)
    return FilterError(place, value if plain else reprlib.repr(value), reason)


# What an operand has to be. Each reader returns what `Holds` takes.


def read_flag(value: object, place: str) -> bool:
    """The operand of `exists`."""
    if not isinstance(value, bool):
        raise fault(place, value, "expected true or false")
    return value


def _text(value: object, place: str) -> str:
    if not isinstance(value, str):
        raise fault(place, value, _expected("a text", value))
    return value


def _number(value: object, place: str) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not _finite(value):
        raise fault(place, value, _expected("a finite number", value))
    return value


def _time(value: object, place: str) -> datetime:
    found = value if isinstance(value, datetime) else None
    if isinstance(value, str):
        with suppress(ValueError):
            found = read_time(value)
    if found is not None and found.utcoffset() is not None and has_utc(found):
        return found
    wanted = "a time with an offset, such as 2026-04-30T12:00:00Z"
    raise fault(place, value, _expected(wanted, value))


def _scalar(value: object, place: str) -> _Key:
    """A payload value with its JSON type, so that True is not 1."""
    key = _json_key(value)
    if key is None or (key[0] == "number" and not _finite(key[1])):
        raise fault(place, value, _expected("a text, a finite number, true or false", value))
    return key


def _ordered(value: object, place: str) -> _Key:
    key = _json_key(value)
    if key is None or key[0] == "flag" or (key[0] == "number" and not _finite(key[1])):
        raise fault(place, value, _expected("a text or a finite number", value))
    return key


def _any_of(read: Read) -> Read:
    def read_all(value: object, place: str) -> frozenset[Any]:
        if not isinstance(value, list | tuple):
            raise fault(place, value, "expected a list")
        if not value:
            raise fault(place, value, "expected at least one value; exists asks for none")
        return frozenset(read(part, f"{place}[{index}]") for index, part in enumerate(value))

    return read_all


def _tag_set(value: object, place: str) -> frozenset[str]:
    if isinstance(value, str):
        raise fault(place, value, "expected a list of tags; contains asks for one tag")
    tags: frozenset[str] = _any_of(_text)(value, place)
    return tags


def _expected(wanted: str, value: object) -> str:
    return f"expected {wanted}" + ("; exists asks for what is missing" if value is None else "")


def _finite(value: int | float) -> bool:
    return isinstance(value, int) or math.isfinite(value)


def _json_key(value: object) -> _Key | None:
    if isinstance(value, bool):
        return ("flag", value)
    if isinstance(value, int | float):
        return ("number", value)
    if isinstance(value, str):
        return ("text", value)
    return None


# What has to hold between the record's value, which is there, and the operand.


def _is(value: Any, operand: Any) -> bool:
    return bool(value == operand)


def _is_not(value: Any, operand: Any) -> bool:
    return bool(value != operand)


def _is_in(value: Any, operand: Any) -> bool:
    return value in operand


def _contains(value: Any, operand: Any) -> bool:
    return operand in value


def _starts(value: str, operand: str) -> bool:
    return value.startswith(operand)


def _same_tags(value: Any, operand: frozenset[str]) -> bool:
    return frozenset(value) == operand


def _other_tags(value: Any, operand: frozenset[str]) -> bool:
    return frozenset(value) != operand


def _a_tag_in(value: Any, operand: frozenset[str]) -> bool:
    return not operand.isdisjoint(value)


def _a_tag_starts(value: Any, operand: str) -> bool:
    return any(tag.startswith(operand) for tag in value)


def _payload_is(value: Any, operand: _Key) -> bool:
    return _json_key(value) == operand


def _payload_is_not(value: Any, operand: _Key) -> bool:
    return _json_key(value) != operand


def _payload_in(value: Any, operand: frozenset[_Key]) -> bool:
    return _json_key(value) in operand


def _payload_contains(value: Any, operand: _Key) -> bool:
    if isinstance(value, str):
        return operand[0] == "text" and operand[1] in value
    return isinstance(value, list | tuple) and any(_json_key(part) == operand for part in value)


def _payload_starts(value: Any, operand: str) -> bool:
    return isinstance(value, str) and value.startswith(operand)


def _payload_order(compare: Holds) -> Holds:
    def holds(value: Any, operand: _Key) -> bool:
        key = _json_key(value)
        return key is not None and key[0] == operand[0] and compare(key[1], operand[1])

    return holds


_ORDER: dict[str, Holds] = {"gt": gt, "gte": ge, "lt": lt, "lte": le}


def _plain_rules(read: Read) -> Rules:
    rules: Rules = {"eq": (read, _is), "ne": (read, _is_not)}
    rules.update({name: (read, holds) for name, holds in _ORDER.items()})
    rules["in"] = (_any_of(read), _is_in)
    return rules


RULES: dict[str, Rules] = {
    "text": _plain_rules(_text) | {"contains": (_text, _contains), "startswith": (_text, _starts)},
    "time": _plain_rules(_time),
    "number": _plain_rules(_number),
    "tags": {
        "eq": (_tag_set, _same_tags),
        "ne": (_tag_set, _other_tags),
        "in": (_any_of(_text), _a_tag_in),
        "contains": (_text, _contains),
        "startswith": (_text, _a_tag_starts),
    },
    "payload": {
        "eq": (_scalar, _payload_is),
        "ne": (_scalar, _payload_is_not),
        **{name: (_ordered, _payload_order(holds)) for name, holds in _ORDER.items()},
        "in": (_any_of(_scalar), _payload_in),
        "contains": (_scalar, _payload_contains),
        "startswith": (_text, _payload_starts),
    },
}
