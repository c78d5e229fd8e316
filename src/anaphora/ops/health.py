"""Whether a home is well enough to serve from right now, looked at in milliseconds.

In: the parts that the facade wired. Out: a `Health`. The write path is tried for real: a row is
written and taken out again in one transaction that reaches the disk, and where threads are files
one is written beside them. It reads no words, and leaves nothing behind.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from anaphora.errors import AnaphoraError
from anaphora.values.conversations import Check

if TYPE_CHECKING:
    from anaphora.core.config import Settings
    from anaphora.embed.service import EmbedderService
    from anaphora.index.turns.index import TurnIndex
    from anaphora.store.db.engine import Database
    from anaphora.store.records.vectors import RecordVectors
    from anaphora.store.threads.conversations import Conversations

LEAST_FREE = 64 * 1024 * 1024
"""Bytes below which a disk counts as full: SQLite's journal and one index commit need some."""


class Served(Protocol):
    """What is looked at of a namespace."""

    @property
    def conversations(self) -> Conversations:
        """Its threads."""
        ...

    @property
    def turns(self) -> TurnIndex:
        """Their index."""
        ...

    @property
    def vectors(self) -> RecordVectors:
        """The vectors of its memories."""
        ...


@dataclass(frozen=True, slots=True)
class Health:
    """Whether each part works. `pending` counts turns and memories whose vectors still come,
    `jobs` what ended sessions have queued in all namespaces.
    """

    ok: bool
    checks: tuple[Check, ...]
    pending: int = 0
    jobs: int = 0


def health(
    settings: Settings, truth: Database, embedder: EmbedderService, parts: Served, token: str
) -> Health:
    """Look at the write path, the index, the embedder and the disk. Nothing raises.

    `token` is an id for the probe that nothing else has.
    """
    write = _write(truth, token)
    pending, jobs, index = _index(truth, embedder, parts)
    checks = (
        write,
        _threads(parts.conversations.directory),
        index,
        _embedder(embedder),
        _disk(settings.home),
    )
    return Health(all(check.ok for check in checks), checks, pending, jobs)


def _write(truth: Database, token: str) -> Check:
    try:
        with truth.write("default") as write:
            from sqlalchemy import delete

            from anaphora.store.db.schema import tombstone

            # Numbers below 1 belong to no change, so no follower ever looks at this row; one with
            # the same number waits until this transaction has ended, and taken the row out again.
            row = {"namespace": "default", "seq": -1, "kind": "probe", "owner_id": token}
            write.connection.execute(tombstone.insert(), row)
            gone = delete(tombstone).where(tombstone.c.namespace == "default")
            write.connection.execute(gone.where(tombstone.c.seq == -1))
    except AnaphoraError as error:
        return Check("write", ok=False, detail=str(error))
    return Check("write", ok=True, detail="a row was written to the database and removed")


def _threads(folder: Path | None) -> Check:
    if folder is None:
        return Check("threads", ok=True, detail="conversations are in the database")
    place = folder
    while not place.exists():
        place = place.parent
    try:
        with tempfile.TemporaryFile(dir=place) as probe:
            probe.write(b"\0" * 4096)
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        return Check("threads", ok=False, detail=f"no file can be written: {error.strerror}")
    return Check("threads", ok=True, detail="a file was written to the disk and removed")


def _index(truth: Database, embedder: EmbedderService, parts: Served) -> tuple[int, int, Check]:
    try:
        # What came since is taken in first: an index that lags is no fault, one that cannot is.
        parts.turns.sync(embed="none")
        seen = parts.turns.check()
        here, _ = parts.vectors.counts().get(embedder.name, (0, 0))
        waiting = max(0, parts.vectors.records() - here)
        jobs = sum(count for (count,) in truth.rows("SELECT COUNT(*) FROM session_job", {}))
    except AnaphoraError as error:
        return 0, 0, Check("index", ok=False, detail=str(error))
    pending = seen.pending + waiting
    trouble = [*seen.problems, *([f"{seen.failed} turns failed"] if seen.failed else [])]
    detail = "; ".join(map(str, trouble)) or f"{pending:,} vectors to come"
    return pending, jobs, Check("index", ok=not trouble, detail=detail)


def _embedder(embedder: EmbedderService) -> Check:
    if embedder.ready(timeout=0):
        return Check("embedder", ok=True, detail=f"{embedder.name} is loaded")
    if embedder.failure is not None:
        return Check("embedder", ok=False, detail=f"{embedder.name}: {embedder.failure}")
    return Check("embedder", ok=True, detail=f"{embedder.name} is loading; words answer meanwhile")


def _disk(home: Path) -> Check:
    place = home
    while not place.exists():
        place = place.parent
    try:
        free = shutil.disk_usage(place).free
    except OSError as error:
        return Check("disk", ok=False, detail=f"cannot be looked at: {error.strerror}")
    return Check("disk", ok=free >= LEAST_FREE, detail=f"{free / 1e9:,.1f} GB free")
