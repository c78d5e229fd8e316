"""Texts as memories, for measurements: written to truth in bulk, with their vectors.

In: texts. Out: a namespace that holds them. It goes round `remember`, whose own cost is measured
elsewhere: no dedupe, no links.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from anaphora.store.hashing import hash_text
from anaphora.store.records.ids import RecordIds
from anaphora.store.records.rows import STANDS_ALONE
from anaphora.store.records.store import Records
from anaphora.store.records.vectors import RecordVectors, VectorRow
from anaphora.values.memories import MemoryRecord

__all__ = ["NOW", "keep_with"]

NOW = datetime(2026, 4, 30, 12, 0, tzinfo=UTC)
_STEP = 2_000


def keep_with(
    records: Records,
    vectors: RecordVectors,
    embedder: str,
    texts: Sequence[str],
    parts: Sequence[NDArray[np.floating]],
) -> None:
    """Keep texts with the vectors that they have, as memories of now."""
    ids = RecordIds(lambda: NOW)
    for start in range(0, len(texts), _STEP):
        some = range(start, min(start + _STEP, len(texts)))
        rows = []
        with records.change() as work:
            for at in some:
                one = MemoryRecord(
                    ids(), texts[at], "semantic", NOW, NOW, NOW, 0,
                    category=f"c{at % 20}", tags=(f"t{at % 7}",),
                )  # fmt: skip
                work.add(one, STANDS_ALONE)
                for number, part in enumerate(parts[at]):
                    data = np.asarray(part, "<f2").tobytes()
                    rows.append(VectorRow(one.id, number, hash_text(one.text), data))
            work.flush()
            work.keep_vectors(embedder, rows)
