"""The columns of the index of sections and notes, and the `SectionTable` made of them.

No text stays in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from anaphora.features.projects.ranking.table import (
    DOCUMENT_KINDS,
    ROLES,
    DocumentKind,
    FileTable,
    SectionTable,
    file_table,
)
from anaphora.features.projects.store.source import ShortFile, ShortImport, ShortSection
from anaphora.index.rows import CURRENT, PAST, KeyedRows
from anaphora.rank.budget import token_cost
from anaphora.store.codecs import to_micros
from anaphora.values.memories import MemoryRecord

_ROLES: Final[Mapping[str, int]] = {role: code for code, role in enumerate(ROLES)}
_COLUMNS: Final = {
    "kind": np.int8,
    "role": np.int8,
    "project": np.int32,
    "file": np.int32,
    "tokens": np.int32,
    "changed_at": np.float64,
    "importance": np.int8,
    "start_line": np.int32,
    "end_line": np.int32,
}
"""The columns of `SectionTable`; projects and files are codes of this index."""

_NOTE: Final = {
    "role": _ROLES["unknown"],
    "file": -1,
    "importance": 0,
    "start_line": 0,
    "end_line": 0,
}
_NOTHING: Final = {
    **_NOTE,
    "kind": DOCUMENT_KINDS.index("observation"),
    "tokens": 0,
    "changed_at": np.nan,
}


class SectionRows(KeyedRows):
    """Rows of one namespace. One thread at a time (the caller holds a lock)."""

    def __init__(self) -> None:
        super().__init__(_COLUMNS)
        self.files: dict[str, ShortFile] = {}
        self._keys: list[bytes] = []
        self._projects: dict[str, int] = {}
        self._paths: dict[tuple[str, str], int] = {}
        self._ends: dict[int, int] = {}
        # Checksums of the texts of notes; those of sections are in the keys of their vectors.
        self._texts: dict[int, int] = {}
        self._imports: dict[str, tuple[str, str, str]] = {}
        self._table: SectionTable | None = None
        # The table of files and the input it was made from, which most changes leave the same.
        self._file_table: tuple[object, FileTable] | None = None
        self._vector_keys: tuple[bytes, ...] | None = None

    def put_files(self, files: Iterable[ShortFile]) -> None:
        """Add or update files. Their sections get new numbers in the database."""
        for file in files:
            previous = self.files.get(file.id)
            if previous is None or previous.path != file.path:
                self._file_table = None
            self.files[file.id] = file

    def put_sections(self, sections: Iterable[ShortSection]) -> None:
        """Add or update sections. Those of an unknown file are left for later."""
        resolved_sections = [section for section in sections if section.file in self.files]
        if not resolved_sections:
            return
        files = [self.files[section.file] for section in resolved_sections]
        of_files = zip(resolved_sections, files, strict=True)
        paths = [(section.project, file.path) for section, file in of_files]
        columns = {
            "kind": DOCUMENT_KINDS.index("section"),
            "role": [_ROLES.get(file.role, _ROLES["unknown"]) for file in files],
            "project": [self._project(section.project) for section in resolved_sections],
            "file": [self._paths.setdefault(path, len(self._paths)) for path in paths],
            "tokens": [-(-section.characters // 4) for section in resolved_sections],
            "changed_at": [section.changed_at / 1e6 for section in resolved_sections],
            "importance": 0,
            "start_line": [section.start_line for section in resolved_sections],
            "end_line": [section.end_line for section in resolved_sections],
            "seq": [section.seq for section in resolved_sections],
        }
        rows = self.put_rows([section.id for section in resolved_sections], columns)
        for row, section in zip(rows.tolist(), resolved_sections, strict=True):
            self._tell(row, section.text_hash.encode("utf-8", "surrogatepass"))

    def put_note(self, kind: str, record: MemoryRecord) -> int:
        """Add or update an observation or a diary entry; its row."""
        payload = record.payload or {}
        importance = payload.get("importance")
        if not isinstance(importance, int) or not 0 <= importance <= 5:
            importance = 0
        current = record.valid_to is None and not record.forgotten
        columns = {
            **_NOTE,
            "kind": DOCUMENT_KINDS.index(cast(DocumentKind, kind)),
            "project": self._project(str(payload.get("project") or "")),
            "tokens": token_cost(record.text),
            "changed_at": record.created_at.timestamp(),
            "importance": importance,
            "seq": record.seq,
            "state": CURRENT if current else PAST,
        }
        row = int(self.put_rows([record.id], columns)[0])
        self._tell(row, f"note:{record.id}".encode("utf-8", "surrogatepass"))
        self._texts[row] = crc32(record.text.encode("utf-8", "surrogatepass"))
        self._ends[row] = to_micros(record.expires_at) or 0
        return row

    def delete(self, key: str, seq: int | None) -> int:
        """Drop an item deleted at number `seq` (None: now); its row, or -1 if it still exists."""
        row = super().delete(key, seq)
        if row >= 0:
            self.ids[row] = ""
            for name, empty in {**_NOTHING, "project": self._project("")}.items():
                self.column(name)[row] = empty
            self._tell(row, b"")
        return row

    def mark(self, row: int) -> int:
        """A number that is another one when the item of a row changes."""
        return int(self.column("seq")[row]) << 32 | self._texts.get(row, crc32(self._keys[row]))

    def path_of(self, file_id: str) -> str:
        """The path of a file, "" for an unknown one."""
        file = self.files.get(file_id)
        return file.path if file is not None else ""

    def set_imports(self, imports: Iterable[ShortImport]) -> None:
        """Set the import relations to these and no others."""
        active = {relation.id: relation.ends for relation in imports if relation.active}
        if active != self._imports:
            self._imports = active
            self._table = self._file_table = None

    def put_imports(self, imports: Iterable[ShortImport]) -> None:
        """Update import relations that have changed."""
        for relation in imports:
            previous = self._imports.pop(relation.id, None)
            if relation.active:
                self._imports[relation.id] = relation.ends
            if previous != (relation.ends if relation.active else None):
                self._table = self._file_table = None

    def vector_keys(self) -> tuple[bytes, ...]:
        """The key of each row's vector, b"" for a row that never has one."""
        if self._vector_keys is None:
            self._vector_keys = tuple(self._keys)
        return self._vector_keys

    def expired(self, micros: int) -> list[int]:
        """Rows of notes that have expired by then."""
        return [row for row, end in self._ends.items() if 0 < end <= micros]

    def table(self) -> SectionTable:
        """The columns, one row per document; deleted rows belong to no file."""
        if self._table is None:
            columns = {name: self.column(name).copy() for name in _COLUMNS}
            projects, columns["project"] = _by_appearance(columns["project"])
            sections = np.flatnonzero(columns["file"] >= 0)
            files, columns["file"][sections] = _by_appearance(columns["file"][sections])
            roles = np.zeros(len(files), np.int8)
            # The role of a file is that of its last row.
            roles[columns["file"][sections]] = columns["role"][sections]
            all_names, paths = list(self._projects), list(self._paths)
            project_names = tuple(all_names[code] for code in projects.tolist())
            columns["project"] = columns["project"].astype(np.int16)
            file_keys = [paths[code] for code in files.tolist()]
            made_of = (file_keys, project_names, roles.tobytes())
            if self._file_table is None or self._file_table[0] != made_of:
                path_by_id = {file.id: file.path for file in self.files.values()}
                imports = [
                    (project, path_by_id[importer], path_by_id[imported])
                    for project, importer, imported in self._imports.values()
                    if importer in path_by_id and imported in path_by_id
                ]
                self._file_table = (made_of, file_table(file_keys, project_names, roles, imports))
            table = self._file_table[1]
            self._table = SectionTable(
                ids=tuple(self.ids), files=table, projects=project_names, **columns
            )
        return self._table

    def _project(self, name: str) -> int:
        return self._projects.setdefault(name, len(self._projects))

    def _tell(self, row: int, key: bytes) -> None:
        """Set the key of a row's vector; the row may be new."""
        self._table = self._vector_keys = None
        self._keys[row : row + 1] = [key]


def _by_appearance(codes: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The distinct codes in the order of their first occurrence, and the index of each in it."""
    used_codes, first_positions, positions = np.unique(
        codes, return_index=True, return_inverse=True
    )
    order = np.argsort(first_positions)
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order))
    return used_codes[order], rank[positions]
