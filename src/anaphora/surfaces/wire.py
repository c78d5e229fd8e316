"""What every surface does alike: the one JSON form of values, and refusing ids that are not there.

The facade answers with nothing for a conversation that has not begun: an agent may ask before its
first turn. Who names one on a surface has read its id somewhere, and a slip in it is an error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anaphora.core.display import visible_json
from anaphora.errors import NotFound
from anaphora.values.conversations import Recall, Turn, TurnHit

if TYPE_CHECKING:
    from anaphora.api.memory import Memory

# The exact time stands for the rounded one, so that nothing is lost on the way out.
_EXACT_TIMES = {"ts": "ts_text", "updated": "updated_text"}


def counted(number: int, one: str, many: str = "") -> str:
    """A number of things in words: "1 turn", "2 turns"; `many` where it is not `one` and an s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def plain(value: Any) -> Any:
    """`value` in JSON's own types. Times become RFC 3339, paths become strings."""
    if isinstance(value, Recall):
        found = {
            "hits": [plain(hit) for hit in value.hits],
            "degraded": [plain(part) for part in value.degraded],
        }
        if value.rejected:
            found["rejected"] = [plain(one) for one in value.rejected]
        return found
    if is_dataclass(value) and not isinstance(value, type):
        return _object(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, float):
        return round(value, 6)
    return value


def dumps(value: Any, *, indent: int | None = 2) -> str:
    """`value` as JSON text that any terminal can take: what would move its cursor is escaped."""
    return visible_json(json.dumps(plain(value), ensure_ascii=False, indent=indent))


def _object(value: Any) -> dict[str, Any]:
    names = [f.name for f in fields(value)]
    exact = {name: text for name, text in _EXACT_TIMES.items() if text in names}
    shown = [name for name in names if name not in exact.values()]
    result = {name: plain(getattr(value, exact.get(name, name))) for name in shown}
    if isinstance(value, Turn):
        return {k: v for k, v in result.items() if v not in ("", None)}
    return result


def recalled_turns(
    memory: Memory, conversation_id: str | None, query: str, **options: Any
) -> Recall[TurnHit]:
    """As `Memory.recall_conversation`, but `NotFound` for a conversation that is not there."""
    found = memory.recall_conversation(conversation_id, query, **options)
    if not found.hits:
        # What has hits is there; only otherwise is the whole conversation looked for.
        refuse_unknown(memory, conversation_id)
    return found


def refuse_unknown(memory: Memory, conversation_id: str | None) -> None:
    """`NotFound` for a conversation that is not there; None is all of them."""
    if conversation_id is not None and memory.conversations.get(conversation_id) is None:
        raise NotFound("conversation", conversation_id)
