"""The words that a package brings: excerpts of sections, notes, and notes tied to what was found.

In: ranked rows, notes, what the graph ties to the targets. Out: memories, best first, spread over
kinds and files, no two that say nearly the same. What was replaced never comes; diary entries come
only where the focus asks to go on or for history.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from anaphora.rank.context.choice import prune, shingles, spread
from anaphora.rank.context.table import DOCUMENT_KINDS
from anaphora.recall.context.modules import NamedModule, beginning_of
from anaphora.values.projects import ContextMemory

if TYPE_CHECKING:
    from anaphora.index.sections.index import SectionIndex
    from anaphora.recall.context.excerpt import Excerpts
    from anaphora.recall.context.ranked import Asked, Ranked
    from anaphora.store.projects.notes import NoteRow
    from anaphora.store.projects.source import SectionText

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
