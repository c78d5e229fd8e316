"""Links between statements: made behind every write, and gone with what they are about."""

from __future__ import annotations

import random
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from threading import Event
from typing import Any

import psycopg
import pytest
from corpus.reading import read_stories
from tests.conftest import DATA, Clock
from tests.sqlite_driver import dbapi2

import anaphora
from anaphora import Memory, NewTurn, keys

JUDGE = Path(anaphora.__file__).parent / "reading" / "models" / "pairs" / "trees.npz"
pytestmark = [
    pytest.mark.promise("links.behind"),
    pytest.mark.skipif(not JUDGE.exists(), reason="no judge is bundled"),
]

OLD, NEW = "Rafi owns the staging database.", "Kim owns the staging database now."
BEFORE, AFTER = "The demo is on Tuesday at 10:00.", "The demo moved to Friday at 14:00."
TABLES = {("verdict",), ("judged",)}
CHILD = """
import os, sys
from anaphora import Memory
memory = Memory.open(sys.argv[1], embedder="hashing")
memory.ready()
memory.remember(sys.argv[2])
memory.remember(sys.argv[3])
memory.conversations.append_user("chat", sys.argv[4])
os._exit(0)
"""


def stored(home: Path, columns: str, table: str) -> set[tuple[object, ...]]:
    """What the database has in columns of a table."""
    with closing(dbapi2.connect(home / "anaphora.db")) as connection:
        statement = f"SELECT {columns} FROM {table}"
        return set(connection.execute(statement).fetchall())


def links(home: Path) -> dict[tuple[str, str], float]:
    """The probability that the newer one of two replaces the older, of each link."""
    rows = stored(home, "older, newer, replaces", "verdict")
    return {(str(older), str(newer)): float(str(p)) for older, newer, p in rows}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Where the home is."""
    return tmp_path / "home"


@pytest.fixture
def memory(home: Path) -> Iterator[Memory]:
    """An open home."""
    with Memory.open(home, embedder="hashing") as opened:
        yield opened


def test_links_come_behind_a_write(memory: Memory, home: Path) -> None:
    """What replaces what is known once all is ready, of memories and of turns."""
    older, newer = memory.remember(OLD).id, memory.remember(NEW).id
    memory.conversations.append_user("chat", BEFORE)
    memory.conversations.append_user("chat", AFTER)
    assert memory.ready()
    assert memory.stats().links_due == 0
    found = links(home)
    assert found[older, newer] > 0.2
    assert found["chat#0", "chat#1"] > 0.2


def test_links_are_made_without_being_waited_for(memory: Memory, home: Path) -> None:
    """They come by themselves; nobody asks for them."""
    memory.ready()
    pair = memory.remember(OLD).id, memory.remember(NEW).id
    ends = datetime.now(UTC) + timedelta(seconds=60)
    while memory.stats().links_due and datetime.now(UTC) < ends:
        pass
    assert pair in links(home)


def test_turns_are_linked_without_a_question(memory: Memory, home: Path) -> None:
    """Who tells a turn makes no vector: that comes behind, too."""
    memory.conversations.append_user("chat", BEFORE)
    memory.conversations.append_user("chat", AFTER)
    ends = datetime.now(UTC) + timedelta(seconds=60)
    while memory.stats().links_due and datetime.now(UTC) < ends:
        pass
    assert ("chat#0", "chat#1") in links(home)


def test_what_an_import_brings_late_is_linked(memory: Memory, home: Path, tmp_path: Path) -> None:
    """An older chat that comes later is linked with what was said since."""
    memory.conversations.append_user("chat", AFTER)
    assert memory.ready()
    with Memory.open(tmp_path / "other", embedder="hashing") as other:
        said = NewTurn("user", BEFORE, ts=datetime(2020, 1, 1, tzinfo=UTC))
        other.conversations.extend("earlier", [said])
        other.export(tmp_path / "export.jsonl")
    memory.import_([tmp_path / "export.jsonl"])
    assert memory.ready()
    assert links(home)["earlier#0", "chat#0"] > 0.2


FORGETTING: dict[str, Callable[[Memory, str], object]] = {
    "memory": lambda memory, found: memory.forget(found),
    "softly": lambda memory, found: memory.forget(found, soft=True),
    "turn": lambda memory, _: memory.conversations.redact("chat", 0),
    "conversation": lambda memory, _: memory.conversations.delete("chat"),
}


@pytest.mark.parametrize("what", FORGETTING)
def test_links_die_with_their_statement(what: str, memory: Memory, home: Path) -> None:
    """When forgetting returns, nothing is known of what was forgotten."""
    older = memory.remember(OLD).id
    memory.remember(NEW)
    memory.conversations.append_user("chat", BEFORE)
    memory.conversations.append_user("chat", AFTER)
    assert memory.ready()
    gone = {older} if what in {"memory", "softly"} else {"chat#0"}
    gone |= {"chat#1"} if what == "conversation" else set()
    assert gone <= {name for (name,) in stored(home, "statement", "judged")}
    FORGETTING[what](memory, older)
    for _ in range(2):
        assert not gone & {name for (name,) in stored(home, "statement", "judged")}
        assert not gone & {end for pair in links(home) for end in pair}
        assert memory.ready()


def test_a_namespace_goes_with_its_links(memory: Memory, home: Path) -> None:
    """Of a deleted namespace no link is left."""
    other = memory.scoped("other")
    other.remember(OLD)
    other.remember(NEW)
    assert other.ready()
    assert stored(home, "namespace", "judged") == {("other",)}
    memory.delete_namespace("other")
    assert stored(home, "namespace", "judged") == stored(home, "namespace", "verdict") == set()


def test_what_was_changed_is_judged_anew(home: Path, clock: Clock) -> None:
    """An edit makes other links, and a restating other stamps."""
    with Memory.open(home, embedder="hashing", clock=clock) as memory:
        older = memory.remember(OLD).id
        clock.advance(hours=1)
        newer = memory.remember(NEW).id
        assert memory.ready()
        assert (older, newer) in links(home)
        stamps = stored(home, "statement, stamp", "judged")
        clock.advance(hours=1)
        changed = memory.update(newer, text="The cat sleeps on the sofa.").id
        memory.remember(OLD)
        assert memory.ready()
        assert {name for (name,) in stored(home, "statement", "judged")} == {older, changed}
        assert not stamps & stored(home, "statement, stamp", "judged")
        assert (older, newer) not in links(home)


def test_links_on_a_server(tmp_path: Path, postgresql_url: str) -> None:
    """Turns that lie in a server's database have links there, as long as they are there."""

    def judged() -> set[str]:
        with psycopg.connect(postgresql_url) as connection:
            rows = connection.execute("SELECT statement FROM judged").fetchall()
            rows += connection.execute("SELECT newer FROM verdict").fetchall()
            return {str(row[0]) for row in rows}

    with Memory.open(tmp_path / "home", database=postgresql_url, embedder="hashing") as memory:
        memory.conversations.append_user("chat", BEFORE)
        memory.conversations.append_user("chat", AFTER)
        assert memory.ready()
        assert judged() == {"chat#0", "chat#1"}
        memory.conversations.redact("chat", 1)
        assert judged() == {"chat#0"}
        memory.conversations.delete("chat")
        assert judged() == set()


