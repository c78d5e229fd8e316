"""Texts as memories, for measurements: written to truth in bulk, with their vectors.

In: texts. Out: a namespace that holds them. It goes round `remember`, whose own cost is measured
elsewhere: no dedupe, no links.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from anaphora.embed.service import EmbedderService
from anaphora.errors import EmbeddingError
from anaphora.store.hashing import hash_text
from anaphora.store.records.ids import RecordIds
from anaphora.store.records.rows import STANDS_ALONE
from anaphora.store.records.store import Records
from anaphora.store.records.vectors import RecordVectors, VectorRow
from anaphora.values.memories import MemoryRecord

__all__ = ["NOW", "keep_texts", "keep_with"]

NOW = datetime(2026, 4, 30, 12, 0, tzinfo=UTC)
_STEP = 2_000


def keep_texts(
    records: Records, vectors: RecordVectors, embedder: EmbedderService, texts: Sequence[str]
) -> None:
    """Embed texts and keep them as memories of now."""
    found = embedder.embed(texts)
    parts = []
    for one in found:
        if isinstance(one, EmbeddingError):
            raise one
        parts.append(one)
    keep_with(records, vectors, embedder.name, texts, parts)


def keep_with(
    records: Records,
    vectors: RecordVectors,
    embedder: str,
    texts: Sequence[str],
    parts: Sequence[NDArray[np.floating]],
    *,
    spread_days: float = 0.0,
) -> None:
    """Keep texts with the vectors that they have; ages spread evenly over so many days."""
    rng = random.Random(0)
    ids = RecordIds(lambda: NOW)
    for start in range(0, len(texts), _STEP):
        some = range(start, min(start + _STEP, len(texts)))
        rows = []
        with records.change() as work:
            for at in some:
                when = NOW - timedelta(days=rng.uniform(0.0, spread_days))
                one = MemoryRecord(
                    ids(), texts[at], "semantic", when, when, when, 0,
                    category=f"c{at % 20}", tags=(f"t{at % 7}",),
                )  # fmt: skip
                work.add(one, STANDS_ALONE)
                for number, part in enumerate(parts[at]):
                    data = np.asarray(part, "<f2").tobytes()
                    rows.append(VectorRow(one.id, number, hash_text(one.text), data))
            work.flush()
            work.keep_vectors(embedder, rows)
