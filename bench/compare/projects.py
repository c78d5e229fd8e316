"""Which files does a task touch? Commit subjects and bug reports, asked of whole repositories.

In: histories and issues of the shared data. Out: rows of scores. BM25 ranks whole files; cosine,
RRF and the products get pieces of 1,000 characters, each with its path before it, and a file stands
where its best piece does; Anaphora is `recall_context` with its defaults, ten files at most.
Questions have the wanted files' own names taken out. Bug reports ask for `.py` files: others are
passed over in every ranking.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from bench.compare.asked import cut
from bench.compare.contestants import Child, Contestant
from bench.compare.quality import ALL, Outcome, Place, Row, scored, somewhere
from bench.fit_project import Kept
from bench.metrics import recall_at_k, reciprocal_rank
from bench.project.road import ProjectRoad
from bench.project.sets import (
    ProjectQuestion,
    ProjectSet,
    read_project_sets,
    stripped,
)

__all__ = ["WHO", "pieces", "project_sets", "projects"]

WHO = ("bm25", "cosine", "rrf", "chroma", "lancedb", "anaphora")
POOL = 100
"""Pieces that are asked for: enough for ten files."""

Given = list[tuple[str, str, str]]


def project_sets(data: Path) -> list[ProjectSet]:
    """The sets that something is asked of."""
    found = read_project_sets(data / "projects")
    return [one for one in found if isinstance(one, ProjectSet) and one.questions]


def pieces(one: ProjectSet) -> Iterator[tuple[str, str, str]]:
    """(path#number, path and piece, "") of the files that can answer."""
    for path, text in one.files.items():
        if one.asks_for(path):
            for number, piece in enumerate(cut(text)):
                yield f"{path}#{number}", f"{path}\n{piece}", ""


def projects(place: Place, data: Path, who: Sequence[Contestant]) -> list[Row]:
    """Every question of every repository, to every contestant."""
    sets = project_sets(data)
    rows = []
    for one in who:
        if one.name not in WHO:
            continue
        print(f"projects: {one.shown}", flush=True)
        outcomes = _own(place, sets) if one.name == "anaphora" else _others(place, one, sets)
        for group in dict.fromkeys(outcome.group for outcome in outcomes):
            some = [outcome for outcome in outcomes if outcome.group == group]
            rows.append(Row(one.shown, "", group, ALL, len(some), scored(some, _FIGURES)))
        history = [outcome for outcome in outcomes if outcome.category == "history"]
        rows.append(
            Row(one.shown, "", "history, all", ALL, len(history), scored(history, _FIGURES))
        )
    return rows


_FIGURES = {
    "accuracy@1": lambda ranked, wanted: float(any(one in wanted for one in ranked[:1])),
    "accuracy@5": lambda ranked, wanted: float(any(one in wanted for one in ranked[:5])),
    "recall@10": lambda ranked, wanted: recall_at_k(ranked, wanted, 10),
    "MRR": lambda ranked, wanted: reciprocal_rank(ranked[:10], wanted),
}


def _others(place: Place, one: Contestant, sets: Sequence[ProjectSet]) -> list[Outcome]:
    outcomes = []
    with somewhere() as folder:
        home = Path(folder)
        with Child(one, place.environments, home=home) as child:
            child.ask("open", **place.opening(one.name, home / "store"))
            for number, found in enumerate(sets):
                child.ask("add", space=f"project-{number}", texts=_given(one, found))
                for question in found.questions:
                    text = stripped(question)
                    got = child.ask("search", space=f"project-{number}", query=text, k=POOL)
                    paths = dict.fromkeys(id.rsplit("#", 1)[0] for id in got.result)  # noqa: A001
                    outcomes.append(_outcome(found, question, tuple(paths)))
    return outcomes


def _given(one: Contestant, found: ProjectSet) -> Given:
    if one.name != "bm25":
        return list(pieces(found))
    return [
        (path, f"{path}\n{text}", "")
        for path, text in found.files.items()
        if found.asks_for(path) and text.strip()
    ]


def _own(place: Place, sets: Sequence[ProjectSet]) -> list[Outcome]:
    outcomes = []
    kept = Kept(place.cache / "own-projects.npz")
    for found in sets:
        with closing(ProjectRoad(found.files, kept)) as road:
            for question in found.questions:
                paths = tuple(filter(found.asks_for, road.ask(stripped(question)).paths))
                outcomes.append(_outcome(found, question, paths))
        kept.keep()
    return outcomes


def _outcome(found: ProjectSet, question: ProjectQuestion, paths: Sequence[str]) -> Outcome:
    group = f"history: {found.repo}" if found.kind == "history" else "issues"
    return Outcome(group, found.kind, paths, question.wanted)
