"""Pieces of JSON Schema: arguments of the tools, and the results that they promise.

Plain data without a library. A result may hold more than is promised here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

Schema = dict[str, Any]


def text(description: str, **more: Any) -> Schema:
    """A string argument."""
    return {"type": "string", "description": description, **more}


def count(description: str, low: int, high: int, default: int) -> Schema:
    """A whole number between two bounds."""
    return {
        "type": "integer",
        "description": description,
        "minimum": low,
        "maximum": high,
        "default": default,
    }


def words(description: str) -> Schema:
    """A list of strings."""
    return {"type": "array", "items": {"type": "string"}, "description": description}


def shape(properties: Mapping[str, Schema], required: tuple[str, ...] = ()) -> Schema:
    """An object with these properties."""
    return {"type": "object", "properties": dict(properties), "required": list(required)}


ANY: Final[Schema] = {"type": "object"}
ROWS: Final[Schema] = {"type": "array", "items": ANY}
TIME: Final[Schema] = {"type": "integer", "description": "Milliseconds since 1970."}
UNAVAILABLE: Final[Schema] = {
    "type": "array",
    "items": shape({"part": {"type": "string"}, "reason": {"type": "string"}}, ("part",)),
    "description": "What was unavailable; empty when nothing was.",
}


def answered(row: Schema) -> Schema:
    """A list of rows, best first, and what was unavailable."""
    rows = {"type": "array", "items": row}
    return shape(
        {
            "success": {"type": "boolean"},
            "data": rows,
            "timestamp": TIME,
            "degraded": UNAVAILABLE,
        },
        ("success", "data", "timestamp", "degraded"),
    )


def done(data: Schema) -> Schema:
    """One thing that was made or found."""
    return shape(
        {"success": {"type": "boolean"}, "data": data, "timestamp": TIME},
        ("success", "data", "timestamp"),
    )


STRING: Final[Schema] = {"type": "string"}
MAYBE: Final[Schema] = {"type": ["string", "null"]}
STRINGS: Final[Schema] = {"type": "array", "items": STRING}
NUMBER: Final[Schema] = {"type": "number"}
WHOLE: Final[Schema] = {"type": "integer"}
MEMORY: Final = shape(
    {
        "id": STRING,
        "path": MAYBE,
        "payload": {"type": ["object", "null"]},
        "text": STRING,
        "score": NUMBER,
        "similarity": NUMBER,
        "decay": NUMBER,
        "reinforcement": NUMBER,
        "type": STRING,
        "created_at": STRING,
        "tags": STRINGS,
        "category": MAYBE,
    },
    ("id", "path", "payload", "text", "score"),
)
TURN: Final = shape(
    {
        "conversation_id": STRING,
        "index": WHOLE,
        "role": STRING,
        "speaker": MAYBE,
        "text": STRING,
        "ts": STRING,
        "score": NUMBER,
    },
    ("conversation_id", "index", "role", "text", "ts", "score"),
)
KEPT: Final = shape({"id": STRING, "redacted": STRINGS}, ("id", "redacted"))
PACKAGE: Final = shape(
    {
        "brief": STRINGS,
        "primary_targets": ROWS,
        "memories": ROWS,
        "graph": ROWS,
        "history": ROWS,
        "quality": {"enum": ["strong", "partial", "weak"]},
        "tokens": WHOLE,
        "degraded": UNAVAILABLE,
    },
    ("brief", "primary_targets", "memories", "graph", "history", "quality", "degraded"),
)
WARM_UP: Final = shape(
    {
        **dict.fromkeys(
            ("constraints", "preferences", "decisions", "blockers", "diary", "highlights"), ROWS
        ),
        "shape": STRINGS,
        "degraded": UNAVAILABLE,
    },
    ("constraints", "preferences", "decisions", "blockers", "diary", "shape"),
)
ANSWER: Final = shape(
    {
        "answer": STRING,
        "sources": ROWS,
        "complete": {"type": "boolean"},
        "supported": {"type": "boolean"},
        "shortcut": {"type": "boolean"},
        "cached": {"type": "boolean"},
        "gap_id": MAYBE,
        "note": STRING,
        "degraded": UNAVAILABLE,
    },
    ("answer", "sources", "complete", "supported"),
)
