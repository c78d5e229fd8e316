"""Saying the same again reinforces; nothing that was said is lost."""

from __future__ import annotations

import json
import unicodedata
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.exported import exported

from anaphora import Memory, MemoryRecord, NewMemory

from .memory_desk import Desk

NOW = datetime(2026, 4, 30, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.mark.promise("remember.occurrences")
def test_every_occurrence_is_kept(desk: Desk, clock: Any) -> None:
    """Each time that a memory was said keeps its own time, tags, source and turn."""
    done = desk.say("Café", source="chat", conversation_id="c", turn_index=3, tags=("x",))
    clock.advance(hours=1)
    other_form = unicodedata.normalize("NFD", "Café")
    desk.say(other_form, source="mail", conversation_id="d", turn_index=7, tags=("y",))
    first, second = desk.events(done.id)
    assert first == {
        "kind": "added", "at": NOW, "source": "chat", "conversation_id": "c", "turn_index": 3,
        "tags": ["x"],
    }  # fmt: skip
    assert second == {
        "kind": "restated", "at": NOW + timedelta(hours=1), "source": "mail",
        "conversation_id": "d", "turn_index": 7, "tags": ["y"], "text": other_form,
    }  # fmt: skip
    assert desk.get(done.id).text == "Café"


def test_what_differs_is_another_memory(desk: Desk) -> None:
    """Another type, payload, path, letter or space is another memory."""
    base: dict[str, Any] = {"text": "Prefers tea", "payload": {"n": 1}}
    others: list[dict[str, Any]] = [
        {}, {"type": "episodic"}, {"payload": None}, {"payload": {"n": 1.0}},
        {"payload": {"n": True}},
        {"path": "user.drink"}, {"text": "prefers tea"}, {"text": "Prefers  tea"}, {"payload": {}},
    ]  # fmt: skip
    done = [desk.take(NewMemory(**(base | other))) for other in others]
    assert len({one.id for one in done}) == len(others)
    again = [desk.take(NewMemory(**(base | other))) for other in others]
    assert [one.id for one in again] == [one.id for one in done]
    assert {one.action for one in again} == {"reinforced"}


def test_the_order_of_fields_in_a_payload_does_not_count(desk: Desk) -> None:
    """A payload with its fields in another order is the same payload; the first order is kept."""
    one = desk.say("x", payload={"b": [1, {"d": 1, "c": 2}], "a": None})
    two = desk.say("x", payload={"a": None, "b": [1, {"c": 2, "d": 1}]})
    assert one.id == two.id
    assert json.dumps(desk.get(one.id).payload) == '{"b": [1, {"d": 1, "c": 2}], "a": null}'


def test_an_import_from_the_past_reinforces(desk: Desk, clock: Any) -> None:
    """A restatement with an earlier time moves the beginning, never the last time, back."""
    done = desk.say("Prefers tea")
    desk.say("Prefers tea", created_at=NOW - 9 * DAY)
    record = desk.get(done.id)
    assert (record.created_at, record.valid_from) == (NOW - 9 * DAY, NOW - 9 * DAY)
    assert (record.last_reinforced, record.reinforce_count) == (NOW, 1)


def test_what_has_expired_is_said_anew(desk: Desk, clock: Any) -> None:
    """After a memory's end the same words make a new one; before it the longest life counts."""
    first = desk.say("Visits Oslo", expires_at=NOW + DAY)
    assert desk.say("Visits Oslo", expires_at=NOW + 2 * DAY).id == first.id
    assert desk.get(first.id).expires_at == NOW + 2 * DAY
    clock.advance(days=2)
    again = desk.say("Visits Oslo")
    assert (again.action, again.id != first.id) == ("added", True)
    assert desk.say("Visits Oslo", expires_at=NOW + 9 * DAY).id == again.id
    assert desk.get(again.id).expires_at is None


def test_without_dedupe_every_memory_stands_for_itself(desk: Desk) -> None:
    """What an adapter puts is never joined, linked or redacted: it comes back as it was put."""
    key = "sk-ant-api03-" + "Ab1" * 31
    plain = desk.say("Prefers tea")
    alone = NewMemory("Prefers tea", dedupe=False, redact=False)
    put = [desk.take(alone) for _ in range(2)]
    kept = desk.take(NewMemory(key, dedupe=False, redact=False))
    assert len({plain.id, *(one.id for one in put)}) == 3
    assert desk.get(kept.id).text == key
    assert exported(desk.memory, "link") == []
    assert desk.say("Prefers tea").id == plain.id


TEXTS = st.sampled_from(["tea", "coffee", "tée", unicodedata.normalize("NFD", "tée"), "TEA"])
SAID = st.tuples(
    TEXTS,
    st.lists(st.sampled_from("abc"), max_size=2).map(tuple),
    st.sampled_from([None, "chat", "mail"]),
    st.integers(0, 9),
)


def state(desk: Desk, record: MemoryRecord) -> tuple[Any, ...]:
    """What must not depend on order. A close memory that says the same reinforces, too: which of
    the two it is, is a matter of order, hence only what was said of the memory itself counts."""
    said = [event for event in desk.events(record.id) if event["kind"] != "linked"]
    text = unicodedata.normalize("NFC", record.text)
    times = (record.created_at, record.valid_from, max(event["at"] for event in said))
    return text, times, len(said), sorted(record.tags), sorted(record.sources)


@pytest.mark.promise("remember.order")
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(said=st.lists(SAID, min_size=1, max_size=8), data=st.data())
def test_what_is_known_does_not_depend_on_the_order(
    said: list[Any], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory, clock: Any
) -> None:
    """Memories said in any order, one by one or together, leave the same memories."""
    states = []
    shuffled = data.draw(st.permutations(said))
    for number, order in enumerate((said, shuffled, shuffled)):
        items = [
            NewMemory(text, tags=tags, source=source, created_at=NOW - day * DAY)
            for text, tags, source, day in order
        ]
        home = tmp_path_factory.mktemp("home")
        with Memory.open(home, embedder="hashing", clock=clock) as memory:
            memory.ready(60)
            for batch in [items] if number == 2 else [[item] for item in items]:
                memory.remember_many(batch)
            desk = Desk(memory)
            states.append(sorted(state(desk, record) for record in desk.present()))
    assert states[0] == states[1] == states[2]


@pytest.mark.promise("remember.verbatim")
def test_every_text_comes_back_as_it_was(desk: Desk, naughty: list[str]) -> None:
    """Troublesome texts and lone surrogates come back verbatim, as text, payload, source.

    As tags they come back in the one form (NFC) that names have.
    """
    texts = [t for t in naughty if t.strip()] + [
        "\x00",
        "\ud800",
        "\ud83d\ude00 apart",
        "a\x10b",
        "x\u2028y",
    ]
    items = [
        NewMemory(t, tags=(t,), payload={t: [t]}, source=t, category=t, redact=False) for t in texts
    ]
    done = desk.memory.remember_many(items)
    for item, one in zip(items, done, strict=True):
        record = desk.get(one.id)
        if one.action == "added":
            assert record.text == item.text
            assert record.payload == item.payload
        assert unicodedata.normalize("NFC", record.text) == unicodedata.normalize("NFC", item.text)
        assert unicodedata.normalize("NFC", item.tags[0]) in record.tags
        assert item.source in record.sources
    assert "\ud83d\ude00 apart" in {record.text for record in desk.present()}
