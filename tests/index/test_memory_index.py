"""The index of memories agrees with truth, however it came to know it, on both sides of the cap."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.memory_home import NOW, MemoryHome, memory_home

from anaphora.errors import EmbeddingError
from anaphora.index.memories import index as module
from anaphora.index.memories.index import MemoryIndex
from anaphora.index.memories.state import MemoryQuery
from anaphora.index.vectors.ann import available
from anaphora.index.words.documents import analyse_text
from anaphora.settings import EXACT_CAP
from anaphora.store.filters import Filter, parse
from anaphora.store.records.rows import as_mapping

pytestmark = pytest.mark.internal

WORDS = [
    "cat",
    "dog",
    "tea",
    "rust",
    "vienna",
    "lock",
    "ERR_4711",
    "budget",
    "invoice",
    "red",
    "blue",
    "paris",
    "train",
]
LANCE = pytest.param(
    0, marks=pytest.mark.skipif(not available(), reason="the extra `large` is not installed")
)
SIDES = pytest.mark.parametrize("cap", [EXACT_CAP, LANCE])


@pytest.fixture
def home(tmp_path: Path, cap: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryHome]:
    # As if there were many: LanceDB itself is to answer.
    monkeypatch.setattr("anaphora.index.memories.vectors.FEW", 0)
    monkeypatch.setattr("anaphora.index.memories.vectors.ROWS_FOR_ONE", 0)
    with memory_home(tmp_path, cap) as home:
        yield home


def valid_at(home: MemoryHome, moment: datetime) -> set[str]:
    """The ids of what was true at a moment, expired and forgotten memories left out."""
    return {
        one.id
        for one in home.records.changed_since(0, 10**6)
        if one.valid_from <= moment
        and not one.forgotten
        and (one.valid_to is None or one.valid_to > moment)
        and (one.expires_at is None or one.expires_at > moment)
    }


def asked(home: MemoryHome, query: str, limit: int = 8, keep: Filter | None = None) -> MemoryQuery:
    return MemoryQuery(
        moment=home.now,
        limit=limit,
        vector=home.service.query(query),
        terms=tuple(query.lower().split()),
        keep=keep or Filter(),
    )


Facts = dict[str, tuple[float, float, int, int, int]]


def facts(index: MemoryIndex, wanted: MemoryQuery) -> Facts:
    """What the index says of each candidate, whatever its order."""
    found = index.candidates(wanted).columns
    assert found.cosine is not None
    return {
        one: (
            round(float(found.cosine[at]), 3),
            round(float(found.words[at]), 3),
            int(found.count[at]),
            int(found.reinforced_at[at]),
            int(found.type[at]),
        )
        for at, one in enumerate(found.ids)
    }


def assert_alike(a: Facts, b: Facts) -> None:
    assert a.keys() == b.keys()
    for one, values in a.items():
        assert values == pytest.approx(b[one], abs=2e-3), one


def some_text(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randint(2, 6)))


class _History:
    """Things that happen to memories, in any order."""

    def __init__(self, home: MemoryHome, rng: random.Random) -> None:
        self.home, self.rng = home, rng
        self.living: list[str] = []

    def go_on(self) -> None:
        acts = [self.restate, self.replace, self.reword, self.hide, self.erase, self.expire]
        act = self.rng.choice([*[self.add] * 4, *acts, self.settle])
        if self.living or act == self.add:
            act(self.rng.choice(self.living) if self.living else "")

    def add(self, _: str) -> None:
        late = self.rng.random() < 0.2
        self.living.append(self.home.put(some_text(self.rng), embed=not late))

    def restate(self, one: str) -> None:
        count = self.home.records.get(one).reinforce_count + 1
        self.home.change(one, reinforce_count=count, last_reinforced=self.home.now)

    def replace(self, one: str) -> None:
        by = self.rng.choice(self.living)
        self.home.change(one, valid_to=self.home.now, superseded_by=by)

    def reword(self, one: str) -> None:
        text = some_text(self.rng)
        self.home.change(one, text=text)
        self.home.embed(one, text)

    def hide(self, one: str) -> None:
        self.home.hide(one)

    def erase(self, one: str) -> None:
        self.home.erase(one)
        self.living.remove(one)

    def expire(self, one: str) -> None:
        end = self.home.now + timedelta(days=self.rng.randint(-1, 3))
        self.home.change(one, expires_at=end)

    def settle(self, _: str) -> None:
        self.home.index.settle()


@SIDES
class TestBothSidesOfTheCap:
    """What holds for the matrix in memory holds for LanceDB on disk."""

    @pytest.mark.parametrize("seed", range(4))
    def test_any_history_gives_the_same_index(self, home: MemoryHome, seed: int) -> None:
        """After adding, restating, superseding, changing, forgetting, in any order and with the
        index written or reopened in between, it says what a fresh one says."""
        rng = random.Random(seed)
        history = _History(home, rng)
        for step in range(60):
            home.now += timedelta(hours=rng.randint(1, 50))
            history.go_on()
            if step % 7 == 0:
                home.index.sync()
        home.index.sync()
        home.index.settle()
        fresh = home.open_index("fresh")
        again = home.open_index()
        for query in ("red cat", "ERR_4711", "tea vienna train"):
            wanted = asked(home, query, limit=200)
            said = facts(home.index, wanted)
            assert_alike(said, facts(fresh, wanted))
            assert_alike(said, facts(again, wanted))
            wanted = replace(wanted, moment=NOW + timedelta(days=20), past=True)
            then = facts(home.index, wanted)
            valid = valid_at(home, wanted.moment)
            assert set(then) <= valid
            assert home.index.visible(history.living, wanted.moment, past=True) == valid
            assert_alike(then, facts(fresh, wanted))

    @pytest.mark.parametrize("damage", ["gone", "torn", "foreign"])
    def test_the_directory_may_vanish(self, home: MemoryHome, damage: str) -> None:
        """Deleted, torn or foreign files cost nothing but the time to make them again."""
        rng = random.Random(3)
        for _ in range(40):
            home.put(some_text(rng))
        wanted = asked(home, "cat lock", limit=50)
        before = facts(home.index, wanted)
        home.index.settle()
        home.index.close()
        if damage == "gone":
            shutil.rmtree(home.root / "index")
        else:
            files = [p for p in (home.root / "index").rglob("*") if p.is_file()]
            assert files
            for path in files:
                data = path.read_bytes()
                path.write_bytes(data[: len(data) // 2] if damage == "torn" else b"not ours")
        reopened = home.open_index()
        assert_alike(before, facts(reopened, wanted))
        reopened.settle()
        assert_alike(before, facts(home.open_index(), wanted))

    @settings(
        max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    @given(st.integers(0, 10_000))
    def test_a_filter_is_applied_before_the_cut(self, home: MemoryHome, seed: int) -> None:
        """The best under a filter are the best of those that plain Python lets through, however
        few they are."""
        rng = random.Random(seed)
        if not len(home.index):
            home.index.sync()
        if not len(home.index):
            for n in range(120):
                home.put(
                    some_text(rng),
                    category=rng.choice([None, "dev", "home"]),
                    tags=tuple(rng.sample(["a", "b", "rare"], rng.randint(0, 2))),
                    payload={"n": n % 17, "deep": {"x": rng.choice("pq")}},
                    path=f"p.{n % 5}.{n}",
                    days_ago=rng.uniform(0, 300),
                )
            home.index.sync()
            home.index.settle()
        conditions = [
            {"category": rng.choice(["dev", "home"])},
            {"tags": {"contains": rng.choice(["a", "rare"])}},
            {"payload.n": rng.randint(0, 16)},
            {"payload.deep.x": {"ne": "p"}},
            {"path": {"startswith": f"p.{rng.randint(0, 4)}."}},
            {"created_at": {"lt": NOW - timedelta(days=rng.randint(1, 299))}},
            {"NOT": {"category": {"exists": True}}},
        ]
        chosen = rng.sample(conditions, rng.randint(1, 3))
        keep = parse({rng.choice(["AND", "OR"]): chosen})
        query = some_text(rng)
        vector = home.service.query(query)
        records = [r for r in home.records.changed_since(-1, 1000) if keep.matches(as_mapping(r))]
        cosines = {}
        for r in records:
            (parts,) = home.service.embed([r.text])
            assert isinstance(parts, np.ndarray)
            cosines[r.id] = float((parts.astype("<f2").astype(np.float32) @ vector).max())
        wanted = replace(asked(home, query, limit=5, keep=keep), terms=())
        found = home.index.candidates(wanted).columns
        assert found.cosine is not None
        best = sorted(cosines.values(), reverse=True)[:5]
        assert set(found.ids) <= set(cosines)
        assert len(found.ids) >= min(5, len(cosines))
        assert sorted(found.cosine, reverse=True)[:5] == pytest.approx(best, abs=2e-3)


@pytest.mark.skipif(not available(), reason="the extra `large` is not installed")
@pytest.mark.parametrize("read_back", [False, True])
def test_the_graph_finds_nearly_what_the_scan_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read_back: bool
) -> None:
    """Beyond the cap, where a graph answers, at least nine of ten of the nearest are found, with
    their exact cosines, also under a filter; all of them where a filter's rows are read back."""
    monkeypatch.setattr("anaphora.index.vectors.ann.INDEX_FROM", 300)
    monkeypatch.setattr("anaphora.index.memories.vectors.FEW", 10)
    if not read_back:
        monkeypatch.setattr("anaphora.index.memories.vectors.ROWS_FOR_ONE", 0)
    rng = random.Random(1)
    with memory_home(tmp_path, cap=0) as home:
        for n in range(400):
            home.put(f"{some_text(rng)} {n}", category="a" if n % 3 else "b")
        home.index.sync()
        assert home.index.settle()
        exact = MemoryIndex(
            tmp_path / "exact", home.records, home.vectors,
            (home.service.name, home.service.dimensions), cap=None, background=False,
        )  # fmt: skip
        for keep in (Filter(), parse({"category": "b"})):
            for query in ("red cat", "tea vienna train", "ERR_4711 lock"):
                wanted = replace(asked(home, query, limit=20, keep=keep), terms=())
                near, far = facts(exact, wanted), facts(home.index, wanted)
                share = 1.0 if read_back and keep.fields else 0.9
                assert len(near.keys() & far.keys()) >= share * len(near)
                both = near.keys() & far.keys()
                assert_alike({i: near[i] for i in both}, {i: far[i] for i in both})
                assert not home.index.candidates(wanted).degraded
        exact.close()


