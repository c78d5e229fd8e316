"""What was before, for a focus that asks: notes that were replaced, ended relations, commits.

In: the reading, the files and entities that were found. Out: items of history, what the focus asks
about first. Nothing here is ever shown as current, and nothing comes for a focus that does not ask.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Final

from anaphora.core.display import one_line
from anaphora.recall.context.relations import shown_name
from anaphora.values.projects import HistoryEvidence

if TYPE_CHECKING:
    from anaphora.index.sections.index import SectionIndex
    from anaphora.index.sections.state import SectionQuery
    from anaphora.recall.context.ranked import Asked, Ranked
    from anaphora.recall.context.relations import Nearby
    from anaphora.store.projects.graph import Graph
    from anaphora.store.projects.notes import NoteRow, Notes
    from anaphora.store.projects.store import HistoryRow, Projects

FILES: Final = 5
COMMITS: Final = 60
OF_EACH_KIND: Final = 8
LEAST_HELD: Final = 0.15
"""Share of the focus' worth that a replaced note must hold to be evidence."""


def history(
    asked: Asked,
    ranked: Ranked,
    near: Nearby,
    past: SectionQuery,
    stores: tuple[SectionIndex, Notes, Graph, Projects],
) -> list[HistoryEvidence]:
    """What was before, one of each kind in turn. `past` asks the index for replaced notes."""
    if not asked.asks_for("history"):
        return []
    index, notes, graph, projects = stores
    kinds = (
        _replaced_notes(index, notes, past),
        _commits(ranked, projects, "rename"),
        _ended_relations(graph, near),
        _commits(ranked, projects, "commit"),
    )
    turns = chain.from_iterable(zip_longest(*kinds))
    return [one for one in turns if one is not None]


def _replaced_notes(index: SectionIndex, notes: Notes, past: SectionQuery) -> list[HistoryEvidence]:
    found = index.candidates(past)
    held = dict(zip(found.rows.tolist(), found.words.held.tolist(), strict=True))
    best = sorted((row for row in held if held[row] >= LEAST_HELD), key=lambda r: (-held[r], r))
    ids = [found.table.ids[row] for row in best[:OF_EACH_KIND]]
    rows = notes.many(ids)
    newer = notes.many(
        row.record.superseded_by for row in rows.values() if row.record.superseded_by
    )
    # What was softly forgotten is not history: somebody wanted it out of sight.
    return [
        _replaced(rows[one], newer) for one in ids if one in rows and not rows[one].record.forgotten
    ]


def _replaced(row: NoteRow, newer: Mapping[str, NoteRow]) -> HistoryEvidence:
    record = row.record
    by = newer.get(record.superseded_by or "")
    text = one_line(record.text)
    if by is not None:
        text = f"{text} [replaced by: {one_line(by.record.text)}]"
    return HistoryEvidence(
        kind=f"superseded_{row.type}",
        text=text,
        at=record.valid_to,
        subject=record.id,
        object=record.superseded_by or "",
        id=record.id,
    )


def _ended_relations(graph: Graph, near: Nearby) -> list[HistoryEvidence]:
    if not near.start:
        return []
    relations = graph.relations(near.start, ("superseded", "invalidated"))
    # The latest first: that is what something was before it became what it is.
    latest = sorted(relations, key=lambda r: (-(r.valid_to or r.valid_from).timestamp(), r.id))[
        :OF_EACH_KIND
    ]
    entities = graph.entities(e for one in latest for e in (one.subject, one.object))
    found = []
    for one in latest:
        subject, object_ = entities.get(one.subject), entities.get(one.object)
        # That a note was replaced is said with the note.
        if subject is None or object_ is None or subject.record or object_.record:
            continue
        names = (shown_name(subject), shown_name(object_))
        found.append(
            HistoryEvidence(
                kind=f"{one.status}_relation",
                text=f"{names[0]} {one.predicate.replace('_', ' ')} {names[1]}",
                at=one.valid_to,
                subject=names[0],
                object=names[1],
                id=one.id,
            )
        )
    return found


def _commits(ranked: Ranked, projects: Projects, kind: str) -> list[HistoryEvidence]:
    """Renames, or commits, of the best files; commits whose words match before the latest."""
    rows: list[HistoryRow] = []
    for project, some in ranked.best_files(FILES).items():
        rows += [r for r in projects.history_of(project, some, COMMITS) if r.kind == kind]
    worth = {row.id: ranked.words.worth(row.text) for row in rows}
    rows.sort(key=lambda row: (-worth[row.id], -row.at.timestamp(), row.id))
    return [_item(row) for row in rows[:OF_EACH_KIND]]


def _item(row: HistoryRow) -> HistoryEvidence:
    old, new = _ends(row.paths) if row.kind == "rename" else ("", "")
    text = f"{old} became {new}" if old else row.text
    commit = f" ({row.commit[:10]})" if row.commit else ""
    return HistoryEvidence(
        kind=row.kind, text=f"{text}{commit}", at=row.at, subject=old, object=new, id=row.id
    )


def _ends(paths: Sequence[str]) -> tuple[str, str]:
    return (paths[0], paths[1]) if len(paths) > 1 else ("", "")
