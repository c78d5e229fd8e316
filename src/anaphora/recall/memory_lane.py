"""The lane of memories and of notes, and how any lane of records is searched."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from anaphora.recall.lanes import (
    Lane,
    LaneAnswer,
    LaneHit,
    NamedProject,
    SearchRequest,
    make_answer,
)
from anaphora.recall.render import version_lines
from anaphora.values.conversations import Recall
from anaphora.values.memories import NOTE_KINDS, MemoryHit
from anaphora.values.search import SearchHit
from anaphora.values.search_kinds import MEMORY, NOTE, HitKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from anaphora.recall.memories import MemoryRecall


def memory_lane(memories: MemoryRecall) -> Lane:
    """The lane over memories and notes, which it tells apart by their types."""
    return Lane(
        "memories",
        (MEMORY, NOTE),
        frozenset(("tags", "times", "project")),
        partial(_search_memories, memories),
    )


def _search_memories(memories: MemoryRecall, request: SearchRequest) -> LaneAnswer:
    recall = search_records(memories, request)

    def convert(hit: MemoryHit, score: float) -> LaneHit:
        search_hit = make_record_hit(
            NOTE if hit.type in NOTE_KINDS else MEMORY,
            hit,
            hit.path or next(iter(hit.sources), hit.type),
            request,
            current=hit.current,
            versions=tuple(version_lines(hit)),
            older_than="" if hit.older_than is None else hit.older_than.id,
        )
        return LaneHit(search_hit, score)

    answer = make_answer(recall, convert)
    kinds = request.choice.kinds
    answer = _filter_hits(answer, lambda lane_hit: lane_hit.hit.kind in kinds)
    if request.project is None:
        return answer
    return _keep_project(memories, answer, request.project)


def _keep_project(memories: MemoryRecall, answer: LaneAnswer, project: NamedProject) -> LaneAnswer:
    """What of memories and notes is about the project that was named."""
    records = memories.source.many(lane_hit.hit.id for lane_hit in (*answer.hits, *answer.nearest))

    def is_about(lane_hit: LaneHit) -> bool:
        record = records.get(lane_hit.hit.id)
        if record is None:
            return False
        origins = {record.conversation_id or ""} & project.sessions
        payload = record.payload or {}
        named_projects = {*record.sources, str(payload.get("project", ""))}
        return bool(origins or project.names & named_projects)

    return _filter_hits(answer, is_about)


def _filter_hits(answer: LaneAnswer, keeps: Callable[[LaneHit], bool]) -> LaneAnswer:
    return replace(
        answer,
        hits=tuple(filter(keeps, answer.hits)),
        nearest=tuple(filter(keeps, answer.nearest)),
    )


def search_records(records: MemoryRecall, request: SearchRequest) -> Recall[MemoryHit]:
    """What a lane of records answers, as silent as the others."""
    choice = request.choice
    conditions: list[dict[str, Any]] = [{"tags": {"contains": tag}} for tag in choice.tags]
    if choice.since is not None:
        conditions.append({"created_at": {"gte": choice.since.isoformat()}})
    if choice.until is not None:
        conditions.append({"created_at": {"lt": choice.until.isoformat()}})
    recall = records.recall(
        request.question,
        top_k=request.top_k,
        filters={"AND": conditions} if conditions else None,
        min_score=None,
        min_confidence=request.floor,
        read=request.read,
    )
    if recall.confidence is not None and recall.confidence < request.fact_floor:
        # With filters the lane gives all that they let through, however far.
        return replace(recall, hits=(), nearest=recall.hits or recall.nearest)
    return recall


def make_record_hit(
    kind: HitKind, hit: MemoryHit, title: str, request: SearchRequest, **more: Any
) -> SearchHit:
    """A record as a hit of a search."""
    excerpt, matches = request.show(hit.text)
    return SearchHit(
        kind.name,
        hit.id,
        hit.text,
        excerpt,
        hit.score,
        matches,
        hit.created_at,
        title=title,
        tags=hit.tags,
        factors=hit.factors,
        answers=hit.answers,
        read=hit.read,
        **more,
    )
