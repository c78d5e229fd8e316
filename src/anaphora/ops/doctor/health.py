"""Whether a home can be served right now, checked in milliseconds.

The write path is really tried: a row is written and deleted again in one transaction that reaches
the disk, and if threads are files one is written beside them. It reads no text, and leaves nothing
behind.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from anaphora.errors import AnaphoraError
from anaphora.store.maintenance import JOBS, count_rows, probe
from anaphora.values.conversations import Check, Health

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices

LEAST_FREE = 64 * 1024 * 1024
"""Bytes below which a disk counts as full: SQLite's journal and one index commit need some."""


def health(services: NamespaceServices) -> Health:
    """Check the write path, the index, the embedder and the disk. Nothing raises."""
    container = services.container
    write = Check("write", ok=True, detail="a row was written to the database and removed")
    try:
        probe(container.truth, container.ids())
    except AnaphoraError as error:
        write = Check("write", ok=False, detail=str(error))
    try:
        # Synced first: an index that lags is no fault, one that cannot be synced is.
        services.conversation.turn_index.sync(embed="none")
        state = services.conversation.turn_index.check()
        embedded, _ = services.memory.vectors.counts().get(container.embedder.name, (0, 0))
        waiting = max(0, services.memory.vectors.records() - embedded)
        jobs = count_rows(services.truth, JOBS)
    except AnaphoraError as error:
        pending, jobs, index = 0, 0, Check("index", ok=False, detail=str(error))
    else:
        pending = state.pending + waiting
        trouble = [*state.problems, *([f"{state.failed} turns failed"] if state.failed else [])]
        detail = "; ".join(map(str, trouble)) or f"{pending:,} vectors pending"
        index = Check("index", ok=not trouble, detail=detail)
    threads = Check("threads", ok=True, detail="conversations are in the database")
    if (directory := services.conversation.threads.directory) is not None:
        try:
            try_writing(directory, 4096)
            detail = "a file was written to the disk and removed"
            threads = Check("threads", ok=True, detail=detail)
        except OSError as error:
            detail = f"no file can be written: {error.strerror}"
            threads = Check("threads", ok=False, detail=detail)
    service, ok = container.embedder, True
    if service.ready(timeout=0):
        detail = f"{service.name} is loaded"
        if (away := service.away) is not None:
            ok = False
            detail = f"{service.name}: {away}; the bundled model answers until it is back"
    elif service.failure is not None:
        ok, detail = False, f"{service.name}: {service.failure}"
    else:
        detail = f"{service.name} is loading; recall uses words only until then"
    embedder = Check("embedder", ok=ok, detail=detail)
    try:
        free_bytes = shutil.disk_usage(_existing(container.settings.home)).free
        disk = Check("disk", ok=free_bytes >= LEAST_FREE, detail=f"{free_bytes / 1e9:,.1f} GB free")
    except OSError as error:
        disk = Check("disk", ok=False, detail=f"cannot be read: {error.strerror}")
    checks = (write, threads, index, embedder, disk)
    return Health(all(check.ok for check in checks), checks, pending, jobs)


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
