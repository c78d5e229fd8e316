"""A project of some thousand files, made of the repositories of the shared data.

In: the folder of shared data. Out: paths and texts. Every state of every repository lies in a
folder of its own: the four of the history sets at one commit, then the `.py` files of 13 states of
three more (SWE-bench), then the four again under other names, until there are enough. Of 3,000
files 1,558 differ: the states of one repository share many. Nothing is kept of a text that was
seen before, so that each file costs what a new one does; only its vectors would be shared.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from itertools import count, islice
from pathlib import Path

_STATES = (
    "SELECT i.instance_id, f.path, b.z FROM instance i JOIN file f USING (instance_id) "
    "JOIN blob b USING (sha) ORDER BY i.instance_id, f.path"
)


def large_project(data: Path, files: int) -> dict[str, str]:
    """So many files, by path: always the same ones."""
    return dict(islice(_all_files(data), files))


def _all_files(data: Path) -> Iterator[tuple[str, str]]:
    sets = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in sorted((data / "projects" / "history").glob("*.json"))
    ]
    for copy in count():
        for one in sets:
            folder = one["repo"].rpartition("/")[2] + (f"-{copy}" if copy else "")
            for path, text in one["files"].items():
                yield f"{folder}/{path}", text
        if not copy:
            yield from _states(data / "projects" / "issues" / "swebench-dev.sqlite")


def _states(database: Path) -> Iterator[tuple[str, str]]:
    with closing(sqlite3.connect(f"file:{database}?mode=ro&immutable=1", uri=True)) as opened:
        for instance, path, packed in opened.execute(_STATES):
            yield f"{instance}/{path}", zlib.decompress(packed).decode("utf-8", "replace")
