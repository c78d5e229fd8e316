"""The bundled model in the user's resident process: the same vectors, without a model of one's own.

Where the resident process is gone in the middle of something, the model is loaded here, and what
was asked is answered all the same.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from anaphora.core import resident
from anaphora.embed.base import Embedder, Vector, Vectors, mean_vector
from anaphora.errors import EmbeddingError

if TYPE_CHECKING:
    from anaphora.core.resident import Connection
    from anaphora.embed.service import EmbedderSpec

_PATIENCE: Final = 120.0
STARTING: Final = 3.0
"""Seconds that a program waits for a resident process that it started."""
_AT_ONCE: Final = 64
"""Texts in one request: many short answers let others in between."""


class ResidentEmbedder:
    """An embedder whose model is elsewhere; `load` gives one of our own when that is gone."""

    def __init__(
        self,
        connection: Connection,
        environ: Mapping[str, str],
        load: Callable[[], Embedder],
        *,
        name: str,
        dimensions: int,
    ) -> None:
        self._connection: Connection | None = connection
        self._environ = environ
        self._load = load
        self._name, self._dimensions = name, dimensions
        self._own: Embedder | None = None
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """The model's own name: its vectors are the same wherever they are made."""
        return self._name

    @property
    def dimensions(self) -> int:
        """As the model's."""
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        """Vectors of texts, in their order."""
        found: list[Vectors] = []
        for start in range(0, len(texts), _AT_ONCE):
            found += self._embedded(texts[start : start + _AT_ONCE])
        return found

    def embed_query(self, text: str) -> Vector:
        """The vector of a question."""
        return mean_vector(self.embed([text])[0])

    def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """The vectors of questions that wait at the same moment, in one request."""
        return [mean_vector(parts) for parts in self.embed(texts)]

    def query_key(self, text: str) -> Hashable:
        """The text itself: the word pieces are known where the model is."""
        return text

    def _embedded(self, texts: Sequence[str]) -> list[Vectors]:
        with self._lock:
            if self._own is None:
                try:
                    return self._asked(texts)
                except resident.NoResident:
                    self._own = self._load()
        return self._own.embed(texts)

    def _asked(self, texts: Sequence[str]) -> list[Vectors]:
        if self._connection is None:
            self._connection = resident.connect(self._environ)
        request: dict[str, Any] = {"call": "embed", "model": self._name, "texts": list(texts)}
        try:
            answer = resident.ask(self._connection, request, _PATIENCE)
        except resident.NoResident:
            self._connection.close()
            self._connection = None
            raise
        if "failed" in answer:
            raise EmbeddingError(str(answer["failed"]))
        rows = answer.get("vectors")
        if not isinstance(rows, list) or len(rows) != len(texts):
            raise resident.NoResident("an answer of another form")
        return [vectors_of(text, self._dimensions) for text in rows]


def text_of(vectors: Vectors) -> str:
    """Vectors as they travel: float32, little-endian, in base64."""
    return base64.b64encode(vectors.astype("<f4").tobytes()).decode()


def vectors_of(text: str, dimensions: int) -> Vectors:
    """The vectors of `text_of`, shape (parts, dimensions)."""
    flat = np.frombuffer(base64.b64decode(text), "<f4").astype(np.float32)
    return flat.reshape(-1, dimensions)


def reached(environ: Mapping[str, str], spec: EmbedderSpec, *, start: bool) -> Embedder:
    """The model in the resident process of this version, else one of our own.

    With `start` one is started where none runs; a model of our own is quicker than to wait long.
    """
    try:
        connection = resident.reach(environ, STARTING if start else 0.0, start=start)
    except resident.NoResident:
        return spec.load()
    return ResidentEmbedder(
        connection, environ, spec.load, name=spec.name, dimensions=spec.dimensions
    )
