"""The frozen values of the context lane: a project, its notes, and the recalled package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from anaphora.values.context import LEAST_BUDGET, ContextMemory
from anaphora.values.conversations import Degraded
from anaphora.values.files import Skipped, SourceRole
from anaphora.values.memories import NOTE_KINDS, NoteKind

__all__ = [
    "LEAST_BUDGET",
    "NOTE_KINDS",
    "ContextMemory",
    "DiaryEntry",
    "EntityType",
    "Focus",
    "GraphEvidence",
    "HistoryEvidence",
    "IndexReport",
    "Intent",
    "MapLink",
    "MapNode",
    "NoteKind",
    "Observation",
    "Predicate",
    "Project",
    "ProjectMap",
    "ProjectPair",
    "Quality",
    "RecallPackage",
    "RelationStatus",
    "Skipped",
    "SourceRole",
    "Target",
    "WarmUp",
]

Intent = Literal["docs", "setup", "implementation", "tests", "decisions", "history"]
Quality = Literal["strong", "partial", "weak"]
EntityType = Literal[
    "module", "file", "symbol", "package", "command", "config", "doc", "memory", "diary"
]
Predicate = Literal[
    "contains",
    "defines",
    "imports",
    "uses_package",
    "concerns",
    "applies_to",
    "covers",
    "supersedes",
]
RelationStatus = Literal["active", "superseded", "invalidated"]


@dataclass(frozen=True, slots=True)
class Project:
    """A project that was indexed: `root` is its folder, `name` what it is called by."""

    id: str
    name: str
    root: str
    files: int
    sections: int
    indexed_at: datetime


@dataclass(frozen=True, slots=True)
class ProjectPair:
    """What was said of two projects: that they are one (`same`), or that they are not.

    `project` and `other` are what they are kept by, a folder or a remote. `sessions` counts the
    sessions of the first one, as it is now.
    """

    project: str
    other: str
    same: bool
    sessions: int


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What indexing a project did. Files are counted once: added, changed, renamed or unchanged.

    `pending` are sections whose vectors still come; `seconds` is wall time. `redacted` are the
    paths of files of which secrets were taken out, of those that were read this time.
    """

    project: str
    name: str
    root: str
    files: int
    sections: int
    entities: int
    relations: int
    added: int = 0
    changed: int = 0
    renamed: int = 0
    removed: int = 0
    unchanged: int = 0
    commits: int = 0
    pending: int = 0
    seconds: float = 0.0
    skipped: tuple[Skipped, ...] = ()
    redacted: tuple[str, ...] = ()
    degraded: tuple[Degraded, ...] = ()


@dataclass(frozen=True, slots=True)
class Observation:
    """A note that was saved. `importance` is 1 to 5. One that was replaced says by which."""

    id: str
    text: str
    kind: NoteKind
    importance: int
    created_at: datetime
    tags: tuple[str, ...] = ()
    source: str | None = None
    project: str | None = None
    supersedes: str | None = None
    superseded_by: str | None = None
    redacted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DiaryEntry:
    """What was done in a session, in the agent's words."""

    id: str
    summary: str
    created_at: datetime
    subject: str | None = None
    tags: tuple[str, ...] = ()
    project: str | None = None
    redacted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Focus:
    """Focus statements as they were read. `terms` are looked up; `names` are paths and dotted or
    hyphenated names as they were written; `intents` what kind of context the task appears to need.
    """

    statements: tuple[str, ...]
    terms: tuple[str, ...]
    names: tuple[str, ...] = ()
    intents: tuple[Intent, ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """A place to look at first: a file, module or record, with the best part of it and the reason.

    `path` is a file's, or a module's folder; "" for a note, which its `kind`, `id` and `title` (its
    first words) tell. `start_line` and `end_line` count from 1. `signals` are the six of the score,
    with sources on.
    """

    path: str
    kind: str
    title: str
    score: float
    reason: str = ""
    role: SourceRole = "unknown"
    id: str = ""
    start_line: int | None = None
    end_line: int | None = None
    signals: Mapping[str, float] = field(default_factory=dict)
    project: str | None = None


@dataclass(frozen=True, slots=True)
class GraphEvidence:
    """A relation near the focus, `depth` steps (1 or 2) from an entity that was found."""

    subject: str
    predicate: Predicate
    object: str
    status: RelationStatus = "active"
    strength: float = 1.0
    depth: int = 1
    valid_from: datetime | None = None
    valid_to: datetime | None = None


@dataclass(frozen=True, slots=True)
class HistoryEvidence:
    """Something that was before: a relation or note that was replaced, a rename, a commit."""

    kind: str
    text: str
    at: datetime | None = None
    subject: str = ""
    object: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class RecallPackage:
    """What an agent gets for a focus, within `budget` tokens (ceil of UTF-8 bytes / 4).

    `quality` is how far it may be trusted: "strong", "partial" or "weak".
    """

    brief: tuple[str, ...]
    primary_targets: tuple[Target, ...]
    memories: tuple[ContextMemory, ...]
    graph: tuple[GraphEvidence, ...]
    history: tuple[HistoryEvidence, ...]
    quality: Quality
    focus: Focus
    tokens: int = 0
    budget: int = 0
    projects: tuple[str, ...] = ()
    degraded: tuple[Degraded, ...] = ()


@dataclass(frozen=True, slots=True)
class WarmUp:
    """What a new session should know first. `shape` describes the projects in a few lines.

    `core` is the core block; `core_left_out` says how many of its entries stand nowhere in it.
    Nothing comes twice: constraints, preferences and decisions are notes and other memories,
    `changed` memories that took another one's place lately, `facts` the rest, `sessions` the last
    conversations. Where the project has none, `question` names a folder whose sessions may be its
    own.
    """

    constraints: tuple[ContextMemory, ...]
    preferences: tuple[ContextMemory, ...]
    decisions: tuple[ContextMemory, ...]
    blockers: tuple[ContextMemory, ...]
    diary: tuple[ContextMemory, ...]
    shape: tuple[str, ...]
    core: tuple[ContextMemory, ...] = ()
    core_left_out: int = 0
    changed: tuple[ContextMemory, ...] = ()
    sessions: tuple[ContextMemory, ...] = ()
    facts: tuple[ContextMemory, ...] = ()
    highlights: tuple[Target, ...] = ()
    topic: RecallPackage | None = None
    tokens: int = 0
    question: str = ""
    degraded: tuple[Degraded, ...] = ()


@dataclass(frozen=True, slots=True)
class MapNode:
    """A folder of a project ("." is its root) with the number of files right in it, or a file."""

    path: str
    kind: EntityType
    title: str | None = None
    files: int = 0


@dataclass(frozen=True, slots=True)
class MapLink:
    """What `subject` imports of `target` (paths of nodes): in so many places."""

    subject: str
    target: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class ProjectMap:
    """The shape of a project: its folders, or the files of the one `within`, and their imports."""

    project: Project
    within: str | None
    nodes: tuple[MapNode, ...]
    links: tuple[MapLink, ...]
    degraded: tuple[Degraded, ...] = ()
