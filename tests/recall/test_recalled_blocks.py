"""Recalled text in a prompt that is stored: it is delimited, marked, and found no second time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.recall.test_conversation_recall import hit

from anaphora import Memory, render_recall, strip_recalled

BEGIN, END = "<recalled-memory>", "</recalled-memory>"
PORT = "The staging database listens on port 5433."
ASKED = "which port is staging on?"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "home") as opened:
        assert opened.ready(60)
        yield opened


@pytest.mark.promise("recall.own_echo")
def test_a_loop_that_stores_its_prompts_does_not_feed_itself(memory: Memory) -> None:
    """Prompts with recalled blocks in them, stored ten times, leave recall as it was."""
    chat = memory.conversations
    chat.append_user("chat", PORT)
    chat.append_user("chat", "Lunch is at noon.")
    before = memory.recall_conversation("chat", ASKED)
    for number in range(10):
        block = render_recall(memory.recall_conversation("chat", ASKED))
        chat.append_user("chat", f"{block}\n\nTell me about day {number} of the holidays.")
        chat.append_user("other", block)
    after = memory.recall_conversation(None, ASKED, top_k=30, budget=100_000)
    assert (after[0].text, after[0].index) == (before[0].text, before[0].index)
    assert after[0].score == pytest.approx(before[0].score, abs=0.05)
    assert [one.text for one in after if PORT in strip_recalled(one.text)] == [PORT]
    quoting = memory.recall_conversation("chat", "the holidays", top_k=30, budget=100_000)
    assert {one.quotes_recalled for one in quoting if "holidays" in one.text} == {True}
    assert not after[0].quotes_recalled
    # What is a block and nothing else says nothing, and stays where it is, word for word.
    assert memory.recall_conversation("other", ASKED, min_confidence=0).hits == ()
    thread = chat.get("other")
    assert thread is not None
    assert thread.turns[0].text.startswith(BEGIN)


@pytest.mark.promise("recall.own_echo")
def test_a_quoting_turn_is_rendered_without_its_quotation(memory: Memory) -> None:
    """A block in a block: the words of the turn come, what it quoted does not come again."""
    chat = memory.conversations
    chat.append_user("chat", PORT)
    block = render_recall(memory.recall_conversation("chat", ASKED))
    chat.append_user("chat", f"{block}\nWe paint the office in May.")
    again = render_recall(
        memory.recall_conversation("chat", "when is the office painted?", top_k=1)
    )
    assert "We paint the office in May." in again
    assert "5433" not in again
    assert "it also quotes recalled text" in again


@pytest.mark.promise("recall.own_echo")
@given(st.lists(st.text() | st.sampled_from([BEGIN, END, f"\n{END}\n", f"{END} "]), min_size=1))
def test_no_turn_ends_the_block(texts: list[str]) -> None:
    """Whatever turns hold, their block is taken out of a prompt whole, and nothing beside it."""
    block = render_recall([hit("user", text or "x") for text in texts])
    assert block.count(BEGIN) == block.count(END) == 1
    prompt = f"Before.\n{block}\nAfter."
    assert strip_recalled(prompt) == "Before.\nAfter."


@given(st.text())
def test_a_text_without_a_block_stays_as_it_is(text: str) -> None:
    """What has no block, or only the beginning of one, comes back unchanged."""
    assert strip_recalled(text) == text
    assert strip_recalled(f"{BEGIN}\n{text}") == f"{BEGIN}\n{text}"
    assert strip_recalled(f"{BEGIN}\nx\n{END}\n{text}") == text
