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
    shown = tuple(
        one.id
        for one in records.values()
        if one.forgotten and one.created_at <= to and _hidden_at(services, one.id) > to
    )
    restated: dict[str, MemoryRecord] = {}
    hidden = []
    for one in records.values():
        if one.forgotten or one.valid_to is not None or one.valid_from <= to:
            continue
        before = _held_at(one, records, to)
        if before is not None:
            restated[one.id] = before
        elif one.created_at > to:
            hidden.append(one.id)
    if not dry_run:
        services.forget.undo(shown)
        for now, before in restated.items():
            services.remember.update(
                now, redact=False, text=before.text, payload=before.payload, type=before.type
            )
        for now in hidden:
            services.forget.forget(now, soft=True)
    return SyncRollback(to, tuple(restated), tuple(hidden), shown)


def _held_at(
    record: MemoryRecord, records: dict[str, MemoryRecord], to: datetime
) -> MemoryRecord | None:
    """The version that held then of what this is the present one of; None: there was none."""
    found: MemoryRecord | None = record
    seen = {record.id}
    while found is not None and found.valid_from > to:
        found = records.get(found.supersedes or "")
        if found is None or found.id in seen:
            return None
        seen.add(found.id)
    if found is None or found.forgotten or (found.valid_to is not None and found.valid_to <= to):
        return None
    return found


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
