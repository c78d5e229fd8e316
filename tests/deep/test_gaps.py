"""Blind spots: questions that memory could not answer, and how they end."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from tests.conftest import Clock
from tests.deep.asking import PAIRS, TEA, Script, finds, opening, submits, tell

from anaphora.errors import ModelError


@pytest.mark.promise("deep.gaps")
@pytest.mark.parametrize(
    "said",
    [
        submits("NOT_FOUND"),
        submits("I could not find anything about that."),
        submits("Lapsang, I guess"),
    ],
    ids=["not found", "in words", "unsupported"],
)
def test_no_useful_answer_is_a_gap(tmp_path: Path, clock: Clock, said: str) -> None:
    """What was not found, in whatever words, is a gap of priority 0.85 for 7 days, once."""
    script = Script(said)
    with opening(tmp_path, clock)(script) as memory:
        tell(memory)
        first = memory.deep_recall(TEA)
        again = memory.deep_recall(TEA.upper().rstrip("?"))
        (gap,) = memory.gaps()
    assert first.gap_id == again.gap_id == gap.id
    assert (gap.kind, gap.priority, gap.asked, gap.status) == ("knowledge_gap", 0.85, 2, "open")
    assert gap.expires_at - gap.created_at == timedelta(days=7)
    with opening(tmp_path, clock)(script) as memory:
        assert memory.gaps() == (gap,)


@pytest.mark.promise("deep.question_form")
@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_another_question_is_another_gap(
    tmp_path: Path, clock: Clock, one: str, other: str
) -> None:
    """A question that differs in one sign is counted for itself, and closed by its own answer."""
    script = Script(submits("NOT_FOUND"))
    with opening(tmp_path, clock)(script) as memory:
        tell(memory)
        for question in (one, other, other.lower()):
            memory.deep_recall(question, scope="all_sessions")
        assert {gap.question: gap.asked for gap in memory.gaps()} == {one: 1, other: 2}
        script.said = submits("Ada drinks lapsang.", "tea#0")
        memory.deep_recall(one, scope="all_sessions")
        assert [gap.question for gap in memory.gaps()] == [other]
        assert [gap.question for gap in memory.gaps("closed")] == [one]


@pytest.mark.promise("deep.gaps")
def test_a_gap_expires(tmp_path: Path, clock: Clock) -> None:
    """After 7 days nobody looks for it any more; asked again it is a new gap."""
    with opening(tmp_path, clock)(Script(submits("NOT_FOUND"))) as memory:
        tell(memory)
        old = memory.deep_recall(TEA).gap_id
        clock.advance(days=7, seconds=1)
        assert memory.gaps() == ()
        assert [gap.id for gap in memory.gaps("expired")] == [old]
        report = memory.dream()
        assert [gap.id for gap in report.expired] == [old]
        assert memory.dream().expired == ()
        new = memory.deep_recall(TEA).gap_id
        assert new != old
        assert [gap.asked for gap in memory.gaps()] == [1]


@pytest.mark.promise("deep.gaps_close")
def test_a_later_good_answer_closes_the_gap(tmp_path: Path, clock: Clock) -> None:
    """When the question is answered after all, its gap is closed by the sources."""
    script = Script(submits("NOT_FOUND"))
    with opening(tmp_path, clock)(script) as memory:
        tell(memory)
        memory.deep_recall(TEA)
        script.said = finds("Ada lapsang tea")
        answer = memory.deep_recall("what does ada drink in total")
        assert answer.gap_id is None
        assert memory.gaps() == ()
        (gap,) = memory.gaps("closed")
    assert gap.closed_by == tuple(source.id for source in answer.sources)
    assert gap.closed_at == clock.now


def test_a_model_that_fails_leaves_no_gap(tmp_path: Path, clock: Clock) -> None:
    """A model that cannot be reached has not looked: the answer says so, and no gap is kept."""
    script = Script()
    script.said = ModelError("scripted", "refused")  # type: ignore[assignment]
    with opening(tmp_path, clock)(script) as memory:
        tell(memory)
        answer = memory.deep_recall(TEA)
        assert [part.part for part in answer.degraded] == ["model"]
        assert (answer.complete, answer.supported, answer.gap_id) == (False, False, None)
        assert memory.gaps() == ()


def test_without_a_model_only_what_is_unlike_everything_is_a_gap(
    tmp_path: Path, clock: Clock
) -> None:
    """Without a model there is no answer, but best evidence; a gap only where that is poor."""
    with opening(tmp_path, clock)() as memory:
        tell(memory)
        found = memory.deep_recall("Which tea does Ada drink?")
        assert (found.answer, found.supported, found.complete) == ("", False, False)
        assert "tea#0" in {source.id for source in found.sources}
        assert "no model is configured" in found.note
        assert "ANAPHORA_MODEL" in found.note
        missing = memory.deep_recall("Who repaired the zeppelin engine?")
        assert missing.gap_id is not None


@pytest.mark.promise("deep.gaps")
def test_gaps_of_namespaces_are_apart(tmp_path: Path, clock: Clock) -> None:
    """A gap is known in its own namespace alone."""
    with opening(tmp_path, clock)(Script(submits("NOT_FOUND"))) as memory:
        tell(memory)
        memory.deep_recall(TEA)
        assert memory.scoped("work").gaps() == ()
        assert len(memory.gaps(None)) == 1
