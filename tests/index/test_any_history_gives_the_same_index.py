"""However an index came to be, it answers as one that was made just now."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from anaphora import NewTurn
from anaphora.index.turns.index import TurnIndex

from .conftest import NO_ANN, Bench, assert_same, facts

WORDS = ["apple", "river", "the", "stone", "running", "getUserName", "猫と犬", "zero", "Apples"]
QUERIES = ("apples in the river", "username", "猫と犬 zero")
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join)
threads = st.sampled_from(["a", "b", "Ünï"])


class Histories(RuleBasedStateMachine):
    """Two indexes share a directory, in any order of writes, follows, crashes and deletions."""

    cap: int | None = None
    names: tuple[str, ...] = ("index", "index")

    @initialize()
    def begin(self) -> None:
        self.root = Path(tempfile.mkdtemp())
        self.bench: Any = self.open_bench()
        self.indexes: list[TurnIndex] = [self.bench.index(name) for name in self.names]

    def open_bench(self) -> Any:
        return Bench(self.root, self.cap)

    def teardown(self) -> None:
        if hasattr(self, "bench"):
            self.bench.close()
            shutil.rmtree(self.root)

    @rule(thread=threads, turns=st.lists(texts, min_size=1, max_size=4), role=st.booleans())
    def append(self, thread: str, turns: list[str], role: bool) -> None:
        news = [NewTurn("user" if role else "assistant", text) for text in turns]
        self.bench.store.extend(thread, news)

    @rule(thread=threads, index=st.integers(0, 6))
    def redact(self, thread: str, index: int) -> None:
        self.bench.store.redact(thread, index)

    @rule(thread=threads)
    def delete(self, thread: str) -> None:
        self.bench.store.delete(thread)

    @rule(who=st.integers(0, 2), thread=st.none() | threads)
    def sync(self, who: int, thread: str | None) -> None:
        self.indexes[who % len(self.names)].sync(thread)

    @rule(who=st.integers(0, 2))
    def write_words(self, who: int) -> None:
        self.indexes[who % len(self.names)].settle(vectors=False)

    @rule(who=st.integers(0, 2))
    def write_vectors(self, who: int) -> None:
        self.indexes[who % len(self.names)].settle()

    @rule(who=st.integers(0, 2))
    def reopen(self, who: int) -> None:
        number = who % len(self.names)
        self.indexes[number].close()
        self.indexes[number] = self.bench.index(self.names[number])

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
            assert_same(facts(index, QUERIES), expected)
        fresh.close()
        shutil.rmtree(self.root / f"fresh-{len(self.bench.opened) - 1}", ignore_errors=True)


class FileHistories(Histories):
    """The same, where another program writes into thread files."""

    @rule(thread=threads, index=st.integers(0, 6), text=texts)
    def rewrite_from_outside(self, thread: str, index: int, text: str) -> None:
        path = self.bench.store.path(thread)
        if not path.exists():
            return
        document = json.loads(path.read_bytes())
        turns = document["turns"]
        if index < len(turns):
            turns[index]["text"] = text
        else:
            del turns[len(turns) // 2 :]
        path.write_text(json.dumps(document), "utf-8")


class HistoriesInTheBulk(FileHistories):
    """The same, with as many vectors in LanceDB as there happen to be when they are written."""

    cap = 0

    @rule()
    def delete_the_bulk(self) -> None:
        shutil.rmtree(self.root / "index" / "ann", ignore_errors=True)


TestHistories = FileHistories.TestCase
TestHistories.settings = settings(
    max_examples=12,
    stateful_step_count=14,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)

TestHistoriesInTheBulk = pytest.mark.skipif(NO_ANN, reason="no LanceDB")(
    HistoriesInTheBulk.TestCase
)
TestHistoriesInTheBulk.settings = settings(
    max_examples=5,
    stateful_step_count=12,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
