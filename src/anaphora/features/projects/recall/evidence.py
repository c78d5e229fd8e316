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

from anaphora.features.projects.ranking.choice import prune, shingles, spread
from anaphora.features.projects.recall.excerpts import EXCERPT, Excerpts
from anaphora.features.projects.recall.targets import NamedModule, beginning_of
from anaphora.features.projects.values import GraphEvidence, HistoryEvidence, Predicate
from anaphora.store.records.rows import DOCUMENT, DOCUMENT_SECTION
from anaphora.store.records.titles import part_title
from anaphora.text.display import one_line
from anaphora.values.context import ContextMemory

if TYPE_CHECKING:
    from anaphora.features.projects.index.state import SectionQuery
    from anaphora.features.projects.recall.candidates import QuestionContext, RankedCandidates
    from anaphora.features.projects.store.graph import Graph
    from anaphora.features.projects.store.graph_rows import EntityRow, Neighbour
    from anaphora.features.projects.store.notes import NoteRow
    from anaphora.features.projects.store.rows import HistoryRow
    from anaphora.features.projects.store.source import SectionText

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
    mentions = sorted(question.reading.mentions, key=lambda mention: -mention.weight)
    names = list(dict.fromkeys(mention.text.rstrip("()") for mention in mentions))[: 4 * NAMED]
    if not names:
        return {}
    only = next(iter(question.projects)) if len(question.projects) == 1 else None
    entities = question.reader.graph.entities_named(names, project=only, limit=AMBIGUOUS + 1)
    visible = {
        name: tuple(r for r in rows if r.project is None or r.project in question.projects)
        for name, rows in entities.items()
    }
    return {name: visible[name] for name in names if 0 < len(visible.get(name, ())) <= AMBIGUOUS}


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
    best_files = ranked.best_files(FILES)
    files = {project: graph.entities_at(project, paths) for project, paths in best_files.items()}
    named_ids = [row.id for rows in named.values() for row in rows][:NAMED]
    found_files = [row.id for by_path in files.values() for row in by_path.values()]
    start = dict.fromkeys(found_files + named_ids)
    if not start:
        return GraphContext()
    neighbours = _walk_two_steps(start, graph)
    relations = [neighbour.relation for neighbour in neighbours]
    ends = {end for relation in relations for end in (relation.subject, relation.object)}
    entities = graph.entities(ends)
    complete = [
        neighbour
        for neighbour in neighbours
        if neighbour.relation.subject in entities and neighbour.relation.object in entities
    ]
    # Relations between two direct hits first, then what is near and says most.
    complete.sort(
        key=lambda neighbour: (
            not {neighbour.relation.subject, neighbour.relation.object} <= start.keys(),
            neighbour.depth,
            _TELLING[neighbour.relation.predicate],
            -neighbour.relation.strength,
            neighbour.relation.id,
        )
    )
    return GraphContext(
        tuple(start),
        files,
        tuple(
            GraphEvidence(
                subject=_display_name(entities[relation.subject]),
                predicate=relation.predicate,
                object=_display_name(entities[relation.object]),
                status=relation.status,
                strength=round(relation.strength, 4),
                depth=depth,
                valid_from=relation.valid_from,
                valid_to=relation.valid_to,
            )
            for relation, depth in ((edge.relation, edge.depth) for edge in complete)
        ),
        _find_notes(neighbours, entities),
    )


def _walk_two_steps(start: Mapping[str, None], graph: Graph) -> tuple[Neighbour, ...]:
    """A few relations of each entity at the start, and fewer of what those lead to.

    Not from everything that was reached: half a project imports its errors.
    """
    near_neighbours = graph.neighbours(start, limit=OF_EACH)
    telling = [
        neighbour for neighbour in near_neighbours if neighbour.relation.predicate in _LEADING
    ]
    border = dict.fromkeys(
        neighbour.entity for neighbour in telling if neighbour.entity not in start
    )
    near_ids = {neighbour.relation.id for neighbour in near_neighbours}
    far_neighbours = graph.neighbours(list(border)[:BORDER], limit=OF_EACH_FAR) if border else ()
    return near_neighbours + tuple(
        replace(neighbour, depth=2)
        for neighbour in far_neighbours
        if neighbour.relation.id not in near_ids
    )


