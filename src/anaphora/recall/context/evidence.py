"""What a package brings besides its targets: relations, excerpts and notes, history.

Relations come from a bounded walk of the graph, two steps from the best files and the entities that
the focus names; notes that concern the files come with them. What was superseded comes only as
history, and history only for a focus that asks; so do diary entries that share no word with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Final

from anaphora.core.display import one_line
from anaphora.rank.context.choice import prune, shingles, spread
from anaphora.recall.context.excerpts import EXCERPT, Excerpts
from anaphora.recall.context.targets import NamedModule, beginning_of
from anaphora.store.documents import section_title
from anaphora.store.records.rows import DOCUMENT, DOCUMENT_SECTION
from anaphora.values.projects import ContextMemory, GraphEvidence, HistoryEvidence, Predicate

if TYPE_CHECKING:
    from anaphora.index.sections.state import SectionQuery
    from anaphora.recall.context.candidates import ProjectReader, QuestionContext, RankedCandidates
    from anaphora.store.projects.graph import Graph
    from anaphora.store.projects.graph_rows import EntityRow, Neighbour
    from anaphora.store.projects.notes import NoteRow
    from anaphora.store.projects.rows import HistoryRow
    from anaphora.store.projects.source import SectionText

# The graph.

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


def named_entities(question: QuestionContext) -> dict[str, tuple[EntityRow, ...]]:
    """What goes by the names that the focus uses, by name; a name of too many says nothing."""
    mentions = sorted(question.reading.mentions, key=lambda one: -one.weight)
    names = list(dict.fromkeys(one.text.rstrip("()") for one in mentions))[: 4 * NAMED]
    if not names:
        return {}
    only = next(iter(question.projects)) if len(question.projects) == 1 else None
    found = question.reader.graph.entities_named(names, project=only, limit=AMBIGUOUS + 1)
    mine = {
        name: tuple(r for r in rows if r.project is None or r.project in question.projects)
        for name, rows in found.items()
    }
    return {name: mine[name] for name in names if 0 < len(mine.get(name, ())) <= AMBIGUOUS}


@dataclass(frozen=True, slots=True)
class GraphContext:
    """Entities at the start, the files' by project and path; relations; notes with strengths."""

    start: tuple[str, ...] = ()
    files: Mapping[str, Mapping[str, EntityRow]] = field(default_factory=dict)
    relations: tuple[GraphEvidence, ...] = ()
    notes: Mapping[str, float] = field(default_factory=dict)


def nearby(ranked: RankedCandidates, named: Mapping[str, Sequence[EntityRow]]) -> GraphContext:
    """Go from the best files and the entities that the focus names, two steps at most."""
    graph = ranked.question.reader.graph
    best = ranked.best_files(FILES)
    files = {project: graph.entities_at(project, paths) for project, paths in best.items()}
    called = [row.id for rows in named.values() for row in rows][:NAMED]
    found_files = [row.id for some in files.values() for row in some.values()]
    start = dict.fromkeys(found_files + called)
    if not start:
        return GraphContext()
    found = _within_two_steps(start, graph)
    ends = {one.relation.subject for one in found} | {one.relation.object for one in found}
    entities = graph.entities(ends)
    known = [
        one for one in found if one.relation.subject in entities and one.relation.object in entities
    ]
    known.sort(key=lambda one: _telling_order(one, start))
    return GraphContext(
        tuple(start),
        files,
        tuple(_relation(one, entities) for one in known),
        _notes_concerning(found, entities),
    )


def _within_two_steps(start: Mapping[str, None], graph: Graph) -> tuple[Neighbour, ...]:
    """A few relations of each entity at the start, and fewer of what those lead to.

    Not from everything that was reached: half a project imports its errors.
    """
    near = graph.neighbours(start, limit=OF_EACH)
    telling = [one for one in near if one.relation.predicate in _LEADING]
    border = dict.fromkeys(one.entity for one in telling if one.entity not in start)
    known = {one.relation.id for one in near}
    far = graph.neighbours(list(border)[:BORDER], limit=OF_EACH_FAR) if border else ()
    return near + tuple(replace(one, depth=2) for one in far if one.relation.id not in known)


def _telling_order(one: Neighbour, start: Mapping[str, None]) -> tuple[bool, int, int, float, str]:
    """Relations between two direct hits first, then what is near and says most."""
    relation = one.relation
    between = relation.subject in start and relation.object in start
    return not between, one.depth, _TELLING[relation.predicate], -relation.strength, relation.id


