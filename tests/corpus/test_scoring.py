"""What a search found is scored as one would by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from corpus.reading import Key, Lane, Story, read_story
from corpus.scoring import (
    Figure,
    Measure,
    Result,
    Row,
    WrongResult,
    main,
    read_results,
    score,
    table,
)
from tests.corpus.stories import small_story, written

KEY_OLD: Key = ("s1", 1)
KEY_NEW: Key = ("s2", 0)
WALNUT: Key = ("s2", 2)
SESAME: Key = ("s2", 3)


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return read_story(written(tmp_path, small_story()))


def _found(
    question: int, *ranking: Key, marks: tuple[tuple[Key, Key], ...] = (), lane: Lane = "turns"
) -> Result:
    return Result("mill", question, lane, tuple(frozenset((key,)) for key in ranking), marks)


def _values(row: Row) -> dict[Measure, tuple[float, float]]:
    return {name: (figure.value, figure.of) for name, figure in row.figures.items()}


def test_a_story_by_hand(story: Story) -> None:
    """Two answered questions, of which one has a stale value; two that nothing answers."""
    (row,) = score(
        [story],
        [
            # The outdated place first, then the right one; the mark is a true one.
            _found(0, KEY_OLD, KEY_NEW, marks=((KEY_OLD, KEY_NEW),)),
            # One of two, in the fourth place; the pair that both hold is marked, wrongly.
            _found(1, KEY_OLD, ("s1", 0), ("s1", 2), WALNUT, SESAME, marks=((SESAME, WALNUT),)),
            _found(2),
            _found(3, KEY_NEW),
        ],
    )
    assert (row.group, row.questions) == (("turns",), 4)
    assert _values(row) == {
        "first": (0.0, 2),
        "in 3": (0.5, 2),
        "in 10": (1.0, 2),
        "recall@10": (1.0, 2),
        "wrong silence": (0.0, 2),
        "right": (0.0, 1),
        "silence": (0.5, 2),
        "silence near": (0.0, 1),
        "marks right": (0.5, 2),
        "marks found": (1.0, 1),
        "both marked": (1.0, 1),
    }
    # With one story every draw is the same.
    assert row.figures["in 3"] == Figure(0.5, 0.5, 0.5, 2)


def test_only_ten_places_count(story: Story) -> None:
    """An answer in the eleventh is not found, and a repetition takes a place."""
    late = [("s1", 0)] * 9
    results = [_found(0, *late, KEY_NEW), _found(1, *late, ("s1", 0), WALNUT)]
    (row,) = score([story], [*results, _found(2), _found(3)])
    values = _values(row)
    assert values["in 10"] == (0.5, 2.0)
    assert values["recall@10"] == (0.5, 2.0)
    assert values["right"] == (1.0, 1.0)


def test_a_hit_stands_for_its_repetitions(story: Story) -> None:
    """A place may be of several statements, the evidence or an outdated one among them."""
    place = frozenset((WALNUT, SESAME))
    both = frozenset((KEY_OLD, KEY_NEW))
    results = [Result("mill", 0, "turns", (both,)), Result("mill", 1, "turns", (place,))]
    (row,) = score([story], [*results, _found(2), _found(3)])
    assert _values(row)["recall@10"] == (1.0, 2.0)
    assert _values(row)["right"] == (1.0, 1.0)


def test_nothing_found_is_not_right(story: Story) -> None:
    """Silence about what was said is wrong, and an answer that did not come is not right."""
    (row,) = score([story], [_found(number) for number in range(4)])
    values = _values(row)
    assert values["wrong silence"] == (1.0, 2.0)
    assert values["right"] == (0.0, 1.0)
    assert values["silence"] == (1.0, 2.0)


def test_what_came_back_is_no_replacement(tmp_path: Path) -> None:
    """A, B, A: the third replaces the second, the second the first, but not the third the first."""
    told = small_story()
    told["sessions"][1]["turns"][3]["text"] = "the key is in the eel trap again"
    told["changes"] = [
        {"lane": "turns", "older": ["s1", 1], "newer": ["s2", 0], "relation": "replaces"},
        {"lane": "turns", "older": ["s2", 0], "newer": ["s2", 3], "relation": "replaces"},
        {"lane": "turns", "older": ["s1", 1], "newer": ["s2", 3], "relation": "same"},
    ]
    story = read_story(written(tmp_path, told))
    shown = (KEY_OLD, KEY_NEW, SESAME)
    marks = ((KEY_OLD, KEY_NEW), (KEY_OLD, SESAME))
    results = [_found(0, *shown, marks=marks), *(_found(number) for number in (1, 2, 3))]
    values = _values(score([story], results)[0])
    assert values["marks right"] == (0.5, 2.0)
    assert values["marks found"] == (0.5, 2.0)
    assert values["same marked"] == (1.0, 1.0)


def test_groups_and_intervals(tmp_path: Path) -> None:
    """By author and kind; stories are drawn whole, so one good and one bad tell little."""
    stories = [
        read_story(written(tmp_path, small_story())),
        read_story(written(tmp_path, small_story() | {"id": "quay"}, "a02")),
    ]
    results = [
        Result(story.id, number, "turns", (frozenset((KEY_NEW,)),) if story.id == "mill" else ())
        for story in stories
        for number in range(4)
    ]
    rows = score(stories, results, ("author", "kind"))
    assert [row.group for row in rows][:3] == [
        ("a01", "current"),
        ("a01", "list"),
        ("a01", "absent"),
    ]
    assert [row.questions for row in rows] == [1, 1, 2, 1, 1, 2]
    assert rows[0].figures["first"].value == 1.0
    (whole,) = score(stories, results)
    assert whole.figures["first"] == Figure(0.25, 0.0, 0.5, 4)
    shown = table([whole], ["lane"], ["first", "same marked"]).splitlines()
    assert shown[-1] == "| turns | 4 | 0.25 (0.00 to 0.50) |  |"


@pytest.mark.parametrize(
    ("results", "place"),
    [
        ([_found(0)], "mill, question 1, turns"),
        ([_found(number) for number in (0, 1, 2, 3, 0)], "mill, question 0, turns"),
        ([_found(7)], "mill, question 7, turns"),
        ([Result("quay", 0, "turns", ())], "quay"),
    ],
)
def test_results_that_do_not_fit(story: Story, results: list[Result], place: str) -> None:
    """A question without a result is never counted as lost, nor left out."""
    with pytest.raises(WrongResult) as caught:
        score([story], results)
    assert caught.value.place == place


def test_a_file_of_results(
    tmp_path: Path, story: Story, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line a question, as the module's page says."""
    line = {"story": "mill", "lane": "facts", "ranking": [[1], [0, 2]], "marks": [[0, 1]]}
    file = tmp_path / "results.jsonl"
    file.write_text("\n".join(json.dumps(line | {"question": at}) for at in range(4)), "utf-8")
    first = read_results(file)[0]
    assert first.ranking == (frozenset({("", 1)}), frozenset({("", 0), ("", 2)}))
    assert first.marks == ((("", 0), ("", 1)),)
    assert main([str(file), "--stories", str(tmp_path), "--by", "kind"]) == 0
    assert "| current | 1 | 1.00 (1.00 to 1.00)" in capsys.readouterr().out
    for wrong in ("{", '{"story": "mill"}', json.dumps(line | {"question": "0"})):
        file.write_text(f"\n{wrong}", "utf-8")
        assert main([str(file), "--stories", str(tmp_path)]) == 1
        assert f"{file}: line 2: " in capsys.readouterr().err
