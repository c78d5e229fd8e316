"""The checks and repairs of projects, notes and the index of sections."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from anaphora.errors import AnaphoraError
from anaphora.store.maintenance import note_counts
from anaphora.text.display import counted
from anaphora.values.conversations import FINISH_VECTORS, Check

if TYPE_CHECKING:
    from anaphora.features.projects.index.index import SectionIndex
    from anaphora.features.projects.services import ProjectServices


def count_projects(projects: ProjectServices) -> dict[str, int]:
    """The counts for `Stats`, without opening a text."""
    notes = note_counts(projects.services.truth, projects.services.namespace)
    return {**_count_sections(projects), "notes": sum(current for _, current in notes.values())}


def _count_sections(projects: ProjectServices) -> dict[str, int]:
    rows = projects.store.list()
    return {
        "projects": len(rows),
        "files": sum(row.files for row in rows),
        "sections": sum(row.sections for row in rows),
        "sections_pending": projects.store.pending(projects.services.embedder.name),
    }


def check_projects(projects: ProjectServices) -> Iterator[Check]:
    """Check projects, notes and the index of sections."""
    services = projects.services
    try:
        counts = _count_sections(projects)
        notes = note_counts(services.truth, services.namespace)
        rows = projects.store.rows()
    except AnaphoraError as error:
        yield Check("projects", ok=False, detail=str(error))
        return
    detail = (
        f"{counted(counts['projects'], 'project')}, {counted(counts['files'], 'file')}, "
        f"{counted(counts['sections'], 'section')}"
    )
    if counts["sections_pending"]:
        detail += f", {counts['sections_pending']:,} vectors pending ({FINISH_VECTORS})"
    yield Check("projects", ok=True, detail=detail)
    for row in rows:
        # On a server the folder may well be on another machine: that is no fault.
        if not Path(row.root).is_dir():
            detail = (
                f"{row.name}: its folder {row.root} does not exist; recall uses the last "
                "index until you remove the project or index it at its new place"
            )
            yield Check("projects", ok=True, detail=detail)
        elif row.indexed_at is None or row.stale:
            detail = f"{row.name}: indexing is not finished: index it again"
            yield Check("projects", ok=True, detail=detail)
    observations, diary = (notes.get(kind, (0, 0))[1] for kind in ("observation", "diary"))
    summary = counted(observations + diary, "note")
    if diary:
        summary += f", {diary:,} of them in the diary"
    if past := sum(every - current for every, current in notes.values()):
        summary += f", and {past:,} of the past"
    yield Check("project notes", ok=True, detail=summary)
    yield _check_sections(projects.sections)


def _check_sections(index: SectionIndex) -> Check:
    try:
        state = index.check()
    except AnaphoraError as error:
        return Check("section index", ok=False, detail=str(error))
    detail = (
        f"{state.known:,} sections and notes, words of {state.on_disk:,} on disk and of "
        f"{state.in_memory:,} in memory, {state.pending:,} without a vector"
    )
    if state.pending:
        detail += f" ({FINISH_VECTORS})"
    if state.problem is not None:
        detail += f"; {state.problem}; recall reads the database meanwhile, "
        detail += "and `doctor --repair` rebuilds it"
    return Check("section index", ok=state.problem is None, detail=detail)


def repair_sections(projects: ProjectServices) -> Check:
    """Rebuild the index of sections if it is broken, and embed the sections without a vector."""
    sections = projects.sections
    problem = sections.check().problem
    rebuilt = sections.rebuild() if problem else sections.settle()
    projects.upkeep.fill_vectors()
    state = sections.check()
    action = "made again" if problem and rebuilt else "well"
    if not rebuilt:
        action = "another process is writing it"
    detail = f"{action}: {state.known:,} sections and notes, {state.pending:,} without a vector"
    if state.problem is not None:
        detail += f"; {state.problem}"
    return Check("section index", ok=state.problem is None and not state.pending, detail=detail)
