"""One search over everything: kinds, order, filters, snippets, projects, and silence."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anaphora import Memory
from anaphora.errors import InvalidInput, NotFound
from anaphora.recall import question as preparing
from anaphora.recall.snippets import SNIPPET, snippet
from anaphora.values.search import KINDS


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
        memory.search("x", kinds=["magic"])  # type: ignore[list-item]
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


WORDS = st.lists(
    st.sampled_from(["the", "harbour", "closes", "at", "nine.", "tide", "über", "港口", "\n"])
)


@pytest.mark.promise("search.snippets")
@given(words=WORDS, most=st.integers(20, 300), repeat=st.integers(1, 30))
def test_a_snippet_is_of_the_text_and_marks_what_matched(
    words: list[str], most: int, repeat: int
) -> None:
    """It is no longer than it may be, stands in the text, and its marks hold the words."""
    text = " ".join(words * repeat)
    shown, places = snippet(text, ("harbour", "nine"), most)
    assert len(shown) <= most + 2
    assert shown.strip("…") in " ".join(text.split())
    for start, end in places:
        assert shown[start:end] in {"harbour", "nine"}
    assert list(places) == sorted(places)


def test_a_long_text_is_cut_where_it_matches() -> None:
    """The sentence that matters is in the snippet, however far down it stands."""
    text = f"{'Nothing to see here. ' * 100}The harbour closes at nine. {'More of it. ' * 100}"
    shown, places = snippet(text, ("harbour", "nine"))
    assert "The harbour closes at nine." in shown
    assert len(shown) <= SNIPPET + 2
    assert [shown[a:b] for a, b in places] == ["harbour", "nine"]


@pytest.mark.promise("search.everything")
def test_a_question_is_prepared_once(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many lanes a search asks, its text is cut, split and compared with the clock once."""
    asked = "which package manager did the user prefer in the ferry harbour last week?"
    calls: list[str] = []
    steps = ("typed_question", "truncated_question", "query_words", "read_times", "_drop_times")
    for name in steps:
        function = getattr(preparing, name)

        def call(*given: Any, _name: str = name, _function: Any = function) -> Any:
            calls.append(_name)
            return _function(*given)

        monkeypatch.setattr(preparing, name, call)
    assert memory.search(asked, kinds=KINDS, min_confidence=0)
    assert sorted(calls) == sorted(steps)
