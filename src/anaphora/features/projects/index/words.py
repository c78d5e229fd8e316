"""The words of a project's sections and notes, field by field: path, title, body.

For each row, the BM25 of each field and the share of the terms' mass that the row matches in any
field.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anaphora.features.projects.ranking.scores import FieldScores
from anaphora.index.words.documents import numbers_of
from anaphora.index.words.index import WordIndex, best_of
from anaphora.index.words.postings import K1, B, idf, sum_by_row

FIRST: Final = {"path": 2.0, "title": 2.0, "body": 1.0}
"""The weights of fields in the search for candidates: a name says more than a mention."""
FIELDS: Final = tuple(FIRST)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class SectionWords:
    """Scores the words of one namespace's sections and notes. One thread at a time."""

    def __init__(self, index: WordIndex) -> None:
        self.index = index

    def weights(self, terms: Mapping[str, float]) -> dict[str, float]:
        """Each term's weight times its IDF; terms that no row has count as the rarest.

        The IDF is that in bodies: each section of a file repeats the file's path, so that paths
        would make the name of a large file a common word. Keys are the terms of the index (keyed
        in a sealed home).
        """
        statistics, keyed_terms = self.index.statistics, [*map(self.index.term, terms)]
        path, title, body = (
            statistics.holding(numbers_of(keyed_terms, field)) for field in range(len(FIELDS))
        )
        counts = np.where(body > 0, body, np.maximum(path, title)).tolist()
        return {
            term: weight * idf(max(statistics.documents, count), count)
            for term, weight, count in zip(keyed_terms, terms.values(), counts, strict=True)
        }

    def best(self, weights: Mapping[str, float], limit: int) -> Ints:
        """Rows that match a term in any field, best first by the fields' weighted BM25."""
        useful = {term: weight for term, weight in weights.items() if weight > 0.0}
        entries = [
            self.index.entries(
                numbers_of(useful, field), [worth * w for w in useful.values()], field
            )[1:]
            for field, worth in enumerate(FIRST.values())
        ]
        rows, scores = sum_by_row(*map(np.concatenate, zip(*entries, strict=True)))
        rows, scores = best_of(rows, scores, limit)
        return rows[np.lexsort((rows, -np.round(scores, 4)))]

    def scores(self, weights: Mapping[str, float], rows: Ints) -> FieldScores:
        """The scores of each of `rows`: the same wherever a document is stored."""
        statistics, useful = self.index.statistics, {t: w for t, w in weights.items() if w > 0.0}
        worth = np.fromiter(useful.values(), np.float64, len(useful))
        sums = np.zeros((len(FIELDS), len(rows)))
        has_term = np.zeros((len(useful), len(rows)), np.bool_)
        # By row, -1 for others, and at the end: those beyond it.
        index_of = np.full(int(rows.max(initial=-1)) + 2, -1)
        index_of[rows] = np.arange(len(rows))
        for field in range(len(FIELDS)):
            average = statistics.average(field)
            occurrences = self.index.occurrences(numbers_of(useful, field), field)
            at = index_of.take(occurrences.keys, mode="clip")
            in_rows = at >= 0
            at, of_terms, _, counts, lengths = (c[in_rows] for c in (at, *occurrences))
            saturation = counts + K1 * (1.0 - B + B * lengths / average)
            parts = worth[of_terms] * (K1 + 1.0) * counts / saturation
            sums[field] = np.bincount(at, parts, len(rows))
            has_term[of_terms, at] = True
        matched = worth @ has_term / (worth.sum() or 1.0)
        path, title, body = sums.round(4)
        return FieldScores(path, title, body, np.minimum(matched.round(5), 1.0))
