"""The parts by themselves, without anything of the engine: BM25 and the cosine.

In: texts and a question, as words or as vectors. Out: a score for each text; 0 and less is no hit.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bm25", "cosines", "ranked", "words_of"]

Floats = NDArray[np.float64]
Words: TypeAlias = Callable[[str], Sequence[str]]

K1: Final = 1.2
B: Final = 0.75
_WORD: Final = re.compile(r"[^\W_]+")


def words_of(text: str) -> list[str]:
    """Runs of letters and digits in lower case; nothing is stemmed or left out."""
    return _WORD.findall(text.lower())


class Bm25:
    """Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond (2009).

    The IDF is log(1 + (N - n + 0.5) / (n + 0.5)), which is never negative.
    """

    def __init__(self, texts: Sequence[str], words: Words = words_of, asked: Words | None = None):
        """`words` are those of a text, `asked` those of a question (by default the same)."""
        self._asked = asked or words
        self._counts = [Counter(words(text)) for text in texts]
        lengths = np.array([counts.total() for counts in self._counts], np.float64)
        mean = lengths.mean() if len(lengths) and lengths.any() else 1.0
        self._norms = K1 * (1.0 - B + B * lengths / mean)
        self._holding = Counter(word for counts in self._counts for word in counts)

    def idf(self, word: str) -> float:
        """How much one word tells."""
        holding = self._holding[word]
        return math.log1p((len(self._counts) - holding + 0.5) / (holding + 0.5))

    def scores(self, question: str) -> Floats:
        """The score of each text, (N,)."""
        return self.scores_of(self._asked(question))

    def scores_of(self, words: Iterable[str]) -> Floats:
        """The same for the words of a question."""
        total = np.zeros(len(self._counts), np.float64)
        for word in dict.fromkeys(words):
            if self._holding[word]:
                often = np.array([counts[word] for counts in self._counts], np.float64)
                total += self.idf(word) * often * (K1 + 1.0) / (often + self._norms)
        return total


def cosines(parts: Sequence[NDArray[np.float32]], asked: NDArray[np.float32]) -> Floats:
    """The cosine of the best part of each text to the question, (N,)."""
    return np.array([float((rows @ asked).max()) for rows in parts], np.float64)


def ranked(scores: Iterable[float], least: float = -math.inf) -> list[int]:
    """Places of the scores above `least`, best first; ties in the order of the texts."""
    values = list(scores)
    return sorted((at for at, s in enumerate(values) if s > least), key=lambda at: -values[at])
