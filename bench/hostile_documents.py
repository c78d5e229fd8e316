"""Seconds of the processor that each reader takes for 1, 2, 4 and 8 MB: twice as much, twice as
long.

`python -m bench.hostile_documents [--only WORD …]`: documents, what is imported, and our own
exports, of each format ordinary ones and those that close, nest or declare without end. Each is
read as the product reads it, in a worker with its limits; the time is that of the worker and of
taking in what it sends.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from anaphora.core.plain import types_of
from anaphora.core.worker import Piece, WorkerEnded, WorkerLimits, call_in_worker
from anaphora.errors import UnreadableDocument
from anaphora.ingest.bounds import BOUNDS
from anaphora.ingest.documents.base import DocumentLimits
from bench.figures import Figure, at_most, keep, show
from bench.hostile_files import DOCUMENTS
from bench.hostile_imports import EXPORTS, IMPORTS

SIZES: Final = (1, 2, 4, 8)
GROWTH: Final = 1.6
"""How much longer a megabyte may take in the largest file than in the one of 2 MB."""
_LEAST: Final = 0.1
"""Seconds below which a clock of this machine tells nothing."""
_MOST: Final = 60.0
"""Seconds after which a reader is ended here, and counts as one that takes no end."""
_ENDLESS: Final = 1000.0
_LONGEST_LINE: Final = 128 << 20
_TITLE: Final = "Reading documents and imports of growing size"


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds of the processor, and why the file was refused, "" where it was not."""

    seconds: float
    refused: str = ""
    ended: bool = False


def read_document(name: str, data: bytes) -> Iterator[Any]:
    """A document in sections, and what that took. Runs in a worker."""
    from anaphora.ingest.documents.working import read_and_cut

    began, refused = time.process_time(), ""
    try:
        yield from (len(one.cut.sections) for one in read_and_cut(name, data, DocumentLimits()))
    except UnreadableDocument as error:
        refused = error.reason
    yield [time.process_time() - began, refused]


def read_import(path: str) -> Iterator[Any]:
    """What importing reads of a file, and what that took. Runs in a worker."""
    from anaphora.ingest.reading import ReadFrom
    from anaphora.ingest.reading_child import read

    began, found, problem = time.process_time(), 0, ""
    for value in read(os.fspath(Path.cwd()), path, None, "", BOUNDS, ReadFrom(0, each=False)):
        if isinstance(value, Piece):
            continue
        problem = problem or getattr(value.item, "reason", "")
        found += not hasattr(value.item, "reason")
    yield [time.process_time() - began, "" if found else problem]


def read_export(path: str) -> Iterator[Any]:
    """The lines of an export, and what reading them took. Runs in a worker."""
    from anaphora.ingest.export_child import read

    began, found, problem = time.process_time(), 0, ""
    for line in read(path, _LONGEST_LINE, BOUNDS.parts):
        found += isinstance(line, str)
        problem = problem or (line[0] if isinstance(line, list) else "")
    yield [time.process_time() - began, problem if found < 2 else ""]


def run(only: tuple[str, ...] = (), sizes: tuple[int, ...] = SIZES, jobs: int = 1) -> list[Figure]:
    """All files; prints and keeps the figures. With `only`, those whose names begin so."""
    readers = [one for one in _readers() if not only or one[0].startswith(only)]

    def measure(reader: tuple[str, Callable[[int], Spent]]) -> list[Figure]:
        name, spend = reader
        return _figures(name, [spend(size * 1_000_000) for size in sizes], sizes)

    figures: list[Figure] = []
    with ThreadPoolExecutor(jobs) as threads:
        for measured in threads.map(measure, readers):
            print(measured[0].name, flush=True)
            figures += measured
    if only or sizes != SIZES:
        show(_TITLE, figures)
    else:
        keep("hostile_documents", _TITLE, figures)
    return figures


def _figures(name: str, spent: list[Spent], sizes: tuple[int, ...]) -> list[Figure]:
    """One figure: how the time grows; its name tells the seconds of each size."""
    told = "; ".join(f"{one.seconds:.2f}{'*' if one.refused else ''}" for one in spent)
    times = sizes[-1] / sizes[1]
    first, last = max(spent[1].seconds, _LEAST / times), max(spent[-1].seconds, _LEAST)
    growth = _ENDLESS if any(one.ended for one in spent) else last / first / times
    return [at_most(f"{name}: {told} s", growth, GROWTH, "x")]


def _readers() -> Iterator[tuple[str, Callable[[int], Spent]]]:
    for name, (file, make) in DOCUMENTS.items():
        yield (
            name,
            lambda size, file=file, make=make: _in_worker(  # type: ignore[misc]
                "bench.hostile_documents:read_document", file, make(size)
            ),
        )
    for name, (file, make) in IMPORTS.items():
        yield (
            f"import: {name}",
            lambda size, file=file, make=make: _of_file(  # type: ignore[misc]
                "bench.hostile_documents:read_import", file, make(size)
            ),
        )
    for name, make in EXPORTS.items():
        yield (
            f"import: {name}",
            lambda size, make=make: _of_file(  # type: ignore[misc]
                "bench.hostile_documents:read_export", "a.jsonl", make(size)
            ),
        )


def _of_file(function: str, name: str, data: bytes) -> Spent:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(data)
        return _in_worker(function, os.fspath(path))


def _in_worker(function: str, *arguments: Any) -> Spent:
    limits = WorkerLimits(seconds=_MOST, memory=2 << 30)
    try:
        *_, (seconds, refused) = call_in_worker(
            function, *arguments, limits=limits, types=types_of()
        )
    except WorkerEnded as error:
        return Spent(limits.seconds, str(error), ended=True)
    return Spent(seconds, refused)


def main() -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--jobs", type=int, default=1, help="how many are read at a time")
    parser.add_argument("--sizes", nargs="*", type=int, default=list(SIZES))
    given = parser.parse_args()
    run(tuple(given.only), tuple(given.sizes), given.jobs)


if __name__ == "__main__":
    main()
