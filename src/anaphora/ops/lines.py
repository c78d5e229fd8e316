"""Lines of an export: JSON objects as text, and memories as JSON objects.

In: values. Out: one line of valid UTF-8 each, and back, with every character as it was: lone
surrogates and NUL are JSON escapes. Two surrogates side by side that were two characters would be
read back as one: a line that has them is wrapped, see docs/formats.md. Nothing here touches a disk.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, get_args

from anaphora.core.arguments import has_utc
from anaphora.errors import InvalidInput
from anaphora.store.escaping import escape, unescape
from anaphora.store.nesting import is_too_deep
from anaphora.store.records.rows import EventKind, RecordEvent, RecordLink
from anaphora.values.memories import MemoryRecord, MemoryType

# What some reader or other takes for the end of a line, and what UTF-8 has no bytes for.
_TO_ESCAPE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_SPLIT_CHARACTER = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_PLAIN_FIELDS = (
    "text", "type", "path", "payload", "category", "conversation_id", "turn_index",
    "parent", "supersedes", "superseded_by", "reinforce_count",
)  # fmt: skip
# Ours are UUIDs; another's may be anything that no text around it is confused with.
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,127}")
# What an integer column of every database holds.
_MOST = 2**31
_TIMES = ("created_at", "last_reinforced", "valid_from")
_OPEN_TIMES = ("valid_to", "expires_at")


def to_line(value: Mapping[str, Any]) -> bytes:
    """One line for `value`, which leaves out what is None or empty; its end included."""
    kept = {name: item for name, item in value.items() if item is not None and item != ()}
    written = json.dumps(
        kept, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain
    )
    if _SPLIT_CHARACTER.search(written):
        return to_line({"kind": "escaped", "line": escape(written)})
    return _TO_ESCAPE.sub(lambda m: f"\\u{ord(m[0]):04x}", written).encode() + b"\n"


def from_line(line: bytes) -> dict[str, Any]:
    """The object of a line. ValueError for what is none, or is nested too deeply."""
    found = _read(line.decode())
    if isinstance(found, dict) and found.get("kind") == "escaped":
        found = _read(unescape(string(found, "line")))
    if not isinstance(found, dict):
        raise ValueError("it is no JSON object")
    return found


def _read(text: str) -> object:
    try:
        found = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if is_too_deep(found, text):
        raise ValueError("it is nested too deeply")
    return found


def string(found: Mapping[str, Any], name: str) -> str:
    """A member that must be a string. ValueError."""
    value = found.get(name)
    if not isinstance(value, str):
        raise ValueError(f'"{name}" is no string')
    return value


def id_in(found: Mapping[str, Any]) -> str:
    """The member "id": a name that no text around it can be confused with. ValueError."""
    value = string(found, "id")
    if _ID.fullmatch(value) is None:
        raise ValueError('"id" is no id: 1 to 128 ASCII letters, digits, "_", "-", ".", ":"')
    return value


def time_text(moment: datetime | None) -> str | None:
    """RFC 3339 in UTC, to the microsecond."""
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def memory_line(
    namespace: str, record: MemoryRecord, events: Sequence[RecordEvent], *, stands_alone: bool
) -> bytes:
    """A memory with everything that is known of it but its vectors."""
    value: dict[str, Any] = {"kind": "memory", "namespace": namespace}
    value |= record_members(record, events)
    return to_line(value | {"stands_alone": stands_alone or None})


def record_members(record: MemoryRecord, events: Sequence[RecordEvent]) -> dict[str, Any]:
    """The members of a record's line, whatever kind of record it is."""
    value: dict[str, Any] = {"id": record.id}
    value |= {name: getattr(record, name) for name in _PLAIN_FIELDS}
    value |= {name: time_text(getattr(record, name)) for name in (*_TIMES, *_OPEN_TIMES)}
    return value | {
        "tags": list(record.tags) or None,
        "sources": list(record.sources) or None,
        "forgotten": record.forgotten or None,
        "events": [_event(event) for event in events],
    }


