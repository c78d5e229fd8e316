"""What a namespace holds of projects, notes and deep recall, and whether all of it is well.

In: the stores of a namespace and the index of its sections. Out: counts and `Check` values. It
starts no model and no sandbox, and changes nothing but the index, which catches up with truth;
`mend_rows` alone changes truth, and no word of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from anaphora.errors import AnaphoraError
from anaphora.store.threads.file_store import ConversationStore
from anaphora.values.conversations import FINISH_VECTORS, Check

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices

_NOTES = (
    "SELECT kind, COUNT(*), SUM(CASE WHEN valid_until IS NULL AND forgotten_at IS NULL "
    "THEN 1 ELSE 0 END) FROM record WHERE namespace = :namespace "
    "AND kind IN ('observation', 'diary') GROUP BY kind"
)


# Named in a finding; the rest are counted.
_NAMED = 20


@dataclass(frozen=True, slots=True)
class LaneCounts:
    """Counts of one namespace. Notes are current ones; `past_notes` were replaced or hidden."""

    projects: int
    files: int
    sections: int
    sections_pending: int
    observations: int
    diary: int
    past_notes: int
    gaps: int
    jobs: int
    traces: int


def counted(lane: NamespaceServices, embedder: str) -> LaneCounts:
    """Count without opening a text. `StoreError` and its kinds."""
    projects = lane.projects.list()
    notes = {
        row[0]: (int(row[1]), int(row[2]))
        for row in lane.records.truth.rows(_NOTES, {"namespace": lane.namespace})
    }
    current = {kind: living for kind, (_, living) in notes.items()}
    rows = lane.deep_rows
    return LaneCounts(
        projects=len(projects),
        files=sum(one.files for one in projects),
        sections=sum(one.sections for one in projects),
        sections_pending=lane.projects.pending(embedder),
        observations=current.get("observation", 0),
        diary=current.get("diary", 0),
        past_notes=sum(every - living for every, living in notes.values()),
        gaps=len(rows.find("gap", {"status": "open"}, only=("gap_id",))),
        jobs=len(rows.find("session_job", only=("job_id",))),
        traces=len(rows.find("trace", only=("trace_id",))),
    )


def lane_checks(lane: NamespaceServices) -> tuple[Check, ...]:
    """Look at projects, notes, the index of sections, and what deep recall keeps.

    Nothing raises: a part that fails is a finding.
    """
    rows = _rows(lane)
    try:
        counts = counted(lane, lane.container.embedder.name)
    except AnaphoraError as error:
        return (*rows, Check("projects", ok=False, detail=str(error)))
    notes = f"{counts.observations:,} observations, {counts.diary:,} diary entries"
    if counts.past_notes:
        notes += f", {counts.past_notes:,} of the past"
    deep = (
        f"{counts.gaps:,} open gaps, {counts.jobs:,} jobs of ended sessions waiting, "
        f"{counts.traces:,} traces"
    )
    return (
        *rows,
        *_projects(lane, counts),
        Check("project notes", ok=True, detail=notes),
        _sections(lane),
        Check("deep recall", ok=True, detail=deep),
    )


def mend_rows(lane: NamespaceServices) -> Check:
    """Mend rows that make no sense, and times that nothing can keep; every word stays."""
    from anaphora.store.db.misdated import mend, misdated
    from anaphora.store.records.mending import mend_records

    truth, sealer = lane.notes.truth, lane.notes.sealer
    records = mend_records(truth, lane.namespace, sealer)
    times = mend(truth, sealer, misdated(truth))
    turns = 0
    if not isinstance(lane.conversations, ConversationStore):
        turns = lane.conversations.mend_times()
    detail = f"{records:,} records, {times:,} rows with impossible times, {turns:,} turns mended"
    return Check("rows", ok=True, detail=detail)


def repair_sections(lane: NamespaceServices) -> Check:
    """Make the index of sections again where it is broken, and embed what has no vector."""
    sections = lane.with_projects().sections
    broken = sections.check().problem
    made = sections.rebuild() if broken else sections.settle()
    lane.upkeep.fill_vectors()
    seen = sections.check()
    what = "made again" if broken and made else "well"
    if not made:
        what = "another process is writing it"
    detail = f"{what}: {seen.known:,} sections and notes, {seen.pending:,} without a vector"
    if seen.problem is not None:
        detail += f"; {seen.problem}"
    return Check("section index", ok=seen.problem is None and not seen.pending, detail=detail)


def _projects(lane: NamespaceServices, counts: LaneCounts) -> Iterator[Check]:
    detail = f"{counts.projects:,} projects, {counts.files:,} files, {counts.sections:,} sections"
    if counts.sections_pending:
        detail += f", {counts.sections_pending:,} vectors to come ({FINISH_VECTORS})"
    yield Check("projects", ok=True, detail=detail)
    for row in lane.projects.rows():
        # On a server the folder may well be another machine's: that is nobody's fault.
        if not Path(row.root).is_dir():
            yield Check(
                "projects",
                ok=True,
                detail=f"{row.name}: its folder {row.root} is not there; what was indexed answers, "
                "until the project is removed or indexed where it is now",
            )
        elif row.indexed_at is None or row.stale:
            yield Check("projects", ok=True, detail=f"{row.name}: not finished; index it again")


def _rows(lane: NamespaceServices) -> tuple[Check, ...]:
    """Rows that make no sense, the first of them by name."""
    from anaphora.store.db.misdated import misdated
    from anaphora.store.records.mending import unreadable_records

    truth = lane.notes.truth
    try:
        records = unreadable_records(truth, lane.namespace, lane.notes.sealer)
        found = [f"{kind} {one} cannot be read" for kind, ids in records.items() for one in ids]
        found += [f"impossible times in {one}" for one in misdated(truth)]
    except AnaphoraError as error:
        return (Check("rows", ok=False, detail=str(error)),)
    if not found:
        return (Check("rows", ok=True, detail="every row can be read"),)
    more = f", and {len(found) - _NAMED:,} more" if len(found) > _NAMED else ""
    detail = f"{'; '.join(found[:_NAMED])}{more}; doctor --repair mends them and keeps the words"
    return (Check("rows", ok=False, detail=detail),)


def _sections(lane: NamespaceServices) -> Check:
    try:
        seen = lane.with_projects().sections.check()
    except AnaphoraError as error:
        return Check("section index", ok=False, detail=str(error))
    detail = (
        f"{seen.known:,} sections and notes, words of {seen.on_disk:,} on disk and of "
        f"{seen.in_memory:,} in memory, {seen.pending:,} without a vector"
    )
    if seen.pending:
        detail += f" ({FINISH_VECTORS})"
    if seen.problem is not None:
        detail += f"; {seen.problem}; truth answers, and `doctor --repair` makes it again"
    return Check("section index", ok=seen.problem is None, detail=detail)
