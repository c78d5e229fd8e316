"""The places to look at first, each with a reason that a person understands.

In: ranked files and notes, the graph's names for what files define. Out: targets, best first. A
target always holds a word of the focus; what only lies near in meaning is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from anaphora.context_values import Target
from anaphora.rank.context.table import ROLES
from anaphora.recall.context.words import listed

if TYPE_CHECKING:
    from anaphora.index.sections.index import SectionIndex
    from anaphora.index.sections.source import SectionText
    from anaphora.recall.context.ranked import Asked, Ranked
    from anaphora.store.projects.graph_rows import EntityRow
    from anaphora.store.projects.notes import NoteRow

__all__ = ["TARGETS", "targets"]

TARGETS: Final = 10
"""Primary targets of a package: the seed's five with their reasons, and five more by their path."""

MORE: Final = 12
"""Candidates for them: some may not fit into a small budget."""

NOTE_PLACES: Final = 2
"""How many notes may be targets where there are files."""

CLOSE: Final = 0.5
"""From this cosine on, meaning is given as a reason."""

_TITLE: Final = 80


def targets(
    asked: Asked,
    ranked: Ranked,
    index: SectionIndex,
    notes: Mapping[str, NoteRow],
    entities: Mapping[str, Mapping[str, EntityRow]],
) -> list[Target]:
    """Files and notes, best first. `entities` are those of the files, by project and path.

    Diary entries are none unless the focus asks to go on, or for history.
    """
    chosen = list(_chosen(asked, ranked, notes))
    table, rows = ranked.candidates.table, ranked.candidates.rows
    texts = index.texts(
        table.ids[int(rows[ranked.targets.best[at]])]
        for at in chosen
        if ranked.targets.files[at] >= 0
    )
    found = []
    for at in chosen:
        if ranked.targets.files[at] >= 0:
            found.append(_file(asked, ranked, at, texts, entities))
        else:
            key = table.ids[int(rows[ranked.targets.best[at]])]
            found.append(_note(asked, ranked, at, notes[key]))
    return found


def _chosen(asked: Asked, ranked: Ranked, notes: Mapping[str, NoteRow]) -> Iterator[int]:
    """Places among the ranked targets, best first."""
    table, scores = ranked.candidates.table, ranked.targets
    most = NOTE_PLACES if (scores.files >= 0).any() else TARGETS
    taken = of_notes = 0
    for at in range(len(scores)):
        if scores.files[at] < 0:
            row = int(ranked.candidates.rows[scores.best[at]])
            note = notes.get(table.ids[row])
            if note is None or of_notes == most:
                continue
            if note.kind == "diary" and not asked.asks_for("history"):
                continue
            of_notes += 1
        yield at
        taken += 1
        if taken == MORE:
            return


def _file(
    asked: Asked,
    ranked: Ranked,
    at: int,
    texts: Mapping[str, SectionText],
    entities: Mapping[str, Mapping[str, EntityRow]],
) -> Target:
    table, scores = ranked.candidates.table, ranked.targets
    code, place = int(scores.files[at]), int(scores.best[at])
    path = table.files.paths[code]
    project = table.projects[int(table.files.project[code])]
    entity = entities.get(project, {}).get(path)
    row = int(ranked.candidates.rows[place])
    section = texts.get(table.ids[row])
    title = (section.symbol or section.title) if section is not None else ""
    return Target(
        path=path,
        kind=entity.kind if entity is not None else "file",
        title=title or path,
        score=round(float(scores.score[at]), 6),
        reason="; ".join(_reason(ranked, at, path, section)),
        role=ROLES[int(table.files.role[code])],
        id=table.ids[row],
        start_line=int(table.start_line[row]),
        end_line=int(table.end_line[row]),
        signals=ranked.rows.explain(place) if asked.sources else {},
        project=asked.projects.get(project),
    )


def _reason(ranked: Ranked, at: int, path: str, section: SectionText | None) -> Iterator[str]:
    """Why a file is a target: what is named, what it defines, what of it matches."""
    if int(ranked.targets.files[at]) in ranked.by_name:
        yield "the focus names this file"
    said: set[str] = set()
    symbol = section.symbol if section is not None else None
    for place, text in (
        (f"defines `{symbol}`", symbol),
        ("its title matches", section.title if section is not None else ""),
        ("path matches", path),
    ):
        matched = _new(ranked.words.within(text), said) if text else []
        if matched:
            yield place if text is symbol else f"{place} {listed(matched)}"
            said |= _folded(matched)
    if section is not None:
        matched = _new(ranked.words.shown(ranked.excerpts.held(section.text), 6), said)[:3]
        if matched:
            yield f"{'its text also has' if said else 'its text has'} {listed(matched)}"
    cosine = ranked.candidates.cosine
    if cosine is not None and cosine[ranked.targets.best[at]] >= CLOSE:
        yield "close in meaning"


def _note(asked: Asked, ranked: Ranked, at: int, note: NoteRow) -> Target:
    matched = ranked.words.within(note.record.text)
    kind = note.type if note.kind == "observation" else "diary"
    place = int(ranked.targets.best[at])
    return Target(
        path=note.record.sources[0] if note.record.sources else kind,
        kind=kind,
        title=_beginning(note.record.text),
        score=round(float(ranked.targets.score[at]), 6),
        reason=f"speaks of {listed(matched)}" if matched else "",
        id=note.record.id,
        signals=ranked.rows.explain(place) if asked.sources else {},
        project=asked.projects.get(note.project or ""),
    )


def _beginning(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _TITLE else text[: _TITLE - 1].rstrip() + "…"


def _new(words: Iterable[str], said: set[str]) -> list[str]:
    return [word for word in words if word.lower() not in said]


def _folded(words: Iterable[str]) -> set[str]:
    return {word.lower() for word in words}
