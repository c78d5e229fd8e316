"""What a benchmark of projects found, as frozen values, and how people and programs see it.

In: one `ProjectOutcome` a question. Out: `ProjectReport`, columns of text, Markdown. It measures
nothing. Means are over the questions of a repository; means of those count each repository alike
in history, and each issue alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum

from rich.console import Group, RenderableType
from rich.text import Text

from anaphora.values.conversations import ImportProblem
from anaphora.values.projects import Quality
from bench.conversations.report import Latency
from bench.metrics import ndcg_at_k, recall_at_k, reciprocal_rank
from bench.project.sets import SetKind

__all__ = [
    "ALL_FILES",
    "FORMS",
    "PACKAGE",
    "PLAIN",
    "ProjectOutcome",
    "ProjectReport",
    "ProjectRow",
    "QualityRow",
    "report_of",
]

LABELS: tuple[Quality, ...] = ("strong", "partial", "weak")
FORMS = ("as written", "paths taken out")
"""The questions as they are, and without the wanted files' own names (`stripped`)."""

PLAIN, PACKAGE, ALL_FILES = "BM25 of files", "recall package", "package, all files"
"""The rankings. Of issues, the second passes over targets that are no `.py` files, the third does
not."""

ALL = "all"

TARGETS = 5
"""A file is found for the sake of a quality label when it is among so many targets."""


@dataclass(frozen=True, slots=True)
class ProjectOutcome:
    """What was found for one question in one form: paths best first, and what was wanted."""

    kind: SetKind
    repo: str
    question: str
    ranking: str
    form: str
    paths: tuple[str, ...]
    wanted: frozenset[str]
    quality: Quality

    @property
    def place(self) -> int:
        """The place of the first wanted file, from 1; 0 where there is none."""
        return next((n for n, path in enumerate(self.paths, 1) if path in self.wanted), 0)


@dataclass(frozen=True, slots=True)
class ProjectRow:
    """One ranking of one repository's questions. Shares from 0 to 1.

    `at_1` and `at_5`: questions with a wanted file among the first 1 or 5; `recall_at_10`: the
    share of the wanted files among the first 10; `mrr` and `ndcg_at_10` as everywhere.
    """

    kind: SetKind
    repo: str
    ranking: str
    form: str
    questions: int
    at_1: float
    at_5: float
    recall_at_10: float
    mrr: float
    ndcg_at_10: float


@dataclass(frozen=True, slots=True)
class QualityRow:
    """For one label: how many questions had it, and for how many a target was a wanted file."""

    kind: SetKind
    repo: str
    label: Quality
    questions: int
    found: int


@dataclass(frozen=True, slots=True)
class ProjectReport:
    """A run: rows by kind, repository, ranking and form, and what the labels were worth.

    `recall` times `recall_context`, with and without the embedding of the query; `tokens` is the
    mean size of a package's text. `stripped` counts questions that name a wanted file.
    """

    embedder: str
    files: int
    sections: int
    stripped: int
    rows: tuple[ProjectRow, ...]
    quality: tuple[QualityRow, ...]
    recall: Latency
    recall_without_embedding: Latency
    tokens: int
    index_seconds: float
    problems: tuple[ImportProblem, ...] = ()

    def render(self) -> RenderableType:
        """Columns for a terminal."""
        lines = [Text(self._head(), style="bold", overflow="fold")]
        for row in self.rows:
            name = f"{row.kind:<8} {row.repo:<20} {row.ranking:<18} {row.form:<16}"
            style = "bold" if row.ranking == PACKAGE else ""
            lines.append(Text(f"{name}{row.questions:>5}  {_cells(row, '  ')}", style=style))
        for one in self.quality:
            share = f"{one.found}/{one.questions}" if one.questions else "-"
            lines.append(Text(f"{one.kind:<8} {one.repo:<20} {one.label:<8} {share:>9} found"))
        lines.append(Text(self._cost(), style="dim", overflow="fold"))
        lines += [Text(f"problem: {p.path}: {p.reason}", style="yellow") for p in self.problems]
        return Group(*lines)

    def markdown(self) -> str:
        """The same for a file."""
        lines = [
            self._head() + ".",
            "",
            "| kind | repository | ranking | questions | n | @1 | @5 | recall@10 | MRR | nDCG@10 |",
            "|---|---|---|---|---:|---:|---:|---:|---:|---:|",
        ]
        for row in self.rows:
            head = f"| {row.kind} | {row.repo} | {row.ranking} | {row.form} | {row.questions} | "
            lines.append(head + _cells(row, " | ") + " |")
        lines += ["", "| kind | repository | label | questions | wanted file among 5 targets |"]
        lines.append("|---|---|---|---:|---:|")
        for one in self.quality:
            share = f"{one.found / one.questions:.2f}" if one.questions else "-"
            lines.append(f"| {one.kind} | {one.repo} | {one.label} | {one.questions} | {share} |")
        return "\n".join([*lines, "", self._cost() + "."]) + "\n"

    def _head(self) -> str:
        asked = {(r.kind, r.repo): r.questions for r in self.rows if r.repo != ALL}
        return (
            f"{len(asked)} sets, {self.files:,} files, {self.sections:,} sections, "
            f"{sum(asked.values()):,} questions, {self.stripped} of which name a wanted file"
        )

    def _cost(self) -> str:
        bare = self.recall_without_embedding
        return (
            f"recall p50 {self.recall.p50_ms:.1f} ms, p99 {self.recall.p99_ms:.1f} ms; without the "
            f"query's embedding {bare.p50_ms:.1f} and {bare.p99_ms:.1f} ms ({bare.calls:,} calls, "
            f"{self.embedder}); {self.tokens} tokens a package; indexing {self.index_seconds:.1f} s"
        )


