"""How well the files that a task touches are found: `python -m bench.projects --data DIR`.

In: `DIR/projects`, projects with questions whose answers are known, or any such file or folder as
`--path`. Two forms are read, by what is in them: *history*, JSON of `{repo, files: {path: text},
queries: [{commit, query, files}]}`, where a commit's subject asks for the files that it touched;
and *issues*, an SQLite file with the tables `instance(instance_id, repo, query, gold, ...)`,
`file(instance_id, path, sha)` and `blob(sha, z)` (zlib), where a bug report asks for the `.py`
files that its fix edited. Out: shares by repository for BM25 over whole files and for the primary
targets of recall packages, ten at most, in bench/results/project.json and .md. Every question is
asked as it was written and with the wanted files' own names taken out.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sqlite3
import tempfile
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from statistics import fmean
from typing import Any, Final, Literal

from anaphora.api.memory import Memory
from anaphora.embed.base import Embedder
from anaphora.errors import InvalidInput, UnknownFormat
from anaphora.features.projects.values import IndexReport
from anaphora.language.analyser import analyse, query_terms
from bench.embedder import KeptEmbedder
from bench.figures import Figure, keep, show
from bench.metrics import recall_at_k, reciprocal_rank
from bench.plain import Bm25, ranked

__all__ = ["ProjectHome", "ProjectQuestion", "ProjectSet", "measure", "read_project_sets"]
__all__ += ["stripped"]

PLAIN, PACKAGE = "BM25 of files", "recall package"
FORMS: Final = ("as written", "paths taken out")
ALL: Final = "all"
_WRITTEN: Final = 1_600_000_000
"""Seconds since 1970: long ago, as of most files of a project."""
_BEST: Final = 10
_FEW: Final = 5

SetKind = Literal["history", "issues"]


@dataclass(frozen=True, slots=True)
class ProjectQuestion:
    """A question of a project: `wanted` are the paths that answer it, all in the project."""

    id: str
    text: str
    wanted: frozenset[str]


@dataclass(frozen=True, slots=True)
class ProjectSet:
    """A project's files at one moment, and what is asked of it."""

    kind: SetKind
    repo: str
    files: Mapping[str, str]
    questions: tuple[ProjectQuestion, ...]

    def asks_for(self, path: str) -> bool:
        """Whether a file is of the kind that answers: a bug report asks for `.py` files."""
        return self.kind == "history" or path.endswith(".py")


def read_project_sets(path: Path | str) -> Iterator[ProjectSet]:
    """The sets in a file, or in a folder and the folders below, in the order of their paths.

    Raises `InvalidInput` where nothing is, and `UnknownFormat` where a folder holds no file of
    either form, or one that is not of its form.
    """
    place = Path(path)
    if not place.exists():
        raise InvalidInput("path", str(place), "there is no such file or folder")
    files = [place] if place.is_file() else sorted(p for p in place.rglob("*") if p.is_file())
    known = [one for one in files if one.suffix in (".json", ".sqlite", ".db")]
    if not known:
        raise UnknownFormat("path", str(place), "no .json or .sqlite file of project questions")
    for one in known:
        yield from _history(one) if one.suffix == ".json" else _issues(one)


def _history(file: Path) -> Iterator[ProjectSet]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        files = {_inside(path): str(text) for path, text in found["files"].items()}
        questions = [
            _question(str(one["commit"]), str(one["query"]), one["files"], files)
            for one in found["queries"]
        ]
        yield ProjectSet("history", str(found["repo"]), files, tuple(q for q in questions if q))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnknownFormat("path", str(file), f"no project history: {error!r}") from error


def _issues(file: Path) -> Iterator[ProjectSet]:
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as database:
            rows = database.execute(
                "SELECT instance_id, repo, query, gold FROM instance ORDER BY instance_id"
            ).fetchall()
            for instance, repo, query, gold in rows:
                files = _files_of(database, instance)
                question = _question(instance, query, json.loads(gold), files)
                yield ProjectSet("issues", repo, files, (question,) if question else ())
    except (sqlite3.Error, zlib.error, OSError, ValueError, TypeError) as error:
        raise UnknownFormat("path", str(file), f"no project issues: {error!r}") from error


def _files_of(database: sqlite3.Connection, instance: str) -> dict[str, str]:
    rows = database.execute(
        "SELECT path, z FROM file JOIN blob USING (sha) WHERE instance_id = ? ORDER BY path",
        (instance,),
    )
    return {
        _inside(path): zlib.decompress(packed).decode("utf-8", "replace") for path, packed in rows
    }


def _inside(path: object) -> str:
    """A path as it may be written below a folder. ValueError for one that leads out of it."""
    parts = PurePosixPath(str(path)).parts
    if not parts or parts[0] == "/" or ".." in parts:
        raise ValueError(f"{path!r} is no path inside a project")
    return str(path)


def _question(
    name: str, text: str, wanted: Iterable[Any], files: Mapping[str, str]
) -> ProjectQuestion | None:
    """None where no wanted file is in the project: nothing could be found."""
    there = frozenset(str(one) for one in wanted if str(one) in files)
    return ProjectQuestion(name, text, there) if there else None


