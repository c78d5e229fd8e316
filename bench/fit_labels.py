"""Where the marks of the quality label lie, and what labels are worth on a repository left out.

In: project histories, an embedder. Out: a table as Markdown. Each project is asked its own
questions and some of other projects, which it cannot answer. The marks are set on all repositories
but one, a project's own questions weighing as much as those of strangers:

- strong: the lowest mark at which 0.9 of the questions above it find a wanted file among the first
  five targets;
- partial: the lowest at which half of those between it and strong do.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from anaphora.embed.base import Embedder
from anaphora.rank.context.scores import PARTIAL, SECOND, STRONG, support_of
from bench.project.room import ProjectRoom
from bench.project.sets import ProjectSet, read_project_sets

RIGHT_IF_STRONG = 0.9
RIGHT_IF_PARTIAL = 0.5
EVERY = 3
"""Of the questions of other projects, every third is asked."""
LEAST = 20
"""Questions that a share must be of."""


@dataclass(frozen=True)
class Labelled:
    """One question asked of a project: `repo` is where it comes from."""

    project: str
    repo: str
    support: float
    found: bool

    @property
    def strange(self) -> bool:
        """Whether the project cannot answer it."""
        return self.project != self.repo


def labelled(data: Path, embedder: Embedder) -> list[Labelled]:
    """All questions of the histories, and some of other projects asked of each."""
    sets = [s for s in read_project_sets(data / "projects") if isinstance(s, ProjectSet)]
    found = []
    for project in (one for one in sets if one.kind == "history"):
        with closing(ProjectRoom(project.files, embedder)) as room:
            for other in sets:
                if other.repo == project.repo and other is not project:
                    continue
                for question in other.questions[:: 1 if other is project else EVERY]:
                    seen = room.see(question.text)
                    targets = room.targets(seen)
                    support = support_of(targets, len(seen.reading.weights))
                    if (targets.grounded >= SECOND).sum() < 2:
                        support = min(support, np.nextafter(STRONG, 0.0))
                    first = set(room.paths(targets)[:5])
                    right = other is project and bool(first & question.wanted)
                    found.append(Labelled(project.repo, other.repo, float(support), right))
    return found


def marks(questions: Sequence[Labelled]) -> tuple[float, float]:
    """The marks of strong and partial that these questions give."""
    support = np.array([one.support for one in questions])
    right = np.array([one.found for one in questions], np.float64)
    groups = [(one.project, one.strange) for one in questions]
    weight = np.array([1.0 / groups.count(group) for group in groups])

    def lowest(below: float, share: float) -> float:
        for mark in np.quantile(support, np.linspace(0.0, 0.99, 100)).tolist():
            among = (support >= mark) & (support < below)
            if among.sum() > LEAST and np.average(right[among], weights=weight[among]) >= share:
                return float(mark)
        return below

    strong = lowest(np.inf, RIGHT_IF_STRONG)
    return strong, lowest(strong, RIGHT_IF_PARTIAL)


def table(questions: Sequence[Labelled]) -> str:
    """For each repository: marks set without it, and what its labels are then worth."""
    lines = [
        "| left out | marks | strong: n, found | partial | weak | strangers: shares of the three |",
        "|---|---|---|---|---|---|",
    ]
    repos = list(dict.fromkeys(one.project for one in questions))
    for repo in repos:
        others = [one for one in questions if repo not in (one.project, one.repo)]
        mine = [one for one in questions if one.project == repo]
        lines.append(_row(repo, mine, marks(others)))
    lines.append(_row("none: the product's marks", questions, (STRONG, PARTIAL)))
    every = marks(questions)
    lines += ["", f"Set on all of them the marks would be {every[0]:.2f} and {every[1]:.2f}."]
    return "\n".join(lines)


def _row(name: str, mine: Sequence[Labelled], at: tuple[float, float]) -> str:
    cells, strangers = [], []
    asked = [one for one in mine if one.strange]
    for low, high in ((at[0], np.inf), (at[1], at[0]), (-np.inf, at[1])):
        own = [one for one in mine if not one.strange and low <= one.support < high]
        right = f"{sum(one.found for one in own) / len(own):.2f}" if own else "-"
        cells.append(f"{len(own)}, {right}")
        strangers.append(f"{sum(low <= s.support < high for s in asked) / len(asked):.2f}")
    return f"| {name} | {at[0]:.2f}, {at[1]:.2f} | {' | '.join(cells)} | {', '.join(strangers)} |"
