"""Memory and recall for AI agents, on the user's own machine.

from anaphora import Memory

with Memory.open() as memory:
    memory.conversations.append_user("chat", "The staging database listens on port 5433.")
    print(memory.recall_conversation("chat", "which port is staging on?"))
"""

from __future__ import annotations

# Not from `typing`: a client's hook would wait for its import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from anaphora.api.aio import AsyncMemory
    from anaphora.api.memory import Memory
    from anaphora.api.rendering import render_recall
    from anaphora.calls.limits import Cancellation
    from anaphora.calls.progress import Progress
    from anaphora.client.memory import RemoteMemory
    from anaphora.embed.base import Embedder, Vector, Vectors
    from anaphora.features.audit.values import (
        AuditEntry,
        AuditFault,
        AuditProblem,
        AuditReport,
        AuditStatus,
    )
    from anaphora.features.deep.values import (
        Budget,
        CostSnapshot,
        DeepAnswer,
        DeepSource,
        DeepStep,
        DreamReport,
        Extracted,
        Gap,
        GapStatus,
        Link,
        Scope,
        SubCall,
        TokenCount,
        TraceSummary,
    )
    from anaphora.features.documents.values import (
        AddedDocument,
        Document,
        DocumentFormat,
        DocumentSection,
    )
    from anaphora.features.mirror.values import (
        MirrorConflict,
        MirrorProblem,
        MirrorReport,
        MirrorStatus,
    )
    from anaphora.features.projects.values import (
        ContextMemory,
        DiaryEntry,
        EntityType,
        Focus,
        GraphEvidence,
        HistoryEvidence,
        IndexReport,
        Intent,
        MapLink,
        MapNode,
        NoteKind,
        Observation,
        Predicate,
        Project,
        ProjectMap,
        Quality,
        RecallPackage,
        RelationStatus,
        Skipped,
        SourceRole,
        Target,
        WarmUp,
    )
    from anaphora.features.sync.values import (
        SyncConflict,
        SyncDevice,
        SyncEntry,
        SyncItem,
        SyncReport,
        SyncRollback,
        SyncSide,
        SyncStatus,
        SyncVerification,
    )
    from anaphora.ops import Backup, Exported
    from anaphora.store.threads.file_store import ConversationStore, conversations_dir
    from anaphora.store.tokens import NewToken, Token
    from anaphora.text.recalled import strip_recalled
    from anaphora.values.actions import AuditAction
    from anaphora.values.conversations import (
        Check,
        Degraded,
        Excerpt,
        Health,
        ImportedConversation,
        ImportedTurn,
        ImportProblem,
        ImportReport,
        NewTurn,
        Recall,
        RecallMode,
        RelatedTurn,
        Source,
        Stats,
        Thread,
        ThreadProblem,
        ThreadSummary,
        Turn,
        TurnHit,
        TurnRole,
    )
    from anaphora.values.memories import (
        Action,
        Contradiction,
        CoreBlock,
        CoreEntry,
        CoreKind,
        Forgotten,
        MemoryHit,
        MemoryRecord,
        MemoryType,
        NewMemory,
        Page,
        Reindexed,
        RelatedMemory,
        Remembered,
        SurvivingSource,
        Verdict,
    )
    from anaphora.values.models import Message, ModelRole, Reply
    from anaphora.values.namespaces import DeletedNamespace, NamespaceAccess
    from anaphora.values.search import SearchHit, SearchKind
    from anaphora.values.sessions import SessionPlace, ToolCall, ToolCallHit

__all__ = [
    "Action", "AddedDocument", "AsyncMemory", "AuditAction", "AuditEntry", "AuditFault",
    "AuditProblem", "AuditReport", "AuditStatus", "Backup", "Budget", "Cancellation", "Check",
    "ContextMemory", "Contradiction", "ConversationStore", "CoreBlock", "CoreEntry", "CoreKind",
    "CostSnapshot", "DeepAnswer", "DeepSource", "DeepStep", "Degraded", "DeletedNamespace",
    "DiaryEntry", "Document", "DocumentFormat", "DocumentSection", "DreamReport", "Embedder",
    "EntityType", "Excerpt", "Exported", "Extracted", "Focus", "Forgotten", "Gap", "GapStatus",
    "GraphEvidence", "Health", "HistoryEvidence", "ImportProblem", "ImportReport",
    "ImportedConversation", "ImportedTurn", "IndexReport", "Intent", "Link", "MapLink", "MapNode",
    "Memory", "MemoryHit", "MemoryRecord", "MemoryType", "Message", "MirrorConflict",
    "MirrorProblem", "MirrorReport", "MirrorStatus", "ModelRole", "NamespaceAccess", "NewMemory",
    "NewToken", "NewTurn", "NoteKind", "Observation", "Page", "Predicate", "Progress", "Project",
    "ProjectMap", "Quality", "Recall", "RecallMode", "RecallPackage", "Reindexed",
    "RelatedMemory", "RelatedTurn", "RelationStatus", "Remembered", "RemoteMemory", "Reply",
    "Scope", "SearchHit", "SearchKind", "SessionPlace", "Skipped", "Source", "SourceRole",
    "Stats", "SubCall", "SurvivingSource", "SyncConflict", "SyncDevice", "SyncEntry", "SyncItem",
    "SyncReport", "SyncRollback", "SyncSide", "SyncStatus", "SyncVerification", "Target",
    "Thread", "ThreadProblem", "ThreadSummary", "Token", "TokenCount", "ToolCall", "ToolCallHit",
    "TraceSummary", "Turn", "TurnHit", "TurnRole", "Vector", "Vectors", "Verdict", "WarmUp",
    "__version__", "conversations_dir", "render_recall", "strip_recalled",
]  # fmt: skip

