"""The JSON form of values as the reference states it: what REST, MCP and `--json` all give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from anaphora import Recall, Turn

__all__ = ["as_json"]

_EXACT_TIMES = {"ts": "ts_text", "updated": "updated_text"}


def as_json(value: Any) -> Any:
    """A value in JSON's own types: times in RFC 3339, numbers to six places."""
    if is_dataclass(value) and not isinstance(value, type):
        value = _members(value)
    if isinstance(value, Mapping):
        return {str(key): as_json(part) for key, part in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [as_json(part) for part in value]
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, Path):
        return str(value)
    return round(value, 6) if isinstance(value, float) else value


def _members(value: Any) -> dict[str, Any]:
    members = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Recall):
        # What is empty or unknown beside hits and degradations is left out.
        optional = ("rejected", "nearest", "notices", "confidence")
        return {
            "hits": value.hits,
            "degraded": value.degraded,
            **{name: members[name] for name in optional if members[name] not in ((), None)},
        }
    # The text of a time is exact to the nanosecond.
    members |= {name: members.pop(text) for name, text in _EXACT_TIMES.items() if text in members}
    if isinstance(value, Turn):
        return {name: part for name, part in members.items() if part not in ("", None)}
    return members
