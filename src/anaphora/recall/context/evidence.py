"""The words that a package brings: excerpts of sections, notes, and notes tied to what was found.

In: ranked rows, notes, what the graph ties to the targets. Out: memories, best first, spread over
kinds and files, no two that say nearly the same. What was replaced never comes; diary entries come
only where the focus asks to go on or for history.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Final

from anaphora.core.display import one_line
from anaphora.rank.context.choice import prune, shingles, spread
from anaphora.rank.context.table import DOCUMENT_KINDS
from anaphora.recall.context.targets import NamedModule, beginning_of
from anaphora.values.projects import ContextMemory, GraphEvidence, HistoryEvidence, Predicate

if TYPE_CHECKING:
    from anaphora.index.sections.index import SectionIndex
    from anaphora.index.sections.source import SectionText
    from anaphora.index.sections.state import SectionQuery
    from anaphora.recall.context.candidates import Asked, Ranked
    from anaphora.recall.context.excerpts import Excerpts
    from anaphora.store.projects.graph import Graph
    from anaphora.store.projects.graph_rows import EntityRow, Neighbour
    from anaphora.store.projects.notes import NoteRow, Notes
    from anaphora.store.projects.store import HistoryRow, Projects


EXCERPT: Final = 160
"""Tokens of one excerpt."""

LOOKED_AT: Final = 28
"""Ranked rows that are read, to choose among them."""

MOST: Final = 12
MOST_WITH_SOURCES: Final = 20
FIRST: Final = 4
"""Direct hits that stand before what the graph ties to them."""
TIED: Final = 3

_SKETCHED: Final = 1_000
"""Characters by which two texts are compared."""


def memories(
    asked: Asked,
    ranked: Ranked,
    index: SectionIndex,
    notes: Mapping[str, NoteRow],
    tied: Sequence[tuple[NoteRow, float]],
    modules: Sequence[NamedModule] = (),
) -> list[ContextMemory]:
    """Excerpts of what was found, best first; `tied` are notes about the targets.

    The beginning of a folder's document is a memory of that module; those that are named lead.
    """
    table, rows = ranked.candidates.table, ranked.candidates.rows
    places = list(_shown(asked, ranked))
    keys = {place: table.ids[int(rows[place])] for place in places}
    texts = index.texts(key for place, key in keys.items() if table.file[int(rows[place])] >= 0)
    said = {key: section.text for key, section in texts.items()}
    said |= {key: note.record.text for key, note in notes.items()}
    most = MOST_WITH_SOURCES if asked.sources else MOST
    # Between the search and now something may have gone.
    places = [place for place in places if keys[place] in said]
    direct = [
        _section(asked, ranked, place, texts[keys[place]])
        if keys[place] in texts
        else _note(asked, ranked, place, notes[keys[place]])
        for place in _chosen(ranked, places, {p: said[keys[p]] for p in places}, most)
    ]
    named = [one.memory for one in modules if one.memory is not None]
    known = {one.id for one in named}
    direct = [*named, *(one for one in direct if one.id not in known)][:most]
    known |= {one.id for one in direct}
    more = [
        note_memory(note, asked.projects, ranked.excerpts, strength)
        for note, strength in tied
        if note.record.id not in known
    ][:TIED]
    return [*direct[:FIRST], *more, *direct[FIRST:]]


def _shown(asked: Asked, ranked: Ranked) -> Iterator[int]:
    """Places that may be shown, best first."""
    table = ranked.candidates.table
    count = 0
    for place in ranked.rows.order.tolist():
        kind = DOCUMENT_KINDS[int(table.kind[int(ranked.candidates.rows[place])])]
        if not ranked.rows.grounded[place] or count == LOOKED_AT:
            return
        if kind != "diary" or asked.asks_for("history"):
            count += 1
            yield place


def _chosen(ranked: Ranked, places: Sequence[int], said: Mapping[int, str], most: int) -> list[int]:
    """No two that say nearly the same, spread over kinds and files."""
    table, rows = ranked.candidates.table, ranked.candidates.rows
    sketches = {place: shingles(text[:_SKETCHED].split()) for place, text in said.items()}
    kept = prune(places, sketches)
    kinds = {place: int(table.kind[int(rows[place])]) for place in kept}
    files = {place: int(table.file[int(rows[place])]) for place in kept}
    owners = {place: file for place, file in files.items() if file >= 0}
    return spread(kept, kinds, owners, most)


def _section(asked: Asked, ranked: Ranked, place: int, section: SectionText) -> ContextMemory:
    row = int(ranked.candidates.rows[place])
    found = ranked.excerpts.of(section.text, section.start_line, EXCERPT)
    code = int(ranked.candidates.table.file[row])
    module = ranked.modules.documented(code)
    begins = module is not None and beginning_of(ranked, code) == row
    title = section.symbol or " > ".join((*section.heading, section.title))
    return ContextMemory(
        id=section.id,
        kind="module" if begins else "section",
        title=module if begins and module is not None else title,
        text=found.text,
        score=round(float(ranked.rows.score[place]), 6),
        path=ranked.path(row),
        start_line=found.start_line,
        end_line=found.end_line,
        signals=ranked.rows.explain(place) if asked.sources else {},
        project=asked.projects.get(ranked.project(row)),
    )


def _note(asked: Asked, ranked: Ranked, place: int, note: NoteRow) -> ContextMemory:
    made = note_memory(note, asked.projects, ranked.excerpts, float(ranked.rows.score[place]))
    return replace(made, signals=ranked.rows.explain(place)) if asked.sources else made


def note_memory(
    note: NoteRow, projects: Mapping[str, str], excerpts: Excerpts, score: float
) -> ContextMemory:
    """A note as a memory; a long one is cut around the words that were asked for."""
    record = note.record
    diary = note.kind == "diary"
    return ContextMemory(
        id=record.id,
        kind="diary" if diary else note.type,
        title=note.subject or "",
        text=excerpts.of(record.text, 1, EXCERPT).text,
        score=round(score, 6),
        path=record.sources[0] if record.sources else None,
        importance=None if diary else note.importance,
        created_at=record.created_at,
        project=projects.get(note.project or ""),
    )


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
        (one for one in found if _shows(one, entities)), key=lambda one: _relation_order(one, hits)
    )
    relations = tuple(_relation_evidence(one, entities) for one in shown)
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


def _relation_order(one: Neighbour, hits: set[str]) -> tuple[bool, int, int, float, str]:
    relation = one.relation
    between = relation.subject in hits and relation.object in hits
    return not between, one.depth, _TELLING[relation.predicate], -relation.strength, relation.id


def _relation_evidence(one: Neighbour, entities: Mapping[str, EntityRow]) -> GraphEvidence:
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
    return [_commit_item(row) for row in rows[:OF_EACH_KIND]]


def _commit_item(row: HistoryRow) -> HistoryEvidence:
    old, new = _rename_ends(row.paths) if row.kind == "rename" else ("", "")
    text = f"{old} became {new}" if old else row.text
    commit = f" ({row.commit[:10]})" if row.commit else ""
    return HistoryEvidence(
        kind=row.kind, text=f"{text}{commit}", at=row.at, subject=old, object=new, id=row.id
    )


def _rename_ends(paths: Sequence[str]) -> tuple[str, str]:
    return (paths[0], paths[1]) if len(paths) > 1 else ("", "")
