"""A judge of pairs of a few kilobytes: trees and a stack that are fitted here, not those that ship.

Its trees have seen that another owner of a thing replaces the one before. Its stack believes the
model alone: with the tiny reader, for which "instead" replaces, it shows who has judged.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from tests.reading.tiny_reader import make_reader
from tools.judge.boosting import Growth, Trees, fit_trees
from tools.judge.homes import OTHER, REPLACES
from tools.judge.trees import fit_scale, tree_odds, write_arrays, write_trees

from anaphora.ingest.judging import STACK_FILE, TREES_FILE
from anaphora.rank.pairs import (
    Statement,
    StatementPair,
    features_of,
    stack_features,
    statement_of,
)

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


@cache
def fitted_trees() -> tuple[Trees, Any, Any]:
    """Trees of the generated pairs, with their scale and shift."""
    pairs, classes = generated_pairs()
    rows = features_of(pairs)
    trees = fit_trees(rows, classes, np.ones(len(rows)), Growth(trees=20, depth=2, ridge=1.0))
    return trees, *fit_scale(tree_odds(trees, rows), classes)


def make_trees(folder: Path) -> Path:
    """Write the folder of a judge by features alone."""
    write_trees(folder / TREES_FILE, *fitted_trees())
    return folder


def make_judge(folder: Path, *, model: str = "tiny:1") -> Path:
    """Write the folder of a judge with a model; `model` is which one its stack is fitted to."""
    make_trees(make_reader(folder))
    none = np.empty((0, 3), np.float32)
    weights = np.zeros((stack_features(features_of([]), none, none).shape[1], 3), np.float32)
    weights[3:6] = np.eye(3)
    write_arrays(folder / STACK_FILE, {"weights": weights, "model": np.array(model)})
    return folder
