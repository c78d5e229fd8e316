"""The places to look at first, each with a reason that a person understands.

Targets are modules that the focus names, files and notes, no two of them nearly the same. A file or
note is one only with a word of the focus; being near in meaning alone does not suffice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from anaphora.features.projects.ranking.choice import alike, shingles
from anaphora.features.projects.ranking.editions import edition_of
from anaphora.features.projects.ranking.table import ROLES
from anaphora.features.projects.ranking.weights import DEFAULT_WEIGHTS
from anaphora.features.projects.recall.excerpts import EXCERPT, listed
from anaphora.features.projects.values import Target
from anaphora.store.records.rows import DOCUMENT, DOCUMENT_SECTION
from anaphora.store.records.titles import part_title
from anaphora.values.context import ContextMemory

if TYPE_CHECKING:
    from anaphora.features.projects.ranking.names import Folder
    from anaphora.features.projects.recall.candidates import RankedCandidates
    from anaphora.features.projects.store.graph_rows import EntityRow
    from anaphora.features.projects.store.notes import NoteRow
    from anaphora.features.projects.store.source import SectionText


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

MODULES: Final = 2
"""Modules of a package, those that are named most surely."""

_TITLE: Final = 80
_LOOKED_AT: Final = 20_000
"""Characters of a note in which the words of a focus are looked for, to say why it came."""
_MARKUP: Final = " \t#/*!<>-=;%\"'`"

_SKETCHED: Final = 1_000
"""Characters by which two texts are compared first."""

_SECTIONS: Final = 40
"""Sections of a file that are compared: files that agree in so many are the same."""


def targets(
    ranked: RankedCandidates,
    entities: Mapping[str, Mapping[str, EntityRow]],
    modules: Sequence[NamedModule],
) -> list[Target]:
    """Modules, files and notes, best first. `entities` are of the files, by project and path.

    Of files or notes that say nearly the same the best one speaks for the others, and says how
    many they are. Beside files, diary entries are targets only where the focus asks to go on, or
    for history.
    """
    max_targets = NOTE_PLACES if (ranked.targets.files >= 0).any() else TARGETS
    chosen_candidates: list[TargetCandidate] = []
    of_notes = 0
    for candidate in _list_possible(ranked):
        twin = next(
            (
                better_candidate
                for better_candidate in chosen_candidates
                if candidate.same_as(better_candidate)
            ),
            None,
        )
        edition = candidate.edition
        better_edition = next(
            (
                better_candidate
                for better_candidate in chosen_candidates
                if edition and better_candidate.edition == edition
            ),
            None,
        )
        if int(ranked.targets.files[candidate.place]) in ranked.by_name:
            # A focus that names an edition wants that one.
            better_edition = None
        if twin is not None:
            twin.alike += 1
        elif better_edition is not None:
            better_edition.editions += 1
        elif candidate.note is None or of_notes < max_targets:
            of_notes += candidate.note is not None
            chosen_candidates.append(candidate)
        if len(chosen_candidates) == MORE:
            break
    ranked_targets = [
        _make_file_target(o, entities) if o.note is None else _make_note_target(o, o.note)
        for o in chosen_candidates
    ]
    # Modules are in the order of their own scores; nothing else changes places.
    return sorted(
        (*(target.target for target in modules), *ranked_targets), key=lambda target: -target.score
    )


def target_section_keys(ranked: RankedCandidates, start: int = 0) -> list[str]:
    """The ids of the best sections of the files among `MORE` ranked targets from `start` on."""
    files, best_indexes = ranked.targets.files, ranked.targets.best
    end = min(len(ranked.targets), LOOKED_AT, start + MORE)
    return [ranked.key(int(best_indexes[at])) for at in range(start, end) if files[at] >= 0]


@dataclass
class TargetCandidate:
    """A place among the ranked targets: a note, or a file by its best section (None: it is gone).

    `alike` counts worse ranked ones that say nearly the same, `editions` those that are another
    version or translation of the same document.
    """

    ranked: RankedCandidates
    place: int
    note: NoteRow | None
    section: SectionText | None
    alike: int = 0
    editions: int = 0

    @cached_property
    def sketch(self) -> frozenset[int]:
        """The shingles of its first words."""
        text = "" if self.section is None else self.section.text
        if self.note is not None:
            text = self.note.record.text
        return shingles(text[:_SKETCHED].split())

    @cached_property
    def whole(self) -> frozenset[int]:
        """The shingles of a whole file."""
        table = self.ranked.table
        rows = np.flatnonzero(table.file == self.ranked.targets.files[self.place])
        rows = rows[np.argsort(table.start_line[rows], kind="stable")][:_SECTIONS]
        texts = self.ranked.question.reader.sections(table.ids[row] for row in rows.tolist())
        return shingles([word for section in texts.values() for word in section.text.split()])

    @cached_property
    def edition(self) -> tuple[int, str] | None:
        """Which document of which project a file is an edition of; None where it is of none."""
        code = int(self.ranked.targets.files[self.place])
        if code < 0:
            return None
        files = self.ranked.table.files
        document = edition_of(files.paths[code])
        return (int(files.project[code]), document) if document else None

    def same_as(self, other: TargetCandidate) -> bool:
        """Whether both say nearly the same, so that one of them speaks for the other.

        Files are the same where their best sections are and their whole texts too: two that share a
        licence or a heading are not.
        """
        if (self.note is None) != (other.note is None) or not alike(self.sketch, other.sketch):
            return False
        return self.note is not None or alike(self.whole, other.whole)


def _list_possible(ranked: RankedCandidates) -> Iterator[TargetCandidate]:
    """What may be a target, best first, with its text; a few are read at a time."""
    question, scores = ranked.question, ranked.targets
    max_scores = min(len(scores), LOOKED_AT)
    diary = question.asks_for("history") or not (scores.files >= 0).any()
    for start in range(0, max_scores, MORE):
        sections = question.reader.sections(target_section_keys(ranked, start))
        for at in range(start, min(max_scores, start + MORE)):
            key = ranked.key(int(scores.best[at]))
            if scores.files[at] >= 0:
                yield TargetCandidate(ranked, at, None, sections.get(key))
                continue
            note = question.reader.notes([key]).get(key)
            if note is not None and (note.kind != "diary" or diary):
                yield TargetCandidate(ranked, at, note, None)


def _make_file_target(
    candidate: TargetCandidate, entities: Mapping[str, Mapping[str, EntityRow]]
) -> Target:
    ranked_candidates, at = candidate.ranked, candidate.place
    table, scores = ranked_candidates.table, ranked_candidates.targets
    code, best_index = int(scores.files[at]), int(scores.best[at])
    path = table.files.paths[code]
    project = table.projects[int(table.files.project[code])]
    entity = entities.get(project, {}).get(path)
    row = ranked_candidates.row(best_index)
    section = candidate.section
    title = (section.symbol or section.title) if section is not None else ""
    return Target(
        path=path,
        kind=entity.kind if entity is not None else "file",
        title=title or path,
        score=round(float(scores.score[at]), 6),
        reason="; ".join([*_explain(candidate, path), *_explain_similar(candidate, "file")]),
        role=ROLES[int(table.files.role[code])],
        id=table.ids[row],
        start_line=int(table.start_line[row]),
        end_line=int(table.end_line[row]),
        signals=ranked_candidates.signals(best_index),
        project=ranked_candidates.question.projects.get(project),
    )


def _explain(candidate: TargetCandidate, path: str) -> Iterator[str]:
    """Why a file is a target: what is named, what it defines, what of it matches."""
    ranked_candidates, at, section = candidate.ranked, candidate.place, candidate.section
    if int(ranked_candidates.targets.files[at]) in ranked_candidates.by_name:
        yield "the focus names this file"
    mentioned_words: set[str] = set()

    def new(words: Iterable[str]) -> list[str]:
        return [word for word in words if word.lower() not in mentioned_words]

    symbol = section.symbol if section is not None else None
    for phrase, text in (
        (f"defines `{symbol}`", symbol),
        ("its title matches", section.title if section is not None else ""),
        ("path matches", path),
    ):
        matched_words = new(ranked_candidates.words.within(text)) if text else []
        if matched_words:
            yield phrase if text is symbol else f"{phrase} {listed(matched_words)}"
            mentioned_words |= {word.lower() for word in matched_words}
    if section is not None:
        matched_words = new(
            ranked_candidates.words.shown(ranked_candidates.excerpts.held(section.text), 6)
        )[:3]
        if matched_words:
            adverb = "also " if mentioned_words else ""
            yield f"its text {adverb}has {listed(matched_words)}"
    cosine = ranked_candidates.candidates.cosine
    if cosine is not None and cosine[ranked_candidates.targets.best[at]] >= CLOSE:
        yield "close in meaning"


def _make_note_target(candidate: TargetCandidate, note: NoteRow) -> Target:
    ranked_candidates = candidate.ranked
    text = note.record.text[:_LOOKED_AT]
    matched_words = ranked_candidates.words.within(text)
    speaks = [f"speaks of {listed(matched_words)}"] if matched_words else []
    title = " ".join(text.split())
    kind = note.type if note.kind == "observation" else "diary"
    if note.kind == DOCUMENT_SECTION:
        title, kind = part_title(note.record), DOCUMENT
    if len(title) > _TITLE:
        title = title[: _TITLE - 1].rstrip() + "…"
    return Target(
        # What it says of itself; most notes are from no file.
        path=note.record.sources[0] if note.record.sources else "",
        kind=kind,
        title=title,
        score=round(float(ranked_candidates.targets.score[candidate.place]), 6),
        reason="; ".join([*speaks, *_explain_similar(candidate, "note")]),
        id=note.record.id,
        signals=ranked_candidates.signals(int(ranked_candidates.targets.best[candidate.place])),
        project=ranked_candidates.question.projects.get(note.project or ""),
    )


def _explain_similar(candidate: TargetCandidate, noun: str) -> Iterator[str]:
    """How many more say nearly the same."""
    if candidate.alike:
        verb = "is" if candidate.alike == 1 else "are"
        yield f"{candidate.alike} more {noun}{'s' * (candidate.alike != 1)} {verb} nearly the same"
    if candidate.editions:
        yield f"{candidate.editions} more in other versions or languages"


@dataclass(frozen=True, slots=True)
class NamedModule:
    """A folder that the focus names, as a target, and its document's beginning where it has one."""

    target: Target
    memory: ContextMemory | None


