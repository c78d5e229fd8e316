"""What importers give beside conversations: memories, and what is said about a whole source."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from anaphora.values.memories import NewMemory

__all__ = ["ImportedElse", "ImportedFile", "ImportedMemory", "ImportedWhole"]


@dataclass(frozen=True, slots=True)
class ImportedMemory:
    """A lasting memory as an importer read it: a fact, a note, or a section of one.

    `source` names the format, `key` the thing in it, for good: what comes again under one key is
    the same thing, and another text at the path of `memory` is its new value. A part of something
    larger has a key that begins with what it is a part of and "#" ("Notes/Staging.md#Ports").
    `memory` has its words and when they were said (`created_at`). Where the source says only what
    holds now, `changed` (aware) is when it was changed last: a new value holds from then on.
    `place` says where in the file it was read.
    """

    source: str
    key: str
    memory: NewMemory
    place: str = ""
    changed: datetime | None = None


@dataclass(frozen=True, slots=True)
class ImportedWhole:
    """Said after all parts of something that was read whole: a note, or a folder of notes.

    `keys` are those of its parts that are there now. Of a note ("Notes/Staging.md") the others
    hold no longer since `at` (aware, the present by default); of a folder ("Notes/") those that are
    gone are told, and stay.
    """

    source: str
    key: str
    keys: frozenset[str]
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ImportedElse:
    """How many things of one kind an importer left out ("deleted memory").

    Of whole files, `names` are the first ones.
    """

    kind: str
    count: int = 1
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """A file that no importer knows, and that may be a document, or an export of Anaphora.

    `path` is its place below what was imported ("" for that itself), `member` its name in the zip
    file that lies there. `remark` is what people should know if it is kept.
    """

    path: str
    member: str = ""
    remark: str = ""
