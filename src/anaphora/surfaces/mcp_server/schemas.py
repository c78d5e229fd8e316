"""JSON Schemas of arguments and results, for the tools.

The schemas of results derive from the frozen values; they promise some fields, and more may come.
It is plain data without a library, so that listing the tools costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from anaphora.surfaces.meanings import meaning
from anaphora.values.conversations import Degraded

Schema = dict[str, Any]


def text(description: str, **more: Any) -> Schema:
    """A string argument; without a description if its name says everything."""
    return {"type": "string", **_described(description), **more}


def count(description: str, low: int, high: int, default: int | None = None) -> Schema:
    """A whole number between two bounds."""
    bounds = {"minimum": low, "maximum": high}
    usual = {} if default is None else {"default": default}
    return {"type": "integer", **_described(description), **bounds, **usual}


def _described(description: str) -> Schema:
    return {"description": description} if description else {}


def choice(options: tuple[str, ...], default: str) -> Schema:
    """One of several words."""
    return {"type": "string", "enum": list(options), "default": default}


def share(description: str) -> Schema:
    """A number from 0 to 1."""
    return {"type": "number", "description": description, "minimum": 0, "maximum": 1}


def flag(default: bool, description: str = "") -> Schema:
    """Yes or no."""
    return {"type": "boolean", **_described(description), "default": default}


def shape(properties: Mapping[str, Schema], required: tuple[str, ...] = ()) -> Schema:
    """An object with these properties."""
    return {"type": "object", "properties": dict(properties), "required": list(required)}


STRING: Final[Schema] = {"type": "string"}
STRINGS: Final[Schema] = {"type": "array", "items": STRING}
WHOLE: Final[Schema] = {"type": "integer"}
ANY: Final[Schema] = {"type": "object"}
ROWS: Final[Schema] = {"type": "array", "items": ANY}
TAGS: Final[Schema] = {**STRINGS, "description": meaning("tags")}
# By the annotations of the frozen values. Any other tuple is an array of objects.
_OF_TYPE: Final[Mapping[str, Schema]] = {
    "str": STRING,
    "str | None": {"type": ["string", "null"]},
    "MemoryType | NoteKind": STRING,
    "MemoryType": STRING,
    "datetime": STRING,
    "int": WHOLE,
    "float": {"type": "number"},
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
    return shape(members, tuple(name for name in members if name != "confidence"))


def enveloped_rows(row: Schema, **more: Schema) -> Schema:
    """A list of rows, best first, with what was unavailable."""
    rows = {"type": "array", "items": row}
    return enveloped(rows, degraded=UNAVAILABLE, notices=NOTICES, confidence=CONFIDENCE, **more)