@pytest.mark.promise("links.told")
def test_what_is_found_behind_is_open_once(tmp_path: Path) -> None:
    """A memory that replaces another is proposed with it, told once, and stays settled."""
    heard: list[object] = []
    with Memory.open(tmp_path / "home") as memory:
        memory.on("contradiction", lambda found: heard.append((found, memory.contradictions())))
        old, new = memory.remember(OLD), memory.remember(NEW)
        assert new.conflicts == ()
        assert memory.ready(60)
        (pair,) = memory.contradictions()
        assert (pair.older.id, pair.newer.id) == (old.id, new.id)
        assert 0.5 < pair.similarity < 1
        first, second = memory.search("who owns staging?", kinds=["memory"])
        assert (first.text, second.text) == (NEW, OLD)
        assert second.contradicts == (new.id,)
        assert [NEW in line for line in second.versions] == [True]
        memory.settle_contradiction(new.id, old.id, "both_hold")
        memory.reindex("minilm")
        assert memory.contradictions() == ()
        assert len(memory.contradictions(settled=True)) == 1
    # Whoever listens could read it at once, and heard of it once.
    assert heard == [(pair, (pair,))]


@pytest.mark.promise("links.told")
def test_who_hears_of_a_contradiction_may_close(tmp_path: Path) -> None:
    """The thread that found it does not wait for itself, and nothing is lost."""
    was_closed = Event()
    with Memory.open(tmp_path / "home") as memory:

        def close(_: object) -> None:
            memory.close()
            was_closed.set()

        assert memory.ready(60)
        memory.on("contradiction", close)
        kept = [memory.remember(OLD), memory.remember(NEW)]
        assert was_closed.wait(60)
    with Memory.open(tmp_path / "home") as memory:
        assert {one.id for one in memory.list()} == {one.id for one in kept}
        assert len(memory.contradictions()) == 1


