"""JSON Schemas of arguments and results, for the tools.

The schemas of results derive from the frozen values; they promise some fields, and more may come.
Those of arguments derive from the descriptions of calls.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any, Final, Literal, get_args, get_origin

from anaphora.calls.operation import operation_of
from anaphora.calls.parameters import CallParameter
from anaphora.values.conversations import ConfigurableCount, Degraded

Schema = dict[str, Any]


def text(description: str, **more: Any) -> Schema:
    """A string argument; without a description if its name says everything."""
    return {"type": "string", **_described(description), **more}


def _described(description: str) -> Schema:
    return {"description": description} if description else {}


def flag(default: bool, description: str = "") -> Schema:
    """Yes or no, of a tool's own."""
    return {"type": "boolean", **_described(description), "default": default}


def arguments(
    call: Callable[..., Any], names: str, own: Mapping[str, Schema] | None = None
) -> dict[str, Schema]:
    """The arguments of a tool that are parameters of a call, out of its description.

    `names` are those parameters, in order; `own` what a tool says otherwise of some: a shorter
    description ("" for none), a smaller bound (None for none), another default.
    """
    parameters = operation_of(call).parameters
    return {
        # `topK` for `top_k`.
        re.sub(r"_([a-z])", lambda match: match[1].upper(), name): _argument(
            parameters[name], (own or {}).get(name, {})
        )
        for name in names.split()
    }


def _argument(parameter: CallParameter, own: Schema) -> Schema:
    kind, described, default = parameter.annotation, parameter.described, parameter.default
    schema: Schema = dict(_OF_PYTHON.get(kind, {}))
    if get_origin(kind) is Literal:
        schema = {"type": "string", "enum": list(get_args(kind))}
    elif get_origin(kind) is Iterable:
        schema = dict(STRINGS) | ({"maxItems": described.most} if described.most else {})
    elif get_origin(kind) is Mapping:
        schema = dict(ANY)
    elif kind in (int, float):
        bounds = {"minimum": described.least, "maximum": described.most}
        schema |= {name: bound for name, bound in bounds.items() if bound is not None}
    description = own.get("description", described.meaning)
    schema |= _described(description)
    if isinstance(default, bool | int | float | str) and not isinstance(default, ConfigurableCount):
        schema["default"] = default
    schema |= {name: part for name, part in own.items() if name != "description"}
    return {name: part for name, part in schema.items() if part is not None}


def shape(properties: Mapping[str, Schema], required: tuple[str, ...] = ()) -> Schema:
    """An object with these properties."""
    return {"type": "object", "properties": dict(properties), "required": list(required)}


STRING: Final[Schema] = {"type": "string"}
STRINGS: Final[Schema] = {"type": "array", "items": STRING}
WHOLE: Final[Schema] = {"type": "integer"}
ANY: Final[Schema] = {"type": "object"}
ROWS: Final[Schema] = {"type": "array", "items": ANY}
_OF_PYTHON: Final[Mapping[Any, Schema]] = {
    str: STRING,
    int: WHOLE,
    float: {"type": "number"},
    bool: {"type": "boolean"},
}
# By the annotations of the frozen values. Any other tuple is an array of objects.
_OF_TYPE: Final[Mapping[str, Schema]] = {
    "str": STRING,
    "str | None": {"type": ["string", "null"]},
    "MemoryType | NoteKind": STRING,
    "MemoryType": STRING,
    "datetime": STRING,
    "int": WHOLE,
    "float": {"type": "number"},
    "float | None": {"type": "number"},
    "bool": {"type": "boolean"},
    "Mapping[str, Any] | None": {"type": ["object", "null"]},
    "tuple[str, ...]": STRINGS,
    "RelatedTurn | None": {"type": ["object", "null"]},
    "Excerpt | None": {
        "type": ["object", "null"],
        "description": "Where the text stands in a turn too long to come whole, in characters.",
    },
    "RelatedMemory | None": {"type": ["object", "null"]},
}


def result(value: type, promised: str, **own: Schema) -> Schema:
    """The JSON form of a frozen value: its promised fields by name, optional ones with a ?."""
    kinds = {field.name: str(field.type) for field in fields(value)}
    properties = {}
    for name in promised.replace("?", "").split():
        kind = kinds[name]
        rows = UNAVAILABLE if kind == "tuple[Degraded, ...]" else ROWS
        default = rows if kind not in _OF_TYPE and kind.startswith("tuple[") else _OF_TYPE.get(kind)
        schema = own.get(name, default)
        assert schema is not None, f"{name}: no schema for {kind}"
        properties[name] = schema
    return shape(properties, tuple(name for name in promised.split() if not name.endswith("?")))


UNAVAILABLE: Final[Schema] = {
    "type": "array",
    "items": result(Degraded, "part reason?"),
    "description": "What was unavailable; empty when nothing was.",
}


NOTICES: Final[Schema] = {
    **STRINGS,
    "description": "Notes on the answer, such as why it is empty.",
}


CONFIDENCE: Final[Schema] = {
    "type": "number",
    "description": "The probability that a row answers the question, where it is known.",
}


def enveloped(data: Schema, **more: Schema) -> Schema:
    """A single value, in the envelope of every result."""
    members = {
        "success": {"type": "boolean"},
        "data": data,
        "timestamp": {"type": "integer", "description": "Milliseconds since 1970."},
        **more,
    }
    return shape(members, tuple(name for name in members if name not in {"notices", "confidence"}))


def enveloped_rows(row: Schema, **more: Schema) -> Schema:
    """A list of rows, best first, with what was unavailable."""
    rows = {"type": "array", "items": row}
    return enveloped(rows, degraded=UNAVAILABLE, notices=NOTICES, confidence=CONFIDENCE, **more)
