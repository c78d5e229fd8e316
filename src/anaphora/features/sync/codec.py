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
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, Self

from anaphora.features.sync.changes import canonical
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
TURN: Final = "turn:"
"""The prefix of the fields of turns; the id of the turn follows."""
NOTE: Final = "note:"
"""The prefix of the fields of notes on turns."""
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
class TurnCodec:
    """Turns that others refer to, as members: their ids, or positions of unknown turns."""

    _name_of: TurnNames
    _place_of: TurnPlaces

    def write(self, conversation_id: str | None, index: int | None) -> str | int | None:
        """The id of the turn at a position."""
        if conversation_id is None or index is None:
            return None
        return self._name_of(conversation_id, index) or index

    def read(self, conversation_id: str | None, turn: Any) -> int | None:
        """The position of a turn."""
        if isinstance(turn, str) and conversation_id is not None:
            return self._place_of(conversation_id, turn)
        return turn if isinstance(turn, int) else None


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

    _turns: TurnCodec

    def write(self, shared: SharedRecord) -> Members:
        """The members of a record."""
        record = shared.record
        members = as_object(_RECORD.write(record))
        members |= self._write_turn(record)
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
            shared_kind = "said" if event.kind == "restated" else event.kind
            text = canonical(members | {"kind": shared_kind})
            members |= self._write_turn(event)
            digest = hashlib.sha256(f"{repeats[text]} {text}".encode()).hexdigest()[:32]
            repeats[text] += 1
            yield EVENT + digest, members

    def read_event(self, record_id: str, members: Mapping[str, Any]) -> RecordEvent:
        """The event of these members. ValueError."""
        index = self._find_turn(members)
        return RecordEvent(record_id, turn_index=index, **_EVENT.read(members))

    def _write_turn(self, of: MemoryRecord | RecordEvent) -> Members:
        turn = self._turns.write(of.conversation_id, of.turn_index)
        return {} if turn is None else {_TURN: turn}

    def _find_turn(self, members: Mapping[str, Any]) -> int | None:
        """The position of the turn that members name."""
        return self._turns.read(members.get("conversation_id"), members.get(_TURN))


def identity_of(members: Mapping[str, Any]) -> str:
    """The identity of the record of these members."""
    if members.get(_ALONE):
        return STANDS_ALONE
    content: Members = {name: members.get(name) for name in IDENTITY_FIELDS}
    record = MemoryRecord(
        id="", created_at=_AT, last_reinforced=_AT, valid_from=_AT, seq=0, **content
    )
    return same_key_of(record)


class ListFields:
    """Some fields of a value as members of a list, in this order."""

    def __init__(self, value: type, *names: str) -> None:
        left_out = {spec.name for spec in fields(value)} - set(names)
        self._names, self._fields = names, LineFields(value, names, left_out=left_out)

    def write(self, value: Any) -> list[Any]:
        """The members for a value."""
        return [getattr(value, name) for name in self._names]

    def read(self, members: Sequence[Any]) -> Members:
        """The fields that have values. ValueError."""
        return self._fields.read(dict(zip(self._names, members, strict=True)))


LINK_STATES: Final = ListFields(RecordLink, "kind", "strength")
SESSION_PLACES: Final = ListFields(SessionPlace, "client", "directory", "repository", "branch")
TURN_NOTES: Final = ListFields(TurnNote, "speaker", "source", "source_key", "message_key")
_BRANCHES: Final = ListFields(ConversationNote, "source", "source_key", "branch_of", "branch_at")


@dataclass(frozen=True, slots=True)
class BranchCodec:
    """Where conversations came from, as members."""

    _turns: TurnCodec

    def write(self, note: ConversationNote) -> list[Any]:
        """The members of where a conversation came from."""
        turn = self._turns.write(note.branch_of, note.branch_at)
        return [*_BRANCHES.write(note)[:-1], note.branch_at if turn is None else turn]

    def read(self, conversation_id: str, members: Sequence[Any]) -> ConversationNote:
        """Where a conversation came from. ValueError."""
        *origin, branch_of, turn = members
        index = self._turns.read(branch_of, turn)
        return ConversationNote(conversation_id, **_BRANCHES.read([*origin, branch_of, index]))


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

    def line(self, redactions: Iterable[str] = ()) -> Members:
        """Itself as JSON, with the digests of its redactions if there are any."""
        if digests := sorted(redactions):
            members = {"role": self.role, "time": self.time, "place": list(self.place)}
            return members | {"intent": self.intent, "text": self.text, "by": digests}
        members = {"role": self.role, "text": self.text, "time": self.time}
        members |= {"place": list(self.place)}
        return members | ({"intent": self.intent} if self.intent else {})

    @classmethod
    def read(
        cls, turn_id: str, members: Mapping[str, Any], note: Sequence[str | None] | None
    ) -> Self:
        """The turn of what `line` wrote."""
        return cls(
            turn_id,
            Place(*members["place"]),
            members["role"],
            members.get("text", REDACTED),
            members["time"],
            members.get("intent", ""),
            note,
        )
