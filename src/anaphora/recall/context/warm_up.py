"""What a new session should know first: standing rules, decisions, what was done, the layout.

In: the notes and projects of a namespace, perhaps a topic. Out: a `WarmUp` within a budget of
tokens, and its text for an agent. What was replaced never comes. It changes nothing, and it asks no
model but for the topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from anaphora.core.display import headed
from anaphora.errors import InvalidInput
from anaphora.rank.select import token_cost
from anaphora.recall.context.excerpt import Excerpts
from anaphora.recall.context.lane import ContextRecall
from anaphora.recall.context.memories import note_memory
from anaphora.recall.context.package import (
    HEADER,
    Ledger,
    check_budget,
    render_package,
    rendered_degraded,
    rendered_memory,
    rendered_target,
)
from anaphora.recall.context.shape import highlights, readme_of, shape
from anaphora.store.projects.notes import NoteRow
from anaphora.store.projects.rows import ProjectRow
from anaphora.values.projects import LEAST_BUDGET, ContextMemory, RecallPackage, Target, WarmUp

SHAPE: Final = "The project:"
HIGHLIGHTS: Final = "Worth opening:"
TOPIC: Final = "On the topic:"
SHAPE_CHARACTERS: Final = 600
_HEADINGS: Final = {
    "constraints": "Constraints:",
    "blockers": "Blocked:",
    "decisions": "Decisions:",
    "preferences": "Preferences:",
    "diary": "Done lately:",
}
_KINDS: Final = {
    "constraints": "constraint",
    "blockers": "blocker",
    "decisions": "decision",
    "preferences": "preference",
}
MOST: Final = 8
"""Notes of a kind."""
DIARY: Final = 3
LOOKED_AT: Final = 500
TOPIC_SHARE: Final = 0.5
NOTES_SHARE: Final = 0.6
"""Of what is left beside the topic, while the shape of the project waits for its part."""


@dataclass(frozen=True, slots=True)
class WarmUpRecall:
    """Prepares new sessions in one namespace."""

    lane: ContextRecall

    def warm_up(
        self, topic: str | None = None, *, project: str | None = None, budget: int = 2000
    ) -> WarmUp:
        """Notes by importance and then by age, the newest first, and the shape of the projects.

        With a `topic` half of the budget is a package about it. Its text takes at most `budget`
        tokens. Raises `InvalidInput` for bad arguments, `NotFound` for a project.
        """
        check_budget(budget)
        if topic is not None and not isinstance(topic, str):
            raise InvalidInput("topic", topic, "expected a string")
        rows = self._projects(project)
        focused = self._topic(topic, project, budget)
        ledger = Ledger(budget)
        ledger.pay(HEADER)
        if focused is not None:
            ledger.pay(_body(focused), TOPIC)
        keep = round(ledger.left * (1 - NOTES_SHARE)) if rows else 0
        names = {row.id: row.name for row in rows}
        found = self._notes(names, one_project=project is not None)
        notes = {
            part: _taken(ledger, found[part], heading, keep) for part, heading in _HEADINGS.items()
        }
        lines, open_first = self._shape(rows, ledger)
        warm = WarmUp(
            constraints=notes["constraints"],
            preferences=notes["preferences"],
            decisions=notes["decisions"],
            blockers=notes["blockers"],
            diary=notes["diary"],
            shape=lines,
            highlights=open_first,
            topic=focused,
            degraded=focused.degraded if focused is not None else (),
        )
        return replace(warm, tokens=token_cost(render_warm_up(warm)))

    def _projects(self, project: str | None) -> tuple[ProjectRow, ...]:
        projects = self.lane.projects
        return projects.rows() if project is None else (projects.find(project),)

    def _topic(self, topic: str | None, project: str | None, budget: int) -> RecallPackage | None:
        if topic is None or not topic.strip():
            return None
        share = max(LEAST_BUDGET, round(TOPIC_SHARE * budget))
        if share > budget - LEAST_BUDGET:
            share = budget
        return self.lane.recall(topic, project=project, budget=share)

    def _notes(self, names: dict[str, str], *, one_project: bool) -> dict[str, list[ContextMemory]]:
        """Current notes by kind, the most important first, then the newest."""
        only = next(iter(names)) if one_project else None
        given = self.lane.notes.list(kind="observation", project=only, limit=LOOKED_AT)
        ordered = sorted(
            given, key=lambda n: (-n.importance, -n.record.created_at.timestamp(), n.record.id)
        )
        found = {
            part: [_memory(row, names) for row in ordered if row.type == kind][:MOST]
            for part, kind in _KINDS.items()
        }
        diary = self.lane.notes.list(kind="diary", project=only, limit=DIARY)
        found["diary"] = [_memory(row, names) for row in diary]
        return found

    def _shape(
        self, rows: Sequence[ProjectRow], ledger: Ledger
    ) -> tuple[tuple[str, ...], tuple[Target, ...]]:
        lines: list[str] = []
        targets: list[Target] = []
        table = self.lane.index.table() if rows else None
        for row in rows:
            files = self.lane.projects.files(row.id, facts=True)
            readme = readme_of(files)
            parts = self.lane.projects.sections_of(row.id, readme) if readme else ()
            # One long line can be spared, the ones after it may fit.
            told = shape(row, files, parts)
            lines.extend(line for line in told if ledger.pay(_shape_line(line), SHAPE))
            if table is not None:
                targets += highlights(row, files, table)
        targets.sort(key=lambda one: (-one.score, one.project or "", one.path))
        return tuple(lines), tuple(ledger.take(targets, rendered_target, HIGHLIGHTS, 12))


def render_warm_up(warm: WarmUp) -> str:
    """The warm-up as compact text for an agent. What was recalled stands behind the mark."""
    lines = [HEADER]
    for part, heading in _HEADINGS.items():
        lines += _part(heading, map(rendered_memory, getattr(warm, part)))
    lines += _part(SHAPE, map(_shape_line, warm.shape))
    lines += _part(HIGHLIGHTS, map(rendered_target, warm.highlights))
    if warm.topic is not None:
        lines += ["", TOPIC, _body(warm.topic)]
    else:
        lines += [rendered_degraded(one) for one in warm.degraded]
    return "\n".join(lines)


def _body(package: RecallPackage) -> str:
    """A package's text without the header, which stands above everything."""
    return render_package(package).removeprefix(HEADER).lstrip("\n")


def _shape_line(line: str) -> str:
    return headed(line, SHAPE_CHARACTERS)


def _taken(
    ledger: Ledger, items: Sequence[ContextMemory], heading: str, keep: int
) -> tuple[ContextMemory, ...]:
    taken = ledger.take(items, rendered_memory, heading, MOST, keep)
    return tuple(replace(one, tokens=token_cost(rendered_memory(one))) for one in taken)


def _part(heading: str, items: Iterable[str]) -> list[str]:
    listed = list(items)
    return ["", heading, *listed] if listed else []


def _memory(row: NoteRow, names: dict[str, str]) -> ContextMemory:
    return note_memory(row, names, Excerpts({}), float(row.importance))
