"""BM25, plain cosine, and both fused by their ranks: what a user writes in an afternoon.

BM25 is bm25s as its front page shows it (English stop words and stems); cosine is one product of
matrices. They live in memory, and are written to a folder when closed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.compare.fusion import fused
from bench.compare.store import Opening, Texts

__all__ = ["Bm25", "Cosine", "Fused"]

_POOL = 100
"""Places of each list that are fused."""


class _Plain:
    """Texts by space, in memory, with what a ranking makes of them."""

    def __init__(self, opening: Opening) -> None:
        self._vectors = opening.vectors
        self._file = opening.folder / "texts.json"
        self._spaces: dict[str, dict[str, str]] = {}
        self._made: dict[str, Any] = {}
        if self._file.is_file():
            self._spaces = json.loads(self._file.read_text("utf-8"))

    @property
    def embedding(self) -> float:
        """Seconds inside the embedder."""
        return self._vectors.seconds

    def add(self, space: str, texts: Texts) -> None:
        """Into memory; what was made of the space is made anew."""
        own = self._spaces.setdefault(space, {})
        own.update((one, text) for one, text, _ in texts)
        self._made.pop(space, None)
        self._of(space)

    def search(self, space: str, query: str, k: int) -> list[str]:
        """By the ranking of this class."""
        ids = list(self._spaces[space])
        return [ids[at] for at in self.rank(self._of(space), query, k)]

    def every(self, space: str) -> list[tuple[str, str]]:
        """What is in memory."""
        return list(self._spaces.get(space, {}).items())

    def delete(self, space: str, item: str) -> None:
        """Out of memory."""
        del self._spaces[space][item]
        self._made.pop(space, None)

    def close(self) -> None:
        """Texts to the disk."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps(self._spaces), "utf-8")

    def _of(self, space: str) -> Any:
        if space not in self._made:
            self._made[space] = self.make(list(self._spaces[space].values()))
        return self._made[space]

    def make(self, texts: Sequence[str]) -> Any:
        """What the ranking needs."""
        raise NotImplementedError

    def rank(self, made: Any, query: str, k: int) -> list[int]:
        """Places of texts, best first."""
        raise NotImplementedError


class Bm25(_Plain):
    """bm25s with its defaults, stop words and PyStemmer."""

    def make(self, texts: Sequence[str]) -> Any:
        """The index."""
        import bm25s  # type: ignore[import-not-found,unused-ignore]

        found = bm25s.BM25()
        found.index(_terms(texts), show_progress=False)
        return found, len(texts)

    def rank(self, made: Any, query: str, k: int) -> list[int]:
        """Texts that share a word with the question."""
        index, count = made
        terms = _terms([query])
        if not terms[0]:
            return []
        ids, scores = index.retrieve(terms, k=min(k, count), show_progress=False)
        return [int(at) for at, score in zip(ids[0], scores[0], strict=True) if score > 0]


class Cosine(_Plain):
    """One vector a text, all compared."""

    def __init__(self, opening: Opening) -> None:
        super().__init__(opening)
        self._kept = opening.folder / "vectors.npy"
        self._rows: dict[str, NDArray[np.float32]] = {}
        if self._kept.is_file():
            texts = [text for own in self._spaces.values() for text in own.values()]
            self._rows = dict(zip(texts, np.load(self._kept), strict=True))

    def make(self, texts: Sequence[str]) -> Any:
        """The matrix; what is new is embedded."""
        new = [text for text in dict.fromkeys(texts) if text not in self._rows]
        self._rows.update(zip(new, self._vectors(new), strict=True))
        return np.stack([self._rows[text] for text in texts])

    def close(self) -> None:
        """Texts and vectors to the disk."""
        super().close()
        texts = [text for own in self._spaces.values() for text in own.values()]
        np.save(self._kept, np.stack([self._rows[text] for text in texts]))

    def rank(self, made: Any, query: str, k: int) -> list[int]:
        """The nearest."""
        scores: NDArray[np.float32] = made @ self._vectors([query])[0]
        nearest: list[int] = np.argsort(-scores, kind="stable")[:k].tolist()
        return nearest


class Fused(_Plain):
    """Both, fused by reciprocal ranks with k = 60."""

    def __init__(self, opening: Opening) -> None:
        super().__init__(opening)
        self._words, self._meaning = Bm25(opening), Cosine(opening)

    def close(self) -> None:
        """Texts and vectors to the disk."""
        self._meaning._spaces = self._spaces
        self._meaning.close()

    def make(self, texts: Sequence[str]) -> Any:
        """Index and matrix."""
        return self._words.make(texts), self._meaning.make(texts)

    def rank(self, made: Any, query: str, k: int) -> list[int]:
        """The first hundred of each."""
        pool = max(k, _POOL)
        lists = (self._words.rank(made[0], query, pool), self._meaning.rank(made[1], query, pool))
        return fused(lists)[:k]


_STEMMERS: list[Any] = []


def _terms(texts: Sequence[str]) -> Any:
    import bm25s
    import Stemmer  # type: ignore[import-not-found,unused-ignore]

    if not _STEMMERS:
        _STEMMERS.append(Stemmer.Stemmer("english"))
    return bm25s.tokenize(
        list(texts), stopwords="en", stemmer=_STEMMERS[0], return_ids=False, show_progress=False
    )
