"""Reads the filters of a recall, a listing or a forgetting: which records do they let through?

A `Filter` is made once of `{"AND": [{"type": "semantic"}, {"tags": {"contains": "testing"}}]}` or
None, and its `matches` takes one record as a mapping. It is read strictly: what cannot be meant is
a `FilterError` that names its place, never a condition that is silently true or false.

An object is `AND`, `OR` (each a list of objects), `NOT` (one object) and fields; several keys mean
all of them. A field has a value (which means `eq`) or an object of operators, all of which hold.

| field                            | operators                                                     |
|----------------------------------|---------------------------------------------------------------|
| texts                            | all of them; order is that of code points                     |
| tags                             | eq, ne (a list, as a set); contains, startswith (any tag      |
|                                  | does); in (any tag is one of them); exists                    |
| times, numbers                   | eq, ne, gt, gte, lt, lte, in, exists                          |
| payload.name, payload.name.inner | all of them; a value of another type does not match           |
| lineage                          | descendant_of, ancestor_of (an id); eq, ne, in (the whole     |
|                                  | lineage of an id, itself among it)                            |

A lineage follows `parent` to any depth. Records do not hold theirs: `Filter.resolved` puts the ids
in its place first.
A field that a record lacks (absent, None, no tags) matches `ne` and `exists: false`, nothing else.
NOT turns the answer round: what lacks a field is let through by NOT around a condition on it.
Texts compare exactly, case and accents included, in whatever Unicode form (NFC, NFD) either is
written. Times are aware datetimes or RFC 3339 texts.
"""

from __future__ import annotations

import difflib
import math
import reprlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from operator import contains, eq, ge, gt, le, lt, ne
from typing import Any, Final

from anaphora.calls.moments import has_utc
from anaphora.errors import FilterError
from anaphora.language.names import composed, standing_form
from anaphora.store.threads.gojson import read_time
from anaphora.values.memories import MEMORY_FIELDS

Read = Callable[[object, str], Any]
Holds = Callable[[Any, Any], bool]
Rules = dict[str, tuple[Read, Holds]]
Lineage = Callable[[str, frozenset[str]], frozenset[str]]
_Key = tuple[str, Any]


def fault(place: str, value: object, reason: str) -> FilterError:
    """The error for `value` at `place`, to be raised."""
    # The repr of a deeply nested value would overrun the stack.
    plain = value is None or isinstance(value, str | int | float | datetime)
    return FilterError(place, value if plain else reprlib.repr(value), reason)


# What an operand has to be. Each reader returns what `Holds` takes.


def _text(value: object, place: str) -> str:
    if not isinstance(value, str):
        raise fault(place, value, _expected("a text", value))
    return composed(value)


def _number(value: object, place: str) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not _finite(value):
        raise fault(place, value, _expected("a finite number", value))
    return value


def _time(value: object, place: str) -> datetime:
    time = value if isinstance(value, datetime) else None
    if isinstance(value, str):
        with suppress(ValueError):
            time = read_time(value)
    if time is not None and time.utcoffset() is not None and has_utc(time):
        return time
    expected_form = "a time with an offset, such as 2026-04-30T12:00:00Z"
    raise fault(place, value, _expected(expected_form, value))


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


def _expected(form: str, value: object) -> str:
    return f"expected {form}" + ("; exists asks for what is missing" if value is None else "")


def _finite(value: int | float) -> bool:
    return isinstance(value, int) or math.isfinite(value)


def _json_key(value: object) -> _Key | None:
    if isinstance(value, bool):
        return ("flag", value)
    if isinstance(value, int | float):
        return ("number", value)
    if isinstance(value, str):
        return ("text", composed(value))
    return None


# What has to hold between the record's value, which is there, and the operand.


def _payload_contains(value: Any, operand: _Key) -> bool:
    if isinstance(value, str):
        return operand[0] == "text" and operand[1] in value
    return isinstance(value, list | tuple) and any(_json_key(part) == operand for part in value)


