"""One change to a project: files, sections, vectors and history, written in bulk.

In: a write transaction and rows. Out: changed tables, each row with a number of its own, and
tombstones of what went. Whoever changes files reads them first in the same transaction (`known`):
two processes at work on one project then never write a file twice. Sections keep their ids where
they are the same part of their file as before. In a sealed home rows are sealed and opened on their
way. Importing this module imports SQLAlchemy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Table, bindparam, delete, exists, func, select, update

from anaphora.errors import NotFound
from anaphora.store.codecs import to_micros
from anaphora.store.crypto.columns import CLEAR, Sealer, open_rows
from anaphora.store.db.engine import Write
from anaphora.store.db.heads import insert_into
from anaphora.store.db.schema import (
    history_item,
    history_path,
    project,
    section,
    section_vector,
    source_file,
    tombstone,
)
from anaphora.store.hashing import digest
from anaphora.store.projects.rows import (
    FILE_COLUMNS,
    PROJECT_COLUMNS,
    SECTION,
    SECTION_COLUMNS,
    FileRow,
    HistoryRow,
    ProjectRow,
    SectionRow,
    SectionVector,
    file_of,
    file_row,
    history_row,
    item_key,
    project_of,
    project_row,
    section_row,
)

_AT_ONCE = 256
_TABLES = {one.name: one for one in (source_file, section, history_item, tombstone)}
_INSERT = {name: table.insert() for name, table in _TABLES.items()}
_KEYS = {"source_file": "file_id", "section": "section_id", "history_item": "item_id"}


class ProjectTransaction:
    """What one write transaction does to projects. `flush` writes what was put."""

    def __init__(self, write: Write, sealer: Sealer = CLEAR) -> None:
        self.write = write
        self.sealer = sealer
        self._new: dict[str, list[dict[str, Any]]] = {"source_file": [], "section": []}
        self._changed: dict[str, list[dict[str, Any]]] = {"source_file": [], "section": []}

    def add_project(self, row: ProjectRow) -> None:
        """Take in a project whose root was not known."""
        self.write.connection.execute(project.insert(), self._stored("project", project_row(row)))

    def project(self, project_id: str) -> ProjectRow:
        """The project, as it stands in this transaction. `NotFound` when it was removed."""
        found = self._select(project, PROJECT_COLUMNS, project.c.project_id == project_id)
        if not found:
            raise NotFound("project", project_id)
        return project_of(found[0])

    def with_root(self, root: str) -> ProjectRow | None:
        """The project of this root, as it stands in this transaction."""
        key = self.sealer.lookup("root_key", self.write.namespace, digest("root", root))
        found = self._select(project, PROJECT_COLUMNS, project.c.root_key == key)
        return project_of(found[0]) if found else None

    def change_project(self, row: ProjectRow) -> None:
        """Write a project that is there anew."""
        stored = self._stored("project", project_row(row))
        here = (project.c.namespace == self.write.namespace) & (project.c.project_id == row.id)
        changed = {name: stored[name] for name in PROJECT_COLUMNS if name != "project_id"}
        self.write.connection.execute(update(project).where(here).values(changed))

    def mark_stale(self, project_id: str) -> None:
        """Note that the graph of a project is behind its files. `NotFound` if it was removed."""
        here = (project.c.namespace == self.write.namespace) & (project.c.project_id == project_id)
        done = self.write.connection.execute(update(project).where(here).values(stale=1))
        if not done.rowcount:
            raise NotFound("project", project_id)

    def remove_project(self, project_id: str) -> int:
        """Delete a project and everything of it; how many sections went."""
        self.project(project_id)
        here = section.c.namespace == self.write.namespace
        ids = self._ids(section.c.section_id, here & (section.c.project_id == project_id))
        self._bury(ids)
        own = (project.c.namespace == self.write.namespace) & (project.c.project_id == project_id)
        self.write.connection.execute(delete(project).where(own))
        self.drop_unused_vectors()
        return len(ids)

    def known(self, project_id: str, paths: Iterable[str]) -> dict[str, FileRow]:
        """The files at these paths, as they stand in this transaction."""
        here = self.write.namespace
        keys = [
            self.sealer.lookup("path_key", here, digest("file", project_id, path)) for path in paths
        ]
        return {row.path: row for row in self._files(source_file.c.path_key, keys)}

    def file(self, file_id: str) -> FileRow | None:
        """The file of this id, as it stands in this transaction."""
        for row in self._files(source_file.c.file_id, [file_id]):
            return row
        return None

    def put_file(self, row: FileRow, *, known: bool) -> None:
        """Write a file; `known` says whether it is there already."""
        (self._changed if known else self._new)["source_file"].append(file_row(row))

    def put_sections(
        self, file: FileRow, sections: Sequence[SectionRow], ids: Callable[[], str], *, known: bool
    ) -> int:
        """Make these the sections of a file, in this order; how many were new or changed.

        Parts that were there keep their ids, and those that are the same keep their numbers too.
        """
        old = self._sections_of(file.id) if known else []
        taken = _matched(old, sections)
        count = 0
        for position, (wanted, before) in enumerate(zip(sections, taken, strict=True)):
            named = replace(wanted, position=position, file_id=file.id, project=file.project)
            if before is None:
                self._new["section"].append(section_row(replace(named, id=ids())))
                count += 1
                continue
            if before["text_hash"] == wanted.text_hash:
                same_since = before["changed_at"]
            else:
                same_since = to_micros(wanted.changed_at)
            new = section_row(replace(named, id=before["section_id"])) | {"changed_at": same_since}
            if any(new[name] != before[name] for name in _COMPARED):
                self._changed["section"].append(new)
                count += 1
        kept = {before["section_id"] for before in taken if before is not None}
        self._bury([row["section_id"] for row in old if row["section_id"] not in kept])
        return count

    def moved(self, file_id: str) -> int:
        """Give every section of a file a new number: its path or role is another one now."""
        here = section.c.namespace == self.write.namespace
        ids = self._ids(section.c.section_id, here & (section.c.file_id == file_id))
        statement = (
            update(section)
            .where(here, section.c.section_id == bindparam("of"))
            .values(seq=bindparam("number"))
        )
        numbers = self.write.take(len(ids))
        if ids:
            rows = [{"of": one, "number": n} for one, n in zip(ids, numbers, strict=True)]
            self.write.connection.execute(statement, rows)
        return len(ids)

    def remove_files(self, file_ids: Iterable[str]) -> int:
        """Delete files with their sections; how many files that were."""
        count = 0
        for some in _portions(file_ids):
            here = section.c.namespace == self.write.namespace
            self._bury(self._ids(section.c.section_id, here & section.c.file_id.in_(some)))
            own = source_file.c.namespace == self.write.namespace
            gone = delete(source_file).where(own, source_file.c.file_id.in_(some))
            count += self.write.connection.execute(gone).rowcount
        return count

    def put_vectors(self, embedder: str, rows: Sequence[SectionVector]) -> int:
        """Keep vectors of texts that a section has, in place of older ones; how many texts."""
        here = self.write.namespace
        stored = {row.text_hash: "" for row in rows}
        stored = {one: self.sealer.lookup("text_hash", here, one) for one in stored}
        living: set[str] = set()
        for some in _portions(stored.values()):
            own = (section.c.namespace == here) & section.c.text_hash.in_(some)
            living.update(self._ids(section.c.text_hash, own))
            old = delete(section_vector).where(
                section_vector.c.namespace == here,
                section_vector.c.embedder == embedder,
                section_vector.c.text_hash.in_(some),
            )
            self.write.connection.execute(old)
        kept = [row for row in rows if stored[row.text_hash] in living]
        numbers = self.write.take(len(kept))
        made = [
            self._stored(
                "section_vector",
                {
                    "text_hash": row.text_hash,
                    "embedder": embedder,
                    "part": row.part,
                    "data": row.data,
                    "seq": seq,
                },
            )
            for row, seq in zip(kept, numbers, strict=True)
        ]
        if made:
            self.write.connection.execute(section_vector.insert(), made)
        return len({row.text_hash for row in kept})

    def drop_unused_vectors(self) -> int:
        """Delete vectors of texts that no section has any more."""
        used = exists().where(
            section.c.namespace == section_vector.c.namespace,
            section.c.text_hash == section_vector.c.text_hash,
        )
        gone = delete(section_vector).where(
            section_vector.c.namespace == self.write.namespace, ~used
        )
        return self.write.connection.execute(gone).rowcount

    def add_history(self, rows: Sequence[HistoryRow]) -> int:
        """Add items of history; those that are known already stay. Returns how many are new."""
        here = self.write.namespace
        named = {item_key(row): row for row in rows}
        keys = {self.sealer.lookup("item_key", here, key): key for key in named}
        for some in _portions(keys):
            own = (history_item.c.namespace == here) & history_item.c.item_key.in_(some)
            for known in self._ids(history_item.c.item_key, own):
                del named[keys[known]]
        fresh = list(named.values())
        if not fresh:
            return 0
        self._insert("history_item", [history_row(row) for row in fresh])
        paths = [
            self._stored(
                "history_path",
                {
                    "path_key": digest("file", row.project, path),
                    "item_id": row.id,
                    "at": to_micros(row.at),
                },
            )
            for row in fresh
            for path in dict.fromkeys(row.paths)
        ]
        if paths:
            self.write.connection.execute(insert_into(self.write.connection, history_path), paths)
        return len(fresh)

    def change_history(self, rows: Sequence[HistoryRow]) -> None:
        """Write items of history that are there anew."""
        self._update(history_item, [history_row(row) for row in rows])

    def count_sections(self, project_id: str) -> int:
        """How many sections a project has in this transaction."""
        self.flush()
        counted = select(func.count()).where(
            section.c.namespace == self.write.namespace, section.c.project_id == project_id
        )
        return int(self.write.connection.execute(counted).scalar_one())

    def flush(self) -> None:
        """Write the files and sections that were put."""
        for table in ("source_file", "section"):
            self._insert(table, self._new[table])
            self._update(_TABLES[table], self._changed[table])
            self._new[table], self._changed[table] = [], []

    def _insert(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        if rows:
            numbers = self.write.take(len(rows))
            numbered = [
                self._stored(name, row | {"seq": seq})
                for row, seq in zip(rows, numbers, strict=True)
            ]
            self.write.connection.execute(_INSERT[name], numbered)

    def _update(self, table: Table, rows: Sequence[dict[str, Any]]) -> None:
        if not rows:
            return
        key = _KEYS[table.name]
        names = [name for name in rows[0] if name != key] + ["seq"]
        statement = (
            update(table)
            .where(table.c.namespace == bindparam("here"), table.c[key] == bindparam("of"))
            .values({name: bindparam(f"new_{name}") for name in names})
        )
        given = []
        for row, seq in zip(rows, self.write.take(len(rows)), strict=True):
            stored = self._stored(table.name, row | {"seq": seq})
            new = {f"new_{name}": stored[name] for name in names}
            given.append({"here": self.write.namespace, "of": row[key]} | new)
        self.write.connection.execute(statement, given)

    def _bury(self, section_ids: Sequence[str]) -> None:
        """Delete sections, and leave their tombstones."""
        if not section_ids:
            return
        for some in _portions(section_ids):
            own = section.c.namespace == self.write.namespace
            gone = delete(section).where(own, section.c.section_id.in_(some))
            self.write.connection.execute(gone)
        self._insert("tombstone", [{"kind": SECTION, "owner_id": one} for one in section_ids])

    def _sections_of(self, file_id: str) -> list[dict[str, Any]]:
        found = self._select(section, SECTION_COLUMNS, section.c.file_id == file_id)
        rows = [dict(zip(SECTION_COLUMNS, row, strict=True)) for row in found]
        return sorted(rows, key=lambda row: row["position"])

    def _files(self, column: Any, values: Iterable[str]) -> Iterator[FileRow]:
        for some in _portions(values):
            yield from map(file_of, self._select(source_file, FILE_COLUMNS, column.in_(some)))

    def _select(
        self, table: Table, columns: Sequence[str], where: Any
    ) -> Sequence[tuple[Any, ...]]:
        chosen = select(*(table.c[name] for name in columns))
        found = self.write.connection.execute(
            chosen.where(table.c.namespace == self.write.namespace, where)
        )
        rows = [tuple(row) for row in found]
        return open_rows(self.sealer, table.name, columns, self.write.namespace, rows)

    def _ids(self, column: Any, where: Any) -> list[str]:
        return list(self.write.connection.execute(select(column).where(where)).scalars())

    def _stored(self, table: str, row: Mapping[str, Any]) -> dict[str, Any]:
        if table == "project":
            (seq,) = self.write.take()
            row = {**row, "seq": seq}
        return self.sealer.seal_row(table, {**row, "namespace": self.write.namespace})


# Where all of these are the same, a section is.
_COMPARED = [name for name in SECTION_COLUMNS if name not in {"section_id", "seq"}]


def _matched(
    old: Sequence[Mapping[str, Any]], new: Sequence[SectionRow]
) -> list[Mapping[str, Any] | None]:
    """For each new section the old one that it continues: same words first, then same name."""
    found: list[Mapping[str, Any] | None] = [None] * len(new)
    left = list(old)
    for same in (_by_words, _by_name):
        waiting: dict[Any, list[Mapping[str, Any]]] = {}
        for row in left:
            waiting.setdefault(same(row), []).append(row)
        for number, one in enumerate(new):
            if found[number] is None and waiting.get(key := same(section_row(one))):
                found[number] = waiting[key].pop(0)
        left = [row for rows in waiting.values() for row in rows]
    return found


def _by_words(row: Mapping[str, Any]) -> Any:
    return row["text_hash"], row["title"], row["symbol"]


def _by_name(row: Mapping[str, Any]) -> Any:
    return row["kind"], row["title"], row["symbol"], row["heading"]


def _portions(values: Iterable[str]) -> Iterator[list[str]]:
    wanted = list(dict.fromkeys(values))
    for start in range(0, len(wanted), _AT_ONCE):
        yield wanted[start : start + _AT_ONCE]