def named_modules(ranked: RankedCandidates) -> list[NamedModule]:
    """The folders that the focus names, best first; their scores are above those of their files."""
    projects = ranked.question.projects
    files, scores = ranked.table.files, ranked.targets.score
    ranked_files = list(zip(ranked.targets.files.tolist(), scores, strict=True))
    scored_modules = []
    for folder, sure in ranked.modules.named(ranked.question.mentions).items():
        if ranked.table.projects[folder[0]] not in projects:
            continue
        within = folder[1] + "/"
        best_score = 0.0
        for code, score in ranked_files:
            in_project = code >= 0 and files.project[code] == folder[0]
            if in_project and files.paths[code].startswith(within):
                best_score = float(score)
                break
        scored_modules.append((round(best_score + DEFAULT_WEIGHTS.named * sure, 6), folder))
    scored_modules.sort(key=lambda pair: (-pair[0], pair[1][1]))
    return [_make_module(ranked, folder, score) for score, folder in scored_modules[:MODULES]]


def beginning_of(ranked: RankedCandidates, code: int) -> int | None:
    """The row of a file's first section, None for a file without any."""
    table = ranked.table
    rows = np.flatnonzero(table.file == code)
    rows = rows[[bool(table.ids[row]) for row in rows.tolist()]] if len(rows) else rows
    return int(rows[np.argmin(table.start_line[rows])]) if len(rows) else None


