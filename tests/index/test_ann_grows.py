"""LanceDB's graph is made anew as vectors multiply, not with every batch that comes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from anaphora.index.vectors import ann
from anaphora.index.vectors.ann import AnnStore, available

pytestmark = [
    pytest.mark.internal,
    pytest.mark.skipif(not available(), reason="the extra `large` is not installed"),
]

WIDTH = 16


def _units(first: int, count: int) -> NDArray[np.float32]:
    rows = np.random.default_rng(first).standard_normal((count, WIDTH))
    unit: NDArray[np.float32] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype("f4")
    return unit


def _batch(first: int, count: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
    yield np.arange(first, first + count), _units(first, count)


def test_few_more_leave_the_graph_and_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is beside the graph is found as what is in it, until an eighth more makes it anew."""
    monkeypatch.setattr(ann, "INDEX_FROM", 300)
    store = AnnStore(tmp_path, "some", WIDTH)
    known: list[tuple[int, int, int]] = []
    first = 0
    for count, indexed in ((200, 0), (2_800, 3_000), (100, 3_000), (200, 3_000), (100, 3_400)):
        meta = store.extend(_batch(first, count), first + count)
        known.append((first, first + count, count))
        first += count
        assert (meta.count, meta.indexed) == (first, indexed)
        assert store.open() == meta
        for start, _, some in known:
            wanted = _units(start, some)[some // 2]
            keys, cosines, _ = store.search(wanted, 5)
            assert keys[0] == start + some // 2
            assert cosines[0] == pytest.approx(1.0, abs=1e-3)
