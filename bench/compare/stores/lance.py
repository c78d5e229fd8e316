"""LanceDB's own hybrid search: its full-text index and vectors, joined by its `RRFReranker`.

The full-text index has LanceDB's defaults (stems and stop words of English). At these sizes vectors
are scanned exactly, as LanceDB does without an index.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import lancedb
from lancedb.index import FTS
from lancedb.rerankers import RRFReranker

from bench.compare.store import Opening, Texts

__all__ = ["Lance"]

_BULK = 100
"""From so many texts on they are a bulk: the index is brought up to date after it."""


class Lance:
    """A local database."""

    def __init__(self, opening: Opening) -> None:
        self._vectors = opening.vectors
        self._database: Any = lancedb.connect(str(opening.folder / "lance"))
        self._opened: dict[str, Any] = {}
        self._fusion = RRFReranker()

    @property
    def embedding(self) -> float:
        """Seconds inside the embedder."""
        return self._vectors.seconds

    def add(self, space: str, texts: Texts) -> None:
        """`table.add`; after a bulk `optimize`, as its guide says."""
        vectors = self._vectors([text for _, text, _ in texts])
        rows = [
            {"id": one, "text": text, "vector": vector}
            for (one, text, _), vector in zip(texts, vectors, strict=True)
        ]
        table = self._of(space)
        if table is None:
            table = self._opened[space] = self._database.create_table(space, rows)
            table.create_index("text", config=FTS())
        else:
            table.add(rows)
            if len(rows) >= _BULK:
                table.optimize()

    def search(self, space: str, query: str, k: int) -> list[str]:
        """Hybrid search: `k` of words, `k` of vectors, fused, cut to `k`."""
        vector = self._vectors([query])[0]
        found = (
            self._of(space)
            .search(query_type="hybrid")
            .vector(vector)
            .text(query)
            .rerank(self._fusion)
            .limit(k)
            .select(["id"])
            .to_list()
        )
        return [row["id"] for row in found]

    def every(self, space: str) -> list[tuple[str, str]]:
        """The whole table."""
        table = self._of(space)
        if table is None:
            return []
        found = table.to_arrow().select(["id", "text"]).to_pylist()
        return [(row["id"], row["text"]) for row in found]

    def delete(self, space: str, item: str) -> None:
        """`table.delete`."""
        self._of(space).delete(f"id = '{item}'")

    def purge(self) -> None:
        """`optimize` that removes old versions at once: the documented way to free their space."""
        for table in self._opened.values():
            table.optimize(cleanup_older_than=timedelta(0), delete_unverified=True)

    def close(self) -> None:
        """Let go of the tables."""
        self._opened.clear()

    def _of(self, space: str) -> Any:
        if space not in self._opened:
            try:
                self._opened[space] = self._database.open_table(space)
            except ValueError:
                return None
        return self._opened[space]