def _relation(one: Neighbour, entities: Mapping[str, EntityRow]) -> GraphEvidence:
    relation = one.relation
    return GraphEvidence(
        subject=_shown_name(entities[relation.subject]),
        predicate=relation.predicate,
        object=_shown_name(entities[relation.object]),
        status=relation.status,
        strength=round(relation.strength, 4),
        depth=one.depth,
        valid_from=relation.valid_from,
        valid_to=relation.valid_to,
    )


def _shown_name(entity: EntityRow) -> str:
    """An entity as it is shown: a note by its words, everything else by its name."""
    if entity.record is not None:
        return f"{entity.kind} “{one_line(entity.summary or entity.name)[:80]}”"
    return entity.name


def _notes_concerning(
    found: Iterable[Neighbour], entities: Mapping[str, EntityRow]
) -> dict[str, float]:
    """Ids of notes that speak of the files or names, with the strength of the closest link."""
    strength: dict[str, float] = {}
    for one in found:
        relation = one.relation
        subject = entities.get(relation.subject)
        if one.depth > 1 or relation.predicate not in ("concerns", "applies_to"):
            continue
        if subject is not None and subject.record is not None:
            known = strength.get(subject.record, 0.0)
            strength[subject.record] = max(known, relation.strength)
    return strength


# Excerpts and notes.

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
    ranked: RankedCandidates, near: GraphContext, modules: Sequence[NamedModule]
) -> list[ContextMemory]:
    """Excerpts of what was found, best first, and notes about the targets.

    The beginning of a folder's document is a memory of that module; those that are named lead.
    """
    question = ranked.question
    places = list(_shown_places(ranked))
    sections = question.reader.sections(ranked.key(p) for p in places if ranked.file(p) >= 0)
    notes = question.reader.notes(ranked.key(p) for p in places if ranked.file(p) < 0)
    texts = {key: section.text for key, section in sections.items()}
    texts |= {key: note.record.text for key, note in notes.items()}
    # Between the search and now something may have gone.
    said = {place: texts[ranked.key(place)] for place in places if ranked.key(place) in texts}
    most = MOST_WITH_SOURCES if question.sources else MOST
    direct = []
    for place in _different(ranked, said, most):
        section, score = sections.get(ranked.key(place)), float(ranked.rows.score[place])
        if section is not None:
            direct.append(_section_memory(ranked, place, section))
            continue
        note = note_memory(notes[ranked.key(place)], question.projects, ranked.excerpts, score)
        direct.append(replace(note, signals=ranked.signals(place)))
    named = [one.memory for one in modules if one.memory is not None]
    known = {one.id for one in named}
    direct = [*named, *(one for one in direct if one.id not in known)][:most]
    known |= {one.id for one in direct}
    tied = [
        note_memory(note, question.projects, ranked.excerpts, near.notes[note.record.id])
        for note in _tied_notes(question, near)
        if note.record.id not in known
    ]
    return [*direct[:FIRST], *tied[:TIED], *direct[FIRST:]]


def memory_section_keys(ranked: RankedCandidates) -> list[str]:
    """The ids of the sections that `memories` chooses among."""
    return [ranked.key(at) for at in _shown_places(ranked) if ranked.file(at) >= 0]


def _shown_places(ranked: RankedCandidates) -> Iterator[int]:
    """Places that may be shown, best first."""
    for place in ranked.rows.order[:LOOKED_AT].tolist():
        if not ranked.rows.grounded[place]:
            return
        yield place


def _different(ranked: RankedCandidates, said: Mapping[int, str], most: int) -> list[int]:
    """No two that say nearly the same, spread over kinds and files."""
    sketches = {place: shingles(text[:_SKETCHED].split()) for place, text in said.items()}
    kept = prune(said, sketches)
    kinds = {place: int(ranked.table.kind[ranked.row(place)]) for place in kept}
    owners = {place: file for place in kept if (file := ranked.file(place)) >= 0}
    return spread(kept, kinds, owners, most)


