"""What this machine needs at the least: one product of the vectors, one read of ten texts.

In: texts, vectors. Out: ids by cosine. Vectors lie in one matrix, of float32 or of bytes, and texts
in an SQLite table with the vectors beside them; a write is one transaction that is on the disk when
it returns. It does nothing that a memory needs beyond that.
"""

from __future__ import annotations

import sqlite3
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.compare.stores import Opening, Texts, _Base, read_durability
from bench.compare.vectors import DIMENSIONS, Floats

__all__ = ["Limit", "LimitOfBytes"]


class Limit(_Base):
    """float32, by numpy."""

    def __init__(self, opening: Opening) -> None:
        super().__init__(opening)
        file = opening.folder / "limit.db"
        self._table = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
        self._table.execute("PRAGMA journal_mode = WAL")
        self._table.execute("PRAGMA synchronous = FULL")
        self._table.execute(
            "CREATE TABLE IF NOT EXISTS texts"
            " (number INTEGER PRIMARY KEY, id TEXT UNIQUE, text TEXT, vector BLOB)"
        )
        self.durability = read_durability(self._table)
        self._made: tuple[list[int], Any] | None = None

    def add(self, space: str, texts: Texts) -> None:
        """One transaction."""
        vectors = self._vectors([text for _, text, _ in texts])
        rows = [(n, t, v.tobytes()) for (n, t, _), v in zip(texts, vectors, strict=True)]
        self._table.execute("BEGIN")
        self._table.executemany("INSERT INTO texts (id, text, vector) VALUES (?, ?, ?)", rows)
        self._table.execute("COMMIT")
        self._made = None

    def search(self, space: str, query: str, k: int) -> list[str]:
        """All cosines, the best `k` of them, their texts."""
        if self._made is None:
            rows = self._table.execute("SELECT number, vector FROM texts").fetchall()
            matrix = np.frombuffer(b"".join(v for _, v in rows), np.float32)
            self._made = [n for n, _ in rows], self.make(matrix.reshape(-1, DIMENSIONS))
        numbers, made = self._made
        scores = self.score(made, self._vectors([query])[0])
        best = np.argpartition(-scores, k)[:k]
        asked = [numbers[at] for at in best[np.argsort(-scores[best])]]
        marks = ", ".join("?" * k)
        read = f"SELECT number, id, text FROM texts WHERE number IN ({marks})"
        texts = {number: name for number, name, _ in self._table.execute(read, asked)}
        return [texts[number] for number in asked]

    def delete(self, space: str, item: str) -> None:
        """One transaction."""
        self._table.execute("DELETE FROM texts WHERE id = ?", (item,))
        self._made = None

    def close(self) -> None:
        """Close the connection."""
        self._table.close()

    def make(self, matrix: Floats) -> Any:
        """What is scored."""
        return matrix

    def score(self, made: Any, asked: Floats) -> NDArray[Any]:
        """The cosine of each text, or what orders texts as it does."""
        scores: Floats = made @ asked
        return scores


class LimitOfBytes(Limit):
    """A byte a dimension, by numkong."""

    def make(self, matrix: Floats) -> Any:
        """Bytes, packed for the processor."""
        import numkong  # type: ignore[import-not-found,unused-ignore]

        return numkong.dots_pack(_bytes_of(matrix), "int8")

    def score(self, made: Any, asked: Floats) -> NDArray[Any]:
        """One product of whole numbers."""
        import numkong

        scores: NDArray[np.int32] = np.asarray(numkong.dots_packed(_bytes_of(asked[None]), made))
        return scores.ravel()


def _bytes_of(rows: Floats) -> NDArray[np.int8]:
    # One scale for all: the largest value of a unit vector of 384 dimensions is far below 0.5.
    return np.clip(np.rint(rows * 254), -127, 127).astype(np.int8)
