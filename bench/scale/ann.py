"""LanceDB's graph by itself: `python -m bench.scale.ann --home DIR [--size 1000000]`.

In: a home that `bench.scale` filled past the cap. Out: bench/results/scale_ann.json and .md: of the
ten nearest by comparing all vectors, the share that the graph finds, and what both take. Questions
are stored vectors with noise added, so they lie where memories lie.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.figures import Figure, keep, percentile

_QUESTIONS = 100
_NEAREST = 10
_NOISE = 0.03


def main() -> None:
    """Ask, compare, keep."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--size", type=int, default=1_000_000)
    chosen = parser.parse_args()
    import lancedb

    memories = chosen.home / f"size-{chosen.size}" / "index" / "default" / "memories"
    (folder,) = (memories / "ann").glob("*/vectors.lance")
    table = lancedb.connect(folder.parent).open_table("vectors")
    held = table.to_arrow()
    flat = held.column("vector").combine_chunks().flatten()
    vectors = np.asarray(flat, dtype=np.float32).reshape(held.num_rows, -1)
    keys = np.asarray(held.column("key").to_pylist())
    rng = np.random.default_rng(5)
    asked = vectors[rng.choice(len(vectors), _QUESTIONS, replace=False)]
    asked = asked + rng.normal(0, _NOISE, asked.shape).astype(np.float32)
    found, by_graph, by_scan = [], [], []
    for question in asked / np.linalg.norm(asked, axis=1, keepdims=True):
        began = time.perf_counter()
        best = np.argpartition(-(vectors @ question), _NEAREST)[:_NEAREST]
        by_scan.append(1000 * (time.perf_counter() - began))
        began = time.perf_counter()
        near: Any = table.search(question, vector_column_name="vector")
        near = near.distance_type("cosine")
        got = near.limit(_NEAREST).to_arrow().column("key").to_pylist()
        by_graph.append(1000 * (time.perf_counter() - began))
        found.append(len(set(got) & set(keys[best].tolist())) / _NEAREST)
    size = sum(one.stat().st_size for one in folder.rglob("*") if one.is_file()) / 1e6
    figures = [
        Figure("vectors", float(len(vectors))),
        Figure("recall@10 of the graph against comparing all", float(np.mean(found))),
        Figure("the graph, p50", percentile(by_graph, 0.5), "ms"),
        Figure("the graph, p99", percentile(by_graph, 0.99), "ms"),
        Figure("comparing all in 32 bits, p50", percentile(by_scan, 0.5), "ms"),
        Figure("vectors and graph on disk", size, "MB"),
    ]
    keep("scale_ann", "LanceDB's graph compared with the exact scan", figures)


if __name__ == "__main__":
    main()
