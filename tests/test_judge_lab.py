"""The judge of pairs in the lab: features, trees, and how a model's judgement joins theirs."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.ingest.small_judge import generated_pairs, make_judge, make_trees, pair_of, say
from tools.judge.boosting import Growth, fit_trees
from tools.judge.evaluate import judge_all
from tools.judge.examples import words_of
from tools.judge.folders import PRODUCT, product_model, read_stack, read_trees
from tools.judge.gap import JUDGES, ask_changes, guess_labels
from tools.judge.homes import HELD_OUT, REPLACES, Labelled
from tools.judge.stack import fit_classes
from tools.judge.trees import tree_odds, write_arrays, write_trees

from anaphora.ingest.judging import STACK_FILE, TREES_FILE, PairJudge, read_form
from anaphora.rank.pairs import (
    FEATURES,
    OF_ONE,
    OF_PAIR,
    UNKNOWN,
    features_of,
    probabilities,
    stack_features,
    verdicts_of,
)
from anaphora.reading.inputs import pair_text


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run with trees alone."""
    folder = tmp_path_factory.mktemp("judge")
    make_trees(folder / PRODUCT)
    return folder


def test_features_have_their_length_and_order() -> None:
    pair = pair_of("Kim owns the blue van.", "Does Rafi own 2 vans, or Kim?", 0.5)
    (row,) = features_of([pair])
    assert len(row) == len(FEATURES) == len(OF_PAIR) + 2 * len(OF_ONE)
    named = dict(zip(FEATURES, row.tolist(), strict=True))
    assert named["closeness"] == 0.5
    assert named["days"] == pytest.approx(math.log1p(20), rel=1e-6)
    assert (named["older asks"], named["newer asks"]) == (0, 1)
    assert (named["older numbers"], named["newer numbers"]) == (0, 1)
    assert features_of([]).shape == (0, len(FEATURES))


def test_an_unknown_closeness_is_no_closeness() -> None:
    (row,) = features_of([pair_of("Kim owns the van.", "Rafi owns the van.")])
    assert row[FEATURES.index("closeness")] == UNKNOWN


@pytest.mark.parametrize(
    ("newer", "day"), [("Who owns the blue van?", 20), ("Rafi owns the blue van now.", 0)]
)
def test_neither_a_question_nor_what_is_not_later_replaces(newer: str, day: float) -> None:
    pair = pair_of("Kim owns the blue van.", newer, 0.8, day)
    (verdict,) = verdicts_of([pair], np.array([[9.0, 0.0, 0.0]], np.float32))
    assert verdict.replaces == 0.0


def test_trees_tell_pairs_apart(run: Path) -> None:
    changed, apart = read_trees(run).judge(
        [
            pair_of("Jo owns the red bike.", "Ada owns the red bike now.", 0.8),
            pair_of("Jo owns the red bike.", "Jo cleaned the attic again.", 0.4),
        ]
    )
    assert changed.replaces > 0.8
    assert apart.replaces < 0.2
    for verdict in (changed, apart):
        assert 0.0 <= verdict.replaces + verdict.both + verdict.repeats <= 1.0


def test_written_trees_are_those_that_were_fitted(tmp_path: Path) -> None:
    pairs, classes = generated_pairs()
    rows = features_of(pairs)
    trees = fit_trees(rows, classes, np.ones(len(rows)), Growth(trees=3, depth=2))
    write_trees(tmp_path / PRODUCT / TREES_FILE, trees, np.ones(3), np.zeros(3))
    again = read_trees(tmp_path).log_odds(rows)
    assert again == pytest.approx(tree_odds(trees, rows), abs=1e-3)


