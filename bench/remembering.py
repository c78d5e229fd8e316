"""What remembering costs over its embedding, and how much of the embedder's speed a batch keeps.

In: the shared data's conversations (or texts made here without them). Out: figures beside their
targets. The database lies in a temporary folder, with its fsyncs; the model is the bundled one.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from anaphora.embed.base import Vectors
from anaphora.embed.service import EmbedderService, spec_for
from anaphora.ingest.linking import Near, Neighbours
from anaphora.ingest.memories import MemoryWriter
from anaphora.store.db.engine import open_database
from anaphora.store.records.ids import RecordIds
from anaphora.store.records.store import Records
from anaphora.store.records.vectors import RecordVectors, VectorRow
from anaphora.values.memories import NewMemory
from bench.figures import Figure, at_least, at_most, keep
from bench.memory_texts import turns

SINGLE, MANY, VECTORS = 300, 2_000, 100_000


def _now() -> datetime:
    return datetime.now(UTC)


class _Exact:
    """The neighbours that an index would give, from a matrix in memory."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.rows = np.zeros((0, 384), np.float32)

    def __call__(self, rows: Vectors, closer: float) -> Sequence[Sequence[Near]]:
        if not self.ids:
            return [[] for _ in rows]
        cosines = rows @ self.rows.T
        return [
            [(self.ids[n], float(row[n])) for n in np.flatnonzero(row >= closer).tolist()]
            for row in cosines
        ]


def run(data: Path | None = None) -> list[Figure]:
    """All experiments. Prints and keeps the figures."""
    texts = turns(data, SINGLE + MANY)
    service = EmbedderService(spec_for("minilm"))
    service.ready()
    with tempfile.TemporaryDirectory(prefix="anaphora-bench-") as folder:
        figures = [
            *_single(Path(folder) / "one", texts[:SINGLE], service),
            *_many(Path(folder) / "many", texts[SINGLE : SINGLE + MANY], service),
            *_following(Path(folder) / "vectors"),
        ]
    keep("remembering", "The cost of remembering", figures)
    return figures


def _remember(place: Path, service: EmbedderService, near: Neighbours) -> MemoryWriter:
    truth = open_database(place / "truth.db")
    return MemoryWriter(
        Records(truth, "default"),
        RecordVectors(truth, "default"),
        service,
        near,
        clock=_now,
        ids=RecordIds(_now),
    )


def _timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _single(place: Path, texts: Sequence[str], service: EmbedderService) -> list[Figure]:
    near = _Exact()
    near.ids = [f"none{n}" for n in range(10_000)]
    rows = np.random.default_rng(1).standard_normal((10_000, 384), np.float32)
    near.rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    remember = _remember(place, service, near)
    remember.remember(NewMemory("the first one makes the database"))
    over, whole = [], []
    for text in texts:
        embedding = _timed(lambda text=text: service.embed([text]))  # type: ignore[misc]
        spent = _timed(lambda text=text: remember.remember(NewMemory(text)))  # type: ignore[misc]
        over.append((spent - embedding) * 1000)
        whole.append(spent * 1000)
    return [
        at_most("remember over its embedding, p50", statistics.median(over), 4.0, "ms"),
        Figure("remember with its embedding, p50", statistics.median(whole), "ms"),
    ]


def _many(place: Path, texts: Sequence[str], service: EmbedderService) -> list[Figure]:
    shares, speeds = [], []
    for number in range(3):
        raw = _timed(lambda: service.embed(texts))
        remember = _remember(place / str(number), service, lambda rows, _: [[] for _ in rows])
        items = [NewMemory(text) for text in texts]
        spent = _timed(lambda: remember.remember_many(items))  # noqa: B023 - called at once
        shares.append(raw / spent)
        speeds.append(len(texts) / spent)
    return [
        at_least("remember_many, share of raw embedding speed", statistics.median(shares), 0.8),
        Figure("remember_many", statistics.median(speeds), "texts/s"),
    ]


def _following(place: Path) -> list[Figure]:
    from anaphora.store.records.rules import draft_memory, put_all

    truth = open_database(place / "truth.db")
    records, vectors = Records(truth, "default"), RecordVectors(truth, "default")
    ids = RecordIds(_now)
    with records.change() as work:
        drafts = [draft_memory(NewMemory(str(n)), _now(), ids()) for n in range(1_000)]
        owners = [done.id for done in put_all(work, drafts, ids)]
    data = np.ones(384, "<f2").tobytes()
    parts = VECTORS // len(owners)
    vectors.put("e", [VectorRow(o, part, "h", data) for o in owners for part in range(parts)])
    reading = min(_timed(lambda: list(vectors.get_all("e"))) for _ in range(3))
    asking = _timed(lambda: [records.version() for _ in range(10_000)]) / 10_000
    return [
        at_most("reading 100,000 vectors", reading, 0.6, "s"),
        at_most("asking whether anything changed", asking * 1e6, 10.0, "us"),
    ]
