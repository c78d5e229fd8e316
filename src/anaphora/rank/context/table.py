"""What ranking knows of a project's sections and of notes besides their words, as columns.

One row per document (section, module, observation, diary entry) in the order in which the index
numbers them, and one table of columns by file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from anaphora.values.projects import SourceRole

DocumentKind = Literal["section", "module", "observation", "diary"]

DOCUMENT_KINDS: Final[tuple[DocumentKind, ...]] = get_args(DocumentKind)
ROLES: Final[tuple[SourceRole, ...]] = get_args(SourceRole)

_KIND: Final = {kind: code for code, kind in enumerate(DOCUMENT_KINDS)}
_ROLE: Final = {role: code for code, role in enumerate(ROLES)}


@dataclass(frozen=True, slots=True)
class TableRow:
    """A document as a row: `path` is None for notes, `changed_at` seconds since the epoch.

    `importance` is 1 to 5 for notes and 0 where nobody judged; `tokens` is ceil(bytes / 4).
    """

    id: str
    kind: DocumentKind
    path: str | None = None
    project: str = ""
    role: SourceRole = "unknown"
    title: str = ""
    tokens: int = 0
    changed_at: float | None = None
    importance: int = 0
    start_line: int = 0
    end_line: int = 0


@dataclass(frozen=True, slots=True)
class FileTable:
    """F files as columns of length F, in the order of `paths`.

    - `project` int16, `role` int8: codes into the table's `projects` and `ROLES`.
    - `imports` int32 (E, 2): file codes, who imports and what is imported.
    - `log` bool: whether it is a change log.
    """

    paths: tuple[str, ...]
    project: NDArray[np.int16]
    role: NDArray[np.int8]
    imports: NDArray[np.int32]
    log: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.paths)


@dataclass(frozen=True, slots=True)
class SectionTable:
    """N documents as columns of length N; a row's place is its number in the index.

    - `kind` int8, `role` int8, `project` int16: codes into `DOCUMENT_KINDS`, `ROLES`, `projects`.
    - `file` int32: code into `files.paths`, -1 for notes.
    - `tokens` int32: size; `changed_at` float64: seconds since the epoch, NaN where not known.
    - `importance` int8: 1 to 5, 0 where nobody judged.
    - `start_line`, `end_line` int32: from 1, 0 for none.
    """

    ids: tuple[str, ...]
    titles: tuple[str, ...]
    kind: NDArray[np.int8]
    role: NDArray[np.int8]
    project: NDArray[np.int16]
    file: NDArray[np.int32]
    tokens: NDArray[np.int32]
    changed_at: NDArray[np.float64]
    importance: NDArray[np.int8]
    start_line: NDArray[np.int32]
    end_line: NDArray[np.int32]
    files: FileTable
    projects: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.ids)


def build_table(
    rows: Sequence[TableRow], imports: Iterable[tuple[str, str, str]] = ()
) -> SectionTable:
    """The columns of `rows`; `imports` are (project, importing path, imported path).

    A path that no row has is left out of `imports`. Linear in rows and imports.
    """
    projects: dict[str, int] = {}
    files: dict[tuple[str, str], int] = {}
    project, file = [], []
    for row in rows:
        project.append(projects.setdefault(row.project, len(projects)))
        key = (row.project, row.path or "")
        file.append(-1 if row.path is None else files.setdefault(key, len(files)))
    kind = np.array([_KIND[row.kind] for row in rows], np.int8)
    role = np.array([_ROLE[row.role] for row in rows], np.int8)
    of_file = np.array(file, np.int32)
    return SectionTable(
        ids=tuple(row.id for row in rows),
        titles=tuple(row.title for row in rows),
        kind=kind,
        role=role,
        project=np.array(project, np.int16),
        file=of_file,
        tokens=np.array([row.tokens for row in rows], np.int32),
        changed_at=np.array(
            [np.nan if row.changed_at is None else row.changed_at for row in rows], np.float64
        ),
        importance=np.array([row.importance for row in rows], np.int8),
        start_line=np.array([row.start_line for row in rows], np.int32),
        end_line=np.array([row.end_line for row in rows], np.int32),
        files=_file_table(list(files), projects, (role, of_file), imports),
        projects=tuple(projects),
    )


def _file_table(
    files: Sequence[tuple[str, str]],
    projects: Mapping[str, int],
    columns: tuple[NDArray[np.int8], NDArray[np.int32]],
    imports: Iterable[tuple[str, str, str]],
) -> FileTable:
    role, of_file = columns
    code = {key: number for number, key in enumerate(files)}
    role_of = np.full(len(files), _ROLE["unknown"], np.int8)
    inside = of_file >= 0
    role_of[of_file[inside]] = role[inside]
    edges = [
        (code[(project, who)], code[(project, what)])
        for project, who, what in imports
        if (project, who) in code and (project, what) in code and who != what
    ]
    return FileTable(
        paths=tuple(path for _, path in files),
        project=np.array([projects[name] for name, _ in files], np.int16),
        role=role_of,
        imports=np.array(sorted(set(edges)), np.int32).reshape(-1, 2),
        log=np.array([is_log(path) for _, path in files], np.bool_),
    )


_LOGS: Final = frozenset(("changes", "changelog", "history", "news", "releases", "releasenotes"))


def is_log(path: str) -> bool:
    """Whether a file is a change log by its name."""
    name = path.rsplit("/", 1)[-1].partition(".")[0].lower()
    ending = path.rpartition(".")[2].lower() if "." in path.rsplit("/", 1)[-1] else ""
    return name.translate(_JOINTS) in _LOGS and ending in ("", "md", "rst", "txt", "adoc", "org")


_JOINTS: Final = {ord("-"): None, ord("_"): None}
