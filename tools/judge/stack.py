"""Put the judgements of trees and pair model together: `python -m tools.judge stack --run FOLDER`.

In: the trees and the model as `build` wrote it (8 bits), and the homes of authors that neither was
trained on. Out: `product/stack.npz` of the run's folder.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from tools.judge.boosting import class_chances
from tools.judge.folders import PRODUCT, RUN, product_model, read_trees
from tools.judge.homes import CALIBRATED, Labelled, group_pairs, kept_vectors, read_homes
from tools.judge.prepare import is_read, model_odds
from tools.judge.trees import feature_rows, write_arrays

from anaphora.ingest.judging import STACK_FILE
from anaphora.rank.pairs import stack_features
from anaphora.reading.model import read_reader_manifest

RIDGE: Final = 1.0
WRITTEN: Final = 3.0
"""What a written pair counts; among them many more replace than in a home."""
_STEPS: Final = 30


def main(words: list[str]) -> None:
    """Fit and write."""
    parser = argparse.ArgumentParser(prog="python -m tools.judge stack", description=__doc__)
    parser.add_argument("--run", type=Path, default=RUN, help="folder of the run")
    parser.add_argument("--vectors", type=Path, help="folder that keeps vectors")
    chosen = parser.parse_args(words)
    trees, model = read_trees(chosen.run), product_model(chosen.run)
    vectors = kept_vectors(chosen.vectors)
    homes = [pair for home in read_homes((CALIBRATED,), vectors) for pair in home]
    written = [pair for pair in group_pairs(vectors) if pair.part == CALIBRATED]
    pairs = [*(pair for pair in homes if pair.source == "stories"), *written]
    rows = feature_rows(pairs)
    odds = trees.log_odds(rows)
    doubts = [number for number, pair in enumerate(pairs) if is_read(pair, odds[number])]
    doubtful = [pairs[number] for number in doubts]
    read = model_odds(model, doubtful)
    weights = fit_stack(doubtful, stack_features(rows[doubts], odds[doubts], read))
    name = read_reader_manifest(model).name
    arrays = {"weights": weights.astype(np.float32), "model": np.array(name)}
    write_arrays(chosen.run / PRODUCT / STACK_FILE, arrays)
    print(f"{len(doubtful)} pairs, {name}\n{weights.round(3).T.tolist()}")


def fit_stack(pairs: Sequence[Labelled], rows: Any) -> Any:
    """The weights (features, 3) of a logistic regression for several classes."""
    counts = np.array([1.0 if pair.source == "stories" else WRITTEN for pair in pairs])
    classes = np.array([pair.label for pair in pairs])
    return fit_classes(rows.astype(np.float64), classes, counts, RIDGE)


def fit_classes(rows: Any, classes: Any, counts: Any, ridge: float) -> Any:
    """By Newton's method; the last feature is the constant, which has no penalty."""
    features, rated = rows.shape[1], int(classes.max())
    targets = np.eye(rated + 1)[classes][:, :rated]
    penalty = np.tile([ridge] * (features - 1) + [1e-3], rated)
    weights = np.zeros(features * rated)
    for _ in range(_STEPS):
        chances = class_chances(rows @ weights.reshape(rated, features).T)[:, :rated]
        slope = (counts[:, None] * (chances - targets)).T @ rows
        curve = np.empty((rated, features, rated, features))
        for row in range(rated):
            for column in range(rated):
                share = chances[:, row] * ((row == column) - chances[:, column]) * counts
                curve[row, :, column, :] = (rows.T * share) @ rows
        curvature = curve.reshape(len(weights), len(weights)) + np.diag(penalty)
        weights -= np.linalg.solve(curvature, slope.ravel() + penalty * weights)
    return weights.reshape(rated, features).T
