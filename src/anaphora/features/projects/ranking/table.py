"""What ranking knows of a project's sections and of notes besides their words, as columns.

One row per document (section, module, observation, diary entry) in the order in which the index
numbers them, and one table of columns by file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from anaphora.values.files import SourceRole

DocumentKind = Literal["section", "module", "observation", "diary", "document_section"]

DOCUMENT_KINDS: Final[tuple[DocumentKind, ...]] = get_args(DocumentKind)
ROLES: Final[tuple[SourceRole, ...]] = get_args(SourceRole)


@dataclass(frozen=True, slots=True)
class FileTable:
    """F files as columns of length F, in the order of `paths`.

    - `project` int16, `role` int8: codes into the table's `projects` and `ROLES`.
    - `imports` int32 (E, 2): file codes, of the importing file and of the imported one.
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
    - `importance` int8: 1 to 5, 0 if it was not judged.
    - `start_line`, `end_line` int32: from 1, 0 for none.
    """

    ids: tuple[str, ...]
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


def file_table(
    files: Sequence[tuple[str, str]],
    projects: Sequence[str],
    roles: NDArray[np.int8],
    imports: Iterable[tuple[str, str, str]],
) -> FileTable:
    """The columns of files, told by project and path; `imports` are (project, path, path).

    One that has an end which is no such file is left out.
    """
    code = {key: number for number, key in enumerate(files)}
    edges = {
        (code[project, importer], code[project, imported_path])
        for project, importer, imported_path in imports
        if (project, importer) in code
        and (project, imported_path) in code
        and importer != imported_path
    }
    return FileTable(
        paths=tuple(path for _, path in files),
        project=np.array([projects.index(name) for name, _ in files], np.int16),
        role=roles,
        imports=np.array(sorted(edges), np.int32).reshape(-1, 2),
        log=np.array([is_log(path) for _, path in files], np.bool_),
    )


_LOGS: Final = frozenset(("changes", "changelog", "history", "news", "releases", "releasenotes"))


def is_log(path: str) -> bool:
    """Whether a file is a change log by its name."""
    name = path.rsplit("/", 1)[-1].partition(".")[0].lower()
    ending = path.rpartition(".")[2].lower() if "." in path.rsplit("/", 1)[-1] else ""
    return name.translate(_JOINTS) in _LOGS and ending in ("", "md", "rst", "txt", "adoc", "org")


_JOINTS: Final = {ord("-"): None, ord("_"): None}
