"""LangGraph's stores with vector search: `InMemoryStore`, and `SqliteStore` with sqlite-vec.

In: texts, each put as {"text": …} into the namespace of its space. Out: keys.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from langgraph.store.base import PutOp  # type: ignore[import-not-found,unused-ignore]

from bench.compare.store import Opening, Texts
from bench.compare.vectors import DIMENSIONS

__all__ = ["InMemory", "OnSqlite"]


class _LangGraph:
    """What both stores share: one interface of LangGraph's."""

    def __init__(self, opening: Opening) -> None:
        self._vectors = opening.vectors
        self._store = self._open(opening)

    def _open(self, opening: Opening) -> Any:
        raise NotImplementedError

    def _index(self) -> Any:
        def embed(texts: Sequence[str]) -> list[list[float]]:
            return [row.tolist() for row in self._vectors(texts)]

        # `SqliteStore` reads `text_fields` where LangGraph's other stores read `fields`; without it
        # the whole value is embedded as JSON.
        fields = ["text"]
        return {"dims": DIMENSIONS, "embed": embed, "fields": fields, "text_fields": fields}

    @property
    def embedding(self) -> float:
        """Seconds inside the embedder."""
        return self._vectors.seconds

    def add(self, space: str, texts: Texts) -> None:
        """`put` of one, `batch` of several."""
        if len(texts) == 1:
            self._store.put((space,), texts[0][0], {"text": texts[0][1]})
            return
        for some in _without_repeats(texts):
            self._store.batch([PutOp((space,), one, {"text": text}) for one, text, _ in some])

    def search(self, space: str, query: str, k: int) -> list[str]:
        """`search` by meaning, the only way that these stores rank."""
        return [item.key for item in self._store.search((space,), query=query, limit=k)]

    def every(self, space: str) -> list[tuple[str, str]]:
        """`search` without a query."""
        found = self._store.search((space,), limit=100_000)
        return [(item.key, item.value["text"]) for item in found]

    def delete(self, space: str, item: str) -> None:
        """`delete`."""
        self._store.delete((space,), item)

    def close(self) -> None:
        """Nothing to close in memory."""


class InMemory(_LangGraph):
    """Gone when its process ends."""

    def _open(self, opening: Opening) -> Any:
        from langgraph.store.memory import (  # type: ignore[import-not-found,unused-ignore]
            InMemoryStore,
        )

        return InMemoryStore(index=self._index())


class OnSqlite(_LangGraph):
    """One file. Opened as `from_conn_string` opens it."""

    def _open(self, opening: Opening) -> Any:
        from langgraph.store.sqlite import (  # type: ignore[import-not-found,unused-ignore]
            SqliteStore,
        )

        # The arguments of `from_conn_string`, which keeps its connection to itself.
        opening.folder.mkdir(parents=True, exist_ok=True)
        self._connection = _sqlite().connect(
            opening.folder / "store.db", check_same_thread=False, isolation_level=None
        )
        store = SqliteStore(self._connection, index=self._index())
        store.setup()
        return store

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _without_repeats(texts: Texts) -> list[Texts]:
    """Batches that hold no text twice: `InMemoryStore` raises ValueError at one that does."""
    seen: Counter[str] = Counter()
    batches: list[list[tuple[str, str, str]]] = []
    for one in texts:
        if seen[one[1]] == len(batches):
            batches.append([])
        batches[seen[one[1]]].append(one)
        seen[one[1]] += 1
    return list(batches)


def _sqlite() -> Any:
    """The standard module where it can load extensions, as sqlite-vec needs; else pysqlite3."""
    import sqlite3

    if hasattr(sqlite3.Connection, "enable_load_extension"):
        return sqlite3
    import pysqlite3

    return pysqlite3