def _starts(value: Any, operand: str) -> bool:
    return isinstance(value, str) and value.startswith(operand)


def _payload_order(compare: Holds) -> Holds:
    def holds(value: Any, operand: _Key) -> bool:
        key = _json_key(value)
        return key is not None and key[0] == operand[0] and compare(key[1], operand[1])

    return holds


_ORDER: dict[str, Holds] = {"gt": gt, "gte": ge, "lt": lt, "lte": le}


def _plain_rules(read: Read) -> Rules:
    rules: Rules = {"eq": (read, eq), "ne": (read, ne)}
    rules.update({name: (read, holds) for name, holds in _ORDER.items()})
    rules["in"] = (_any_of(read), lambda value, operands: value in operands)
    return rules


RULES: dict[str, Rules] = {
    "text": _plain_rules(_text) | {"contains": (_text, contains), "startswith": (_text, _starts)},
    "time": _plain_rules(_time),
    "number": _plain_rules(_number),
    "tags": {
        "eq": (_tag_set, lambda tags, operand: frozenset(tags) == operand),
        "ne": (_tag_set, lambda tags, operand: frozenset(tags) != operand),
        "in": (_any_of(_text), lambda tags, operands: not operands.isdisjoint(tags)),
        "contains": (_text, contains),
        "startswith": (_text, lambda tags, start: any(tag.startswith(start) for tag in tags)),
    },
    "payload": {
        "eq": (_scalar, lambda value, key: _json_key(value) == key),
        "ne": (_scalar, lambda value, key: _json_key(value) != key),
        **{name: (_ordered, _payload_order(holds)) for name, holds in _ORDER.items()},
        "in": (_any_of(_scalar), lambda value, keys: _json_key(value) in keys),
        "contains": (_scalar, _payload_contains),
        "startswith": (_text, _starts),
    },
}


LINEAGE: Final = "lineage"
"""What is looked up by `parent`, to any depth, before records are asked."""

ONE_WAY: Final = ("descendant_of", "ancestor_of")

LINEAGE_RULES: Final[Mapping[str, Read]] = {
    "eq": _text,
    "ne": _text,
    "in": _any_of(_text),
    "descendant_of": _text,
    "ancestor_of": _text,
}

MAX_DEPTH: Final = 32
"""AND, OR and NOT within one another."""
MAX_NODES: Final = 1_000
"""Conditions and junctions in all. The values of one `in` are not counted."""

_PAYLOAD = "payload."
KINDS: Final[Mapping[str, str]] = {
    name: spec.kind if spec.kind in RULES else "text"
    for name, spec in MEMORY_FIELDS.items()
    if spec.filtered
}
"""By the name of a field which of the `RULES` count; a payload's fields have those of its own."""
FIELDS: Final = (*KINDS, "payload")
"""What a record is asked about: the names of the mapping that `Filter.matches` takes."""
_OPERATORS = (
    "eq", "ne", "gt", "gte", "lt", "lte", "in", "contains", "startswith", "exists",
    "descendant_of", "ancestor_of",
)  # fmt: skip
_OPERATOR_NAMES = ", ".join(_OPERATORS)
_JUNCTIONS = ("AND", "OR", "NOT")


@dataclass(frozen=True, slots=True)
class _Condition:
    """One operator on one field: `holds(value of the record, operand)`."""

    path: tuple[str, ...]
    operator: str
    operand: Any
    holds: Holds

    def matches(self, record: Mapping[str, Any]) -> bool:
        field_value = _value_at(record, self.path)
        if self.operator == "exists":
            return (field_value is not None) is self.operand
        if field_value is None:
            return self.operator == "ne"
        return self.holds(field_value, self.operand)


