"""Reverts the entries of devices that were removed since, and applies those that count again.

Which entries count follows from the statements of all (`admission`). Whenever that has changed,
the patches of entries that no longer count are marked, and those that they had replaced are read
from the remote again; `Replica.apply` then updates the home, as with any change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final, Literal

from anaphora.errors import RemoteTampered
from anaphora.features.sync.changes import Patch
from anaphora.features.sync.entries import EntryContent, LogEntry, entry_of, unseal
from anaphora.features.sync.log import EntryLog, LogTransaction, Row
from anaphora.features.sync.project import SyncProject
from anaphora.features.sync.remotes.base import Remote
from anaphora.features.sync.replica import Replica
from anaphora.features.sync.store import AGAIN, TO_DROP, Counts, SyncTransaction

_JUDGED: Final = "judged"
"""The limits of removed devices at the last reconciliation."""
Way = Literal["restore", "admit", "refuse"]
Entries = Callable[[str, Sequence[int]], Iterator[LogEntry]]
"""Entries of a device in the remote, by their numbers."""


def comes_by(patch: Patch, counts: Counts) -> bool:
    """Whether all entries count that brought a patch to the device which repeats it."""
    return all(counts(device, number) for device, number in patch.via)


def say_again(
    log: LogTransaction, sync: SyncTransaction, named: Sequence[tuple[str, int, str]], own: str
) -> None:
    """Queue the content of entries that a removed device has emptied, to repeat it."""
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
    remote: Remote, project: SyncProject, log: EntryLog, replica: Replica, entries: Entries
) -> None:
    """Revert and apply entries by whether they count now. RemoteError, RemoteTampered."""
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
                # The removed device may have set the checkpoint to begin with.
                project.devices = replace(project.devices, begin=None)
                say_again(work, sync, content.dropped, project.own)
        sync.set_again(void, project.own)
        project.save(sync)
        sync.put(_JUDGED, limits)


def _find_changes(
    remote: Remote, project: SyncProject, log: EntryLog, entries: Entries, *, needed: bool
) -> Iterator[tuple[Way, Row, EntryContent]]:
    """What to do with which entry; with `needed`, also the entries to restore."""
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
    row: Row, remote: Remote, project: SyncProject, entries: Entries, *, lenient: bool
) -> EntryContent:
    """The content of a known entry, if the remote still has it."""
    device, number = str(row["device"]), int(row["number"])
    try:
        if row["state"] == "ready" and row["body"] is not None:
            log_entry = entry_of(row["body"], remote.name, device, number)
        else:
            log_entry = next(entries(device, [number]))
        if log_entry.id != row["snapshot_id"]:
            raise RemoteTampered(
                remote.name, device, number, "it is another one than was read before"
            )
        cipher = project.cipher(log_entry.header.epoch)
        if log_entry.dropped is None and cipher is not None:
            return unseal(log_entry, cipher, remote.name)
    except RemoteTampered:
        # A removed device may have deleted its entries.
        if not lenient:
            raise
    return EntryContent()
