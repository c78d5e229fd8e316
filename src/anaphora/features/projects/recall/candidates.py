"""Finds what a focus may mean, and ranks it: candidates, targets and how far to trust them.

Search is by words first. Only where words found nothing it goes on: to a scan of the files'
sections for parts of words, then of the notes. A row without a word, or a large part of one, in
common with the focus is never found. The scoring itself is in `rank.context`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeVar

import numpy as np

from anaphora.features.projects.index.state import SectionCandidates, SectionQuery
from anaphora.features.projects.ranking.names import Modules, PathNames
from anaphora.features.projects.ranking.scores import (
    FieldScores,
    FocusNeeds,
    RowScores,
    Signals,
    TargetScores,
    holdable,
    rank_rows,
    rank_targets,
)
from anaphora.features.projects.ranking.table import DOCUMENT_KINDS
from anaphora.features.projects.recall.excerpts import Excerpts, FocusWords
from anaphora.features.projects.recall.focus import FocusReading
from anaphora.features.projects.store.notes import INDEXED_KINDS
from anaphora.features.projects.values import Focus
from anaphora.recall.view_cache import ViewCache

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from anaphora.features.projects.index.index import SectionIndex
    from anaphora.features.projects.ranking.table import SectionTable
    from anaphora.features.projects.store.graph import Graph
    from anaphora.features.projects.store.graph_rows import EntityRow
    from anaphora.features.projects.store.notes import NoteRow, Notes
    from anaphora.features.projects.store.source import SectionText
    from anaphora.features.projects.store.store import Projects

RowT = TypeVar("RowT")

CANDIDATES: Final = 400
"""Rows that words may bring."""

Rung = Literal["words", "scan", "notes", "none"]

LEAST_PART: Final = 5
"""Characters of a term that is looked for within words: "art" would be found in every "start"."""

DEFINES: Final = 0.4
"""Defining what the focus names, beside being named by a path, which is 1: for a short focus that
names little else. Chosen, not fitted."""

_NOTES: Final = tuple(map(DOCUMENT_KINDS.index, INDEXED_KINDS))


class ProjectReader:
    """What one question reads of a namespace: each section and each note at most once."""

    def __init__(self, index: SectionIndex, notes: Notes, graph: Graph, projects: Projects) -> None:
        self.index = index
        self.graph = graph
        self.projects = projects
        self._note_store = notes
        self._notes: dict[str, NoteRow | None] = {}
        self._sections: dict[str, SectionText | None] = {}

    def sections(self, ids: Iterable[str]) -> dict[str, SectionText]:
        """The sections of these ids that are still there."""
        return _read_once(list(ids), self._sections, self.index.texts)

    def notes(self, ids: Iterable[str]) -> dict[str, NoteRow]:
        """The notes of these ids that are still there."""
        return _read_once(list(ids), self._notes, self._note_store.many)


def _read_once(
    ids: Sequence[str],
    cached: dict[str, RowT | None],
    read: Callable[[Sequence[str]], Mapping[str, RowT]],
) -> dict[str, RowT]:
    if missing := [key for key in dict.fromkeys(ids) if key not in cached]:
        rows = read(missing)
        cached.update((key, rows.get(key)) for key in missing)
    return {key: row for key in ids if (row := cached[key]) is not None}


@dataclass(frozen=True, slots=True)
class QuestionContext:
    """The question: its reading, the projects it is about (id to name), and how it is answered."""

    reading: FocusReading
    projects: Mapping[str, str]
    reader: ProjectReader
    sources: bool = False

    @property
    def focus(self) -> Focus:
        """The focus as it was read."""
        return self.reading.focus

    @property
    def mentions(self) -> list[tuple[str, str, float]]:
        """What the focus calls by its name: text, kind, weight."""
        return [(mention.text, mention.kind, mention.weight) for mention in self.reading.mentions]

    def asks_for(self, intent: str) -> bool:
        """Whether the focus appears to need this kind of context."""
        return intent in self.focus.intents


def search(reader: ProjectReader, query: SectionQuery) -> tuple[SectionCandidates, Rung]:
    """Climb the rungs until one has something; which it was, "none" where nothing was found."""
    index = reader.index
    candidates = index.candidates(query)
    if len(candidates.rows):
        return candidates, "words"
    parts = {t: w for t, w in candidates.weights.items() if len(t) >= LEAST_PART or not t.isascii()}
    if not parts:
        return candidates, "none"
    rung: Rung = "scan"
    sections = ((index.row(s.id), s.text) for s in index.all_texts(query.projects))
    worth_by_row = _find_rows(sections, parts)
    if not worth_by_row:
        rung = "notes"
        table = index.table()
        rows = index.visible_rows(query.projects, query.now)
        rows = rows[np.isin(table.kind[rows], _NOTES)]
        row_of = {table.ids[row]: row for row in rows.tolist()}
        notes = reader.notes(row_of).items()
        texts = [(row_of[record_id], note.record.text) for record_id, note in notes]
        worth_by_row = _find_rows(texts, parts)
    best_rows = sorted(worth_by_row, key=lambda row: (-worth_by_row[row], row))[: query.limit]
    scanned_rows = index.described(query, np.array(best_rows, np.int64))
    if not len(scanned_rows.rows):
        return candidates, "none"
    worth: NDArray[np.float64] = np.array([worth_by_row[row] for row in scanned_rows.rows.tolist()])
    none = np.zeros(len(worth))
    share = worth / (candidates.mass or 1.0)
    words = FieldScores(path=none, title=none, body=worth, held=share)
    return replace(scanned_rows, words=words, weights=candidates.weights), rung


def _find_rows(texts: Iterable[tuple[int, str]], parts: Mapping[str, float]) -> dict[int, float]:
    """Rows that hold a part of a word, with the sum of what the parts are worth."""
    worth_by_row: dict[int, float] = {}
    for row, text in texts:
        folded_text = text.lower()
        worth = sum(weight for part, weight in parts.items() if part in folded_text)
        if worth and row >= 0:
            worth_by_row[row] = worth
    return worth_by_row


@dataclass(frozen=True, slots=True)
class RankedCandidates:
    """Candidates of a question with their scores, and the places to look at first, best first.

    `by_name` are the codes of files that the focus calls by their path or module; `modules` are
    all folders there are.
    """

    question: QuestionContext
    candidates: SectionCandidates
    rows: RowScores
    targets: TargetScores
    words: FocusWords
    excerpts: Excerpts
    by_name: frozenset[int]
    modules: Modules

    @property
    def table(self) -> SectionTable:
        """The columns of everything that is known."""
        return self.candidates.table

    def row(self, index: int) -> int:
        """The row of a candidate."""
        return int(self.candidates.rows[index])

    def key(self, index: int) -> str:
        """The id of a candidate's section or note."""
        return self.table.ids[self.row(index)]

    def file(self, index: int) -> int:
        """The code of a candidate's file, -1 for a note."""
        return int(self.table.file[self.row(index)])

    def note_keys(self) -> list[str]:
        """The ids of all notes among the candidates."""
        rows = self.candidates.rows
        return [self.table.ids[row] for row in rows[self.table.file[rows] < 0].tolist()]

    def signals(self, index: int) -> dict[str, float]:
        """The signals of a candidate, where they are to be shown."""
        return self.rows.explain(index) if self.question.sources else {}

    def best_files(self, most: int) -> dict[str, list[str]]:
        """The paths of the best files, by project."""
        files = self.table.files
        paths: dict[str, list[str]] = {}
        codes = [code for code in self.targets.files.tolist() if code >= 0]
        for code in codes[:most]:
            project = self.table.projects[int(files.project[code])]
            paths.setdefault(project, []).append(files.paths[code])
        return paths


