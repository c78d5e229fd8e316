"""Reads projects with questions whose answers are known: which files did a change touch?

In: a file or folder. Out: `ProjectSet`s, one after the other. Two forms are read, by what is in
them: *history*, JSON of `{repo, files: {path: text}, queries: [{commit, query, files}]}`, where a
commit's subject asks for the files that it touched; and *issues*, an SQLite file with the tables
`instance(instance_id, repo, query, gold, …)`, `file(instance_id, path, sha)` and `blob(sha, z)`
(zlib), where a bug report asks for the files that its fix edited, which are `.py` files. It ranks
nothing.
"""

from __future__ import annotations

import json
import re
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from anaphora.errors import InvalidInput, UnknownFormat
from anaphora.values.conversations import ImportProblem

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


def read_project_sets(path: Path | str) -> Iterator[ProjectSet | ImportProblem]:
    """The sets in a file, or in a folder and the folders below, in the order of their paths.

    What cannot be read is an `ImportProblem`. Raises `InvalidInput` where nothing is, and
    `UnknownFormat` where a folder holds no file of either form.
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


def _history(file: Path) -> Iterator[ProjectSet | ImportProblem]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        files = {_inside(path): str(text) for path, text in found["files"].items()}
        questions = [
            _question(str(one["commit"]), str(one["query"]), one["files"], files)
            for one in found["queries"]
        ]
        yield ProjectSet("history", str(found["repo"]), files, tuple(q for q in questions if q))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        yield ImportProblem(str(file), "", f"no project history: {error!r}")


def _issues(file: Path) -> Iterator[ProjectSet | ImportProblem]:
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
        yield ImportProblem(str(file), "", f"no project issues: {error!r}")


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
