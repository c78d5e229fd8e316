"""The stories that are shipped, their split, and what the page says of them."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from corpus.agreement import measure_agreement
from corpus.checking import check_story, main
from corpus.counting import BEGIN, END, PAGE, tables
from corpus.reading import Story, read_split, read_stories, read_story
from corpus.scoring import read_results


@pytest.fixture(scope="module")
def stories() -> tuple[Story, ...]:
    return read_stories()


def test_the_stories_keep_every_rule(capsys: pytest.CaptureFixture[str]) -> None:
    """No error in any file."""
    code = main([])
    assert code == 0, capsys.readouterr().out


def test_every_author_wrote_several(stories: tuple[Story, ...]) -> None:
    """Ten stories, or six in registers that were missing. A third of the authors is held out, and
    of the languages each with somebody."""
    split = read_split()
    authors = Counter(story.author for story in stories)
    assert sorted(authors) == sorted((*split.train, *split.held_out))
    assert all(count == (6 if author[0] == "c" else 10) for author, count in authors.items())
    assert len(split.held_out) * 3 >= len(authors) - 1
    assert len(stories) >= 210
    languages = {story.lang for story in stories}
    assert {story.lang for story in stories if story.author in split.held_out} == languages


def test_a_second_reader_agrees() -> None:
    """The page states how far, on 300 questions."""
    agreement = measure_agreement()
    page = PAGE.read_text("utf-8")
    assert agreement.questions == 300
    assert (agreement.decided, agreement.facts_meet) == (1.0, 1.0)
    assert f"for {agreement.turns_meet * 300:.0f} the turns it named" in page
    f1 = f"F1 {agreement.turns_f1:.2f} and {agreement.facts_f1:.2f}"
    assert f1.replace("0.", ".") in page


def test_the_page_counts_them(stories: tuple[Story, ...]) -> None:
    """`python -m corpus.counting` would change nothing."""
    page = PAGE.read_text("utf-8")
    assert page.split(BEGIN)[1].split(END)[0] == f"{tables(stories)}\n"


def test_the_page_shows_the_form(tmp_path: Path) -> None:
    """Its first example is a story, its second a result, and they are read."""
    shown, line = re.findall(r"```json\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    file = tmp_path / "a01" / "shown.json"
    file.parent.mkdir()
    file.write_text(shown, "utf-8")
    story = read_story(file)
    places = [one.place for one in check_story(story) if one.error and one.place]
    assert (len(story.relations), places) == (2, [])
    file.write_text(line, "utf-8")
    (result,) = read_results(file)
    (asked,) = (one for one in read_stories(authors=["a01"]) if one.id == result.story)
    assert asked.questions[result.question].evidence == (min(result.ranking[0]),)
    assert result.marks == ((min(result.ranking[1]), min(result.ranking[0])),)