FileNames = ViewCache[tuple[PathNames, Modules]]
"""What is made of the names in a table of files, kept for the next question."""


def rank_candidates(
    names: FileNames,
    question: QuestionContext,
    candidates: SectionCandidates,
    now: int,
    entities: Mapping[str, Sequence[EntityRow]],
) -> RankedCandidates:
    """Scores of all candidates; `now` in microseconds.

    `entities` are what the focus calls by its name, by name.
    """
    holdable_weight = holdable(candidates.weights.values())
    signals = Signals(
        candidates.rows, candidates.words, candidates.mass, candidates.cosine, holdable_weight
    )
    table, files = candidates.table, candidates.table.files
    path_names, modules = names.of(
        files,
        "names",
        lambda: (PathNames(files.paths), Modules(files.paths, files.project.tolist())),
    )
    by_name = {
        code: sure
        for code, sure in path_names.named(question.mentions).items()
        if table.projects[files.project[code]] in question.projects
    }
    sureness_by_file = dict(by_name)
    defining = _find_defining_files(question, entities)
    paths = {path for _, path in defining}
    for code, path in enumerate(files.paths if defining else ()):
        if path in paths:
            sure = defining.get((table.projects[int(files.project[code])], path), 0.0)
            sureness_by_file[code] = max(sureness_by_file.get(code, 0.0), DEFINES * sure)
    focus = question.focus
    needs = FocusNeeds(focus.intents, now / 1e6, sureness_by_file, question.reading.log)
    rows = rank_rows(table, signals, needs)
    targets = rank_targets(table, signals, needs, rows)
    return RankedCandidates(
        question=question,
        candidates=candidates,
        rows=rows,
        targets=targets,
        words=FocusWords(focus.statements, candidates.weights),
        excerpts=Excerpts(candidates.weights),
        by_name=frozenset(by_name),
        modules=modules,
    )


def _find_defining_files(
    question: QuestionContext, entities: Mapping[str, Sequence[EntityRow]]
) -> dict[tuple[str, str], float]:
    """Files, by project and path, that define what the focus names, and how surely it means them.

    A name of several symbols counts less for each.
    """
    weights = {mention.text.rstrip("()"): mention.weight for mention in question.reading.mentions}
    files: dict[tuple[str, str], float] = {}
    for name, rows in entities.items():
        symbols = [row for row in rows if row.kind == "symbol" and row.file and row.project]
        for row in symbols:
            key = (row.project or "", question.reader.index.path_of(row.file or ""))
            sure = weights.get(name, 0.0) * len(symbols) ** -0.5
            files[key] = max(files.get(key, 0.0), sure)
    return files
