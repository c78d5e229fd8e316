"""The places to look at first, each with a reason that a person understands.

In: ranked files and notes, modules that are named, the graph's names for what files define. Out:
targets, best first, no two that are nearly the same. A target always holds a word of the focus;
what only lies near in meaning is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from anaphora.rank.context.table import ROLES
from anaphora.recall.context.twins import Candidate, Twins
from anaphora.recall.context.words import listed
from anaphora.values.projects import Target

if TYPE_CHECKING:
    from anaphora.index.sections.index import SectionIndex
    from anaphora.recall.context.modules import NamedModule
    from anaphora.recall.context.ranked import Asked, Ranked
    from anaphora.store.projects.graph_rows import EntityRow
    from anaphora.store.projects.notes import NoteRow
    from anaphora.store.projects.source import SectionText

TARGETS: Final = 10
"""Primary targets of a package: the seed's five with their reasons, and five more by their path."""

MORE: Final = 12
"""Candidates for them: some may not fit into a small budget."""

NOTE_PLACES: Final = 2
"""How many notes may be targets where there are files."""

LOOKED_AT: Final = 60
"""Ranked places that are looked at, to find so many that differ."""

CLOSE: Final = 0.5
"""From this cosine on, meaning is given as a reason."""

_TITLE: Final = 80


def targets(
    asked: Asked,
    ranked: Ranked,
    index: SectionIndex,
    notes: Mapping[str, NoteRow],
    entities: Mapping[str, Mapping[str, EntityRow]],
    modules: Sequence[NamedModule] = (),
) -> list[Target]:
    """Modules, files and notes, best first. `entities` are of the files, by project and path.

    Of files or notes that say nearly the same the best one speaks for the others, and says how
    many they are. Diary entries are none unless the focus asks to go on, or for history.
    """
    chosen = _chosen(asked, ranked, notes, Twins(ranked, index))
    found = [one.target for one in modules]
    for one in chosen:
        if one.is_note:
            found.append(_note(asked, ranked, one, notes[one.key]))
        else:
            found.append(_file(asked, ranked, one, entities))
    # Modules are in the order of their own scores; nothing else changes places.
    return sorted(found, key=lambda one: -one.score)


def _chosen(
    asked: Asked, ranked: Ranked, notes: Mapping[str, NoteRow], twins: Twins
) -> list[Candidate]:
    """Places among the ranked targets, best first, none nearly the same as a better one."""
    most = NOTE_PLACES if (ranked.targets.files >= 0).any() else TARGETS
    kept: list[Candidate] = []
    of_notes = 0
    for one in _seen(asked, ranked, notes, twins):
        if twins.of(one, kept) or (one.is_note and of_notes == most):
            continue
        of_notes += one.is_note
        kept.append(one)
        if len(kept) == MORE:
            break
    return kept


def _seen(
    asked: Asked, ranked: Ranked, notes: Mapping[str, NoteRow], twins: Twins
) -> Iterator[Candidate]:
    """What may be a target, best first, with its text; a few are read at a time."""
    table, scores = ranked.candidates.table, ranked.targets
    for start in range(0, min(len(scores), LOOKED_AT), MORE):
        places = range(start, min(len(scores), LOOKED_AT, start + MORE))
        keys = [table.ids[int(ranked.candidates.rows[scores.best[at]])] for at in places]
        texts = twins.texts(key for key in keys if key not in notes)
        for at, key in zip(places, keys, strict=True):
            if scores.files[at] >= 0:
                section = texts.get(key)
                text = "" if section is None else section.text
                yield Candidate(at, key, False, text, section)
            elif (note := notes.get(key)) is not None and _may_be_shown(asked, note):
                yield Candidate(at, key, True, note.record.text)


def _may_be_shown(asked: Asked, note: NoteRow) -> bool:
    return note.kind != "diary" or asked.asks_for("history")


def _file(
    asked: Asked,
    ranked: Ranked,
    one: Candidate,
    entities: Mapping[str, Mapping[str, EntityRow]],
) -> Target:
    table, scores, at = ranked.candidates.table, ranked.targets, one.place
    code, place = int(scores.files[at]), int(scores.best[at])
    path = table.files.paths[code]
    project = table.projects[int(table.files.project[code])]
    entity = entities.get(project, {}).get(path)
    row = int(ranked.candidates.rows[place])
    section = one.section
    title = (section.symbol or section.title) if section is not None else ""
    return Target(
        path=path,
        kind=entity.kind if entity is not None else "file",
        title=title or path,
        score=round(float(scores.score[at]), 6),
        reason="; ".join([*_reason(ranked, at, path, section), *_like_it(one, "file")]),
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


def _note(asked: Asked, ranked: Ranked, one: Candidate, note: NoteRow) -> Target:
    matched = ranked.words.within(note.record.text)
    place = int(ranked.targets.best[one.place])
    speaks = [f"speaks of {listed(matched)}"] if matched else []
    return Target(
        # What it says of itself; most notes are from no file.
        path=note.record.sources[0] if note.record.sources else "",
        kind=note.type if note.kind == "observation" else "diary",
        title=_beginning(note.record.text),
        score=round(float(ranked.targets.score[one.place]), 6),
        reason="; ".join([*speaks, *_like_it(one, "note")]),
        id=note.record.id,
        signals=ranked.rows.explain(place) if asked.sources else {},
        project=asked.projects.get(note.project or ""),
    )


def _like_it(one: Candidate, what: str) -> Iterator[str]:
    """How many more say nearly the same."""
    if one.alike:
        verb = "is" if one.alike == 1 else "are"
        yield f"{one.alike} more {what}{'s' * (one.alike != 1)} {verb} nearly the same"


def _beginning(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _TITLE else text[: _TITLE - 1].rstrip() + "…"


def _new(words: Iterable[str], said: set[str]) -> list[str]:
    return [word for word in words if word.lower() not in said]


def _folded(words: Iterable[str]) -> set[str]:
    return {word.lower() for word in words}
