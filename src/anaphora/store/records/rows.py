"""Records as the database has them: what their rows stand for, and what tells them apart.

A row that makes no sense is `Unreadable`; `mended_row` makes one of it that can be read. Nothing
here reads a database, and nothing imports SQLAlchemy.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal, get_args

from anaphora.language.names import composed, folded_path
from anaphora.store.codecs import DAMAGE, as_json, parsed
from anaphora.store.db.table import Column
from anaphora.store.db.tables import LINK, RECORD, RECORD_EVENT
from anaphora.store.filters import FIELDS
from anaphora.store.hashing import digest
from anaphora.store.mapping import RowMapping
from anaphora.values.memories import MemoryRecord, Verdict

MEMORY = "memory"
"""The kind of record that a lasting memory is."""
OBSERVATION = "observation"
"""A note about a project: its type is the note's kind, its payload has the rest."""
DIARY = "diary"
"""What was done in a session."""
TOOL_CALL = "tool_call"
"""A line about what an agent did with a tool."""
PROJECT_PAIR = "project_pair"
"""What a person said of two projects: its text is "same" or "apart", its payload names both."""
SESSION_MARK = "session_mark"
"""What a session's repository keeps when it is moved: its text, under the session's id as path."""
INDEXED_FOLDER = "indexed_folder"
"""Where a project was indexed: its text, under the project's id as path; its payload says in which
repository. It is of this machine, and not synced."""
DOCUMENT = "document"
"""A version of a document: its text is the title, its path the name, its payload the rest."""
DOCUMENT_SECTION = "document_section"
"""A part of a document, its parent: its payload says where it stands."""
IMPORTED: Final = "imported"
"""Of an event's details: it was told by an import, under its source. A kind of tombstone, too."""
MERGED: Final = "merged"
"""The kind of tombstone of a record made one with another: its id, a space, the other's id."""
IDENTITY_FIELDS: Final = ("type", "path", "payload", "text")
"""What two memories that are the same have in common, the text by its NFC form."""
STANDS_ALONE = ""
"""The `same_key` of a memory that nothing restates and nothing is linked to."""

IN_CORE: Final = 2
"""The `core` of a record of which was said whether it stands in the core block."""
RULE: Final = 1
"""The `core` of others that belong there as rules: those of the type "procedural"."""

EventKind = Literal[
    "added",
    "restated",
    "linked",
    "updated",
    "forgotten",
    "restored",
    "contradicted",
    "settled",
    "reopened",
]


@dataclass(frozen=True, slots=True)
class RecordEvent:
    """One time that a memory was said or changed.

    "added" and "restated" carry the tags and the origin of that time, and in `text` its words
    where they differ from the record's (another Unicode form of the same). "linked": a close
    memory said the same (`details["other"]`). "updated": tags and `details["was"]` are what was
    replaced. "forgotten": it was softly forgotten, "restored": it came back. "contradicted": what
    came later, `details["other"]`, was found to say otherwise. "settled", "reopened": its
    contradiction with `details["other"]`, by `details["verdict"]`.
    """

    record_id: str
    kind: EventKind
    at: datetime
    seq: int = 0
    tags: tuple[str, ...] = ()
    source: str | None = None
    conversation_id: str | None = None
    turn_index: int | None = None
    text: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


CLOSENESS: Final = ("same", "related")
"""Kinds of links between close memories: those that say the same, and others."""

OPEN: Final = "differs"
"""The kind of a link between two that seem to contradict each other."""

SETTLED: Final = get_args(Verdict)
"""What `OPEN` becomes once it was settled what holds."""

CONTRADICTION: Final = (OPEN, *SETTLED)

LINK_KINDS: Final = (*CLOSENESS, *CONTRADICTION)


@dataclass(frozen=True, slots=True)
class RecordLink:
    """Two close memories: `kind` is one of `CLOSENESS`, or says that they contradict each other.

    `record_id` sorts before `other_id`; `strength` is their cosine. Two memories have at most one
    link of each of the two families of kinds.
    """

    record_id: str
    other_id: str
    kind: str
    strength: float


