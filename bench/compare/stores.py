"""The contestants, as their child processes open them: each needs its own product alone.

In: texts with ids, in spaces that are kept apart (chats, users, projects). Out: ids, best first.
What each is set up as stands in bench/results/compare.md.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from bench.compare.vectors import DIMENSIONS, Spent, Vectors

__all__ = ["Opening", "Store", "Texts", "fused", "read_durability"]

Texts = Sequence[tuple[str, str, str]]
"""(id, text, time in ISO 8601 or "") of texts to keep."""
Id = TypeVar("Id", bound=Hashable)

_POOL = 100
"""Places of each list that are fused."""
_MOST = 5_000
"""Texts a call of Chroma; its limit is 5,461."""
_BULK = 100
"""From so many texts on LanceDB's index is brought up to date after them, as its guide says."""


@dataclass(frozen=True, slots=True)
class Opening:
    """Where to keep things, and what to embed with; `known` may be missing, `now` fixes the clock
    of a contestant that ranks by age (ISO 8601, "" for the real time)."""

    folder: Path
    vectors: Vectors
    known: Path | None = None
    now: str = ""


class Store(Protocol):
    """A contestant, opened on a folder. `durability` says when an acknowledged write is on the
    disk: SQLite's `synchronous` where that decides, else what strace shows."""

    durability: str

    @property
    def embedding(self) -> Spent:
        """Seconds inside the embedder until now, of the wall and of the processor."""

    def add(self, space: str, texts: Texts) -> None:
        """Keep texts, by the product's own bulk call where it has one."""

    def search(self, space: str, query: str, k: int) -> list[str]:
        """At most `k` ids, best first."""

    def delete(self, space: str, item: str) -> None:
        """Remove one text by the product's own call."""

    def close(self) -> None:
        """Let go of everything, as a user's program does at its end."""


class _Base:
    """What every store here has."""

    durability = "written when closed"

    def __init__(self, opening: Opening) -> None:
        opening.folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._vectors = opening.folder, opening.vectors

    @property
    def embedding(self) -> Spent:
        """Seconds inside the embedder."""
        return self._vectors.spent.copy()

    def close(self) -> None:
        """Nothing to close."""


def fused(lists: Sequence[Sequence[Id]], k: int = 60) -> list[Id]:
    """Ids by the sum of 1 / (k + place) over the lists that name them, best first.

    Cormack, Clarke and Büttcher, Reciprocal Rank Fusion (2009). An id counts once a list, where it
    stands first; ties keep the order in which ids were first met.
    """
    scores: dict[Id, float] = {}
    for ranked in lists:
        for place, name in enumerate(dict.fromkeys(ranked), 1):
            scores[name] = scores.get(name, 0.0) + 1 / (k + place)
    return sorted(scores, key=lambda name: -scores[name])


def read_durability(connection: Any) -> str:
    """`synchronous` and the journal of an SQLite connection, in words."""
    level = connection.execute("PRAGMA synchronous").fetchone()[0]
    journal = connection.execute("PRAGMA journal_mode").fetchone()[0]
    spelled = {"wal": "write-ahead log", "delete": "rollback journal"}.get(journal, journal)
    return f"{('OFF', 'NORMAL', 'FULL', 'EXTRA')[level]}, {spelled}"


class _Plain(_Base):
    """Texts by space, in memory, written to a folder when closed."""

    def __init__(self, opening: Opening) -> None:
        super().__init__(opening)
        self._file = opening.folder / "texts.json"
        self._spaces: dict[str, dict[str, str]] = {}
        self._made: dict[str, Any] = {}
        if self._file.is_file():
            self._spaces = json.loads(self._file.read_text("utf-8"))

    def add(self, space: str, texts: Texts) -> None:
        """Into memory; what was made of the space is made anew."""
        self._spaces.setdefault(space, {}).update((name, text) for name, text, _ in texts)
        self._made.pop(space, None)
        self._of(space)

    def search(self, space: str, query: str, k: int) -> list[str]:
        """By the ranking of this class."""
        names = list(self._spaces[space])
        return [names[at] for at in self.rank(self._of(space), query, k)]

    def delete(self, space: str, item: str) -> None:
        """Out of memory."""
        del self._spaces[space][item]
        self._made.pop(space, None)

    def close(self) -> None:
        """Texts to the disk."""
        self._file.write_text(json.dumps(self._spaces), "utf-8")

    def _of(self, space: str) -> Any:
        if space not in self._made:
            self._made[space] = self.make(list(self._spaces[space].values()))
        return self._made[space]

    def make(self, texts: Sequence[str]) -> Any:
        """What the ranking needs."""
        raise NotImplementedError

    def rank(self, made: Any, query: str, k: int) -> list[int]:
        """Places of texts, best first."""
        raise NotImplementedError


