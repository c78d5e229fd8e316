"""Finds what a focus may mean: words first, and further rungs only where words found nothing.

In: a reading, a query vector, the projects asked about. Out: candidates whose own words ground
them, and which rung found them. The rungs are the word index, a scan of truth for parts of words,
and the notes; each is climbed only when the one before had nothing. It never guesses: a rung takes
nothing that has no word, or large part of one, in common with the focus.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from anaphora.index.sections.forward import FieldScores
from anaphora.index.sections.state import SectionCandidates, SectionQuery
from anaphora.rank.context.table import DOCUMENT_KINDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from anaphora.index.sections.index import SectionIndex
    from anaphora.store.projects.notes import Notes

CANDIDATES: Final = 400
"""Rows that words may bring."""

Rung = Literal["words", "scan", "notes", "none"]

LEAST_PART: Final = 5
"""Characters of a term that is looked for within words: "art" would be found in every "start"."""

_NOTES: Final = (DOCUMENT_KINDS.index("observation"), DOCUMENT_KINDS.index("diary"))


@dataclass(frozen=True, slots=True)
class Found:
    """Candidates, and the rung that found them ("none": nothing was found)."""

    candidates: SectionCandidates
    rung: Rung


def search(index: SectionIndex, notes: Notes, wanted: SectionQuery) -> Found:
    """Climb the rungs until one has something."""
    found = index.candidates(wanted)
    if len(found.rows):
        return Found(found, "words")
    parts = {t: w for t, w in found.weights.items() if len(t) >= LEAST_PART or not t.isascii()}
    rungs: tuple[tuple[Rung, Mapping[int, float]], ...] = ()
    if parts:
        scanned = _scan(
            ((index.row(s.id), s.text) for s in index.all_texts(wanted.projects)), parts
        )
        rungs = (("scan", scanned),)
        if not scanned:
            rungs = (("notes", _scan(_notes(index, notes, wanted), parts)),)
    for rung, held in rungs:
        some = _scanned(index, wanted, held, found)
        if len(some.rows):
            return Found(some, rung)
    return Found(found, "none")


def _notes(index: SectionIndex, notes: Notes, wanted: SectionQuery) -> Iterable[tuple[int, str]]:
    table = index.table()
    rows = index.visible_rows(wanted.projects, wanted.now)
    rows = rows[np.isin(table.kind[rows], _NOTES)]
    ids = {table.ids[row]: row for row in rows.tolist()}
    return [(ids[one], row.record.text) for one, row in notes.many(ids).items()]


def _scan(texts: Iterable[tuple[int, str]], parts: Mapping[str, float]) -> dict[int, float]:
    """Rows that hold a part of a word, with the sum of what the parts are worth."""
    held: dict[int, float] = {}
    for row, text in texts:
        folded = text.lower()
        worth = sum(weight for part, weight in parts.items() if part in folded)
        if worth and row >= 0:
            held[row] = worth
    return held


def _scanned(
    index: SectionIndex,
    wanted: SectionQuery,
    held: Mapping[int, float],
    found: SectionCandidates,
) -> SectionCandidates:
    best = sorted(held, key=lambda row: (-held[row], row))[: wanted.limit]
    some = index.described(wanted, np.array(best, np.int64))
    worth: NDArray[np.float64] = np.array([held[row] for row in some.rows.tolist()])
    none = np.zeros(len(worth))
    share = worth / (found.mass or 1.0)
    words = FieldScores(path=none, title=none, body=worth, held=share)
    return replace(some, words=words, weights=found.weights, degraded=found.degraded)
