"""What lies near in the graph: relations of what was found, and notes tied to it.

In: names that the focus gives, files that were found. Out: relations within two steps, those that
explain a direct hit first; notes that concern the files. It follows only from what words have
found, a bounded number of relations of each entity, and never makes a target of what it reaches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from anaphora.core.display import one_line
from anaphora.values.projects import GraphEvidence, Predicate

if TYPE_CHECKING:
    from anaphora.recall.context.ranked import Asked, Ranked
    from anaphora.store.projects.graph import Graph
    from anaphora.store.projects.graph_rows import EntityRow, Neighbour
    from anaphora.store.projects.notes import NoteRow, Notes

FILES: Final = 5
NAMED: Final = 6
AMBIGUOUS: Final = 3
"""A name that more things than this go by does not say which one is meant."""
OF_EACH: Final = 8
BORDER: Final = 3
OF_EACH_FAR: Final = 3

_TELLING: Final[Mapping[Predicate, int]] = {
    "applies_to": 0,
    "concerns": 0,
    "supersedes": 1,
    "imports": 2,
    "covers": 3,
    "defines": 4,
    "uses_package": 5,
    "contains": 6,
}
"""What says most comes first; that a folder contains a file can be read off its path."""


_LEADING: Final[frozenset[Predicate]] = frozenset(("applies_to", "concerns", "imports", "covers"))


@dataclass(frozen=True, slots=True)
class Nearby:
    """Entities at the start, the files' by project and path; relations; notes with strengths."""

    start: tuple[str, ...] = ()
    files: Mapping[str, Mapping[str, EntityRow]] = field(default_factory=dict)
    relations: tuple[GraphEvidence, ...] = ()
    tied: tuple[tuple[NoteRow, float], ...] = ()


def nearby(
    asked: Asked,
    ranked: Ranked,
    named: Mapping[str, Sequence[EntityRow]],
    graph: Graph,
    notes: Notes,
) -> Nearby:
    """Go from the best files and the entities that the focus names, two steps at most."""
    files = _file_entities(ranked, graph)
    called = [row.id for rows in named.values() for row in rows][:NAMED]
    found_files = [row.id for some in files.values() for row in some.values()]
    start = dict.fromkeys(found_files + called)
    if not start:
        return Nearby()
    found = _within_two_steps(start, graph)
    ends = {one.relation.subject for one in found} | {one.relation.object for one in found}
    entities = graph.entities(ends)
    hits = set(start)
    shown = sorted(
        (one for one in found if _shows(one, entities)), key=lambda one: _order(one, hits)
    )
    relations = tuple(_evidence(one, entities) for one in shown)
    return Nearby(tuple(start), files, relations, _tied(asked, found, entities, notes))


def _within_two_steps(start: Mapping[str, None], graph: Graph) -> tuple[Neighbour, ...]:
    """A few relations of each entity at the start, and fewer of what those lead to.

    Not from everything that was reached: half a project imports its errors.
    """
    near = graph.neighbours(start, hops=1, limit=OF_EACH)
    telling = [one for one in near if one.relation.predicate in _LEADING]
    border = dict.fromkeys(one.entity for one in telling if one.entity not in start)
    known = {one.relation.id for one in near}
    far = graph.neighbours(list(border)[:BORDER], hops=1, limit=OF_EACH_FAR) if border else ()
    return near + tuple(replace(one, depth=2) for one in far if one.relation.id not in known)


def _file_entities(ranked: Ranked, graph: Graph) -> dict[str, dict[str, EntityRow]]:
    found = ranked.best_files(FILES)
    return {project: graph.entities_at(project, paths) for project, paths in found.items()}


def named_entities(asked: Asked, graph: Graph) -> dict[str, tuple[EntityRow, ...]]:
    """What goes by the names that the focus uses, by name; a name of too many says nothing."""
    mentions = sorted(asked.reading.mentions, key=lambda one: -one.weight)
    names = list(dict.fromkeys(one.text.rstrip("()") for one in mentions))[: 4 * NAMED]
    if not names:
        return {}
    only = next(iter(asked.projects)) if len(asked.projects) == 1 else None
    found = graph.entities_named(names, project=only, limit=AMBIGUOUS + 1)
    mine = {
        name: tuple(r for r in rows if r.project is None or r.project in asked.projects)
        for name, rows in found.items()
    }
    return {name: mine[name] for name in names if 0 < len(mine.get(name, ())) <= AMBIGUOUS}


def _shows(one: Neighbour, entities: Mapping[str, EntityRow]) -> bool:
    relation = one.relation
    return relation.subject in entities and relation.object in entities


def _order(one: Neighbour, hits: set[str]) -> tuple[bool, int, int, float, str]:
    relation = one.relation
    between = relation.subject in hits and relation.object in hits
    return not between, one.depth, _TELLING[relation.predicate], -relation.strength, relation.id


def _evidence(one: Neighbour, entities: Mapping[str, EntityRow]) -> GraphEvidence:
    relation = one.relation
    return GraphEvidence(
        subject=shown_name(entities[relation.subject]),
        predicate=relation.predicate,
        object=shown_name(entities[relation.object]),
        status=relation.status,
        strength=round(relation.strength, 4),
        depth=one.depth,
        valid_from=relation.valid_from,
        valid_to=relation.valid_to,
    )


def shown_name(entity: EntityRow) -> str:
    """An entity as it is shown: a note by its words, everything else by its name."""
    if entity.record is not None:
        return f"{entity.kind} “{one_line(entity.summary or entity.name)[:80]}”"
    return entity.name


def _tied(
    asked: Asked,
    found: Iterable[Neighbour],
    entities: Mapping[str, EntityRow],
    notes: Notes,
) -> tuple[tuple[NoteRow, float], ...]:
    """Current notes that speak of the files or names, the most important first."""
    strength: dict[str, float] = {}
    for one in found:
        relation = one.relation
        subject = entities.get(relation.subject)
        if one.depth > 1 or relation.predicate not in ("concerns", "applies_to"):
            continue
        if subject is not None and subject.record is not None:
            known = strength.get(subject.record, 0.0)
            strength[subject.record] = max(known, relation.strength)
    rows = [row for row in notes.many(strength).values() if _may_show(row, asked)]
    rows.sort(key=lambda row: (-strength[row.record.id] * row.importance, row.record.id))
    return tuple((row, strength[row.record.id]) for row in rows)


def _may_show(row: NoteRow, asked: Asked) -> bool:
    record = row.record
    current = record.valid_to is None and not record.forgotten
    mine = row.project is None or row.project in asked.projects
    return current and mine and (row.kind != "diary" or asked.asks_for("history"))
