"""The lane of project files: the first targets of a package, as hits of a search."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from anaphora.errors import NotFound
from anaphora.features.projects.kinds import FILE
from anaphora.features.projects.values import Quality
from anaphora.recall.lanes import Lane, LaneAnswer, LaneHit, SearchRequest
from anaphora.values.search import SearchHit

if TYPE_CHECKING:
    from anaphora.features.projects.recall.lane import ContextRecall

FILES: Final[Mapping[Quality, float]] = {"strong": 0.6, "partial": 0.3, "weak": 0.02}
"""How likely files are to answer, by how far a package may be trusted."""

_BUDGET: Final = 4_000


def file_lane(context_if_any: Callable[[], ContextRecall | None]) -> Lane:
    """The lane over files; `context_if_any` gives None where no project was indexed."""
    return Lane(
        "project",
        (FILE,),
        frozenset(("project",)),
        partial(_search_files, context_if_any),
        partial(_find_ids, context_if_any),
    )


def _find_ids(context_if_any: Callable[[], ContextRecall | None], project: str) -> tuple[str, ...]:
    """The id of an indexed project, if there is one of this name, folder or id."""
    context = context_if_any()
    try:
        return () if context is None else (context.projects.find(project).id,)
    except NotFound:
        return ()


def _search_files(
    context_if_any: Callable[[], ContextRecall | None], request: SearchRequest
) -> LaneAnswer:
    context = context_if_any()
    if context is None:
        return LaneAnswer()
    try:
        focus, project = request.question.text, request.choice.project
        package = context.recall(focus, project=project, budget=_BUDGET)
    except NotFound:
        # Sessions are known of it, files are not.
        return LaneAnswer()
    sure = FILES[package.quality]
    texts = {
        (memory.project, memory.path): memory.text
        for memory in reversed(package.memories)
        if memory.path
    }
    best_score = max((target.score for target in package.primary_targets), default=0.0) or 1.0
    hits = []
    for target in package.primary_targets[: request.top_k]:
        if not target.path:
            # A note: the lane of memories has it.
            continue
        text = texts.get((target.project, target.path), "")
        excerpt, matches = request.show(text or target.title)
        score = round(sure * max(target.score, 0.0) / best_score, 6)
        hit = SearchHit(
            FILE.name,
            target.path,
            text,
            excerpt,
            score,
            matches,
            title=target.reason or target.title,
            project=target.project or "",
            factors=target.signals,
        )
        hits.append(LaneHit(hit, score))
    if sure < request.fact_floor:
        return LaneAnswer((), tuple(hits), None, package.degraded)
    return LaneAnswer(tuple(hits), (), sure, package.degraded)
