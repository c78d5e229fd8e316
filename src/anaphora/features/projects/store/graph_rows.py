"""Rows of the graph, the values that they stand for, and how names are compared."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from anaphora.features.projects.tables import ENTITY, RELATION
from anaphora.features.projects.values import EntityType, Predicate, RelationStatus
from anaphora.store.hashing import digest
from anaphora.store.mapping import RowMapping

HISTORY_SOURCE = "history"
"""The `source_id` of relations that the past of a project states."""

# "fooBar", "HTTPServer": a capital begins a word after a small letter, or before one.
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_GAPS = re.compile(r"[_\-\s]+")
# The kinds of entity that are files; which one a file is may change, and it stays the same entity.
_FILES = frozenset({"file", "doc", "config"})


@dataclass(frozen=True, slots=True)
class EntityRow:
    """Something that files and notes speak of; a note itself has `record` and no project.

    `name` is a path, a qualified name, or the beginning of a note. `gone_at` is when it was seen
    to be there no longer.
    """

    id: str
    kind: EntityType
    name: str
    project: str | None = None
    summary: str | None = None
    file: str | None = None
    record: str | None = None
    start_line: int | None = None
    end_line: int | None = None
    gone_at: datetime | None = None
    seq: int = 0


@dataclass(frozen=True, slots=True)
class RelationRow:
    """What `subject` is to `object` (ids of entities), as `source` states it.

    `source` is a file's id, a note's, "" for the shape of a project, or `HISTORY_SOURCE`. It held
    from `valid_from` to before `valid_to`. `supersedes` is the relation whose place it took.
    """

    id: str
    subject: str
    predicate: Predicate
    object: str
    source: str
    status: RelationStatus
    strength: float
    valid_from: datetime
    valid_to: datetime | None = None
    project: str | None = None
    supersedes: str | None = None
    detail: str | None = None
    seq: int = 0


ENTITY_MAPPING: Final = RowMapping(
    ENTITY,
    EntityRow,
    named={"id": "entity_id", "project": "project_id", "file": "file_id", "record": "record_id"},
)
RELATION_MAPPING: Final = RowMapping(
    RELATION,
    RelationRow,
    named={
        "id": "relation_id",
        "project": "project_id",
        "subject": "subject_id",
        "object": "object_id",
        "source": "source_id",
        "valid_to": "valid_until",
    },
)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A relation that was reached in `depth` steps; `entity` is its end that is farther away."""

    relation: RelationRow
    entity: str
    depth: int = 1


@dataclass(frozen=True, slots=True)
class EntityDraft:
    """An entity that a project has, or had until `gone_at`; `key` is what it is known by.

    `aliases` are names as they are written, each with its kind.
    """

    key: str
    kind: EntityType
    name: str
    aliases: tuple[tuple[str, str], ...] = ()
    summary: str | None = None
    file: str | None = None
    start_line: int | None = None
    end_line: int | None = None
    gone_at: datetime | None = None


DRAFT_MAPPING: Final = RowMapping(
    ENTITY, EntityDraft, named={"key": "entity_key", "file": "file_id"}
)


@dataclass(frozen=True, slots=True)
class RelationDraft:
    """A relation between entities that are named by their keys."""

    subject: str
    predicate: Predicate
    object: str
    source: str
    strength: float = 1.0
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class NoteLink:
    """What a note concerns: an entity, how (`predicate`), how surely (0 to 1), by which words."""

    entity: str
    predicate: Predicate
    strength: float
    detail: str = ""


def alias_of(name: str) -> str:
    """The form in which names are compared.

    Trimmed, back-slashes to slashes, camel case split, lower-case, underscores and hyphens to
    spaces (the rules of the seed's own graph).
    """
    split = _CAMEL.sub(" ", name.strip().replace("\\", "/"))
    return _GAPS.sub(" ", split).strip().lower()


def entity_key(project: str, kind: EntityType, name: str) -> str:
    """What tells one entity of a project from another."""
    return digest("entity", project, "file" if kind in _FILES else kind, name)
