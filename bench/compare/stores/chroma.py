"""Chroma with a collection a space, opened as `PersistentClient`.

With the 32-bit model given, Chroma's own default embedding function runs it: class, code and
settings are Chroma's, only the download is replaced. Without it, texts are embedded by the same
model in 8 bits. Vectors that are known are looked up in both cases.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import chromadb  # type: ignore[import-not-found,unused-ignore]
from chromadb.utils.embedding_functions.onnx_mini_lm_l6_v2 import (  # type: ignore[import-not-found,unused-ignore]
    ONNXMiniLM_L6_V2,
)

from bench.compare.store import Opening, Texts
from bench.compare.vectors import Vectors

__all__ = ["Chroma"]

_MOST = 5_000
"""Texts a call; its limit is 5,461."""
_LINKED = ("model.onnx", "tokenizer.json")
_LOOKED_FOR = ("config.json", "special_tokens_map.json", "tokenizer_config.json", "vocab.txt")


class Chroma:
    """A persistent client."""

    def __init__(self, opening: Opening) -> None:
        self._embed = _Embedding(opening)
        self._client = chromadb.PersistentClient(str(opening.folder / "chroma"))
        self._opened: dict[str, Any] = {}

    @property
    def embedding(self) -> float:
        """Seconds inside the embedding function."""
        return self._embed.seconds

    def add(self, space: str, texts: Texts) -> None:
        """`collection.add` of documents, embedded by the collection's function."""
        for start in range(0, len(texts), _MOST):
            some = texts[start : start + _MOST]
            self._of(space).add(ids=[i for i, _, _ in some], documents=[t for _, t, _ in some])

    def search(self, space: str, query: str, k: int) -> list[str]:
        """`collection.query` in words."""
        found = self._of(space).query(query_texts=[query], n_results=k, include=[])
        return list(found["ids"][0])

    def every(self, space: str) -> list[tuple[str, str]]:
        """`collection.get`."""
        found = self._of(space).get(include=["documents"])
        return list(zip(found["ids"], found["documents"], strict=True))

    def delete(self, space: str, item: str) -> None:
        """`collection.delete`."""
        self._of(space).delete(ids=[item])

    def close(self) -> None:
        """`client.close()` where the version has it."""
        if hasattr(self._client, "close"):
            self._client.close()

    def _of(self, space: str) -> Any:
        if space not in self._opened:
            self._opened[space] = self._client.get_or_create_collection(
                space, metadata={"hnsw:space": "cosine"}, embedding_function=self._embed
            )
        return self._opened[space]


class _Embedding(ONNXMiniLM_L6_V2):  # type: ignore[misc,unused-ignore]
    """Chroma's default function; what is known is looked up, and the time is counted."""

    def __init__(self, opening: Opening) -> None:
        super().__init__()
        self.seconds = 0.0
        self._known = opening.vectors if opening.known else None
        if opening.chroma_model is not None and self._known is None:
            self.DOWNLOAD_PATH = _place(opening.chroma_model, opening.folder)
            self._own = True
        else:
            self._own = False
            self._known = self._known or Vectors(opening.model)

    def __call__(self, input: Any) -> Any:  # noqa: A002 - Chroma's name for it
        began = time.perf_counter()
        found = super().__call__(input) if self._own else list(self._known(list(input)))  # type: ignore[misc]
        self.seconds += time.perf_counter() - began
        return found


def _place(model: Path, folder: Path) -> Path:
    """The files where Chroma looks for its download."""
    place = folder / "chroma-model" / "onnx"
    place.mkdir(parents=True, exist_ok=True)
    for name in _LINKED:
        if not (place / name).exists():
            shutil.copyfile(model / name, place / name)
    for name in _LOOKED_FOR:
        (place / name).touch()
    return place.parent
