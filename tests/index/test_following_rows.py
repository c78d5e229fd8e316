"""The index follows threads in a database: by sequence numbers, and as right as over files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from anaphora import NewTurn
from anaphora.embed.service import EmbedderService, spec_for
from anaphora.index.turns.index import TurnIndex
from anaphora.store.db.engine import Database, open_database
from anaphora.store.hashing import stored_turn_hash
from anaphora.store.threads.sidecar import Sidecar, TurnNote
from anaphora.store.threads.sql_store import SqlConversationStore, StoredThread
from anaphora.testing import WordHashingEmbedder

from .conftest import Ticking
from .test_any_history_gives_the_same_index import Histories, texts, threads

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
        self.truth.close()


@pytest.fixture
def rows(tmp_path: Path, truth: Database) -> Iterator[RowBench]:
    rows = RowBench(tmp_path, truth)
    yield rows
    rows.close()


class RowHistories(Histories):
    """The same over a database; a third index has its own directory, and speakers are noted."""

    names = ("index", "index", "own")

    def open_bench(self) -> RowBench:
        return RowBench(self.root, open_database(self.root / "truth.db"))

    @rule(thread=threads, title=texts)
    def entitle(self, thread: str, title: str) -> None:
        self.bench.store.set_title(thread, title)

    @rule(thread=threads, index=st.integers(0, 6), name=speakers)
    def note_a_speaker(self, thread: str, index: int, name: str | None) -> None:
        stored = self.bench.store.get(thread)
        if stored is not None and index < len(stored.turns):
            turn = stored.turns[index]
            note = TurnNote(thread, index, stored_turn_hash(turn.role, turn.text), name)
            self.bench.sidecar.note_turns([note])


TestRowHistories = RowHistories.TestCase
TestRowHistories.settings = settings(
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
