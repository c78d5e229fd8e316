"""The places to look at first, each with a reason that a person understands.

In: ranked files and notes, modules that are named, the graph's names for what files define. Out:
targets, best first, no two that are nearly the same. A target always holds a word of the focus;
what only lies near in meaning is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from anaphora.rank.context.choice import alike, shingles
from anaphora.rank.context.table import ROLES
from anaphora.rank.context.weights import DEFAULT_WEIGHTS
from anaphora.recall.context.excerpts import listed
from anaphora.values.projects import ContextMemory, Target

if TYPE_CHECKING:
    from anaphora.index.sections.index import SectionIndex
    from anaphora.index.sections.source import SectionText
    from anaphora.rank.context.names import Folder
    from anaphora.recall.context.candidates import Asked, Ranked
    from anaphora.store.projects.graph_rows import EntityRow
    from anaphora.store.projects.notes import NoteRow


_SKETCHED: Final = 1_000
"""Characters by which two texts are compared first."""
_SECTIONS: Final = 40
"""Sections of a file that are compared; who agrees in so many is the same."""


@dataclass(slots=True)
class Candidate:
    """A place among the ranked targets: the key of its best section or note, and its words.

    `alike` counts worse ranked ones that say nearly the same.
    """

    place: int
    key: str
    is_note: bool
    text: str
    section: SectionText | None = None
    alike: int = 0


class Twins:
    """What one question has compared so far."""

    def __init__(self, ranked: Ranked, index: SectionIndex) -> None:
        self._ranked = ranked
        self._index = index
        self._sketches: dict[int, frozenset[int]] = {}
        self._files: dict[int, frozenset[int]] = {}

    def texts(self, keys: Iterable[str]) -> dict[str, SectionText]:
        """The sections of these keys that are still there."""
        return self._index.texts(keys)

    def of(self, one: Candidate, kept: Sequence[Candidate]) -> bool:
        """Whether one that was kept says nearly the same: it then counts this one."""
        mine = self._sketch(one)
        for other in kept:
            if one.is_note != other.is_note or not alike(mine, self._sketch(other)):
                continue
            if one.is_note or alike(self._file(one), self._file(other)):
                other.alike += 1
                return True
        return False

    def _sketch(self, one: Candidate) -> frozenset[int]:
        if one.place not in self._sketches:
            self._sketches[one.place] = shingles(one.text[:_SKETCHED].split())
        return self._sketches[one.place]

    def _file(self, one: Candidate) -> frozenset[int]:
        if one.place not in self._files:
            table = self._ranked.candidates.table
            rows = np.flatnonzero(table.file == self._ranked.targets.files[one.place])
            rows = rows[np.argsort(table.start_line[rows], kind="stable")][:_SECTIONS]
            ids = [table.ids[row] for row in rows.tolist()]
            texts = self._index.texts(ids)
            words = [word for key in ids if key in texts for word in texts[key].text.split()]
            self._files[one.place] = shingles(words)
        return self._files[one.place]


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


MODULES: Final = 2
"""Modules of a package, those that are named most surely."""

EXCERPT: Final = 160
"""Tokens of the document's beginning."""

_DRESS: Final = " \t#/*!<>-=;%\"'`"


@dataclass(frozen=True, slots=True)
class NamedModule:
    """A folder that the focus names, as a target, and its document's beginning where it has one."""

    target: Target
    memory: ContextMemory | None


def named_modules(asked: Asked, ranked: Ranked, index: SectionIndex) -> list[NamedModule]:
    """The folders that the focus names, best first."""
    names = [(one.text, one.kind, one.weight) for one in asked.reading.mentions]
    found = ranked.modules.named(names)
    mine = {f: sure for f, sure in found.items() if _project(ranked, f) in asked.projects}
    made = [_module(asked, ranked, index, folder, sure) for folder, sure in mine.items()]
    return sorted(made, key=lambda one: (-one.target.score, one.target.path))[:MODULES]


def beginning_of(ranked: Ranked, code: int) -> int | None:
    """The row of a file's first section, None for a file without any."""
    table = ranked.candidates.table
    rows = np.flatnonzero(table.file == code)
    rows = rows[[bool(table.ids[row]) for row in rows.tolist()]] if len(rows) else rows
    return int(rows[np.argmin(table.start_line[rows])]) if len(rows) else None


def _module(
    asked: Asked, ranked: Ranked, index: SectionIndex, folder: Folder, sure: float
) -> NamedModule:
    table = ranked.candidates.table
    code = ranked.modules.document(folder)
    row = None if code is None else beginning_of(ranked, code)
    section = None if row is None else next(iter(index.texts([table.ids[row]]).values()), None)
    score = round(_best_within(ranked, folder) + DEFAULT_WEIGHTS.named * sure, 6)
    project = asked.projects.get(_project(ranked, folder))
    document = "" if code is None else table.files.paths[code]
    target = Target(
        path=folder[1],
        kind="module",
        title=_module_title(section, document) or folder[1],
        score=score,
        reason="; ".join(_module_reason(ranked, folder, document)),
        role="unknown" if code is None else ROLES[int(table.files.role[code])],
        id=section.id if section is not None else "",
        project=project,
    )
    if section is None:
        return NamedModule(target, None)
    return NamedModule(target, _module_memory(ranked, section, target, document))


def _module_title(section: SectionText | None, document: str) -> str:
    """What the document calls itself; of one without a heading its first words."""
    if section is None:
        return ""
    if section.title and not document.endswith(section.title):
        return section.title
    lines = (line.strip(_DRESS) for line in section.text.splitlines())
    return next((line for line in lines if line), "")[:_TITLE]


def _module_reason(ranked: Ranked, folder: Folder, document: str) -> Iterator[str]:
    yield "the focus names this module"
    files = ranked.modules.files(folder)
    yield f"{files} file{'s' * (files != 1)}"
    if document:
        yield f"described by {document}"


def _module_memory(
    ranked: Ranked, section: SectionText, target: Target, document: str
) -> ContextMemory:
    found = ranked.excerpts.of(section.text, section.start_line, EXCERPT)
    return ContextMemory(
        id=section.id,
        kind="module",
        title=target.path,
        text=found.text,
        score=target.score,
        path=document,
        start_line=found.start_line,
        end_line=found.end_line,
        project=target.project,
    )


def _best_within(ranked: Ranked, folder: Folder) -> float:
    """The score of the best ranked file in a folder."""
    files = ranked.candidates.table.files
    within = folder[1] + "/"
    for code, score in zip(ranked.targets.files.tolist(), ranked.targets.score, strict=True):
        if code >= 0 and files.project[code] == folder[0] and files.paths[code].startswith(within):
            return float(score)
    return 0.0


def _project(ranked: Ranked, folder: Folder) -> str:
    return ranked.candidates.table.projects[folder[0]]
