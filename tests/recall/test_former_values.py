"""A path's former value: named beside the present one, and first where the past is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from anaphora import Memory

NOW = datetime(2026, 11, 25, 12, 0, tzinfo=UTC)
FIRST, SECOND, THIRD = (f"My phone number is 555-{n}." for n in (1111, 2222, 3333))


def days(count: int) -> datetime:
    return NOW - timedelta(days=count)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "home", clock=lambda: NOW) as opened:
        assert opened.ready(60)
        for text, ago in ((FIRST, 400), (SECOND, 50), (THIRD, 2)):
            opened.remember(text, path="user.phone", created_at=days(ago))
        opened.remember("The coffee machine was descaled.", created_at=days(100))
        opened.remember("Nora's phone is red.", created_at=days(90))
        yield opened


PREVIOUS = [
    "what was my previous phone number?",
    "what was my phone number before?",
    "what was my old phone number?",
    "what was my last phone number?",
    "my former phone number?",
    "which phone number did I have earlier?",
    "what phone number did I use to have?",
    "which phone number did I have in October 2026?",
    "what was my phone number last month?",
    "was war meine vorherige Telefonnummer (phone number)?",
    "wie war meine phone number früher?",
    "was ist meine alte Nummer, my phone number?",
    "welche phone number hatte ich im Oktober 2026?",
    "¿cuál era mi phone number anterior?",
    "¿qué phone number tenía antes?",
    "¿qué phone number tenía en octubre de 2026?",
    "quel était mon ancien phone number ?",
    "quel phone number avais-je auparavant ?",
    "quel phone number avais-je en octobre 2026 ?",
]
OF_ALL = ["what was my first phone number?", "what was my original phone number?"]
LONG_AGO = ["which phone number did I have in June 2026?", "what was my phone number last year?"]
PRESENT = [
    "what is my phone number?",
    "what's my current phone number?",
    "which phone number do I have now?",
    "my phone number",
    "wie ist meine phone number?",
    "¿cuál es mi phone number?",
    "quel est mon phone number ?",
    "what was my phone number in November 2026?",
]


@pytest.mark.parametrize("question", PREVIOUS)
def test_the_value_before_is_what_is_asked_for(memory: Memory, question: str) -> None:
    """It stands first, marked by what replaced it; the present one follows and names it."""
    former, present = memory.recall(question, min_confidence=0.0).hits[:2]
    assert (former.text, former.current) == (SECOND, False)
    assert former.older_than is not None
    assert former.older_than.text == present.text == THIRD
    assert present.current
    assert [one.text for one in present.previous][:1] == [SECOND]


@pytest.mark.parametrize("question", OF_ALL + LONG_AGO)
def test_the_value_of_that_time_is_what_is_asked_for(memory: Memory, question: str) -> None:
    """The first of all, and the one that held in the time that is named."""
    assert memory.recall(question, min_confidence=0.0).hits[0].text == FIRST


@pytest.mark.parametrize("question", PRESENT)
def test_what_holds_now_stands_first(memory: Memory, question: str) -> None:
    """A question for the present has the present value alone, which names the one before."""
    hits = memory.recall(question, min_confidence=0.0).hits
    assert hits[0].text == THIRD
    assert {SECOND, FIRST}.isdisjoint(hit.text for hit in hits)
    assert hits[0].previous[0].text == SECOND


@pytest.mark.parametrize("question", ["what was my previous phone number?", PREVIOUS[7]])
def test_search_shows_it(memory: Memory, question: str) -> None:
    """One search over all lanes, which the command line and MCP show."""
    first, second = memory.search(question, min_confidence=0.0).hits[:2]
    assert (first.text, first.current) == (SECOND, False)
    assert any("555-3333" in line for line in first.versions)
    assert second.text == THIRD
    assert any("555-2222" in line for line in second.versions)


def test_few_hits_filters_and_moments(memory: Memory) -> None:
    """`top_k` holds, a filter that lets it not through keeps it out, `as_of` goes on from there."""
    asked = "what was my previous phone number?"
    assert [hit.text for hit in memory.recall(asked, top_k=2)] == [SECOND, THIRD]
    recent = {"created_at": {"gte": days(10).isoformat()}}
    assert [hit.text for hit in memory.recall(asked, filters=recent)] == [THIRD]
    then = memory.recall("what is my phone number?", as_of=days(30)).hits[0]
    assert (then.text, [one.text for one in then.previous]) == (SECOND, [FIRST])


def test_what_was_forgotten_or_never_held_is_not_named(memory: Memory) -> None:
    """Forgetting takes the line along; a value that was wrong from its beginning never held."""
    line = memory.history("user.phone")
    memory.forget(line[-1].id, soft=True)
    hits = memory.recall("what was my previous phone number?", min_confidence=0.0).hits
    assert not [hit for hit in hits if "555" in hit.text]
    assert not [one for hit in hits for one in hit.previous if "555" in one.text]
