"""Stories are read as values; what is wrong with a file is an error that says where."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from corpus.reading import (
    NotJson,
    Relation,
    UnknownAuthor,
    WrongForm,
    read_stories,
    read_story,
)
from tests.corpus.stories import small_story, written


def test_a_story_is_read(tmp_path: Path) -> None:
    """Sessions, facts, relations and questions, with their times and ids."""
    written(tmp_path, small_story())
    (story,) = read_stories(tmp_path)
    assert (story.author, story.id, story.lang) == ("a01", "mill", "en")
    assert story.sessions[1].when == datetime(2024, 6, 3, 8, 5, tzinfo=UTC)
    assert story.texts("turns")["s2", 0] == "the key lives with madame now"
    assert story.texts("facts")["", 3] == "Enora is allergic to sesame."
    assert story.relations[0] == Relation("turns", ("s1", 1), ("s2", 0), "replaces")
    question = story.questions[1]
    assert question.answers("turns") == (("s2", 2), ("s2", 3))
    assert question.answers("facts") == (("", 2), ("", 3))
    assert [one.near for one in story.questions] == [False, False, False, True]


def test_authors_are_chosen(tmp_path: Path) -> None:
    """An author that is not there is an error, not an empty list."""
    written(tmp_path, small_story())
    written(tmp_path, small_story() | {"id": "quay"}, "a02")
    assert [story.id for story in read_stories(tmp_path)] == ["mill", "quay"]
    assert [story.id for story in read_stories(tmp_path, ["a02"])] == ["quay"]
    with pytest.raises(UnknownAuthor, match=r"a03: there are a01, a02"):
        read_stories(tmp_path, ["a03"])


def _set(*path: str | int, to: object) -> Callable[[dict[str, Any]], None]:
    def change(story: dict[str, Any]) -> None:
        inner: Any = story
        for step in path[:-1]:
            inner = inner[step]
        inner[path[-1]] = to

    return change


@pytest.mark.parametrize(
    ("change", "place", "problem"),
    [
        (_set("lang", to=3), "lang", "not a text"),
        (_set("extra", to=1), "", "extra is no part of the form"),
        (_set("facts", to={}), "facts", "not a list"),
        (_set("facts", 2, "type", to="other"), "facts[2].type", "other is none of semantic"),
        (_set("sessions", 1, "when", to="June"), "sessions[1].when", "not a time"),
        (_set("facts", 0, "when", to="2024-03-04"), "facts[0].when", "without a zone"),
        (_set("sessions", 0, "turns", 1, to="hi"), "sessions[0].turns[1]", "not an object"),
        (_set("sessions", 0, "turns", 1, to={}), "sessions[0].turns[1]", "role is missing"),
        (_set("changes", 3, "newer", to=["s1", 0]), "changes[3].newer", "not an id of facts"),
        (_set("changes", 3, "newer", to=True), "changes[3].newer", "not an id of facts"),
        (_set("changes", 0, "older", to=["s3", 0]), "changes[0].older", "no such statement"),
        (_set("questions", 1, "facts", to=[9]), "questions[1].facts[0]", "no such statement"),
        (_set("questions", 0, "evidence", 0, 1, to=4), "questions[0].evidence[0]", "no such"),
        (_set("questions", 2, "kind", to="odd"), "questions[2].kind", "odd is none of plain"),
        (_set("questions", 3, "near", to="yes"), "questions[3].near", "neither true nor false"),
    ],
)
def test_an_error_says_where(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], place: str, problem: str
) -> None:
    """The file, the place in it and what is wrong there."""
    story = small_story()
    change(story)
    file = written(tmp_path, story)
    with pytest.raises(WrongForm) as caught:
        read_story(file)
    assert (caught.value.file, caught.value.place) == (file, place)
    assert problem in caught.value.problem
    assert str(file) in str(caught.value)


def test_a_file_that_is_no_json(tmp_path: Path) -> None:
    """With its line, or the byte that is not UTF-8; so is one that is not there."""
    file = tmp_path / "story.json"
    file.write_text('{\n"id": }', "utf-8")
    for content, place in ((b'{\n"id": }', "line 2"), (b'"\xff"', "byte 1"), (None, "")):
        file.unlink() if content is None else file.write_bytes(content)
        with pytest.raises(NotJson) as caught:
            read_story(file)
        assert caught.value.place == place