def _cells(row: ProjectRow, joint: str) -> str:
    values = (row.at_1, row.at_5, row.recall_at_10, row.mrr, row.ndcg_at_10)
    return joint.join(f"{value:.3f}" for value in values)


def report_of(
    outcomes: Sequence[ProjectOutcome],
) -> tuple[tuple[ProjectRow, ...], tuple[QualityRow, ...]]:
    """The rows of a report: each repository, then the mean of each kind; the labels likewise."""
    rows = [_row(group) for group in _grouped(outcomes)]
    for kind, ranking, form in dict.fromkeys((r.kind, r.ranking, r.form) for r in rows):
        mine = [r for r in rows if (r.kind, r.ranking, r.form) == (kind, ranking, form)]
        if len(mine) > 1:
            rows.append(_all(mine))
    labelled = [o for o in outcomes if o.ranking == PACKAGE and o.form == FORMS[0]]
    quality = [
        _labelled(kind, repo, label, labelled)
        for kind, repo in dict.fromkeys((o.kind, o.repo) for o in labelled)
        for label in LABELS
    ]
    for kind, label in dict.fromkeys((one.kind, one.label) for one in quality):
        some = [one for one in quality if (one.kind, one.label) == (kind, label)]
        asked, found = sum(one.questions for one in some), sum(one.found for one in some)
        quality.append(QualityRow(kind, ALL, label, asked, found))
    return tuple(rows), tuple(quality)


def _grouped(outcomes: Sequence[ProjectOutcome]) -> Iterable[list[ProjectOutcome]]:
    groups: dict[tuple[str, ...], list[ProjectOutcome]] = {}
    for one in outcomes:
        groups.setdefault((one.kind, one.repo, one.form, one.ranking), []).append(one)
    return [groups[key] for key in sorted(groups)]


def _row(group: Sequence[ProjectOutcome]) -> ProjectRow:
    one = group[0]
    return ProjectRow(
        kind=one.kind,
        repo=one.repo,
        ranking=one.ranking,
        form=one.form,
        questions=len(group),
        at_1=_mean([float(o.place == 1) for o in group]),
        at_5=_mean([float(0 < o.place <= TARGETS) for o in group]),
        recall_at_10=_mean([recall_at_k(o.paths, o.wanted, 10) for o in group]),
        mrr=_mean([reciprocal_rank(o.paths, o.wanted) for o in group]),
        ndcg_at_10=_mean([ndcg_at_k(o.paths, o.wanted, 10) for o in group]),
    )


def _all(rows: Sequence[ProjectRow]) -> ProjectRow:
    """History: each repository alike. Issues: each issue alike."""
    counts = [1 if row.kind == "history" else row.questions for row in rows]

    def mean(values: Sequence[float]) -> float:
        return fsum(v * n for v, n in zip(values, counts, strict=True)) / sum(counts)

    one = rows[0]
    return ProjectRow(
        kind=one.kind,
        repo=ALL,
        ranking=one.ranking,
        form=one.form,
        questions=sum(row.questions for row in rows),
        at_1=mean([row.at_1 for row in rows]),
        at_5=mean([row.at_5 for row in rows]),
        recall_at_10=mean([row.recall_at_10 for row in rows]),
        mrr=mean([row.mrr for row in rows]),
        ndcg_at_10=mean([row.ndcg_at_10 for row in rows]),
    )


def _labelled(
    kind: SetKind, repo: str, label: Quality, outcomes: Sequence[ProjectOutcome]
) -> QualityRow:
    mine = [o for o in outcomes if (o.kind, o.repo, o.quality) == (kind, repo, label)]
    return QualityRow(kind, repo, label, len(mine), sum(0 < o.place <= TARGETS for o in mine))


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values) if values else 0.0
