"""Recalling memories: modes, times, clusters, filters, what was rejected, what was lacking."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.memory_home import NOW, MemoryHome, memory_home

from anaphora.errors import FilterError, InvalidInput
from anaphora.index.vectors.ann import available
from anaphora.recall.memories import MemoryRecall
from anaphora.settings import EXACT_CAP
from anaphora.store.records.rows import RecordLink

pytestmark = pytest.mark.internal

HALF_LIFE = {"episodic": 14.0, "semantic": 90.0, "procedural": 180.0}
WORDS = [
    "cat",
    "dog",
    "tea",
    "rust",
    "vienna",
    "lock",
    "budget",
    "invoice",
    "red",
    "blue",
    "paris",
    "train",
    "coffee",
]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[MemoryHome]:
    with memory_home(tmp_path) as home:
        yield home


def cosine(home: MemoryHome, query: str, text: str) -> float:
    (parts,) = home.service.embed([text])
    assert isinstance(parts, np.ndarray)
    return float((parts.astype("<f2").astype(np.float32) @ home.service.query(query)).max())


@pytest.mark.promise("recall.formula")
@pytest.mark.parametrize(
    "cap",
    [
        EXACT_CAP,
        pytest.param(0, marks=pytest.mark.skipif(not available(), reason="no `large`")),
    ],
)
@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.integers(0, 10_000))
def test_vector_mode_orders_by_the_formula(
    tmp_path_factory: pytest.TempPathFactory, cap: int, seed: int
) -> None:
    """For random memories, types, counts and dates, mode="vector" gives the seed's scores over
    8 × top_k candidates by vector, in their order."""
    rng = random.Random(seed)
    with memory_home(tmp_path_factory.mktemp("formula"), cap) as home:
        scores: dict[str, tuple[float, float]] = {}
        query = " ".join(rng.sample(WORDS, 3))
        for _ in range(rng.randint(1, 40)):
            kind = rng.choice(list(HALF_LIFE))
            text = " ".join(rng.choices(WORDS, k=rng.randint(1, 6)))
            days, count = rng.uniform(-5, 700), rng.choice([0, 0, 1, 3, 40])
            at = NOW - timedelta(days=days)
            one = home.put(text, type=kind, reinforce_count=count, last_reinforced=at)
            near = max(0.0, cosine(home, query, text))
            decay = math.exp(-math.log(2) / HALF_LIFE[kind] * max(0.0, days))
            scores[one] = (near, near * decay * (1 + math.log(1 + count)))
        home.index.sync()
        home.index.settle()
        top_k = rng.randint(1, 5)
        near = sorted((n for n, _ in scores.values()), reverse=True)[: 8 * top_k][-1]
        pool = {i: s for i, (n, s) in scores.items() if n >= near - 1e-6}
        expected = sorted(pool.values(), reverse=True)[:top_k]
        hits = home.lane().recall(query, top_k=top_k, mode="vector")
        assert [hit.score for hit in hits] == pytest.approx(expected, abs=1e-3)
        for hit in hits:
            assert hit.score == pytest.approx(scores[hit.id][1], abs=1e-3)


@pytest.mark.parametrize("mode", ["hybrid", "vector"])
def test_the_seeds_example(home: MemoryHome, mode: Any) -> None:
    """An old fact that was restated often outranks a fresh one-off of higher raw similarity."""
    old = home.put("prefers vitest over jest always", days_ago=60, reinforce_count=12)
    fresh = home.put("prefers vitest over jest")
    hits = home.lane().recall("prefers vitest over jest", mode=mode)
    assert [hit.id for hit in hits] == [old, fresh]
    assert hits[0].similarity < hits[1].similarity


@pytest.mark.promise("recall.exact_first")
def test_an_exact_answer_said_once_stays_first(home: MemoryHome) -> None:
    """Memories that resemble a question and were restated often stand behind the one that answers
    it word for word; the seed's formula puts them before it."""
    exact = home.put("the deploy key lives in vault seven")
    for name in ("north", "south", "west"):
        home.put(f"the deploy key lives in vault {name} since the move", reinforce_count=3)
    asked = "the deploy key lives in vault seven"
    hits = home.lane().recall(asked, top_k=4)
    assert hits[0].id == exact
    assert hits[0].score > hits[1].score > hits[1].similarity > 0.7
    assert home.lane().recall(asked, top_k=4, mode="vector")[0].id != exact


