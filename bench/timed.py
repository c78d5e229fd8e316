"""An embedder that counts and times what another one does.

In: any `Embedder`. Out: the same vectors under the same name, so that nothing downstream can tell,
and running totals of texts and seconds. It is how a benchmark separates embedding from the rest
without a way of its own through the product. A text that comes again (data sets repeat the same
sessions for many questions, each in a namespace of its own) is embedded once and counted once.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from anaphora.embed.base import Embedder


class TimedEmbedder:
    """Delegates to `inner`; safe to use from several threads.

    `texts` and `seconds` total the embedding of turns, `query_seconds` that of queries.
    """

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self._lock = threading.Lock()
        self._known: dict[bytes, NDArray[np.float16]] = {}
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
        keys = [hashlib.blake2b(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
        began = time.perf_counter()
        vectors = self._inner.embed(list(new.values())) if new else []
        with self._lock:
            self.texts += len(new)
            self.seconds += time.perf_counter() - began
            # The index keeps half precision, so half precision loses nothing here.
            self._known.update(
                (key, rows.astype(np.float16)) for key, rows in zip(new, vectors, strict=True)
            )
        return [self._known[key].astype(np.float32) for key in keys]

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
