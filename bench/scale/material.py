"""A million texts, and vectors for them that took no model's time.

In: the folder of shared data. Out: texts, which are runs of one to fourteen neighbouring sentences
of real turns; an embedder that gives each a vector. Embedding a million texts takes an hour and is
measured elsewhere (`bench.embedding`), so those vectors are marked as what they are: that of one of
20,000 real texts, embedded once and kept in a folder, turned away by noise of the same covariance
until the cosine with it is 0.65 to 0.92. Among a million of them each is close enough to link
(cosine 0.80) with 1.3 others on average; of the real 20,000, each is with 0.7. Questions are
embedded by the real model.
"""

from __future__ import annotations

import hashlib
import random
import re
import threading
import time
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anaphora.embed.base import Embedder, unit_rows
from anaphora.embed.service import EmbedderService, spec_for
from bench.datasets import haystacks
from bench.memory_texts import embedded, texts

__all__ = ["NAME", "PoolEmbedder", "filling_texts", "pool"]

NAME: Final = "minilm-pool-20000"
POOL: Final = 20_000
_NOISES: Final = 65_536
_NEAREST, _FARTHEST = 0.92, 0.65
_LONGEST: Final = 14
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")

Floats = NDArray[np.float32]


def filling_texts(data: Path, size: int) -> list[str]:
    """`size` different texts in an order of chance that is the same each time.

    Raises ValueError where the data has fewer.
    """
    found = list(dict.fromkeys(_runs(data)))
    if len(found) < size:
        raise ValueError(f"only {len(found):,} different texts; asked for {size:,}")
    random.Random(7).shuffle(found)
    return found[:size]


def _runs(data: Path) -> Iterator[str]:
    for _, chat in haystacks(data):
        for conversation in chat.conversations:
            for turn in conversation.turns:
                cut = [one.strip() for one in _SENTENCE.split(turn.text)]
                own = [one for one in cut if one]
                for length in range(1, _LONGEST + 1):
                    for start in range(len(own) - length + 1):
                        yield " ".join(own[start : start + length])


def pool(data: Path, kept: Path) -> Floats:
    """The vectors (20,000, dimensions) of real texts; made once, then read from `kept`."""
    place = kept / f"pool-{POOL}.npy"
    if place.is_file():
        found: Floats = np.load(place)
        return found
    service = EmbedderService(spec_for("minilm"))
    service.ready()
    parts = embedded(service, texts(data, POOL), kept)
    service.close()
    made = unit_rows(np.array([one[0] for one in parts], np.float32))
    np.save(place, made)
    return made


class PoolEmbedder:
    """An embedder whose vectors come from `vectors` (POOL, dimensions) by a digest of the text.

    Questions go to `inner`, a real model; `query_seconds` is what that took, in all. Without
    `vectors` it can only ask.
    """

    def __init__(self, inner: Embedder, vectors: Floats | None = None) -> None:
        self._inner = inner
        self._vectors = vectors
        self._lock = threading.Lock()
        self._noise = None if vectors is None else _noise_like(vectors)
        self.query_seconds = 0.0

    @property
    def name(self) -> str:
        """A name of its own: these vectors must never be taken for a model's."""
        return NAME

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        return self._inner.dimensions

    def embed(self, texts: Sequence[str]) -> list[Floats]:
        """One vector a text, always the same for the same text."""
        if self._vectors is None or self._noise is None:
            return self._inner.embed(texts)
        digests = b"".join(map(_digest, texts))
        words = np.frombuffer(digests, "<u4").reshape(-1, 3)
        base = self._vectors[words[:, 0] % len(self._vectors)]
        noise = self._noise[words[:, 1] % _NOISES]
        away = unit_rows(noise - (noise * base).sum(axis=1, keepdims=True) * base)
        share = (words[:, 2] / np.float64(2**32)).astype(np.float32)[:, None]
        cosine = _FARTHEST + (_NEAREST - _FARTHEST) * share
        made = unit_rows(cosine * base + np.sqrt(1.0 - cosine**2) * away)
        return [made[at : at + 1] for at in range(len(made))]

    def embed_query(self, text: str) -> Floats:
        """The real model's vector of a question."""
        began = time.perf_counter()
        vector = self._inner.embed_query(text)
        with self._lock:
            self.query_seconds += time.perf_counter() - began
        return vector

    def query_key(self, text: str) -> Hashable:
        """As the model's."""
        return self._inner.query_key(text)


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).digest()


def _noise_like(vectors: Floats) -> Floats:
    """Random directions (65536, dimensions) whose covariance is that of real vectors."""
    rng = np.random.default_rng(7)
    root = np.linalg.cholesky(np.cov(vectors.T) + 1e-9 * np.eye(vectors.shape[1]))
    made = rng.standard_normal((_NOISES, vectors.shape[1]), np.float32) @ root.T.astype(np.float32)
    return unit_rows(made)
