"""Fit the trees over features of pairs: `python -m tools.judge trees --run FOLDER`.

In: the stories, groups and pairs of corpus/ that are trained on, and those that it is calibrated
on. Out: `product/trees.npz` of the run's folder, the same to the bit when it is made again.
"""

from __future__ import annotations

import argparse
import io
import random
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from tools.judge.boosting import Growth, Trees, class_chances, fit_trees
from tools.judge.folders import PRODUCT, RUN
from tools.judge.homes import (
    BOTH,
    CALIBRATED,
    OTHER,
    REPEATS,
    TRAINED,
    Labelled,
    change_pairs,
    group_pairs,
    kept_vectors,
    read_homes,
)

from anaphora.ingest.judging import TREES_FILE
from anaphora.rank.pairs import FEATURES, UNKNOWN, StatementPair, pair_features

ACROSS: Final = 0.35
"""The share of a home's pairs of two stories that is trained on; each counts the more."""
WRITTEN, WRITTEN_ACROSS, HOLDING = 2.0, 0.5, 1.5
"""What a written pair counts, one of two groups, and one whose statements both hold."""
BLANK: Final = 0.15
"""The share of pairs whose closeness is taken for unknown: so it is while vectors are made."""
SAID_AGAIN: Final = 300
"""Pairs of a statement with itself."""
GROWTH: Final = Growth(trees=400, rate=0.15, share=0.5)
_ROUNDS: Final = 400


@dataclass(frozen=True, slots=True)
class Table:
    """Features (n, features) of pairs, their classes, and what each counts."""

    rows: Any
    classes: Any
    counts: Any


def main(words: list[str]) -> None:
    """Fit, calibrate, write."""
    parser = argparse.ArgumentParser(prog="python -m tools.judge trees", description=__doc__)
    parser.add_argument("--run", type=Path, default=RUN, help="folder of the run")
    parser.add_argument("--vectors", type=Path, help="folder that keeps vectors")
    chosen = parser.parse_args(words)
    vectors = kept_vectors(chosen.vectors)
    homes = [pair for home in read_homes((TRAINED, CALIBRATED), vectors) for pair in home]
    pairs = [*homes, *group_pairs(vectors), *change_pairs(vectors)]
    trained = [pair for pair in pairs if pair.part == TRAINED]
    table = training_table([*trained, *said_again(trained)])
    trees = fit_trees(table.rows, table.classes, table.counts, GROWTH)
    near = [pair for pair in homes if pair.part == CALIBRATED and pair.source == "stories"]
    odds = tree_odds(trees, feature_rows(near))
    scale, shift = fit_scale(odds, np.array([pair.label for pair in near]))
    file = chosen.run / PRODUCT / TREES_FILE
    write_trees(file, trees, scale, shift)
    print(f"{len(table.rows)} pairs, {file.stat().st_size / 1e3:.0f} kB, {scale} {shift}")


def feature_rows(pairs: Sequence[Labelled]) -> Any:
    """The features of pairs, (n, features)."""
    rows = np.empty((len(pairs), len(FEATURES)), np.float32)
    for number, pair in enumerate(pairs):
        rows[number] = pair_features(pair.pair)
    return rows


def training_table(pairs: Sequence[Labelled], seed: int = 1) -> Table:
    """What trees are fitted to."""
    chance = np.random.default_rng(seed)
    drawn = chance.random(len(pairs)) < ACROSS
    chosen = [
        pair
        for pair, is_drawn in zip(pairs, drawn.tolist(), strict=True)
        if pair.source != "stories, far" and (is_drawn or not _is_apart(pair))
    ]
    rows = feature_rows(chosen)
    rows[chance.random(len(rows)) < BLANK, FEATURES.index("closeness")] = UNKNOWN
    counts = np.array([_count(pair) for pair in chosen])
    return Table(rows, np.array([pair.label for pair in chosen]), counts)


def said_again(pairs: Sequence[Labelled], count: int = SAID_AGAIN) -> list[Labelled]:
    """Statements that are said in the same words again: the corpus has no such pairs."""
    drawn = random.Random(count).sample(list(pairs), count)
    return [
        replace(
            pair,
            pair=StatementPair(
                pair.pair.older, replace(pair.pair.older, at=pair.pair.newer.at), 1.0
            ),
            label=REPEATS,
            source="again",
        )
        for pair in drawn
    ]


def _is_apart(pair: Labelled) -> bool:
    return pair.source == "stories" and pair.across and pair.label == OTHER


def _count(pair: Labelled) -> float:
    if _is_apart(pair):
        return 1 / ACROSS
    if pair.source in ("groups", "changes") and pair.across:
        return WRITTEN_ACROSS
    written = WRITTEN if pair.source == "groups" else 1.0
    return written * (HOLDING if pair.label == BOTH else 1.0)


def tree_odds(trees: Trees, rows: Any) -> Any:
    """The log-odds of trees that are not calibrated, (n, 3)."""
    odds = np.zeros((len(rows), trees.leaves.shape[2]))
    bits = 1 << np.arange(trees.features.shape[1])
    for features, limits, leaves in zip(trees.features, trees.limits, trees.leaves, strict=True):
        odds += leaves[(rows[:, features] > limits) @ bits]
    return odds


def fit_scale(odds: Any, classes: Any) -> tuple[Any, Any]:
    """A factor and a shift for each class's log-odds, by Newton's method on their own curves."""
    rated = odds.shape[1]
    targets = np.eye(rated + 1)[classes][:, :rated]
    scale, shift = np.ones(rated), np.zeros(rated)
    for _ in range(_ROUNDS):
        chances = class_chances(odds * scale + shift)[:, :rated]
        slope, curve = chances - targets, chances * (1 - chances)
        shift -= 0.5 * slope.mean(0) / (curve.mean(0) + 1e-6)
        scale -= 0.5 * (slope * odds).mean(0) / ((curve * odds**2).mean(0) + 1e-6)
    return scale, shift


def write_trees(file: Path, trees: Trees, scale: Any, shift: Any) -> None:
    """Write what `CalibratedTrees` reads; nothing in the file tells when."""
    write_arrays(
        file,
        {
            "features": trees.features.astype(np.uint8),
            "limits": trees.limits.astype(np.float32),
            "leaves": trees.leaves.astype(np.float16),
            "scale": np.asarray(scale, np.float32),
            "shift": np.asarray(shift, np.float32),
        },
    )


def write_arrays(file: Path, arrays: Mapping[str, Any]) -> None:
    """Write arrays as NumPy does, of no day."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(file, "w") as packed:
        for name, values in arrays.items():
            written = io.BytesIO()
            np.save(written, values, allow_pickle=False)
            packed.writestr(zipfile.ZipInfo(f"{name}.npy"), written.getvalue())