def _display_name(entity: EntityRow) -> str:
    """An entity as it is shown: a note by its words, everything else by its name."""
    if entity.record is not None:
        return f"{entity.kind} “{one_line(entity.summary or entity.name)[:80]}”"
    return entity.name


def _find_notes(
    neighbours: Iterable[Neighbour], entities: Mapping[str, EntityRow]
) -> dict[str, float]:
    """Ids of notes that speak of the files or names, with the strength of the closest link."""
    strength: dict[str, float] = {}
    for neighbour in neighbours:
        relation = neighbour.relation
        subject = entities.get(relation.subject)
        if neighbour.depth > 1 or relation.predicate not in ("concerns", "applies_to"):
            continue
        if subject is not None and subject.record is not None:
            strongest = strength.get(subject.record, 0.0)
            strength[subject.record] = max(strongest, relation.strength)
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
    indexes = list(_list_shown(ranked))
    sections = question.reader.sections(ranked.key(p) for p in indexes if ranked.file(p) >= 0)
    notes = question.reader.notes(ranked.key(p) for p in indexes if ranked.file(p) < 0)
    texts = {key: section.text for key, section in sections.items()}
    texts |= {key: note.record.text for key, note in notes.items()}
    # Between the search and now something may have gone.
    texts_by_index = {
        index: texts[ranked.key(index)] for index in indexes if ranked.key(index) in texts
    }
    max_memories = MOST_WITH_SOURCES if question.sources else MOST
    direct = []
    # No two that say nearly the same, spread over kinds and files.
    sketches = {index: shingles(text[:_SKETCHED].split()) for index, text in texts_by_index.items()}
    distinct_indexes = prune(texts_by_index, sketches)
    kinds = {index: int(ranked.table.kind[ranked.row(index)]) for index in distinct_indexes}
    owners = {index: file for index in distinct_indexes if (file := ranked.file(index)) >= 0}
    for index in spread(distinct_indexes, kinds, owners, max_memories):
        section, score = sections.get(ranked.key(index)), float(ranked.rows.score[index])
        if section is not None:
            direct.append(_make_section_memory(ranked, index, section))
            continue
        note = note_memory(notes[ranked.key(index)], question.projects, ranked.excerpts, score)
        direct.append(replace(note, signals=ranked.signals(index)))
    named_memories = [module.memory for module in modules if module.memory is not None]
    shown_ids = {memory.id for memory in named_memories}
    direct = [*named_memories, *(memory for memory in direct if memory.id not in shown_ids)][
        :max_memories
    ]
    shown_ids |= {memory.id for memory in direct}
    # Current notes that the graph ties to the targets, the most important first.
    rows = [
        row
        for row in question.reader.notes(near.notes).values()
        if row.record.valid_to is None
        and not row.record.forgotten
        and (row.project is None or row.project in question.projects)
        and (row.kind != "diary" or question.asks_for("history"))
    ]
    rows.sort(key=lambda row: (-near.notes[row.record.id] * row.importance, row.record.id))
    tied_notes = [
        note_memory(row, question.projects, ranked.excerpts, near.notes[row.record.id])
        for row in rows
        if row.record.id not in shown_ids
    ]
    return [*direct[:FIRST], *tied_notes[:TIED], *direct[FIRST:]]


def memory_section_keys(ranked: RankedCandidates) -> list[str]:
    """The ids of the sections that `memories` chooses among."""
    return [ranked.key(at) for at in _list_shown(ranked) if ranked.file(at) >= 0]


def _list_shown(ranked: RankedCandidates) -> Iterator[int]:
    """Places that may be shown, best first."""
    for index in ranked.rows.order[:LOOKED_AT].tolist():
        if not ranked.rows.grounded[index]:
            return
        yield index


