"""Vectors are found by their codes first, to the bit, and by LanceDB's graph as they multiply."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from anaphora.index.vectors import ann
from anaphora.index.vectors import scan as memory_scan
from anaphora.index.vectors.ann import AnnStore, available
from anaphora.index.vectors.matrix import Matrix, best_of, to_float16
from anaphora.index.vectors.scan import Scan

pytestmark = pytest.mark.internal

WIDTH = 48
Floats = NDArray[np.float32]


def _units(rng: np.random.Generator, count: int, spread: float) -> Floats:
    """Unit vectors, the closer to one another the smaller `spread` is; some are equal."""
    rows = rng.standard_normal(WIDTH) + spread * rng.standard_normal((count, WIDTH))
    rows[rng.integers(0, count, count // 8)] = rows[0]
    unit: Floats = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


def _matrix(rng: np.random.Generator, texts: int, spread: float, most_parts: int) -> Matrix:
    matrix = Matrix(WIDTH)
    counts = rng.integers(1, most_parts + 1, texts)
    rows = _units(rng, int(counts.sum()), spread)
    blobs = [to_float16(own) for own in np.split(rows, np.cumsum(counts)[:-1])]
    middle = texts // 3
    for some in (range(middle), range(middle, texts)):
        matrix.add([f"t{n}".encode() for n in some], [blobs[n] for n in some])
    return matrix


@pytest.fixture
def _small_is_big(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_scan, "WORTH", 32)
    monkeypatch.setattr(memory_scan, "STEP", 64)
    monkeypatch.setattr(memory_scan, "FEW", 8)


SIZES = st.integers(20, 400)
SPREADS = st.sampled_from([0.001, 0.05, 1.0, 8.0])


@pytest.mark.usefixtures("_small_is_big")
@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), SIZES, SPREADS, st.integers(1, 4), st.integers(1, 40))
def test_the_best_are_those_of_a_whole_scan(
    seed: int, texts: int, spread: float, parts: int, limit: int
) -> None:
    """However alike the vectors, the best of any subset and their cosines are exact, ties too."""
    rng = np.random.default_rng(seed)
    matrix = _matrix(rng, texts, spread, parts)
    scan = Scan(matrix)
    for step in range(3):
        vector = _units(rng, 2, spread)[1] if step % 2 else matrix.view().first_part(0)
        every = matrix.view().best(vector).astype(np.float64)
        kept = np.flatnonzero(rng.random(texts) < rng.choice([0.1, 0.6, 1.0]))
        wanted = best_of(kept, every[kept], limit)
        found = scan.find_nearest(vector, kept, limit)
        assert kept[found.rows].tolist() == wanted.rows.tolist()
        assert found.cosines.tolist() == wanted.cosines.tolist()
        # Part by part: the best comes last.
        _, close_texts, cosines = scan.find_pairs(vector[None, :], 0.8)
        pairs = sorted(zip(close_texts.tolist(), cosines.tolist(), strict=True))
        close = np.flatnonzero(every >= 0.8).tolist()
        assert dict(pairs) == dict(zip(close, every[close].tolist(), strict=True))


@pytest.mark.usefixtures("_small_is_big")
@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32), SIZES, SPREADS, st.integers(1, 4), st.sampled_from([0.3, 0.8, 0.99]))
def test_all_that_is_close_to_several_vectors_is_found(
    seed: int, texts: int, spread: float, parts: int, closer: float
) -> None:
    """However the vectors lie, every close pair is found, with its cosine, and none that is not."""
    rng = np.random.default_rng(seed)
    matrix = _matrix(rng, texts, spread, parts)
    scan = Scan(matrix)
    for _ in range(2):
        two = matrix.view().parts[:2].astype(np.float32)
        vectors = np.concatenate((_units(rng, 3, spread), two))
        found: dict[tuple[int, int], float] = {}
        columns = (column.tolist() for column in scan.find_pairs(vectors, closer))
        for at, text, cosine in zip(*columns, strict=True):
            assert cosine >= closer
            found[at, text] = max(cosine, found.get((at, text), -1.0))
        for at, vector in enumerate(vectors):
            every = matrix.view().best(vector)
            for text in np.flatnonzero(every >= closer + 1e-5).tolist():
                assert found[at, text] == pytest.approx(float(every[text]), abs=1e-5)
        # The second time some parts are newer than the codes.
        matrix.add(
            [f"more{n}".encode() for n in range(40)],
            [to_float16(r[None]) for r in _units(rng, 40, spread)],
        )


@pytest.mark.usefixtures("_small_is_big")
def test_questions_that_wait_are_scanned_with_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """One product serves them all; each gets its exact best, also of texts that came meanwhile."""
    rng = np.random.default_rng(3)
    matrix = _matrix(rng, 300, 1.0, 3)
    scan, vectors, scanned = Scan(matrix), [*_units(rng, 3, 1.0)], list[int]()
    estimate = Scan._estimate

    def counted(self: Scan, asked: Floats, parts: NDArray[np.float16]) -> object:
        scanned.append(len(asked))
        return estimate(self, asked, parts)

    monkeypatch.setattr(Scan, "_estimate", counted)
    with ExitStack() as waiting:
        for vector in vectors:
            waiting.enter_context(scan.waiting(vector))
        for products in ([3], [3, 1, 1, 1]):
            every = np.arange(len(matrix))
            for vector in vectors:
                wanted = best_of(every, matrix.view().best(vector).astype(np.float64), 5)
                found = scan.find_nearest(vector, every, 5, every=True)
                assert found.rows.tolist() == wanted.rows.tolist()
                assert found.cosines.tolist() == wanted.cosines.tolist()
            assert scanned == products
            matrix.add([b"newer"], [to_float16(vectors[0][None])])


def test_a_vector_takes_little_memory_and_loses_nothing() -> None:
    """With its codes it takes 1.2 KB, and cosines are those of the stored numbers to the bit."""
    count, width = 6_000, 384
    rows = np.random.default_rng(5).standard_normal((count, width)).astype("<f2")
    data, vector = rows.tobytes(), rows[9].astype(np.float32)
    tracemalloc.start()
    try:
        matrix = Matrix(width)
        matrix.append(data, np.ones(count, np.int64))
        scan = Scan(matrix)
        for _ in range(2):
            nearest = scan.find_nearest(vector, np.arange(count), 10)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 1_200 * count
    wanted = np.vecdot(rows.astype(np.float32), vector)
    assert nearest.cosines.tolist() == np.sort(wanted)[::-1][:10].tolist()
    assert matrix.view().best(vector).tolist() == wanted.tolist()


SHORT = 16


def _seeded(first: int, count: int) -> Floats:
    rows = np.random.default_rng(first).standard_normal((count, SHORT))
    unit: Floats = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype("f4")
    return unit


def _batch(first: int, count: int) -> Iterator[tuple[NDArray[np.int64], Floats]]:
    yield np.arange(first, first + count), _seeded(first, count)


@pytest.mark.skipif(not available(), reason="the extra `large` is not installed")
def test_few_more_leave_the_graph_and_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is beside the graph is found as what is in it, until an eighth more makes it anew."""
    monkeypatch.setattr(ann, "INDEX_FROM", 300)
    store = AnnStore(tmp_path, "some", SHORT)
    known: list[tuple[int, int, int]] = []
    first = 0
    for count, indexed in ((200, 0), (2_800, 3_000), (100, 3_000), (200, 3_000), (100, 3_400)):
        meta = store.extend(_batch(first, count), first + count)
        known.append((first, first + count, count))
        first += count
        assert (meta.count, meta.indexed) == (first, indexed)
        assert store.open() == meta
        for start, _, some in known:
            wanted = _seeded(start, some)[some // 2]
            keys, cosines, _ = store.search(wanted, 5)
            assert keys[0] == start + some // 2
            assert cosines[0] == pytest.approx(1.0, abs=1e-3)
