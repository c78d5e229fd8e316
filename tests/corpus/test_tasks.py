"""What hands wrote as tasks: what is right, what misleads, and how a search is scored."""

from __future__ import annotations

import pytest
from corpus.reading import read_split, read_stories
from corpus.tasks import (
    SETS,
    Asked,
    Score,
    Set,
    Task,
    read_tasks,
    score_labels,
    score_task,
)
from corpus.written import read_groups


@pytest.mark.parametrize("name", SETS)
def test_every_place_of_a_task_is_a_statement(name: Set) -> None:
    """No question is both answered and misled by a statement; each has something beside it."""
    tasks = list(read_tasks(name, read_stories(authors=read_split().train[:2])))
    assert len({task.name for task in tasks}) == len(tasks) > 0
    for task in tasks:
        assert task.asked
        for one in task.asked:
            assert max((*one.right, *one.misleading), default=0) < len(task.statements)
            assert one.right.isdisjoint((*one.misleading, *one.neutral)), one.text


def test_a_reply_is_told_with_its_question() -> None:
    """The statement that answers holds both, and the reply alone is none."""
    for task in read_tasks("exchanges", ()):
        for one in task.asked:
            assert all("\u2014" in task.statements[place] for place in one.right)


TASK = Task(
    "questions",
    "mill/q01/en/facts",
    "a01",
    "facts",
    "en",
    "en",
    ("the key hangs by the door", "the key is at the baker's", "the mill is old", "tea at four"),
    (
        Asked("who has the key", frozenset({1}), (0,), frozenset({2})),
        Asked("how old is the baker", frozenset(), (1,)),
    ),
)


@pytest.mark.parametrize(
    ("rankings", "score"),
    [
        ([[1, 0], []], Score(1, 1.0, 1.0, 0.0, 1, 1.0)),
        ([[2, 1], [3]], Score(1, 1.0, 1.0, 0.0, 1, 0.0)),
        ([[0, 1], [3]], Score(1, 0.0, 1.0, 1.0, 1, 0.0)),
        ([[3, 1], []], Score(1, 0.0, 1.0, 0.0, 1, 1.0)),
        ([[], []], Score(1, 0.0, 0.0, 1.0, 1, 1.0)),
    ],
    ids=["right", "neutral before", "misled", "another before", "silent"],
)
def test_a_search_is_scored(rankings: list[list[int]], score: Score) -> None:
    assert score_task(TASK, rankings) == score
    assert Score.over([score, Score()]) == score


def test_labels_are_scored() -> None:
    """Who labels all alike is right as often as that label comes, and finds no other."""
    groups = read_groups()
    score = score_labels(groups, lambda group, texts: ["replaces"] * len(texts))
    wanted = [later.label for group in groups for later in group.newer]
    share = wanted.count("replaces") / len(wanted)
    assert (score.pairs, score.right) == (len(wanted), share)
    assert (score.recall["replaces"], score.recall["holds"]) == (1.0, 0.0)
    perfect = score_labels(groups, lambda group, _: [later.label for later in group.newer])
    assert perfect.right == 1.0
    assert set(perfect.precision.values()) == {1.0}
