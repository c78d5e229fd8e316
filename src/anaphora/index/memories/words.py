"""The words of memories: how much of a question's weight does each text match?

The share (0 … 1) of the question's IDF mass that a row matches is BM25 over the sum of IDFs:
absolute, never relative to the best match. With BM25 alone, the share of a text falls with its
length without bound, so that a text of hundreds of words would rank behind texts that match
nothing. As in BM25+ (Lv and Zhai, *Lower-Bounding Term Frequency Normalization*, 2011), a rare word
has a least worth in every text, and a higher one in texts with all words of the question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anaphora.index.words.index import WordIndex
from anaphora.index.words.lookup import Lookup, Word, look_up

FIELDS: Final = ("words",)

LEAST_DOCUMENTS: Final = 1000
"""IDF is computed as for at least so many memories: among three, every word is rare."""

RARE: Final = 32
"""A word in at most so many memories has a least worth in each of them."""

LEAST_WORTH: Final = 0.5
"""The least worth, as a share of the word's worth in a text of average length. BM25 falls below it
in texts more than 3.5 times as long as the average."""

WHOLE_WORTH: Final = 0.75
"""The least worth in a text with all words of the question, each of them rare: the ranking counts a
part of the words for less than its share, so that half a match would rank behind short texts with
none of them. BM25 falls below it in texts 1.8 times as long as the average. Less than a full match,
which would make any long text with a word an exact answer."""

TITLE_WORTH: Final = 0.7
"""The worth of a question's word in the title of a memory: its path, its tags. Of two memories with
the same words, the one with them in its text ranks first."""

EXACT_WORTH: Final = 0.95
"""The least worth of a text with the versions, codes, dates and times of day that a question names:
a text with others of the same kind is about something else, whatever else it shares."""

Rows = NDArray[np.int64]
Shares = NDArray[np.float64]


class MemoryWords:
    """Scores the words of one namespace's memories. One thread at a time."""

    def __init__(self, index: WordIndex) -> None:
        self.index = index
        self._least: tuple[Lookup, dict[int, float]] | None = None

    def look_up(self, terms: Sequence[Word]) -> Lookup:
        """Look up each distinct term; those that no memory has count as the rarest."""
        return look_up(
            terms,
            self.index.statistics,
            self.index.term,
            least_documents=LEAST_DOCUMENTS,
            unheld=True,
        )

    def best(self, lookup: Lookup, limit: int) -> tuple[Rows, Shares, float]:
        """Rows that match, with their shares; other rows match no more than the third value.

        It is 0 if these are all, otherwise the share of the last of the segment's `limit` best.
        """
        weights, count = [_weights(lookup)], self.index.count
        rows, scores = self.index.in_memory(weights)
        stored_rows, stored_scores = self.index.best(weights, max(1, min(limit, count)))
        rows = np.concatenate((stored_rows, rows))
        scores = np.concatenate((stored_scores, scores))
        has_more = limit <= len(stored_rows) < count
        least_share = float(_share(stored_scores[-1:], lookup)[0]) if has_more else 0.0
        shares = _share(scores, lookup)
        if worths := self._least_worths(lookup):
            missed_rows = np.setdiff1d(np.fromiter(worths, np.int64, len(worths)), rows)
            rows = np.concatenate((rows, missed_rows))
            shares = np.concatenate((shares, np.zeros(len(missed_rows))))
            shares = np.maximum(shares, [worths.get(row, 0.0) for row in rows.tolist()])
        return rows, shares, least_share

    def of_rows(self, lookup: Lookup, rows: Rows) -> Shares:
        """The share that each of these rows matches, shape of `rows`."""
        shares = _share(self._scores(_weights(lookup), rows), lookup)
        if worths := self._least_worths(lookup):
            shares = np.maximum(shares, [worths.get(row, 0.0) for row in rows.tolist()])
        return shares

    def of_titles(self, lookup: Lookup, rows: Rows) -> Shares:
        """The share that the title of each of these rows matches, shape of `rows`."""
        if not lookup.titles:
            return np.zeros(len(rows))
        return _share(self._scores(lookup.titles, rows), lookup)

    def _scores(self, weights: Mapping[str, float], rows: Rows) -> Shares:
        """BM25 of each of these rows, shape of `rows`."""
        matches, scores = self.index.all([weights])
        room = max(int(matches.max(initial=-1)), int(rows.max(initial=-1))) + 1
        sums = np.zeros(room)
        sums[matches] = scores
        return sums[rows]

    def _least_worths(self, lookup: Lookup) -> dict[int, float]:
        """The least share of each row with rare words of the question."""
        if self._least is None or self._least[0] is not lookup:
            worths = self._worths(lookup.weights, lookup)
            for row, worth in self._worths(lookup.titles, lookup).items():
                worths[row] = max(worths.get(row, 0.0), round(TITLE_WORTH * worth, 5))
            counts: dict[int, int] = {}
            for terms in lookup.exact:
                for row in {row for term in terms for row in self._holders(term).tolist()}:
                    counts[row] = counts.get(row, 0) + 1
            for row, count in counts.items():
                exact_worth = round(EXACT_WORTH * (count / len(lookup.exact)), 5)
                worths[row] = max(worths.get(row, 0.0), exact_worth)
            self._least = lookup, worths
        return self._least[1]

    def _worths(self, weights: Mapping[str, float], lookup: Lookup) -> dict[int, float]:
        sums: dict[int, float] = {}
        for term, weight in weights.items():
            for row in self._holders(term).tolist():
                sums[row] = sums.get(row, 0.0) + weight
        matched_shares = _share(np.fromiter(sums.values(), np.float64, len(sums)), lookup)
        shares = np.where(
            matched_shares == 1.0, WHOLE_WORTH, np.round(LEAST_WORTH * matched_shares, 5)
        ).tolist()
        return dict(zip(sums, shares, strict=True))

    def holding(self, tokens: Sequence[str], count: int) -> NDArray[np.bool_]:
        """Which of `count` rows have any of these tokens, shape (count,)."""
        mask = np.zeros(count, np.bool_)
        for term in map(self.index.term, tokens):
            mask[self._rows_of(term)] = True
        return mask

    def _holders(self, term: str) -> Rows:
        """The rows with a rare term; none for a common one."""
        count = self.index.statistics.holding(term)
        return self._rows_of(term) if 0 < count <= RARE else np.empty(0, np.int64)

    def _rows_of(self, term: str) -> Rows:
        """The rows with a term."""
        return self.index.all([{term: 1.0}])[0]


def _weights(lookup: Lookup) -> dict[str, float]:
    """The weight of each term, in texts and titles."""
    if not lookup.titles:
        return lookup.weights
    return lookup.weights | {term: TITLE_WORTH * weight for term, weight in lookup.titles.items()}


def _share(scores: Shares, lookup: Lookup) -> Shares:
    """BM25 as a share of the question's IDF mass: 1 for a text of average length with all words.

    Rounded, because a segment adds in single precision: a share must not depend on where a text
    is stored.
    """
    mass = lookup.mass
    return np.minimum(np.round(scores / mass, 5), 1.0) if mass else np.zeros(len(scores))
