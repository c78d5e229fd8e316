"""Exports: all turns and memories, as lines of JSON that any program can read.

docs/formats.md describes the file. Texts are exported in clear, those of a sealed home too. Vectors
are not exported: they can be computed again. Threads are read first, then the database as of one
moment: notes about turns that were added in between are left out, as their turns are.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

from anaphora.calls.progress import Progress
from anaphora.container.home import Container
from anaphora.container.namespace import NamespaceServices
from anaphora.errors import InvalidInput, NotFound
from anaphora.ingest.export_lines import begins_as_export
from anaphora.ingest.secrets.masking import mask
from anaphora.ops.backup import staging
from anaphora.ops.transfer.kinds import line_kinds
from anaphora.ops.transfer.reading import FORMAT, ExportSource
from anaphora.ops.transfer.threads import thread_lines
from anaphora.store.lines import Line, to_line
from anaphora.store.threads.ids import check_id
from anaphora.system.incidents import program_version
from anaphora.values.conversations import ImportProblem

_SAID: Final = frozenset(("thread", "turn", "tool_call"))
"""Lines with text that is stored verbatim."""

_RECORD_NAMES: Final = ("id", "document", "memory", "from_memory")
"""Members of lines that name a record."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export holds: `memories` that hold now, and how many of the `past`.

    `problems` are thread files that could not be read.
    """

    path: str
    namespaces: tuple[str, ...]
    threads: int
    turns: int
    memories: int
    links: int
    problems: tuple[ImportProblem, ...] = ()
    notes: int = 0
    gaps: int = 0
    documents: int = 0
    past: int = 0


def export(
    container: Container,
    path: str | os.PathLike[str] | BinaryIO,
    *,
    clock: Callable[[], datetime],
    namespaces: Iterable[str] | None = None,
    masked: bool = False,
    progress: Progress | None = None,
) -> Exported:
    """Write an export of `namespaces` (None: all there are) to `path`, whole or not at all.

    `masked`: secrets in turns, titles and tool calls are masked, for an export that is shared.
    An open file is written as the export proceeds. Other processes may go on writing. `NotEmpty` if
    `path` exists, `NotFound` for an unknown namespace, `StoreError` and its kinds,
    `EncryptionError`.
    """
    if not isinstance(path, (str, os.PathLike)):
        chosen_namespaces = _choose(container, namespaces)
        return _write(container, chosen_namespaces, path, "", clock, progress, masked=masked)
    target = staging.free_path(path)
    chosen_namespaces = _choose(container, namespaces)
    with staging.staged(target) as stage:
        with staging.open_new(stage / "export.jsonl") as file:
            report = _write(
                container, chosen_namespaces, file, str(target), clock, progress, masked=masked
            )
        staging.put_file(stage / "export.jsonl", target)
    return report


def is_export(path: str | os.PathLike[str]) -> bool:
    """Whether the file at `path` begins like an export. Nothing is raised.

    A folder, a pipe, or a file that cannot be opened, is none.
    """
    try:
        return begins_as_export(Path(path))
    except (OSError, ValueError):
        return False


def _choose(container: Container, namespaces: Iterable[str] | None) -> tuple[str, ...]:
    existing = container.namespaces()
    if namespaces is None:
        return existing
    if isinstance(namespaces, str):
        raise InvalidInput("namespaces", namespaces, "expected a list of names, or None for all")
    chosen_namespaces = tuple(
        dict.fromkeys(container.standing_namespace(check_id(name)) for name in namespaces)
    )
    for name in chosen_namespaces:
        if name not in existing:
            raise NotFound("namespace", name)
    return chosen_namespaces


def _leave_out(hidden: set[str], lines: Iterable[Line]) -> Iterator[Line]:
    """The lines but for those about records with these ids."""
    for line in lines:
        names = (line.get(name) for name in _RECORD_NAMES)
        if hidden.isdisjoint(
            record_id for record_id in (*names, *line.get("between", ())) if record_id is not None
        ):
            yield line


def _write(
    container: Container,
    namespaces: tuple[str, ...],
    file: BinaryIO,
    target: str,
    clock: Callable[[], datetime],
    progress: Progress | None,
    *,
    masked: bool,
) -> Exported:
    counts: Counter[str] = Counter()
    problems: list[ImportProblem] = []

    def write(line: Line) -> None:
        file.write(to_line(line))
        kind = line.get("kind", "head")
        is_past = kind == "memory" and (line.get("valid_to") or line.get("forgotten"))
        counts["past" if is_past else kind] += 1

    def write_all(namespace: str, lines: Iterable[Line]) -> None:
        for line in lines:
            is_kept = line.get("keep_secret")
            masked_line = mask(line) if masked and (is_kept or line["kind"] in _SAID) else line
            if masked and is_kept:
                # What is masked keeps no secret any more.
                masked_line = {**masked_line, "keep_secret": None}
            write({"kind": line["kind"], "namespace": namespace, **masked_line})

    def tell(label: str, done: int, total: int | None = None) -> None:
        if progress is not None:
            # Without a total, the number so far is the total.
            progress(label, done, done if total is None else total)

    head = {
        "anaphora": "export",
        "version": FORMAT,
        "program": program_version(),
        "created": clock(),
        "namespaces": list(namespaces),
    }
    write(head)
    for namespace in namespaces:
        hashes: dict[str, list[str]] = {}
        live = container.namespace(namespace)
        write_all(namespace, thread_lines(live, problems, hashes, partial(tell, "threads")))
        with container.truth.snapshot() as truth:
            services = NamespaceServices(container, namespace, truth)
            # Soft-forgotten records are erased within a day: an export would outlive them.
            hidden = {row["conversation_id"] for row in services.jobs.list_pending("erase")}
            source = ExportSource(services, hashes, problems, tell, clock())
            for kind in line_kinds():
                write_all(namespace, _leave_out(hidden, kind.write(source)))
    write({"kind": "end", "lines": counts.total()})
    return Exported(
        target,
        namespaces,
        threads=counts["thread"],
        turns=counts["turn"],
        memories=counts["memory"],
        links=counts["link"],
        problems=tuple(problems),
        notes=counts["observation"] + counts["diary"],
        gaps=counts["gap"],
        documents=counts["document"],
        past=counts["past"],
    )