class Bm25(_Plain):
    """bm25s with its defaults, English stop words and stems."""

    def make(self, texts: Sequence[str]) -> Any:
        """The index."""
        import bm25s  # type: ignore[import-not-found,unused-ignore]

        index = bm25s.BM25()
        index.index(_terms(texts), show_progress=False)
        return index, len(texts)

    def rank(self, made: Any, query: str, k: int) -> list[int]:
        """Texts that share a word with the question."""
        index, count = made
        terms = _terms([query])
        if not terms[0]:
            return []
        rows, scores = index.retrieve(terms, k=min(k, count), show_progress=False)
        return [int(at) for at, score in zip(rows[0], scores[0], strict=True) if score > 0]


def _terms(texts: Sequence[str]) -> Any:
    import bm25s
    import Stemmer  # type: ignore[import-not-found,unused-ignore]

    stemmer = Stemmer.Stemmer("english")
    options = {"stopwords": "en", "stemmer": stemmer, "return_ids": False, "show_progress": False}
    return bm25s.tokenize(list(texts), **options)


class Cosine(_Plain):
    """One vector a text, all compared."""

    def __init__(self, opening: Opening) -> None:
        super().__init__(opening)
        self._kept = opening.folder / "vectors.npy"
        self._rows: dict[str, NDArray[np.float32]] = {}
        if self._kept.is_file():
            self._rows = dict(zip(self._texts(), np.load(self._kept), strict=True))

    def _texts(self) -> list[str]:
        return [text for own in self._spaces.values() for text in own.values()]

    def make(self, texts: Sequence[str]) -> Any:
        """The matrix; what is new is embedded."""
        new = [text for text in dict.fromkeys(texts) if text not in self._rows]
        self._rows.update(zip(new, self._vectors(new), strict=True))
        return np.stack([self._rows[text] for text in texts])

    def close(self) -> None:
        """Texts and vectors to the disk."""
        super().close()
        np.save(self._kept, np.stack([self._rows[text] for text in self._texts()]))

    def rank(self, made: Any, query: str, k: int) -> list[int]:
        """The nearest."""
        scores: NDArray[np.float32] = made @ self._vectors([query])[0]
        nearest: list[int] = np.argsort(-scores, kind="stable")[:k].tolist()
        return nearest


class Fused(Cosine):
    """The first hundred of both, fused by reciprocal ranks with k = 60."""

    def __init__(self, opening: Opening) -> None:
        super().__init__(opening)
        self._words = Bm25(opening)

    def make(self, texts: Sequence[str]) -> Any:
        """Index and matrix."""
        return self._words.make(texts), super().make(texts)

    def rank(self, made: Any, query: str, k: int) -> list[int]:
        """Both lists, fused."""
        pool = max(k, _POOL)
        by_words = self._words.rank(made[0], query, pool)
        return fused((by_words, super().rank(made[1], query, pool)))[:k]


class Chroma(_Base):
    """A `PersistentClient`, a collection a space, cosine distance.

    Its SQLite is opened in Rust by sqlx, which leaves `synchronous` as SQLite has it.
    """

    durability = "FULL, rollback journal; 8 fsyncs an add"

    def __init__(self, opening: Opening) -> None:
        super().__init__(opening)
        import chromadb  # type: ignore[import-not-found,unused-ignore]

        self._client = chromadb.PersistentClient(str(opening.folder / "chroma"))
        self._opened: dict[str, Any] = {}

    def add(self, space: str, texts: Texts) -> None:
        """`collection.add` of documents with their vectors."""
        for start in range(0, len(texts), _MOST):
            names, words, _ = zip(*texts[start : start + _MOST], strict=True)
            rows = self._vectors(list(words))
            self._of(space).add(ids=list(names), documents=list(words), embeddings=rows)

    def search(self, space: str, query: str, k: int) -> list[str]:
        """`collection.query`."""
        rows = self._vectors([query])
        hits = self._of(space).query(query_embeddings=rows, n_results=k, include=[])
        return list(hits["ids"][0])

    def delete(self, space: str, item: str) -> None:
        """`collection.delete`."""
        self._of(space).delete(ids=[item])

    def _of(self, space: str) -> Any:
        if space not in self._opened:
            self._opened[space] = self._client.get_or_create_collection(
                space, metadata={"hnsw:space": "cosine"}, embedding_function=None
            )
        return self._opened[space]


