"""The words of memories: how much of a question's weight does each text hold?

For rows, the share (0 … 1) of the question's IDF mass that they match: BM25 over the sum of IDFs,
absolute, never relative to the best match.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anaphora.index.words.index import WordIndex
from anaphora.index.words.lookup import Lookup, Word, look_up
from anaphora.index.words.manifest import SegmentFolder
from anaphora.index.words.parts import PartSizes

FIELDS: Final = ("words",)

LEAST_DOCUMENTS: Final = 1000
"""A term's rarity is judged as in at least so many memories: among three, every word is rare."""

PART_SIZES: Final = PartSizes()

Rows = NDArray[np.int64]
Shares = NDArray[np.float64]


def memory_segments(
    folder: Path,
    key_tag: str = "",
    check: Callable[[], None] = lambda: None,
    sizes: PartSizes = PART_SIZES,
) -> SegmentFolder:
    """Where the words of memories lie, in parts."""
    return SegmentFolder(folder, "memories.json", FIELDS, key_tag, check, sizes=sizes)


class MemoryWords:
    """Scores the words of one namespace's memories. One thread at a time."""

    def __init__(self, index: WordIndex) -> None:
        self.index = index

    def look_up(self, terms: Sequence[Word]) -> Lookup:
        """The IDF of each distinct term, of those too that no memory holds: they are the rarest."""
        return look_up(
            terms,
            self.index.statistics,
            self.index.term,
            least_documents=LEAST_DOCUMENTS,
            unheld=True,
        )

    def best(self, wanted: Lookup, limit: int) -> tuple[Rows, Shares, float]:
        """Rows that match, with their shares; others may match no more than the last value.

        That is 0 where these are all, else the share of the worst of the segment's `limit` best.
        """
        rows, scores = self.index.in_memory([wanted.weights])
        boosts = self.index.statistics.boosts(wanted.weights)
        count = self.index.count
        found, stored = self.index.search({FIELDS[0]: boosts}, max(1, min(limit, count)))
        alive = found >= 0
        rows = np.concatenate((found[alive], rows))
        scores = np.concatenate((stored[alive], scores))
        more = limit <= len(found) < count
        least = float(_share(stored[-1:], wanted)[0]) if more else 0.0
        return rows, _share(scores, wanted), least

    def of_rows(self, wanted: Lookup, rows: Rows) -> Shares:
        """The share that each of these rows matches, shape of `rows`."""
        found = dict.fromkeys(rows.tolist(), 0.0)
        for row, score in zip(
            *(a.tolist() for a in self.index.in_memory([wanted.weights])), strict=True
        ):
            if row in found:
                found[row] = score
        numbers = self.index.numbers(np.array([*found], np.int64))
        numbers = numbers[numbers > 0]
        boosts = self.index.statistics.boosts(wanted.weights)
        if len(numbers):
            some = self.index.search({FIELDS[0]: boosts}, len(numbers), numbers.tolist())
            found.update(zip(*(a.tolist() for a in some), strict=True))
        return _share(np.array([found[row] for row in rows.tolist()], np.float64), wanted)


def _share(scores: Shares, wanted: Lookup) -> Shares:
    """BM25 as a share of the question's IDF mass: a text of average length that has it all is 1.

    Rounded, because a segment adds in single precision: a share does not depend on where a text is.
    """
    mass = wanted.mass
    return np.minimum(np.round(scores / mass, 5), 1.0) if mass else np.zeros(len(scores))
