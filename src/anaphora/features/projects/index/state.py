"""The state of one index of sections, and the search for candidates in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anaphora.features.projects.index.rows import SectionRows
from anaphora.features.projects.index.vectors import SectionVectors
from anaphora.features.projects.index.words import SectionWords
from anaphora.features.projects.ranking.scores import FieldScores
from anaphora.features.projects.ranking.table import SectionTable
from anaphora.index.rows import CURRENT, PAST

Rows = NDArray[np.int64]

_MOST_ASKED: Final = 8_192


@dataclass(frozen=True, slots=True)
class SectionQuery:
    """A query: terms with their weights before IDF, and a unit vector or none.

    `projects` are ids, None for all; notes without a project belong to all. `limit` is how many
    rows may match words; `terms` how many of the terms with the highest weights are used once their
    IDF is known. `past` asks for replaced notes instead of current rows. `now` is in microseconds.
    """

    weights: Mapping[str, float]
    limit: int
    now: int
    vector: NDArray[np.float32] | None = None
    projects: frozenset[str] | None = None
    terms: int = 64
    past: bool = False


@dataclass(frozen=True, slots=True)
class SectionCandidates:
    """R candidates: rows of `table`, the scores of their words, and their cosines.

    A cosine is NaN if a row has no vector; `cosine` is None if the query has none. `weights` has
    the weight of each term with its IDF. `pending` counts visible rows without a vector.
    """

    table: SectionTable
    rows: Rows
    words: FieldScores
    weights: Mapping[str, float]
    cosine: NDArray[np.float64] | None = None
    pending: int = 0

    @property
    def mass(self) -> float:
        """The sum of the terms' weights."""
        return sum(self.weights.values())


@dataclass(frozen=True, slots=True)
class SectionCheck:
    """Counts of sections and notes (`known`, with past notes), of documents `on_disk` and only
    `in_memory`, of visible rows without a vector (`pending`); and the problem with the file, or
    None.
    """

    known: int
    on_disk: int
    in_memory: int
    pending: int
    problem: str | None = None


@dataclass(slots=True)
class SectionState:
    """Rows, words and vectors of one index."""

    rows: SectionRows
    words: SectionWords
    vectors: SectionVectors

    def find(self, query: SectionQuery) -> SectionCandidates:
        """The `limit` best rows by words, of those that may be shown."""
        keep = self.keep(query)
        weights = self.weights(query)
        rows = np.empty(0, np.int64)
        if weights and keep.any():
            ask_for = query.limit if keep.all() else 2 * query.limit
            while True:
                best = self.words.best(weights, ask_for)
                good = best[keep[best]]
                if len(good) >= query.limit or len(best) < ask_for or ask_for >= _MOST_ASKED:
                    rows = good[: query.limit]
                    break
                ask_for *= 4
        return self.described(query, weights, rows, keep)

    def weights(self, query: SectionQuery) -> dict[str, float]:
        """The terms with the highest weights, each times its IDF."""
        return strongest(self.words.weights(query.weights), query.terms)

    def described(
        self,
        query: SectionQuery,
        weights: Mapping[str, float],
        rows: Rows,
        keep: NDArray[np.bool_],
    ) -> SectionCandidates:
        """These rows as candidates, with the scores of their words and their cosines."""
        keys = self.rows.vector_keys()
        table = self.rows.table()
        cosine, pending = None, 0
        if query.vector is not None:
            cosine = self.vectors.cosines(query.vector, keys, rows)
            pending = int((keep & ~self.vectors.embedded(keys)).sum())
        return SectionCandidates(
            table, rows, self.words.scores(weights, rows), weights, cosine, pending
        )

    def keep(self, query: SectionQuery) -> NDArray[np.bool_]:
        """Which rows may be shown, (N,)."""
        table = self.rows.table()
        keep: NDArray[np.bool_] = self.rows.column("state") == (PAST if query.past else CURRENT)
        for row in self.rows.expired(query.now):
            keep[row] = query.past
        if query.projects is None or not len(keep):
            return keep
        matching = np.array([project in query.projects for project in table.projects], np.bool_)
        without_project = np.array([not project for project in table.projects], np.bool_)
        keep &= matching[table.project] | ((table.file < 0) & without_project[table.project])
        return keep


def strongest(weights: Mapping[str, float], limit: int) -> dict[str, float]:
    """The `limit` terms with the highest weights, ties by term; in their original order."""
    if len(weights) <= limit:
        return dict(weights)
    strongest_terms = set(sorted(weights, key=lambda term: (-weights[term], term))[:limit])
    return {term: weight for term, weight in weights.items() if term in strongest_terms}