__version__ = "0.1.0"

# What not every user needs is imported when it is first asked for: importing the package is part
# of the time to an agent's first answer.
_MODULES = {
    "anaphora.values.actions": ("AuditAction",),
    "anaphora.features.audit.values": (
        "AuditEntry", "AuditFault", "AuditProblem", "AuditReport", "AuditStatus",
    ),
    "anaphora.values.conversations": (
        "Check", "Degraded", "Excerpt", "Health", "ImportProblem", "ImportReport",
        "ImportedConversation", "ImportedTurn", "NewTurn", "Recall", "RecallMode", "RelatedTurn",
        "Source", "Stats", "Thread", "ThreadProblem", "ThreadSummary", "Turn", "TurnHit",
        "TurnRole",
    ),
    "anaphora.features.deep.values": (
        "Budget", "CostSnapshot", "DeepAnswer", "DeepSource", "DeepStep", "DreamReport",
        "Extracted", "Gap", "GapStatus", "Link", "Scope", "SubCall", "TokenCount", "TraceSummary",
    ),
    "anaphora.features.documents.values": (
        "AddedDocument", "Document", "DocumentFormat", "DocumentSection",
    ),
    "anaphora.values.memories": (
        "Action", "Contradiction", "CoreBlock", "CoreEntry", "CoreKind", "Forgotten", "MemoryHit",
        "MemoryRecord", "MemoryType", "NewMemory", "Page", "Reindexed", "RelatedMemory",
        "Remembered", "SurvivingSource", "Verdict",
    ),
    "anaphora.features.mirror.values": (
        "MirrorConflict", "MirrorProblem", "MirrorReport", "MirrorStatus",
    ),
    "anaphora.values.namespaces": ("DeletedNamespace", "NamespaceAccess"),
    "anaphora.features.projects.values": (
        "ContextMemory", "DiaryEntry", "EntityType", "Focus", "GraphEvidence", "HistoryEvidence",
        "IndexReport", "Intent", "MapLink", "MapNode", "NoteKind", "Observation", "Predicate",
        "Project", "ProjectMap", "Quality", "RecallPackage", "RelationStatus", "Skipped",
        "SourceRole", "Target", "WarmUp",
    ),
    "anaphora.values.search": ("SearchHit", "SearchKind"),
    "anaphora.values.sessions": ("SessionPlace", "ToolCall", "ToolCallHit"),
    "anaphora.features.sync.values": (
        "SyncConflict", "SyncDevice", "SyncEntry", "SyncItem", "SyncReport", "SyncRollback",
        "SyncSide", "SyncStatus", "SyncVerification",
    ),
    "anaphora.embed.base": ("Embedder", "Vector", "Vectors"),
    "anaphora.values.models": ("Message", "ModelRole", "Reply"),
    "anaphora.calls.progress": ("Progress",),
    "anaphora.ops": ("Backup", "Exported"),
    "anaphora.store.tokens": ("NewToken", "Token"),
    "anaphora.api.memory": ("Memory",),
    "anaphora.api.aio": ("AsyncMemory",),
    "anaphora.client.memory": ("RemoteMemory",),
    "anaphora.calls.limits": ("Cancellation",),
    "anaphora.store.threads.file_store": ("ConversationStore", "conversations_dir"),
    "anaphora.api.rendering": ("render_recall",),
    "anaphora.text.recalled": ("strip_recalled",),
}  # fmt: skip
_LAZY = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    # Without it a prompt would offer the packages that happen to be loaded, and no `Memory`.
    return __all__