def test_an_old_exact_answer_is_found_among_fresh_noise(home: MemoryHome) -> None:
    """A year-old memory with the error code comes first, however much was said since."""
    exact = home.put("ERR_4711 means that the lock is stale", days_ago=365)
    for n in range(40):
        home.put(f"the lock on door {n} is red", reinforce_count=n)
    assert home.lane().recall("ERR_4711 lock")[0].id == exact


def test_what_is_past_stays_out(home: MemoryHome) -> None:
    """Superseded, expired and softly forgotten memories are not recalled; explain names why."""
    cat = "red cat"
    kept = home.put(cat)
    gone = {
        home.put(cat, valid_to=home.now, superseded_by=kept): "superseded",
        home.put(cat, expires_at=home.now): "expired",
        home.put(cat): "forgotten",
    }
    home.hide(list(gone)[-1])
    found = home.lane().recall("red cat", explain=True)
    assert [hit.id for hit in found] == [kept]
    assert {r.hit.id: r.reason for r in found.rejected} == gone


def test_the_same_fact_is_shown_once(home: MemoryHome) -> None:
    """Of memories that are linked as the same the best is shown and names the others; related
    ones are shown each, and flagged."""
    a = home.put("works in vienna", reinforce_count=3)
    b = home.put("works in vienna now")
    c = home.put("works not in vienna")
    with home.records.change() as work:
        pair = sorted((a, b))
        work.join([RecordLink(pair[0], pair[1], "same", 0.95)])
        pair = sorted((a, c))
        work.join([RecordLink(pair[0], pair[1], "related", 0.97)])
    found = home.lane().recall("works in vienna", explain=True)
    assert [hit.id for hit in found] == [a, c]
    assert found[0].same_as == (b,)
    assert found[0].related == (c,)
    assert found[1].related == (a,)
    assert [(r.hit.id, r.reason) for r in found.rejected] == [(b, f"same_as {a}")]
    assert {hit.id for hit in home.lane().recall("works in vienna", mode="vector")} == {a, b, c}


def test_a_memory_that_came_back_is_without_its_links(home: MemoryHome) -> None:
    """Linked ones are told the closest first, whenever the link was written; what was deleted and
    written again under its id, between two questions, has none."""
    ids = sorted(home.put(text) for text in ("red cat", "red cat naps", "red cat sits"))

    def join(first: str, second: str, strength: float) -> None:
        with home.records.change() as work:
            work.join([RecordLink(min(first, second), max(first, second), "related", strength)])

    def related(lane: MemoryRecall) -> dict[str, tuple[str, ...]]:
        return {hit.id: hit.related for hit in lane.recall("red cat")}

    lane = home.lane()
    join(ids[0], ids[1], 0.95)
    assert related(lane) == {ids[0]: (ids[1],), ids[1]: (ids[0],), ids[2]: ()}
    join(ids[0], ids[2], 0.97)
    assert related(lane) == {ids[0]: (ids[2], ids[1]), ids[1]: (ids[0],), ids[2]: (ids[0],)}
    home.erase(ids[2])
    home.put("red cat sits", id=ids[2])
    assert related(lane) == {ids[0]: (ids[1],), ids[1]: (ids[0],), ids[2]: ()}
    assert related(lane) == related(home.lane(home.open_index()))


