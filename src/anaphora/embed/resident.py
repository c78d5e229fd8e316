"""The bundled model in the user's resident process: the same vectors without loading a model here.

If the resident process ends in the middle of a call, the model is loaded in this process, and the
call is answered nevertheless.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from anaphora.embed.base import Embedder, Vector, Vectors, mean_vector
from anaphora.errors import EmbeddingError
from anaphora.system import resident

if TYPE_CHECKING:
    from anaphora.embed.service import EmbedderSpec
    from anaphora.system.resident import MessageChannel

_PATIENCE: Final = 120.0
STARTING: Final = 3.0
"""Seconds that a program waits for a resident process that it started."""
_AT_ONCE: Final = 64
"""Texts per request: between many short requests, other programs are answered."""


class ResidentEmbedder:
    """An embedder with its model in the resident process; `load` loads one here if that ends."""

    def __init__(
        self,
        connection: MessageChannel,
        environ: Mapping[str, str],
        load: Callable[[], Embedder],
        *,
        name: str,
        dimensions: int,
    ) -> None:
        self._connection: MessageChannel | None = connection
        self._environ = environ
        self._load = load
        self._name, self._dimensions = name, dimensions
        self._own: Embedder | None = None
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """The name of the model: its vectors are the same in every process."""
        return self._name

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        """Vectors of texts, in their order."""
        vectors: list[Vectors] = []
        for start in range(0, len(texts), _AT_ONCE):
            chunk = texts[start : start + _AT_ONCE]
            with self._lock:
                if self._own is None:
                    try:
                        vectors += self._request(chunk)
                        continue
                    except resident.NoResident:
                        self._own = self._load()
            vectors += self._own.embed(chunk)
        return vectors

    def embed_query(self, text: str) -> Vector:
        """The vector of a question."""
        return mean_vector(self.embed([text])[0])

    def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """The vectors of questions that wait at the same moment, in one request."""
        return [mean_vector(parts) for parts in self.embed(texts)]

    def query_key(self, text: str) -> Hashable:
        """The text itself: only the resident process has the tokenizer."""
        return text

    def _request(self, texts: Sequence[str]) -> list[Vectors]:
        if self._connection is None:
            self._connection = resident.connect(self._environ)
        request = {"call": "embed", "model": self._name, "body": json.dumps(list(texts)).encode()}
        try:
            answer = resident.ask(self._connection, request, _PATIENCE)
        except resident.NoResident:
            self._connection.close()
            self._connection = None
            raise
        if "failed" in answer:
            raise EmbeddingError(str(answer["failed"]))
        ends = [int(end) for end in answer.get("ends", "").split()]
        if len(ends) != len(texts):
            raise resident.NoResident("an answer of another form")
        rows = np.frombuffer(answer["body"], "<f4").astype(np.float32)
        return np.split(rows.reshape(-1, self._dimensions), ends[:-1])


def answer_with(vectors: Sequence[Vectors]) -> dict[str, Any]:
    """An answer with the vectors of texts: float32, little-endian, and where those of each end."""
    return {
        "ends": " ".join(map(str, np.cumsum([len(rows) for rows in vectors]))),
        "body": b"".join(rows.astype("<f4").tobytes() for rows in vectors),
    }


def connect_embedder(environ: Mapping[str, str], spec: EmbedderSpec, *, start: bool) -> Embedder:
    """The model in the resident process of this version, or else one in this process.

    With `start`, a resident process is started if none runs; a model is loaded here if that takes
    long.
    """
    try:
        connection = resident.reach(environ, STARTING if start else 0.0, start=start)
        embedder = ResidentEmbedder(
            connection, environ, spec.load, name=spec.name, dimensions=spec.dimensions
        )
        # It listens before it has loaded the model. No call may take that for one that is there.
        embedder.embed([spec.name])
    except (resident.NoResident, EmbeddingError):
        return spec.load()
    return embedder
