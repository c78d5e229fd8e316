"""What differs from one run to the next, made fixed: randomness, the clock, vectors.

In: nothing, or texts. Out: the same bytes, times and vectors in every run and every build.
`fix_randomness` comes before the build is imported, which binds its sources of randomness then.
"""

from __future__ import annotations

import datetime as datetime_module
import hashlib
import itertools
import os
import random
import secrets
import time
import uuid
from collections.abc import Hashable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from tools.golden.recording import Recording

__all__ = ["Clock", "KeptVectors", "fix_randomness", "fix_time", "move_time", "stop_timers"]

START = datetime(2026, 5, 1, 9, 0, tzinfo=UTC)
# What is this short names temporary files, which must differ; longer ones are keys, nonces, salts.
_NAME_BYTES = 8


def stop_timers() -> None:
    """Let no time pass between two looks at a timer: what a call took is part of what is kept."""
    time.monotonic = lambda: 1_000.0
    time.perf_counter = lambda: 1_000.0


def fix_randomness() -> None:
    """Give every source of randomness one fixed answer. Never for a home that anybody keeps."""
    counted = itertools.count()

    def some_bytes(nbytes: int | None = None) -> bytes:
        size = 32 if nbytes is None else nbytes
        if size <= _NAME_BYTES:
            return next(counted).to_bytes(max(size, 8), "big")[-size:] if size else b""
        return b"\x2a" * size

    os.urandom = some_bytes
    secrets.token_bytes = some_bytes
    secrets.token_hex = lambda nbytes=None: some_bytes(nbytes).hex()
    secrets.randbits = lambda k: 0
    uuid.uuid4 = lambda: uuid.UUID(int=(4 << 76) | (2 << 62) | next(counted))
    random.seed(0)


class Clock:
    """A clock that goes on by a second with each value of `record`, and stands still meanwhile: how
    often a build reads it moves nothing. Of several clocks, each is a bit ahead of the one before.
    """

    _made = itertools.count()

    def __init__(self, record: Recording) -> None:
        self._record = record
        self._ahead = timedelta(milliseconds=next(self._made))

    def __call__(self) -> datetime:
        """The second of the value that is recorded next."""
        return START + timedelta(seconds=self._record.length) + self._ahead


class KeptVectors:
    """An embedder whose vectors are kept in a folder: the second build need not make them again.

    What the embedders themselves give is recorded apart; here both builds shall rank the same.
    """

    def __init__(self, embedder: Any, folder: Path) -> None:
        self._embedder = embedder
        self._folder = folder
        self._folder.mkdir(parents=True, exist_ok=True)
        self.name: str = embedder.name
        self.dimensions: int = embedder.dimensions

    def embed(self, texts: Sequence[str]) -> list[Any]:
        """Vectors of texts, shape (parts, dimensions) each."""
        places = [self._place("text", text) for text in texts]
        missing = [text for text, place in zip(texts, places, strict=True) if not place.exists()]
        for text, vectors in zip(missing, self._embedder.embed(missing), strict=True):
            self._keep(self._place("text", text), vectors)
        return [np.load(place) for place in places]

    def embed_query(self, text: str) -> Any:
        """The vector of a question, shape (dimensions,)."""
        place = self._place("query", text)
        if not place.exists():
            self._keep(place, self._embedder.embed_query(text))
        return np.load(place)

    def query_key(self, text: str) -> Hashable:
        """What the embedder itself tells questions apart by."""
        key: Hashable = self._embedder.query_key(text)
        return key

    def _keep(self, place: Path, vectors: Any) -> None:
        place.parent.mkdir(exist_ok=True)
        with place.open("wb") as file:
            np.save(file, vectors)

    def _place(self, kind: str, text: str) -> Path:
        digest = hashlib.sha256(f"{self.name}\0{kind}\0{text}".encode("utf-8", "surrogatepass"))
        name = digest.hexdigest()
        return self._folder / name[:2] / f"{name[2:]}.npy"


def fix_time() -> None:
    """Have the wall clock begin at START and go on by a second each time it is read.

    `move_time` sets it forward. What reads the clock through `datetime.now` or `time.time` sees
    this time; the class must be replaced before the build imports it.
    """

    class AnyDatetime(type(datetime)):  # type: ignore[misc]
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, datetime)

    class FixedDatetime(datetime, metaclass=AnyDatetime):
        @classmethod
        def now(cls, tz: Any = None) -> FixedDatetime:
            moment = _WALL.read()
            return cls.fromtimestamp(moment, tz)

        @classmethod
        def utcnow(cls) -> FixedDatetime:
            return cls.fromtimestamp(_WALL.read(), UTC).replace(tzinfo=None)

    datetime_module.datetime = FixedDatetime  # type: ignore[misc]
    time.time = _WALL.read
    time.time_ns = lambda: int(_WALL.read()) * 1_000_000_000


def move_time(minutes: int) -> None:
    """Set the fixed wall clock forward, and the counter of fixed randomness with it."""
    _WALL.seconds += 60.0 * minutes
    for _ in range(1_000):
        uuid.uuid4()


class _Wall:
    def __init__(self) -> None:
        self.seconds = START.timestamp()

    def read(self) -> float:
        self.seconds += 1.0
        return self.seconds


_WALL = _Wall()
