"""Links restatements among memories that are there: what no `remember` has brought together yet.

In: the newest memories of a namespace. Out: the links that were made. The rules are those of
`linking`: closeness only links, a pair is linked once, ever, and only then can one reinforce the
other. It never embeds, merges or deletes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from anaphora.ingest.linking import Linker, Neighbours, Vectored
from anaphora.store.records.rows import RecordLink

if TYPE_CHECKING:
    from anaphora.store.records.store import Records
    from anaphora.store.records.vectors import RecordVectors

NEWEST: Final = 5_000
"""Changes of the namespace that are looked back over: a dream comes more often than so many."""

_BATCH: Final = 256


class Relink:
    """Links in one namespace. `neighbours` gives the known memories nearest to unit vectors."""

    def __init__(
        self, records: Records, vectors: RecordVectors, embedder: str, neighbours: Neighbours
    ) -> None:
        self._records = records
        self._vectors = vectors
        self._embedder = embedder
        self._linker = Linker(vectors, embedder, neighbours)

    def run(self) -> tuple[RecordLink, ...]:
        """Look at the newest memories once; the links that are new."""
        import numpy as np

        since = max(0, self._records.version() - NEWEST)
        made: list[RecordLink] = []
        for batch in self._vectors.get_all(self._embedder, since=since, batch=_BATCH):
            rows = np.frombuffer(batch.data, "<f2").reshape(len(batch.parts), -1)
            places: dict[str, list[int]] = {}
            for place, record_id in enumerate(batch.record_ids):
                places.setdefault(record_id, []).append(place)
            group = [Vectored(one, "", rows[at].astype(np.float32)) for one, at in places.items()]
            made += self._link(group)
        return tuple(made)

    def _link(self, group: list[Vectored]) -> list[RecordLink]:
        near = self._linker.near([one.vectors for one in group])
        found = [
            Vectored(one.record_id, one.text, one.vectors, more)
            for one, more in zip(group, near, strict=True)
        ]
        ids = [one.record_id for one in found]
        with self._records.change() as work:
            work.load(ids=ids)
            before = {(one.record_id, one.other_id) for one in work.linked(ids)}
            self._linker.link(work, found)
            work.flush()
            after = work.linked(ids)
        return [one for one in after if (one.record_id, one.other_id) not in before]