def test_a_mended_memory_has_its_links_again(home: MemoryHome) -> None:
    """An end that could not be read when the index was opened is linked once it can be."""
    first, second = sorted(home.put(text) for text in ("red cat", "red cat naps"))
    with home.records.change() as work:
        work.join([RecordLink(first, second, "related", 0.95)])
    damage = "UPDATE record SET created_at = 'x' WHERE record_id = ?"
    with home.truth.write("default") as write:
        write.connection.execute(damage, (second,))
    lane = home.lane()
    assert [(hit.id, hit.related) for hit in lane.recall("red cat")] == [(first, ())]
    home.change(second, tags=("pets",))
    related = {hit.id: hit.related for hit in lane.recall("red cat")}
    assert related == {first: (second,), second: (first,)}


def test_min_score_and_top_k(home: MemoryHome) -> None:
    """Hits below `min_score` stay out, at most `top_k` come, and explain tells the two apart."""
    for n in range(6):
        home.put(f"red cat {'very ' * n}old", days_ago=n)
    lane = home.lane()
    every = lane.recall("red cat", top_k=10)
    assert [h.score for h in every] == sorted((h.score for h in every), reverse=True)
    least = every[3].score
    found = lane.recall("red cat", top_k=2, min_score=least, explain=True)
    assert list(found) == list(every[:2])
    assert sorted(r.reason for r in found.rejected) == [
        "below_min_score",
        "below_min_score",
        "beyond_top_k",
        "beyond_top_k",
    ]
    assert not lane.recall("red cat", min_score=1e9)


@pytest.mark.promise("recall.filters")
def test_hybrid_under_a_filter(home: MemoryHome) -> None:
    """A filtered answer is the unfiltered one without what the filter refuses."""
    rng = random.Random(5)
    for n in range(40):
        text = " ".join(rng.choices(WORDS, k=4))
        home.put(text, category=rng.choice(["dev", "home"]), days_ago=n, tags=("t", str(n % 3)))
    lane = home.lane()
    filters = {"AND": [{"category": "dev"}, {"tags": {"contains": "1"}}]}
    for query in ("red cat", "tea vienna lock"):
        every = lane.recall(query, top_k=40, min_score=0)
        some = lane.recall(query, top_k=40, filters=filters, explain=True)
        right = [h for h in every if h.category == "dev" and "1" in h.tags]
        # What holds now is told among what the filter lets through.
        assert {h.id for h in some} == {h.id for h in right}
        assert lane.recall(query, top_k=1, filters=filters)[0] == some[0]
        refused = {r.hit.id for r in some.rejected if r.reason == "filtered"}
        assert refused
        assert refused.isdisjoint(h.id for h in right)


def test_ties_stand_newest_first(home: MemoryHome) -> None:
    """Equal memories stand newest first, in memory as on disk, however they were written."""
    at = home.now - timedelta(days=1)
    ids = [
        home.put("red cat", created_at=at + timedelta(seconds=n % 4), last_reinforced=at)
        for n in range(12)
    ]
    wanted = sorted(ids, key=lambda i: (-home.records.get(i).created_at.timestamp(), i))
    lane = home.lane()
    assert [h.id for h in lane.recall("red cat", top_k=12)] == wanted
    assert [h.id for h in lane.recall("red cat", top_k=4)] == wanted[:4]
    home.index.settle()
    assert [h.id for h in lane.recall("red cat", top_k=12, mode="words")] == wanted
    assert [h.id for h in lane.recall("red cat", top_k=4, mode="vector")] == wanted[:4]


def test_bad_questions(home: MemoryHome) -> None:
    """What cannot be answered raises and names the argument; a blank question finds nothing."""
    lane = home.lane()
    bad: list[dict[str, Any]] = [
        {"top_k": 0},
        {"as_of": NOW.replace(tzinfo=None)},
    ]
    for given_ in bad:
        with pytest.raises(InvalidInput) as caught:
            lane.recall("cat", **given_)
        assert caught.value.what == next(iter(given_))
    with pytest.raises(FilterError):
        lane.recall("cat", filters={"colour": "red"})
    blank = lane.recall("  ")
    assert (len(blank), [d.part for d in blank.degraded]) == (0, ["query"])
