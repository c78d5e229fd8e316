"""Forgetting takes what it says, for good or softly, and names what still holds the words."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.sqlite_driver import wal

from anaphora import NewMemory, SurvivingSource
from anaphora.errors import FilterError, InvalidInput, NotFound
from anaphora.store.db.engine import Database, open_database

from .truth_desk import Desk

pytestmark = pytest.mark.internal

NOW = datetime(2026, 4, 30, 12, 0, tzinfo=UTC)
TABLES = ("record", "record_event", "link", "vector")


@pytest.fixture
def desk(truth: Database, clock: Callable[[], datetime]) -> Desk:
    """Remembering over an empty truth, once for each kind of database, its embedder loaded."""
    return Desk(truth, clock).warm()


def rows_left(truth: Database) -> dict[str, int]:
    return {table: truth.rows(f"SELECT COUNT(*) FROM {table}", {})[0][0] for table in TABLES}


@pytest.mark.promise("forget.hard")
def test_forgetting_for_good_leaves_an_id_and_a_number(desk: Desk) -> None:
    """Rows, events, links and vectors go; a tombstone tells followers, without a word."""
    one = desk.say("She lives in Rome", tags=("a",))
    two = desk.say("She lives in Rome.")
    desk.say("She lives in Rome")
    before = desk.records.version()
    gone = desk.forget(one.id)
    assert (gone.count, gone.ids, gone.surviving) == (1, (one.id,), ())
    with pytest.raises(NotFound):
        desk.get(one.id)
    assert rows_left(desk.truth) == {"record": 1, "record_event": 1, "link": 0, "vector": 1}
    assert [(seq > before, owner) for seq, owner in desk.records.tombstones_since(0)] == [
        (True, one.id)
    ]
    assert desk.records.tombstones_since(desk.records.version()) == ()
    assert desk.get(two.id).text == "She lives in Rome."
    assert desk.forget(one.id).count == 0
    assert desk.say("She lives in Rome").action == "added"


@pytest.mark.promise("forget.cascades")
def test_forgetting_what_stands_takes_its_history(desk: Desk) -> None:
    """A memory goes with every version that it superseded, by path or by update."""
    ids = [desk.say(text, path="user.home").id for text in ("Rome", "Oslo", "Bergen")]
    desk.say("vim", path="user.editor")
    gone = desk.forget(ids[2])
    assert (gone.count, set(gone.ids)) == (3, set(ids))
    first = desk.say("The code is 4711")
    second = desk.remembering.update(first.id, text="The code is 4812")
    assert set(desk.forget(second.id).ids) == {first.id, second.id}
    assert rows_left(desk.truth)["record"] == 1


def test_forgetting_a_past_version_takes_it_alone(desk: Desk, clock: Any) -> None:
    """A past version goes alone; its neighbours are joined, and nothing is known of its time."""
    ids = []
    for text in ("Rome", "Oslo", "Rome"):
        ids.append(desk.say(text, path="user.home").id)
        clock.advance(days=1)
    gone = desk.forget(ids[1])
    assert gone.ids == (ids[1],)
    first, last = desk.records.history("user.home")
    assert (first.superseded_by, last.supersedes) == (ids[2], ids[0])
    assert (first.valid_to, last.valid_from) == (NOW + timedelta(days=1), NOW + timedelta(days=2))
    assert desk.say("Oslo", path="user.home", created_at=NOW + timedelta(days=1)).action == "added"
    assert [r.text for r in desk.records.history("user.home")] == ["Rome", "Oslo", "Rome"]
    # The same words in another version are named, not taken.
    assert desk.forget(ids[0]).surviving == (SurvivingSource("memory", ids[2]),)


@pytest.mark.promise("forget.cascades")
def test_what_was_derived_goes_too(desk: Desk) -> None:
    """Memories whose `parent` was forgotten go with it, to any depth."""
    one = desk.say("a long story")
    two = desk.say("a fact of it", parent=one.id)
    three = desk.say("a fact of the fact", parent=two.id)
    desk.say("another")
    gone = desk.forget(one.id)
    assert (gone.count, set(gone.ids)) == (3, {one.id, two.id, three.id})


@pytest.mark.promise("forget.filter")
def test_forgetting_by_filter(desk: Desk) -> None:
    """All that the filters let through goes, in history too, and the count is honest."""
    desk.remembering.remember_many(
        [NewMemory(f"{n}", tags=("even",) if n % 2 == 0 else ("odd",)) for n in range(700)]
    )
    old = desk.say("Rome", path="user.home", category="place").id
    desk.say("Oslo", path="user.home")
    assert desk.forget(filters={"tags": {"contains": "even"}}).count == 350
    assert desk.forget(filters={"category": "place"}).ids == (old,)
    assert rows_left(desk.truth)["record"] == 351
    assert desk.forget(filters={"category": "nowhere"}).count == 0


@pytest.mark.promise("forget.survivors")
def test_surviving_sources_are_named(desk: Desk) -> None:
    """Turns that hold the words, or that the memory came from, are named, each once."""
    done = desk.say("lives in Rome", conversation_id="a", turn_index=0)
    desk.say("lives in Rome", conversation_id="b", turn_index=4)
    desk.say("lives in Rome", conversation_id="gone", turn_index=1)
    desk.threads = {
        ("a", 0): "She lives in Rome!",
        ("b", 4): "Rome it is",
        ("c", 2): "lives in Rome",
    }
    assert set(desk.forget(done.id).surviving) == {
        SurvivingSource("turn", "a", 0),
        SurvivingSource("turn", "b", 4),
        SurvivingSource("turn", "c", 2),
    }


def forms(word: str) -> list[bytes]:
    """How a word may lie in a file."""
    return [
        word.encode("utf-8"),
        word.encode("utf-16-le"),
        word.encode("utf-16-be"),
        json.dumps(word)[1:-1].encode(),
        json.dumps(word).replace("\\", "\\\\")[1:-1].encode(),
        word.encode("utf-8").hex().encode(),
    ]


def found(home: Path, words: list[str]) -> set[str]:
    """Which of the words are in any file under `home`, or in a file's name."""
    content = b"".join(p.read_bytes() + p.name.encode() for p in home.rglob("*") if p.is_file())
    return {word for word in words if any(form in content for form in forms(word))}


