"""Ranks files and notes as places to look at first, out of the scores of their sections.

In: ranked rows, what the focus asks for. Out: targets, best first, each with its best section.
Never: a text, a clock, a disk, a model.

    file = (best section + others · Σ decayⁿ · n-th other + path · path + file_title · best name
            + named · named + file_meaning · closest section) · role fit · confidence · recency

The sum over the other sections saturates: a file that speaks of the focus in many places is a
better target than one that mentions it once, and a huge file gains no more by being huge. A note is
a target of its own, with its row's score. What has no word in common with the focus is no target.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anaphora.rank.context.sections import Ask, RowScores, Signals
from anaphora.rank.context.table import SectionTable
from anaphora.rank.context.weights import DEFAULT_WEIGHTS, Weights

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TargetScores:
    """T targets, best first, each (T,).

    `files`: codes into the table's files, -1 for a note. `best`: the place, among the rows that
    were ranked, of the best section (of a note, its own). `held`: the greatest share of the terms'
    mass in one section; `named`: how surely the focus names the file; `grounded`: the score
    without meaning, recency and role, of the whole focus: what words and names alone say.
    """

    files: Ints
    best: Ints
    score: Floats
    held: Floats
    named: Floats
    grounded: Floats

    def __len__(self) -> int:
        return len(self.files)


def rank_targets(
    table: SectionTable,
    signals: Signals,
    ask: Ask,
    rows: RowScores,
    weights: Weights = DEFAULT_WEIGHTS,
) -> TargetScores:
    """Files and notes with a word in common with the focus, best first; ties by row number."""
    w = weights
    file = table.file[rows.rows].astype(np.int64)
    places = np.flatnonzero(rows.grounded)
    # Each note is a target of its own.
    owner = np.where(file >= 0, file, len(table.files) + rows.rows)[places]
    owners, where = np.unique(owner, return_inverse=True)
    mass = signals.whole
    of = _Owned(len(owners), where, places)
    score: Floats = of.best(rows.match) + w.others * of.others(rows.match, w.decay)
    score += w.path * of.best(signals.path / mass) + w.file_title * of.best(signals.title / mass)
    named = np.array([ask.named.get(int(one), 0.0) for one in owners.tolist()], np.float64)
    of_notes = of.best(rows.signals["words"])
    # How far to trust a package is about all that was asked, not about what one section can hold.
    grounded = np.where(owners < len(table.files), score, of_notes) * signals.share
    grounded = (grounded + w.named * named).round(6)
    score += w.named * named
    score += w.file_meaning * of.best(rows.signals["meaning"])
    score *= of.best(rows.signals["role_fit"]) * of.best(rows.signals["confidence"])
    score *= 1.0 + w.recent * of.best(rows.signals["recency"])
    is_file = owners < len(table.files)
    score = np.where(is_file, score, of.best(rows.score)).round(6)
    first = of.first(rows)
    order = np.lexsort((rows.rows[first], -score))
    return TargetScores(
        files=np.where(is_file, owners, -1)[order],
        best=first[order],
        score=score[order],
        held=of.best(signals.held)[order],
        named=named[order],
        grounded=grounded[order],
    )


@dataclass(frozen=True, slots=True)
class _Owned:
    """Rows that belong to T targets: `where` (G,) says to which, `places` (G,) which rows."""

    count: int
    where: NDArray[np.intp]
    places: NDArray[np.intp]

    def best(self, values: Floats) -> Floats:
        """The greatest value of each target's rows."""
        found = np.zeros(self.count)
        np.maximum.at(found, self.where, values[self.places])
        return found

    def first(self, rows: RowScores) -> Ints:
        """The place of each target's best row."""
        rank = np.empty(len(rows.order), np.int64)
        rank[rows.order] = np.arange(len(rows.order))
        found = np.full(self.count, len(rows.order), np.int64)
        np.minimum.at(found, self.where, rank[self.places])
        return rows.order[found].astype(np.int64)

    def others(self, values: Floats, decay: float) -> Floats:
        """The sum of each target's n-th best values times decay ** n, n from 1 (not the best)."""
        mine = values[self.places]
        order = np.lexsort((-mine, self.where))
        owner, ranked = self.where[order], mine[order]
        nth = np.arange(len(owner)) - np.searchsorted(owner, np.arange(self.count))[owner]
        parts = np.where(nth > 0, decay ** nth.astype(np.float64) * ranked, 0.0)
        found: Floats = np.bincount(owner, parts, self.count).astype(np.float64)
        return found
