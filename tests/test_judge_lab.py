"""The judge of pairs in the lab: features, trees, and how a model's judgement joins theirs."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tools.judge.boosting import Growth, fit_trees
from tools.judge.features import (
    FEATURES,
    OF_ONE,
    OF_PAIR,
    STACK_FILE,
    TREES_FILE,
    UNKNOWN,
    CalibratedTrees,
    Stack,
    Statement,
    StatementPair,
    features_of,
    probabilities,
    stack_features,
    statement_of,
    verdicts_of,
)
from tools.judge.homes import OTHER, REPLACES
from tools.judge.judging import PairService, read_form
from tools.judge.stack import fit_classes
from tools.judge.trees import fit_scale, tree_odds, write_arrays, write_trees

DAY = 86_400.0
NAMES = ("Kim", "Rafi", "Mira", "Ola", "Ann", "Teo")
THINGS = ("staging database", "old printer", "blue van", "front door key", "office plant")


def say(text: str, day: float, speaker: str = "", before: str = "") -> Statement:
    return statement_of(text, day * DAY, speaker, before)


def pair_of(older: str, newer: str, closeness: float = math.nan, day: float = 20) -> StatementPair:
    return StatementPair(say(older, 0), say(newer, day), closeness)


def generated_pairs() -> tuple[list[StatementPair], Any]:
    """Another owner of one thing, which replaces, and another thing of one owner."""
    pairs, classes = [], []
    for first, second, thing in product(NAMES, NAMES, THINGS):
        if first == second:
            continue
        older = f"{first} owns the {thing}."
        pairs.append(pair_of(older, f"{second} owns the {thing} now.", 0.8))
        another = THINGS[THINGS.index(thing) - 1]
        pairs.append(pair_of(older, f"{first} cleaned the {another} again.", 0.4))
        classes += [REPLACES, OTHER]
    return pairs, np.array(classes)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run with trees alone."""
    folder = tmp_path_factory.mktemp("judge")
    pairs, classes = generated_pairs()
    rows = features_of(pairs)
    trees = fit_trees(rows, classes, np.ones(len(rows)), Growth(trees=20, depth=2, ridge=1.0))
    scale, shift = fit_scale(tree_odds(trees, rows), classes)
    write_trees(folder / TREES_FILE, trees, scale, shift)
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
    changed, apart = CalibratedTrees.read(run).judge(
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
    write_trees(tmp_path / TREES_FILE, trees, np.ones(3), np.zeros(3))
    again = CalibratedTrees.read(tmp_path).log_odds(rows)
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
    write_arrays(tmp_path / STACK_FILE, {"weights": weights, "model": np.array("pairs:1")})
    stack = Stack.read(tmp_path)
    assert stack.model == "pairs:1"
    chances = probabilities(stack.log_odds(rows, odds, read))[:, REPLACES]
    right = classes == REPLACES
    for half in (is_read, ~is_read):
        assert chances[half & right].min() > chances[half & ~right].max()


def test_without_a_model_features_judge_and_it_is_said(run: Path) -> None:
    pair = pair_of("Kim owns the blue van.", "Rafi owns the blue van now.", 0.8)
    service = PairService(run)
    assert service.judge([pair]) == CalibratedTrees.read(run).judge([pair])
    assert service.failure is not None
    assert service.judged == 0


def test_a_folder_without_trees_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"tools\.judge trees"):
        PairService(tmp_path)


def test_a_statement_is_read_with_its_speaker_and_the_turn_before() -> None:
    text = read_form(say("It moved to ten", 0, "Ann", "When is the standup?"))
    assert text == "Ann: It moved to ten\n(before: When is the standup?)"
