"""The routes of the audit trail: read only, for callers that may know of the whole home."""

from __future__ import annotations

from typing import Any

from fastapi import Request

from anaphora.api.memory import Memory
from anaphora.features.audit.schemas import AuditQuery, TipQuery
from anaphora.features.audit.values import AuditEntry, AuditReport, AuditStatus
from anaphora.surfaces.rest.calls import opens_all
from anaphora.surfaces.rest.problems import Problem
from anaphora.surfaces.rest.routing import LaneRouter

router = LaneRouter("audit")


@router.answers("GET /audit", "The audit trail", list[AuditEntry])
def entries(memory: Memory, request: Request, query: AuditQuery) -> Any:
    """Actions with their time and author, newest first, without any content."""
    _refuse_others(request)
    return memory.audit.show(
        limit=query.limit,
        before=query.before,
        action=query.action,
        about=query.about,
        question=query.question,
    )


@router.answers("GET /audit/status", "Whether a trail is recorded", AuditStatus)
def status(memory: Memory, request: Request) -> Any:
    """How many entries it has, and its tip."""
    _refuse_others(request)
    return memory.audit.status()


@router.answers("GET /audit/verify", "Verify the audit trail", AuditReport)
def verify(memory: Memory, request: Request, query: TipQuery) -> Any:
    """Whether every entry follows from the previous one; the first that does not."""
    _refuse_others(request)
    return memory.audit.verify(query.tip)


def _refuse_others(request: Request) -> None:
    if not opens_all(request):
        reason = "the audit trail is for tokens that open all namespaces"
        raise Problem(403, "namespace", reason)
