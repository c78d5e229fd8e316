"""The index follows threads in a database: by sequence numbers, and as right as over files."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from anaphora.embed.hashing import WordHashingEmbedder
from anaphora.embed.service import EmbedderService, spec_for
from anaphora.index.turns.index import TurnIndex
from anaphora.store.db.engine import Database, open_database
from anaphora.store.hashing import stored_turn_hash
from anaphora.store.threads.sidecar import Sidecar, TurnNote
from anaphora.store.threads.sql_store import SqlConversationStore, StoredThread
from anaphora.values.conversations import NewTurn

from .conftest import Ticking, facts

WORDS = ["apple", "river", "the", "stone", "running", "getUserName", "猫と犬", "zero", "Apples"]
QUERIES = ("apples in the river", "username", "猫と犬 zero")
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join)
threads = st.sampled_from(["a", "b", "Ünï"])
speakers = st.sampled_from([None, "Ann", "Bob"])


class RowBench:
    """One store in a database, and any number of indexes over it."""

    def __init__(self, root: Path, truth: Database) -> None:
        self.root = root
        self.truth = truth
        self.clock = Ticking()
        self.sidecar = Sidecar(truth, "default")
        self.store = self.another()
        self.service = EmbedderService(spec_for(WordHashingEmbedder(48, window=6)))
        self.opened: list[TurnIndex] = []

    def another(self) -> SqlConversationStore:
        return SqlConversationStore(self.truth, "default", clock=self.clock, sidecar=self.sidecar)

    def index(self, name: str = "index") -> TurnIndex:
        index = TurnIndex(self.root / name, self.store, self.sidecar, self.service)
        self.opened.append(index)
        return index

    def fresh(self) -> TurnIndex:
        index = self.index(f"fresh-{len(self.opened)}")
        index.sync(embed="all")
        return index

    def close(self) -> None:
        for index in self.opened:
            index.close()


@pytest.fixture
def rows(tmp_path: Path, truth: Database) -> Iterator[RowBench]:
    rows = RowBench(tmp_path, truth)
    yield rows
    rows.close()


class Histories(RuleBasedStateMachine):
    """Two indexes share a directory, a third has its own, in any order of what may happen."""

    @initialize()
    def begin(self) -> None:
        self.root = Path(tempfile.mkdtemp())
        self.truth = open_database(self.root / "truth.db")
        self.bench = RowBench(self.root, self.truth)
        self.names = ["index", "index", "own"]
        self.indexes = [self.bench.index(name) for name in self.names]

    def teardown(self) -> None:
        if hasattr(self, "bench"):
            self.bench.close()
            self.truth.close()
            shutil.rmtree(self.root)

    @rule(thread=threads, turns=st.lists(texts, min_size=1, max_size=4), speaker=speakers)
    def append(self, thread: str, turns: list[str], speaker: str | None) -> None:
        self.bench.store.extend(thread, [NewTurn("user", t, speaker=speaker) for t in turns])

    @rule(thread=threads, index=st.integers(0, 6))
    def redact(self, thread: str, index: int) -> None:
        self.bench.store.redact(thread, index)

    @rule(thread=threads)
    def delete(self, thread: str) -> None:
        self.bench.store.delete(thread)

    @rule(thread=threads, title=texts)
    def entitle(self, thread: str, title: str) -> None:
        self.bench.store.set_title(thread, title)

    @rule(thread=threads, index=st.integers(0, 6), name=speakers)
    def note_a_speaker(self, thread: str, index: int, name: str | None) -> None:
        found = self.bench.store.get(thread)
        if found is not None and index < len(found.turns):
            turn = found.turns[index]
            note = TurnNote(thread, index, stored_turn_hash(turn.role, turn.text), name)
            self.bench.sidecar.note_turns([note])

    @rule(who=st.integers(0, 2), thread=st.none() | threads)
    def sync(self, who: int, thread: str | None) -> None:
        self.indexes[who].sync(thread)

    @rule(who=st.integers(0, 2))
    def write_words(self, who: int) -> None:
        self.indexes[who].commit_words()

    @rule(who=st.integers(0, 2))
    def reopen(self, who: int) -> None:
        self.indexes[who].close()
        self.indexes[who] = self.bench.index(self.names[who])

    @rule()
    def delete_the_index(self) -> None:
        shutil.rmtree(self.root / "index", ignore_errors=True)

    @rule()
    def tear_the_index(self) -> None:
        path = self.root / "index" / "turns.sqlite"
        if path.exists():
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])

    @invariant()
    def answers_as_a_fresh_index(self) -> None:
        if not hasattr(self, "bench"):
            return
        fresh = self.bench.fresh()
        expected = facts(fresh, QUERIES)
        for index in self.indexes:
            index.sync(embed="all")
            assert facts(index, QUERIES) == expected
        fresh.close()
        shutil.rmtree(self.root / f"fresh-{len(self.bench.opened) - 1}", ignore_errors=True)


TestHistories = Histories.TestCase
TestHistories.settings = settings(
    max_examples=7,
    stateful_step_count=10,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


class Watched(SqlConversationStore):
    """Counts what is read of the database."""

    def __init__(self, truth: Database, sidecar: Sidecar) -> None:
        super().__init__(truth, "default", sidecar=sidecar)
        self.turns_read = 0
        self.changes_asked = 0

    def stored(self, conversation_id: str, start: int = 0) -> StoredThread | None:
        found = super().stored(conversation_id, start)
        self.turns_read += len(found.thread.turns) if found else 0
        return found

    def changes_since(self, seq: int) -> dict[str, tuple[int, int, int, int] | None]:
        self.changes_asked += 1
        return super().changes_since(seq)


def test_only_what_is_new_is_read(rows: RowBench) -> None:
    """An append costs the new turn and the one before, a title one; nothing new, one number."""
    rows.store = watched = Watched(rows.truth, rows.sidecar)
    index = rows.index()
    rows.store.extend("a", [NewTurn("user", f"line {n}", speaker="Ann") for n in range(200)])
    rows.store.extend("b", [NewTurn("user", "other words")])
    index.sync(embed="all")
    assert watched.turns_read == 201
    for number in range(3):
        rows.store.append("a", "user", f"more {number}", speaker="Bob")
        index.sync()
        rows.store.set_title("a", f"title {number}")
        index.sync()
    assert watched.turns_read == 201 + 3 * 3
    asked = watched.changes_asked
    for _ in range(3):
        index.sync()
        index.sync("a")
    assert watched.changes_asked == asked
    rows.store.redact("a", 5)
    index.sync()
    rows.store.append("a", "user", "after the redaction")
    assert index.sync().new_turns == 1
    assert watched.turns_read == 201 + 3 * 3 + 203 + 2
    index.close()
    reopened = rows.index()
    reopened.sync()
    assert watched.turns_read == 201 + 3 * 3 + 203 + 2


def test_truth_that_was_put_back_and_went_on_differently(tmp_path: Path) -> None:
    """An index of turns that a restore took away again answers with those that came instead."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    truth = open_database(tmp_path / "one" / "truth.db")
    bench = RowBench(tmp_path, truth)
    bench.store.extend("a", [NewTurn("user", f"apple {n}") for n in range(5)])
    bench.index().sync()
    truth.close()
    bench.close()
    shutil.copy(tmp_path / "one" / "truth.db", tmp_path / "two" / "truth.db")
    for folder, word in (("one", "river"), ("two", "stone")):
        truth = open_database(tmp_path / folder / "truth.db")
        bench = RowBench(tmp_path, truth)
        bench.store.append("a", "user", f"the {word}")
        index = bench.index()
        index.sync(embed="all")
        assert facts(index, QUERIES) == facts(bench.fresh(), QUERIES)
        assert index.view().words([word]).any()
        bench.close()
        truth.close()
