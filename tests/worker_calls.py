"""What workers are given to do in tests. They import this module by its name: it imports little."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from anaphora.features.importing.reading import FileStarted, ReadItem
from anaphora.features.importing.values import ImportedElse
from anaphora.system.worker import Piece


def take_memory() -> Iterator[int]:
    yield len(bytearray(1 << 30))


def take_memory_by_pieces() -> Iterator[int]:
    held = []
    while True:
        held.append(bytes(1 << 20))
        yield 1


def take_time() -> Iterator[int]:
    yield 1
    while True:
        pass


def say_much() -> Iterator[str]:
    yield "x" * (2 << 20)


def die() -> Iterator[int]:
    os.kill(os.getpid(), signal.SIGKILL)
    yield 1


def fail() -> Iterator[int]:
    yield 1
    raise RuntimeError("broken reader")


def write_a_file(path: str) -> Iterator[int]:
    Path(path).write_bytes(b"words")
    yield 1


def say_values() -> Iterator[object]:
    yield (1, "\ud800", None, datetime(2026, 1, 2, tzinfo=UTC), frozenset("a"), {"a": [1.5]})
    yield os.getpid()


def hold_memory() -> Iterator[int]:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    held = b"x" * (300 << 20)
    signal.pause()
    yield len(held)


def wait_for_ever() -> Iterator[int]:
    signal.pause()
    yield 1


def read_until_it_dies(*given: Any) -> Iterator[object]:
    """As the readers of imports: six small files, of which the fourth ends the worker."""
    begin = given[-1]
    for number in range(begin.skip, 6):
        yield Piece(60.0, FileStarted(f"file {number}", 1), soon=not begin.each)
        if number == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        yield ReadItem(ImportedElse(f"item {number}"), 1)


def busy() -> Iterator[int]:
    yield os.getpid()
    while True:
        pass
