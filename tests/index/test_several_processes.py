"""Several processes share one index: each answers right, none waits, none says "locked"."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import numpy as np
import pytest
from tests.commands import python
from tests.sqlite_driver import dbapi2

from anaphora import NewTurn
from anaphora.index.turns.ledger import TurnIndexFile
from anaphora.index.words.documents import IndexedDocument

from .conftest import Bench, facts

QUERIES = ("number 7", "words of thread")


@pytest.mark.promise("index.shared")
def test_what_one_embeds_the_other_has(bench: Bench) -> None:
    """Rows, vectors and words written by one index are used by another without work."""
    first, second = bench.index(), bench.index()
    second.sync()
    bench.store.extend("a", [NewTurn("user", f"number {n}") for n in range(30)])
    assert first.sync().embedded == 30
    assert second.sync().embedded == 0
    bench.store.append("a", "user", "number 30")
    assert second.sync().new_turns == 1
    assert first.sync().new_turns == 0
    assert facts(first, QUERIES) == facts(second, QUERIES)


@pytest.mark.promise("index.shared")
def test_a_locked_file_changes_no_answer(bench: Bench) -> None:
    """While another process holds the write lock, new turns are answered from memory."""
    index = bench.index()
    bench.store.extend("a", [NewTurn("user", f"number {n}") for n in range(9)])
    bench.store.extend("b", [NewTurn("user", f"words of thread {n}") for n in range(9)])
    index.sync()
    other = dbapi2.connect(str(bench.root / "index" / "turns.sqlite"), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    bench.store.append("a", "user", "number 9 came late")
    bench.store.append("c", "user", "a thread of its own")
    bench.store.redact("a", 2)
    bench.store.delete("b")
    synced = index.sync()
    assert (synced.pending, synced.degraded) == (0, ())
    assert facts(index, QUERIES)["rows"] == facts(bench.fresh(), QUERIES)["rows"]
    assert index.texts_of(index.view(), index.view().rows("c")) == ["a thread of its own"]
    assert np.count_nonzero(index.view().words(["late"])) == 1
    assert index.view().embedded.all()
    # Nothing is read or embedded again while it stays so.
    assert index.sync().embedded == 0
    other.execute("ROLLBACK")
    other.close()
    index.sync()
    assert facts(index, QUERIES) == facts(bench.fresh(), QUERIES)
    index.close()
    assert bench.index().sync().embedded == 0


@pytest.mark.internal
@pytest.mark.promise("index.shared")
def test_a_turn_that_another_writes_while_words_are_read_counts_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes into the file between its rows and its words is taken in with the next rows."""
    first, second = bench.index(), bench.index()
    bench.store.extend("a", [NewTurn("user", f"number {n}") for n in range(9)])
    first.sync()
    read = TurnIndexFile.words
    between: list[Callable[[], object]] = [
        lambda: bench.store.append("a", "user", "number 9 came late"),
        second.sync,
    ]

    def after_another(self: TurnIndexFile, *span: int) -> dict[int, IndexedDocument]:
        while between:
            between.pop(0)()
        return read(self, *span)

    bench.store.append("a", "user", "words of thread a")
    monkeypatch.setattr(TurnIndexFile, "words", after_another)
    first.sync()
    first.sync()
    assert between == []
    assert facts(first, QUERIES) == facts(bench.fresh(), QUERIES)


READER = """
import sys
from pathlib import Path
from anaphora.embed.hashing import WordHashingEmbedder
from anaphora.embed.service import EmbedderService, spec_for
from anaphora.index.turns.index import TurnIndex
from anaphora.store.threads.file_store import ConversationStore

root, name = Path(sys.argv[1]), sys.argv[2]
store = ConversationStore(root / "conversations")
service = EmbedderService(spec_for(WordHashingEmbedder(48, window=6)))
index = TurnIndex(root / "index", store, None, service)
for number in range(15):
    store.append(name if number % 2 else "shared", "user", f"{name} number {number}")
    index.sync()
    found = index.view().words([str(number)]) * index.view().words([name])
    assert found.any(), (name, number)
    assert all(index.texts_of(index.view(), found.nonzero()[0]))
index.close()
"""


def test_processes_at_the_same_time_see_their_own_writes(bench: Bench) -> None:
    """Four processes write and ask at once; each finds at once what it wrote."""
    names = ["ann", "bob", "cid", "dan"]
    workers = [
        subprocess.Popen(
            [*python(), "-c", READER, str(bench.root), name],
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in names
    ]
    for worker in workers:
        _, error = worker.communicate(timeout=100)
        assert worker.returncode == 0, error
    index = bench.index()
    assert index.sync(embed="all").new_turns == 0
    assert len(index.view().table) == 60
    assert facts(index, QUERIES)["rows"] == facts(bench.fresh(), QUERIES)["rows"]
