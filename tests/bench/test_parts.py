"""Whether the whole is worse than its parts: the arithmetic, and one story through the engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench.parts.asking import BM25, COSINE, HYBRID, METHODS, ask_sets
from bench.parts.lost import causes
from bench.parts.plain import Bm25, ranked, words_of
from bench.parts.report import page, rows_of
from bench.parts.sets import Hit
from bench.parts.verdicts import Rarity, figures_of, judge


def _places(*rows: str) -> list[frozenset[str]]:
    return [frozenset(row) for row in rows]


def test_figures_count_answers_by_place() -> None:
    """The first, the first three and ten by question; recall by answer, of ten hits alone."""
    assert figures_of(_places("x", "a", "y"), "ab") == (0.0, 1.0, 1.0, 0.5)
    late = _places(*"0123456789", "a")
    assert figures_of(late, "a") == (0.0, 0.0, 0.0, 0.0)
    assert figures_of([], "a") == (0.0, 0.0, 0.0, 0.0)


def test_a_hit_stands_for_what_it_says_was_the_same() -> None:
    """A repetition that was folded into a hit is not lost."""
    assert figures_of(_places("xab"), "ab") == (1.0, 1.0, 1.0, 1.0)


def test_a_question_without_answers_is_an_error() -> None:
    """It would count as lost or won at will."""
    with pytest.raises(ValueError, match="without answers"):
        figures_of(_places("x"), "")


@pytest.mark.parametrize(
    ("whole", "part", "outcome"),
    [
        ([1.0] * 40, [0.0] * 40, "not worse"),
        ([1.0, 0.0] * 20, [1.0, 0.0] * 20, "not worse"),
        ([0.0] * 40, [1.0] * 40, "worse"),
        # One question of forty lost and none won is chance; a quarter of them is not.
        ([0.0] + [1.0] * 39, [1.0] * 40, "within chance"),
        ([0.0] * 10 + [1.0] * 30, [1.0] * 40, "worse"),
        # As many lost, but nearly as many won: only pairs tell.
        ([0.0] * 10 + [1.0] * 9 + [0.0] * 21, [1.0] * 10 + [0.0] * 30, "within chance"),
    ],
)
def test_worse_is_what_a_paired_bootstrap_is_sure_of(
    whole: list[float], part: list[float], outcome: str
) -> None:
    """Lower means alone do not make it worse."""
    verdict = judge(whole, {"part": part})
    assert verdict.outcome == outcome
    assert verdict.low <= verdict.difference <= verdict.high
    assert verdict == judge(whole, {"part": part})


def test_the_better_part_is_the_one_to_beat() -> None:
    """The whole is between its parts, and that is not enough."""
    verdict = judge([1.0, 0.0] * 20, {"good": [1.0] * 40, "bad": [0.0] * 40})
    assert (verdict.better, verdict.outcome) == ("good", "worse")


def test_kinds_are_by_the_rarest_word_shared() -> None:
    """One rare word makes a question rare; words of every text tell nothing."""
    texts = ["the heron stands", "the ferry", "the ferry goes", "the ferry is late"]
    rarity = Rarity(texts + ["the sea"] * 96)
    assert rarity.kind("Where is the HERON?", ["the heron stands"]) == "rare"
    assert rarity.kind("is there a ferry", ["the ferry goes"]) == "common"
    assert rarity.kind("where is the boat", ["the ferry goes"]) == "none"
    assert rarity.kind("boats", ["the ferry goes"]) == "none"


def test_bm25_is_the_textbook_formula() -> None:
    """One word in one of two texts of equal length: idf · tf · 2.2 / (tf + 1.2)."""
    scores = Bm25(["red red boat", "blue boat sinks"]).scores("RED")
    assert scores.tolist() == pytest.approx([0.693147 * 2 * 2.2 / 3.2, 0.0], abs=1e-5)
    assert ranked(scores, 0.0) == [0]
    assert words_of("It's B-12, über_all") == ["it", "s", "b", "12", "über", "all"]


def test_a_cause_is_what_alone_keeps_an_answer_out() -> None:
    """A sum for turns; a product for facts, whose words are a part of the similarity."""
    answer = frozenset({("s", 1)})
    turns = [
        Hit(frozenset({("s", 0)}), "", 0.5, {"meaning": 0.1, "speaker": 0.3, "length": 0.1}),
        Hit(answer, "", 0.4, {"meaning": 0.3, "length": 0.1}),
    ]
    assert causes("turns", turns, answer, 1) == ("speaker",)
    assert causes("turns", turns, answer, 2) == ("speaker", "length")
    facts = [
        Hit(frozenset({("s", 0)}), "", 0.8, {"similarity": 0.8, "meaning": 0.2, "decay": 1.0}),
        Hit(answer, "", 0.3, {"similarity": 0.6, "meaning": 0.6, "decay": 0.5}),
    ]
    assert causes("facts", facts, answer, 1) == ("words",)


def test_a_story_is_asked_both_ways(tmp_path: Path) -> None:
    """Every method finds the one turn and the one fact that name what is asked."""
    when = "2025-03-01T09:00:00Z"
    turns = ["good morning all", "the ferry to Holm leaves at nine", "my soup is cold"]
    facts = ["The ferry to Holm leaves at nine.", "The soup is cold."]
    question = {
        "q": "when does the ferry to Holm leave",
        "kind": "plain",
        "now": "2025-04-01T09:00:00Z",
        "answer": ["nine"],
        "evidence": [["s1", 1]],
        "facts": [0],
    }
    absent = question | {"q": "who sings", "kind": "absent", "evidence": [], "facts": []}
    story = {
        "id": "quay",
        "sessions": [
            {"id": "s1", "when": when, "turns": [{"role": "user", "text": text} for text in turns]}
        ],
        "facts": [{"when": when, "text": text, "type": "semantic"} for text in facts],
        "questions": [question, absent],
    }
    (tmp_path / "stories").mkdir()
    (tmp_path / "stories" / "stories.json").write_text(json.dumps([story]))
    with (tmp_path / "asked.jsonl").open("w") as details:
        outcomes = list(
            ask_sets(
                tmp_path,
                [("stories", "turns"), ("stories", "facts")],
                cache=tmp_path / "cache",
                details=details,
            )
        )
    assert [(outcome.lane, outcome.category) for outcome in outcomes] == [
        ("turns", "plain"),
        ("facts", "plain"),
    ]
    for outcome in outcomes:
        for method in METHODS:
            assert outcome.figures[method] == (1.0, 1.0, 1.0, 1.0), (outcome.lane, method)
    lines = [json.loads(line) for line in (tmp_path / "asked.jsonl").read_text().splitlines()]
    for method in (BM25, COSINE, HYBRID):
        assert [line["methods"][method]["ranks"] for line in lines] == [[1], [1]]
    rows = rows_of(outcomes)
    assert {row.verdict.outcome for row in rows} == {"not worse"}
    assert "| stories | facts | all | 1 | 1.00 / 1.00c |" in page(rows, outcomes)
