"""A word-hashing embedder: no model, no file, the same vectors on every machine.

Every word has a few fixed positions in the vectors: texts that share words are close, texts that
share none are nearly orthogonal. It knows no meaning; it replaces a model in tests, and where no
model may run.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Hashable, Sequence
from functools import lru_cache

import numpy as np

from anaphora.embed.base import Vector, Vectors, mean_vector, unit_rows

_WORDS = re.compile(r"\w+")

# Positions of each word: enough that two words rarely share all of theirs.
_PLACES = 4


class WordHashingEmbedder:
    """Vectors of hashed words; `window` words make a part (None: a text is always one part).

    A word counts 1 + ln(its occurrences), as in the usual term weighting (Manning, Raghavan,
    Schütze, *Introduction to Information Retrieval*, section 6.4.1). Case does not count. All texts
    without words have the same vector.
    """

    def __init__(self, dimensions: int = 384, *, window: int | None = None) -> None:
        if dimensions < 1:
            raise ValueError(f"dimensions must be at least 1, given {dimensions}")
        if window is not None and window < 1:
            raise ValueError(f"window must be at least 1, given {window}")
        self._dimensions = dimensions
        self._window = window

    @property
    def name(self) -> str:
        """Recipe version, dimensions and window."""
        return f"word-hashing:1:{self._dimensions}" + (f":{self._window}" if self._window else "")

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        """Vectors of texts, in their order: shape (parts, dimensions) each, unit rows."""
        vectors = []
        for text in texts:
            words = _words(text)
            size = self._window or max(len(words), 1)
            starts = range(0, max(len(words), 1), size)
            rows = []
            for part in (words[at : at + size] for at in starts):
                row = np.zeros(self._dimensions, np.float32)
                for word, occurrences in sorted(Counter(part or ("",)).items()):
                    weight = 1.0 + math.log(occurrences)
                    for position, sign in _places(word, self._dimensions):
                        row[position] += sign * weight
                if not row.any():
                    # Signs can cancel out if there are few dimensions; no vector may be zero.
                    row[_places(" ".join(part), self._dimensions)[0][0]] = 1.0
                rows.append(row)
            vectors.append(unit_rows(np.stack(rows)))
        return vectors

    def embed_query(self, text: str) -> Vector:
        """The vector of a question, shape (dimensions,)."""
        return mean_vector(self.embed([text])[0])

    def query_key(self, text: str) -> Hashable:
        """The words in their order."""
        return tuple(_words(text))


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORDS.findall(text)]


@lru_cache(maxsize=65_536)
def _places(word: str, dimensions: int) -> tuple[tuple[int, float], ...]:
    # `surrogatepass`: lone surrogates are hashed like other characters.
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8 * _PLACES)
    numbers = np.frombuffer(digest.digest(), dtype="<u8")
    return tuple((int(n >> 1) % dimensions, 1.0 if n & 1 else -1.0) for n in numbers.tolist())