def _make_section_memory(
    ranked: RankedCandidates, index: int, section: SectionText
) -> ContextMemory:
    table, code = ranked.table, ranked.file(index)
    excerpt = ranked.excerpts.of(section.text, section.start_line, EXCERPT)
    module = ranked.modules.documented(code)
    if module is not None and beginning_of(ranked, code) != ranked.row(index):
        module = None
    return ContextMemory(
        id=section.id,
        kind="section" if module is None else "module",
        title=section.symbol or " > ".join((*section.heading, section.title))
        if module is None
        else module,
        text=excerpt.text,
        score=round(float(ranked.rows.score[index]), 6),
        path=table.files.paths[code],
        start_line=excerpt.start_line,
        end_line=excerpt.end_line,
        signals=ranked.signals(index),
        project=ranked.question.projects.get(table.projects[int(table.project[ranked.row(index)])]),
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
            title=part_title(record),
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
    reader = question.reader
    candidates = reader.index.candidates(past)
    shares = dict(zip(candidates.rows.tolist(), candidates.words.held.tolist(), strict=True))
    best = sorted(
        (row for row in shares if shares[row] >= LEAST_HELD), key=lambda r: (-shares[r], r)
    )
    # A note that was softly forgotten is not history: it is to stay out of sight.
    notes = reader.notes(candidates.table.ids[row] for row in best[:OF_EACH_KIND])
    newer = reader.notes(by for note in notes.values() if (by := note.record.superseded_by))
    replaced = []
    for note in notes.values():
        record = note.record
        if record.forgotten or note.kind == DOCUMENT_SECTION:
            continue
        successor = newer.get(record.superseded_by or "")
        text = one_line(record.text)
        if successor is not None:
            text = f"{text} [replaced by: {one_line(successor.record.text)}]"
        replaced.append(
            HistoryEvidence(
                kind=f"superseded_{note.type}",
                text=text,
                at=record.valid_to,
                subject=record.id,
                object=record.superseded_by or "",
                id=record.id,
            )
        )
    kinds = (
        replaced,
        _list_commits(ranked, rows, "rename"),
        _find_ended_relations(question.reader.graph, near),
        _list_commits(ranked, rows, "commit"),
    )
    turns = chain.from_iterable(zip_longest(*kinds))
    return [evidence for evidence in turns if evidence is not None]


def _find_ended_relations(graph: Graph, near: GraphContext) -> list[HistoryEvidence]:
    if not near.start:
        return []
    relations = graph.relations(near.start, ("superseded", "invalidated"))
    # The latest first: that is what something was before it became what it is.
    latest = sorted(relations, key=lambda r: (-(r.valid_to or r.valid_from).timestamp(), r.id))[
        :OF_EACH_KIND
    ]
    entities = graph.entities(e for relation in latest for e in (relation.subject, relation.object))
    ended_relations = []
    for relation in latest:
        subject, object_ = entities.get(relation.subject), entities.get(relation.object)
        # That a note was replaced is said with the note.
        if subject is None or object_ is None or subject.record or object_.record:
            continue
        names = (_display_name(subject), _display_name(object_))
        ended_relations.append(
            HistoryEvidence(
                kind=f"{relation.status}_relation",
                text=f"{names[0]} {relation.predicate.replace('_', ' ')} {names[1]}",
                at=relation.valid_to,
                subject=names[0],
                object=names[1],
                id=relation.id,
            )
        )
    return ended_relations


def _list_commits(
    ranked: RankedCandidates, rows: Iterable[HistoryRow], kind: str
) -> list[HistoryEvidence]:
    """Renames, or commits, of the best files; commits that match by their words come first."""
    of_kind = [row for row in rows if row.kind == kind]
    of_kind.sort(key=lambda row: (-ranked.words.worth(row.text), -row.at.timestamp(), row.id))
    evidence = []
    for row in of_kind[:OF_EACH_KIND]:
        is_rename = row.kind == "rename" and len(row.paths) > 1
        old_path, new_path = row.paths[:2] if is_rename else ("", "")
        text = f"{old_path} became {new_path}" if old_path else row.text
        text += f" ({row.commit[:10]})" if row.commit else ""
        evidence.append(
            HistoryEvidence(
                kind=row.kind, text=text, at=row.at, subject=old_path, object=new_path, id=row.id
            )
        )
    return evidence