@pytest.mark.promise("forget.bytes")
def test_no_byte_of_the_words_is_left(tmp_path: Path, clock: Any) -> None:
    """After forgetting for good no file under the home holds a word, in any encoding."""
    home = tmp_path / "home"
    desk = Desk(open_database(home / "truth.db"), clock).warm()
    desk.remembering.remember_many([NewMemory(f"bystander {n} " + "x" * n) for n in range(600)])
    words = [
        "Zürichhorn-ärger",
        "Quetzalcoatlus",
        "xylotomousnote",
        "Wolkenkuckuck",
        "Tausendschön",
    ]
    place, text, tag, field, source = words
    kept = desk.say("the bystander who stays", tags=("stays",))
    ids = [
        desk.say(
            f"{text} number {n} " + text * (n * 200),
            tags=(tag,),
            payload={field: [field, n]},
            source=source,
            category=place,
            path=f"user.{place}",
        ).id
        for n in range(8)
    ]
    desk.remembering.update(ids[-1], category=f"{place} 2", tags=[f"{tag} 2"])
    desk.remembering.update(ids[-1], category="nothing", tags=["none"])
    assert found(home, words) == set(words)
    assert desk.forget(ids[-1]).count == 8
    assert found(home, words) == set()
    assert desk.get(kept.id).tags == ("stays",)
    assert found(home, ["bystander who stays"]) == {"bystander who stays"}
    desk.truth.close()
    assert found(home, words) == set()


@wal
def test_a_log_that_another_keeps_is_named(
    tmp_path: Path, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When a reader keeps the log from being cut the result says so, and a later scrub does it."""
    from anaphora.store.db import sqlite

    monkeypatch.setattr(sqlite, "_CUT_SECONDS", 0.01)
    truth = open_database(tmp_path / "truth.db")
    desk = Desk(truth, clock)
    done = desk.say("Quetzalcoatlus")
    reader = open_database(tmp_path / "truth.db")
    with reader.read() as connection:
        connection.execute("SELECT COUNT(*) FROM record").fetchall()
        gone = desk.forget(done.id)
        assert gone.surviving == (SurvivingSource("log", str(tmp_path / "truth.db-wal")),)
    reader.close()
    assert truth.scrub()
    assert found(tmp_path, ["Quetzalcoatlus"]) == set()
    truth.close()


def test_what_must_not_be_forgotten_by_mistake(desk: Desk) -> None:
    """No argument, empty filters, both at once or a bad filter are errors, and nothing goes."""
    done = desk.say("x")
    both = {"record_id": done.id, "filters": {"type": "semantic"}}
    wrong: list[dict[str, Any]] = [{}, {"filters": {}}, both]
    for arguments in wrong:
        with pytest.raises(InvalidInput):
            desk.forget(**arguments)
    with pytest.raises(FilterError):
        desk.forget(filters={"colour": "red"})
    assert desk.get(done.id).text == "x"


@pytest.mark.promise("forget.soft")
def test_forgetting_softly_keeps_history(desk: Desk, clock: Any) -> None:
    """A softly forgotten memory leaves lists; history has it; it comes back anew."""
    ids = [desk.say(text, path="user.home").id for text in ("Rome", "Oslo")]
    before = desk.records.version()
    gone = desk.forget(ids[1], soft=True)
    assert (gone.count, set(gone.ids)) == (2, set(ids))
    assert {r.id for r in desk.records.changed_since(before)} == set(ids)
    assert len(desk.records.list()) == 0
    assert desk.records.current("user.home") is None
    assert [(r.text, r.forgotten) for r in desk.records.history("user.home")] == [
        ("Rome", True), ("Oslo", True),
    ]  # fmt: skip
    assert desk.records.events(ids[1])[-1].kind == "forgotten"
    again = desk.say("Oslo", path="user.home")
    assert (again.action, again.id not in ids) == ("added", True)
    assert desk.get(again.id).reinforce_count == 0
    assert desk.forget(ids[1], soft=True).count == 0
    assert desk.forget(ids[1]).count == 2
    with pytest.raises(NotFound):
        desk.remembering.update(ids[1], tags=["x"])
