"""The words of memories: how much of a question's weight does each text match?

The share (0 … 1) of the question's IDF mass that a row matches is BM25 over the sum of IDFs:
absolute, never relative to the best match. With BM25 alone, the share of a text falls with its
length without bound, so that a text of hundreds of words would rank behind texts that match
nothing. As in BM25+ (Lv and Zhai, *Lower-Bounding Term Frequency Normalization*, 2011), a rare word
has a least worth in every text, and a higher one in texts with all words of the question.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anaphora.index.words.documents import numbers_of
from anaphora.index.words.index import WordIndex
from anaphora.index.words.lookup import Lookup, Word, look_up
from anaphora.index.words.postings import WordStatistics, sum_by_row
from anaphora.values.fitted import fitted

LEAST_DOCUMENTS: Final = 1000
"""IDF is computed as for at least so many memories: among three, every word is rare."""

RARE: Final = 32
"""A word in at most so many memories has a least worth in each of them."""

_NUMBERS: Final = fitted("words")

LEAST_WORTH: Final[float] = _NUMBERS["LEAST_WORTH"]
"""The least worth, as a share of the word's worth in a text of average length. BM25 falls below it
in texts more than 3.5 times as long as the average."""

WHOLE_WORTH: Final[float] = _NUMBERS["WHOLE_WORTH"]
"""The least worth in a text with all words of the question, each of them rare: the ranking counts a
part of the words for less than its share, so that half a match would rank behind short texts with
none of them. BM25 falls below it in texts 1.8 times as long as the average. Less than a full match,
which would make any long text with a word an exact answer."""

TITLE_WORTH: Final[float] = _NUMBERS["TITLE_WORTH"]
"""The worth of a question's word in the title of a memory: its path, its tags. Of two memories with
the same words, the one with them in its text ranks first."""

EXACT_WORTH: Final[float] = _NUMBERS["EXACT_WORTH"]
"""The least worth of a text with the versions, codes, dates and times of day that a question names:
a text with others of the same kind is about something else, whatever else it shares."""

Rows = NDArray[np.int64]
Shares = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Matches:
    """The rows that match words, in ascending order, with the share that each matches."""

    rows: Rows
    shares: Shares

    def of(self, rows: Rows) -> Shares:
        """The share that each of these rows matches, shape of `rows`."""
        places = np.searchsorted(self.rows, rows)
        shares = np.append(self.shares, 0.0)[places]
        shares[np.append(self.rows, -1)[places] != rows] = 0.0
        return shares


class MemoryWords:
    """Scores the words of one namespace's memories. One thread at a time."""

    def __init__(self, index: WordIndex) -> None:
        self.index = index
        self._question: tuple[WordStatistics, Sequence[Word], Lookup, Matches] | None = None

    def look_up(self, terms: Sequence[Word]) -> Lookup:
        """Look up each distinct term; those that no memory has count as the rarest."""
        return look_up(
            terms,
            self.index.statistics,
            self.index.term,
            least_documents=LEAST_DOCUMENTS,
            unheld=True,
        )

    def match_question(self, terms: Sequence[Word]) -> tuple[Lookup, Matches]:
        """The rows that match the terms of a question: kept until another one, or a change."""
        statistics = self.index.statistics
        question = self._question
        if question is None or question[0] is not statistics or question[1] != terms:
            lookup = self.look_up(terms)
            question = self._question = statistics, terms, lookup, self.match(lookup)
        return question[2:]

    def match(self, lookup: Lookup) -> Matches:
        """All rows that match."""
        weights = _weights(lookup)
        if not weights:
            return Matches(np.empty(0, np.int64), np.empty(0))
        numbers, matches, parts = self.index.entries(numbers_of(weights), weights.values())
        rows, sums = sum_by_row(matches, parts)
        shares = _share(sums, lookup.mass)
        self._raise_rare(lookup, weights, numbers, matches, rows, shares)
        return Matches(rows, shares)

    def _raise_rare(
        self,
        lookup: Lookup,
        weights: Mapping[str, float],
        numbers: Rows,
        matches: Rows,
        rows: Rows,
        shares: Shares,
    ) -> None:
        """Give the rows with rare words their least share."""
        entries = np.flatnonzero(np.bincount(numbers)[numbers] <= RARE)
        if not len(entries):
            return
        rare_rows, places = np.unique(matches[entries], return_inverse=True)

        def add_up(of_terms: Iterable[float]) -> Shares:
            amounts = np.fromiter(of_terms, np.float64, len(weights))[numbers[entries]]
            return np.bincount(places, amounts, len(rare_rows)).astype(np.float64)

        least_shares = np.zeros(len(rare_rows))
        for of_terms, worth in ((lookup.weights, 1.0), (lookup.titles, TITLE_WORTH)):
            if of_terms:
                matched_shares = _share(
                    add_up(of_terms.get(term, 0.0) for term in weights), lookup.mass
                )
                worths = np.round(LEAST_WORTH * matched_shares, 5)
                worths[matched_shares == 1.0] = WHOLE_WORTH
                least_shares = np.maximum(least_shares, np.round(worth * worths, 5))
        if lookup.exact:
            group_matches = [
                add_up(term in group for term in weights) > 0 for group in lookup.exact
            ]
            exact_shares = np.round(
                EXACT_WORTH * (np.sum(group_matches, axis=0) / len(group_matches)), 5
            )
            least_shares = np.maximum(least_shares, exact_shares)
        at = np.searchsorted(rows, rare_rows)
        shares[at] = np.maximum(shares[at], least_shares)

    def of_titles(self, lookup: Lookup, rows: Rows) -> Shares:
        """The share that the title of each of these rows matches, shape of `rows`."""
        if not lookup.titles:
            return np.zeros(len(rows))
        _, matches, parts = self.index.entries(numbers_of(lookup.titles), lookup.titles.values())
        title_rows, sums = sum_by_row(matches, parts)
        return Matches(title_rows, _share(sums, lookup.mass)).of(rows)

    def holding(self, tokens: Sequence[str], count: int) -> NDArray[np.bool_]:
        """Which of `count` rows have any of these tokens, shape (count,)."""
        mask = np.zeros(count, np.bool_)
        numbers = numbers_of(map(self.index.term, tokens))
        mask[self.index.occurrences(numbers).keys] = True
        return mask


def _weights(lookup: Lookup) -> dict[str, float]:
    """The weight of each term, in texts and titles."""
    if not lookup.titles:
        return lookup.weights
    return lookup.weights | {term: TITLE_WORTH * weight for term, weight in lookup.titles.items()}


def _share(scores: Shares, mass: float) -> Shares:
    """BM25 as a share of an IDF mass: 1 for a text of average length with all words.

    Rounded, because the order in which texts came must not decide between equals.
    """
    return np.minimum(np.round(scores / mass, 5), 1.0) if mass else np.zeros(len(scores))
