"""What a search by nearness cannot do: counting, order and joins over whole threads, exactly."""

from __future__ import annotations

import pytest

from anaphora import Memory

from .aggregation_tasks import KINDS, Said, Task, answer_from, by_code, by_hits, said, tasks_over

pytestmark = pytest.mark.internal


@pytest.fixture(scope="module")
def turns(ferrywell: Memory) -> list[Said]:
    return list(said(ferrywell))


@pytest.mark.promise("deep.aggregation")
@pytest.mark.parametrize("kind", KINDS)
def test_a_good_program_is_exact(ferrywell: Memory, turns: list[Said], kind: str) -> None:
    """A program over all turns gives the exact answer, with sources that hold the word."""
    by_id = {turn.id: turn for turn in turns}
    for task in [one for one in tasks_over(turns, 3) if one.kind == kind]:
        answer, sources = by_code(ferrywell, task)
        assert answer == task.right, task
        assert sources
        for source in sources:
            text = by_id[source].text.lower()
            assert task.word in text or task.other in text


@pytest.mark.promise("deep.aggregation")
def test_the_best_hits_are_not_enough(ferrywell: Memory, turns: list[Said]) -> None:
    """The same sums over the best hits of plain recall are wrong for many of the same questions."""
    tasks = tasks_over(turns, 3)
    exact = [task for task in tasks if by_hits(ferrywell, task, 6) == task.right]
    assert len(exact) < len(tasks) / 2


@pytest.mark.promise("deep.aggregation")
def test_the_sums_are_right() -> None:
    """The answers that programs are held to are those that one can count by hand."""
    from datetime import UTC, datetime

    def turn(conversation: str, index: int, speaker: str, day: int, text: str) -> Said:
        return Said(conversation, index, speaker, datetime(2026, 1, day, tzinfo=UTC), text)

    talk = [
        turn("a", 0, "Ana", 3, "Tea please, and milk"),
        turn("a", 1, "Bo", 3, "no tea today"),
        turn("b", 0, "Ana", 2, "milk and teapots"),
        turn("c", 0, "Ana", 5, "tea!"),
    ]
    right = {
        "count": "3",
        "by speaker": "1",
        "first": "2026-01-03",
        "last": "2026-01-05",
        "sessions": "2",
        "both": "1",
        "without": "1",
        "order": "milk",
        "who": "Ana",
    }
    for kind, answer in right.items():
        other = "Bo" if kind == "by speaker" else "milk"
        assert answer_from(Task(kind, "tea", other, "", ""), talk) == answer, kind
    assert answer_from(Task("count", "rum", "milk", "", ""), talk) is None
