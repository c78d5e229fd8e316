"""Entries of other devices: read from the remote, verified, applied.

An entry is verified before any of it is used: its position in its device's chain, its seal, its
device's signature, and that the remote withholds nothing that some device has seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from anaphora.errors import RemoteError, RemoteTampered
from anaphora.features.sync.conflicts import ReadEntry, has_values
from anaphora.features.sync.entries import EntryContent, LogEntry, entry_of, unseal
from anaphora.features.sync.log import EntryLog, LogTransaction, State
from anaphora.features.sync.membership import Member
from anaphora.features.sync.project import SyncProject
from anaphora.features.sync.reconciling import comes_by, reconcile, say_again
from anaphora.features.sync.remotes.base import Remote
from anaphora.features.sync.replica import Replica
from anaphora.features.sync.store import SyncTransaction

_TO_COME: Final = "named"
"""Entries that were named as without content before they were read."""
_AT_ONCE: Final = 32
Progress = Callable[[str, int, int], object]
Named = tuple[str, int, str]
"""An entry: its device, its number, its id."""


class EntryReader:
    """Reads the logs of a project's devices from one remote."""

    def __init__(
        self, remote: Remote, project: SyncProject, log: EntryLog, replica: Replica
    ) -> None:
        self._remote = remote
        self._project = project
        self._log = log
        self._replica = replica
        self._errors: dict[str, RemoteTampered] = {}
        self._read_claims: list[tuple[str, Named]] = []
        self._heads: Mapping[str, int] = {}
        self.clashing: list[ReadEntry] = []
        """The entries of the last `read` that can contradict this device."""

    def read(self, heads: Mapping[str, int], tell: Progress) -> int:
        """Take in what is new up to these entries; how many there were."""
        peer_heads = {device: head for device, head in heads.items() if device != self._project.own}
        if not any(device != self._project.own for device in self._log.heads()):
            self._start_at_checkpoint(peer_heads)
        total = sum(
            max(0, n - self._log.last_of(device).number) for device, n in peer_heads.items()
        )
        self._read_claims, self._heads, self.clashing = [], peer_heads, []
        read_count, state = 0, (-1, frozenset[str]())
        # An entry may need a key that an entry of another device gives.
        while (read_count, frozenset(self._project.membership.keys)) != state:
            state = (read_count, frozenset(self._project.membership.keys))
            self._errors = {}
            for device, head in peer_heads.items():
                try:
                    for content in self._read_new(device, head):
                        read_count += 1
                        tell("receiving", read_count, max(read_count, total))
                        if has_values(content.patches):
                            last_known = content.seen.get(self._project.own, (0,))[0]
                            self.clashing.append(ReadEntry(content.patches, int(last_known)))
                        self._read_claims += [
                            (peer, (device, last_number, snapshot))
                            for peer, (last_number, snapshot) in content.seen.items()
                        ]
                except RemoteTampered as error:
                    # The other devices are read all the same: one may have removed this one.
                    self._errors[device] = error
        self.reconcile()
        return read_count

    def reconcile(self) -> None:
        """Revert entries that no longer count, and apply those that count again."""
        reconcile(self._remote, self._project, self._log, self._replica, self._fetch)

    def refuse_withheld(self) -> None:
        """Raise the errors of the last `read`, unless the device no longer counts."""
        for device, error in self._errors.items():
            if self._project.devices.admission.admits(device, error.number):
                raise error
        # Two versions of one entry, each read by another device, are refused.
        for device, (by, number, snapshot) in set(self._trusted_reads()):
            row = self._log.row(device, number)
            if row is not None and row["snapshot_id"] != snapshot:
                raise RemoteTampered(
                    self._remote.name, device, number, f"device {by} has read another one"
                )
        self._refuse_unknown_keys(self._heads)
        if self._remote.in_order:
            # The remote keeps back an entry that another device has read.
            for device, (reader, number, _) in self._trusted_reads():
                if self._log.last_of(device).number < number:
                    raise RemoteTampered(
                        self._remote.name,
                        device,
                        number,
                        f"device {reader} has read it, and the remote does not give it",
                    )
            # The remote has taken the content out of an entry by itself.
            for row in self._log.find("unnamed"):
                reason = "its content is gone, and no device has said so"
                device, number = str(row["device"]), int(row["number"])
                raise RemoteTampered(self._remote.name, device, number, reason)

    def verify(self, heads: Mapping[str, int], tell: Progress) -> tuple[int, int]:
        """Read all known entries again; how many there are, and how many without content.

        Raises RemoteTampered for the first that has changed.
        """
        rows_by_device = {
            device: {
                number: row
                for number, row in self._log.rows_of(device).items()
                if row["state"] not in ("ready", "refused")
            }
            for device in self._log.heads()
        }
        total, read_count, emptied_count = sum(map(len, rows_by_device.values())), 0, 0
        for device, rows in rows_by_device.items():
            numbers = sorted(number for number, row in rows.items() if row["state"] != "covered")
            for log_entry in self._fetch(device, numbers):
                row = rows[log_entry.header.number]
                if log_entry.id != row["snapshot_id"]:
                    self._refuse(log_entry, "it is another one than was read or sent before")
                self._refuse_forged(log_entry)
                if log_entry.dropped is not None and row["state"] not in ("gone", "void"):
                    self._refuse(log_entry, "its content is gone, and no device has said so")
                emptied_count += log_entry.dropped is not None
                read_count += 1
                tell("entries", read_count, total)
        return read_count, emptied_count

    # Where a new device begins.

    def _start_at_checkpoint(self, heads: Mapping[str, int]) -> None:
        """Begin with the newest checkpoint, if there is one."""
        candidates = []
        for device, head in heads.items():
            content = self._read_newest(device, head)
            if content is not None and content.checkpoint is not None:
                candidates.append((device, head, content.at))
            elif content is not None and content.begin is not None:
                candidates.append(content.begin)
        if not candidates:
            return
        begin = max(candidates, key=lambda candidate: candidate[2])
        content = self._read_newest(begin[0], begin[1])
        if content is None or content.checkpoint is None:
            return
        checkpoint = content.checkpoint
        covers = {
            name: head for name, head in checkpoint.covers.items() if name != self._project.own
        }
        for device, (number, _) in covers.items():
            if heads.get(device, 0) < number:
                raise RemoteTampered(
                    self._remote.name,
                    device,
                    number,
                    f"device {begin[0]} has read it, and the remote does not give it",
                )
        self._project.begin_with(checkpoint, begin)
        with self._log.change() as log:
            log.cover(covers)
            self._project.save(self._replica.store.within(log.work.write))

    def _read_newest(self, device: str, number: int) -> EntryContent | None:
        """The content of an entry under the newest key, so of a present device; None for others."""
        epoch = self._project.epoch
        cipher = self._project.cipher(epoch)
        for log_entry in self._fetch(device, [number]):
            is_newest = log_entry.header.epoch == epoch
            if is_newest and log_entry.dropped is None and cipher is not None:
                return unseal(log_entry, cipher, self._remote.name)
        return None

    # One after the other.

    def _read_new(self, device: str, head: int) -> Iterator[EntryContent]:
        """Take in the new entries of a device, as far as their keys are known.

        Entries of removed devices are read for their statements, and for nothing else.
        """
        numbers = range(self._log.last_of(device).number + 1, head + 1)
        entries = self._fetch(device, numbers)
        for log_entry in entries:
            content = self._open_entry(log_entry)
            if content is None:
                # Learn keys from the entries behind it: it is tried again.
                for later_entry in entries:
                    header = later_entry.header
                    cipher = self._project.cipher(header.epoch)
                    if later_entry.dropped is None and cipher is not None and header.number > 1:
                        later_content = unseal(later_entry, cipher, self._remote.name)
                        self._refuse_forged(later_entry)
                        self._project.note(header, later_content)
                return
            self._store_entry(log_entry, content)
            yield content

    def _fetch(self, device: str, numbers: Sequence[int]) -> Iterator[LogEntry]:
        """Entries with rising numbers, in batches of consecutive ones."""
        at = 0
        while at < len(numbers):
            first_number = numbers[at]
            count = 1
            while (
                count < _AT_ONCE
                and at + count < len(numbers)
                and numbers[at + count] == first_number + count
            ):
                count += 1
            batch = self._remote.read(self._project.name, device, first_number, count)
            if not batch:
                raise RemoteTampered(
                    self._remote.name,
                    device,
                    first_number,
                    "it is missing, and was there or later ones are",
                )
            for number, payload in enumerate(batch, first_number):
                log_entry = entry_of(payload, self._remote.name, device, number)
                if log_entry.header.project != self._project.name:
                    self._refuse(log_entry, "it is another project's")
                yield log_entry
            at += len(batch)

    def _open_entry(self, entry: LogEntry) -> EntryContent | None:
        """The verified content; None if its key is not known yet."""
        last_head = self._log.last_of(entry.header.device)
        if entry.header.parent != last_head.id:
            self._refuse(
                entry, f"it does not follow entry {last_head.number}, which was read before"
            )
        if entry.header.number > 1 or entry.dropped is not None:
            self._refuse_forged(entry)
        if entry.dropped is not None:
            return EntryContent()
        cipher = self._project.cipher(entry.header.epoch)
        if cipher is None:
            return None
        content = unseal(entry, cipher, self._remote.name)
        if entry.header.number == 1:
            self._refuse_forged(entry, content.member)
        return content

    def _refuse_forged(self, entry: LogEntry, announced: Member | None = None) -> None:
        """Refuse an entry that its device has not signed."""
        device = entry.header.device
        member = announced or self._project.devices.members.get(device)
        if member is None or member.device != device:
            self._refuse(entry, "its device has not announced itself")
        elif not member.has_signed(entry.id, entry.signature):
            self._refuse(entry, "its device has not signed it")

    def _store_entry(self, entry: LogEntry, content: EntryContent) -> None:
        device, number = entry.header.device, entry.header.number
        store = self._replica.store
        try:
            with self._log.change() as log:
                sync = store.within(log.work.write)
                self._project.note(entry.header, content)
                admission = self._project.devices.admission
                state: State = "received" if entry.dropped is None else "unnamed"
                if not admission.admits(device, number):
                    state = "refused"
                # It was named as emptied and still has content, which is repeated elsewhere.
                elif self._withdraw_named(sync, [device, number, entry.id]):
                    state = "gone"
                log.keep(entry, state, content.at, len(content.patches))
                if state == "refused":
                    say_again(log, sync, content.dropped, self._project.own)
                else:
                    self._note_emptied(log, sync, content.dropped)
                    patches = [
                        patch for patch in content.patches if comes_by(patch, admission.admits)
                    ]
                    void = [patch for patch in content.patches if patch not in patches]
                    self._replica.receive(sync, patches, device, number)
                    sync.set_again(void, self._project.own)
                    self._project.note_begin(entry.header, content)
                self._project.save(sync)
        except BaseException:
            self._project.load()
            raise

    @staticmethod
    def _withdraw_named(sync: SyncTransaction, named: list[str | int]) -> bool:
        """Whether a device has named this entry as emptied; then it is named no longer."""
        to_come = sync.get(_TO_COME, [])
        if named in to_come:
            sync.put(_TO_COME, [waiting for waiting in to_come if waiting != named])
        return named in to_come

    def _note_emptied(
        self, log: LogTransaction, sync: SyncTransaction, dropped: Sequence[Named]
    ) -> None:
        """Record the entries that a device has named as emptied, read already or not."""
        to_come = sync.get(_TO_COME, []) if dropped else []
        for device, number, snapshot in dropped:
            row = log.row(device, number)
            if row is not None and row["snapshot_id"] == snapshot and row["state"] != "ready":
                log.move(row, "gone")
                sync.note_emptied(device, number)
            elif row is None and number > self._log.last_of(device).number:
                to_come.append([device, number, snapshot])
        if dropped:
            sync.put(_TO_COME, to_come)

    # Refusals.

    def _refuse(self, entry: LogEntry, reason: str) -> None:
        header = entry.header
        raise RemoteTampered(self._remote.name, header.device, header.number, reason)

    def _refuse_unknown_keys(self, heads: Mapping[str, int]) -> None:
        """Refuse a remote that withholds a key; in a folder it may be on its way."""
        name, devices = self._remote.name, self._project.devices
        for device, head in heads.items():
            number = self._log.last_of(device).number + 1
            # An identity that never announced itself under a known key was not let in.
            is_announced = device in devices.members or len(self._project.membership.keys) == 1
            if number > head or not is_announced or not devices.admission.admits(device, number):
                continue
            if self._remote.in_order:
                raise RemoteTampered(name, device, number, "no device has told its key")
            raise RemoteError(name, f"the key of entry {number} of device {device} is not here yet")

    def _trusted_reads(self) -> Iterator[tuple[str, Named]]:
        """What present devices have read of each other."""
        devices = self._project.devices
        for device, named_read in self._read_claims:
            if not {device, named_read[0]} & devices.removed.keys() and device in devices.members:
                yield device, named_read
