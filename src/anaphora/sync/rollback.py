"""What held at an earlier time, said again: a change as any other, which all devices take in."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from anaphora.values.memories import MemoryRecord
from anaphora.values.sync import SyncRollback

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices

_PAGE = 500


def roll_back(services: NamespaceServices, to: datetime, *, dry_run: bool) -> SyncRollback:
    """Let the memories that held at a time hold again; with `dry_run` only say which.

    A value that was replaced since is said again, behind what replaced it; what was new since is
    softly forgotten; what was softly forgotten since is there again.
    """
    records = {record.id: record for record in _all(services)}
    restored = tuple(
        r.id
        for r in records.values()
        if r.forgotten and r.created_at <= to and _hidden_at(services, r.id) > to
    )
    restated: dict[str, MemoryRecord] = {}
    hidden = []
    for current in records.values():
        if current.forgotten or current.valid_to is not None or current.valid_from <= to:
            continue
        version = _held_at(current, records, to)
        if version is not None:
            restated[current.id] = version
        elif current.created_at > to:
            hidden.append(current.id)
    if not dry_run:
        services.forget.undo(restored)
        for now, version in restated.items():
            services.remember.update(
                now, redact=False, text=version.text, payload=version.payload, type=version.type
            )
        for now in hidden:
            services.forget.forget(now, soft=True)
    return SyncRollback(to, tuple(restated), tuple(hidden), restored)


def _held_at(
    record: MemoryRecord, records: dict[str, MemoryRecord], to: datetime
) -> MemoryRecord | None:
    """The version that held then of what this is the present one of; None: there was none."""
    version: MemoryRecord | None = record
    visited = {record.id}
    while version is not None and version.valid_from > to:
        version = records.get(version.supersedes or "")
        if version is None or version.id in visited:
            return None
        visited.add(version.id)
    if (
        version is None
        or version.forgotten
        or (version.valid_to is not None and version.valid_to <= to)
    ):
        return None
    return version


def _hidden_at(services: NamespaceServices, record_id: str) -> datetime:
    events = services.records.events(record_id)
    return max(event.at for event in events if event.kind == "forgotten")


def _all(services: NamespaceServices) -> Iterator[MemoryRecord]:
    cursor: str | None = None
    while True:
        page = services.records.list(limit=_PAGE, cursor=cursor, history=True)
        yield from page
        cursor = page.cursor
        if cursor is None:
            return
