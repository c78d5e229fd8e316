"""The LangGraph store does what LangGraph's own in-memory store does, and keeps it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from anaphora import Memory
from anaphora.adapters.langgraph import CATEGORY, AnaphoraStore
from anaphora.errors import FilterError, InvalidInput
from anaphora.testing import WordHashingEmbedder

EMBEDDER = WordHashingEmbedder()


def embed(texts: Sequence[str]) -> list[list[float]]:
    return [found[0].tolist() for found in EMBEDDER.embed(list(texts))]


def theirs(fields: list[str] | None = None) -> InMemoryStore:
    return InMemoryStore(index=IndexConfig(dims=384, embed=embed, fields=fields))


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "home", embedder="hashing") as opened:
        opened.ready()
        yield opened


@pytest.fixture(params=["ours", "theirs"])
def store(request: pytest.FixtureRequest, memory: Memory) -> BaseStore:
    """Every test of the contract runs on both."""
    if request.param == "theirs":
        return theirs(["text"])
    return AnaphoraStore(memory, index={"fields": ["text"]})


PEOPLE = {
    "ana": {"text": "Ana likes green tea and long walks", "age": 31, "tags": ["tea", "walks"]},
    "bo": {"text": "Bo plays the violin in an orchestra", "age": 45, "home": {"city": "Bern"}},
    "cy": {"text": "Cy repairs old bicycles at night", "age": 28, "home": {"city": "Graz"}},
}


def fill(store: BaseStore) -> None:
    for key, value in PEOPLE.items():
        store.put(("people", "friends"), key, value)
    store.put(("people", "colleagues"), "dee", {"text": "Dee brews coffee", "age": 31})
    store.put(("places",), "bern", {"text": "Bern has bears", "age": 832})


def keys(items: list[Any]) -> list[str]:
    return [item.key for item in items]


@pytest.mark.promise("adapters.langgraph")
def test_what_was_put_is_got(store: BaseStore) -> None:
    """`get` gives the value, key and namespace that were put, None for what is not there."""
    fill(store)
    item = store.get(("people", "friends"), "bo")
    assert item is not None
    assert (item.value, item.key, item.namespace) == (PEOPLE["bo"], "bo", ("people", "friends"))
    assert item.created_at.tzinfo is not None
    assert store.get(("people",), "bo") is None
    assert store.get(("people", "friends"), "nobody") is None


@pytest.mark.promise("adapters.langgraph")
def test_a_put_replaces_and_a_delete_removes(store: BaseStore) -> None:
    """One key has one value, the last; a deleted key has none, and can be put again."""
    for text in ("first", "second", "first"):
        store.put(("a",), "k", {"text": text})
    assert keys(store.search(("a",))) == ["k"]
    found = store.get(("a",), "k")
    assert found is not None
    assert found.value == {"text": "first"}
    store.delete(("a",), "k")
    store.delete(("a",), "never there")
    assert store.get(("a",), "k") is None
    assert store.search(("a",), query="first") == []
    store.put(("a",), "k", {"text": "third"})
    assert store.search(("a",))[0].value == {"text": "third"}


@pytest.mark.promise("adapters.langgraph")
@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ((), {"ana", "bo", "cy", "dee", "bern"}),
        (("people",), {"ana", "bo", "cy", "dee"}),
        (("people", "friends"), {"ana", "bo", "cy"}),
        (("peop",), set()),
        (("people", "friends", "ana"), set()),
    ],
)
def test_a_search_stays_under_its_prefix(
    store: BaseStore, prefix: tuple[str, ...], expected: set[str]
) -> None:
    """A prefix is a number of whole labels, with a query and without."""
    fill(store)
    assert set(keys(store.search(prefix))) == expected
    assert set(keys(store.search(prefix, query="tea"))) == expected


@pytest.mark.promise("adapters.langgraph")
@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"age": 31}, {"ana", "dee"}),
        ({"age": {"$eq": 45}}, {"bo"}),
        ({"age": {"$ne": 31}}, {"bo", "cy"}),
        ({"age": {"$gt": 28, "$lte": 45}}, {"ana", "bo", "dee"}),
        ({"age": {"$gte": 28, "$lt": 31}}, {"cy"}),
        ({"home": {"city": "Bern"}}, {"bo"}),
        ({"tags": ["tea", "walks"]}, {"ana"}),
        ({"tags": ["tea"]}, set()),
        ({"age": 31, "text": "Dee brews coffee"}, {"dee"}),
        ({"unknown": None}, {"ana", "bo", "cy", "dee"}),
    ],
)
def test_filters_keep_what_they_should(
    store: BaseStore, wanted: dict[str, Any], expected: set[str]
) -> None:
    """Filters mean what they mean in LangGraph, before anything is cut."""
    fill(store)
    assert set(keys(store.search(("people",), filter=wanted))) == expected
    assert set(keys(store.search(("people",), filter=wanted, query="music"))) == expected
    few = keys(store.search(("people",), filter=wanted, query="music", limit=1))
    assert len(few) == min(1, len(expected))
    assert set(few) <= expected


@pytest.mark.promise("adapters.langgraph")
def test_a_query_ranks_by_meaning(store: BaseStore) -> None:
    """The closest item comes first, with a score; pages do not overlap."""
    fill(store)
    hits = store.search((), query="who plays the violin", limit=5)
    assert hits[0].key == "bo"
    assert hits[0].score is not None
    assert hits[0].score > 0.3
    scores = [hit.score for hit in hits if hit.score is not None]
    assert scores == sorted(scores, reverse=True)
    pages = [store.search((), query="violin", limit=2, offset=n) for n in (0, 2, 4)]
    assert sorted(key for page in pages for key in keys(page)) == ["ana", "bern", "bo", "cy", "dee"]


@pytest.mark.promise("adapters.langgraph")
def test_pages_without_a_query(store: BaseStore) -> None:
    """`limit` and `offset` cut what is there."""
    fill(store)
    pages = [store.search((), limit=2, offset=n) for n in (0, 2, 4, 6)]
    assert [len(page) for page in pages] == [2, 2, 1, 0]
    assert len({item.key for page in pages for item in page}) == 5
    assert store.search((), limit=0) == []
    assert store.search((), query="tea", limit=0) == []


@pytest.mark.promise("adapters.langgraph")
def test_fields_decide_what_is_searched(store: BaseStore) -> None:
    """`index` names the fields of one item; with False it is only got, never scored."""
    store.put(("n",), "title", {"text": "nothing", "title": "gardening"}, index=["title"])
    store.put(
        ("n",), "list", {"parts": [{"c": "astronomy"}, {"c": "cooking"}]}, index=["parts[*].c"]
    )
    store.put(("n",), "hidden", {"text": "gardening"}, index=False)
    store.put(("n",), "other", {"text": "sailing"})
    assert keys(store.search(("n",), query="gardening"))[0] == "title"
    assert keys(store.search(("n",), query="cooking"))[0] == "list"
    hidden = [hit for hit in store.search(("n",), query="gardening") if hit.key == "hidden"]
    assert [hit.score for hit in hidden] == [None]
    found = store.get(("n",), "hidden")
    assert found is not None
    assert found.value == {"text": "gardening"}


@pytest.mark.promise("adapters.langgraph_fields")
@pytest.mark.parametrize("whose", ["ours", "theirs"])
def test_each_field_is_searched_for_itself(memory: Memory, whose: str) -> None:
    """An item is as close as its closest field, whatever its other fields say."""
    names = ["a", "b", "c"]
    store: BaseStore = (
        AnaphoraStore(memory, index={"fields": names}) if whose == "ours" else theirs(names)
    )
    store.put(("n",), "alone", {"a": "the violin"})
    store.put(("n",), "among", {"a": "long walks by the river", "b": "the violin", "c": "tea"})
    store.put(("n",), "joined", {"a": "long walks by the river, the violin, tea"})
    store.put(("n",), "listed", {"x": [{"t": "tea"}, {"t": "the violin"}]}, index=["x[*].t"])
    scores = {hit.key: hit.score for hit in store.search(("n",), query="the violin")}
    alone = scores["alone"]
    assert alone is not None
    assert scores["among"] == pytest.approx(alone, abs=1e-4)
    assert scores["listed"] == pytest.approx(alone, abs=1e-4)
    assert scores["joined"] is not None
    assert scores["joined"] < alone - 0.05


@pytest.mark.promise("adapters.langgraph")
@pytest.mark.parametrize(
    "listing",
    [
        {},
        {"prefix": ("people",)},
        {"suffix": ("friends",)},
        {"prefix": ("*", "friends")},
        {"max_depth": 1},
        {"prefix": ("people",), "max_depth": 1},
        {"limit": 1, "offset": 1},
        {"prefix": ("people", "friends", "deep")},
    ],
)
def test_namespaces_are_listed(memory: Memory, listing: dict[str, Any]) -> None:
    """Both stores list the same namespaces in the same order."""
    ours, other = AnaphoraStore(memory), theirs()
    fill(ours)
    fill(other)
    assert ours.list_namespaces(**listing) == other.list_namespaces(**listing)


@pytest.mark.promise("adapters.langgraph")
def test_a_batch_reads_before_it_writes(store: BaseStore) -> None:
    """Results stand in the order of the operations; of two writes to a key the last counts."""
    store.put(("a",), "k", {"text": "old"})
    ops: list[Op] = [
        PutOp(("a",), "k", {"text": "new"}),
        GetOp(("a",), "k"),
        PutOp(("a",), "k", {"text": "newest"}),
        SearchOp(("a",)),
        ListNamespacesOp((MatchCondition("prefix", ("a",)),)),
        PutOp(("a",), "gone", {"text": "x"}),
        PutOp(("a",), "gone", None),
    ]
    results = store.batch(ops)
    assert [result is None for result in results] == [True, False, True, False, False, True, True]
    got: Any = results[1]
    assert got.value == {"text": "old"}
    assert results[4] == [("a",)]
    assert keys(store.search(("a",))) == ["k"]
    newest = store.get(("a",), "k")
    assert newest is not None
    assert newest.value == {"text": "newest"}


@pytest.mark.promise("adapters.langgraph")
@pytest.mark.enable_socket
def test_the_same_awaited(store: BaseStore) -> None:
    """`abatch` and the asynchronous calls do what the others do."""

    async def scenario() -> None:
        await store.aput(("a",), "k", {"text": "tea"})
        await store.aput(("a",), "l", {"text": "coffee"})
        found = await store.aget(("a",), "k")
        assert found is not None
        assert found.value == {"text": "tea"}
        assert keys(await store.asearch(("a",), query="coffee"))[0] == "l"
        await store.adelete(("a",), "k")
        assert keys(await store.asearch(("a",))) == ["l"]
        assert await store.alist_namespaces() == [("a",)]

    asyncio.run(scenario())


Values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
LABELS = st.sampled_from(["a", 'b"c', 'a"', "ä", "*", " "])
KEYS = st.sampled_from(["k", "", '","', "a"])


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    puts=st.lists(
        st.tuples(
            st.lists(LABELS, min_size=1, max_size=3).map(tuple),
            KEYS,
            st.none() | st.dictionaries(st.sampled_from(["x", "y"]), Values, max_size=2),
        ),
        max_size=8,
    )
)
def test_any_history_of_puts_gives_the_same_items(
    tmp_path_factory: pytest.TempPathFactory, puts: list[tuple[tuple[str, ...], str, Any]]
) -> None:
    """Whatever is put and deleted, both stores hold the same items under every prefix."""
    home = tmp_path_factory.mktemp("home")
    with Memory.open(home, embedder="hashing", warm=False) as memory:
        ours, other = AnaphoraStore(memory), theirs()
        for namespace, key, value in puts:
            for one in (ours, other):
                one.batch([PutOp(namespace, key, value)])
        for prefix in {(), *(namespace[:n] for namespace, _, _ in puts for n in (1, 2, 3))}:
            mine, expected = (
                {(i.namespace, i.key): i.value for i in one.search(prefix, limit=50)}
                for one in (ours, other)
            )
            assert mine == expected


@pytest.mark.promise("adapters.langgraph")
def test_items_survive_and_stay_apart(tmp_path: Path) -> None:
    """Another process finds the items; memories that are no items are neither shown nor touched."""
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        memory.remember("Bo plays the violin", path="bo")
        fill(AnaphoraStore(memory))
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        store = AnaphoraStore(memory)
        assert len(store.search(())) == 5
        assert "bo" in keys(store.search((), query="violin", limit=1))
        for item in store.search(()):
            store.delete(item.namespace, item.key)
        assert [record.path for record in memory.list()] == ["bo"]


@pytest.mark.promise("adapters.langgraph")
def test_values_come_back_untouched(memory: Memory) -> None:
    """Neither secrets nor restatements are looked at: what was put comes back, as often as put."""
    store = AnaphoraStore(memory)
    value = {"text": "key AKIAIOSFODNN7EXAMPLE", "n": 1.5, "nul": "a\0b", "lone": "\ud800"}
    store.put(("s",), "one", value)
    store.put(("s",), "two", value)
    assert [item.value for item in store.search(("s",))] == [value, value]
    assert {record.category for record in memory.list()} == {CATEGORY}


@pytest.mark.promise("adapters.langgraph")
def test_deleting_takes_every_version(memory: Memory, tmp_path: Path) -> None:
    """After a delete no version of the value is left in the files of the home."""
    store = AnaphoraStore(memory)
    for n in range(3):
        store.put(("s",), "k", {"text": f"quetzalcoatl number {n}"})
    store.delete(("s",), "k")
    files = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert not [path for path in files if b"quetzalcoatl" in path.read_bytes()]


class Later:
    def __init__(self) -> None:
        self.now = datetime(2026, 5, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.mark.promise("adapters.langgraph_ttl")
def test_items_live_as_long_as_they_are_read(tmp_path: Path) -> None:
    """An item is gone when its minutes are over, unless it was read; a sweep removes it."""
    clock = Later()
    with Memory.open(tmp_path / "home", embedder="hashing", clock=clock) as memory:
        store = AnaphoraStore(memory, ttl={"default_ttl": 10, "refresh_on_read": True}, clock=clock)
        for key in ("read", "searched", "unread", "peeked"):
            store.put(("t",), key, {"text": key})
        store.put(("t",), "lasting", {"text": "lasting"}, ttl=None)
        clock.now += timedelta(minutes=8)
        assert store.get(("t",), "read") is not None
        assert store.get(("t",), "peeked", refresh_ttl=False) is not None
        assert keys(store.search(("t",), filter={"text": "searched"})) == ["searched"]
        clock.now += timedelta(minutes=8)
        assert sorted(keys(store.search(("t",), refresh_ttl=False))) == [
            "lasting",
            "read",
            "searched",
        ]
        assert store.get(("t",), "unread") is None
        assert "unread" not in keys(store.search(("t",), query="unread", refresh_ttl=False))
        assert store.sweep_ttl() == 2
        clock.now += timedelta(minutes=11)
        assert keys(store.search(("t",))) == ["lasting"]


@pytest.mark.promise("adapters.langgraph")
def test_what_cannot_be_kept_says_so(memory: Memory) -> None:
    """A value that is no JSON gives a typed error; nothing is written."""
    store = AnaphoraStore(memory)
    with pytest.raises(InvalidInput):
        store.batch([PutOp(("a",), "k", {"x": 1}), PutOp(("a",), "l", {"x": object()})])
    assert store.search(("a",)) == []


@pytest.mark.promise("adapters.langgraph")
@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"n": {"$gt": 9}}, {"10", "huge"}),
        ({"n": {"$gt": "9"}}, {"10", "huge"}),
        ({"n": {"$lt": 9.5}}, {"2", "9"}),
        ({"n": {"$gte": 2**70}}, {"huge"}),
        ({"n": {"$gt": 2**70}}, set()),
        ({"n": {"$gte": "2026-05-02"}}, {"day"}),
        ({"n": {"$lt": "2026-05-02"}}, set()),
        ({"n": {"$ne": 2}}, {"9", "10", "huge", "day", "none", "list", "without"}),
        ({"n": None}, {"none", "without"}),
        ({"n": {"$eq": [1, 2]}}, {"list"}),
        ({"n": [1, {"$gt": 1}]}, {"list"}),
        ({"deep": {"a": {"$gte": 9, "$lt": 10}}}, {"9"}),
    ],
)
def test_values_of_other_kinds_fail_a_comparison(
    memory: Memory, wanted: dict[str, Any], expected: set[str]
) -> None:
    """Numbers are compared with numbers and texts with texts; the rest is no match and no error."""
    store = AnaphoraStore(memory)
    values = {"2": 2, "9": 9, "10": 10, "huge": 2**70, "day": "2026-05-03", "none": None}
    for key, value in {**values, "list": [1, 2]}.items():
        store.put(("a",), key, {"n": value, "deep": {"a": value}})
    store.put(("a",), "without", {"m": 1})
    assert set(keys(store.search(("a",), filter=wanted, limit=50))) == expected


@pytest.mark.promise("adapters.langgraph")
@pytest.mark.parametrize("filled", [True, False])
@pytest.mark.parametrize(
    "wanted",
    [
        {"x": {"$near": 1}},
        {"x": {"$in": [1]}},
        {"x": {"$exists": True}},
        {"x": {"$gt": 1, "y": 2}},
        {"x": {"$gt": None}},
        {"x": {"y": [{"$lte": []}]}},
        {"$and": [{"x": 1}]},
        [{"x": 1}],
    ],
)
def test_a_filter_that_is_none_is_refused(memory: Memory, filled: bool, wanted: Any) -> None:
    """Also where no item would be compared: otherwise it would be silence."""
    store = AnaphoraStore(memory)
    if filled:
        store.put(("a",), "k", {"z": 1})
    with pytest.raises(FilterError):
        store.search(("a",), filter=wanted)


@pytest.mark.promise("adapters.langgraph")
@pytest.mark.parametrize("name", ["limit", "offset", "max_depth"])
@pytest.mark.parametrize("count", [-1, True, 1.5, "2"])
def test_a_count_that_is_none_is_refused(memory: Memory, name: str, count: Any) -> None:
    """A list cut by a negative count would end too early without a word."""
    store = AnaphoraStore(memory)
    fill(store)
    with pytest.raises(InvalidInput, match=f"^{name}: "):
        store.list_namespaces(**{name: count})
    if name == "max_depth":
        return
    for query in (None, "tea"):
        with pytest.raises(InvalidInput, match=f"^{name}: "):
            store.search((), query=query, **{name: count})
