"""Rows of the tables of projects, and the values that they stand for.

In: rows, or values. Out: the other. Times are microseconds since 1970 UTC, lists and mappings
JSON that keeps every character. Nothing here reads a database or a disk, and nothing imports
SQLAlchemy.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from anaphora.store.codecs import as_json, moment, to_micros
from anaphora.store.hashing import digest
from anaphora.values.projects import SourceRole

SECTION = "section"
"""The kind of tombstones that deleted sections leave."""

PROJECT_COLUMNS = (
    "project_id", "seq", "name", "root", "root_key", "made_at", "indexed_at", "stale", "head",
    "folders",
)  # fmt: skip
FILE_COLUMNS = (
    "file_id", "project_id", "seq", "path", "path_key", "content_hash", "role", "language",
    "skipped", "parser", "size", "mtime_ns", "inode", "changed_at", "facts",
)  # fmt: skip
SECTION_COLUMNS = (
    "section_id", "project_id", "file_id", "seq", "position", "kind", "title", "heading", "symbol",
    "text", "start_line", "end_line", "changed_at", "text_hash",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ProjectRow:
    """A project as truth has it. `indexed_at` is None until a pass over it was finished.

    `stale` says that files have changed since its graph was made; `head` is the commit up to which
    its history was read; `folders` the modification times (ns) of its folders, by path.
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
class SectionBatch:
    """Vectors in order of their numbers: `data` holds those of `text_hashes`, one after another."""

    text_hashes: tuple[str, ...]
    parts: tuple[int, ...]
    data: bytes
    seq: int


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


def project_of(row: Sequence[Any]) -> ProjectRow:
    """The project that a row of `PROJECT_COLUMNS` stands for."""
    project_id, seq, name, root, _, made_at, indexed_at, stale, head, folders = row
    return ProjectRow(
        id=project_id,
        name=name,
        root=root,
        made_at=moment(made_at),
        indexed_at=None if indexed_at is None else moment(indexed_at),
        stale=bool(stale),
        head=head,
        folders=json.loads(folders) if folders else {},
        seq=seq,
    )


def file_of(row: Sequence[Any]) -> FileRow:
    """The file that a row of `FILE_COLUMNS` stands for."""
    (
        file_id, project_id, seq, path, _, content_hash, role, language,
        skipped, parser, size, mtime_ns, inode, changed_at, facts,
    ) = row  # fmt: skip
    return FileRow(
        id=file_id,
        project=project_id,
        path=path,
        role=cast("SourceRole", role),
        language=language,
        content_hash=content_hash,
        skipped=skipped,
        parser=parser,
        size=size,
        mtime_ns=mtime_ns,
        inode=inode,
        changed_at=moment(changed_at),
        facts=json.loads(facts) if facts else {},
        seq=seq,
    )


def section_of(row: Sequence[Any], path: str, role: str, language: str | None) -> SectionRow:
    """The section that a row of `SECTION_COLUMNS` stands for, in a file of this path and role."""
    (
        section_id, project_id, file_id, seq, position, kind, title, heading, symbol,
        text, start_line, end_line, changed_at, text_hash,
    ) = row  # fmt: skip
    return SectionRow(
        id=section_id,
        project=project_id,
        path=path,
        role=cast("SourceRole", role),
        language=language,
        kind=kind,
        title=title,
        heading=tuple(json.loads(heading)) if heading else (),
        symbol=symbol,
        text=text,
        start_line=start_line,
        end_line=end_line,
        changed_at=moment(changed_at),
        text_hash=text_hash,
        seq=seq,
        file_id=file_id,
        position=position,
    )


def project_row(row: ProjectRow) -> dict[str, Any]:
    """The columns of a project, but for its namespace and number."""
    return {
        "project_id": row.id,
        "name": row.name,
        "root": row.root,
        "root_key": digest("root", row.root),
        "made_at": to_micros(row.made_at),
        "indexed_at": to_micros(row.indexed_at),
        "stale": int(row.stale),
        "head": row.head,
        "folders": as_json(row.folders) if row.folders else None,
    }


def file_row(row: FileRow) -> dict[str, Any]:
    """The columns of a file, but for its namespace and number."""
    return {
        "file_id": row.id,
        "project_id": row.project,
        "path": row.path,
        "path_key": digest("file", row.project, row.path),
        "content_hash": row.content_hash,
        "role": row.role,
        "language": row.language,
        "skipped": row.skipped,
        "parser": row.parser,
        "size": row.size,
        "mtime_ns": row.mtime_ns,
        "inode": row.inode,
        "changed_at": to_micros(row.changed_at),
        "facts": as_json(row.facts) if row.facts else None,
    }


def section_row(row: SectionRow) -> dict[str, Any]:
    """The columns of a section, but for its namespace and number."""
    return {
        "section_id": row.id,
        "project_id": row.project,
        "file_id": row.file_id,
        "position": row.position,
        "kind": row.kind,
        "title": row.title,
        "heading": as_json(row.heading) if row.heading else None,
        "symbol": row.symbol,
        "text": row.text,
        "start_line": row.start_line,
        "end_line": row.end_line,
        "changed_at": to_micros(row.changed_at),
        "text_hash": row.text_hash,
    }


def history_row(row: HistoryRow) -> dict[str, Any]:
    """The columns of an item of history, but for its namespace and number."""
    return {
        "item_id": row.id,
        "project_id": row.project,
        "kind": row.kind,
        "at": to_micros(row.at),
        "item_key": item_key(row),
        "text": row.text,
        "commit_name": row.commit or None,
        "paths": as_json(row.paths) if row.paths else None,
    }


def item_key(row: HistoryRow) -> str:
    """A digest that is the same when the same item is read again."""
    paths = row.paths if row.kind == "rename" else ()
    return digest(row.project, row.kind, row.commit, *paths)