class Lance(_Base):
    """LanceDB's hybrid search: its full-text index and vectors, joined by its `RRFReranker`."""

    durability = "no fsync"

    def __init__(self, opening: Opening) -> None:
        super().__init__(opening)
        import lancedb
        from lancedb.rerankers import RRFReranker

        self._database: Any = lancedb.connect(str(opening.folder / "lance"))
        self._opened: dict[str, Any] = {}
        self._fusion = RRFReranker()

    def add(self, space: str, texts: Texts) -> None:
        """`table.add`; after a bulk `optimize`."""
        from lancedb.index import FTS

        vectors = self._vectors([text for _, text, _ in texts])
        rows = [
            {"id": name, "text": text, "vector": vector}
            for (name, text, _), vector in zip(texts, vectors, strict=True)
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
        """`k` of words, `k` of vectors, fused, cut to `k`."""
        search = self._of(space).search(query_type="hybrid").vector(self._vectors([query])[0])
        hits = search.text(query).rerank(self._fusion).limit(k).select(["id"]).to_list()
        return [row["id"] for row in hits]

    def delete(self, space: str, item: str) -> None:
        """`table.delete`."""
        self._of(space).delete(f"id = '{item}'")

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


class InMemory(_Base):
    """LangGraph's `InMemoryStore` with vector search: gone when its process ends."""

    durability = "never written"

    def __init__(self, opening: Opening) -> None:
        super().__init__(opening)
        # `SqliteStore` reads `text_fields` where other stores read `fields`; without it the whole
        # value is embedded as JSON.
        fields = ["text"]
        index = {"dims": DIMENSIONS, "embed": self._embed, "fields": fields, "text_fields": fields}
        self._store = self._open(index)

    def _embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [row.tolist() for row in self._vectors(texts)]

    def _open(self, index: Any) -> Any:
        from langgraph.store.memory import InMemoryStore  # type: ignore[import-not-found,unused-ignore]

        return InMemoryStore(index=index)

    def add(self, space: str, texts: Texts) -> None:
        """`batch` of what is put; no batch holds a text twice: `InMemoryStore` raises at it."""
        from langgraph.store.base import PutOp  # type: ignore[import-not-found,unused-ignore]

        seen: Counter[str] = Counter()
        batches: dict[int, list[Any]] = {}
        for name, text, _ in texts:
            batches.setdefault(seen[text], []).append(PutOp((space,), name, {"text": text}))
            seen[text] += 1
        for batch in batches.values():
            self._store.batch(batch)

    def search(self, space: str, query: str, k: int) -> list[str]:
        """`search` by meaning, the only way that these stores rank."""
        return [item.key for item in self._store.search((space,), query=query, limit=k)]

    def delete(self, space: str, item: str) -> None:
        """`delete`."""
        self._store.delete((space,), item)


class OnSqlite(InMemory):
    """LangGraph's `SqliteStore` with sqlite-vec, opened as `from_conn_string` opens it."""

    def _open(self, index: Any) -> Any:
        import sqlite3

        from langgraph.store.sqlite import SqliteStore  # type: ignore[import-not-found,unused-ignore]

        module: Any = sqlite3
        # sqlite-vec is an extension, which not every Python can load.
        if not hasattr(sqlite3.Connection, "enable_load_extension"):
            import pysqlite3

            module = pysqlite3
        file = self._folder / "store.db"
        self._connection = module.connect(file, check_same_thread=False, isolation_level=None)
        store = SqliteStore(self._connection, index=index)
        store.setup()
        self.durability = read_durability(self._connection)
        return store

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class Mem0(_Base):
    """mem0 with `infer=False`: texts are kept as given, no language model is asked.

    The vector store is its default, Qdrant in a local folder; vectors come through its `langchain`
    embedder. Offline it needs its telemetry off, and a language model configured that is never
    called.
    """

    durability = "FULL, rollback journal"

    def __init__(self, opening: Opening) -> None:
        super().__init__(opening)
        os.environ["MEM0_DIR"] = str(opening.folder / "mem0")
        os.environ.setdefault("MEM0_TELEMETRY", "False")
        from langchain_core.embeddings import Embeddings  # type: ignore[import-not-found,unused-ignore]
        from mem0 import Memory  # type: ignore[import-not-found,unused-ignore]

        model = type("Shared", (_Shared, Embeddings), {})(opening.vectors)
        store = {
            "collection_name": "memories",
            "embedding_model_dims": DIMENSIONS,
            "path": str(opening.folder / "qdrant"),
            "on_disk": True,
        }
        embedder = {"model": model, "embedding_dims": DIMENSIONS}
        unused = {"api_key": "unused", "model": "unused"}
        self._memory: Any = Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": store},
                "embedder": {"provider": "langchain", "config": embedder},
                "llm": {"provider": "openai", "config": unused},
                "history_db_path": str(opening.folder / "history.db"),
            }
        )

    def add(self, space: str, texts: Texts) -> None:
        """`add` of each: metadata, which has the id, belongs to a call."""
        for name, text, _ in texts:
            self._memory.add(text, user_id=space, infer=False, metadata={"of": name})

    def search(self, space: str, query: str, k: int) -> list[str]:
        """`search` among the user's memories, with its default threshold."""
        hits = self._memory.search(query, top_k=k, filters={"user_id": space})
        return [row["metadata"]["of"] for row in hits["results"]]

    def delete(self, space: str, item: str) -> None:
        """`delete` by mem0's id."""
        rows = self._memory.get_all(filters={"user_id": space}, top_k=100_000)["results"]
        for row in rows:
            if row["metadata"]["of"] == item:
                self._memory.delete(row["id"])

    def close(self) -> None:
        """`close`, and Qdrant's client with it."""
        self._memory.close()
        self._memory.vector_store.client.close()


class _Shared:
    """The shared model in the form that mem0's `langchain` embedder takes."""

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Vectors of texts."""
        return [row.tolist() for row in self._vectors(texts)]

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question."""
        row: list[float] = self._vectors([text])[0].tolist()
        return row
