"""Dreaming: gaps are closed by what is known now, restatements are linked, nothing is deleted."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import Clock
from tests.deep.asking import TEA, Script, finds, opening, submits, tell

from anaphora import Budget, Memory, NewTurn

FILLED = 40
WHERE = "Where does Zelda keep the heronry keys?"


def fill(memory: Memory) -> None:
    """A thread of many turns that have nothing to do with any question."""
    tell(memory)
    weather = [NewTurn("user", f"The weather of day {n} was grey again") for n in range(FILLED)]
    memory.conversations.extend("talk", weather)
    for number in range(12):
        memory.remember(f"Train number {number} leaves Ostend at {number} o'clock")


@pytest.mark.promise("deep.gaps_close")
@pytest.mark.parametrize("how", ["turn", "memory"])
def test_without_a_model_new_evidence_closes_a_gap(tmp_path: Path, clock: Clock, how: str) -> None:
    """A gap is closed by a turn or a memory that came since and surely is the evidence."""
    with opening(tmp_path, clock)() as memory:
        fill(memory)
        assert memory.deep_recall(WHERE).gap_id is not None
        assert memory.dream().closed == ()
        said = "Zelda does keep the heronry keys: the heronry keys are under the pot"
        if how == "turn":
            memory.conversations.append_user("talk", said)
            wanted = f"talk#{FILLED}"
        else:
            wanted = f"memory:{memory.remember(said).id}"
        report = memory.dream()
        assert [gap.question for gap in report.closed] == [WHERE]
        assert wanted in report.closed[0].closed_by
        assert (report.with_model, report.stored) == (False, ())
        assert memory.gaps() == ()


def test_the_question_itself_closes_nothing(tmp_path: Path, clock: Clock) -> None:
    """The turn in which the question was stored is not its answer."""
    with opening(tmp_path, clock)() as memory:
        fill(memory)
        memory.deep_recall(WHERE)
        memory.conversations.append_user("talk", WHERE)
        memory.conversations.append_user("talk", WHERE.lower())
        assert memory.dream().closed == ()


def test_a_gap_whose_conversation_is_gone_stays(tmp_path: Path, clock: Clock) -> None:
    """A thread file that was deleted by hand ends no dream: its question is passed over."""
    with opening(tmp_path, clock)() as memory:
        tell(memory)
        gap = memory.deep_recall(WHERE, scope="current_session", conversation_id="tea").gap_id
        (thread,) = tmp_path.rglob("tea.json")
        thread.unlink()
        report = memory.dream()
        assert ([one.id for one in report.explored], report.closed) == ([gap], ())


@pytest.mark.promise("deep.dream")
def test_a_model_closes_a_gap_when_the_answer_came(tmp_path: Path, clock: Clock) -> None:
    """What a dream finds is kept as a memory bound to its sources, and recalled from then on."""
    script = Script(submits("NOT_FOUND"))
    with opening(tmp_path, clock)(script) as memory:
        memory.conversations.append_user("talk", "The weather was grey")
        memory.deep_recall(TEA)
        script.said = finds("lapsang")
        tell(memory)
        before = len(memory.list())
        report = memory.dream()
        (gap,) = report.closed
        (stored,) = report.stored
        (source, own) = gap.closed_by
        assert (source.startswith("tea#"), own) == (True, f"memory:{stored}")
        assert (report.with_model, report.cost.iterations) == (True, 1)
        record = memory.get(stored)
        assert record.sources == ("dream",)
        assert source == f"{record.conversation_id}#{record.turn_index}"
        assert TEA in record.text
        assert len(memory.list()) == before + 1


@pytest.mark.promise("deep.dream")
def test_a_model_is_not_asked_twice_over_the_same(tmp_path: Path, clock: Clock) -> None:
    """As long as nothing new is there, a gap that a model has looked for costs no search."""
    script = Script(submits("NOT_FOUND"))
    with opening(tmp_path, clock)(script) as memory:
        fill(memory)
        memory.deep_recall(TEA)
        calls = script.calls
        assert [gap.question for gap in memory.dream().explored] == [TEA]
        assert script.calls == calls
        memory.conversations.append_user("tea", "Ada drinks coffee with her lapsang in total")
        memory.dream()
        assert script.calls == calls + 1
        memory.dream()
        assert script.calls == calls + 1


@pytest.mark.promise("deep.dream")
def test_a_dream_keeps_its_budget(tmp_path: Path, clock: Clock) -> None:
    """A cycle that may spend nothing asks nobody, and says which limit ended it."""
    script = Script(submits("NOT_FOUND"))
    with opening(tmp_path, clock)(script) as memory:
        tell(memory)
        memory.deep_recall(TEA)
        calls = len(script.model.asked)
        memory.conversations.append_user("tea", "Ada drinks coffee too")
        report = memory.dream(budget=Budget(tokens=100))
        assert len(script.model.asked) == calls
        assert [part.part for part in report.degraded] == ["budget"]
        assert len(memory.gaps()) == 1


@pytest.mark.promise("deep.jobs")
def test_a_session_end_queues_what_survives_a_restart(tmp_path: Path, clock: Clock) -> None:
    """Extraction and a model-free dream wait in truth, each once, and are run by whoever comes."""
    script = Script('[{"fact": "Bob is allergic to walnuts.", "turns": [2]}]')
    with opening(tmp_path, clock)(script) as memory:
        tell(memory)
        assert memory.end_session("tea") == 2
        assert memory.end_session("tea") == 2
        assert memory.end_session("other") == 3
    with opening(tmp_path, clock)(script) as memory:
        memory.deep_recall(WHERE)
        calls = len(script.model.asked)
        report = memory.run_jobs()
        assert [one.conversation_id for one in report.extracted] == ["tea"]
        assert [memory.get(one).text for one in report.extracted[0].added] == [
            "Bob is allergic to walnuts."
        ]
        assert not report.with_model
        assert len(script.model.asked) == calls + 1
        assert memory.run_jobs() == type(report)()


@pytest.mark.promise("deep.jobs")
def test_without_a_model_only_a_dream_is_queued(tmp_path: Path, clock: Clock) -> None:
    """Nobody could extract anything, so nothing of it waits."""
    with opening(tmp_path, clock)() as memory:
        tell(memory)
        assert memory.end_session("tea") == 1
        assert memory.run_jobs().extracted == ()
