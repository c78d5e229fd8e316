"""Measure models by bare cosine: `python -m tools.models evaluate --data FOLDER [MODEL …]`.

A model is a folder as the product reads it (`model.onnx`, `manifest.json`): `RUN/float` after
`train`, what `build` wrote; where none is named, both networks that ship, as the product uses them.
Texts are cut as the product cuts them; a turn's cosine is that of its best part. Out:
`measured.json` and a table. `recall` is the share of a question's evidence in the first ten, the
others the share of questions that have a right one first, in the first three, in the first ten.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from bench.embedder import KeptEmbedder
from tools.models.asked import Pool
from tools.models.measured_sets import measured_sets

from anaphora.embed.base import Embedder
from anaphora.embed.bundled import Bundled
from anaphora.embed.minilm import MiniLM

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / ".models"
_COLUMNS = {
    **{name: f"{{{name}}}" for name in ("model", "set", "lane", "questions")},
    "recall@10": "{recall:.3f}",
    "first": "{first:.3f}",
    "first 3": "{three:.3f}",
    "first 10": "{ten:.3f}",
}


@dataclass(frozen=True, slots=True)
class Measured:
    """Of a set's lane: how many questions, and the shares."""

    model: str
    set: str
    role: str
    lane: str
    questions: int
    recall: float
    first: float
    three: float
    ten: float


@dataclass(frozen=True, slots=True)
class Placed:
    """A question: its evidence's share in the first ten, and the place of the best, from 1."""

    recall: float
    best: int


def main(words: list[str]) -> None:
    """Measure, print and write."""
    chosen = _arguments().parse_args(words)
    models: dict[str, Embedder] = {}
    if chosen.shipped or not chosen.models:
        models["shipped"] = Bundled()
    models |= {f"{path.parent.name}/{path.name}": MiniLM(path) for path in chosen.models}
    plain = []
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    for name, model in models.items():
        plain += [asdict(row) for row in measure(KeptEmbedder(model), name, chosen)]
        chosen.out.write_text(json.dumps({"rows": plain}, indent=1) + "\n", "utf-8")
    print("\n" + markdown(_COLUMNS, plain))


def measure(model: Embedder, name: str, chosen: argparse.Namespace) -> list[Measured]:
    """The rows of a model, by set and lane."""
    rows = []
    for one in measured_sets(chosen.data, chosen.corpus, "text"):
        began = time.perf_counter()
        placed: dict[tuple[str, str], list[Placed]] = {}
        for pool in one.read():
            found = place_questions(pool, model)
            for label in _labels(one.name, pool):
                placed.setdefault((label, pool.lane), []).extend(found)
        rows += [
            _row(name, label, one.role, lane, found)
            for (label, lane), found in sorted(placed.items())
            if found
        ]
        print(f"{name}: {one.name}, {time.perf_counter() - began:.0f} s", flush=True)
    return rows


def place_questions(pool: Pool, model: Embedder) -> list[Placed]:
    """Where the evidence of each question of a pool stands by cosine."""
    parts = model.embed(pool.passages)
    owner = np.repeat(np.arange(len(parts)), [len(own) for own in parts])
    vectors = np.concatenate(parts)
    found = []
    for one in pool.asked:
        query = model.embed_query(one.query)
        cosines = np.full(len(parts), -1.0)
        np.maximum.at(cosines, owner, vectors @ query)
        order = np.argsort(-cosines, kind="stable").tolist()
        first_ten = one.positives.intersection(order[:10])
        best = next(place for place, at in enumerate(order, 1) if at in one.positives)
        found.append(Placed(len(first_ten) / len(one.positives), best))
    return found


def markdown(columns: Mapping[str, str], rows: Iterable[Mapping[str, Any]]) -> str:
    """A table of rows: the form of each column by its head."""
    lines = [" | ".join(columns), "|".join("---" for _ in columns)]
    lines += [" | ".join(form.format(**row) for form in columns.values()) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def _labels(name: str, pool: Pool) -> list[str]:
    if not pool.author:
        return [name]
    return [name, f"{name} by {pool.author}", f"{name} in {pool.language}"]


def _row(model: str, label: str, role: str, lane: str, found: Sequence[Placed]) -> Measured:
    best = np.array([one.best for one in found])
    return Measured(
        model=model,
        set=label,
        role=role,
        lane=lane,
        questions=len(found),
        recall=round(float(np.mean([one.recall for one in found])), 4),
        first=round(float((best == 1).mean()), 4),
        three=round(float((best <= 3).mean()), 4),
        ten=round(float((best <= 10).mean()), 4),
    )


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.models evaluate", description=__doc__)
    add = parser.add_argument
    add("models", type=Path, nargs="*", help="folders, by default the model that ships")
    add("--data", type=Path, help="folder of the public sets, by default none")
    add("--shipped", action="store_true", help="also the model that ships")
    add("--corpus", type=Path, default=ROOT / "corpus", help="folder of the corpus")
    add("--out", type=Path, default=OUT / "measured.json", help="where to write")
    return parser
