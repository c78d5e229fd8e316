"""Indexes of sections over one truth, and what fills it with projects and notes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from anaphora import Embedder, IndexReport, MemoryRecord
from anaphora.embed.service import EmbedderService, EmbedderSpec, spec_for
from anaphora.features.projects.index.index import SectionIndex
from anaphora.features.projects.indexing.indexing import ProjectIndexer
from anaphora.features.projects.notes import NoteLinker
from anaphora.features.projects.store.graph import Graph
from anaphora.features.projects.store.notes import NoteRecordKind, Notes, payload_of
from anaphora.features.projects.store.source import SectionSource
from anaphora.features.projects.store.store import Projects
from anaphora.store.crypto.columns import CLEAR, Sealer
from anaphora.store.crypto.index import CLEAR_INDEX, IndexSealer
from anaphora.store.db.engine import Database, open_database
from anaphora.store.records.ids import RecordIds
from anaphora.store.records.rows import same_key_of


@dataclass
class SectionDesk:
    """Indexing and noting in one namespace; `place` is for the files of its indexes."""

    truth: Database
    clock: Callable[[], datetime]
    place: Path
    embedder: str | Embedder | EmbedderSpec = "hashing"
    namespace: str = "default"
    sealer: Sealer = CLEAR
    index_sealer: IndexSealer = CLEAR_INDEX
    opened: list[SectionIndex] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.projects = Projects(self.truth, self.namespace, self.sealer)
        self.graph = Graph(self.truth, self.namespace, self.sealer)
        self.notes = Notes(self.truth, self.namespace, self.sealer)
        given = self.embedder
        self.service = EmbedderService(
            given if isinstance(given, EmbedderSpec) else spec_for(given)
        )
        self.ids = RecordIds(self.clock)
        self.indexing = ProjectIndexer(
            self.projects, self.graph, self.notes, self.service, clock=self.clock, ids=self.ids
        )
        self.linker = NoteLinker(self.graph, self.notes, clock=self.clock, ids=self.ids)
        self.sections = self.index()

    def index(self, name: str = "context") -> SectionIndex:
        """Another index over the same truth, as another process would have it."""
        source = SectionSource(self.truth, self.namespace, self.sealer)
        made = SectionIndex(
            self.place / name,
            source,
            (self.service.name, self.service.dimensions),
            sealer=self.index_sealer,
            background=False,
        )
        self.opened.append(made)
        return made

    def add(self, root: Path, files: Mapping[str, str], name: str | None = None) -> IndexReport:
        """Write a project's files and index them."""
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        return self.indexing.index(root, name=name)

    def note(self, text: str, *, kind: str = "note", **given: Any) -> str:
        """Save an observation and link it; its id."""
        return self._save("observation", kind, text, **given)

    def _save(
        self,
        kind: NoteRecordKind,
        type_: str,
        text: str,
        *,
        importance: int = 3,
        tags: tuple[str, ...] = (),
        supersedes: str | None = None,
        project: str | None = None,
    ) -> str:
        now = self.clock()
        payload = payload_of(importance=importance, project=project)
        record = MemoryRecord(
            id=self.ids(),
            text=text,
            type=type_,  # type: ignore[arg-type]
            created_at=now,
            last_reinforced=now,
            valid_from=now,
            seq=0,
            payload=payload,
            tags=tags,
            supersedes=supersedes,
        )
        with self.notes.change(kind) as work:
            work.load(ids=[supersedes] if supersedes else [])
            work.add(record, same_key_of(record))
            if supersedes:
                work.change(supersedes, valid_to=now, superseded_by=record.id)
        self.linker.link(self.notes.get(record.id))
        return record.id

    def close(self) -> None:
        """Let go of everything."""
        for one in self.opened:
            one.close()
        self.service.close()


@contextmanager
def section_desk(
    tmp_path: Path, clock: Callable[[], datetime], **given: Any
) -> Iterator[SectionDesk]:
    """A desk over an empty SQLite truth, its embedder loaded."""
    truth = open_database(tmp_path / "home" / "truth.db")
    desk = SectionDesk(truth, clock, tmp_path / "home" / "index", **given)
    desk.service.ready()
    try:
        yield desk
    finally:
        desk.close()
        truth.close()
