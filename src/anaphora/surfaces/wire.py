"""The one JSON form of every value, shared by all surfaces.

In: the frozen values. Out: plain dicts, lists, strings and numbers that `json` takes.
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from anaphora.core import json_codec
from anaphora.core.display import visible_json
from anaphora.values.conversations import Recall, Turn

# The exact time stands for the rounded one, so that nothing is lost on the way out.
_EXACT_TIMES = {"ts": "ts_text", "updated": "updated_text"}


def counted(number: int, one: str, many: str = "") -> str:
    """A number of things in words: "1 turn", "2 turns"; `many` where it is not `one` and an s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def plain(value: Any) -> Any:
    """`value` in JSON's own types. Times become RFC 3339, paths become strings."""
    return json_codec.plain(value, _scalar, _members)


def dumps(value: Any, *, indent: int | None = 2) -> str:
    """`value` as JSON text that any terminal can take: what would move its cursor is escaped."""
    return visible_json(json.dumps(plain(value), ensure_ascii=False, indent=indent))


def _scalar(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, Path):
        return str(value)
    return round(value, 6) if isinstance(value, float) else value


def _members(value: Any) -> dict[str, Any]:
    if isinstance(value, Recall):
        found: dict[str, Any] = {"hits": value.hits, "degraded": value.degraded}
        return found | {"rejected": value.rejected} if value.rejected else found
    members = json_codec.members_of(value)
    for name, text in _EXACT_TIMES.items():
        if text in members:
            members[name] = members.pop(text)
    if isinstance(value, Turn):
        return {name: item for name, item in members.items() if item not in ("", None)}
    return members
