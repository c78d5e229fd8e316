"""A turn that is too long to come whole: what of it comes, and that it is found at all."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest
from mcp_types import CallToolResult
from tests.mcp_client import call, connected, text_of
from tests.surfaces.rest_desk import served
from tests.tokens import token_cost

from anaphora import Memory, TurnHit, render_recall
from anaphora.testing import run_cli

LONG = 500
"""What a turn costs at most that comes whole, in tokens."""
WORDS = (
    *("tram", "bread", "salt", "garden", "harbour", "invoice", "ladder"),
    *("piano", "winter", "kettle", "boots", "paint", "roof"),
)
ADVICE = "Against the damp in the cellar put a membrane behind the boards, at 55 percent."


def talk(number: int, words: int = 12) -> str:
    said = (WORDS[(number * 7 + n * (1 + number % 5)) % len(WORDS)] for n in range(words))
    return " ".join(said).capitalize() + "."


def hour_long(middle: str, paragraphs: int = 250) -> str:
    told = [talk(n, 60) for n in range(paragraphs)]
    return "\n\n".join([*told[: 2 * paragraphs // 3], middle, *told[2 * paragraphs // 3 :]])


LONG_ANSWER = hour_long(ADVICE)


def fill(memory: Memory, long_turns: Sequence[str] = (LONG_ANSWER,)) -> None:
    for number in range(60):
        memory.conversations.append_user("talk", talk(number))
    for text in long_turns:
        memory.conversations.append_assistant("talk", text)
    for number in range(60, 90):
        memory.conversations.append_user("talk", talk(number))


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    with Memory.open(tmp_path_factory.mktemp("home"), embedder="hashing") as opened:
        fill(opened)
        opened.ready()
        yield opened


def whole(memory: Memory, hit: TurnHit) -> str:
    thread = memory.conversations.get(hit.conversation_id)
    assert thread is not None
    return thread.turns[hit.index].text


@pytest.mark.promise("recall.long_turn")
@pytest.mark.parametrize(
    "question",
    ["what was it against the damp in the cellar?", "membrane", "boards at 55 percent"],
)
def test_the_passage_that_answers_comes_with_its_place(memory: Memory, question: str) -> None:
    """Of an answer of 100 KB the right passage comes, verbatim, and the whole is found by it."""
    assert len(LONG_ANSWER) > 80_000
    found = memory.recall_conversation("talk", question)
    hit = next(hit for hit in found if hit.index == 60)
    assert ADVICE in hit.text
    assert hit.excerpt is not None
    assert hit.excerpt.length == len(LONG_ANSWER)
    assert whole(memory, hit)[hit.excerpt.start : hit.excerpt.end] == hit.text
    assert token_cost(hit.text) <= LONG
    assert sum(token_cost(one.text) for one in found) <= 2_500
    if len(found) > 1:
        assert any(one.excerpt is None for one in found)


@pytest.mark.promise("recall.long_turn")
def test_a_word_deep_in_a_long_turn_is_found(memory: Memory) -> None:
    """A word that stands nowhere else finds its turn, however much else stands in that."""
    for mode in ("hybrid", "words"):
        found = memory.recall_conversation(None, "membrane", mode=mode)
        assert found[0].index == 60, mode


@pytest.mark.promise("recall.long_turn")
def test_what_fits_comes_whole(memory: Memory) -> None:
    """With room for it the turn is all there, and is no excerpt."""
    found = memory.recall_conversation("talk", "membrane", budget=100_000)
    assert found[0].text == LONG_ANSWER
    assert found[0].excerpt is None


@pytest.mark.promise("recall.long_turn")
def test_meaning_tells_where_words_do_not(tmp_path: Path) -> None:
    """A question in other words gets the passage that is meant."""
    text = hour_long(ADVICE, paragraphs=40)
    with Memory.open(tmp_path) as memory:
        memory.conversations.append_user("talk", "How do I keep my basement dry?")
        memory.conversations.append_assistant("talk", text)
        memory.ready()
        found = memory.recall_conversation(
            "talk", "what helps with moisture downstairs?", min_confidence=0
        )
    hit = next(hit for hit in found if hit.index == 1)
    assert ADVICE in hit.text


@pytest.mark.promise("recall.long_turn")
def test_what_stands_beside_a_hit_is_short_too(tmp_path: Path) -> None:
    """A long text that was said twice is one hit, and the other comes as a passage as well."""
    with Memory.open(tmp_path, embedder="hashing") as memory:
        fill(memory, [LONG_ANSWER, LONG_ANSWER])
        hit = memory.recall_conversation("talk", "membrane against the damp")[0]
    (other,) = hit.occurrences
    assert other.excerpt is not None
    assert ADVICE in other.text
    assert token_cost(other.text) <= LONG


@pytest.mark.promise("recall.long_turn")
def test_a_passage_is_none_of_what_was_recalled(tmp_path: Path) -> None:
    """A long prompt that quotes a recalled block is represented by its own words."""
    said = datetime(2026, 3, 2, tzinfo=UTC)
    hits = [TurnHit("old", 0, "user", "The membrane is in the shed.", said, 1.0)] * 200
    prompt = f"{render_recall(hits)}\n{hour_long('The membrane goes behind the boards.')}"
    with Memory.open(tmp_path, embedder="hashing") as memory:
        fill(memory, [prompt])
        hit = memory.recall_conversation("talk", "membrane")[0]
    assert hit.quotes_recalled
    assert "shed" not in hit.text
    assert "The membrane goes behind the boards." in hit.text
    assert hit.excerpt is not None
    assert prompt[hit.excerpt.start : hit.excerpt.end] == hit.text


@pytest.mark.promise("recall.long_turn")
def test_a_search_shows_the_words_wherever_they_stand(memory: Memory) -> None:
    """The snippet of a long turn is where the words of the question are."""
    hit = memory.search("membrane against the damp", kinds=["turn"])[0]
    assert "membrane" in hit.snippet
    assert [hit.snippet[a:b] for a, b in hit.matches].count("membrane") == 1


@pytest.mark.promise("recall.long_turn")
def test_evidence_without_a_model_is_the_passage(memory: Memory) -> None:
    """A deep question without a model gets the passage, within the room for all of its evidence."""
    found = memory.deep_recall("what is against the damp in the cellar?", scope="all_sessions")
    source = next(one for one in found.sources if one.id == "talk#60")
    assert ADVICE in source.text
    assert source.excerpt is not None
    assert LONG_ANSWER[source.excerpt.start : source.excerpt.end] == source.text
    assert sum(token_cost(one.text) for one in found.sources) <= 2_500


@pytest.mark.promise("recall.long_turn")
def test_every_surface_says_which_part_it_shows(tmp_path: Path) -> None:
    """In a prompt, on the command line, over HTTP and by MCP: the passage, and where it stands."""
    home = tmp_path / "home"
    asked = "membrane against the damp"
    with served(home) as (client, memory):
        fill(memory)
        sent = client.post("/v1/conversations/recall", json={"query": asked}).json()["hits"][0]
        block = render_recall(memory.recall_conversation(None, asked))
    assert ADVICE in sent["text"]
    place = sent["excerpt"]
    assert place["length"] == len(LONG_ANSWER)
    said = f"excerpt: characters {place['start'] + 1:,} to {place['end']:,} of {len(LONG_ANSWER):,}"
    assert ADVICE in block
    assert f"{said}; all of it is turn 60 of talk" in block
    assert "…" in block

    async def by_mcp() -> None:
        async with connected(home) as session:
            got = await session.call_tool("recall_conversation", {"question": asked})
            assert isinstance(got, CallToolResult)
            assert ADVICE in text_of(got)
            assert said in text_of(got)
            rows = await call(session, "recall_conversation", question=asked)
            assert rows["data"][0]["excerpt"] == place

    anyio.run(by_mcp)
    environment = {
        "ANAPHORA_EMBEDDER": "hashing",
        "ANAPHORA_READER": "off",
        "ANAPHORA_HOME": str(home),
    }
    words = ["conversation", "recall", asked]
    shown = run_cli(*words, env=environment)
    assert said in " ".join(shown.output.split())
    told = json.loads(run_cli(*words, "--json", env=environment).stdout)
    assert told["hits"][0]["excerpt"] == place
