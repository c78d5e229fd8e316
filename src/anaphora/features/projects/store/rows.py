"""Projects, files, sections and history as the database has them: values, and their rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from anaphora.features.projects import tables
from anaphora.store.hashing import digest
from anaphora.store.mapping import RowMapping
from anaphora.values.files import SourceRole

SECTION_KIND = "section"
"""The kind of tombstones that deleted sections leave."""


@dataclass(frozen=True, slots=True)
class ProjectRow:
    """A project as the database has it. `indexed_at` is None until a pass over it was finished.

    `stale` says that files have changed since its graph was made; `head` is the commit up to which
    its history was read; `folders` the modification times (ns) of the folders in it, by path.
    """

    id: str
    name: str
    root: str
    made_at: datetime
    indexed_at: datetime | None = None
    stale: bool = False
    head: str | None = None
    folders: Mapping[str, int] = field(default_factory=dict)
    seq: int = 0


@dataclass(frozen=True, slots=True)
class FileRow:
    """A file of a project. `skipped` says why it has no sections, None where it was read.

    `mtime_ns` is negative where the file may have changed again unseen. `facts` are what the graph
    is made of; they are empty where they were not asked for.
    """

    id: str
    project: str
    path: str
    role: SourceRole
    language: str | None
    content_hash: str
    skipped: str | None
    parser: int
    size: int
    mtime_ns: int
    inode: int
    changed_at: datetime
    facts: Mapping[str, Any] = field(default_factory=dict)
    seq: int = 0


@dataclass(frozen=True, slots=True)
class SectionRow:
    """A section with the path, role and language of its file; lines count from 1, both included.

    `heading` are the titles around it, outermost first; `text_hash` names its vectors;
    `changed_at` is when its words changed last, as far as is known.
    """

    id: str
    project: str
    path: str
    role: SourceRole
    language: str | None
    kind: str
    title: str
    heading: tuple[str, ...]
    symbol: str | None
    text: str
    start_line: int
    end_line: int
    changed_at: datetime
    text_hash: str
    seq: int = 0
    file_id: str = ""
    position: int = 0


@dataclass(frozen=True, slots=True)
class SectionVector:
    """One part's vector of a text, float16, little-endian."""

    text_hash: str
    part: int
    data: bytes


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """A commit ("commit") or a path that became another ("rename": `paths` are old and new)."""

    id: str
    project: str
    kind: str
    at: datetime
    text: str
    commit: str = ""
    paths: tuple[str, ...] = ()
    seq: int = 0


def item_key(row: HistoryRow) -> str:
    """A digest that is the same when the same item is read again."""
    paths = row.paths if row.kind == "rename" else ()
    return digest(row.project, row.kind, row.commit, *paths)


PROJECT_MAPPING: Final = RowMapping(
    tables.PROJECT,
    ProjectRow,
    named={"id": "project_id"},
    written={"root_key": lambda row: digest("root", row.root)},
)
FILE_MAPPING: Final = RowMapping(
    tables.SOURCE_FILE,
    FileRow,
    named={"id": "file_id", "project": "project_id"},
    written={"path_key": lambda row: digest("file", row.project, row.path)},
)
SECTION_MAPPING: Final = RowMapping(
    tables.SECTION, SectionRow, named={"id": "section_id", "project": "project_id"}
)
HISTORY_MAPPING: Final = RowMapping(
    tables.HISTORY_ITEM,
    HistoryRow,
    named={"id": "item_id", "project": "project_id"},
    read={"commit": ("commit_name", lambda name: name or "")},
    written={"commit_name": lambda row: row.commit or None, "item_key": item_key},
)
