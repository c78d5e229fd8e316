"""One change to a project: files, sections, vectors and history, written in bulk.

Every row gets a number of its own, and what goes leaves tombstones. Whoever changes files reads
them first in the same transaction (`known`): two processes at work on one project then never write
a file twice. Sections keep their ids where they are the same part of their file as before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from anaphora.errors import NotFound
from anaphora.features.projects.store.rows import (
    FILE_MAPPING,
    HISTORY_MAPPING,
    PROJECT_MAPPING,
    SECTION_KIND,
    SECTION_MAPPING,
    FileRow,
    HistoryRow,
    ProjectRow,
    SectionRow,
    SectionVector,
    item_key,
)
from anaphora.features.projects.tables import (
    HISTORY_ITEM,
    HISTORY_PATH,
    PROJECT,
    SECTION,
    SECTION_VECTOR,
    SOURCE_FILE,
)
from anaphora.store.codecs import to_micros
from anaphora.store.crypto.columns import CLEAR, Sealer
from anaphora.store.db import statements
from anaphora.store.db.engine import Write
from anaphora.store.hashing import digest
from anaphora.store.mapping import RowMapping
from anaphora.store.namespace import NamespaceTransaction, Row

_VECTORS = RowMapping(SECTION_VECTOR, SectionVector)
_DROP_UNUSED = (
    "DELETE FROM section_vector WHERE namespace = ? AND NOT EXISTS (SELECT 1 FROM section "
    "WHERE section.namespace = section_vector.namespace "
    "AND section.text_hash = section_vector.text_hash)"
)


class ProjectTransaction(NamespaceTransaction):
    """What one write transaction does to projects. `flush` writes what was put."""

    def __init__(self, write: Write, sealer: Sealer = CLEAR) -> None:
        super().__init__(write, sealer)
        self._new_files: list[Row] = []
        self._changed_files: list[Row] = []
        self._new_sections: list[Row] = []
        self._changed_sections: list[Row] = []
        self.gone_texts: set[str] = set()
        """Hashes of texts that sections of files had before; others may have them still."""

    def add_project(self, row: ProjectRow) -> None:
        """Take in a project with a new root."""
        self._insert(PROJECT, [PROJECT_MAPPING.row(row)])

    def project(self, project_id: str) -> ProjectRow:
        """The project, as it stands in this transaction. `NotFound` when it was removed."""
        rows = self._found(PROJECT, project_id=project_id)
        if not rows:
            raise NotFound("project", project_id)
        return PROJECT_MAPPING.value(rows[0])

    def with_root(self, root: str) -> ProjectRow | None:
        """The project of this root, as it stands in this transaction."""
        key = self._lookup("root_key", digest("root", root))
        rows = self._found(PROJECT, root_key=key)
        return PROJECT_MAPPING.value(rows[0]) if rows else None

    def change_project(self, row: ProjectRow) -> None:
        """Write a project that is there anew."""
        self._update(PROJECT, [PROJECT_MAPPING.row(row)])

    def mark_stale(self, project_id: str) -> None:
        """Note that the graph of a project is behind its files. `NotFound` if it was removed."""
        if not self._set(PROJECT, {"stale": 1}, project_id=project_id):
            raise NotFound("project", project_id)

    def remove_project(self, project_id: str) -> int:
        """Delete a project and everything of it; how many sections went."""
        self.project(project_id)
        ids = self._ids(project_id=project_id)
        self._bury_sections(ids)
        self._delete(PROJECT, project_id=project_id)
        self.drop_unused_vectors()
        return len(ids)

    def known(self, project_id: str, paths: Iterable[str]) -> dict[str, FileRow]:
        """The files at these paths, as they stand in this transaction."""
        keys = [self._lookup("path_key", digest("file", project_id, path)) for path in paths]
        return {row.path: row for row in self._files(path_key=keys)}

    def file(self, file_id: str) -> FileRow | None:
        """The file of this id, as it stands in this transaction."""
        return next(self._files(file_id=file_id), None)

    def files(self, file_ids: Iterable[str]) -> dict[str, FileRow]:
        """The files of these ids with their facts, as they stand in this transaction, by id."""
        return {row.id: row for row in self._files(file_id=list(file_ids))}

    def put_file(self, row: FileRow, *, known: bool) -> None:
        """Write a file; `known` says whether it is there already."""
        (self._changed_files if known else self._new_files).append(FILE_MAPPING.row(row))

    def put_sections(
        self, file: FileRow, sections: Sequence[SectionRow], ids: Callable[[], str], *, known: bool
    ) -> int:
        """Make these the sections of a file, in this order; how many were new or changed.

        Parts that were there keep their ids, and those that are the same keep their numbers too.
        """
        old_rows: list[Row] = []
        if known:
            old_rows = sorted(self.find_rows(SECTION, file_id=file.id), key=itemgetter("position"))
        matches = _match_sections(old_rows, sections)
        count = 0
        for position, (current, old_row) in enumerate(zip(sections, matches, strict=True)):
            placement = {"position": position, "file_id": file.id, "project_id": file.project}
            if old_row is None:
                new_row = SECTION_MAPPING.row(current, section_id=ids(), **placement)
                self._new_sections.append(new_row)
                count += 1
                continue
            if old_row["text_hash"] == current.text_hash:
                same_since = old_row["changed_at"]
            else:
                same_since = to_micros(current.changed_at)
            new_row = SECTION_MAPPING.row(current, section_id=old_row["section_id"], **placement)
            new_row["changed_at"] = same_since
            if any(new_row[name] != old_row[name] for name in _COMPARED):
                self._changed_sections.append(new_row)
                count += 1
        self.gone_texts |= {row["text_hash"] for row in old_rows} - {
            section.text_hash for section in sections
        }
        kept_ids = {old_row["section_id"] for old_row in matches if old_row is not None}
        self._bury_sections(
            [row["section_id"] for row in old_rows if row["section_id"] not in kept_ids]
        )
        return count

    def moved(self, file_id: str) -> int:
        """Give every section of a file a new number: its path or role is another one now."""
        return self._renumber(SECTION, file_id=file_id)

    def remove_files(self, file_ids: Iterable[str]) -> int:
        """Delete files with their sections; how many files that were."""
        ids = list(file_ids)
        self._bury_sections(self._ids(file_id=ids))
        return self._delete(SOURCE_FILE, file_id=ids)

    def put_vectors(self, embedder: str, rows: Sequence[SectionVector]) -> int:
        """Keep vectors of texts that a section has, in place of older ones; how many texts."""
        stored_hashes = {row.text_hash: "" for row in rows}
        stored_hashes = {
            text_hash: self._lookup("text_hash", text_hash) for text_hash in stored_hashes
        }
        hashes = list(stored_hashes.values())
        living = {row[0] for row in self._rows(SECTION, ("text_hash",), text_hash=hashes)}
        self._delete(SECTION_VECTOR, embedder=embedder, text_hash=hashes)
        used_rows = [row for row in rows if stored_hashes[row.text_hash] in living]
        self._insert(SECTION_VECTOR, [_VECTORS.row(row, embedder=embedder) for row in used_rows])
        return len({row.text_hash for row in used_rows})

    def drop_unused_vectors(self, texts: Iterable[str] | None = None) -> int:
        """Delete vectors of texts, of these (hashes) or of all, that no section has any more."""
        if texts is not None:
            stored_hashes = [self._lookup("text_hash", text_hash) for text_hash in texts]
            living = {
                row[0] for row in self._rows(SECTION, ("text_hash",), text_hash=stored_hashes)
            }
            unused_hashes = [text_hash for text_hash in stored_hashes if text_hash not in living]
            return self._delete(SECTION_VECTOR, text_hash=unused_hashes) if unused_hashes else 0
        cursor = statements.execute(self.write.connection, _DROP_UNUSED, (self.namespace,))
        return int(cursor.rowcount)

    def add_history(self, rows: Sequence[HistoryRow]) -> int:
        """Add items of history; those that are known already stay. Returns how many are new."""
        rows_by_key = {item_key(row): row for row in rows}
        keys = {self._lookup("item_key", key): key for key in rows_by_key}
        for (known_key,) in self._rows(HISTORY_ITEM, ("item_key",), item_key=list(keys)):
            del rows_by_key[keys[known_key]]
        fresh_rows = list(rows_by_key.values())
        self._insert(HISTORY_ITEM, [HISTORY_MAPPING.row(row) for row in fresh_rows])
        self._insert(
            HISTORY_PATH,
            [
                {
                    "path_key": digest("file", row.project, path),
                    "item_id": row.id,
                    "at": to_micros(row.at),
                }
                for row in fresh_rows
                for path in dict.fromkeys(row.paths)
            ],
        )
        return len(fresh_rows)

    def flush(self) -> None:
        """Write the files and sections that were put."""
        for table, new_rows, changed_rows in (
            (SOURCE_FILE, self._new_files, self._changed_files),
            (SECTION, self._new_sections, self._changed_sections),
        ):
            self._insert(table, new_rows)
            self._update(table, changed_rows)
            new_rows.clear()
            changed_rows.clear()

    def _bury_sections(self, section_ids: Sequence[str]) -> None:
        """Delete sections, and leave their tombstones."""
        self._delete(SECTION, section_id=list(section_ids))
        self._bury(SECTION_KIND, section_ids)

    def _files(self, **values: Any) -> Iterator[FileRow]:
        return map(FILE_MAPPING.value, self._found(SOURCE_FILE, **values))

    def _ids(self, **values: Any) -> list[str]:
        return [row[0] for row in self._rows(SECTION, ("section_id",), **values)]


# Where all of these are the same, a section is.
_COMPARED = [name for name in SECTION.names if name not in {"section_id", "seq"}]


def _match_sections(
    old: Sequence[Mapping[str, Any]], new: Sequence[SectionRow]
) -> list[Mapping[str, Any] | None]:
    """For each new section the old one that it continues: same words first, then same name."""
    matches: list[Mapping[str, Any] | None] = [None] * len(new)
    unmatched_rows = list(old)
    for columns in (("text_hash", "title", "symbol"), ("kind", "title", "symbol", "heading")):
        cells_of = itemgetter(*columns)
        waiting: dict[Any, list[Mapping[str, Any]]] = {}
        for row in unmatched_rows:
            waiting.setdefault(cells_of(row), []).append(row)
        for number, section in enumerate(new):
            if matches[number] is None and waiting.get(
                key := cells_of(SECTION_MAPPING.row(section))
            ):
                matches[number] = waiting[key].pop(0)
        unmatched_rows = [row for rows in waiting.values() for row in rows]
    return matches