def _make_module(ranked: RankedCandidates, folder: Folder, score: float) -> NamedModule:
    table = ranked.table
    code = ranked.modules.document(folder)
    row = None if code is None else beginning_of(ranked, code)
    sections = {} if row is None else ranked.question.reader.sections([table.ids[row]])
    section = next(iter(sections.values()), None)
    document = "" if code is None else table.files.paths[code]
    files = ranked.modules.files(folder)
    reasons = ["the focus names this module", f"{files} file{'s' * (files != 1)}"]
    if document:
        reasons.append(f"described by {document}")
    # What the document calls itself; without a heading its first words.
    title = ""
    if section is not None and section.title and not document.endswith(section.title):
        title = section.title
    elif section is not None:
        lines = (line.strip(_MARKUP) for line in section.text.splitlines())
        title = next(filter(None, lines), "")[:_TITLE]
    target = Target(
        path=folder[1],
        kind="module",
        title=title or folder[1],
        score=score,
        reason="; ".join(reasons),
        role="unknown" if code is None else ROLES[int(table.files.role[code])],
        id=section.id if section is not None else "",
        project=ranked.question.projects.get(table.projects[folder[0]]),
    )
    if section is None:
        return NamedModule(target, None)
    excerpt = ranked.excerpts.of(section.text, section.start_line, EXCERPT)
    memory = ContextMemory(
        id=section.id,
        kind="module",
        title=target.path,
        text=excerpt.text,
        score=target.score,
        path=document,
        start_line=excerpt.start_line,
        end_line=excerpt.end_line,
        project=target.project,
    )
    return NamedModule(target, memory)
