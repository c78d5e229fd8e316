"""The form in which devices exchange values: it never changes, as devices of all versions sync."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from anaphora.features.sync import codec
from anaphora.store.records.rows import RecordEvent, RecordLink
from anaphora.store.threads.sidecar import ConversationNote, TurnNote
from anaphora.values.memories import MemoryRecord
from anaphora.values.sessions import SessionPlace

pytestmark = pytest.mark.internal

AT = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
AT_TEXT = "2026-03-01T12:30:00.000000Z"
TURNS = {("talk", 2): "turn-a"}
TURN_CODEC = codec.TurnCodec(
    lambda conversation_id, index: TURNS.get((conversation_id, index)),
    lambda _, turn: {name: index for (_, index), name in TURNS.items()}.get(turn),
)
RECORDS = codec.RecordCodec(TURN_CODEC)


def test_a_record_has_one_form() -> None:
    """Fields in their order, without empty ones; a turn by its id; read back, it is the same."""
    record = MemoryRecord(
        "id-1", "Tea \ud83d", "semantic", AT, AT, AT, 0, path="user.drink",
        payload={"n": [1.5, None]}, tags=("a", "b"), conversation_id="talk", turn_index=2,
        expires_at=AT, reinforce_count=3, pin=1.0,
    )  # fmt: skip
    shared = codec.SharedRecord(record, [["talk", "turn-a"]], True, AT)
    members = RECORDS.write(shared)
    assert json.dumps(members) == json.dumps({
        "text": "Tea \ud83d", "type": "semantic", "path": "user.drink",
        "payload": {"n": [1.5, None]}, "created_at": AT_TEXT, "last_reinforced": AT_TEXT,
        "valid_from": AT_TEXT, "tags": ["a", "b"], "conversation_id": "talk",
        "expires_at": AT_TEXT, "pin": 1.0, "turn": "turn-a", "stands_alone": True,
        "origins": [["talk", "turn-a"]], "forgotten_at": AT_TEXT,
    })  # fmt: skip
    received_members = json.loads(json.dumps(members)) | {"reinforce_count": 3, "of_later": [1]}
    assert RECORDS.read("id-1", received_members) == shared


def test_an_event_has_one_form() -> None:
    """It is named by a digest of its content, and of how many before it have the same."""
    events = [
        RecordEvent("id-1", "added", AT, tags=("a",), conversation_id="talk", turn_index=2),
        RecordEvent("id-1", "restated", AT, source="notes.md"),
        RecordEvent("id-1", "restated", AT, source="notes.md"),
        RecordEvent("id-1", "updated", AT, details={"was": {"category": None}}),
    ]
    written_events = dict(RECORDS.write_events(events))
    assert list(written_events) == [
        "event:7cffeffdeceb66714a0885f84c878477", "event:676ea5eda3eccf2d83a681bb09601960",
        "event:dc5b02f7bc711447818a5cc9cbb15ea2", "event:60838d971d6f110139d4098788651fb2",
    ]  # fmt: skip
    assert list(written_events.values()) == [
        {
            "kind": "added", "at": AT_TEXT, "tags": ["a"], "conversation_id": "talk",
            "turn": "turn-a",
        },
        {"kind": "restated", "at": AT_TEXT, "source": "notes.md"},
        {"kind": "restated", "at": AT_TEXT, "source": "notes.md"},
        {"kind": "updated", "at": AT_TEXT, "details": {"was": {"category": None}}},
    ]  # fmt: skip
    assert [RECORDS.read_event("id-1", members) for members in written_events.values()] == events


def test_a_turn_has_one_form() -> None:
    """Whole or redacted."""
    turn = codec.SharedTurn("turn-a", codec.Place(5, 1, "d1"), "user", "Hello", "12:30", "ask")
    members = turn.line()
    assert json.dumps(members) == json.dumps({
        "role": "user", "text": "Hello", "time": "12:30", "place": [5, 1, "d1"], "intent": "ask",
    })  # fmt: skip
    assert codec.SharedTurn.read("turn-a", members, None) == turn
    redacted_turn = replace(turn, text="[redacted]")
    members = redacted_turn.line({"b", "a"})
    assert json.dumps(members) == json.dumps({
        "role": "user", "time": "12:30", "place": [5, 1, "d1"], "intent": "ask",
        "text": "[redacted]", "by": ["a", "b"],
    })  # fmt: skip
    assert codec.SharedTurn.read("turn-a", members, None) == redacted_turn


def test_what_belongs_to_turns_has_one_form() -> None:
    """Notes, origins and places of conversations, and links, are lists."""
    note = TurnNote("talk", 2, "hash", "Ann", "chatgpt", "chat-1", "message-1")
    members = codec.TURN_NOTES.write(note)
    assert members == ["Ann", "chatgpt", "chat-1", "message-1"]
    assert TurnNote("talk", 2, "hash", **codec.TURN_NOTES.read(members)) == note
    origin = ConversationNote("branch", "chatgpt", "chat-1", "talk", 2)
    members = codec.BranchCodec(TURN_CODEC).write(origin)
    assert members == ["chatgpt", "chat-1", "talk", "turn-a"]
    assert codec.BranchCodec(TURN_CODEC).read("branch", members) == origin
    place = SessionPlace("claude", "/home/ann", "github.com/acme/shop", "main")
    members = codec.SESSION_PLACES.write(place)
    assert members == ["claude", "/home/ann", "github.com/acme/shop", "main"]
    assert SessionPlace(**codec.SESSION_PLACES.read(members)) == place
    link = RecordLink("a", "b", "differs", 0.5)
    members = codec.LINK_STATES.write(link)
    assert members == ["differs", 0.5]
    assert RecordLink("a", "b", **codec.LINK_STATES.read(members)) == link
