"""A project to index, and everything that indexes it: shared by the tests of the context lane.

As a program, `project_desk.py DATABASE ROOT [DELAY]` indexes ROOT into DATABASE and prints the
report's counts as JSON; DELAY is how many seconds it rests after each batch of files.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anaphora.registry  # noqa: F401  # a database gets the tables of registered features
from anaphora.embed.service import EmbedderService, spec_for
from anaphora.features.projects.indexing.indexing import ProjectIndexer
from anaphora.features.projects.notes import NoteLinker
from anaphora.features.projects.store.graph import Graph
from anaphora.features.projects.store.graph_rows import RelationRow
from anaphora.features.projects.store.notes import Notes
from anaphora.features.projects.store.rows import SECTION_KIND, SectionRow
from anaphora.features.projects.store.source import SectionSource
from anaphora.features.projects.store.store import Projects
from anaphora.store.crypto.columns import CLEAR, Sealer
from anaphora.store.db.engine import Database, open_database
from anaphora.store.records.ids import RecordIds


class Ticking:
    """A clock that goes on by a second each time it is looked at."""

    def __init__(self, now: datetime = datetime(2026, 4, 30, 12, 0, tzinfo=UTC)) -> None:
        self.now = now

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


def sections_since(projects: Projects, seq: int) -> list[SectionRow]:
    """Sections that changed after a number, in the order of their changes."""
    source = SectionSource(projects.truth, projects.namespace, projects.sealer)
    ids = [one.id for one in source.sections(seq)]
    found = projects.sections(ids)
    return [found[one] for one in ids]


class ProjectDesk:
    """The context lane's truth on a database, with hashed words as vectors."""

    def __init__(
        self, truth: Database, sealer: Sealer = CLEAR, namespace: str = "default", late: bool = True
    ) -> None:
        self.clock = Ticking()
        self.ids = RecordIds(self.clock)
        self.truth = truth
        self.projects = Projects(truth, namespace, sealer)
        self.source = SectionSource(truth, namespace, sealer)
        self.graph = Graph(truth, namespace, sealer)
        self.notes = Notes(truth, namespace, sealer)
        self.embedder = EmbedderService(spec_for("hashing"))
        self.linker = NoteLinker(self.graph, self.notes, clock=self.clock, ids=self.ids)
        self.indexer = ProjectIndexer(
            self.projects,
            self.graph,
            self.notes,
            self.embedder,
            clock=self.clock,
            ids=self.ids,
            # Late: files that a test has just written count as settled.
            wall=lambda: time.time_ns() + (10**11 if late else 0),
        )

    def sections_since(self, seq: int) -> list[SectionRow]:
        """Sections that changed after a number, in the order of their changes."""
        return sections_since(self.projects, seq)

    def gone_since(self, seq: int) -> set[str]:
        """The ids of sections that were deleted after a number."""
        found = self.source.tombstones(seq)
        return {owner for kind, owner, _ in found if kind == SECTION_KIND}

    def vectors(self) -> list[str]:
        """The hash of its text of each vector."""
        found, sealer = self.source.section_vectors(self.embedder.name, 0), self.source.sealer
        return [sealer.found("text_hash", self.source.namespace, one) for one in found.owners]

    def texts(self, project: str) -> dict[str, list[tuple[str, str]]]:
        """(title, text) of every section, by path."""
        found: dict[str, list[tuple[int, str, str]]] = {}
        for row in self.sections_since(0):
            if row.project == project:
                found.setdefault(row.path, []).append((row.position, row.title, row.text))
        return {path: [row[1:] for row in sorted(rows)] for path, rows in sorted(found.items())}

    def of_source(self, source: str) -> list[RelationRow]:
        """The relations that a file or a note states, those of the past too."""
        ids = [row[0] for row in self.truth.rows("SELECT entity_id FROM entity", {})]
        rows = self.graph.relations(ids, ("active", "superseded", "invalidated"))
        return [row for row in rows if row.source == source]

    def links(self, project: str, status: str = "active") -> set[tuple[str, str, str]]:
        """Every relation of a project in this status, by the names of its ends."""
        ids = [row[0] for row in self.truth.rows("SELECT entity_id FROM entity", {})]
        rows = self.graph.relations(ids, ("active", "superseded", "invalidated"))
        ends = self.graph.entities(ids)
        return {
            (ends[row.subject].name, row.predicate, ends[row.object].name)
            for row in rows
            if row.status == status and row.project in (project, None)
        }


def _main(database: str, root: str, delay: float) -> None:
    desk = ProjectDesk(open_database(database if "://" in database else Path(database)))

    def told(label: str, done: int, total: int) -> None:
        print(json.dumps([label, done, total]), flush=True)
        time.sleep(delay)

    report = desk.indexer.index(root, progress=told)
    counts: dict[str, Any] = {
        name: getattr(report, name) for name in ("files", "sections", "added", "unchanged")
    }
    print(json.dumps(counts), flush=True)


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2], float(sys.argv[3]) if len(sys.argv) > 3 else 0.0)
