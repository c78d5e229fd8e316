"""A device: sends its own changes to the remote, and reads those of others from it.

An entry is written to the database first, sealed, so that an interrupted push sends the same bytes
again.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from anaphora.calls.progress import no_progress
from anaphora.errors import Diverged, InvalidInput, NotFound, RemoteTampered
from anaphora.features.sync.changes import Patch
from anaphora.features.sync.conflicts import MOST, find_clashes
from anaphora.features.sync.entries import (
    EntryContent,
    Header,
    LogCheckpoint,
    entry_of,
    seal,
    unseal,
    without_content,
)
from anaphora.features.sync.items import THREAD, kind_and_key
from anaphora.features.sync.log import EntryLog, State
from anaphora.features.sync.membership import Membership
from anaphora.features.sync.project import SyncProject
from anaphora.features.sync.reader import EntryReader, Progress
from anaphora.features.sync.remotes.base import Remote
from anaphora.features.sync.replica import Replica
from anaphora.features.sync.store import AGAIN, CONFLICTS
from anaphora.features.sync.under_way import syncing
from anaphora.features.sync.values import SyncDevice, SyncReport, SyncVerification
from anaphora.store.crypto.cipher import Random

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices

_BLOCK: Final = 64 * 1024
"""Characters of patches in one entry, unless a single one is longer."""
_REPLACED: Final = 50
"""Entries that are emptied in one step."""
_COMPACT: Final = 1000
"""Entries with content after which a device says all of it again in few."""
_COMPACTED: Final = "compacted"
"""The name of the number of such entries after the last compaction."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class SyncClient:
    """Syncs one namespace with one remote. One call at a time, in all processes: see `lock`."""

    def __init__(
        self,
        services: NamespaceServices,
        member: Membership,
        remote: Remote,
        random: Random,
        lock: Callable[[], AbstractContextManager[None]],
        local_lock: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._services = services
        self._remote = remote
        self._lock = lock
        self._local_lock = local_lock
        # The key of digests that must never change: it encrypts nothing.
        self.replica = Replica(
            services, member.device, member.key_for("sync_identities", member.first_epoch)
        )
        self._project = SyncProject(self.replica.store, member, random)
        self._log = EntryLog(services.truth, services.namespace, services.sealing.rows)
        self._reader = EntryReader(remote, self._project, self._log, self.replica)
        self.clashes = 0
        """How many conflicts the last exchange has found: the last ones that are stored."""

    def now(self, progress: Progress | None = None) -> SyncReport:
        """Send and fetch everything there is. Raises SyncError and its kinds, StoreError."""
        tell = progress or no_progress
        with self._exchanging():
            return self._exchange(tell)

    def compact(self, progress: Progress | None = None) -> SyncReport:
        """Exchange, and say all that counts again in few entries; the others lose their content."""
        tell = progress or no_progress
        with self._exchanging():
            exchange_report = self._exchange(tell)
            return SyncReport(
                exchange_report.sent + self._compact(tell), exchange_report.received, self.waiting()
            )

    def remove(self, device: str, progress: Progress | None = None) -> None:
        """Remove a device: what is written from now on is under a key that it does not get.

        Raises InvalidInput for this device, and for an unknown one.
        """
        tell = progress or no_progress
        with self._exchanging():
            self._exchange(tell)
            if device == self._project.own:
                raise InvalidInput("device", device, "it is this one: `sync leave`")
            if device not in {member.device for member in self._project.other_members()}:
                raise InvalidInput("device", device, "not a device of this project")
            self._announce_removal({device: self._log.last_of(device).number})
            self._reader.reconcile()
            self.replica.apply()
            self._push(tell)

    def verify(self, progress: Progress | None = None) -> SyncVerification:
        """Read everything once more; raises RemoteTampered for what is not as it was."""
        with self._exchanging():
            heads = self._remote.heads(self._project.name)
            self._refuse_rollback(heads)
            read_count, emptied_count = self._reader.verify(heads, progress or no_progress)
            return SyncVerification(read_count, emptied_count, len(heads))

    def note_removal(self) -> None:
        """Remove forgotten content from the outbox, even while another process syncs."""
        with self._changing_locally():
            self.replica.capture_removals()
            self._spoil_outbox()
        self._services.truth.scrub()

    def waiting(self) -> int:
        """How many entries with changes are still to be sent, made or not."""
        packed_count = sum(bool(row["size"]) for row in self._log.find("ready"))
        return packed_count + sum(1 for _ in _split_blocks(self.replica.pending()))

    def devices(self) -> list[SyncDevice]:
        """All known devices."""
        heads, devices = self._log.heads(), self._project.devices
        public = self._project.membership.public
        members = {public.device: public, **devices.members}
        return [
            SyncDevice(
                name,
                members[name].name if name in members else "",
                heads[name].number if name in heads else 0,
                _time_of(heads[name].at) if name in heads else None,
                this=name == public.device,
                removed=name in devices.removed,
            )
            for name in sorted(members.keys() | heads.keys())
        ]

    def hash_of(self, name: str) -> str:
        """What a path or a conversation is found by in the headers of entries of this epoch."""
        key = self._project.membership.key_for("sync_hashes", self._project.epoch)
        return hmac.new(key, name.encode(), "sha256").hexdigest()[:32]

    def time_of(self, snapshot: str) -> datetime:
        """When the entry of this id was made. NotFound for an unknown one."""
        for row in self._log.find_by_id(snapshot):
            at = _time_of(int(row["made"]))
            if at is not None:
                return at
        raise NotFound("entry", snapshot)

    # One exchange.

    @contextmanager
    def _exchanging(self) -> Iterator[None]:
        """Hold the sync lock of this namespace, with the state read again."""
        with self._lock(), syncing():
            self._log.reload()
            self._project.load()
            yield

    @contextmanager
    def _changing_locally(self) -> Iterator[None]:
        """Hold the lock of the local sync state."""
        with self._local_lock(), syncing():
            self.replica.follow_clock()
            yield

    def _exchange(self, tell: Progress) -> SyncReport:
        tell("looking for changes", 0, 0)
        with self._changing_locally():
            self.replica.capture()
            self.replica.apply()
            self._spoil_outbox()
            self._pack()
        heads = self._remote.heads(self._project.name)
        self._refuse_rollback(heads)
        received_count = self._reader.read(heads, tell)
        self._note_clashes()
        with self._changing_locally():
            self.replica.apply()
            self._project.refuse_removed(self._remote.name)
            self._reader.refuse_withheld()
            self._spoil_outbox()
            self._repack()
            if self._project.must_rotate:
                self._announce_removal({})
            if keys := self._project.keys_to_tell():
                self._make_entry(EntryContent(keys=keys))
            self._pack()
        sent = self._push(tell)
        # The entries that carry forgotten content are emptied.
        forgotten = self.replica.store.to_drop(self._project.own)
        sent += self._empty_entries(forgotten, tell)
        restated = self.replica.store.to_drop(AGAIN + self._project.own)
        sent += self._empty_entries(restated, tell, also=("gone",))
        with self.replica.store.change() as work:
            # Including entries that had been emptied before.
            work.note_dropped([*forgotten, *restated])
        for row in self._log.find("void"):
            self._drop_content(row)
        if len(self._compactable()) > _COMPACT + 2 * self.replica.store.get(_COMPACTED, 0):
            sent += self._compact(tell)
        with self._changing_locally():
            has_changes = self.replica.capture()
        if has_changes:
            self._services.truth.scrub()
        return SyncReport(sent, received_count, self.waiting())

    def _note_clashes(self) -> None:
        """Store conflicts between the entries just read and this device's own changes."""
        read, own_device = self._reader.clashing, self._project.own
        if not read:
            return
        first_number = min(peer_entry.known for peer_entry in read) + 1
        last_number = self._log.last_of(own_device).number
        carried_patches = {
            number: self.replica.store.carried_by(own_device, number)
            for number in range(first_number, last_number + 1)
        }
        clashes = find_clashes(carried_patches, read)
        self.clashes = len(clashes)
        if clashes:
            lines = [clash.line() for clash in clashes]
            with self.replica.store.change() as work:
                older = [line for line in work.get(CONFLICTS, []) if line not in lines]
                work.put(CONFLICTS, [*older, *lines][-MOST:])

    # Sending.

    def _spoil_outbox(self) -> None:
        """Drop the bytes of unsent entries that carry forgotten content."""
        own_device = self._project.own
        forgotten_rows = [
            self._log.row(name, number)
            for name, number in self.replica.store.to_drop(own_device)
            if name == own_device
        ]
        rows = [row for row in forgotten_rows if row is not None and row["state"] == "ready"]
        if any(row["body"] is not None for row in rows):
            with self._log.change() as log:
                for row in rows:
                    # Drops the bytes only: the entry is packed again.
                    log.move(row, "ready")

    def _repack(self) -> bool:
        """Rebuild unsent entries from the first without bytes on; whether there was any.

        None of them is in the remote: `_note_sent` has checked.
        """
        rows = self._log.find("ready")
        first_stale = next((at for at, row in enumerate(rows) if row["body"] is None), None)
        if first_stale is None:
            return False
        stale_rows = rows[first_stale:]
        contents = [(row, self._read_unsent(row)) for row in stale_rows]
        carried_patches = {
            int(row["number"]): self.replica.store.carried_by(self._project.own, int(row["number"]))
            for row in stale_rows
        }
        with self._log.change() as log:
            log.unpack(stale_rows)
            self.replica.store.within(log.work.write).unpack(
                self._project.own, list(carried_patches)
            )
        for row, (epoch, content) in contents:
            repacked_content = replace(content, patches=tuple(carried_patches[int(row["number"])]))
            if repacked_content.first_line() or repacked_content.patches:
                self._make_entry(repacked_content, epoch=epoch)
        return True

    def _read_unsent(self, row: Mapping[str, Any]) -> tuple[str, EntryContent]:
        """The epoch of an unsent entry, and its content without patches."""
        if row["body"] is None:
            return self._project.membership.epoch, EntryContent()
        device, number = str(row["device"]), int(row["number"])
        log_entry = entry_of(row["body"], self._remote.name, device, number)
        cipher = self._project.cipher(log_entry.header.epoch)
        assert cipher is not None
        content = unseal(log_entry, cipher, self._remote.name)
        without_patches = EntryContent(
            dropped=content.dropped,
            member=content.member,
            removed=content.removed,
            rotation=content.rotation,
            checkpoint=content.checkpoint,
        )
        return log_entry.header.epoch, without_patches

    def _pack(self) -> None:
        """Make entries of captured changes; their bytes are stored until they are sent."""
        if not self._log.last_of(self._project.own).number:
            self._make_entry(EntryContent(member=self._project.membership.public))
        for block in _split_blocks(self.replica.pending()):
            self._make_entry(EntryContent(tuple(block)))

    def _make_entry(
        self,
        draft: EntryContent,
        *,
        epoch: str | None = None,
    ) -> None:
        """Make the next entry; `epoch` names another key than the present one."""
        project = self._project
        member = project.membership
        epoch = epoch or project.epoch
        last_head = self._log.last_of(project.own)
        number = last_head.number + 1
        hashes = tuple(sorted(set(self._hash_names(draft.patches, epoch))))
        header = Header(project.name, project.own, number, epoch, last_head.id, hashes)
        at = (self._services.clock() - _EPOCH) // _MICROSECOND
        heads = self._log.heads()
        content = EntryContent(
            draft.patches,
            {name: (head.number, head.id) for name, head in heads.items() if name != project.own},
            draft.dropped,
            at,
            draft.member,
            draft.removed,
            draft.rotation,
            draft.checkpoint,
            project.devices.begin,
            draft.keys,
        )
        cipher = project.cipher(epoch)
        assert cipher is not None
        log_entry = seal(header, content, cipher, member.sign)
        project.note(header, content)
        project.note_written(epoch, draft.keys)
        with self._log.change() as log:
            log.keep(log_entry, "ready", at, len(draft.patches), log_entry.data())
            rows = self.replica.store.within(log.work.write)
            rows.note_carried(draft.patches, project.own, number)
            project.save(rows)

    def _announce_removal(self, removed: Mapping[str, int]) -> None:
        """Announce removed devices and a new key to the others."""
        rotation = self._project.rotate(removed)
        # Under the first key: the only one that every device is sure to have.
        self._make_entry(
            EntryContent(removed=removed, rotation=rotation),
            epoch=self._project.membership.first_epoch,
        )

    def _compact(self, tell: Progress) -> int:
        """Repeat all current patches in few entries, empty the old ones, set a checkpoint."""
        devices = self._project.devices
        heads = {name: (head.number, head.id) for name, head in self._log.heads().items()}
        sent = self._empty_entries(self._compactable(), tell)
        members = tuple(devices.members.values())
        self._make_entry(
            EntryContent(
                checkpoint=LogCheckpoint(heads, members, devices.removed, devices.admission)
            )
        )
        sent += self._push(tell)
        for row in self._log.find("void"):
            self._drop_content(row)
        with self.replica.store.change() as work:
            work.put(_COMPACTED, len(self._compactable()))
        return sent

    def _compactable(self) -> list[tuple[str, int]]:
        """The entries in the remote that have patches."""
        rows = [*self._log.find("sent"), *self._log.find("received")]
        return [(str(row["device"]), int(row["number"])) for row in rows if row["size"]]

    def _empty_entries(
        self, entries: Sequence[tuple[str, int]], tell: Progress, also: Sequence[State] = ()
    ) -> int:
        """Empty entries, and repeat those of their patches that still count.

        A device empties an entry only after repeating all of its current patches itself, so that
        nothing is lost if several devices do so at once. The entry that names them has no patches
        and stays, for devices that were offline for long.
        """
        sent = 0
        rows_by_entry = [self._log.row(device, number) for device, number in entries]
        replaceable = [
            row
            for row in rows_by_entry
            if row is not None and row["state"] in ("sent", "received", *also)
        ]
        for start in range(0, len(replaceable), _REPLACED):
            batch = replaceable[start : start + _REPLACED]
            remaining = {
                (patch.item, patch.stamp): patch
                for row in batch
                for patch in self.replica.store.carried_by(str(row["device"]), int(row["number"]))
            }
            dropped_entries = tuple(
                (str(row["device"]), int(row["number"]), str(row["snapshot_id"])) for row in batch
            )
            self._make_entry(EntryContent(dropped=dropped_entries))
            for block in _split_blocks(list(remaining.values())):
                self._make_entry(EntryContent(tuple(block)))
            with self._log.change() as log:
                rows = self.replica.store.within(log.work.write)
                for row in batch:
                    log.move(row, "void")
                    rows.note_emptied(str(row["device"]), int(row["number"]))
            sent += self._push(tell)
        return sent

    def _drop_content(self, row: Mapping[str, Any]) -> None:
        device, number = str(row["device"]), int(row["number"])
        for payload in self._remote.read(self._project.name, device, number, 1):
            log_entry = entry_of(payload, self._remote.name, device, number)
            if log_entry.id != row["snapshot_id"]:
                raise RemoteTampered(
                    self._remote.name, device, number, "it is another one than was read before"
                )
            if log_entry.dropped is None:
                self._remote.drop(
                    self._project.name, device, number, without_content(log_entry).data()
                )
        with self._log.change() as log:
            log.move(row, "gone")

    def _hash_names(self, block: Sequence[Patch], epoch: str) -> Iterator[str]:
        key = self._project.membership.key_for("sync_hashes", epoch)
        for patch in block:
            kind, key_text = kind_and_key(patch.item)
            thread_or_path = key_text if kind == THREAD else patch.set.get("path")
            if thread_or_path is not None:
                yield hmac.new(key, thread_or_path.encode(), "sha256").hexdigest()[:32]

    def _push(self, tell: Progress) -> int:
        rows = self._log.find("ready")
        for sent_count, row in enumerate(rows):
            current = self._log.row(str(row["device"]), int(row["number"]))
            if current is None or current["body"] is None:
                # Its content was forgotten a moment ago.
                with self._changing_locally():
                    self._repack()
                return sent_count + self._push(tell)
            self._remote.write(
                self._project.name, str(row["device"]), int(row["number"]), row["body"]
            )
            with self._log.change() as log:
                log.move(row, "sent")
            tell("sending", sent_count + 1, len(rows))
        return len(rows)

    def _refuse_rollback(self, heads: Mapping[str, int]) -> None:
        """Refuse a remote that has lost entries which were read or sent before."""
        own_device = self._project.own
        sent = self._note_sent(heads.get(own_device, 0))
        known_heads = {device: head.number for device, head in self._log.heads().items()}
        for device, last_number in (known_heads | {own_device: sent}).items():
            # Entries of a removed device beyond its limit may disappear.
            limit = (
                self._project.devices.removed.get(device, last_number)
                if device != own_device
                else last_number
            )
            number = min(last_number, limit)
            if heads.get(device, 0) < number:
                raise RemoteTampered(
                    self._remote.name,
                    device,
                    number,
                    f"the remote has {heads.get(device, 0)} of the {number} that it had before",
                )

    def _note_sent(self, head: int) -> int:
        """Mark entries that an interrupted push has sent; the number of the last one.

        `Diverged` if the remote has an entry of this device that this device has not written.
        """
        own_device = self._project.own
        rows = self._log.rows_of(own_device)
        sent = max((n for n, row in rows.items() if row["state"] != "ready"), default=0)
        for number in range(sent + 1, head + 1):
            row = rows.get(number)
            if row is None or not any(
                entry_of(payload, self._remote.name, own_device, number).id
                == str(row["snapshot_id"])
                for payload in self._remote.read(self._project.name, own_device, number, 1)
            ):
                raise Diverged(
                    self._remote.name,
                    (
                        f"entry {number} of this device is not one that it wrote: this home was "
                        "copied, or restored from a backup; `sync fork` makes it a device of its "
                        "own"
                    ),
                )
            with self._log.change() as log:
                log.move(row, "sent")
        return max(sent, head)


def _time_of(at: int) -> datetime | None:
    return _EPOCH + at * _MICROSECOND if at else None


def _split_blocks(patches: Sequence[Patch]) -> Iterator[list[Patch]]:
    """Patches in blocks of a bounded size, one of which may contain a single larger one."""
    block: list[Patch] = []
    size = 0
    for patch in patches:
        length = len(str(patch.set)) + len(str(patch.add)) + len(str(patch.drop))
        if block and size + length > _BLOCK:
            yield block
            block, size = [], 0
        block.append(patch)
        size += length
    if block:
        yield block
