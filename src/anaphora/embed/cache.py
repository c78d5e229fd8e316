"""The query cache: vectors of the questions asked last, by what the embedder can tell apart.

Texts and vectors come in, vectors and events go out. It is safe between threads, never holds more
than its size and never embeds anything itself.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

from anaphora.embed.base import Vector

# A longer text is not kept as its own key: it would hold the memory, and looking up its word
# pieces is cheap next to reading it.
_LONGEST_SPELLING = 4096


@dataclass(frozen=True, slots=True)
class CacheEvent:
    """What happened to a query: its vector was there ("hit") or had to be computed ("miss")."""

    type: Literal["hit", "miss"]
    query: str


class QueryCache:
    """The `size` vectors used last; 0 keeps none.

    A vector is kept once under its key (the embedder's word pieces) and found by every spelling of
    that key. The spellings asked last are remembered too, so that the very same question does not
    need to be tokenised again.
    """

    def __init__(self, size: int) -> None:
        if size < 0:
            raise ValueError(f"cache size must be 0 or more, given {size}")
        self._size = size
        self._vectors: OrderedDict[Hashable, Vector] = OrderedDict()
        self._spellings: OrderedDict[str, Hashable] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._vectors)

    @property
    def size(self) -> int:
        """How many vectors are kept at most."""
        return self._size

    def by_spelling(self, text: str) -> Vector | None:
        """The vector of exactly this text, if its key is kept; makes it the newest."""
        with self._lock:
            key = self._spellings.get(text)
            if key is None:
                return None
            self._spellings.move_to_end(text)
            return self._touch(key)

    def by_key(self, text: str, key: Hashable) -> Vector | None:
        """The vector kept under `key`; `text` is remembered as a spelling of it."""
        with self._lock:
            vector = self._touch(key)
            if vector is not None:
                self._remember(text, key)
            return vector

    def put(self, text: str, key: Hashable, vector: Vector) -> None:
        """Keep a vector under `key` as the newest, and drop the oldest over the size."""
        with self._lock:
            if self._size == 0:
                return
            self._vectors[key] = vector
            self._vectors.move_to_end(key)
            if len(self._vectors) > self._size:
                self._vectors.popitem(last=False)
            self._remember(text, key)

    def _touch(self, key: Hashable) -> Vector | None:
        vector = self._vectors.get(key)
        if vector is not None:
            self._vectors.move_to_end(key)
        return vector

    def _remember(self, text: str, key: Hashable) -> None:
        if len(text) > _LONGEST_SPELLING:
            return
        self._spellings[text] = key
        self._spellings.move_to_end(text)
        if len(self._spellings) > self._size:
            self._spellings.popitem(last=False)