def _tied_notes(question: QuestionContext, near: GraphContext) -> list[NoteRow]:
    """Current notes that the graph ties to the targets, the most important first."""
    rows = [
        row
        for row in question.reader.notes(near.notes).values()
        if row.record.valid_to is None
        and not row.record.forgotten
        and (row.project is None or row.project in question.projects)
        and (row.kind != "diary" or question.asks_for("history"))
    ]
    rows.sort(key=lambda row: (-near.notes[row.record.id] * row.importance, row.record.id))
    return rows


def _section_memory(ranked: RankedCandidates, place: int, section: SectionText) -> ContextMemory:
    table, code = ranked.table, ranked.file(place)
    found = ranked.excerpts.of(section.text, section.start_line, EXCERPT)
    module = ranked.modules.documented(code)
    if module is not None and beginning_of(ranked, code) != ranked.row(place):
        module = None
    return ContextMemory(
        id=section.id,
        kind="section" if module is None else "module",
        title=section.symbol or " > ".join((*section.heading, section.title))
        if module is None
        else module,
        text=found.text,
        score=round(float(ranked.rows.score[place]), 6),
        path=table.files.paths[code],
        start_line=found.start_line,
        end_line=found.end_line,
        signals=ranked.signals(place),
        project=ranked.question.projects.get(table.projects[int(table.project[ranked.row(place)])]),
    )


def note_memory(
    note: NoteRow, projects: Mapping[str, str], excerpts: Excerpts, score: float
) -> ContextMemory:
    """A note as a memory; a long one is cut around the words that were asked for."""
    record = note.record
    if note.kind == DOCUMENT_SECTION:
        return ContextMemory(
            id=record.id,
            kind=DOCUMENT,
            title=section_title(record),
            text=excerpts.of(record.text, 1, EXCERPT).text,
            score=round(score, 6),
            created_at=record.created_at,
        )
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


# History.

COMMITS: Final = 60
OF_EACH_KIND: Final = 8
LEAST_HELD: Final = 0.15
"""Share of the focus' worth that a replaced note must hold to be evidence."""


def history(
    ranked: RankedCandidates, near: GraphContext, past: SectionQuery
) -> list[HistoryEvidence]:
    """What was before, one of each kind in turn. `past` asks the index for replaced notes."""
    question = ranked.question
    if not question.asks_for("history"):
        return []
    rows = [
        row
        for project, paths in ranked.best_files(FILES).items()
        for row in question.reader.projects.history_of(project, paths, COMMITS)
    ]
    kinds = (
        _replaced_notes(question.reader, past),
        _commits(ranked, rows, "rename"),
        _ended_relations(question.reader.graph, near),
        _commits(ranked, rows, "commit"),
    )
    turns = chain.from_iterable(zip_longest(*kinds))
    return [one for one in turns if one is not None]


def _replaced_notes(reader: ProjectReader, past: SectionQuery) -> list[HistoryEvidence]:
    found = reader.index.candidates(past)
    held = dict(zip(found.rows.tolist(), found.words.held.tolist(), strict=True))
    best = sorted((row for row in held if held[row] >= LEAST_HELD), key=lambda r: (-held[r], r))
    # What was softly forgotten is not history: somebody wanted it out of sight.
    rows = reader.notes(found.table.ids[row] for row in best[:OF_EACH_KIND])
    newer = reader.notes(by for row in rows.values() if (by := row.record.superseded_by))
    return [
        _replaced(row, newer)
        for row in rows.values()
        if not row.record.forgotten and row.kind != DOCUMENT_SECTION
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


def _ended_relations(graph: Graph, near: GraphContext) -> list[HistoryEvidence]:
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
        names = (_shown_name(subject), _shown_name(object_))
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


def _commits(
    ranked: RankedCandidates, rows: Iterable[HistoryRow], kind: str
) -> list[HistoryEvidence]:
    """Renames, or commits, of the best files; commits whose words match before the latest."""
    mine = [row for row in rows if row.kind == kind]
    mine.sort(key=lambda row: (-ranked.words.worth(row.text), -row.at.timestamp(), row.id))
    return [_commit(row) for row in mine[:OF_EACH_KIND]]


def _commit(row: HistoryRow) -> HistoryEvidence:
    renamed = row.kind == "rename" and len(row.paths) > 1
    old, new = row.paths[:2] if renamed else ("", "")
    text = f"{old} became {new}" if old else row.text
    commit = f" ({row.commit[:10]})" if row.commit else ""
    return HistoryEvidence(
        kind=row.kind, text=f"{text}{commit}", at=row.at, subject=old, object=new, id=row.id
    )
