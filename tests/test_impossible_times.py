"""Times that no year has, and rows that make no sense: refused at the door, harmless inside."""

from __future__ import annotations

import json
import logging
import re
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from tests.commands import begin_home, run_command
from tests.conftest import Clock
from tests.deep.asking import Script, finds, tell
from tests.surfaces.rest_desk import served

from anaphora import Memory, NewMemory
from anaphora.calls.moments import EARLIEST, LATEST
from anaphora.errors import AnaphoraError, InvalidInput, StoreError
from anaphora.store.db.statements import execute
from anaphora.store.db.tables import TABLES

pytestmark = pytest.mark.internal

EAST, WEST = timezone(timedelta(hours=14)), timezone(timedelta(hours=-14))
BEFORE = datetime.min.replace(tzinfo=EAST)
BEYOND = datetime.max.replace(tzinfo=WEST)
# Ten hours before the year 1, and after the year 9999, in microseconds since 1970.
MICROS = {"before": -62_135_632_800_000_000, "beyond": 253_402_336_800_000_000}

Open = Callable[..., Memory]


@pytest.fixture(params=["sqlite", "postgresql"])
def open_memory(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[Open]:
    """Opens a home of this test, its truth in a file or on a server."""
    url = None if request.param == "sqlite" else request.getfixturevalue("postgresql_url")
    opened: list[Memory] = []

    def open_one(**options: Any) -> Memory:
        made = Memory.open(
            tmp_path / "home", database=url, embedder="hashing", clock=clock, **options
        )
        opened.append(made)
        return made

    yield open_one
    for memory in opened:
        memory.close()


def write(memory: Memory, statement: str, **values: Any) -> None:
    """What no door lets in, by SQL."""
    with memory._container.truth.write("default") as change:
        cells = [values[name] for name in re.findall(r":(\w+)", statement)]
        execute(change.connection, re.sub(r":\w+", "?", statement), cells)
        # As a write of ours would be: who follows truth sees that something happened.
        change.take()


def damage(memory: Memory, record_id: str, column: str, value: Any) -> None:
    write(
        memory,
        f"UPDATE record SET {column} = :value WHERE record_id = :id",
        value=value,
        id=record_id,
    )


WAYS: dict[str, Callable[[Memory, datetime], object]] = {
    "remember expires_at": lambda m, t: m.remember("x", expires_at=t),
    "remember created_at": lambda m, t: m.remember("x", created_at=t),
    "remember_many": lambda m, t: m.remember_many([NewMemory("x"), NewMemory("y", expires_at=t)]),
    "update": lambda m, t: m.update(m.remember("kept").id, expires_at=t),
    "as_of": lambda m, t: m.recall("x", as_of=t),
    "filter": lambda m, t: m.recall("x", filters={"created_at": {"gt": t}}),
    "filter text": lambda m, t: m.list({"created_at": {"gt": t.isoformat()}}),
    "turn": lambda m, t: m.conversations.append("c", "user", "x", ts=t),
    "token": lambda m, t: m.tokens.create("x", expires_at=t),
}


@pytest.mark.promise("truth.times")
@pytest.mark.parametrize("way", WAYS)
@settings(deadline=None, max_examples=12, suppress_health_check=list(HealthCheck))
@given(data=some.data())
def test_every_time_is_refused_or_stays_readable(
    way: str, data: some.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Any aware datetime, by any way in, is refused by name or leaves everything readable."""
    time = data.draw(
        some.sampled_from([BEFORE, BEYOND])
        | some.datetimes(timezones=some.sampled_from([EAST, WEST, UTC]))
    )
    with Memory.open(tmp_path_factory.mktemp("home"), embedder="hashing", warm=False) as memory:
        memory.remember("Ada drinks tea")
        possible = True
        try:
            time.astimezone(UTC)
        except OverflowError:
            possible = False
        if possible:
            try:
                WAYS[way](memory, time)
            except InvalidInput:
                assert way == "token"  # A past one opens nothing.
        elif way == "filter text":
            # A text is read as Go reads times: the nearest moment that there is.
            WAYS[way](memory, time)
        else:
            with pytest.raises(InvalidInput):
                WAYS[way](memory, time)
        memory.remember("Bob drinks coffee")
        texts = {record.text for record in memory.list()}
        assert {"Ada drinks tea", "Bob drinks coffee"} <= texts
        assert memory.recall("Ada tea")[0].text == "Ada drinks tea"
        memory.tokens.list()
        memory.conversations.list()


@pytest.mark.promise("truth.times")
@pytest.mark.parametrize("name", ["expires_at", "created_at"])
@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_rest_refuses_such_a_time(tmp_path: Path, name: str, text: str) -> None:
    """Over HTTP such a time is 422, as a body and as a moment asked about, and nothing is kept."""
    with served(tmp_path / "home") as (client, _):
        sent = client.post("/v1/memories", json={"text": "x", name: text})
        assert sent.status_code == 422, sent.text
        assert client.post("/v1/recall", json={"query": "x", "as_of": text}).status_code == 422
        turns = {"turns": [{"role": "user", "text": "x", "ts": text}]}
        assert client.post("/v1/conversations/c/turns", json=turns).status_code == 422
        assert client.get("/v1/memories").json()["items"] == []


@pytest.mark.promise("truth.times")
def test_the_command_line_refuses_such_a_time(tmp_path: Path) -> None:
    """`token create --expires` and `recall --as-of` name what is wrong; `token list` goes on."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        environ = {
            "ANAPHORA_EMBEDDER": "hashing",
            "ANAPHORA_READER": "off",
            "PATH": "",
            "HOME": str(tmp_path),
        }
        return run_command("--home", tmp_path / "home", *words, environ=environ)

    begin_home(tmp_path / "home")
    beyond = "9999-12-31T23:59:59-14:00"
    refused = run("token", "create", "x", "--expires", beyond)
    assert (refused.returncode, "Traceback" in refused.stderr) == (2, False), refused.stderr
    assert "9999" in refused.stderr
    assert run("token", "list").returncode == 0
    asked = run("recall", "x", "--as-of", beyond)
    assert (asked.returncode, "Traceback" in asked.stderr) == (2, False), asked.stderr


@pytest.mark.promise("truth.times")
def test_an_import_of_an_export_refuses_such_a_time(tmp_path: Path, clock: Clock) -> None:
    """A line of an export with such a time is a problem of that line; the others come in."""
    with Memory.open(tmp_path / "one", embedder="hashing", clock=clock) as memory:
        for text in ("first", "second"):
            memory.remember(text)
        memory.conversations.append_user("c", "a turn")
        memory.export(tmp_path / "export.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "export.jsonl").read_text().splitlines()]
    for line in lines:
        if line.get("text") == "first":
            line["expires_at"] = "0001-01-01T00:00:00+14:00"
        if line.get("kind") == "turn":
            line["ts"] = "9999-12-31T23:59:59-14:00"
    (tmp_path / "export.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with Memory.open(tmp_path / "two", embedder="hashing", clock=clock) as memory:
        done = memory.import_(tmp_path / "export.jsonl")
        assert len(done.problems) == 1
        assert [record.text for record in memory.list()] == ["second"]
        # A thread keeps the bytes that Go wrote, and its time reads as the nearest that there is.
        assert memory.conversations.append_user("c", "another")
        assert [turn.text for turn in memory.conversations.recent("c")] == ["a turn", "another"]
        assert memory.recall_conversation(None, "a turn")[0].text == "a turn"


def everything_works(memory: Memory, bad: str, others: set[str]) -> None:
    """What must work beside a row of this id, none of which may lose the others."""
    listed = {record.text for record in memory.list()}
    assert others <= listed
    assert memory.recall("Ada tea", top_k=50).hits
    assert {hit.text for hit in memory.recall("Ada tea", top_k=50)} & others
    assert memory.recall("tea", filters={"category": "drinks"}, top_k=50).hits
    assert memory.recall("tea", filters={"tags": {"contains": "hot"}}, top_k=50).hits
    assert memory.remember(f"Something new about tea {len(listed)}").action == "added"
    assert memory.remember("Ada drinks tea", category="drinks").action == "reinforced"
    assert memory.history("drinks.bob")
    assert memory.deep_recall("what does Ada drink?", scope="all_sessions") is not None
    assert memory.ready(60)
    memory.dream()
    memory.stats()
    memory.forget(filters={"category": "gone"})


@pytest.mark.promise("truth.rows")
@pytest.mark.parametrize(
    ("column", "value"),
    [
        *((name, micros) for name in ("expires_at", "created_at") for micros in MICROS.values()),
        ("valid_from", MICROS["before"]),
        ("last_reinforced", MICROS["beyond"]),
        ("valid_until", MICROS["beyond"]),
        ("tags", "["),
        ("tags", "[1]"),
        ("payload", "[]"),
        ("origin", '"text"'),
    ],
)
def test_a_bad_row_takes_no_other_along(
    open_memory: Open, tmp_path: Path, column: str, value: Any
) -> None:
    """Beside a row with an impossible time or torn JSON everything works, and goes on doing so."""
    memory = open_memory()
    tell(memory)
    memory.remember("Ada drinks tea", category="drinks", tags=["hot"])
    memory.remember("Bob drinks coffee", path="drinks.bob")
    bad = memory.remember("Eve drinks lapsang", path="drinks.eve", tags=["hot"]).id
    damage(memory, bad, column, value)
    others = {"Ada drinks tea", "Bob drinks coffee"}
    everything_works(memory, bad, others)
    memory.export(tmp_path / "export.jsonl")
    memory.close()
    again = open_memory()
    everything_works(again, bad, others)
    assert again.forget(bad).count == 1
    assert bad not in {record.id for record in again.list()}
    assert all(check.ok for check in again.doctor() if check.name == "rows")


@pytest.mark.promise("truth.rows")
@pytest.mark.parametrize(
    ("column", "value"), [("expires_at", MICROS["beyond"]), ("created_at", MICROS["before"])]
)
def test_an_impossible_time_reads_as_the_nearest(
    open_memory: Open, column: str, value: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Its words are still found, the log says so, doctor names it, and repair sets it right."""
    memory = open_memory()
    bad = memory.remember("Eve drinks lapsang", path="drinks.eve").id
    # The log tells each value once.
    damage(memory, bad, column, value + int(bad[-6:], 16))
    with caplog.at_level(logging.WARNING, "anaphora"):
        assert memory.get(bad).text == "Eve drinks lapsang"
        assert memory.recall("lapsang")[0].id == bad
    assert "doctor --repair" in caplog.text
    (told,) = [check for check in memory.doctor() if check.name == "rows"]
    assert (told.ok, bad in told.detail, column in told.detail) == (False, True, True)
    rows = [check for check in memory.doctor(repair=True) if check.name == "rows"]
    assert all(check.ok for check in rows), rows
    found = memory.get(bad)
    assert (found.text, found.path) == ("Eve drinks lapsang", "drinks.eve")
    assert getattr(found, column) == {"expires_at": LATEST, "created_at": EARLIEST}[column]
    assert memory.recall("lapsang")[0].id == bad


@pytest.mark.promise("truth.rows")
def test_a_row_of_torn_json_is_named_and_mended(open_memory: Open, tmp_path: Path) -> None:
    """It is left out of answers, which say so; repair keeps its words and what was torn."""
    memory = open_memory()
    memory.remember("Ada drinks tea")
    bad = memory.remember("Eve drinks lapsang", path="drinks.eve", payload={"cups": 2}).id
    damage(memory, bad, "payload", '{"cups": ')
    found = memory.recall("Eve lapsang", top_k=5)
    assert bad not in {hit.id for hit in found}
    assert [one.part for one in found.degraded] == ["memories"]
    assert bad in found.degraded[0].reason
    with pytest.raises(StoreError, match="doctor --repair"):
        memory.get(bad)
    assert bad in str(memory.export(tmp_path / "export.jsonl").problems)
    (told,) = [check for check in memory.doctor() if check.name == "rows"]
    assert (told.ok, bad in told.detail) == (False, True)
    memory.doctor(repair=True)
    record = memory.get(bad)
    assert (record.text, record.payload, record.path) == ("Eve drinks lapsang", None, "drinks.eve")
    kept = memory._services().memory.records.events(bad)[-1]
    assert kept.details["was"] == {"payload": '{"cups": '}
    assert not memory.recall("Eve lapsang").degraded


@pytest.mark.promise("truth.rows")
def test_a_value_that_follows_a_bad_row_supersedes_it(open_memory: Open) -> None:
    """A path whose present value cannot be read still has one value at a time afterwards."""
    memory = open_memory()
    bad = memory.remember("Eve drinks lapsang", path="drinks.eve", tags=["hot"]).id
    damage(memory, bad, "tags", "[")
    new = memory.remember("Eve drinks mate", path="drinks.eve")
    assert new.action == "superseded"
    assert [record.id for record in memory.history("drinks.eve")] == [bad, new.id]


@pytest.mark.promise("truth.rows")
@pytest.mark.parametrize("column", ["expires_at", "created_at", "last_used"])
def test_a_bad_token_takes_no_other_along(open_memory: Open, column: str) -> None:
    """Tokens are listed, checked, made and revoked beside one with an impossible time."""
    memory = open_memory()
    good, bad = memory.tokens.create("good"), memory.tokens.create("bad")
    write(memory, f"UPDATE token SET {column} = :at WHERE token_id = :id",
          at=MICROS["beyond"], id=bad.token.id)  # fmt: skip
    assert {token.name for token in memory.tokens.list()} == {"good", "bad"}
    assert memory.tokens.check(good.secret) is not None
    assert memory.tokens.create("new").token.name == "new"
    assert not all(check.ok for check in memory.doctor() if check.name == "rows")
    memory.doctor(repair=True)
    assert all(check.ok for check in memory.doctor() if check.name == "rows")
    assert memory.tokens.revoke("bad").id == bad.token.id
    write(memory, "UPDATE token SET scopes = '[' WHERE token_id = :id", id=good.token.id)
    assert memory.tokens.check(good.secret) is None
    assert {token.name for token in memory.tokens.list()} == {"new", "bad"}


@pytest.mark.promise("truth.rows")
def test_bad_notes_projects_gaps_and_jobs_take_nothing_along(
    open_memory: Open, tmp_path: Path, clock: Clock
) -> None:
    """Every table with a time is read beside one that is impossible, and all of them are mended."""
    root = tmp_path / "shop"
    root.mkdir()
    (root / "queue.py").write_text("def enqueue(job):\n    return job\n")
    script = Script(finds("which tea"))
    memory = open_memory(model=script.model)
    tell(memory, "talk")
    script.said = "```python\nsubmit('NOT_FOUND', [])\n```"
    memory.deep_recall("who keeps bees on the roof of the town hall?", scope="all_sessions")
    memory.index_project(root, name="shop")
    bad = memory.observe("the queue keeps jobs", kind="decision", project="shop").id
    memory.observe("jobs of the queue are retried", kind="decision", project="shop")
    memory.tokens.create("door")
    memory.remember("Ada drinks tea")
    tables = 0
    for table, columns in _moments().items():
        for column in columns:
            write(memory, f"UPDATE {table} SET {column} = :at WHERE {column} IS NOT NULL",
                  at=MICROS["before"])  # fmt: skip
        tables += 1
    assert tables > 10
    memory.close()
    memory = open_memory(model=script.model)
    assert memory.recall_context("the queue of jobs", project="shop").primary_targets
    assert memory.warm_up(project="shop") is not None
    assert memory.recall_context("jobs of the queue", project="shop").memories
    assert memory.gaps(None) is not None
    assert memory.projects()[0].name == "shop"
    memory.index_project(root, name="shop")
    memory.observe("new", kind="note", project="shop")
    memory.dream()
    memory.deep_recall("what does Ada drink?", scope="all_sessions")
    memory.traces()
    assert memory.forget(bad).count == 1
    assert memory.tokens.list()
    assert [record.text for record in memory.list()] == ["Ada drinks tea"]
    memory.doctor(repair=True)
    (rows,) = [check for check in memory.doctor() if check.name == "rows"]
    assert rows.ok, rows


@pytest.mark.promise("truth.rows")
def test_a_turn_of_a_server_without_a_sound_time_keeps_its_words(
    postgresql_url: str, tmp_path: Path, clock: Clock
) -> None:
    """A time that is none is read as never set, told by doctor, and mended without a word lost."""
    given: dict[str, Any] = {"database": postgresql_url, "embedder": "hashing", "clock": clock}
    with Memory.open(tmp_path / "home", **given) as memory:
        tell(memory)
        memory.conversations.append_user("other", "walnuts again")
        write(memory, "UPDATE turn SET ts_text = 'soon' WHERE position = 0")
        write(memory, "UPDATE thread SET updated_text = 'later'")
    with Memory.open(tmp_path / "home", **given) as memory:
        assert len(memory.conversations.list()) == 2
        assert len(memory.conversations.recent("tea")) == 4
        hits = memory.recall_conversation(None, "Ada drinks lapsang tea", top_k=20)
        assert hits[0].text.startswith("Ada drinks lapsang")
        assert memory.conversations.append_user("tea", "one more")
        memory.export(tmp_path / "export.jsonl")
        told = [check.detail for check in memory.doctor() if check.name == "threads"]
        assert sum("its time is invalid" in detail for detail in told) == 2
        memory.doctor(repair=True)
        assert not memory.conversations.problems()
        assert len(memory.conversations.recent("tea")) == 5


def test_every_column_of_a_time_is_declared() -> None:
    """Each column whose name is that of a time is known to who looks for impossible ones."""
    names = {"at", "last_used", "valid_from", "valid_until", "last_reinforced"}
    for table in TABLES.values():
        for column in table.columns:
            named = column.name in names or column.name.endswith("_at")
            if named and column.name != "branch_at":
                assert column.codec == "moment", f"{table.name}.{column.name}"


def _moments() -> dict[str, list[str]]:
    return {table.name: list(table.moments) for table in TABLES.values() if table.moments}


def test_a_deadline_beyond_every_year_is_refused_by_the_store_of_langgraph(tmp_path: Path) -> None:
    """A time to live that ends after the year 9999 is InvalidInput, not an overflow."""
    from anaphora.adapters.langgraph import AnaphoraStore

    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        store = AnaphoraStore(memory)
        with pytest.raises(AnaphoraError, match="ttl"):
            store.put(("a",), "k", {"v": 1}, ttl=1e15)
