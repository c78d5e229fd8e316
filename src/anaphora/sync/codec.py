"""Values of a home as members of changes, and back: the one place that knows their form.

Members are JSON, and the same on all devices: a turn is named by its id instead of by its position,
and nothing is told that follows from the rest. Members of later versions are unknown here, and stay
as they came: changes are therefore merged as members, and read as values where they are written to
rows.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from anaphora.store.line_fields import LineFields, string
from anaphora.store.lines import as_object, time_text
from anaphora.store.records.rows import (
    IDENTITY_FIELDS,
    STANDS_ALONE,
    RecordEvent,
    RecordLink,
    same_key_of,
)
from anaphora.store.threads.gojson import REDACTED
from anaphora.store.threads.sidecar import ConversationNote, TurnNote
from anaphora.sync.changes import canonical
from anaphora.values.memories import MemoryRecord
from anaphora.values.sessions import SessionPlace

Members = dict[str, Any]
TurnNames = Callable[[str, int], str | None]
"""The id of the turn at a position of a conversation, the same on all devices."""
TurnPlaces = Callable[[str, str], int | None]
"""The position of the turn with this id on this device."""
Origin = list[Any]
"""A conversation and the id of a turn, or a memory ("memory:" and its id) and None; as JSON."""

EVENT: Final = "event:"
"""The prefix of the fields of events; a digest of the event follows."""
ORIGINS: Final = "origins"
"""The field of the origins of a fact."""
HIDDEN: Final = "forgotten_at"
"""The field of the time at which a record was softly forgotten."""
_ALONE: Final = "stands_alone"
_TURN: Final = "turn"
_AT: Final = datetime.min.replace(tzinfo=UTC)
_RECORD: Final = LineFields(
    MemoryRecord,
    ("text", "type", "path", "payload"),
    left_out=("id", "seq", "reinforce_count", "forgotten", "turn_index"),
    readers={"type": string},
)
_EVENT: Final = LineFields(
    RecordEvent,
    ("kind", "at", "tags", "source", "conversation_id", "text", "details"),
    left_out=("record_id", "seq", "turn_index"),
    readers={"kind": string},
)


@dataclass(frozen=True, slots=True)
class SharedRecord:
    """A record, and what belongs to it in other tables, except its events."""

    record: MemoryRecord
    origins: Sequence[Origin] = ()
    stands_alone: bool = False
    forgotten_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class RecordCodec:
    """Records and their events as members."""

    _name_of: TurnNames
    _place_of: TurnPlaces

    def write(self, shared: SharedRecord) -> Members:
        """The members of a record."""
        record = shared.record
        members = as_object(_RECORD.write(record))
        members |= self._write_turn(record.conversation_id, record.turn_index)
        if shared.stands_alone:
            members[_ALONE] = True
        if shared.origins:
            members[ORIGINS] = list(shared.origins)
        if shared.forgotten_at is not None:
            members[HIDDEN] = time_text(shared.forgotten_at)
        return members

    def read(self, record_id: str, members: Mapping[str, Any]) -> SharedRecord:
        """The record of these members, which say how often it was restated. ValueError."""
        present_members = {name: member for name, member in members.items() if member is not None}
        record = MemoryRecord(
            id=record_id,
            seq=0,
            turn_index=self._find_turn(present_members),
            reinforce_count=members["reinforce_count"],
            **_RECORD.read(present_members),
        )
        hidden_at = members.get(HIDDEN)
        return SharedRecord(
            record,
            members.get(ORIGINS) or (),
            bool(members.get(_ALONE)),
            None if hidden_at is None else datetime.fromisoformat(hidden_at),
        )

    def write_events(self, events: Iterable[RecordEvent]) -> Iterator[tuple[str, Members]]:
        """The field and the members of each event. The field is a digest of its content."""
        repeats: Counter[str] = Counter()
        for event in events:
            members = as_object(_EVENT.write(event))
            said = {"kind": "said" if event.kind == "restated" else event.kind}
            text = canonical(members | said)
            members |= self._write_turn(event.conversation_id, event.turn_index)
            digest = hashlib.sha256(f"{repeats[text]} {text}".encode()).hexdigest()[:32]
            repeats[text] += 1
            yield EVENT + digest, members

    def read_event(self, record_id: str, members: Mapping[str, Any]) -> RecordEvent:
        """The event of these members. ValueError."""
        fields = _EVENT.read(members)
        return RecordEvent(record_id, turn_index=self._find_turn(members), **fields)

    def _write_turn(self, conversation_id: str | None, index: int | None) -> Members:
        if conversation_id is None or index is None:
            return {}
        return {_TURN: self._name_of(conversation_id, index) or index}

    def _find_turn(self, members: Mapping[str, Any]) -> int | None:
        """The position of the turn that members name."""
        turn, conversation_id = members.get(_TURN), members.get("conversation_id")
        if isinstance(turn, str) and conversation_id is not None:
            return self._place_of(conversation_id, turn)
        return turn if isinstance(turn, int) else None


def identity_of(members: Mapping[str, Any]) -> str:
    """The identity of the record of these members."""
    if members.get(_ALONE):
        return STANDS_ALONE
    content: Members = {name: members.get(name) for name in IDENTITY_FIELDS}
    record = MemoryRecord(
        id="", created_at=_AT, last_reinforced=_AT, valid_from=_AT, seq=0, **content
    )
    return same_key_of(record)


# Conversations.

TURN: Final = "turn:"
"""The prefix of the fields of turns; the id of the turn follows."""
NOTE: Final = "note:"
"""The prefix of the fields of notes on turns."""
_NOTED: Final = ("speaker", "source", "source_key", "message_key")
_PLACED: Final = ("client", "directory", "repository", "branch")


class Place(NamedTuple):
    """The sort key of a turn: microseconds since 1970, a number, a device."""

    time: int
    number: int
    device: str


@dataclass(frozen=True, slots=True)
class SharedTurn:
    """A turn as every device has it. `note` are the members of what a thread has no field for."""

    id: str
    place: Place
    role: str
    text: str
    time: str
    intent: str = ""
    note: Sequence[str | None] | None = None


def write_turn(turn: SharedTurn) -> Members:
    """The members of a turn that was added."""
    members = {
        "role": turn.role,
        "text": turn.text,
        "time": turn.time,
        "place": list(turn.place),
    }
    return members | ({"intent": turn.intent} if turn.intent else {})


def write_redacted(turn: SharedTurn, text: str, redactions: Iterable[str]) -> Members:
    """The members of the rest of a turn, after redactions with these digests."""
    return {
        "role": turn.role,
        "time": turn.time,
        "place": list(turn.place),
        "intent": turn.intent,
        "text": text,
        "by": sorted(redactions),
    }


def read_turn(
    turn_id: str, members: Mapping[str, Any], note: Sequence[str | None] | None
) -> SharedTurn:
    """The turn of these members, whole or redacted."""
    return SharedTurn(
        turn_id,
        Place(*members["place"]),
        members["role"],
        members.get("text", REDACTED),
        members["time"],
        members.get("intent", ""),
        note,
    )


def write_note(note: TurnNote) -> list[Any]:
    """The members of a note on a turn."""
    return [getattr(note, name) for name in _NOTED]


def read_note(
    conversation_id: str, index: int, turn_hash: str, members: Sequence[str | None]
) -> TurnNote:
    """The note of these members on the turn at a position."""
    speaker, source, source_key, message_key = members
    return TurnNote(conversation_id, index, turn_hash, speaker, source, source_key, message_key)


def write_origin(origin: ConversationNote, name_of: TurnNames) -> list[Any]:
    """The members of where a conversation came from."""
    left_at = origin.branch_at
    branch = origin.branch_of and left_at is not None
    at = name_of(str(origin.branch_of), left_at or 0) if branch else None
    return [origin.source, origin.source_key, origin.branch_of, at or left_at]


def read_origin(
    conversation_id: str, members: Sequence[Any], place_of: TurnPlaces
) -> ConversationNote:
    """Where a conversation came from, by these members."""
    source, key, branch_of, at = members
    if isinstance(at, str):
        at = place_of(branch_of, at)
    return ConversationNote(conversation_id, source, key, branch_of, at)


def write_place(place: SessionPlace) -> list[Any]:
    """The members of where a session took place."""
    return [getattr(place, name) for name in _PLACED]


def read_place(members: Sequence[str]) -> SessionPlace:
    """Where a session took place, by these members."""
    return SessionPlace(*members)


# Links.


def write_link(link: RecordLink) -> list[Any]:
    """The members of a link."""
    return [link.kind, link.strength]


def read_link(ends: tuple[str, str], members: Sequence[Any]) -> RecordLink:
    """The link of these members between two records."""
    kind, strength = members
    return RecordLink(*ends, str(kind), float(str(strength)))
