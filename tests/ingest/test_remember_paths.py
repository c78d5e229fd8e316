"""A path has one value at a time, and keeps every value that it had."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anaphora import Memory, NewMemory
from anaphora.errors import InvalidInput, NotFound

from .memory_desk import Desk

NOW = datetime(2026, 4, 30, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)
PATH = "user.editor"


def line(desk: Desk, path: str = PATH) -> list[tuple[str, Any, Any, int]]:
    """The versions of a path: words, days of beginning and end from NOW on, restatements."""

    def day(time: datetime | None) -> Any:
        return None if time is None else (time - NOW) / DAY

    history = desk.memory.history(path)
    for one, other in pairwise(history):
        assert (one.superseded_by, other.supersedes) == (other.id, one.id)
        assert one.valid_to is not None
        assert one.valid_to <= other.valid_from
    return [(r.text, day(r.valid_from), day(r.valid_to), r.reinforce_count) for r in history]


def truth_at(desk: Desk, moment: datetime) -> list[str]:
    """What a filter finds for that moment: all of it, however far from the question."""
    found = desk.memory.recall("what is it?", as_of=moment, filters={"path": PATH}, top_k=50)
    ids = [one for hit in found for one in (hit.id, *hit.same_as)]
    return [desk.get(one).text for one in ids]


def test_another_payload_is_another_value(desk: Desk) -> None:
    """The same words with another payload supersede; at the same instant the last one stands."""
    one = desk.say("editor", path=PATH, payload={"name": "vim"})
    two = desk.say("editor", path=PATH, payload={"name": "emacs"})
    assert (two.action, desk.get(one.id).superseded_by) == ("superseded", two.id)
    assert truth_at(desk, NOW) == ["editor"]


@pytest.mark.promise("remember.out_of_order")
def test_a_value_from_the_past_goes_into_history(desk: Desk) -> None:
    """What comes late is put where its time belongs, and replaces nothing that stands."""
    desk.say("emacs", path=PATH)
    late = desk.say("vim", path=PATH, created_at=NOW - 9 * DAY)
    middle = desk.say("nano", path=PATH, created_at=NOW - 5 * DAY)
    assert (late.action, middle.action) == ("added", "added")
    assert line(desk) == [("vim", -9, -5, 0), ("nano", -5, 0, 0), ("emacs", 0, None, 0)]


def test_a_version_said_again_later_is_split(desk: Desk) -> None:
    """A value from between two sayings of another one splits it, with its tags and sources."""
    desk.say("vim", path=PATH, created_at=NOW - 9 * DAY, tags=("a",), source="s1")
    desk.say("vim", path=PATH, created_at=NOW - 1 * DAY, tags=("b",), source="s2")
    desk.say("nano", path=PATH, created_at=NOW - 5 * DAY)
    assert line(desk) == [("vim", -9, -5, 0), ("nano", -5, -1, 0), ("vim", -1, None, 0)]
    first, _, last = desk.memory.history(PATH)
    assert (last.tags, last.sources) == (("b",), ("s2",))
    assert [event["source"] for event in desk.events(last.id)] == ["s2"]
    assert [event["source"] for event in desk.events(first.id)] == ["s1"]


@pytest.mark.promise("remember.out_of_order")
@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(days=st.lists(st.integers(-20, 0), min_size=1, max_size=8, unique=True), data=st.data())
def test_history_does_not_depend_on_the_order_of_arrival(
    days: list[int], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory, clock: Any
) -> None:
    """Values with times of their own leave the line that their times make, in whatever order."""
    values = [(data.draw(st.sampled_from("abc")), day) for day in sorted(days)]
    expected: list[tuple[str, Any, Any, int]] = []
    for text, day in values:
        if expected and expected[-1][0] == text:
            expected[-1] = (*expected[-1][:3], expected[-1][3] + 1)
            continue
        if expected:
            expected[-1] = (*expected[-1][:2], day, expected[-1][3])
        expected.append((text, day, None, 0))
    together = data.draw(st.booleans())
    items = [
        NewMemory(text, path=PATH, created_at=NOW + day * DAY)
        for text, day in data.draw(st.permutations(values))
    ]
    home = tmp_path_factory.mktemp("home")
    with Memory.open(home, embedder="hashing", clock=clock, warm=False) as memory:
        for batch in [items] if together else [[item] for item in items]:
            memory.remember_many(batch)
        assert line(Desk(memory)) == expected


def test_naming_what_is_superseded(desk: Desk, clock: Any) -> None:
    """`supersedes` replaces a memory without a path; one with a path hands its path on."""
    old = desk.say("The gate code is 4711")
    clock.advance(days=1)
    new = desk.say("The gate code is 4812", supersedes=old.id)
    assert new.action == "superseded"
    assert (desk.get(old.id).valid_to, desk.get(old.id).superseded_by) == (NOW + DAY, new.id)
    assert desk.get(new.id).supersedes == old.id
    value = desk.say("vim", path=PATH)
    other = desk.say("emacs", supersedes=value.id)
    assert desk.get(other.id).path == PATH
    assert [text for text, *_ in line(desk)] == ["vim", "emacs"]
    # What was superseded already is followed to what stands.
    third = desk.say("The gate code is 4913", supersedes=old.id)
    assert desk.get(new.id).superseded_by == third.id


def test_superseding_by_what_is_known_already(desk: Desk) -> None:
    """A memory that is there already reinforces, and what it supersedes ends all the same."""
    old, known = desk.say("Works at Nordea"), desk.say("Works at Storebrand")
    done = desk.say("Works at Storebrand", supersedes=old.id)
    assert (done.id, done.action) == (known.id, "superseded")
    assert desk.get(old.id).superseded_by == known.id
    assert desk.get(known.id).reinforce_count == 1
    again = desk.say("Works at Storebrand", supersedes=known.id)
    assert (again.id, again.action) == (known.id, "reinforced")
    assert desk.get(known.id).superseded_by is None


def test_superseding_nothing(desk: Desk) -> None:
    """An unknown id to supersede is `NotFound`, and nothing is written."""
    fresh = desk.memory.scoped("fresh")
    for memory in (desk.memory, fresh):
        with pytest.raises(NotFound):
            memory.remember("x", supersedes="nobody")
        with pytest.raises(NotFound):
            memory.remember_many([NewMemory("y"), NewMemory("x", supersedes="nobody")])
        assert not memory.list()
    assert "fresh" not in desk.memory.namespaces()


@pytest.mark.promise("remember.update")
def test_updating_what_is_no_value(desk: Desk, clock: Any) -> None:
    """Tags, type, category and expiry change in place, and what was there stays known."""
    old = desk.say("vim", tags=("a",), category="tools")
    clock.advance(days=1)
    done = desk.memory.update(
        old.id, tags=["b"], category="editors", type="procedural", expires_at=NOW + 9 * DAY
    )
    record = desk.get(old.id)
    assert (done.id, done.action) == (old.id, "updated")
    assert (record.tags, record.category, record.type) == (("b",), "editors", "procedural")
    assert record.expires_at == NOW + 9 * DAY
    event = desk.events(old.id)[-1]
    assert (event["kind"], event["at"], event["tags"]) == ("updated", clock(), ["a"])
    assert event["details"]["was"] == {"category": "tools", "type": "semantic", "expires_at": None}
    assert desk.say("vim").action == "added"
    assert desk.say("vim", type="procedural").id == old.id


def test_updates_that_cannot_be(desk: Desk) -> None:
    """An unknown id, no change, an unknown or unusable field are clear errors."""
    done = desk.say("vim")
    with pytest.raises(NotFound):
        desk.memory.update("nobody", text="x")
    for changes in ({}, {"created_at": NOW}, {"text": " "}, {"type": "x"}, {"path": None}):
        with pytest.raises(InvalidInput):
            desk.memory.update(done.id, **changes)
    before = desk.everything()
    assert desk.memory.update(done.id, text="vim").action == "updated"
    assert desk.everything() == before
