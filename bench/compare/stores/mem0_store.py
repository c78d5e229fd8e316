"""mem0 with `infer=False`: texts are kept as they are given, no language model is asked.

In: texts, a user a space; the id goes into the metadata. Out: ids. The vector store is its default,
Qdrant in a local folder; vectors come from the shared model through its `langchain` embedder. What
it takes to run without a network: telemetry off (`MEM0_TELEMETRY`), a language model configured
that is never called. Its optional extras for words (fastembed, spaCy) are not installed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from bench.compare.store import Opening, Texts
from bench.compare.vectors import DIMENSIONS, Vectors

__all__ = ["Mem0"]


class Mem0:
    """As `pip install mem0ai` gives it: meaning alone, since fastembed and spaCy are extras."""

    def __init__(self, opening: Opening) -> None:
        opening.folder.mkdir(parents=True, exist_ok=True)
        os.environ["MEM0_DIR"] = str(opening.folder / "mem0")
        os.environ.setdefault("MEM0_TELEMETRY", "False")
        from langchain_core.embeddings import (  # type: ignore[import-not-found,unused-ignore]
            Embeddings,
        )
        from mem0 import Memory  # type: ignore[import-not-found,unused-ignore]

        self._vectors = opening.vectors
        model = type("Shared", (_Shared, Embeddings), {})(opening.vectors)
        self._memory: Any = Memory.from_config(
            {
                "vector_store": {
                    "provider": "qdrant",
                    "config": {
                        "collection_name": "memories",
                        "embedding_model_dims": DIMENSIONS,
                        "path": str(opening.folder / "qdrant"),
                        "on_disk": True,
                    },
                },
                "embedder": {
                    "provider": "langchain",
                    "config": {"model": model, "embedding_dims": DIMENSIONS},
                },
                # Never called with infer=False, but its client must be made.
                "llm": {"provider": "openai", "config": {"api_key": "unused", "model": "unused"}},
                "history_db_path": str(opening.folder / "history.db"),
            }
        )

    @property
    def embedding(self) -> float:
        """Seconds inside the embedder."""
        return self._vectors.seconds

    def add(self, space: str, texts: Texts) -> None:
        """`add` of a list of messages: mem0 embeds and writes them one by one."""
        # Metadata belongs to a call, so that ids of their own take a call each.
        for one, text, _ in texts:
            self._memory.add(text, user_id=space, infer=False, metadata={"of": one})

    def search(self, space: str, query: str, k: int) -> list[str]:
        """`search` among the user's memories, with its default threshold."""
        found = self._memory.search(query, top_k=k, filters={"user_id": space})
        return [row["metadata"]["of"] for row in found["results"]]

    def every(self, space: str) -> list[tuple[str, str]]:
        """`get_all`."""
        rows = self._rows(space)
        return [(row["metadata"]["of"], row["memory"]) for row in rows]

    def delete(self, space: str, item: str) -> None:
        """`delete` by mem0's id."""
        for row in self._rows(space):
            if row["metadata"]["of"] == item:
                self._memory.delete(row["id"])

    def close(self) -> None:
        """`close`, and Qdrant's client with it."""
        self._memory.close()
        self._memory.vector_store.client.close()

    def _rows(self, space: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._memory.get_all(
            filters={"user_id": space}, top_k=100_000
        )["results"]
        return found


class _Shared:
    """The shared model as an embedder of langchain's."""

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """Rows of numbers."""
        return [row.tolist() for row in self._vectors(texts)]

    def embed_query(self, text: str) -> list[float]:
        """One row."""
        return self.embed_documents([text])[0]
