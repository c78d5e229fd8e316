"""What the index keeps in memory of each section and note: rows, and columns made of them.

In: short rows of truth. Out: row numbers, and the `SectionTable` that ranking reads. A document
keeps its row while it lives; the row of a deleted one is never given out again. No text is held.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final, cast, get_args

import numpy as np
from numpy.typing import NDArray

from anaphora.rank.budget import token_cost
from anaphora.rank.context.table import DocumentKind, SectionTable, TableRow, build_table
from anaphora.store.projects.source import ShortFile, ShortSection
from anaphora.values.memories import MemoryRecord
from anaphora.values.projects import SourceRole

CURRENT: Final = 1
PAST: Final = 0
"""A note that was replaced or softly forgotten."""
GONE: Final = -1

_NOTHING: Final = TableRow("", "observation")
_ROLES: Final = frozenset(get_args(SourceRole))


class SectionRows:
    """Rows of one namespace. One thread at a time (the caller holds a lock)."""

    def __init__(self) -> None:
        self.rows: list[TableRow] = []
        self.files: dict[str, ShortFile] = {}
        self._place: dict[str, int] = {}
        self._seqs: list[int] = []
        self._states: list[int] = []
        self._keys: list[bytes] = []
        self._ends: dict[int, int] = {}
        self._imports: list[tuple[str, str, str]] = []
        self._table: SectionTable | None = None
        self._arrays: tuple[NDArray[np.int8], tuple[bytes, ...]] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def row(self, key: str) -> int:
        """The row of a document, -1 for an unknown or a deleted one."""
        return self._place.get(key, -1)

    def seq(self, row: int) -> int:
        """The number of truth that the row's document last changed at."""
        return self._seqs[row]

    def put_files(self, files: Iterable[ShortFile]) -> None:
        """Take in files, new or changed. Sections that are told by it come with new numbers."""
        self.files.update((file.id, file) for file in files)

    def put_sections(self, sections: Iterable[ShortSection]) -> None:
        """Take in sections, new or changed. One whose file is not known is left for later."""
        for one in sections:
            file = self.files.get(one.file)
            if file is None:
                continue
            made = TableRow(
                one.id,
                "section",
                path=file.path,
                project=one.project,
                role=_role(file.role),
                title=one.title,
                tokens=-(-one.characters // 4),
                changed_at=one.changed_at / 1e6,
                start_line=one.start_line,
                end_line=one.end_line,
            )
            self._put(one.id, made, one.seq, one.text_hash.encode("utf-8", "surrogatepass"))

    def path_of(self, file_id: str) -> str:
        """The path of a file, "" for one that is not known."""
        file = self.files.get(file_id)
        return file.path if file is not None else ""

    def put_note(self, kind: str, record: MemoryRecord) -> int:
        """Take in an observation or a diary entry, new or changed; its row."""
        payload = record.payload or {}
        current = record.valid_to is None and not record.forgotten
        made = TableRow(
            record.id,
            cast(DocumentKind, kind),
            project=str(payload.get("project") or ""),
            title=" ".join((record.type, *record.tags)),
            tokens=token_cost(record.text),
            changed_at=record.created_at.timestamp(),
            importance=_importance(payload.get("importance")),
        )
        key = f"note:{record.id}".encode("utf-8", "surrogatepass")
        row = self._put(record.id, made, record.seq, key)
        self._states[row] = CURRENT if current else PAST
        self._ends[row] = _micros(record.expires_at)
        return row

    def drop(self, key: str, seq: int | None) -> int:
        """Drop what was deleted at number `seq` (None: now); its row, or -1 when it lives on."""
        row = self._place.get(key, -1)
        # Numbers tell a deletion from a later return under the same id (a restored backup).
        if row < 0 or (seq is not None and self._seqs[row] > seq):
            return -1
        del self._place[key]
        self.rows[row] = _NOTHING
        self._states[row], self._keys[row] = GONE, b""
        self._table = self._arrays = None
        return row

    def set_imports(self, imports: Iterable[tuple[str, str, str]]) -> None:
        """Who imports what: (project, file id, file id)."""
        found = sorted(set(imports))
        if found != self._imports:
            self._imports = found
            self._table = None

    def states(self) -> NDArray[np.int8]:
        """CURRENT, PAST or GONE of each row, (N,)."""
        return self._columns()[0]

    def vector_keys(self) -> tuple[bytes, ...]:
        """What each row's vector is found by, b"" for a row that has none by its nature."""
        return self._columns()[1]

    def expired(self, micros: int) -> list[int]:
        """Rows of notes that have expired by then."""
        return [row for row, end in self._ends.items() if 0 < end <= micros]

    def table(self) -> SectionTable:
        """The columns, one row per document; rows that are gone belong to no file."""
        if self._table is None:
            paths = {file.id: file.path for file in self.files.values()}
            named = (
                (project, paths[who], paths[what])
                for project, who, what in self._imports
                if who in paths and what in paths
            )
            self._table = build_table(self.rows, named)
        return self._table

    def _columns(self) -> tuple[NDArray[np.int8], tuple[bytes, ...]]:
        if self._arrays is None:
            self._arrays = (np.array(self._states, np.int8), tuple(self._keys))
        return self._arrays

    def _put(self, key: str, made: TableRow, seq: int, vector: bytes) -> int:
        self._table = self._arrays = None
        row = self._place.get(key, -1)
        if row >= 0:
            self.rows[row] = made
            self._seqs[row], self._keys[row] = seq, vector
            return row
        row = self._place[key] = len(self.rows)
        self.rows.append(made)
        self._seqs.append(seq)
        self._states.append(CURRENT)
        self._keys.append(vector)
        return row


def _role(stored: str) -> SourceRole:
    return cast(SourceRole, stored) if stored in _ROLES else "unknown"


def _importance(given: Any) -> int:
    return given if isinstance(given, int) and 0 <= given <= 5 else 0


def _micros(moment: datetime | None) -> int:
    return 0 if moment is None else round(moment.timestamp() * 1e6)
