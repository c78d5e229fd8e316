"""What every surface does alike: the one JSON form of values, and refusing ids that are not there.

The facade answers with nothing for a conversation that has not begun: an agent may ask before its
first turn. Who names one on a surface has read its id somewhere, and a slip in it is an error.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from anaphora.core import json_codec
from anaphora.core.display import visible_json
from anaphora.errors import InvalidInput, NotFound
from anaphora.values.conversations import Recall, Turn, TurnHit

if TYPE_CHECKING:
    from anaphora.api.memory import Memory

FoundT = TypeVar("FoundT")

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


def time_of(name: str, text: str | None) -> datetime | None:
    """The day or time that a text gives, in UTC unless it says otherwise. Raises `InvalidInput`.

    Words name the beginning of a time ("last week", "tomorrow"), here and now.
    """
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return _time_in_words(name, text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _time_in_words(name: str, text: str) -> datetime:
    from anaphora.recall.times.reading import is_open_start, read_times

    spans = read_times(text, datetime.now().astimezone())
    starts = [span.start for span in spans if not is_open_start(span)]
    if len(starts) != 1:
        reason = 'expected a day or a time like 2026-03-01 or 2026-03-01T12:00:00Z, or "last week"'
        raise InvalidInput(name, text, reason) from None
    return starts[0]


def _scalar(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, Path):
        return str(value)
    return round(value, 6) if isinstance(value, float) else value


def _members(value: Any) -> dict[str, Any]:
    if isinstance(value, Recall):
        found: dict[str, Any] = {"hits": value.hits, "degraded": value.degraded}
        more = {"rejected": value.rejected, "nearest": value.nearest, "notices": value.notices}
        found |= {name: rows for name, rows in more.items() if rows}
        return found if value.confidence is None else found | {"confidence": value.confidence}
    members = json_codec.members_of(value)
    for name, text in _EXACT_TIMES.items():
        if text in members:
            members[name] = members.pop(text)
    if isinstance(value, Turn):
        return {name: item for name, item in members.items() if item not in ("", None)}
    return members


def recalled_turns(
    memory: Memory, conversation_id: str | None, query: str, **options: Any
) -> Recall[TurnHit]:
    """As `Memory.recall_conversation`, but `NotFound` for a conversation that is not there.

    A count that is None is the configured one.
    """
    options = {
        name: value
        for name, value in options.items()
        if value is not None or name not in {"top_k", "budget"}
    }
    found = memory.recall_conversation(conversation_id, query, **options)
    if not found.hits:
        # What has hits is there; only otherwise is the whole conversation looked for.
        refuse_unknown(memory, conversation_id)
    return found


def refuse_unknown(memory: Memory, conversation_id: str | None) -> None:
    """`NotFound` for a conversation that is not there; None is all of them."""
    if conversation_id is not None:
        must_exist(memory.conversations.get(conversation_id), "conversation", conversation_id)


def must_exist(found: FoundT | None, kind: str, which: str) -> FoundT:
    """What was found. Raises `NotFound` for None, and for False: nothing was there to change."""
    if found is None or found is False:
        raise NotFound(kind, which)
    return found
