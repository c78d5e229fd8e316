"""What one question has found so far, and small answers about it that several stages need.

In: nothing of its own. Out: frozen values that travel between the stages of the context lane.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from anaphora.index.sections.state import SectionCandidates
from anaphora.rank.context.files import TargetScores
from anaphora.rank.context.modules import Modules
from anaphora.rank.context.sections import RowScores
from anaphora.recall.context.excerpt import Excerpts
from anaphora.recall.context.focus import Reading
from anaphora.recall.context.words import FocusWords
from anaphora.values.projects import Focus


@dataclass(frozen=True, slots=True)
class Asked:
    """The question: its reading, the projects it is about (id to name), and how it is answered."""

    reading: Reading
    projects: Mapping[str, str]
    sources: bool = False

    @property
    def focus(self) -> Focus:
        """The focus as it was read."""
        return self.reading.focus

    def asks_for(self, intent: str) -> bool:
        """Whether the focus appears to need this kind of context."""
        return intent in self.focus.intents


@dataclass(frozen=True, slots=True)
class Ranked:
    """Candidates with their scores, and the places to look at first, best first.

    `by_name` are the codes of files that the focus calls by their path or module; `modules` are
    all folders there are.
    """

    candidates: SectionCandidates
    rows: RowScores
    targets: TargetScores
    words: FocusWords
    excerpts: Excerpts
    by_name: frozenset[int] = frozenset()
    modules: Modules = field(default_factory=lambda: Modules((), ()))

    def best_files(self, most: int) -> dict[str, list[str]]:
        """The paths of the best files, by project."""
        table = self.candidates.table
        found: dict[str, list[str]] = {}
        codes = [code for code in self.targets.files.tolist() if code >= 0]
        for code in codes[:most]:
            project = table.projects[int(table.files.project[code])]
            found.setdefault(project, []).append(table.files.paths[code])
        return found

    def project(self, row: int) -> str:
        """The id of a row's project, "" for a note of none."""
        table = self.candidates.table
        return table.projects[int(table.project[row])]

    def path(self, row: int) -> str | None:
        """The path of a row's file, None for a note."""
        table = self.candidates.table
        code = int(table.file[row])
        return None if code < 0 else table.files.paths[code]