def _core_mark(record: MemoryRecord) -> int | None:
    if record.pin is not None:
        return IN_CORE
    return RULE if record.type == "procedural" else None


RECORD_MAPPING: Final = RowMapping(
    RECORD,
    MemoryRecord,
    named={"id": "record_id", "valid_to": "valid_until", "reinforce_count": "reinforced"},
    packed={"origin": ("sources", "conversation_id", "turn_index", "pin", "keep_secret")},
    read={"forgotten": ("forgotten_at", lambda at: at is not None)},
    written={
        "path_key": lambda record: None if record.path is None else path_key_of(record.path),
        "core": _core_mark,
    },
)
EVENT_MAPPING: Final = RowMapping(
    RECORD_EVENT,
    RecordEvent,
    packed={"origin": ("source", "conversation_id", "turn_index", "text", "details")},
)

LINK_MAPPING: Final = RowMapping(LINK, RecordLink)


def same_key_of(record: MemoryRecord) -> str:
    """A digest that two memories share when they are the same: type, payload, NFC path and text."""
    payload = "" if record.payload is None else as_json(record.payload, sort_keys=True)
    text = unicodedata.normalize("NFC", record.text)
    return digest("same", record.type, composed(record.path or ""), payload, text)


def session_key(conversation_id: str) -> str:
    """The identity that the tool calls of one session have in common, to find them by."""
    return digest("tool calls of", conversation_id)


MARKS_KEY: Final = digest("marks of sessions")
"""The identity that all marks of sessions' repositories have in common, to find them by."""
PAIRS_KEY: Final = digest("pairs of projects")
"""The identity that all statements about two projects have in common, to find them by."""
FOLDERS_KEY: Final = digest("indexed folders")
"""The identity that all folders of indexed projects have in common, to find them by."""


def path_key_of(path: str) -> str:
    """The digest to find the versions of a path by, and those of paths in another case."""
    return digest("path", folded_path(path))


def is_at(record: MemoryRecord, path: str) -> bool:
    """Whether a record is a value of this path, in any Unicode form."""
    return record.path is not None and composed(record.path) == composed(path)


def is_near(record: MemoryRecord, path: str) -> bool:
    """Whether a record's path differs from this one in nothing but case."""
    if record.path is None or is_at(record, path):
        return False
    return folded_path(record.path) == folded_path(path)


def as_mapping(record: MemoryRecord) -> dict[str, Any]:
    """A record as filters see it. `source` is where it came from first."""
    source = record.sources[0] if record.sources else None
    return {name: source if name == "source" else getattr(record, name) for name in FIELDS}


def mended_row(row: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A row of RECORD that can be read, and by name what stood in the columns that were changed.

    An invalid value is as if it had not been given; a time that must be there is that of another
    column, or 1970.
    """
    mended_cells, was = list(row), dict[str, Any]()
    needed_times = [_is_time(column) and column.needed for column in RECORD.columns[1:]]
    times = [
        v for v, is_one in zip(row, needed_times, strict=True) if is_one and isinstance(v, int)
    ]
    for at, (column, cell) in enumerate(zip(RECORD.columns[1:], row, strict=True)):
        if not _is_sound(column, cell):
            was[column.name] = cell if isinstance(cell, str | int | float) else repr(cell)
            mended_cells[at] = _repaired(column, cell, times)
    return tuple(mended_cells), was


def _is_time(column: Column) -> bool:
    return column.codec == "moment"


def _is_words(column: Column) -> bool:
    return column.codec == "text" and column.at_rest == "sealed" and column.needed


def _is_sound(column: Column, value: Any) -> bool:
    if column.codec in ("texts", "json", "mapping"):
        try:
            parsed(value, list if column.codec == "texts" else dict)
        except DAMAGE:
            return False
        return True
    if _is_time(column) or column.codec == "integer":
        return isinstance(value, int) or (value is None and not column.needed)
    return isinstance(value, str) or not _is_words(column)


def _repaired(column: Column, value: Any, times: Sequence[int]) -> Any:
    if _is_words(column):
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    if _is_time(column) and column.needed:
        return times[0] if times else 0
    return 0 if column.codec == "integer" else None
