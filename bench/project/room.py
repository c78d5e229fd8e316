"""A project in memory, ranked by the product's own parts: sections, words, vectors, ranking.

In: a project's files, an embedder. Out: for a question, the signals of its candidates and the
files best first. It is what the context lane does between its index and its package, without a
home: so that weights can be varied over signals that were computed once. Beside `project_road` it
lacks the graph (a file that defines what a question names) and the packing; it is for fitting, and
nothing that is reported of the product is measured with it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from anaphora.embed.base import Embedder
from anaphora.index.sections.state import strongest
from anaphora.index.sections.words import SectionWords, section_segments
from anaphora.index.words.index import WordIndex
from anaphora.index.words.manifest import Manifest, document_of
from anaphora.ingest.projects.file_sync import embedded_text
from anaphora.ingest.projects.files.roles import role_of
from anaphora.ingest.projects.sections import Section, parse
from anaphora.rank.budget import token_cost
from anaphora.rank.context.names import PathNames
from anaphora.rank.context.scores import (
    FocusNeeds,
    Signals,
    TargetScores,
    holdable,
    quality_of,
    rank_rows,
    rank_targets,
)
from anaphora.rank.context.table import DOCUMENT_KINDS, ROLES, SectionTable, file_table
from anaphora.rank.context.weights import DEFAULT_WEIGHTS, Weights
from anaphora.recall.context.focus import FocusReading, read_focus
from anaphora.values.projects import Quality

TERMS = 64
CANDIDATES = 400


@dataclass(frozen=True, slots=True)
class Seen:
    """A question as ranking sees it: its reading, its candidates' signals, what it asks for."""

    reading: FocusReading
    signals: Signals
    needs: FocusNeeds


class ProjectRoom:
    """The sections of one project, to be asked. `close` removes its words from the disk."""

    def __init__(self, files: Mapping[str, str], embedder: Embedder | None) -> None:
        """Parse, analyse and embed every section; without an embedder words alone rank."""
        parsed = [(path, one) for path, text in files.items() for one in parse(path, text).sections]
        self._embedder = embedder
        self.table = _table(files, parsed)
        self.names = PathNames(self.table.files.paths)
        self._folder = tempfile.TemporaryDirectory(prefix="anaphora-bench-")
        self._words = _words(Path(self._folder.name), parsed)
        self._owner, self._vectors = _vectors(parsed, embedder)

    def close(self) -> None:
        """Let go of the disk."""
        self._folder.cleanup()

    def __len__(self) -> int:
        return len(self.table)

    def see(self, question: str) -> Seen:
        """Read a question and find its candidates."""
        reading = read_focus(question)
        weights = strongest(self._words.weights(reading.weights), TERMS)
        rows = self._words.best(weights, CANDIDATES)
        found = self._words.scores(weights, rows)
        named = self.names.named((m.text, m.kind, m.weight) for m in reading.mentions)
        return Seen(
            reading,
            Signals(
                rows=rows,
                words=found,
                mass=sum(weights.values()),
                cosine=self._cosines(reading.lead, rows),
                most=holdable(weights.values()),
            ),
            FocusNeeds(reading.focus.intents, 0.0, named, reading.log),
        )

    def targets(self, seen: Seen, weights: Weights = DEFAULT_WEIGHTS) -> TargetScores:
        """The files of a question, best first."""
        rows = rank_rows(self.table, seen.signals, seen.needs, weights)
        return rank_targets(self.table, seen.signals, seen.needs, rows, weights)

    def paths(self, targets: TargetScores) -> tuple[str, ...]:
        """The paths of targets."""
        return tuple(self.table.files.paths[code] for code in targets.files.tolist())

    def ask(self, question: str) -> tuple[tuple[str, ...], Quality]:
        """The paths for a question, best first, and how far they may be trusted."""
        seen = self.see(question)
        targets = self.targets(seen)
        return self.paths(targets), quality_of(targets, len(seen.reading.weights))

    def _cosines(self, lead: str, rows: NDArray[np.int64]) -> NDArray[np.float64] | None:
        if self._embedder is None or not lead:
            return None
        found = np.full(len(self.table), -1.0)
        np.maximum.at(found, self._owner, self._vectors @ self._embedder.embed_query(lead))
        return found[rows]


def _table(files: Mapping[str, str], parsed: Sequence[tuple[str, Section]]) -> SectionTable:
    named = list(dict.fromkeys(path for path, _ in parsed))
    roles = np.array([ROLES.index(role_of(path, files[path][:400])) for path in named], np.int8)
    code = {path: number for number, path in enumerate(named)}
    of_file = np.array([code[path] for path, _ in parsed], np.int32)
    count = len(parsed)
    return SectionTable(
        ids=tuple(f"{path}:{one.start_line}" for path, one in parsed),
        kind=np.full(count, DOCUMENT_KINDS.index("section"), np.int8),
        role=roles[of_file],
        project=np.zeros(count, np.int16),
        file=of_file,
        tokens=np.array([token_cost(one.text) for _, one in parsed], np.int32),
        changed_at=np.full(count, np.nan),
        importance=np.zeros(count, np.int8),
        start_line=np.array([one.start_line for _, one in parsed], np.int32),
        end_line=np.array([one.end_line for _, one in parsed], np.int32),
        files=file_table([("", path) for path in named], [""], roles, ()),
        projects=("",),
    )


def _words(folder: Path, parsed: Sequence[tuple[str, Section]]) -> SectionWords:
    documents = []
    for row, (path, one) in enumerate(parsed):
        names = [*one.heading, one.title]
        if one.symbol and one.symbol not in one.title:
            names.append(one.symbol)
        documents.append(document_of(str(row), (path, " ".join(names), one.text)))
    segments = section_segments(folder)
    words = SectionWords(WordIndex(segments))
    written = segments.write(Manifest(), 1, documents)
    if written is None or not words.open(written, int, 1):
        raise OSError(f"the word index could not be written to {folder}")
    return words


def _vectors(
    parsed: Sequence[tuple[str, Section]], embedder: Embedder | None
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Whose each vector is, (V,), and the vectors, (V, dimensions)."""
    if embedder is None or not parsed:
        return np.empty(0, np.int64), np.empty((0, 0), np.float32)
    parts = embedder.embed([embedded_text(one) for _, one in parsed])
    owner = np.repeat(np.arange(len(parts)), [len(rows) for rows in parts])
    return owner, np.concatenate(parts)