@dataclass(frozen=True, slots=True)
class _Relatives:
    """One operator on the lineages of some ids."""

    operator: str
    ids: frozenset[str]

    def matches(self, record: Mapping[str, Any]) -> bool:
        raise AssertionError("a lineage is looked up before records are asked")

    def resolved(self, lineage: Lineage) -> _Node:
        ids = lineage(self.operator if self.operator in ONE_WAY else "eq", self.ids)
        inside = _Condition(("id",), "in", ids, RULES["text"]["in"][1])
        return _Not(inside) if self.operator == "ne" else inside


@dataclass(frozen=True, slots=True)
class _All:
    parts: tuple[_Node, ...]

    def matches(self, record: Mapping[str, Any]) -> bool:
        return all(part.matches(record) for part in self.parts)


@dataclass(frozen=True, slots=True)
class _Any:
    parts: tuple[_Node, ...]

    def matches(self, record: Mapping[str, Any]) -> bool:
        return any(part.matches(record) for part in self.parts)


@dataclass(frozen=True, slots=True)
class _Not:
    part: _Node

    def matches(self, record: Mapping[str, Any]) -> bool:
        return not self.part.matches(record)


_Node = _Condition | _Relatives | _All | _Any | _Not


def _resolved(node: _Node, lineage: Lineage) -> _Node:
    if isinstance(node, _Relatives):
        return node.resolved(lineage)
    if isinstance(node, _Not):
        return _Not(_resolved(node.part, lineage))
    if isinstance(node, _All | _Any):
        return type(node)(tuple(_resolved(part, lineage) for part in node.parts))
    return node


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter that was read. One without conditions (None, `{}`) has no `fields`.

    `fields` are the names that it asks about, `payload.name` for fields of the payload.
    """

    fields: frozenset[str] = frozenset()
    _root: _Node | None = field(default=None, repr=False)

    def matches(self, record: Mapping[str, Any]) -> bool:
        """Whether `record` is let through.

        The record has the fields of the module's table: texts, `tags` as any collection of texts,
        times as aware datetimes, `reinforce_count` as a number, `payload` as a JSON-like mapping.
        None and an absent key are the same.
        """
        return self._root is None or self._root.matches(record)

    def resolved(self, lineage: Lineage) -> Filter:
        """The same with ids for lineages: `lineage("descendant_of", ids)` gives those of them.

        The operators are those of `ONE_WAY`, and "eq" for both ways and the ids themselves.
        """
        if self._root is None or LINEAGE not in self.fields:
            return self
        return Filter(self.fields - {LINEAGE} | {"id"}, _resolved(self._root, lineage))


def parse(filters: Mapping[str, Any] | None) -> Filter:
    """Read `filters`; None and an empty object let everything through.

    Raises FilterError with the place, for example `filters.AND[1].tags.contains`: an unknown field
    or operator, an empty list, a value of the wrong type, more than `MAX_DEPTH` levels or
    `MAX_NODES` conditions and junctions.
    """
    if filters is None:
        return Filter()
    if not isinstance(filters, Mapping):
        raise fault("filters", filters, "expected an object")
    if not filters:
        return Filter()
    reader = _FilterReader()
    root = reader.read(filters, "filters", 0)
    return Filter(frozenset(reader.fields), root)


class _FilterReader:
    """One reading: counts nodes and gathers the names of fields."""

    def __init__(self) -> None:
        self.fields: set[str] = set()
        self._nodes = 0

    def read(self, filters: object, place: str, depth: int) -> _Node:
        if not isinstance(filters, Mapping):
            raise fault(place, filters, "expected an object")
        if not filters:
            raise fault(place, filters, "expected at least one field, AND, OR or NOT")
        if depth > MAX_DEPTH:
            raise fault(place, "…", f"nested deeper than {MAX_DEPTH} levels")
        parts: list[_Node] = []
        for name, operators in filters.items():
            if not isinstance(name, str):
                raise fault(place, name, "field names must be strings")
            parts.extend(self._entry(name, operators, f"{place}.{name}", depth))
        return parts[0] if len(parts) == 1 else _All(tuple(parts))

    def _entry(self, name: str, operators: object, place: str, depth: int) -> Iterator[_Node]:
        if name in _JUNCTIONS:
            self._count(place)
            yield self._junction(name, operators, place, depth + 1)
            return
        kind = _kind_of(name, place)
        self.fields.add(name)
        path = tuple(name.split("."))
        if not isinstance(operators, Mapping):
            yield self._condition(path, kind, "eq", operators, place)
            return
        if not operators:
            reason = f"expected operators, such as {{'eq': …}}; there are {_OPERATOR_NAMES}"
            raise fault(place, operators, reason)
        for operator, operand in operators.items():
            if operator not in _OPERATORS:
                suggestion = _near(operator, _OPERATORS)
                reason = f"unknown operator; expected one of {_OPERATOR_NAMES}{suggestion}"
                raise fault(f"{place}.{operator}", operand, reason)
            yield self._condition(path, kind, operator, operand, f"{place}.{operator}")

    def _junction(self, name: str, value: object, place: str, depth: int) -> _Node:
        if name == "NOT":
            return _Not(self.read(value, place, depth))
        if not isinstance(value, list | tuple):
            raise fault(place, value, "expected a list of objects")
        if not value:
            raise fault(place, value, "expected at least one object in the list")
        parts = tuple(
            self.read(part, f"{place}[{index}]", depth) for index, part in enumerate(value)
        )
        return _All(parts) if name == "AND" else _Any(parts)

    def _condition(
        self, path: tuple[str, ...], kind: str, operator: str, operand: object, place: str
    ) -> _Node:
        self._count(place)
        if kind == LINEAGE:
            read_ids = LINEAGE_RULES.get(operator)
            if read_ids is None:
                raise fault(place, operand, f"{LINEAGE} has {', '.join(LINEAGE_RULES)} only")
            ids = read_ids(operand, place)
            return _Relatives(operator, frozenset((ids,)) if isinstance(ids, str) else ids)
        if operator == "exists":
            if not isinstance(operand, bool):
                raise fault(place, operand, "expected true or false")
            return _Condition(path, operator, operand, _never)
        rule = RULES[kind].get(operator)
        if rule is None:
            operators = ", ".join((*RULES[kind], "exists"))
            raise fault(place, operand, f"{'.'.join(path)} has {operators} only")
        read, holds = rule
        return _Condition(path, operator, read(operand, place), holds)

    def _count(self, place: str) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise fault(place, "…", f"more than {MAX_NODES} conditions")


def _kind_of(name: str, place: str) -> str:
    if name.startswith(_PAYLOAD):
        if all(name.split(".")):
            return "payload"
        raise fault(place, name, "the field name has an empty part")
    kind = LINEAGE if name == LINEAGE else KINDS.get(name)
    if kind is not None:
        return kind
    if name == "payload":
        raise fault(place, name, "name a field of the payload, such as payload.framework")
    if name == "text":
        raise fault(place, name, "a memory's text cannot be filtered on: put it into the query")
    if name.upper() in _JUNCTIONS:
        raise fault(place, name, f"write {name.upper()} in capital letters")
    fields = (*KINDS, LINEAGE)
    names = ", ".join((*fields, "payload.<name>"))
    reason = f"unknown field; expected one of {names}{_near(name, fields)}"
    raise fault(place, name, reason)


def _near(name: object, names: tuple[str, ...]) -> str:
    close_names = difflib.get_close_matches(name[:40], names, 1) if isinstance(name, str) else []
    return f" (did you mean {close_names[0]}?)" if close_names else ""


def _value_at(record: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """The record's value, None when it lacks the field."""
    field_value: Any = record.get(path[0])
    for name in path[1:]:
        if not isinstance(field_value, Mapping):
            return None
        field_value = field_value.get(standing_form(name, field_value.__contains__))
    if path[0] == "tags":
        return tuple(map(composed, field_value)) if field_value else None
    return composed(field_value) if isinstance(field_value, str) else field_value


def _never(value: Any, operand: Any) -> bool:
    raise AssertionError("exists is answered before any value is compared")
