"""The sums behind a benchmark report, and the report as people and programs see it."""

from __future__ import annotations

import io
import json

import pytest
from bench.conversations import (
    BenchmarkReport,
    Latency,
    markdown,
    parse_chats,
    render,
    to_json,
)
from bench.conversations.report import ROWS, Outcome, latency, score_rows
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from anaphora.errors import InvalidInput
from anaphora.values.conversations import ImportProblem


def outcome(category: str, ranked: list[int], relevant: set[int]) -> Outcome:
    return Outcome(
        category, tuple(("c", index) for index in ranked), frozenset(("c", i) for i in relevant)
    )


def test_scores_are_means_over_questions() -> None:
    """Evidence found first, found sixth and not found gives the means of the measures."""
    found = [
        outcome("a", [1, 2, 3], {1}),
        outcome("b", [9, 8, 7, 6, 5, 4], {4, 100}),
        outcome("b", [9, 8], {1}),
    ]
    rows = score_rows({mode: found for _, mode in ROWS})
    assert [row.mode for row in rows] == ["words", "vector", "hybrid"]
    overall = rows[0].overall
    assert overall.questions == 3
    assert overall.recall_at_5 == pytest.approx(1 / 3)
    assert overall.recall_at_10 == pytest.approx((1 + 0.5) / 3)
    assert overall.mrr == pytest.approx((1 + 1 / 6) / 3)
    assert rows[0].by_category["a"].ndcg_at_10 == 1.0
    assert rows[0].by_category["b"].questions == 2


def test_no_question_gives_zeros() -> None:
    """Without any question with evidence the report has zeros, not a division by zero."""
    rows = score_rows({mode: [] for _, mode in ROWS})
    assert rows[2].overall.recall_at_10 == 0.0
    assert not rows[2].by_category


@given(st.lists(st.floats(0, 10), min_size=1, max_size=300))
def test_percentiles_are_values_that_were_measured(seconds: list[float]) -> None:
    """The median and the 99th percentile are among the durations, and in order."""
    found = latency(seconds)
    milliseconds = {1000 * value for value in seconds}
    assert found.p50_ms in milliseconds
    assert found.p99_ms in milliseconds
    assert found.p50_ms <= found.p99_ms
    assert found.calls == len(seconds)


def test_percentiles_of_a_hundred() -> None:
    """Of 1 to 100 ms the median is 50 and the 99th percentile 99."""
    found = latency([value / 1000 for value in range(100, 0, -1)])
    assert found.p50_ms == pytest.approx(50)
    assert found.p99_ms == pytest.approx(99)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("6-10", {6, 7, 8, 9, 10}), ("3", {3}), ("1, 3,5 - 7", {1, 3, 5, 6, 7}), ("7-6", set())],
)
def test_chats_are_chosen_by_number(text: str, numbers: set[int]) -> None:
    """Ranges and lists of chat numbers are read."""
    assert parse_chats(text) == numbers


@pytest.mark.parametrize("text", ["", "a", "1-", "1-2-3", "-4", "1;2"])
def test_a_selection_that_makes_no_sense_is_refused(text: str) -> None:
    """What is no list of chat numbers raises InvalidInput."""
    with pytest.raises(InvalidInput, match="6-10"):
        parse_chats(text)


def sample(**changes: object) -> BenchmarkReport:
    found = [outcome("2 temporal", [1], {1})]
    values: dict[str, object] = {
        "format": "realtalk",
        "embedder": "word-hashing",
        "chats": 1,
        "conversations": 1,
        "turns": 1234,
        "questions": {"2 temporal": 2},
        "left_out": {"no evidence given": 1},
        "unresolved": 3,
        "rows": score_rows({mode: found for _, mode in ROWS}),
        "recall": Latency(1, 2.5, 7.25),
        "recall_without_embedding": Latency(1, 1.0, 2.0),
        "repeated": Latency(1, 0.5, 0.75),
        "texts_embedded": 1234,
        "embed_seconds": 2.0,
        "texts_per_second": 617.0,
        "import_seconds": 4.0,
        "home_bytes": 1_500_000,
        **changes,
    }
    return BenchmarkReport(**values)  # type: ignore[arg-type]


def shown(report: BenchmarkReport) -> str:
    written = io.StringIO()
    Console(width=140, file=written).print(render(report))
    return written.getvalue()


def test_people_see_scores_costs_and_what_was_left_out() -> None:
    """The tables name every ranking, category and measure, and say what was not scored."""
    text = shown(sample())
    for words in (
        *("BM25 alone", "cosine alone", "full ranking", "2 temporal", "recall@10", "nDCG@10"),
        *("1,234 turns", "p99 7.25 ms", "617 texts/s", "1.5 MB", "1 no evidence given"),
    ):
        assert words in text
    assert "lacked" not in text


def test_a_narrow_terminal_loses_no_figure() -> None:
    """Where 60 columns are all there is, every measure is still written out."""
    written = io.StringIO()
    Console(width=60, file=written).print(render(sample()))
    assert written.getvalue().split().count("1.000") == 5 * 3 * 2


def test_people_see_what_went_wrong() -> None:
    """Answers that lacked a part and files that could not be read stand in the report."""
    problem = ImportProblem("chats/[red]x.json", "line 4", "no JSON")
    text = shown(sample(degraded={"vectors": 2}, problems=(problem,) * 7))
    assert "answers lacked a part: 2 vectors" in text
    assert "chats/[red]x.json, line 4: no JSON" in text
    assert "and 2 more problems" in text


def test_programs_get_the_same_figures() -> None:
    """The JSON form holds what the tables show, in JSON's own types."""
    value = json.loads(json.dumps(to_json(sample())))
    assert value["rows"][2]["name"] == "full ranking"
    assert value["rows"][2]["by_category"]["2 temporal"]["recall_at_5"] == 1.0
    assert value["recall"] == {"calls": 1, "p50_ms": 2.5, "p99_ms": 7.25}


def test_markdown_has_a_row_a_ranking() -> None:
    """The Markdown form has one table row for each ranking of each category and of all."""
    rows = [line for line in markdown(sample()).splitlines() if line.startswith("| ")]
    assert len(rows) == 1 + 3 + 3
