"""What an index of sections follows: short columns of the database, and the texts of some files.

Files, sections and notes are read by the numbers that they changed at, deletions by their
tombstones. In a sealed home paths, titles and texts are opened as they are read. It never writes,
never analyses, and imports no SQLAlchemy on SQLite.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from anaphora.features.projects.store.notes import INDEXED_KINDS
from anaphora.features.projects.store.store import FILE_COLUMNS
from anaphora.features.projects.tables import SECTION, SECTION_VECTOR, SOURCE_FILE
from anaphora.store.db.table import Table
from anaphora.store.db.tables import RECORD, VECTOR
from anaphora.store.mapping import RowMapping
from anaphora.store.namespace import AT_ONCE, NamespaceReader, ids_named, portions
from anaphora.store.records.rows import RECORD_MAPPING
from anaphora.values.memories import MemoryRecord

_FILES = SOURCE_FILE.select(FILE_COLUMNS) + "AND seq > :since AND skipped IS NULL"
_SECTIONS = (
    "SELECT section_id, seq, project_id, file_id, start_line, end_line, changed_at, "
    "text_hash, LENGTH(text) FROM section "
    "WHERE namespace = :namespace AND seq > :since ORDER BY seq"
)
_OF_FILES = SECTION.select() + "AND file_id IN ({ids}) ORDER BY file_id, position"
_OF_IDS = SECTION.select() + "AND section_id IN ({ids})"
_NOTES = RECORD.select() + "AND kind = :kind AND seq > :since ORDER BY seq"
_TOMBSTONES = (
    "SELECT kind, owner_id, seq FROM tombstone "
    "WHERE namespace = :namespace AND seq > :since ORDER BY seq"
)
_IMPORTS = (
    "SELECT r.relation_id, r.project_id, a.file_id, b.file_id, r.status FROM relation r "
    "JOIN entity a ON a.namespace = r.namespace AND a.entity_id = r.subject_id "
    "JOIN entity b ON b.namespace = r.namespace AND b.entity_id = r.object_id "
    "WHERE r.namespace = :namespace AND r.seq > :since AND r.predicate = 'imports' "
    "AND a.file_id IS NOT NULL AND b.file_id IS NOT NULL"
)
_RELATIONS_AT = "SELECT MAX(seq) FROM relation WHERE namespace = :namespace"
_SECTION_VECTORS = (
    "SELECT text_hash, part, data, seq FROM section_vector "
    "WHERE namespace = :namespace AND embedder = :embedder AND seq > :since ORDER BY seq"
)
_NOTE_VECTORS = (
    "SELECT v.record_id, v.part, v.data, v.seq FROM vector v "
    "JOIN record r ON r.namespace = v.namespace AND r.record_id = v.record_id "
    "WHERE v.namespace = :namespace AND v.embedder = :embedder AND v.seq > :since "
    "AND r.kind IN ('observation', 'diary', 'document_section') ORDER BY v.seq"
)


class ShortFile(NamedTuple):
    """A file of a project that was read."""

    id: str
    project: str
    seq: int
    path: str
    role: str


class ShortSection(NamedTuple):
    """A section without its words. `text_hash` is as stored; `characters` those of the text."""

    id: str
    seq: int
    project: str
    file: str
    start_line: int
    end_line: int
    changed_at: int
    text_hash: str
    characters: int


class ShortImport(NamedTuple):
    """That a file imports another: `ends` are the project and the ids of both files."""

    id: str
    ends: tuple[str, str, str]
    active: bool


@dataclass(frozen=True, slots=True)
class SectionText:
    """A section with its words."""

    id: str
    file: str
    kind: str
    title: str
    heading: tuple[str, ...]
    symbol: str | None
    text: str
    start_line: int
    end_line: int

    @property
    def name(self) -> str:
        """What it is found by besides its words: the headings above, its title, its symbol."""
        names = [*self.heading, self.title]
        if self.symbol and self.symbol not in self.title:
            names.append(self.symbol)
        return " ".join(names)


class Vectors(NamedTuple):
    """Parts of vectors in the order of their numbers: their owners and bytes."""

    owners: tuple[str, ...]
    blobs: tuple[bytes, ...]
    seq: int


class SectionSource(NamespaceReader):
    """The sections and notes of one namespace, for the index alone."""

    def check(self) -> None:
        """Raise `SealChanged` when the home was sealed, opened up or given other keys meanwhile."""
        self.sealer.check()

    def files(self, since: int) -> list[ShortFile]:
        """Files that changed after number `since`."""
        rows = self._rows(_FILES, since=since)
        opened_rows = self._opened(SOURCE_FILE, rows, FILE_COLUMNS, only=())
        columns = [FILE_COLUMNS.index(name) for name in _OF_FILE]
        return [ShortFile(*(row[column] for column in columns)) for row in opened_rows]

    def sections(self, since: int) -> list[ShortSection]:
        """Sections that changed after number `since`, in the order of their numbers."""
        return [ShortSection(*row) for row in self._rows(_SECTIONS, since=since)]

    def texts_of_files(self, files: Iterable[str]) -> Iterator[list[SectionText]]:
        """The sections of each of these files, in the order of their places in it."""
        for files_at_once in portions(files, AT_ONCE // 4):
            sections: list[SectionText] = []
            for section in self._texts(_OF_FILES, files_at_once):
                if sections and sections[-1].file != section.file:
                    yield sections
                    sections = []
                sections.append(section)
            if sections:
                yield sections

    def texts(self, ids: Iterable[str]) -> dict[str, SectionText]:
        """The sections of these ids that there are."""
        return {section.id: section for section in self._texts(_OF_IDS, ids)}

    def notes(self, since: int) -> list[tuple[str, MemoryRecord]]:
        """(kind, record) of notes that changed after number `since`, past ones among them."""
        return [
            (kind, RECORD_MAPPING.value(row))
            for kind in INDEXED_KINDS
            for row in self._found(RECORD, _NOTES, kind=kind, since=since)
        ]

    def tombstones(self, since: int) -> list[tuple[str, str, int]]:
        """(kind, id, number) of what was deleted after number `since`."""
        return [(row[0], row[1], row[2]) for row in self._rows(_TOMBSTONES, since=since)]

    def relations_at(self) -> int:
        """The number of the last relation that changed."""
        rows = self._rows(_RELATIONS_AT)
        return int(rows[0][0] or 0) if rows else 0

    def imports(self, since: int) -> list[ShortImport]:
        """What files import, as far as it changed after number `since`: what no longer holds too.

        A file that came at the place of another changes no relation: then all must be read.
        """
        return [
            ShortImport(row[0], (row[1], row[2], row[3]), row[4] == "active")
            for row in self._rows(_IMPORTS, since=since)
        ]

    def section_vectors(self, embedder: str, since: int) -> Vectors:
        """Vectors of section texts with numbers above `since`; owners are hashes as stored."""
        return self._vectors(SECTION_VECTOR, _SECTION_VECTORS, embedder, since)

    def note_vectors(self, embedder: str, since: int) -> Vectors:
        """Vectors of notes with numbers above `since`; owners are their ids."""
        return self._vectors(VECTOR, _NOTE_VECTORS, embedder, since)

    def _vectors(self, table: Table, statement: str, embedder: str, since: int) -> Vectors:
        rows = self._rows(statement, embedder=embedder, since=since)
        if not rows:
            return Vectors((), (), since)
        return Vectors(
            tuple(row[0] for row in rows), self._data(table, embedder, rows), rows[-1][3]
        )

    def _texts(self, statement: str, ids: Iterable[str]) -> Iterator[SectionText]:
        for parameters, marks in ids_named(ids):
            rows = self._rows(statement.format(ids=marks), **parameters)
            for row in self._opened(SECTION, rows, only=_SEALED_COLUMNS):
                yield _TEXT_MAPPING.value(row)


_TEXT_MAPPING: Final = RowMapping(
    SECTION, SectionText, named={"id": "section_id", "file": "file_id"}
)
_OF_FILE: Final = ("file_id", "project_id", "seq", "path", "role")
_SEALED_COLUMNS: Final = ("title", "heading", "symbol", "text")
