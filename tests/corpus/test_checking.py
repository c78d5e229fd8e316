"""A story that breaks a rule is named with the place, and so is a file that cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from corpus.checking import check_corpus, check_story, main
from corpus.reading import Split, read_stories, read_story
from tests.corpus.stories import asked, change, small_story, written


def _problems(folder: Path, story: dict[str, Any]) -> list[str]:
    return [str(one) for one in check_story(read_story(written(folder, story)))]


def test_a_story_that_is_too_small(tmp_path: Path) -> None:
    """Every count is named; nothing else is wrong with this one."""
    errors = [one for one in _problems(tmp_path, small_story()) if one.startswith("error")]
    assert errors == [
        "error: mill: 7 turns (30 to 80)",
        "error: mill: 4 facts (18 to 40)",
        "error: mill: 4 questions (17 to 25)",
        "error: mill: 2 absent questions (5 at least)",
        "error: mill: fewer than 4 changes among turns",
        "error: mill: fewer than 4 changes among facts",
        "error: mill: fewer than 3 pairs that both hold",
    ]


def _question(number: int, **values: object) -> Callable[[dict[str, Any]], None]:
    return lambda story: story["questions"][number].update(values)


def _relate(*given: Any) -> Callable[[dict[str, Any]], None]:
    return lambda story: story["changes"].append(change(*given))


@pytest.mark.parametrize(
    ("break_it", "problem"),
    [
        (_question(0, now="2024-06-03T00:00:00Z"), "question 0: asked before the story is over"),
        (_question(0, answer=["at six"]), "question 0: no piece of the answer in turn s2/0"),
        (_question(0, answer=["madame", "at six"]), "question 0: not in the evidence: at six"),
        (_question(0, stale=["at six"]), "question 0: stale, but nowhere: at six"),
        (_question(0, answer=[]), "question 0: no piece of an answer"),
        (_question(0, facts=[]), "question 0: no evidence among facts"),
        (_question(0, near=True), "question 0: a near miss that is not absent"),
        (_question(2, facts=[1]), "question 2: absent, but with an answer"),
        (_relate("facts", 1, 0, "same"), "changes[4]: the older statement does not come first"),
        (_relate("facts", 0, 1, "replaces"), "changes[4]: a pair that is related twice"),
        (lambda s: s["sessions"].reverse(), "sessions out of order"),
        (lambda s: s["facts"].reverse(), "facts out of order"),
        (lambda s: s["sessions"][1].update(id="s1"), "two sessions with one id"),
        (
            _question(0, q="where do i unlock madame's hut"),
            "1 of 2 questions share a rare word with their answer",
        ),
    ],
)
def test_each_rule(
    tmp_path: Path, break_it: Callable[[dict[str, Any]], None], problem: str
) -> None:
    """An error that says which question or relation."""
    story = small_story()
    if problem.startswith("two"):
        story["changes"], story["questions"] = [], story["questions"][2:]
    break_it(story)
    errors = [one for one in _problems(tmp_path, story) if one.startswith("error")]
    assert any(one.endswith(problem) for one in errors), errors


def test_a_piece_that_also_stands_elsewhere_is_a_note(tmp_path: Path) -> None:
    """It may rightly be so: somebody says it wrongly, or of another thing."""
    story = small_story()
    story["sessions"][0]["turns"][0]["text"] = "morning, madame"
    assert "note: mill: question 0: a piece of the answer also in turn s1/0" in _problems(
        tmp_path, story
    )


def test_what_holds_among_stories(tmp_path: Path) -> None:
    """Ids, speakers and authors; how many questions were never answered."""
    written(tmp_path, small_story())
    written(tmp_path, small_story(), "a02")
    written(tmp_path, small_story() | {"id": "quay"}, "a02")
    split = Split(("a01", "a09"), ("a01",))
    found = {str(one) for one in check_corpus(read_stories(tmp_path), split)}
    assert {
        "error: mill: id: a story of a01 and of a02",
        "error: mill: speakers: riwal also speaks in quay",
        "error: all stories: 6 absent questions (600 at least)",
        "error: split: a01: both trained on and held out",
        "error: split: a02: not in it",
        "error: split: a09: without stories",
    } <= found
    for author in ("a01", "a02"):
        story = small_story()
        story["questions"].append(asked("a third", "absent", [], [], [], []))
        written(tmp_path, story, author)
    assert "fewer than half of the absent questions are near misses" in {
        one.problem for one in check_corpus(read_stories(tmp_path)) if one.story == "all stories"
    }


def test_a_file_that_cannot_be_read_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The others are checked all the same, and the exit code is 1."""
    written(tmp_path, small_story())
    (tmp_path / "a01" / "other.json").write_text("{", "utf-8")
    assert main([str(tmp_path), "--notes"]) == 1
    printed = capsys.readouterr().out
    assert "other.json: line 1: Expecting property name" in printed
    assert "error: mill: 7 turns" in printed
    assert "note: mill: no question of kind plain" in printed
