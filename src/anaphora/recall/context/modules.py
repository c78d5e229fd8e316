"""The modules that a focus names, as targets and as memories: folders with their documents.

In: what was ranked, the texts of sections. Out: a target for each folder that is named, its score
above those of its files, and the beginning of its document. It names none that the focus does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from anaphora.rank.context.table import ROLES
from anaphora.rank.context.weights import DEFAULT_WEIGHTS
from anaphora.values.projects import ContextMemory, Target

if TYPE_CHECKING:
    from anaphora.index.sections.index import SectionIndex
    from anaphora.rank.context.modules import Folder
    from anaphora.recall.context.ranked import Asked, Ranked
    from anaphora.store.projects.source import SectionText

MODULES: Final = 2
"""Modules of a package, those that are named most surely."""

EXCERPT: Final = 160
"""Tokens of the document's beginning."""

_DRESS: Final = " \t#/*!<>-=;%\"'`"
_TITLE: Final = 80


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
        title=_title(section, document) or folder[1],
        score=score,
        reason="; ".join(_reason(ranked, folder, document)),
        role="unknown" if code is None else ROLES[int(table.files.role[code])],
        id=section.id if section is not None else "",
        project=project,
    )
    if section is None:
        return NamedModule(target, None)
    return NamedModule(target, _memory(ranked, section, target, document))


def _title(section: SectionText | None, document: str) -> str:
    """What the document calls itself; of one without a heading its first words."""
    if section is None:
        return ""
    if section.title and not document.endswith(section.title):
        return section.title
    lines = (line.strip(_DRESS) for line in section.text.splitlines())
    return next((line for line in lines if line), "")[:_TITLE]


def _reason(ranked: Ranked, folder: Folder, document: str) -> Iterator[str]:
    yield "the focus names this module"
    files = ranked.modules.files(folder)
    yield f"{files} file{'s' * (files != 1)}"
    if document:
        yield f"described by {document}"


def _memory(ranked: Ranked, section: SectionText, target: Target, document: str) -> ContextMemory:
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
