"""Restores the memories of an earlier time by ordinary changes, which all devices receive."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from anaphora.features.sync.values import SyncRollback
from anaphora.values.memories import MemoryRecord

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices

_PAGE = 500


def roll_back(services: NamespaceServices, to: datetime, *, dry_run: bool) -> SyncRollback:
    """Restore the memories that were current at a time; with `dry_run` only list them.

    A value that was replaced since is set again, as a new version; memories that were new since are
    softly forgotten; those that were softly forgotten since are revealed.
    """
    records: dict[str, MemoryRecord] = {}
    cursor: str | None = None
    while True:
        page = services.memory.records.list(limit=_PAGE, cursor=cursor, history=True)
        records |= {record.id: record for record in page}
        cursor = page.cursor
        if cursor is None:
            break
    revealed_ids = tuple(
        record.id
        for record in records.values()
        if record.forgotten
        and record.created_at <= to
        and max(
            event.at
            for event in services.memory.records.events(record.id)
            if event.kind == "forgotten"
        )
        > to
    )
    restated_records: dict[str, MemoryRecord] = {}
    hidden = []
    for record in records.values():
        if record.forgotten or record.valid_to is not None or record.valid_from <= to:
            continue
        earlier_version = _find_version_at(record, records, to)
        if earlier_version is not None:
            restated_records[record.id] = earlier_version
        elif record.created_at > to:
            hidden.append(record.id)
    if not dry_run:
        services.memory.eraser.undo(revealed_ids)
        for record_id, earlier_version in restated_records.items():
            services.memory.writer.update(
                record_id,
                redact=False,
                text=earlier_version.text,
                payload=earlier_version.payload,
                type=earlier_version.type,
            )
        for record_id in hidden:
            services.memory.eraser.forget(record_id, soft=True)
    return SyncRollback(to, tuple(restated_records), tuple(hidden), revealed_ids)


def _find_version_at(
    record: MemoryRecord, records: dict[str, MemoryRecord], to: datetime
) -> MemoryRecord | None:
    """The version of a current memory that was current then; None if there was none."""
    version: MemoryRecord | None = record
    visited_ids = {record.id}
    while version is not None and version.valid_from > to:
        version = records.get(version.supersedes or "")
        if version is None or version.id in visited_ids:
            return None
        visited_ids.add(version.id)
    if (
        version is None
        or version.forgotten
        or (version.valid_to is not None and version.valid_to <= to)
    ):
        return None
    return version
