"""What the index of sections reads from truth: short columns, and the texts of some files.

In: numbers of truth, ids. Out: plain values. Files, sections and notes are read by the numbers
that they changed at, deletions by their tombstones. In a sealed home paths, titles and texts are
opened as they are read. It never writes, never analyses, and imports no SQLAlchemy on SQLite.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from anaphora.store.crypto.columns import CLEAR, Sealer, open_rows
from anaphora.store.projects.rows import FILE_COLUMNS, SECTION_COLUMNS
from anaphora.store.records.rows import COLUMNS, record_of
from anaphora.values.memories import MemoryRecord

if TYPE_CHECKING:
    from anaphora.store.db.engine import Database

NOTE_RECORDS: Final = ("observation", "diary")
"""The kinds of record that are notes."""

_FILE_COLUMNS = FILE_COLUMNS[:-1]
_FILES = (
    f"SELECT {', '.join(_FILE_COLUMNS)} FROM source_file "  # noqa: S608 - names of ours
    "WHERE namespace = :namespace AND seq > :since AND skipped IS NULL"
)
_SECTIONS = (
    "SELECT section_id, seq, project_id, file_id, title, start_line, end_line, changed_at, "
    "text_hash, LENGTH(text) FROM section "
    "WHERE namespace = :namespace AND seq > :since ORDER BY seq"
)
_TEXTS = (
    f"SELECT {', '.join(SECTION_COLUMNS)} FROM section "  # noqa: S608 - names of ours
    "WHERE namespace = :namespace AND "
)
_OF_FILES = _TEXTS + "file_id IN ({ids}) ORDER BY file_id, position"
_OF_IDS = _TEXTS + "section_id IN ({ids})"
_NOTES = (
    f"SELECT {', '.join(COLUMNS)} FROM record "  # noqa: S608 - names of ours
    "WHERE namespace = :namespace AND kind = :kind AND seq > :since ORDER BY seq"
)
_TOMBSTONES = (
    "SELECT kind, owner_id, seq FROM tombstone "
    "WHERE namespace = :namespace AND seq > :since ORDER BY seq"
)
_IMPORTS = (
    "SELECT r.project_id, a.file_id, b.file_id FROM relation r "
    "JOIN entity a ON a.namespace = r.namespace AND a.entity_id = r.subject_id "
    "JOIN entity b ON b.namespace = r.namespace AND b.entity_id = r.object_id "
    "WHERE r.namespace = :namespace AND r.predicate = 'imports' AND r.status = 'active' "
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
    "AND r.kind IN ('observation', 'diary') ORDER BY v.seq"
)
_IDS = 200


class FileRow(NamedTuple):
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
    title: str
    start_line: int
    end_line: int
    changed_at: int
    text_hash: str
    characters: int


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
    """Parts of vectors in the order of their numbers: whose, and their bytes."""

    owners: tuple[str, ...]
    blobs: tuple[bytes, ...]
    seq: int


class SectionSource:
    """The sections and notes of one namespace, for the index alone."""

    def __init__(self, truth: Database, namespace: str, sealer: Sealer = CLEAR) -> None:
        self.truth = truth
        self.namespace = namespace
        self._sealer = sealer

    def check(self) -> None:
        """Raise `SealChanged` when the home was sealed, opened up or given other keys meanwhile."""
        self._sealer.check()

    def version(self) -> int:
        """The number of the last committed change in the namespace, of whatever kind."""
        return self.truth.version(self.namespace)

    def files(self, since: int) -> list[FileRow]:
        """Files that changed after number `since`."""
        rows = self._rows(_FILES, since=since)
        opened = open_rows(
            self._sealer, "source_file", _FILE_COLUMNS, self.namespace, rows, only=()
        )
        places = [_FILE_COLUMNS.index(name) for name in _OF_FILE]
        return [FileRow(*(row[place] for place in places)) for row in opened]

    def sections(self, since: int) -> list[ShortSection]:
        """Sections that changed after number `since`, in the order of their numbers."""
        title = self._opener("section", "title")
        rows = self._rows(_SECTIONS, since=since)
        if not self._sealer.sealed:
            return [ShortSection(*row) for row in rows]
        return [ShortSection(*(*row[:4], title((row[0],), row[4]), *row[5:])) for row in rows]

    def texts_of_files(self, files: Iterable[str]) -> Iterator[list[SectionText]]:
        """The sections of each of these files, in the order of their places in it."""
        wanted = list(dict.fromkeys(files))
        for start in range(0, len(wanted), _IDS // 4):
            some: list[SectionText] = []
            for one in self._texts(_OF_FILES, wanted[start : start + _IDS // 4]):
                if some and some[-1].file != one.file:
                    yield some
                    some = []
                some.append(one)
            if some:
                yield some

    def texts(self, ids: Iterable[str]) -> dict[str, SectionText]:
        """The sections of these ids that there are."""
        wanted = list(dict.fromkeys(ids))
        found: dict[str, SectionText] = {}
        for start in range(0, len(wanted), _IDS):
            for one in self._texts(_OF_IDS, wanted[start : start + _IDS]):
                found[one.id] = one
        return found

    def notes(self, since: int) -> list[tuple[str, MemoryRecord]]:
        """(kind, record) of notes that changed after number `since`, past ones among them."""
        found = []
        for kind in NOTE_RECORDS:
            rows = self._rows(_NOTES, kind=kind, since=since)
            opened = open_rows(self._sealer, "record", COLUMNS, self.namespace, rows)
            found += [(kind, record_of(row)) for row in opened]
        return found

    def tombstones(self, since: int) -> list[tuple[str, str, int]]:
        """(kind, id, number) of what was deleted after number `since`."""
        return [(row[0], row[1], row[2]) for row in self._rows(_TOMBSTONES, since=since)]

    def relations_at(self) -> int:
        """The number of the last relation that changed."""
        found = self._rows(_RELATIONS_AT)
        return int(found[0][0] or 0) if found else 0

    def imports(self) -> list[tuple[str, str, str]]:
        """(project, importing file, imported file) by the ids of files."""
        return [(row[0], row[1], row[2]) for row in self._rows(_IMPORTS)]

    def section_vectors(self, embedder: str, since: int) -> Vectors:
        """Vectors of section texts with numbers above `since`; owners are hashes as stored."""
        return self._vectors("section_vector", _SECTION_VECTORS, embedder, since)

    def note_vectors(self, embedder: str, since: int) -> Vectors:
        """Vectors of notes with numbers above `since`; owners are their ids."""
        return self._vectors("vector", _NOTE_VECTORS, embedder, since)

    def _vectors(self, table: str, statement: str, embedder: str, since: int) -> Vectors:
        rows = self._rows(statement, embedder=embedder, since=since)
        if not rows:
            return Vectors((), (), since)
        owners, parts, data, numbers = zip(*rows, strict=True)
        if self._sealer.sealed:
            opener = self._sealer.opener(table, "data", self.namespace)
            keys = zip(owners, parts, data, strict=True)
            data = tuple(opener((one, embedder, part), blob) for one, part, blob in keys)
        return Vectors(owners, data, numbers[-1])

    def _texts(self, statement: str, ids: Sequence[str]) -> Iterator[SectionText]:
        named: dict[str, str | int] = {f"id{n}": one for n, one in enumerate(ids)}
        marks = ", ".join(f":{name}" for name in named)
        rows = self._rows(statement.format(ids=marks), **named)
        opened = open_rows(
            self._sealer, "section", SECTION_COLUMNS, self.namespace, rows, only=_SEALED_COLUMNS
        )
        for row in opened:
            of = dict(zip(SECTION_COLUMNS, row, strict=True))
            yield SectionText(
                id=of["section_id"],
                file=of["file_id"],
                kind=of["kind"],
                title=of["title"],
                heading=tuple(json.loads(of["heading"])) if of["heading"] else (),
                symbol=of["symbol"],
                text=of["text"],
                start_line=of["start_line"],
                end_line=of["end_line"],
            )

    def _opener(self, table: str, column: str) -> Any:
        return self._sealer.opener(table, column, self.namespace)

    def _rows(self, statement: str, **values: str | int) -> list[tuple[Any, ...]]:
        self._sealer.check()
        return self.truth.rows(statement, {"namespace": self.namespace, **values})


_OF_FILE: Final = ("file_id", "project_id", "seq", "path", "role")
_SEALED_COLUMNS: Final = ("title", "heading", "symbol", "text")
