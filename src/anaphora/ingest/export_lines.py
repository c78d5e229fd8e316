"""The lines of an export, read in a worker: what comes from there is JSON that we wrote ourselves.

A line that is longer, has more values or is nested deeper than any of ours is named, and the others
come. What a line means is not known here (`ops.transfer`).
"""

from __future__ import annotations

import os
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from anaphora.ingest.bounds import Bounds
from anaphora.store.disk import open_regular
from anaphora.system.worker import (
    WorkerEnded,
    WorkerFailed,
    WorkerLimits,
    call_in_worker,
    path_for_worker,
)
from anaphora.values.plain import Types, types_of


@dataclass(frozen=True, slots=True)
class ReadLine:
    """A line: its JSON, or the `reason` why there is none; how many bytes were read by then."""

    text: str | None
    reason: str
    done: int


_TYPES: Final[Types] = types_of()
_READ: Final = "anaphora.ingest.export_child:read"
_BEGINNING: Final = "anaphora.ingest.export_child:is_beginning"
_HEAD: Final = 1 << 20
_NAME: Final = b'"anaphora"'
_BYTES: Final = 8
"""Bytes of the answer that a byte of a line may take."""


def begins_as_export(path: Path) -> bool:
    """Whether a regular file begins as an export does. Raises OSError."""
    with open_regular(path) as file:
        head = file.readline(_HEAD)
    if _NAME not in head:
        return False
    limits = WorkerLimits(output=_HEAD)
    try:
        (answer,) = call_in_worker(_BEGINNING, head, limits=limits, types=_TYPES)
    except (WorkerEnded, WorkerFailed):
        return False
    return answer is True


def export_lines(
    path: Path, size: int, most: int, bounds: Bounds
) -> Generator[ReadLine, None, None]:
    """Every line of a file of `size` bytes, none of which may have more than `most`.

    Raises WorkerEnded if reading takes too much, WorkerFailed if the file cannot be read.
    """
    limits = WorkerLimits(
        seconds=bounds.seconds_for(size),
        memory=bounds.memory,
        output=_BYTES * most + (1 << 20),
    )
    worker_path = os.fspath(path_for_worker(path))
    read_size = 0
    for answer in call_in_worker(
        _READ, worker_path, most, bounds.parts, limits=limits, types=_TYPES
    ):
        # In the shortest form, as there are many: a line, the bytes read, or why a line is invalid.
        if isinstance(answer, str):
            yield ReadLine(answer, "", read_size)
        elif isinstance(answer, int):
            read_size = answer
        else:
            yield ReadLine(None, str(answer[0]), read_size)
