"""Which call of the facade is which request, and what a server does not offer, with the reason.

A route's names in braces are parameters of the call that stand in the path; the others go into the
query of a GET or DELETE, else into the body, under the same names. The answer is read as `gives`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from anaphora.features.deep.values import DeepAnswer, DreamReport, Extracted, TraceSummary
from anaphora.features.documents.values import Document, DocumentSection
from anaphora.features.projects.values import (
    DiaryEntry,
    IndexReport,
    Observation,
    Project,
    ProjectMap,
    RecallPackage,
    WarmUp,
)
from anaphora.values.conversations import Recall, Stats
from anaphora.values.memories import (
    Contradiction,
    CoreBlock,
    Forgotten,
    MemoryHit,
    MemoryRecord,
    Page,
    Remembered,
)
from anaphora.values.namespaces import DeletedNamespace
from anaphora.values.search import SearchHit
from anaphora.values.sessions import ToolCallHit


@dataclass(frozen=True, slots=True)
class Route:
    """A request. `part` is the member of the answer that counts.

    `repeatable`: asked twice it does no more than once, as what only reads. `event` is told of.
    """

    request: str
    gives: Any
    part: str = ""
    repeatable: bool = False
    long: bool = False
    event: str = ""

    @property
    def method(self) -> str:
        """GET, POST …"""
        return self.request.partition(" ")[0]

    @property
    def path(self) -> str:
        """Where, with the names of parameters in braces."""
        return self.request.partition(" ")[2]


def _reading(request: str, gives: Any, part: str = "", event: str = "") -> Route:
    return Route(request, gives, part, repeatable=True, event=event)


ROUTES: Final[Mapping[str, Route]] = {
    "remember": Route("POST /v1/memories", Remembered, event="remember"),
    "recall": _reading("POST /v1/recall", Recall[MemoryHit], event="recall"),
    "get": _reading("GET /v1/memories/{id}", MemoryRecord),
    "list": _reading("GET /v1/memories", Page[MemoryRecord]),
    "history": _reading("GET /v1/memories/history", tuple[MemoryRecord, ...]),
    "update": Route("PATCH /v1/memories/{id}", Remembered, event="remember"),
    "core_block": _reading("GET /v1/core", CoreBlock),
    "pin": Route("POST /v1/core/pin", str, "id", repeatable=True),
    "unpin": Route("POST /v1/core/unpin", str, "id", repeatable=True),
    "contradictions": _reading("GET /v1/contradictions", tuple[Contradiction, ...]),
    "settle_contradiction": Route("POST /v1/contradictions/settle", Contradiction),
    "reopen_contradiction": Route("POST /v1/contradictions/reopen", Contradiction),
    "forget": Route("POST /v1/forget", Forgotten),
    "undo_forget": Route("POST /v1/forget/undo", tuple[str, ...], "ids"),
    "resolve_id": _reading("GET /v1/resolve", str, "id"),
    "search": _reading("POST /v1/search", Recall[SearchHit], event="recall"),
    "tool_calls": _reading("GET /v1/conversations/{conversation_id}/tool-calls",
                           tuple[ToolCallHit, ...]),
    "namespaces": _reading("GET /v1/session", tuple[str, ...], "namespaces"),
    "delete_namespace": Route("DELETE /v1/namespaces/{name}", DeletedNamespace),
    "stats": _reading("GET /v1/stats", Stats),
    "index_project": Route("POST /v1/projects", IndexReport, repeatable=True, long=True),
    "projects": _reading("GET /v1/projects", tuple[Project, ...]),
    "project_map": _reading("GET /v1/projects/{project}/map", ProjectMap),
    "remove_project": Route("DELETE /v1/projects/{project}", int, "sections"),
    "observe": Route("POST /v1/observations", Observation),
    "notes": _reading("GET /v1/observations", tuple[Observation, ...]),
    "diary": _reading("GET /v1/diary", tuple[DiaryEntry, ...]),
    "write_diary": Route("POST /v1/diary", DiaryEntry),
    "documents": _reading("GET /v1/documents", tuple[Document, ...]),
    "document": _reading("GET /v1/documents/{document_id}", Document),
    "document_sections": _reading("GET /v1/documents/{document_id}/sections",
                                  tuple[DocumentSection, ...]),
    "document_history": _reading("GET /v1/documents/history", tuple[Document, ...]),
    "recall_context": _reading("POST /v1/context/recall", RecallPackage),
    "warm_up": _reading("GET /v1/warm-up", WarmUp),
    "extract": Route("POST /v1/extract", Extracted, long=True),
    "dream": Route("POST /v1/dream", DreamReport, long=True),
    "end_session": Route("POST /v1/conversations/{conversation_id}/end", int, "jobs"),
    "run_jobs": Route("POST /v1/jobs", DreamReport, long=True),
    "traces": _reading("GET /v1/traces", tuple[TraceSummary, ...]),
    "trace": _reading("GET /v1/traces/{id}", DeepAnswer),
}  # fmt: skip
"""What is a request and nothing else. `client.memory` writes out the others."""

RENAMED: Final[Mapping[tuple[str, str], str]] = {
    ("search", "question"): "query",
    ("document", "id"): "document_id",
    ("document_sections", "id"): "document_id",
}
"""Parameters that have another name in a request."""

_THERE: Final = "do it on the server's machine"
_FOLDER: Final = "it stands for a folder on this machine, which a server cannot read"
NOT_OFFERED: Final[Mapping[str, str]] = {
    "home": "its folder is on the server's machine",
    "local_time": "days in questions are those of the server's user (`ANAPHORA_TIMEZONE` there)",
    "tokens": f"who has a token must not make others; {_THERE} (`anaphora token`)",
    "audit": f"{_THERE} (`anaphora audit`); entries are read by `/v1/audit`",
    "sync": f"{_THERE} (`anaphora sync`)",
    "mirror": f"{_THERE} (`anaphora mirror`)",
    "hosted_logs": "devices reach it by `/v2/agent-state`",
    "backup": f"it is of the whole home; {_THERE} (`anaphora backup`), or use `export`",
    "restore": f"it makes a home; {_THERE} (`Memory.restore`)",
    "doctor": f"it reads every byte of the home; {_THERE} (`anaphora doctor`), or use `health`",
    "redact_memories": f"it reads every memory; {_THERE} (`anaphora redact-memories`)",
    "reindex": f"{_THERE} (`anaphora reindex`)",
    "note_session": "where a session took place is read from a folder on the server's machine",
    "open": "use `RemoteMemory.connect`; `Memory.open` opens a home on this machine",
}
"""What only a memory on this machine can do, and why."""

NOT_TAKEN: Final[Mapping[tuple[str, str], str]] = {
    ("search", "directory"): _FOLDER,
    ("warm_up", "directory"): _FOLDER,
}
"""Parameters of calls that a server does not take, and why."""

HERE: Final = frozenset({"embed", "progress"})
"""Parameters that concern this side alone: a server makes vectors when they are needed."""

KINDS: Final[Mapping[str, str]] = {
    "project": "project",
    "conversation_id": "conversation",
    "document_id": "document",
}
"""What a parameter in a path is the id of, where the call does not say."""
ID_OF: Final[Mapping[str, str]] = {"get": "memory", "update": "memory", "trace": "trace"}
"""What a parameter named `id` is the id of."""
