"""What filters let through comes, however far from the question; without them silence stays."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from tests.surfaces.rest_desk import served

from anaphora import Memory, NewMemory, RecallMode

FAR = "zebra migration in Kenya"
WORDS = ("tea", "coffee", "rust", "vienna", "walnut", "zebra", "Kenya", "roof")
MODES: tuple[RecallMode, ...] = ("hybrid", "words", "vector")


@pytest.fixture
def memory(tmp_path: Path) -> Any:
    with Memory.open(tmp_path / "home", embedder="hashing") as opened:
        yield opened


@pytest.mark.promise("recall.every")
@settings(deadline=None, max_examples=30)
@given(
    texts=some.lists(
        some.lists(some.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join),
        unique=True,
        max_size=8,
    ),
    tagged=some.sets(some.integers(0, 7)),
    query=some.sampled_from([FAR, "tea in vienna", "nothing of this at all"]),
    mode=some.sampled_from(MODES),
    ready=some.booleans(),
)
def test_recall_with_a_filter_gives_what_a_listing_gives(
    tmp_path_factory: pytest.TempPathFactory,
    texts: list[str],
    tagged: set[int],
    query: str,
    mode: RecallMode,
    ready: bool,
) -> None:
    """In every mode, with vectors or while they are lacking, best first and none lost."""
    home = tmp_path_factory.mktemp("home")
    with Memory.open(home, embedder="hashing", warm=False) as memory:
        if ready:
            memory.ready(60)
        memory.remember_many(
            NewMemory(text, tags=("in",) if place in tagged else ())
            for place, text in enumerate(texts)
        )
        wanted = {"tags": {"contains": "in"}}
        found = memory.recall(query, top_k=20, filters=wanted, mode=mode)
        shown = {hit.id for hit in found} | {one for hit in found for one in hit.same_as}
        assert shown == {record.id for record in memory.list(wanted)}
        scores = [hit.score for hit in found]
        assert scores == sorted(scores, reverse=True)
        # The plain question is as silent as before about what has nothing in common with it.
        assert mode == "vector" or all(hit.similarity > 0 for hit in memory.recall(query, top_k=20))


@pytest.mark.promise("recall.every")
def test_a_filter_that_leaves_one_memory_gets_it(memory: Memory) -> None:
    """The one memory of a category comes for a question that it shares nothing with."""
    memory.remember("Ada drinks tea", category="drinks")
    memory.remember("Bob likes roofs", category="roofs")
    assert not memory.recall(FAR).hits
    (hit,) = memory.recall(FAR, filters={"category": "drinks"})
    assert (hit.text, hit.similarity, hit.score) == ("Ada drinks tea", 0.0, 0.0)
    assert not memory.recall(FAR, filters={"category": "drinks"}, min_score=0.1).hits
    assert not memory.recall(FAR, filters={}).hits


@pytest.mark.promise("recall.every")
def test_a_least_score_of_nothing_shows_the_nearest(memory: Memory) -> None:
    """`min_score=0` and below leave nothing out; the newest of what is equally far come first."""
    names = ["Ada", "Bob", "Eve", "Mara", "Rafi"]
    for name in names:
        memory.remember(f"{name} drinks tea")
    assert not memory.recall(FAR, top_k=50).hits
    assert not memory.recall(FAR, min_score=1e-9, top_k=50).hits
    assert len(memory.recall(FAR, min_score=-1.0, top_k=50)) == len(names)
    newest = memory.recall(FAR, min_score=0, top_k=4)
    assert [hit.text.split()[0] for hit in newest] == names[:-5:-1]


@pytest.mark.promise("recall.every")
def test_rest_and_the_command_line_say_the_same(tmp_path: Path) -> None:
    """Over HTTP and in a shell a filter, or a least score of 0, gets what there is."""
    home = tmp_path / "home"
    with served(home) as (client, memory):
        memory.remember("Ada drinks tea", category="drinks")
        wanted: dict[str, Any]
        for wanted in ({"filters": {"category": "drinks"}}, {"min_score": 0}):
            found = client.post("/v1/recall", json={"query": FAR, **wanted}).json()
            assert [hit["text"] for hit in found["hits"]] == ["Ada drinks tea"]
        assert client.post("/v1/recall", json={"query": FAR}).json()["hits"] == []
    for words in (["--filters", '{"category": "drinks"}'], ["--min-score", "0"], []):
        words.append("--json")
        done = subprocess.run(
            [
                Path(sys.executable).parent / "anaphora",
                "--home",
                home,
                "memory",
                "recall",
                FAR,
                *words,
            ],
            capture_output=True,
            text=True,
            check=True,
            env={
                "ANAPHORA_EMBEDDER": "hashing",
                "ANAPHORA_READER": "off",
                "PATH": "",
                "HOME": str(tmp_path),
            },
        )
        assert len(json.loads(done.stdout)["hits"]) == (len(words) > 1)