@pytest.mark.promise("links.told")
def test_stats_wait_for_no_judge(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """While statements are judged it is said how many are left."""
    began, may_end = Event(), Event()
    judge = import_module("anaphora.ingest.judging").PairJudge
    judge_at_once = judge.judge

    def judge_slowly(*given: Any) -> Any:
        began.set()
        may_end.wait(30)
        return judge_at_once(*given)

    monkeypatch.setattr(judge, "judge", judge_slowly)
    memory.remember(OLD)
    memory.remember(NEW)
    assert began.wait(30)
    assert memory.stats().links_due > 0
    may_end.set()
    assert memory.ready()
    assert memory.stats().links_due == 0


@pytest.mark.promise("links.told")
def test_the_doctor_says_what_judges(memory: Memory) -> None:
    """The judge's version, and how many statements it has yet to compare."""
    memory.remember(OLD)
    assert memory.ready()
    (check,) = [check for check in memory.doctor() if check.name == "links"]
    assert check.ok
    assert check.detail.endswith(", 0 statements to be compared")


def test_all_are_made_anew(memory: Memory, home: Path) -> None:
    """`reindex` with an embedder makes the same links once more."""
    memory.remember(OLD)
    memory.remember(NEW)
    assert memory.ready()
    before = links(home)
    memory.reindex("hashing")
    assert links(home) == before != {}


def test_what_stands_apart_has_no_links(memory: Memory, home: Path) -> None:
    """What is kept for itself is compared with nothing."""
    memory.remember_many([{"text": OLD, "dedupe": False}, {"text": NEW}])
    assert memory.ready()
    assert len(stored(home, "statement", "judged")) == 1
    assert links(home) == {}


def test_a_killed_process_is_gone_on_with(home: Path) -> None:
    """What a process left that ended right after its write is made by the next one."""
    subprocess.run([sys.executable, "-c", CHILD, str(home), OLD, NEW, BEFORE], check=True)
    with Memory.open(home, embedder="hashing") as memory:
        assert memory.stats().links_due > 0
        assert memory.ready()
        assert memory.stats().links_due == 0
    assert len(stored(home, "statement", "judged")) == 3
    assert links(home)


def test_a_sealed_home_shows_no_statement(home: Path) -> None:
    """Neither ids of conversations nor stamps are clear in it, nor after it was sealed later."""
    with Memory.open(home, embedder="hashing") as memory:
        memory.conversations.append_user("chat", BEFORE)
        memory.conversations.append_user("chat", AFTER)
        assert memory.ready()
    clear = stored(home, "statement, stamp", "judged")
    keys.encrypt(home, kept="file")
    with Memory.open(home, embedder="hashing") as memory:
        assert memory.ready()
        assert memory.stats().links_due == 0
        sealed = stored(home, "statement, conversation_id, stamp", "judged")
        sealed |= stored(home, "newer, older, newer_stamp", "verdict")
        cells = [str(cell) for row in sealed for cell in row]
        assert cells
        assert not [cell for cell in cells if "chat" in cell or not cell.startswith("an")]
        memory.conversations.redact("chat", 0)
        assert len(stored(home, "statement", "judged")) == 1
    content = b"".join(file.read_bytes() for file in home.glob("anaphora.db*"))
    assert not [stamp for _, stamp in clear if str(stamp).encode() in content]


@pytest.mark.parametrize("judged", [False, True])
def test_a_home_without_the_tables_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, judged: bool
) -> None:
    """A home of an earlier build is read as it is; the first write makes what it lacks."""
    with tarfile.open(DATA / "homes" / "plain.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    home = tmp_path / "home"
    assert not TABLES & stored(home, "name", "sqlite_master")
    if not judged:
        monkeypatch.setattr("anaphora.ingest.judging.TREES_FILE", "missing")
    with Memory.open(home, embedder="hashing", warm=False) as memory:
        memory.export(tmp_path / "export.jsonl")
        assert (tmp_path / "export.jsonl").stat().st_size > 0
        if not judged:
            assert memory.stats().links_due == 0
            assert not TABLES & stored(home, "name", "sqlite_master")
        memory.remember(NEW)
        assert memory.ready()
        assert memory.stats().links_due == 0
        assert stored(home, "name", "sqlite_master") >= TABLES
        assert bool(stored(home, "statement", "judged")) == judged


def statements() -> list[NewTurn]:
    """Two hundred turns of stories, in the order of their times."""
    stories = [story for story in read_stories() if story.lang == "en"]
    random.Random(1).shuffle(stories)
    turns = [
        NewTurn(turn.role, turn.text, ts=session.when + timedelta(minutes=at), speaker=turn.speaker)
        for story in stories[:40]
        for session in story.sessions
        for at, turn in enumerate(session.turns)
    ]
    return turns[:200]


def test_the_order_in_which_they_come_does_not_matter(home: Path) -> None:
    """Made some at a time in any order, links are those that are made of all at once."""
    told = statements()
    numbers = list(range(len(told)))
    random.Random(1).shuffle(numbers)
    with Memory.open(home, embedder="hashing") as memory:
        for start in range(0, len(numbers), 20):
            for number in numbers[start : start + 20]:
                memory.conversations.extend(f"chat{number}", [told[number]])
            assert memory.ready()
        came = {pair: p for pair, p in links(home).items() if p >= 0.1}
        memory.reindex("hashing")
        whole = {pair: p for pair, p in links(home).items() if p >= 0.1}
    same = {pair for pair in came.keys() & whole.keys() if abs(came[pair] - whole[pair]) < 1e-6}
    assert len(whole) > 50
    assert len(same) >= 0.99 * len(came.keys() | whole.keys())
