"""Projects in the database: their files, sections and history, and how a change to them begins.

A section that changes, moves or gets another path gets the next number of its namespace, and one
that goes leaves a tombstone, so that an index follows the database (`projects.source`). Vectors
belong to a text, not to a section: what was moved is not embedded again. It never reads a file of a
project or a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from anaphora.errors import NotFound, Tampered
from anaphora.features.projects.store.rows import (
    FILE_MAPPING,
    HISTORY_MAPPING,
    PROJECT_MAPPING,
    SECTION_MAPPING,
    FileRow,
    HistoryRow,
    ProjectRow,
    SectionRow,
    SectionVector,
)
from anaphora.features.projects.tables import HISTORY_ITEM, PROJECT, SECTION, SOURCE_FILE
from anaphora.features.projects.values import Project
from anaphora.language.names import composed
from anaphora.store.crypto.columns import CLEAR, Sealer
from anaphora.store.hashing import digest
from anaphora.store.namespace import STEP, NamespaceReader, ids_named
from anaphora.system.repositories import checkout_of, folder_key, is_folder, lies_in, real_folder

if TYPE_CHECKING:
    from anaphora.features.projects.store.transaction import ProjectTransaction
    from anaphora.store.db.engine import Database

FILE_COLUMNS = tuple(name for name in SOURCE_FILE.names if name != "facts")
"""Of a file, without what its graph is made of: large, and rarely asked for."""
_ANY = "SELECT 1 FROM section WHERE namespace = :namespace LIMIT 1"
_SECTIONS = (
    f"SELECT {SECTION.listed('s')}, "  # noqa: S608 - names of ours
    f"{SOURCE_FILE.listed('f', FILE_COLUMNS)} FROM section s JOIN source_file f "
    "ON f.namespace = s.namespace AND f.file_id = s.file_id WHERE s.namespace = :namespace "
)
_MISSING = (
    "FROM section s WHERE s.namespace = :namespace AND s.text_hash > :after AND NOT EXISTS ("
    "SELECT 1 FROM section_vector v WHERE v.namespace = s.namespace "
    "AND v.text_hash = s.text_hash AND v.embedder = :embedder) "
)
_WITHOUT = "SELECT MIN(s.section_id) " + _MISSING + "{only}GROUP BY s.text_hash "
_PENDING = "SELECT COUNT(*) " + _MISSING
_LACKING = "SELECT s.section_id " + _MISSING + "AND s.section_id IN ({names})"
_HISTORY = HISTORY_ITEM.select() + "AND project_id = :project "
_OF_PATHS = (
    _HISTORY + "AND item_id IN (SELECT item_id FROM history_path "  # noqa: S608 - names of ours
    "WHERE namespace = :namespace AND path_key IN ({names})) "
    "ORDER BY at DESC, item_id LIMIT :limit"
)
_COUNTS = (
    "SELECT p.project_id, "
    "(SELECT COUNT(*) FROM source_file f WHERE f.namespace = p.namespace "
    "AND f.project_id = p.project_id AND f.skipped IS NULL), "
    "(SELECT COUNT(*) FROM section s WHERE s.namespace = p.namespace "
    "AND s.project_id = p.project_id) FROM project p WHERE p.namespace = :namespace"
)
_LAST_FILE = (
    "SELECT COALESCE(MAX(seq), 0), COUNT(*) FROM source_file "
    "WHERE namespace = :namespace AND project_id = :project"
)


class Projects(NamespaceReader):
    """The projects of one namespace. Every read sees every write acknowledged by any process.

    `folders_around` gives the folders in which what a folder is of may have been indexed, as keys,
    each with the way to it within that.
    """

    def __init__(
        self,
        truth: Database,
        namespace: str,
        sealer: Sealer = CLEAR,
        folders_around: Callable[[str], Mapping[str, str]] = lambda _: {},
    ) -> None:
        super().__init__(truth, namespace, sealer)
        self._folders_around = folders_around
        # Every project as of a number of the database: each question of all projects asks for them.
        self._all: tuple[int, tuple[ProjectRow, ...]] = (-1, ())

    def holds_sections(self) -> bool:
        """Whether any project has a section."""
        return bool(self._rows(_ANY))

    @contextmanager
    def change(self) -> Iterator[ProjectTransaction]:
        """One write transaction: what was done in it is kept whole or not.

        `ReadOnly`, `DiskFull` or `StoreError` when the database refuses; `SealChanged` where the
        home was sealed or opened up meanwhile.
        """
        from anaphora.features.projects.store.transaction import ProjectTransaction

        with self._writing() as write:
            work = ProjectTransaction(write, self.sealer)
            yield work
            work.flush()

    def rows(self) -> tuple[ProjectRow, ...]:
        """Every project as the database has it, in order of their ids."""
        self.sealer.check()
        version = self.version()
        if not version or self._all[0] != version:
            self._all = (version, self._projects("ORDER BY project_id"))
        return self._all[1]

    def row(self, project_id: str) -> ProjectRow:
        """The project of this id. `NotFound` when there is none (any more)."""
        rows = self._projects("AND project_id = :id", id=project_id)
        if not rows:
            raise NotFound("project", project_id)
        return rows[0]

    def list(self) -> tuple[Project, ...]:
        """The projects that were indexed, by name; one that is being indexed first is among them.

        `files` counts those that were read, not those that were skipped.
        """
        counts = {row[0]: (row[1], row[2]) for row in self._rows(_COUNTS)}
        projects = [
            Project(
                id=row.id,
                name=row.name,
                root=row.root,
                files=counts.get(row.id, (0, 0))[0],
                sections=counts.get(row.id, (0, 0))[1],
                indexed_at=row.indexed_at or row.made_at,
            )
            for row in self.rows()
        ]
        return tuple(sorted(projects, key=lambda project: (project.name, project.id)))

    def around(self, directory: str) -> tuple[ProjectRow, ...]:
        """The projects that a folder lies in or is of, wherever they were indexed.

        A repository within another one, such as a submodule, is no part of that.
        """
        key, ways = folder_key(real_folder(directory)), self._folders_around(directory)
        homes = ("", checkout_of(directory).home)
        roots = ((row, folder_key(row.root)) for row in self.rows())
        return tuple(
            row
            for row, root in roots
            if root in ways or (lies_in(key, root) and checkout_of(row.root).home in homes)
        )

    def moved(self, directory: str) -> ProjectRow | None:
        """The project that now lies in a folder, as its own one is gone; None for none."""
        ways = self._folders_around(directory)
        moved_rows = [
            row
            for row in self.rows()
            if ways.get(folder_key(row.root)) == "" and not Path(row.root).is_dir()
        ]
        return max(
            moved_rows, key=lambda row: (row.indexed_at or row.made_at, row.id), default=None
        )

    def find(self, project: str) -> ProjectRow:
        """The project of this id, name or folder. `NotFound` when there is none."""
        rows = self.rows()
        # To the letter first: two folders may differ in Unicode form alone.
        for form in (str, composed):
            for attribute in ("id", "name", "root"):
                for row in rows:
                    if form(getattr(row, attribute)) == form(project):
                        return row
        rows = self.around(project) if is_folder(project) else ()
        if not rows:
            raise NotFound("project", project)
        # The inmost folder that it lies in, else the one that was indexed last.
        key = folder_key(real_folder(project))
        return max(
            rows,
            key=lambda row: (
                lies_in(key, folder_key(row.root)) * len(row.root),
                row.indexed_at or row.made_at,
            ),
        )

    def remove(self, project_id: str) -> int:
        """Delete a project with all that was made of it; return how many sections that were.

        Followers learn of it by tombstones; its notes stay. `NotFound` when there is none.
        """
        with self.change() as work:
            return work.remove_project(project_id)

    def files(self, project_id: str, *, facts: bool = False, since: int = -1) -> dict[str, FileRow]:
        """The files of a project by path, those that were skipped too; `facts` only if asked.

        With `since` those that changed after that number of the database.
        """
        columns = SOURCE_FILE.names if facts else FILE_COLUMNS
        statement = SOURCE_FILE.select(columns) + "AND project_id = :id AND seq > :since"
        rows = self._rows(statement, id=project_id, since=since)
        opened_rows = self._opened(SOURCE_FILE, rows, columns)
        file_rows = (FILE_MAPPING.value(row if facts else (*row, None)) for row in opened_rows)
        return {row.path: row for row in file_rows}

    def last_file(self, project_id: str) -> tuple[int, int]:
        """(number of the last change to a file of a project, files): equal when nothing changed."""
        rows = self._rows(_LAST_FILE, project=project_id)
        return (int(rows[0][0]), int(rows[0][1])) if rows else (0, 0)

    def sections(self, section_ids: Iterable[str]) -> dict[str, SectionRow]:
        """The sections of these ids that exist, by id."""
        by_id: dict[str, SectionRow] = {}
        for batch, names in ids_named(section_ids):
            for row in self._sections(_SECTIONS + f"AND s.section_id IN ({names})", **batch):
                by_id[row.id] = row
        return by_id

    def sections_of(self, project_id: str, path: str) -> tuple[SectionRow, ...]:
        """The sections of a file, in their order."""
        key = self.path_key(project_id, path)
        statement = _SECTIONS + "AND f.project_id = :id AND f.path_key = :key ORDER BY s.position"
        return tuple(self._sections(statement, id=project_id, key=key))

    def put_vectors(self, embedder: str, rows: Iterable[SectionVector]) -> int:
        """Keep vectors of texts that sections still have; return how many texts got theirs."""
        vectors = list(rows)
        if not vectors:
            return 0
        with self.change() as work:
            return work.put_vectors(embedder, vectors)

    def without_vector(
        self, embedder: str, *, project: str | None = None, limit: int = STEP, after: str = ""
    ) -> tuple[SectionRow, ...]:
        """Sections with a text that has no vector of this embedder, one for each text.

        In order of the stored form of `text_hash`, from `after` on: `cursor_of` gives it.
        """
        only = "" if project is None else "AND s.project_id = :project "
        statement = _WITHOUT.format(only=only) + "ORDER BY s.text_hash LIMIT :limit"
        parameters: dict[str, str | int | None] = {
            "embedder": embedder, "after": after, "limit": limit,
        }  # fmt: skip
        if project is not None:
            parameters["project"] = project
        return self._in_order([row[0] for row in self._rows(statement, **parameters)])

    def lacking_vector(self, embedder: str, section_ids: Iterable[str]) -> tuple[SectionRow, ...]:
        """The given sections that have no vector of this embedder, in their order."""
        ids = list(dict.fromkeys(section_ids))
        without: set[str] = set()
        for batch, names in ids_named(ids):
            statement = _LACKING.format(names=names)
            without.update(
                row[0] for row in self._rows(statement, embedder=embedder, after="", **batch)
            )
        return self._in_order([section_id for section_id in ids if section_id in without])

    def _in_order(self, section_ids: Sequence[str]) -> tuple[SectionRow, ...]:
        by_id = self.sections(section_ids)
        return tuple(by_id[section_id] for section_id in section_ids if section_id in by_id)

    def cursor_of(self, text_hash: str) -> str:
        """Where `without_vector` goes on after a text."""
        return self._lookup("text_hash", text_hash)

    def pending(self, embedder: str, project: str | None = None) -> int:
        """How many sections have no vector of this embedder yet."""
        only = "" if project is None else "AND s.project_id = :project"
        parameters: dict[str, str | int | None] = {"embedder": embedder, "after": ""}
        if project is not None:
            parameters["project"] = project
        return sum(int(row[0]) for row in self._rows(_PENDING + only, **parameters))

    def history(self, project_id: str, since: int = 0, limit: int = STEP) -> tuple[HistoryRow, ...]:
        """Items of a project's history with numbers above `since`, in order of their numbers."""
        statement = _HISTORY + "AND seq > :since ORDER BY seq LIMIT :limit"
        return self._history(statement, project=project_id, since=since, limit=limit)

    def history_of(
        self, project_id: str, paths: Iterable[str], limit: int = 20
    ) -> tuple[HistoryRow, ...]:
        """What touched any of these paths, the latest first."""
        items_by_id: dict[str, HistoryRow] = {}
        wanted_paths = set(paths)
        keys = [self.path_key(project_id, path) for path in wanted_paths]
        for batch, names in ids_named(keys):
            statement = _OF_PATHS.format(names=names)
            for row in self._history(statement, project=project_id, limit=limit, **batch):
                if self.sealer.sealed and wanted_paths.isdisjoint(row.paths):
                    raise Tampered(f"history_path of {row.id}", "it names a path of another item")
                items_by_id[row.id] = row
        return tuple(
            sorted(items_by_id.values(), key=lambda row: (-row.at.timestamp(), row.id))[:limit]
        )

    def path_key(self, project_id: str, path: str) -> str:
        """What `path_key` columns hold for a path of a project."""
        return self._lookup("path_key", digest("file", project_id, path))

    def _projects(self, where: str, **values: str | int | None) -> tuple[ProjectRow, ...]:
        rows = self._found(PROJECT, PROJECT.select() + where, **values)
        return tuple(map(PROJECT_MAPPING.value, rows))

    def _sections(self, statement: str, **values: str | int | None) -> Iterator[SectionRow]:
        rows = self._rows(statement, **values)
        width = len(SECTION.names)
        opened_rows = self._opened(SECTION, [row[:width] for row in rows])
        files = self._opened(SOURCE_FILE, [row[width:] for row in rows], FILE_COLUMNS, only=())
        for row, file in zip(opened_rows, files, strict=True):
            of = dict(zip(FILE_COLUMNS, file, strict=True))
            yield SECTION_MAPPING.value(
                row, path=of["path"], role=of["role"], language=of["language"]
            )

    def _history(self, statement: str, **values: str | int | None) -> tuple[HistoryRow, ...]:
        return tuple(map(HISTORY_MAPPING.value, self._found(HISTORY_ITEM, statement, **values)))
