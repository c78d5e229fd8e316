"""What was taken in of devices that were removed meanwhile is taken back, and the other way round.

Which entries count follows from what all of them state (`admission`). Whenever that has changed,
the changes of those that no longer count are marked, and what they had made void is read from the
remote once more; `Replica.apply` then brings the home in line, as with any change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal

from anaphora.errors import RemoteTampered
from anaphora.sync.changes import Patch
from anaphora.sync.entries import Content, Entry, entry_of, unseal
from anaphora.sync.log import EntryLog, LogTransaction, Row
from anaphora.sync.project import Project
from anaphora.sync.remotes.base import Remote
from anaphora.sync.replica import Replica
from anaphora.sync.store import AGAIN, TO_DROP, Counts, SyncTransaction

_JUDGED: Final = "judged"
"""The last entries of removed devices that counted when this was asked last."""
Way = Literal["restore", "admit", "refuse"]
Entries = Callable[[str, Sequence[int]], Iterator[Entry]]
"""Entries of a device in the remote, by their numbers."""


def comes_by(patch: Patch, counts: Counts) -> bool:
    """Whether all entries by which a patch came to the device that says it again count."""
    return all(counts(device, number) for device, number in patch.via)


def say_again(
    log: LogTransaction, sync: SyncTransaction, named: Sequence[tuple[str, int, str]], own: str
) -> None:
    """Say again what is in entries that a removed device has named as without content."""
    waiting = sync.get(TO_DROP, [])
    for device, number, snapshot in named:
        row = log.row(device, number)
        if row is None or row["snapshot_id"] != snapshot or row["state"] == "ready":
            continue
        if row["state"] == "gone":
            log.move(row, "sent" if device == own else "received")
        if [device, number, AGAIN + own] not in waiting:
            waiting.append([device, number, AGAIN + own])
    if waiting:
        sync.put(TO_DROP, waiting)


def reconcile(
    remote: Remote, project: Project, log: EntryLog, replica: Replica, entries: Entries
) -> None:
    """Bring what was taken in in line with which entries count now. RemoteError, RemoteTampered."""
    store, limits = replica.store, dict(project.devices.removed)
    if store.get(_JUDGED, {}) == limits:
        return
    counts = project.devices.admission.admits
    items = store.find_discounted(counts)
    changes = list(_find_changes(remote, project, log, entries, needed=bool(items)))
    with log.change() as work:
        sync = store.within(work.work.write)
        void = sync.find_void(counts)
        sync.take_back(counts)
        for way, row, content in changes:
            device, number = str(row["device"]), int(row["number"])
            patches = [patch for patch in content.patches if comes_by(patch, counts)]
            if way == "restore":
                sync.restore((patch for patch in patches if patch.item in items), device, number)
            elif way == "admit":
                work.move(row, "received")
                replica.receive(sync, patches, device, number)
            else:
                work.move(row, "refused")
                project.forget_begin()
                say_again(work, sync, content.dropped, project.own)
        sync.set_again(void, project.own)
        project.save(sync)
        sync.put(_JUDGED, limits)


def _find_changes(
    remote: Remote, project: Project, log: EntryLog, entries: Entries, *, needed: bool
) -> Iterator[tuple[Way, Row, Content]]:
    """What is to be done with which entry; `needed`: what others said before is, too."""
    rows = (row for name in log.heads() for _, row in sorted(log.rows_of(name).items()))
    for row in rows:
        if row["state"] == "covered":
            continue
        device = str(row["device"])
        counts = device == project.own or project.devices.admission.admits(
            device, int(row["number"])
        )
        if row["state"] == "refused":
            way: Way | None = "admit" if counts else None
        else:
            way = "refuse" if not counts else "restore" if needed else None
        if way is not None:
            yield way, row, _read_again(row, remote, project, entries, lenient=not counts)


def _read_again(
    row: Row, remote: Remote, project: Project, entries: Entries, *, lenient: bool
) -> Content:
    """What an entry that was read or written before says, if the remote still has that."""
    device, number = str(row["device"]), int(row["number"])
    try:
        if row["state"] == "ready" and row["body"] is not None:
            log_entry = entry_of(row["body"], remote.name, device, number)
        else:
            log_entry = next(entries(device, [number]))
        if log_entry.id != row["snapshot_id"]:
            reason = "it is another one than was read before"
            raise RemoteTampered(remote.name, device, number, reason)
        cipher = project.cipher(log_entry.header.epoch)
        if log_entry.dropped is None and cipher is not None:
            return unseal(log_entry, cipher, remote.name)
    except RemoteTampered:
        # A removed device may have taken away what it wrote.
        if not lenient:
            raise
    return Content()
