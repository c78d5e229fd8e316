"""A device: what it has noticed goes to the remote, what others did comes from there.

What is to be sent is in the database first, sealed, so that an interrupted push sends the same
bytes again.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from anaphora.core.progress import no_progress
from anaphora.errors import Diverged, InvalidInput, NotFound, RemoteTampered
from anaphora.store.crypto.cipher import Random
from anaphora.sync.changes import Patch
from anaphora.sync.conflicts import MOST, find_clashes
from anaphora.sync.entries import (
    Checkpoint,
    Content,
    Header,
    entry_of,
    seal,
    unseal,
    without_content,
)
from anaphora.sync.items import THREAD, kind_and_key
from anaphora.sync.log import EntryLog, State
from anaphora.sync.membership import Membership
from anaphora.sync.project import Project
from anaphora.sync.reader import EntryReader, Progress
from anaphora.sync.remotes.base import Remote
from anaphora.sync.replica import Replica
from anaphora.sync.store import AGAIN, CONFLICTS
from anaphora.sync.under_way import syncing
from anaphora.values.sync import SyncDevice, SyncReport, SyncVerification

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices

_BLOCK: Final = 64 * 1024
"""Characters of patches in one entry, unless a single one is longer."""
_REPLACED: Final = 50
"""Entries whose content goes at once."""
_COMPACT: Final = 1000
"""Entries with content after which a device says all of it again in few."""
_COMPACTED: Final = "compacted"
"""How many there were after that."""
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
        self.replica = Replica(services, member.device, member.identities)
        self._project = Project(self.replica.store, member, random)
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
            before = self._exchange(tell)
            sent = self._compact(tell)
            return SyncReport(before.sent + sent, before.received, self.waiting())

    def remove(self, device: str, progress: Progress | None = None) -> None:
        """Remove a device: what is written from now on is under a key that it does not get.

        Raises InvalidInput for this device, and for one that is none.
        """
        tell = progress or no_progress
        with self._exchanging():
            self._exchange(tell)
            if device == self._project.own:
                raise InvalidInput("device", device, "it is this one: `sync leave`")
            if device not in {member.device for member in self._project.others()}:
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
            read, emptied = self._reader.verify(heads, progress or no_progress)
            return SyncVerification(read, emptied, len(heads))

    def note_removal(self) -> None:
        """Let what was forgotten leave what is kept here, also while another process syncs."""
        with self._changing_locally():
            self.replica.capture_removals()
            self._spoil_outbox()
        self._services.truth.scrub()

    def waiting(self) -> int:
        """How many entries with changes are still to be sent, made or not."""
        packed = sum(bool(row["size"]) for row in self._log.find("ready"))
        return packed + sum(1 for _ in _split_blocks(self.replica.pending()))

    def devices(self) -> list[SyncDevice]:
        """The devices of which anything is known."""
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
        """When the entry of this id was made. NotFound for one that is not known."""
        for row in self._log.find_by_id(snapshot):
            at = _time_of(int(row["made"]))
            if at is not None:
                return at
        raise NotFound("entry", snapshot)

    # One exchange.

    @contextmanager
    def _exchanging(self) -> Iterator[None]:
        """While it lasts nobody else syncs this namespace; what is known is read again."""
        with self._lock(), syncing():
            self._log.reload()
            self._project.load()
            yield

    @contextmanager
    def _changing_locally(self) -> Iterator[None]:
        """While it lasts no other process changes what sync keeps here."""
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
        received = self._reader.read(heads, tell)
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
                self._make_entry(Content(keys=keys))
            self._pack()
        sent = self._push(tell) + self._drop_forgotten(tell)
        if len(self._compactable()) > _COMPACT + 2 * self.replica.store.get(_COMPACTED, 0):
            sent += self._compact(tell)
        with self._changing_locally():
            noted = self.replica.capture()
        if noted:
            self._services.truth.scrub()
        return SyncReport(sent, received, self.waiting())

    def _note_clashes(self) -> None:
        """Store the conflicts of what was just read with what this device said meanwhile."""
        read, own_device = self._reader.fresh, self._project.own
        if not read:
            return
        first = min(peer_entry.known for peer_entry in read) + 1
        last = self._log.last_of(own_device).number
        carried = {
            number: self.replica.store.carried_by(own_device, number)
            for number in range(first, last + 1)
        }
        clashes = find_clashes(carried, read)
        self.clashes = len(clashes)
        if clashes:
            lines = [clash.line() for clash in clashes]
            with self.replica.store.change() as work:
                older = [line for line in work.get(CONFLICTS, []) if line not in lines]
                work.put(CONFLICTS, [*older, *lines][-MOST:])

    # Sending.

    def _spoil_outbox(self) -> None:
        """Drop the bytes of entries that are still to be sent and carry what was forgotten."""
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
                    log.spoil(row)

    def _repack(self) -> bool:
        """Make entries anew from the first whose bytes were dropped; whether there was one.

        The remote has none of them: `_note_sent` has looked.
        """
        rows = self._log.find("ready")
        first_stale = next((at for at, row in enumerate(rows) if row["body"] is None), None)
        if first_stale is None:
            return False
        stale = rows[first_stale:]
        contents = [(row, self._read_unsent(row)) for row in stale]
        carried = {
            int(row["number"]): self.replica.store.carried_by(self._project.own, int(row["number"]))
            for row in stale
        }
        with self._log.change() as log:
            log.unpack(stale)
            self.replica.store.within(log.work.write).unpack(self._project.own, list(carried))
        for row, (epoch, content) in contents:
            repacked = replace(content, patches=tuple(carried[int(row["number"])]))
            if repacked.first_line() or repacked.patches:
                self._make_entry(repacked, epoch=epoch)
        return True

    def _read_unsent(self, row: Mapping[str, Any]) -> tuple[str, Content]:
        """What an entry that is still to be sent says beside patches, and under which key."""
        if row["body"] is None:
            return self._project.membership.epoch, Content()
        device, number = str(row["device"]), int(row["number"])
        log_entry = entry_of(row["body"], self._remote.name, device, number)
        cipher = self._project.cipher(log_entry.header.epoch)
        assert cipher is not None
        content = unseal(log_entry, cipher, self._remote.name)
        without_patches = Content(
            dropped=content.dropped,
            member=content.member,
            removed=content.removed,
            rotation=content.rotation,
            checkpoint=content.checkpoint,
        )
        return log_entry.header.epoch, without_patches

    def _pack(self) -> None:
        """Make entries of what was noticed; their bytes are kept until they are sent."""
        if not self._log.last_of(self._project.own).number:
            self._make_entry(Content(member=self._project.membership.public))
        for block in _split_blocks(self.replica.pending()):
            self._make_entry(Content(tuple(block)))

    def _make_entry(
        self,
        draft: Content,
        *,
        epoch: str | None = None,
    ) -> None:
        """Make the next entry; `epoch` names another key than the present one."""
        project = self._project
        member = project.membership
        epoch = epoch or project.epoch
        last = self._log.last_of(project.own)
        number = last.number + 1
        hashes = tuple(sorted(set(self._hash_names(draft.patches, epoch))))
        header = Header(project.name, project.own, number, epoch, last.id, hashes)
        at = (self._services.clock() - _EPOCH) // _MICROSECOND
        heads = self._log.heads()
        content = Content(
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
        """Tell the others which devices are none any more, and the new key."""
        rotation = self._project.rotate(removed)
        # Under the key that each device has, whichever others it lacks.
        first = self._project.membership.first_epoch
        self._make_entry(Content(removed=removed, rotation=rotation), epoch=first)

    def _drop_forgotten(self, tell: Progress) -> int:
        """Take what was forgotten out of the entries that carried it."""
        forgotten = self.replica.store.to_drop(self._project.own)
        sent = self._empty_entries(forgotten, tell)
        restated = self.replica.store.to_drop(AGAIN + self._project.own)
        sent += self._empty_entries(restated, tell, also=("gone",))
        with self.replica.store.change() as work:
            # Those that had lost it before, and those that this has just named.
            work.note_dropped([*forgotten, *restated])
        for row in self._log.find("void"):
            self._drop_content(row)
        return sent

    def _compact(self, tell: Progress) -> int:
        """Say everything that counts again, let the rest go, and tell where new devices begin."""
        devices = self._project.devices
        heads = {name: (head.number, head.id) for name, head in self._log.heads().items()}
        sent = self._empty_entries(self._compactable(), tell)
        members = tuple(devices.members.values())
        checkpoint = Checkpoint(heads, members, devices.removed, devices.admission)
        self._make_entry(Content(checkpoint=checkpoint))
        sent += self._push(tell)
        for row in self._log.find("void"):
            self._drop_content(row)
        with self.replica.store.change() as work:
            work.put(_COMPACTED, len(self._compactable()))
        return sent

    def _compactable(self) -> list[tuple[str, int]]:
        """The entries that have patches in the remote."""
        rows = [*self._log.find("sent"), *self._log.find("received")]
        return [(str(row["device"]), int(row["number"])) for row in rows if row["size"]]

    def _empty_entries(
        self, entries: Sequence[tuple[str, int]], tell: Progress, also: Sequence[State] = ()
    ) -> int:
        """Name entries that are to go, and say again what of them still counts.

        An entry is emptied only when all that counts of it was said again by the device that
        empties it, whoever else says it, too: so nothing gets lost where several do so at once.
        What names them has no patches itself, and stays: who was away for long reads it.
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
            dropped = tuple(
                (str(row["device"]), int(row["number"]), str(row["snapshot_id"])) for row in batch
            )
            self._make_entry(Content(dropped=dropped))
            for block in _split_blocks(list(remaining.values())):
                self._make_entry(Content(tuple(block)))
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
                reason = "it is another one than was read before"
                raise RemoteTampered(self._remote.name, device, number, reason)
            if log_entry.dropped is None:
                emptied = without_content(log_entry).data()
                self._remote.drop(self._project.name, device, number, emptied)
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
        for done, row in enumerate(rows):
            current = self._log.row(str(row["device"]), int(row["number"]))
            if current is None or current["body"] is None:
                # What it carries was forgotten a moment ago.
                with self._changing_locally():
                    self._repack()
                return done + self._push(tell)
            self._remote.write(
                self._project.name, str(row["device"]), int(row["number"]), row["body"]
            )
            with self._log.change() as log:
                log.move(row, "sent")
            tell("sending", done + 1, len(rows))
        return len(rows)

    def _refuse_rollback(self, heads: Mapping[str, int]) -> None:
        """Refuse a remote that has less than was read from it, or sent to it, before."""
        own_device = self._project.own
        sent = self._note_sent(heads.get(own_device, 0))
        known_heads = {device: head.number for device, head in self._log.heads().items()}
        for device, last in (known_heads | {own_device: sent}).items():
            # What a removed device wrote behind its end may go.
            limit = (
                self._project.devices.removed.get(device, last) if device != own_device else last
            )
            number = min(last, limit)
            if heads.get(device, 0) < number:
                reason = f"the remote has {heads.get(device, 0)} of the {number} that it had before"
                raise RemoteTampered(self._remote.name, device, number, reason)

    def _note_sent(self, head: int) -> int:
        """Note what a push that was interrupted has sent; the number of the last that was.

        `Diverged` where the remote has an entry under this device's name that it has not written.
        """
        own = self._project.own
        rows = self._log.rows_of(own)
        sent = max((n for n, row in rows.items() if row["state"] != "ready"), default=0)
        for number in range(sent + 1, head + 1):
            row = rows.get(number)
            if row is None or not any(
                entry_of(payload, self._remote.name, own, number).id == str(row["snapshot_id"])
                for payload in self._remote.read(self._project.name, own, number, 1)
            ):
                reason = (
                    f"entry {number} of this device is not one that it wrote: this home was "
                    "copied, or restored from a backup; `sync fork` makes it a device of its own"
                )
                raise Diverged(self._remote.name, reason)
            with self._log.change() as log:
                log.move(row, "sent")
        return max(sent, head)


def _time_of(at: int) -> datetime | None:
    return _EPOCH + at * _MICROSECOND if at else None


def _split_blocks(patches: Sequence[Patch]) -> Iterator[list[Patch]]:
    """Patches in blocks of a bounded size, one of which may hold a single larger one."""
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
