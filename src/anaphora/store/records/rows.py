"""Rows of the record tables, as the database has them, and the values that they stand for.

In: rows, or values. Out: the other. Times are microseconds since 1970 UTC; tags, payload and
origin are JSON that keeps every character, lone surrogates too (the column's escaping takes care
of them). A time beyond the years that datetimes have is read as the nearest one that they have; a
row that makes no sense is `Unreadable`. Nothing here reads a database, and nothing imports
SQLAlchemy.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from anaphora.errors import Unreadable
from anaphora.store.codecs import DAMAGE, as_json, from_micros, moment, parsed, to_micros
from anaphora.store.hashing import digest
from anaphora.values.memories import MemoryRecord

MEMORY = "memory"
"""The kind of record that a lasting memory is."""
OBSERVATION = "observation"
"""A note about a project: its type is the note's kind, its payload has the rest."""
DIARY = "diary"
"""What was done in a session."""
STANDS_ALONE = ""
"""The `same_key` of a memory that nothing restates and nothing is linked to."""

EventKind = Literal["added", "restated", "linked", "updated", "forgotten"]

COLUMNS = (
    "record_id", "seq", "type", "text", "path", "category", "tags", "payload", "origin",
    "parent", "supersedes", "superseded_by", "created_at", "valid_from", "valid_until",
    "expires_at", "forgotten_at", "reinforced", "last_reinforced", "kind", "path_key", "same_key",
)  # fmt: skip
EVENT_COLUMNS = ("record_id", "seq", "kind", "at", "tags", "origin")


@dataclass(frozen=True, slots=True)
class RecordEvent:
    """One time that a memory was said or changed.

    "added" and "restated" carry the tags and the origin of that time, and in `text` its words
    where they differ from the record's (another Unicode form of the same). "linked": a close
    memory said the same (`details["other"]`). "updated": tags and `details["was"]` are what was
    replaced. "forgotten": it was softly forgotten.
    """

    record_id: str
    kind: EventKind
    at: datetime
    seq: int = 0
    tags: tuple[str, ...] = ()
    source: str | None = None
    conversation_id: str | None = None
    turn_index: int | None = None
    text: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RecordLink:
    """Two close memories. `kind` is "same" when they say the same, else "related".

    `record_id` sorts before `other_id`; `strength` is their cosine.
    """

    record_id: str
    other_id: str
    kind: str
    strength: float


def same_key_of(record: MemoryRecord) -> str:
    """A digest that two memories share when they are the same: type, path, payload, NFC text."""
    payload = "" if record.payload is None else as_json(record.payload, sort_keys=True)
    text = unicodedata.normalize("NFC", record.text)
    return digest("same", record.type, record.path or "", payload, text)


def path_key_of(path: str | None) -> str | None:
    """The digest to find the versions of a path by."""
    return None if path is None else digest("path", path)


def record_of(row: Sequence[Any]) -> MemoryRecord:
    """The record that a row of `COLUMNS` stands for. Raises `Unreadable`."""
    try:
        return _record_of(row)
    except DAMAGE as error:
        raise Unreadable("record", str(row[0]), f"it makes no sense ({error})") from error


def _record_of(row: Sequence[Any]) -> MemoryRecord:
    (
        record_id, seq, kind, text, path, category, tags, payload, origin,
        parent, supersedes, superseded_by, created_at, valid_from, valid_until,
        expires_at, forgotten_at, reinforced, last_reinforced, *_,
    ) = row  # fmt: skip
    came = parsed(origin, dict)
    if not isinstance(text, str):
        raise ValueError("its words are no text")
    return MemoryRecord(
        id=record_id,
        text=text,
        type=kind,
        created_at=moment(created_at),
        last_reinforced=moment(last_reinforced),
        valid_from=moment(valid_from),
        seq=seq,
        path=path,
        payload=parsed(payload, dict) if payload else None,
        tags=tuple(parsed(tags, list)),
        category=category,
        sources=tuple(came.get("sources", ())),
        conversation_id=came.get("conversation_id"),
        turn_index=came.get("turn_index"),
        parent=parent,
        supersedes=supersedes,
        superseded_by=superseded_by,
        expires_at=from_micros(expires_at),
        valid_to=from_micros(valid_until),
        reinforce_count=reinforced,
        forgotten=forgotten_at is not None,
    )


def record_row(
    record: MemoryRecord, same_key: str, forgotten_at: datetime | None
) -> dict[str, Any]:
    """The columns of a record, but for its namespace and kind."""
    origin = {
        "sources": list(record.sources) or None,
        "conversation_id": record.conversation_id,
        "turn_index": record.turn_index,
    }
    return {
        "record_id": record.id,
        "seq": record.seq,
        "type": record.type,
        "text": record.text,
        "path": record.path,
        "category": record.category,
        "tags": as_json(record.tags) if record.tags else None,
        "payload": None if record.payload is None else as_json(record.payload),
        "origin": _without_none(origin),
        "parent": record.parent,
        "supersedes": record.supersedes,
        "superseded_by": record.superseded_by,
        "created_at": to_micros(record.created_at),
        "valid_from": to_micros(record.valid_from),
        "valid_until": to_micros(record.valid_to),
        "expires_at": to_micros(record.expires_at),
        "forgotten_at": to_micros(forgotten_at),
        "reinforced": record.reinforce_count,
        "last_reinforced": to_micros(record.last_reinforced),
        "same_key": same_key,
        "path_key": path_key_of(record.path),
    }


def event_of(row: Sequence[Any]) -> RecordEvent:
    """The event that a row of `EVENT_COLUMNS` stands for. Raises `Unreadable`."""
    try:
        return _event_of(row)
    except DAMAGE as error:
        reason = f"it makes no sense ({error})"
        raise Unreadable("record_event", f"{row[0]} {row[1]}", reason) from error


def _event_of(row: Sequence[Any]) -> RecordEvent:
    record_id, seq, kind, at, tags, origin = row
    came = parsed(origin, dict)
    return RecordEvent(
        record_id=record_id,
        kind=kind,
        at=moment(at),
        seq=seq,
        tags=tuple(parsed(tags, list)),
        source=came.get("source"),
        conversation_id=came.get("conversation_id"),
        turn_index=came.get("turn_index"),
        text=came.get("text"),
        details=came.get("details", {}),
    )


def event_row(event: RecordEvent) -> dict[str, Any]:
    """The columns of an event, but for its namespace."""
    origin = {
        "source": event.source,
        "conversation_id": event.conversation_id,
        "turn_index": event.turn_index,
        "text": event.text,
        "details": dict(event.details) or None,
    }
    return {
        "record_id": event.record_id,
        "seq": event.seq,
        "kind": event.kind,
        "at": to_micros(event.at),
        "tags": as_json(event.tags) if event.tags else None,
        "origin": _without_none(origin),
    }


def as_mapping(record: MemoryRecord) -> dict[str, Any]:
    """A record as filters see it. `source` is where it came from first."""
    return {
        "id": record.id,
        "type": record.type,
        "path": record.path,
        "category": record.category,
        "tags": record.tags,
        "payload": record.payload,
        "parent": record.parent,
        "source": record.sources[0] if record.sources else None,
        "created_at": record.created_at,
        "last_reinforced": record.last_reinforced,
        "expires_at": record.expires_at,
        "reinforce_count": record.reinforce_count,
    }


def _without_none(values: Mapping[str, object]) -> str | None:
    kept = {name: value for name, value in values.items() if value is not None}
    return as_json(kept) if kept else None
