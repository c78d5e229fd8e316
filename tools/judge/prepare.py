"""Write what the pair model is trained on: `python -m tools.judge prepare --run FOLDER`.

In: the pairs that are trained on, and the trees, which say what is likely to be mistaken; with
--model a folder that `train` wrote, which says it better of what the trees leave undecided. Out:
`pairs.jsonl` of the run's folder.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tools.judge.examples import (
    PAIRS_FILE,
    PairExample,
    examples_of,
    read_examples,
)
from tools.judge.folders import RUN, read_trees
from tools.judge.homes import (
    OTHER,
    REPLACES,
    TRAINED,
    Labelled,
    change_pairs,
    group_pairs,
    kept_vectors,
    read_homes,
)
from tools.judge.trees import feature_rows
from tools.models.examples import write_lines
from tools.reader.reading import OnnxReader

from anaphora.ingest.judging import is_english, read_form
from anaphora.rank.pairs import CalibratedTrees, is_undecided, probabilities
from anaphora.reading.inputs import Inputs
from anaphora.reading.model import PAIRS

UNDECIDED = 0.05
"""The probability of the trees from which on the model is asked, too."""
_ROWS = 20_000


def main(words: list[str]) -> None:
    """Write the examples."""
    parser = argparse.ArgumentParser(prog="python -m tools.judge prepare", description=__doc__)
    parser.add_argument("--run", type=Path, default=RUN, help="folder of the run")
    parser.add_argument("--vectors", type=Path, help="folder that keeps vectors")
    parser.add_argument("--model", type=Path, help="a trained model, by default none")
    chosen = parser.parse_args(words)
    trees = read_trees(chosen.run)
    vectors = kept_vectors(chosen.vectors)
    homes = [pair for home in read_homes((TRAINED,), vectors) for pair in home]
    written = [*group_pairs(vectors), *change_pairs(vectors)]
    pairs = [*homes, *(pair for pair in written if pair.part == TRAINED)]
    hardness = feature_chances(trees, pairs)[:, REPLACES]
    if chosen.model:
        _ask(chosen.model, pairs, hardness)
    write_lines(chosen.run / PAIRS_FILE, examples_of(pairs, hardness.tolist()))
    print_counts(read_examples(chosen.run))


def print_counts(examples: Sequence[PairExample]) -> None:
    """Print how many examples and labels there are of each source."""
    print(Counter(example.source for example in examples))
    print(Counter((example.source, label) for example in examples for label in example.labels))


def feature_chances(trees: CalibratedTrees, pairs: Sequence[Labelled]) -> Any:
    """What the trees give pairs, (n, 3)."""
    rows = feature_rows(pairs)
    parts = [rows[start : start + _ROWS] for start in range(0, len(rows), _ROWS)]
    return np.concatenate([probabilities(trees.log_odds(part)) for part in parts])


def is_read(pair: Labelled, odds: Any) -> bool:
    """Whether the model is to read a pair with these log-odds by its features."""
    return is_english(pair.pair) and is_undecided(pair.pair, odds)


def model_odds(model: Path, pairs: Sequence[Labelled]) -> Any:
    """The model's log-odds of pairs, (n, 3)."""
    inputs = Inputs()
    read = [
        inputs.change("", *(read_form(statement) for statement in (pair.older, pair.newer)))
        for pair in (labelled.pair for labelled in pairs)
    ]
    return OnnxReader(model).logits(read, PAIRS)


def _ask(model: Path, pairs: Sequence[Labelled], hardness: Any) -> None:
    """Add the model's opinion of what may be mistaken to that of the trees."""
    doubts = [
        number
        for number, pair in enumerate(pairs)
        if pair.label == OTHER and hardness[number] >= UNDECIDED and is_english(pair.pair)
    ]
    chances = probabilities(model_odds(model, [pairs[number] for number in doubts]))
    hardness[doubts] += chances[:, REPLACES]
