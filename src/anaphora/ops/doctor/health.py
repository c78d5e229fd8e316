"""Whether a home can be served right now, checked in milliseconds.

The write path is really tried: a row is written and deleted again in one transaction that reaches
the disk, and if threads are files one is written beside them. It reads no text, and leaves nothing
behind.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from anaphora.errors import Closed
from anaphora.store.maintenance import JOBS, count_rows, probe
from anaphora.system.shortages import name_shortage
from anaphora.values.conversations import Check, Health

if TYPE_CHECKING:
    from anaphora.container.home import Container
    from anaphora.container.namespace import NamespaceServices

LEAST_FREE = 64 * 1024 * 1024
"""Bytes below which a disk counts as full: SQLite's journal and one index commit need some."""


class _PartState(NamedTuple):
    """Whether a part is well, its detail in words, and what waits there."""

    ok: bool
    detail: str
    pending: int = 0
    jobs: int = 0


def health(container: Container, namespace: str) -> Health:
    """Check the write path, the threads, the index, the embedder and the disk. Raises only Closed.

    Whatever a look raises is its finding: each has to be made, however little is left to open.
    """
    looks: dict[str, Callable[[], _PartState]] = {
        "write": lambda: _try_database(container),
        "threads": lambda: _try_threads(container.own(namespace)),
        "index": lambda: _look_at_index(container.own(namespace)),
        "embedder": lambda: _look_at_embedder(container),
        "disk": lambda: _look_at_disk(container.settings.home),
    }
    states = {name: _find(look) for name, look in looks.items()}
    checks = tuple(Check(name, state.ok, state.detail) for name, state in states.items())
    index = states["index"]
    return Health(all(check.ok for check in checks), checks, index.pending, index.jobs)


def _find(look: Callable[[], _PartState]) -> _PartState:
    try:
        return look()
    except Closed:
        raise
    except Exception as error:  # noqa: BLE001 - any failure is a finding
        detail = name_shortage(error) or str(error) or type(error).__name__
        return _PartState(ok=False, detail=detail)


def _try_database(container: Container) -> _PartState:
    probe(container.truth, container.ids())
    return _PartState(ok=True, detail="a row was written to the database and removed")


def _try_threads(services: NamespaceServices) -> _PartState:
    directory = services.conversation.threads.directory
    if directory is None:
        return _PartState(ok=True, detail="conversations are in the database")
    try_writing(directory, 4096)
    return _PartState(ok=True, detail="a file was written to the disk and removed")


def _look_at_index(services: NamespaceServices) -> _PartState:
    # Synced first: an index that lags is no fault, one that cannot be synced is.
    services.conversation.turn_index.sync(embed="none")
    state = services.conversation.turn_index.check()
    embedded, _ = services.memory.vectors.counts().get(services.container.embedder.name, (0, 0))
    pending = state.pending + max(0, services.memory.vectors.records() - embedded)
    trouble = [*state.problems, *([f"{state.failed} turns failed"] if state.failed else [])]
    detail = "; ".join(map(str, trouble)) or f"{pending:,} vectors pending"
    return _PartState(not trouble, detail, pending, count_rows(services.truth, JOBS))


def _look_at_embedder(container: Container) -> _PartState:
    service = container.embedder
    if service.ready(timeout=0):
        if (away := service.away) is None:
            return _PartState(ok=True, detail=f"{service.name} is loaded")
        detail = f"{service.name}: {away}; the bundled model answers until it is back"
        return _PartState(ok=False, detail=detail)
    if service.failure is not None:
        return _PartState(ok=False, detail=f"{service.name}: {service.failure}")
    return _PartState(True, f"{service.name} is loading; recall uses words only until then")


def _look_at_disk(home: Path) -> _PartState:
    free_bytes = shutil.disk_usage(_existing(home)).free
    return _PartState(free_bytes >= LEAST_FREE, f"{free_bytes / 1e9:,.1f} GB free")


def try_writing(folder: Path, size: int) -> None:
    """Write `size` bytes to the disk of a folder, which may not exist yet, and leave none of them.

    Raises OSError.
    """
    with tempfile.TemporaryFile(dir=_existing(folder)) as file:
        file.write(bytes(size))
        file.flush()
        os.fsync(file.fileno())


def _existing(folder: Path) -> Path:
    while not folder.exists():
        folder = folder.parent
    return folder
