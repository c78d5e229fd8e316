"""An embedder that counts and times what another one does.

In: any `Embedder`. Out: the same vectors under the same name, so that nothing downstream can tell,
and running totals of texts and seconds. It is how a benchmark separates embedding from the rest
without a way of its own through the product.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from anaphora.embed.base import Embedder

__all__ = ["TimedEmbedder"]


class TimedEmbedder:
    """Delegates to `inner`; safe to use from several threads.

    `texts` and `seconds` total the embedding of turns, `query_seconds` that of queries.
    """

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self._lock = threading.Lock()
        self.texts = 0
        self.seconds = 0.0
        self.query_seconds = 0.0

    @property
    def name(self) -> str:
        """The identity of the embedder that does the work."""
        return self._inner.name

    @property
    def dimensions(self) -> int:
        """The length of its vectors."""
        return self._inner.dimensions

    def embed(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """As the embedder inside."""
        began = time.perf_counter()
        vectors = self._inner.embed(texts)
        with self._lock:
            self.texts += len(texts)
            self.seconds += time.perf_counter() - began
        return vectors

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """As the embedder inside."""
        began = time.perf_counter()
        vector = self._inner.embed_query(text)
        with self._lock:
            self.query_seconds += time.perf_counter() - began
        return vector

    def query_key(self, text: str) -> Hashable:
        """As the embedder inside."""
        return self._inner.query_key(text)