def test_forgotten_vectors_leave_the_bulk(tmp_path: Path) -> None:
    """When a memory is deleted, its vector's bytes are in no file of the ANN index any more."""
    pytest.importorskip("lancedb")
    with memory_home(tmp_path, cap=0) as home:
        secret = home.put("the launch code is qwxzzq")
        kept = home.put("red cat")
        home.index.sync()
        assert home.index.settle()
        vector = home.service.embed(["the launch code is qwxzzq"])[0]
        assert not isinstance(vector, EmbeddingError)
        # What is stored went through half precision.
        vector = vector.astype(np.float16)
        needles = {vector.astype(kind).tobytes() for kind in ("<f2", "<f4")}

        def held() -> bool:
            files = [p.read_bytes() for p in (tmp_path / "index" / "ann").rglob("*") if p.is_file()]
            return any(needle in data for needle in needles for data in files)

        assert held()
        home.erase(secret)
        home.index.sync()
        assert not held()
        assert home.index.settle()
        assert not held()
        assert kept in facts(home.index, asked(home, "cat"))


def test_without_lancedb_the_scan_goes_on_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Past the cap, without the extra, every vector is still scanned, and the result says so."""
    monkeypatch.setattr("anaphora.index.memories.vectors.available", lambda: False)
    with memory_home(tmp_path, cap=3) as home:
        for n in range(6):
            home.put(f"cat number {n}")
        found = home.index.candidates(asked(home, "cat"))
        assert len(found.columns.ids) == 6
        assert [d.part for d in found.degraded] == ["vector index"]
        assert home.index.settle()


# What is written at closing.


@pytest.fixture
def always_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """However little it is, words are written at closing."""
    monkeypatch.setattr(module, "_TAIL_AT_CLOSE", 0)


def reopened(home: MemoryHome) -> MemoryIndex:
    """An index that another program has closed, and this one opens."""
    home.index.sync()
    home.index.close()
    home.index = home.open_index()
    home.index.sync()
    return home.index


def rows_of(index: MemoryIndex) -> list[tuple[object, ...]]:
    """All that is kept of each row, row by row."""
    rows = index._state.rows
    names = sorted(rows._columns)
    return [*zip(rows.ids, *(rows.column(name).tolist() for name in names), strict=True)]


def assert_as_without(home: MemoryHome) -> None:
    """With what was written at closing an index is the same to the bit as without it."""
    with_it = reopened(home)
    home.index.close()
    shutil.rmtree(home.root / "bare", ignore_errors=True)
    home.index = home.open_index("bare")
    home.index.sync()
    assert rows_of(with_it) == rows_of(home.index)
    again = home.open_index()
    for query in ("red cat", "ERR_4711 tea"):
        wanted = asked(home, query, limit=200)
        said, expected = again.candidates(wanted), home.index.candidates(wanted)
        assert said.columns.ids == expected.columns.ids
        for name in ("cosine", "words", "created", "reinforced_at", "count", "type"):
            mine, other = getattr(said.columns, name), getattr(expected.columns, name)
            assert np.array_equal(mine, other), name
    home.index.close()
    home.index = again


@pytest.mark.promise("index.snapshot")
@pytest.mark.usefixtures("always_written")
@pytest.mark.parametrize("seed", range(4))
def test_what_was_written_at_closing_changes_no_answer(tmp_path: Path, seed: int) -> None:
    """Whatever happens to memories, truth put back to an earlier moment and gone on from there
    among it, an index answers the same with and without what was written at closing."""
    rng = random.Random(seed)
    home, saved, living = MemoryHome(tmp_path), tmp_path / "saved.db", list[str]()
    history = _History(home, rng)
    history.add("")
    for step in range(48):
        # In steps so coarse that what went on otherwise has the same times.
        home.now += timedelta(hours=rng.randint(0, 1))
        history.go_on()
        if rng.random() < 0.3:
            assert_as_without(home)
        if step % 12 in {3, 9}:
            home.close()
            if step % 12 == 3:
                shutil.copy(tmp_path / "anaphora.db", saved)
                living = [*history.living]
            else:
                shutil.copy(saved, tmp_path / "anaphora.db")
                history.living = [*living]
            home = history.home = MemoryHome(tmp_path)
    assert_as_without(home)
    assert (tmp_path / "index" / "words.sqlite").exists()
    home.close()


@pytest.mark.promise("index.snapshot")
@pytest.mark.usefixtures("always_written")
def test_only_what_changed_is_analysed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A home that was closed cleanly is opened from what was written then, and what came after."""
    monkeypatch.setattr(module, "_SURE", 1)
    made: list[str] = []
    whole = analyse_text

    def counted(text: str, *given: Any, **named: Any) -> Any:
        made.append(text)
        return whole(text, *given, **named)

    with memory_home(tmp_path) as home:
        ids = [home.put(f"cat {n}") for n in range(10)]
        reopened(home)
        with memory_home(tmp_path) as other:
            other.change(ids[4], text="a mouse")
            other.put("a dog")
        monkeypatch.setattr(module, "analyse_text", counted)
        reopened(home)
        made.clear()
        home.open_index().sync()
        assert made == ["a dog"]


@pytest.mark.promise("index.snapshot")
@pytest.mark.usefixtures("always_written")
def test_another_history_of_the_same_memories_is_noticed(tmp_path: Path) -> None:
    """A database that was put back and went on with other words for the same memory, at the same
    number and time, is not answered from the words of the first time."""
    saved = tmp_path / "saved.db"
    with memory_home(tmp_path) as home:
        ids = [home.put(f"cat {n}") for n in range(3)]
        reopened(home)
    shutil.copy(tmp_path / "anaphora.db", saved)
    for word in ("xylograph", "quincunx"):
        with memory_home(tmp_path) as home:
            home.change(ids[1], text=f"a {word}")
            home.change(ids[2], text="the same mouse")
            reopened(home)
            found = home.index.candidates(asked(home, word, limit=9))
            assert dict(zip(found.columns.ids, found.columns.words, strict=True))[ids[1]] > 0.5
        shutil.copy(saved, tmp_path / "anaphora.db")