def test_a_stack_puts_both_judgements_together(run: Path, tmp_path: Path) -> None:
    """Where the trees say nothing the model's judgement decides, and the other way round."""
    chance = np.random.default_rng(1)
    pairs, _ = generated_pairs()
    classes = chance.integers(0, 4, len(pairs))
    signs = np.eye(4)[classes][:, :3] * 2 - 1
    is_read = np.arange(len(pairs)) % 2 == 0
    odds = np.where(is_read[:, None], 0.0, signs).astype(np.float32)
    read = np.where(is_read[:, None], signs, 0.0).astype(np.float32)
    rows = features_of(pairs)
    columns = stack_features(rows, odds, read).astype(np.float64)
    weights = fit_classes(columns, classes, np.ones(len(pairs)), 0.1)
    write_arrays(
        tmp_path / PRODUCT / STACK_FILE, {"weights": weights, "model": np.array("pairs:1")}
    )
    stack = read_stack(tmp_path)
    assert stack.model == "pairs:1"
    chances = probabilities(stack.log_odds(rows, odds, read))[:, REPLACES]
    right = classes == REPLACES
    for half in (is_read, ~is_read):
        assert chances[half & right].min() > chances[half & ~right].max()


def labelled(*newer: str) -> list[Labelled]:
    """What is said later of the blue van, each time that it replaces."""
    return [
        Labelled(
            pair_of("Kim owns the blue van.", text, 0.8),
            *(REPLACES, HELD_OUT, "stories", "a01", "facts", "van", f"van/{number}"),
        )
        for number, text in enumerate(newer)
    ]


def test_what_is_evaluated_is_what_the_product_says(run: Path, tmp_path: Path) -> None:
    """With trees alone, and with all that a run has."""
    pairs = labelled("Rafi owns the blue van now.", "Rafi owns the blue van instead.")
    assert judge_all(run, pairs).keys() == {"features"}
    make_judge(tmp_path / PRODUCT)
    judged, judge = judge_all(tmp_path, pairs), PairJudge(tmp_path / PRODUCT)
    for name, verdicts in (
        ("features", judge.judge_features([pair.pair for pair in pairs])),
        ("stacked", judge.judge([pair.pair for pair in pairs])),
    ):
        shares = [verdict.replaces for verdict in verdicts]
        assert judged[name].tolist() == pytest.approx(shares, abs=1e-4)
    # Each has one that it may replace, so there is no rival.
    assert judged["beside rivals"].tolist() == pytest.approx(judged["stacked"].tolist(), abs=1e-2)


def test_rivals_share_what_one_statement_replaces(tmp_path: Path) -> None:
    make_judge(tmp_path / PRODUCT)
    (one,) = labelled("Rafi owns the blue van instead.")
    rival = replace(one.pair, older=say("Teo owns the blue van.", 1))
    pairs = [one, replace(one, pair=rival)]
    judged = judge_all(tmp_path, pairs)
    assert sum(judged["beside rivals"]) <= 1.0 < sum(judged["stacked"])


def test_perfect_labels_bring_what_holds_first() -> None:
    """In the order that the rule makes of them; without links the older one is nearer."""
    told = {"Rafi owns the staging database.": "01", "Kim took the database over.": "05"}
    facts = [
        {"text": text, "when": f"2026-03-{day}T09:00:00+00:00", "type": "semantic"}
        for text, day in told.items()
    ]
    question = {
        "q": "who owns the staging database?",
        "now": "2026-03-20T09:00:00+00:00",
        "kind": "current",
        "answer": ["Kim"],
        "stale": ["Rafi"],
    }
    story = {"id": "s", "sessions": [], "facts": facts, "questions": [question]}
    labels = guess_labels(story)
    assert labels == {tuple(told): REPLACES}
    right = {name: dict(ask_changes(story, make(labels))) for name, make in JUDGES.items()}
    assert right["labels"]["changes, facts"]
    assert not right["no links"]["changes, facts"]


def test_a_file_that_is_missing_names_its_step(run: Path, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"tools\.judge trees"):
        read_trees(tmp_path)
    with pytest.raises(SystemExit, match=r"tools\.judge build"):
        product_model(run)
    with pytest.raises(SystemExit, match=r"tools\.judge stack"):
        read_stack(run)


def test_a_statement_is_read_with_its_speaker_and_the_turn_before() -> None:
    """In training as by the product."""
    asked = "When is the standup?"
    said = say("It moved to ten", 0, "Ann", asked)
    assert read_form(said) == "Ann: It moved to ten\n(before: When is the standup?)"
    for one in (said, say("It moved to ten", 0, "assistant", asked), say("It moved to ten", 0)):
        assert pair_text(*words_of(one)) == read_form(one)
