"""One search over everything: kinds, order, filters, snippets, projects, and silence."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from anaphora import Memory
from anaphora.errors import InvalidInput, NotFound


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """A memory with something of every kind in it."""
    folder = tmp_path_factory.mktemp("search")
    project = folder / "ferry"
    project.mkdir()
    (project / "tides.py").write_text("def next_tide(port):\n    '''When the tide turns.'''\n")
    with Memory.open(folder / "home") as opened:
        chat = opened.conversations
        chat.append("a", "user", "The ferry harbour closes at nine in the evening.", speaker="Ana")
        chat.append("a", "assistant", "Then the last crossing is the one at eight.")
        chat.append("b", "user", "My sister plays the cello in Graz.", speaker="Ben")
        opened.remember("The user prefers pnpm over npm.", tags=("tools",))
        opened.observe("We chose PostgreSQL for the harbour log.", kind="decision")
        opened.index_project(project, name="ferry")
        assert opened.ready(60)
        yield opened


@pytest.mark.promise("search.everything")
@pytest.mark.parametrize(
    ("asked", "kind", "words"),
    [
        ("when does the harbour close?", "turn", "closes at nine"),
        ("which package manager does the user prefer?", "memory", "pnpm"),
        ("which database did we choose for the log?", "note", "PostgreSQL"),
        ("where is the next tide computed?", "file", "next_tide"),
    ],
)
def test_the_best_of_every_kind_comes_first(
    memory: Memory, asked: str, kind: str, words: str
) -> None:
    """Whatever holds the answer is the first hit, of its own kind, with an id that resolves."""
    hit = memory.search(asked)[0]
    assert (hit.kind, words in hit.snippet) == (kind, True)
    if kind != "file":
        assert memory.resolve_id(hit.id[-10:] if kind != "turn" else hit.id) == hit.id


@pytest.mark.promise("search.everything")
def test_filters_leave_what_was_asked_for(memory: Memory) -> None:
    """Kinds, tags, speakers and times narrow; a time is nothing that a file has."""
    assert {hit.kind for hit in memory.search("harbour log ferry", kinds=["note"])} == {"note"}
    assert {hit.text for hit in memory.search("what is preferred", tags=["tools"])} == {
        "The user prefers pnpm over npm."
    }
    assert {hit.speaker for hit in memory.search("cello in Graz", speaker="Ben")} == {"Ben"}
    future = datetime(2099, 1, 1, tzinfo=UTC)
    assert not memory.search("when does the harbour close?", since=future)
    assert not memory.search("where is the next tide computed?", until=future, kinds=["file"])
    with pytest.raises(InvalidInput, match="kind"):
        memory.search("x", kinds=["magic"])
    with pytest.raises(NotFound, match="project"):
        memory.search("x", project="nobody's")


@pytest.mark.promise("search.silence")
def test_nothing_fits_is_said_with_what_came_nearest(memory: Memory) -> None:
    """Where no lane is likely to answer there are no hits, and the nearest can be had."""
    found = memory.search("what do volcanoes on Io spew?", kinds=["turn", "memory", "note"])
    assert not found.hits
    assert found.nearest
    assert memory.search("what do volcanoes on Io spew?", min_confidence=0)
    assert not memory.search("   ").hits


@pytest.mark.promise("search.everything")
def test_a_budget_bounds_the_snippets(memory: Memory) -> None:
    """Snippets cost no more than was allowed, but one comes in any case."""
    assert len(memory.search("harbour ferry log tide", budget=0)) == 1
    assert len(memory.search("harbour ferry log tide", top_k=2)) == 2
