"""Everything that remembering needs, put together over one truth, with an exact search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np

from anaphora import Embedder, MemoryRecord, NewMemory, Remembered, SurvivingSource, Vectors
from anaphora.embed.service import EmbedderService, EmbedderSpec, spec_for
from anaphora.ingest.judging import PairJudge
from anaphora.ingest.linking import Near
from anaphora.ingest.memories import MemoryEraser, MemoryWriter
from anaphora.store.db.engine import Database
from anaphora.store.db.statements import delete
from anaphora.store.records.ids import RecordIds
from anaphora.store.records.rows import RecordLink
from anaphora.store.records.store import Records
from anaphora.store.records.vectors import RecordVectors


def drop_vectors(vectors: RecordVectors, embedder: str) -> int:
    """Delete every vector of an embedder; how many rows that were."""
    with vectors.truth.write(vectors.namespace) as write:
        return delete(write.connection, "vector", (("embedder", 1),), (embedder,))


@dataclass
class Desk:
    """Remembering and forgetting in one namespace; `threads` holds (conversation, index): text."""

    truth: Database
    clock: Callable[[], datetime]
    embedder: str | Embedder | EmbedderSpec = "hashing"
    namespace: str = "default"
    threads: dict[tuple[str, int], str] = field(default_factory=dict)
    judge: PairJudge = field(default_factory=PairJudge)
    loaded: EmbedderService | None = None

    def __post_init__(self) -> None:
        self.records = Records(self.truth, self.namespace)
        self.vectors = RecordVectors(self.truth, self.namespace)
        given = self.embedder
        spec = given if isinstance(given, EmbedderSpec) else spec_for(given)
        self.service = self.loaded or EmbedderService(spec)
        self.remembering = MemoryWriter(
            self.records,
            self.vectors,
            self.service,
            self.neighbours,
            self.judge.judge_features,
            clock=self.clock,
            ids=RecordIds(self.clock),
        )
        self.forgetting = MemoryEraser(
            self.records,
            clock=self.clock,
            survivors=lambda texts: [
                SurvivingSource("turn", *at)
                for text in texts
                for at, said in self.threads.items()
                if text in said
            ],
            has_turn=lambda conversation_id, index: (conversation_id, index) in self.threads,
            with_text=self.records.with_text,
        )

    def warm(self) -> Desk:
        """The same desk, its embedder loaded."""
        self.service.ready()
        return self

    def say(self, text: str, **fields: Any) -> Remembered:
        """Remember one memory."""
        return self.remembering.remember(NewMemory(text, **fields))

    def forget(self, record_id: str | None = None, **fields: Any) -> Any:
        """Forget memories."""
        return self.forgetting.forget(record_id, **fields)

    def get(self, record_id: str) -> MemoryRecord:
        """A record as truth has it."""
        return self.records.get(record_id)

    def links(self, *record_ids: str) -> list[RecordLink]:
        """The links of these memories."""
        return list(self.records.links(record_ids))

    def neighbours(self, rows: Vectors, closer: float) -> Sequence[Sequence[Near]]:
        """What an index would answer: the ten nearest to each row, from truth itself."""
        owners: list[str] = []
        matrices = []
        for batch in self.vectors.get_all(self.service.name):
            owners += batch.record_ids
            matrices.append(np.frombuffer(batch.data, "<f2").reshape(len(batch.parts), -1))
        if not owners:
            return [[] for _ in rows]
        cosines = rows @ np.concatenate(matrices).astype(np.float32).T
        return [
            [(owners[n], float(row[n])) for n in np.argsort(-row)[:10].tolist() if row[n] >= closer]
            for row in cosines
        ]
