"""Whether a home is well enough to serve from right now, looked at in milliseconds.

The write path is tried for real: a row is written and taken out again in one transaction that
reaches the disk, and where threads are files one is written beside them. It reads no words, and
leaves nothing behind.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from anaphora.errors import AnaphoraError
from anaphora.store.maintenance import job_count, probe
from anaphora.values.conversations import Check, Health

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices
    from anaphora.embed.service import EmbedderService
    from anaphora.store.db.engine import Database

LEAST_FREE = 64 * 1024 * 1024
"""Bytes below which a disk counts as full: SQLite's journal and one index commit need some."""


def health(services: NamespaceServices) -> Health:
    """Look at the write path, the index, the embedder and the disk. Nothing raises."""
    container = services.container
    # The probe's id: one that nothing else has.
    write = _write(container.truth, container.ids())
    pending, jobs, index = _index(services)
    checks = (
        write,
        _threads(services.conversations.directory),
        index,
        _embedder(container.embedder),
        _disk(container.settings.home),
    )
    return Health(all(check.ok for check in checks), checks, pending, jobs)


def try_writing(folder: Path, size: int) -> None:
    """Write so many bytes to the disk of a folder that is or will be, and leave none of them.

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


def _write(truth: Database, token: str) -> Check:
    try:
        probe(truth, token)
    except AnaphoraError as error:
        return Check("write", ok=False, detail=str(error))
    return Check("write", ok=True, detail="a row was written to the database and removed")


def _threads(folder: Path | None) -> Check:
    if folder is None:
        return Check("threads", ok=True, detail="conversations are in the database")
    try:
        try_writing(folder, 4096)
    except OSError as error:
        return Check("threads", ok=False, detail=f"no file can be written: {error.strerror}")
    return Check("threads", ok=True, detail="a file was written to the disk and removed")


def _index(services: NamespaceServices) -> tuple[int, int, Check]:
    try:
        # What came since is taken in first: an index that lags is no fault, one that cannot is.
        services.turns.sync(embed="none")
        seen = services.turns.check()
        here, _ = services.vectors.counts().get(services.container.embedder.name, (0, 0))
        waiting = max(0, services.vectors.records() - here)
        jobs = job_count(services.truth)
    except AnaphoraError as error:
        return 0, 0, Check("index", ok=False, detail=str(error))
    pending = seen.pending + waiting
    trouble = [*seen.problems, *([f"{seen.failed} turns failed"] if seen.failed else [])]
    detail = "; ".join(map(str, trouble)) or f"{pending:,} vectors pending"
    return pending, jobs, Check("index", ok=not trouble, detail=detail)


def _embedder(embedder: EmbedderService) -> Check:
    if embedder.ready(timeout=0):
        if (away := embedder.away) is not None:
            detail = f"{embedder.name}: {away}; the bundled model answers until it is back"
            return Check("embedder", ok=False, detail=detail)
        return Check("embedder", ok=True, detail=f"{embedder.name} is loaded")
    if embedder.failure is not None:
        return Check("embedder", ok=False, detail=f"{embedder.name}: {embedder.failure}")
    return Check(
        "embedder", ok=True, detail=f"{embedder.name} is loading; recall uses words only until then"
    )


def _disk(home: Path) -> Check:
    try:
        free = shutil.disk_usage(_existing(home)).free
    except OSError as error:
        return Check("disk", ok=False, detail=f"cannot be read: {error.strerror}")
    return Check("disk", ok=free >= LEAST_FREE, detail=f"{free / 1e9:,.1f} GB free")