def stripped(question: ProjectQuestion) -> str:
    """The question without what gives the answer away: wanted files as they are written in it.

    Paths to them (of another machine too, as in a traceback), their bare file names, and their
    dotted module names (`package.module`, with what follows it left standing) go. The stem alone
    ("blueprints") stays: it is a word of the trade.
    """
    text = question.text
    for path in sorted(question.wanted):
        name = path.rsplit("/", 1)[-1]
        text = re.sub(rf"[\w.~*/\\:-]*(?<![\w-]){re.escape(name)}(?![\w-])", " ", text)
        module = _module(path)
        if "." in module:
            text = re.sub(rf"(?<![\w.]){re.escape(module)}(?!\w)\.?", " ", text)
    return text


def _module(path: str) -> str:
    stem = path.removeprefix("src/").rsplit(".", 1)[0]
    return stem.removesuffix("/__init__").replace("/", ".")


class ProjectHome:
    """One project in a home of its own; files are in a folder that is no git checkout, so that no
    history tells the answer, and all have one date. `close` removes both."""

    def __init__(self, files: Mapping[str, str], embedder: Embedder) -> None:
        """Write the files and index them, with their vectors."""
        self._folder = tempfile.TemporaryDirectory(prefix="anaphora-bench-")
        try:
            place = Path(self._folder.name)
            self._root = place / "project"
            _write_files(files, self._root)
            self._memory = Memory.open(place / "home", embedder=embedder, cache_size=0)
            self.indexed: IndexReport = self._memory.index_project(self._root)
            self._memory.ready()
        except BaseException:
            self._folder.cleanup()
            raise

    def close(self) -> None:
        """Let go of the home and of the disk."""
        self._memory.close()
        self._folder.cleanup()

    def ask(self, question: str) -> tuple[str, ...]:
        """The primary targets of a package of the default budget, best first."""
        package = self._memory.recall_context(question, project=str(self._root))
        return tuple(target.path for target in package.primary_targets)


def _write_files(files: Mapping[str, str], root: Path) -> None:
    root.mkdir()
    for path, text in files.items():
        place = root / PurePosixPath(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode("utf-8", "replace"))
        os.utime(place, (_WRITTEN, _WRITTEN))
    # Folders that have just changed would be looked through again with every question.
    for place in [root, *(one for one in root.rglob("*") if one.is_dir())]:
        os.utime(place, (_WRITTEN, _WRITTEN))


class _WholeFiles:
    """Plain BM25 over whole files, with the product's own analyser."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._paths = list(files)
        self._words = Bm25(list(files.values()), analyse, query_terms)

    def ask(self, question: str) -> tuple[str, ...]:
        """The paths that match, best first."""
        return tuple(self._paths[at] for at in ranked(self._words.scores(question), 0.0))


def run(data: Path, cache: Path | None = None) -> list[Figure]:
    """Measure the projects of the shared data; print and keep the figures."""
    figures = measure(data / "projects", KeptEmbedder(folder=cache))
    keep("project", "Finding the files that a task touches", figures)
    return figures


def measure(path: Path | str, embedder: Embedder) -> list[Figure]:
    """Shares by kind and repository, ranking and form.

    Raises `InvalidInput` for a path that is not there, and `UnknownFormat` where nothing can be
    asked.
    """
    shares: dict[str, list[dict[str, float]]] = defaultdict(list)
    for project in read_project_sets(path):
        for name, outcome in _ask(project, embedder) if project.questions else ():
            for repo in (project.repo, ALL):
                shares[f"{project.kind}, {repo}, {name}"].append(outcome)
    if not shares:
        raise UnknownFormat("path", str(path), "no question that can be answered")
    figures = []
    for name, outcomes in shares.items():
        figures.append(Figure(f"{name}: questions", len(outcomes)))
        figures += [
            Figure(f"{name}: {key}", fmean(one[key] for one in outcomes)) for key in outcomes[0]
        ]
    return figures


def _ask(project: ProjectSet, embedder: Embedder) -> Iterator[tuple[str, dict[str, float]]]:
    """(ranking and form, shares) of each question, in both rankings and forms."""
    asked_for = {p: text for p, text in project.files.items() if project.asks_for(p)}
    whole = _WholeFiles(asked_for)
    with closing(ProjectHome(project.files, embedder)) as home:
        for question in project.questions:
            for form, text in zip(FORMS, (question.text, stripped(question)), strict=True):
                package = tuple(filter(project.asks_for, home.ask(text)))
                for ranking, paths in ((PLAIN, whole.ask(text)), (PACKAGE, package)):
                    yield f"{ranking}, {form}", _shares(paths, question.wanted)


def _shares(paths: Sequence[str], wanted: frozenset[str]) -> dict[str, float]:
    right = [path in wanted for path in paths]
    return {
        "first": float(any(right[:1])),
        f"first {_FEW}": float(any(right[:_FEW])),
        f"recall@{_BEST}": recall_at_k(paths, wanted, _BEST),
        "MRR": reciprocal_rank(paths, wanted),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(prog="python -m bench.projects", description=__doc__)
    parser.add_argument("--data", type=Path, help="the folder of shared data")
    parser.add_argument("--path", type=Path, help="measure this file or folder alone")
    parser.add_argument("--cache", type=Path, help="a folder that keeps vectors")
    parser.add_argument("--embedder", default="minilm")
    chosen = parser.parse_args(arguments)
    if chosen.path is not None:
        show(str(chosen.path), measure(chosen.path, KeptEmbedder(chosen.embedder, chosen.cache)))
    elif chosen.data is not None:
        run(chosen.data, chosen.cache)
    else:
        parser.error("give --data or --path")


if __name__ == "__main__":
    main()
