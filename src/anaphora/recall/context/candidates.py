"""Ranks what was found for a focus, and says how far it may be trusted.

In: candidates, the reading. Out: scores of rows and targets, and the quality label. The weighing
itself is `rank.context`'s; this brings together what it needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from anaphora.index.sections.forward import FieldScores
from anaphora.index.sections.state import SectionCandidates, SectionQuery
from anaphora.rank.context.names import Modules, PathNames
from anaphora.rank.context.scores import (
    Ask,
    RowScores,
    Signals,
    TargetScores,
    holdable,
    quality_of,
    rank_rows,
    rank_targets,
)
from anaphora.rank.context.table import DOCUMENT_KINDS
from anaphora.recall.context.excerpts import Excerpts, FocusWords
from anaphora.recall.context.focus import Reading
from anaphora.values.projects import Focus, Quality

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from anaphora.index.sections.index import SectionIndex
    from anaphora.rank.context.table import SectionTable
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


@dataclass(frozen=True, slots=True)
class Asked:
    """The question: its reading, the projects it is about (id to name), and how it is answered."""

    reading: Reading
    projects: Mapping[str, str]
    sources: bool = False

    @property
    def focus(self) -> Focus:
        """The focus as it was read."""
        return self.reading.focus

    def asks_for(self, intent: str) -> bool:
        """Whether the focus appears to need this kind of context."""
        return intent in self.focus.intents


@dataclass(frozen=True, slots=True)
class Ranked:
    """Candidates with their scores, and the places to look at first, best first.

    `by_name` are the codes of files that the focus calls by their path or module; `modules` are
    all folders there are.
    """

    candidates: SectionCandidates
    rows: RowScores
    targets: TargetScores
    words: FocusWords
    excerpts: Excerpts
    by_name: frozenset[int] = frozenset()
    modules: Modules = field(default_factory=lambda: Modules((), ()))

    def best_files(self, most: int) -> dict[str, list[str]]:
        """The paths of the best files, by project."""
        table = self.candidates.table
        found: dict[str, list[str]] = {}
        codes = [code for code in self.targets.files.tolist() if code >= 0]
        for code in codes[:most]:
            project = table.projects[int(table.files.project[code])]
            found.setdefault(project, []).append(table.files.paths[code])
        return found

    def project(self, row: int) -> str:
        """The id of a row's project, "" for a note of none."""
        table = self.candidates.table
        return table.projects[int(table.project[row])]

    def path(self, row: int) -> str | None:
        """The path of a row's file, None for a note."""
        table = self.candidates.table
        code = int(table.file[row])
        return None if code < 0 else table.files.paths[code]


DEFINES: Final = 0.4
"""Defining what the focus names, beside being named by a path, which is 1: for a short focus that
names little else. Chosen, not fitted."""


class Ranker:
    """Ranks for one index; what it makes of a table's file names it keeps for the next question."""

    def __init__(self) -> None:
        self._names: tuple[SectionTable, PathNames, Modules] | None = None

    def rank(
        self, asked: Asked, found: Found, now: int, defined: Mapping[tuple[str, str], float]
    ) -> tuple[Ranked, Quality]:
        """Scores of all candidates; `now` in microseconds.

        `defined` are files, by project and path, that define what the focus calls by its name,
        and how surely it is meant.
        """
        some, words = found.candidates, found.candidates.words
        signals = Signals(
            rows=some.rows,
            path=words.path,
            title=words.title,
            body=words.body,
            held=words.held,
            mass=some.mass,
            cosine=some.cosine,
            most=holdable(some.weights.values()),
        )
        path_names, modules = self._known(some.table)
        by_name = _named(asked, some.table, path_names)
        named = dict(by_name)
        for code, sure in _codes(some.table, defined):
            named[code] = max(named.get(code, 0.0), DEFINES * sure)
        ask = Ask(
            intents=asked.focus.intents,
            now=now / 1e6,
            named=named,
            log=asked.reading.log,
        )
        rows = rank_rows(some.table, signals, ask)
        targets = rank_targets(some.table, signals, ask, rows)
        ranked = Ranked(
            candidates=some,
            rows=rows,
            targets=targets,
            words=FocusWords(asked.focus.statements, some.weights),
            excerpts=Excerpts(some.weights),
            by_name=frozenset(by_name),
            modules=modules,
        )
        # What only parts of words have found is a lead at best.
        if found.rung != "words":
            return ranked, "weak"
        return ranked, quality_of(targets, len(asked.reading.weights))

    def _known(self, table: SectionTable) -> tuple[PathNames, Modules]:
        known = self._names
        if known is None or known[0] is not table:
            files = table.files
            modules = Modules(files.paths, files.project.tolist())
            known = self._names = (table, PathNames(files.paths), modules)
        return known[1], known[2]


def _named(asked: Asked, table: SectionTable, known: PathNames) -> dict[int, float]:
    """The files that the focus calls by name, by code."""
    names = [(one.text, one.kind, one.weight) for one in asked.reading.mentions]
    found = known.named(names) if names else {}
    of = table.files.project
    return {c: sure for c, sure in found.items() if table.projects[of[c]] in asked.projects}


def _codes(
    table: SectionTable, defined: Mapping[tuple[str, str], float]
) -> Iterator[tuple[int, float]]:
    if not defined:
        return
    wanted = {path for _, path in defined}
    for code, path in enumerate(table.files.paths):
        if path in wanted:
            key = (table.projects[int(table.files.project[code])], path)
            if key in defined:
                yield code, defined[key]
