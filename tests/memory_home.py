"""A small home for tests of the memory lane: real truth, a real index, hashed words as vectors."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from anaphora import Embedder, MemoryRecord
from anaphora.embed.service import EmbedderService, spec_for
from anaphora.index.memories.index import MemoryIndex
from anaphora.recall.memories import MemoryRecall
from anaphora.recall.memory_source import MemorySource
from anaphora.settings import EXACT_CAP
from anaphora.store.db.engine import open_database
from anaphora.store.hashing import hash_text
from anaphora.store.records.ids import RecordIds
from anaphora.store.records.rows import same_key_of
from anaphora.store.records.store import Records
from anaphora.store.records.vectors import RecordVectors, VectorRow
from anaphora.testing import WordHashingEmbedder
from anaphora.values.memories import HalfLives

# Two homes over one truth must not give the same ids, nor two processes.
_SEEDS = itertools.count()
NOW = datetime(2026, 4, 30, 12, 0, tzinfo=UTC)


class MemoryHome:
    """Truth of one namespace, and as many indexes over it as a test likes."""

    def __init__(
        self, root: Path, *, cap: int | None = EXACT_CAP, embedder: Embedder | None = None
    ) -> None:
        self.root = root
        self.cap = cap
        self.now = NOW
        self.truth = open_database(root / "anaphora.db")
        self.records = Records(self.truth, "default")
        self.vectors = RecordVectors(self.truth, "default")
        self.service = EmbedderService(spec_for(embedder or WordHashingEmbedder(64)))
        self.half_lives = HalfLives()
        self._indexes: list[MemoryIndex] = []
        chance = random.Random(f"{os.getpid()}:{next(_SEEDS)}")
        self._ids = RecordIds(lambda: self.now, chance.getrandbits)
        self.index = self.open_index()

    def open_index(self, name: str = "index") -> MemoryIndex:
        index = MemoryIndex(
            self.root / name,
            self.records,
            self.vectors,
            (self.service.name, self.service.dimensions),
            cap=self.cap,
            background=False,
        )
        self._indexes.append(index)
        return index

    def lane(self, index: MemoryIndex | None = None) -> MemoryRecall:
        clock: Callable[[], datetime] = lambda: self.now  # noqa: E731 - it reads the present one
        source = MemorySource(self.records, index or self.index, self.service, self.half_lives)
        return MemoryRecall(source, clock)

    def put(self, text: str, *, embed: bool = True, days_ago: float = 0.0, **fields: object) -> str:
        """Write a memory just as given (no dedupe), with its vectors."""
        at = self.now - timedelta(days=days_ago)
        values: dict[str, object] = {
            "id": self._ids(),
            "text": text,
            "type": "semantic",
            "created_at": at,
            "last_reinforced": at,
            "valid_from": at,
            "seq": 0,
        }
        record = MemoryRecord(**{**values, **fields})  # type: ignore[arg-type]
        with self.records.change() as work:
            work.add(record, same_key_of(record))
        if embed:
            self.embed(record.id, text)
        return record.id

    def embed(self, record_id: str, text: str) -> None:
        (parts,) = self.service.embed([text])
        assert isinstance(parts, np.ndarray)
        rows = [
            VectorRow(record_id, n, hash_text(text), part.astype("<f2").tobytes())
            for n, part in enumerate(parts)
        ]
        self.vectors.put(self.service.name, rows)

    def change(self, record_id: str, **fields: Any) -> None:
        with self.records.change() as work:
            work.load(ids=[record_id])
            work.change(record_id, **fields)

    def hide(self, record_id: str) -> None:
        with self.records.change() as work:
            work.load(ids=[record_id])
            work.hide(record_id, self.now)

    def erase(self, *record_ids: str) -> None:
        with self.records.change() as work:
            work.erase(record_ids)

    def close(self) -> None:
        for index in self._indexes:
            index.close()
        self.truth.close()


@contextmanager
def memory_home(root: Path, cap: int | None = EXACT_CAP) -> Iterator[MemoryHome]:
    home = MemoryHome(root, cap=cap)
    try:
        yield home
    finally:
        home.close()