def memory_from(
    found: Mapping[str, Any], types: Sequence[str] = get_args(MemoryType)
) -> MemoryRecord:
    """The record of a line, whose type is one of `types`. ValueError names the wrong member."""
    record_id, words = id_in(found), string(found, "text")
    kind: Any = found.get("type", "semantic")
    if kind not in types:
        raise ValueError(f'"type" is {kind!r}')
    created = time_in(found, "created_at")
    if created is None:
        raise ValueError('"created_at" is missing')
    payload = found.get("payload")
    if payload is not None and not isinstance(payload, dict):
        raise ValueError('"payload" is no object')
    return MemoryRecord(
        id=record_id,
        text=words,
        type=kind,
        created_at=created,
        last_reinforced=time_in(found, "last_reinforced") or created,
        valid_from=time_in(found, "valid_from") or created,
        seq=0,
        path=text_in(found, "path"),
        payload=payload,
        tags=texts_in(found, "tags"),
        category=text_in(found, "category"),
        sources=texts_in(found, "sources"),
        conversation_id=text_in(found, "conversation_id"),
        turn_index=number_in(found, "turn_index"),
        parent=text_in(found, "parent"),
        supersedes=text_in(found, "supersedes"),
        superseded_by=text_in(found, "superseded_by"),
        expires_at=time_in(found, "expires_at"),
        valid_to=time_in(found, "valid_to"),
        reinforce_count=number_in(found, "reinforce_count") or 0,
        forgotten=found.get("forgotten") is True,
    )


def event_from(record_id: str, found: Any) -> RecordEvent:
    """An event of a memory's line. ValueError."""
    if not isinstance(found, dict) or found.get("kind") not in get_args(EventKind):
        raise ValueError("an event is of no known kind")
    at = time_in(found, "at")
    details = found.get("details", {})
    if at is None or not isinstance(details, dict):
        raise ValueError("an event has no time, or details that are no object")
    return RecordEvent(
        record_id=record_id,
        kind=found["kind"],
        at=at,
        tags=texts_in(found, "tags"),
        source=text_in(found, "source"),
        conversation_id=text_in(found, "conversation_id"),
        turn_index=number_in(found, "turn_index"),
        text=text_in(found, "text"),
        details=details,
    )


def link_line(namespace: str, link: RecordLink) -> bytes:
    """Two memories that are close."""
    return to_line(
        {
            "kind": "link",
            "namespace": namespace,
            "between": [link.record_id, link.other_id],
            "relation": link.kind,
            "strength": link.strength,
        }
    )


def link_from(found: Mapping[str, Any]) -> RecordLink:
    """The link of a line. ValueError."""
    ends = texts_in(found, "between")
    strength = found.get("strength")
    if len(ends) != 2 or ends[0] == ends[1]:
        raise ValueError('"between" does not name two memories')
    if isinstance(strength, bool) or not isinstance(strength, (int, float)):
        raise ValueError('"strength" is no number')
    try:
        return RecordLink(min(ends), max(ends), string(found, "relation"), float(strength))
    except OverflowError:
        raise ValueError('"strength" is beyond every number that is kept') from None


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    """A number of JSON; one that is beyond what a float holds could not be written again."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is no number that can be kept")
    return number


def _event(event: RecordEvent) -> dict[str, Any]:
    value = {
        "kind": event.kind,
        "at": time_text(event.at),
        "tags": list(event.tags) or None,
        "source": event.source,
        "conversation_id": event.conversation_id,
        "turn_index": event.turn_index,
        "text": event.text,
        "details": dict(event.details) or None,
    }
    return {name: item for name, item in value.items() if item is not None}


def time_in(found: Mapping[str, Any], name: str) -> datetime | None:
    """A time with an offset, or None. ValueError."""
    written = text_in(found, name)
    if written is None:
        return None
    moment = datetime.fromisoformat(written)
    if moment.utcoffset() is None:
        raise ValueError(f'"{name}" has no offset')
    if not has_utc(moment):
        raise ValueError(f'"{name}" lies beyond the years that there are')
    return moment.astimezone(UTC)


def text_in(found: Mapping[str, Any], name: str) -> str | None:
    """A member that is a string, or None where it is missing. ValueError."""
    return None if found.get(name) is None else string(found, name)


def texts_in(found: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """A member that is a list of strings, each once; () where it is missing. ValueError."""
    value = found.get(name, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(f'"{name}" is no list of strings')
    return tuple(dict.fromkeys(value))


def number_in(found: Mapping[str, Any], name: str) -> int | None:
    """A member that is a whole number from 0 on, or None. ValueError."""
    value = found.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _MOST:
        raise ValueError(f'"{name}" is no whole number from 0 on')
    return value


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise InvalidInput("export", value, "is nothing that JSON has")
