"""Trees that correct the sum: boosting that begins with the ranking's own total.

`corrected` is `STRENGTH` times the total plus the trees: without a tree it is the order of the sum.
Raising a turn's own words or meaning never lowers its value while the rest stays (monotone
constraints); that a neighbour gains less by it, as in the sum, cannot be asked of trees.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bench.learned.features import Example

Floats = NDArray[np.float64]

# Log odds that a whole match of meaning is worth at the start.
STRENGTH: Final = 6.0
RISING: Final = (
    "own: total",
    "own: words",
    "own: meaning",
    "own: bm25",
    "own: share of the words",
)
# What a set weighs together, and one question put in another style beside one as it was asked.
SHARES: Final = {"realtalk": 358.0, "beam": 200.0, "stories": 120.0}
OTHER_STYLES: Final = 0.4

_PARAMETERS: Final[dict[str, Any]] = {
    "objective": "lambdarank",
    "lambdarank_truncation_level": 20,
    "learning_rate": 0.05,
    "num_leaves": 6,
    "min_data_in_leaf": 60,
    "feature_fraction": 0.5,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "lambda_l2": 20.0,
    "max_bin": 63,
    "num_threads": 1,
    "deterministic": True,
    "verbose": -1,
}


@dataclass(frozen=True, slots=True)
class Fit:
    """What to fit: the groups of features, and how many trees of how many ensembles."""

    groups: tuple[str, ...]
    trees: int = 80
    seeds: int = 1


class Corrected:
    """Fitted trees over the sum."""

    def __init__(self, boosters: Sequence[Any], names: Sequence[str], used: Sequence[int]) -> None:
        self._boosters = boosters
        self._total = names.index("own: total")
        self._used = list(used)

    def values(self, one: Example) -> Floats:
        """What the candidates are ordered by, shape (C,)."""
        chosen = one.values[:, self._used]
        trees = [booster.predict(chosen, raw_score=True) for booster in self._boosters]
        found: Floats = STRENGTH * one.values[:, self._total] + np.mean(trees, axis=0)
        return found

    def size(self) -> int:
        """Bytes of all trees as flat arrays: of each split its feature, threshold and children, of
        each leaf its value."""
        trees = [one for b in self._boosters for one in b.dump_model()["tree_info"]]
        leaves = sum(int(one["num_leaves"]) for one in trees)
        return 4 * leaves + 10 * leaves


def fit(names: Sequence[str], examples: Sequence[Example], chosen: Fit) -> Corrected:
    """Fit on examples that have evidence among their candidates."""
    lightgbm = _lightgbm()
    used = [at for at, name in enumerate(names) if name.split(":")[0] in chosen.groups]
    rising = [int(names[at] in RISING) for at in used]
    kept = [one for one in examples if one.right.any()]
    values = np.concatenate([one.values for one in kept])
    sizes = [len(one.rows) for one in kept]
    total = values[:, list(names).index("own: total")].astype(float)
    boosters = []
    for seed in range(chosen.seeds):
        data = lightgbm.Dataset(
            values[:, used],
            np.concatenate([one.right for one in kept]).astype(int),
            group=sizes,
            weight=np.repeat(_weights(kept), sizes),
            init_score=STRENGTH * total,
        )
        given = _PARAMETERS | {"monotone_constraints": rising, "seed": seed}
        boosters.append(lightgbm.train(given, data, chosen.trees))
    return Corrected(boosters, names, used)


def _weights(examples: Sequence[Example]) -> Floats:
    """Every set has its share, whatever number of questions was made of it."""
    own = [1.0 if one.style == "as asked" else OTHER_STYLES for one in examples]
    sums: Counter[str] = Counter()
    for one, weight in zip(examples, own, strict=True):
        sums[one.source] += weight  # type: ignore[assignment]
    found = [w * SHARES[e.source] / sums[e.source] for e, w in zip(examples, own, strict=True)]
    return np.array(found)


def _lightgbm() -> Any:
    try:
        return importlib.import_module("lightgbm")
    except ImportError as error:
        command = "pip install -r bench/learned/requirements.txt"
        raise SystemExit(f"this measurement needs LightGBM: {command}") from error
