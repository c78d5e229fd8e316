"""A device: what it has noticed goes to the remote, what others did comes from there.

What is to be sent is in the database first, sealed, so that an interrupted push sends the same
bytes again. What is read is verified before anything of it is taken in: each entry's place in its
device's chain, its seal, and that the remote keeps back nothing that somebody has seen.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from anaphora.errors import Diverged, RemoteTampered
from anaphora.store.crypto.cipher import KEY_BYTES, Cipher, Random, derive
from anaphora.store.table_rows import TableRows
from anaphora.sync.changes import Patch
from anaphora.sync.entries import (
    Content,
    Entry,
    Header,
    entry_of,
    seal,
    unseal,
    without_content,
)
from anaphora.sync.items import THREAD, kind_and_key
from anaphora.sync.remotes.base import Remote
from anaphora.sync.replica import Replica
from anaphora.sync.under_way import syncing
from anaphora.values.sync import SyncReport

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices

_ENTRY: Final = "sync_entry"
_BLOCK: Final = 64 * 1024
"""Characters of patches in one entry, unless a single one is longer."""
_NAMED: Final = "named"
_DROPPED: Final = 50
"""Entries whose content goes at once."""
Progress = Callable[[str, int, int], object]


@dataclass(frozen=True, slots=True)
class Membership:
    """What a device knows of the project that it syncs: its own name there, and the key."""

    project: str
    device: str
    key: bytes
    epoch: int = 1

    def line(self) -> dict[str, Any]:
        """Itself as JSON."""
        return {
            "project": self.project,
            "device": self.device,
            "key": self.key.hex(),
            "epoch": self.epoch,
        }


def membership_of(line: Mapping[str, Any]) -> Membership:
    """The membership that `Membership.line` wrote."""
    return Membership(line["project"], line["device"], bytes.fromhex(line["key"]), line["epoch"])


def new_membership(random: Random) -> Membership:
    """The membership of a project's first device."""
    return Membership(f"ana_proj_{random(16).hex()}", new_device(random), random(KEY_BYTES))


def new_device(random: Random) -> str:
    """A name for a device, which says nothing of it."""
    return random(8).hex()


class SyncClient:
    """Syncs one namespace with one remote. One call at a time, in all processes: see `lock`."""

    def __init__(
        self,
        services: NamespaceServices,
        member: Membership,
        remote: Remote,
        random: Random,
        lock: Callable[[], AbstractContextManager[None]],
        try_lock: Callable[[], AbstractContextManager[bool]],
    ) -> None:
        self._services = services
        self._member = member
        self._remote = remote
        self._lock = lock
        self._try_lock = try_lock
        self._cipher = Cipher(derive(member.key, "sync_entries"), random)
        self._hash_key = derive(member.key, "sync_hashes")
        identities = derive(member.key, "sync_identities")
        self.replica = Replica(services, member.device, identities)
        self._entries = TableRows(services.truth, services.namespace, services.sealing.rows)

    def now(self, progress: Progress | None = None) -> SyncReport:
        """Send and fetch everything there is. Raises SyncError and its kinds, StoreError."""
        tell = progress or _nobody
        with self._lock(), syncing():
            self.replica.capture()
            self.replica.apply()
            self._pack()
            heads = self._remote.heads(self._member.project)
            received = self._pull(heads, tell)
            self.replica.apply()
            self._pack()
            sent = self._push(tell) + self._drop_forgotten(tell)
            # What was forgotten while this held the lock leaves with it.
            if self.replica.capture():
                self._services.truth.scrub()
            return SyncReport(sent, received, self.waiting())

    def note_removal(self) -> None:
        """Let what was forgotten leave what is kept here, unless another process syncs."""
        with self._try_lock() as held, syncing():
            if held:
                self.replica.capture()
                self._services.truth.scrub()

    def waiting(self) -> int:
        """How many entries are still to be sent."""
        return len(self._entries.find(_ENTRY, {"state": "ready"}))

    def last_of(self, device: str) -> tuple[int, str]:
        """The number and the id of the last entry that is known of a device; 0 and "" for none."""
        rows = self._entries.find(_ENTRY, {"device": device})
        if not rows:
            return 0, ""
        last = max(rows, key=lambda row: int(row["number"]))
        return int(last["number"]), str(last["snapshot_id"])

    def devices(self) -> dict[str, int]:
        """Each device of which anything is known, and the number of its last entry here."""
        names = {str(row["device"]) for row in self._entries.find(_ENTRY)}
        return {name: self.last_of(name)[0] for name in sorted(names | {self._member.device})}

    def hash_of(self, name: str) -> str:
        """What a path or a conversation is found by in the headers of entries."""
        return hmac.new(self._hash_key, name.encode(), "sha256").hexdigest()[:32]

    # Sending.

    def _pack(self) -> None:
        """Make entries of what was noticed; their bytes are kept until they are sent."""
        for block in _blocks(self.replica.pending()):
            self._make_entry(block)

    def _make_entry(
        self, block: Sequence[Patch], dropped: Sequence[tuple[str, int, str]] = ()
    ) -> None:
        member = self._member
        number, parent = self.last_of(member.device)
        header = Header(
            member.project,
            member.device,
            number + 1,
            member.epoch,
            parent,
            tuple(sorted(set(self._hashes(block)))),
        )
        seen = {name: self.last_of(name) for name in self.devices() if name != member.device}
        entry = seal(header, Content(tuple(block), seen, tuple(dropped)), self._cipher)
        with self._entries.change() as work:
            work.replace(_ENTRY, [_row(entry, "ready", entry.data())])
            rows = self.replica.store.within(work.write)
            rows.carried(block, member.device, number + 1)
            rows.dropped([(device, at) for device, at, _ in dropped])
            for device, at, _ in dropped:
                known = work.find(_ENTRY, {"device": device, "number": at})
                work.replace(_ENTRY, [row | {"state": "drop"} for row in known])

    def _drop_forgotten(self, tell: Progress) -> int:
        """Take what was forgotten out of the entries that carried it.

        What else they said is said again first, in an entry that tells which ones go.
        """
        sent = 0
        states = {
            (str(row["device"]), int(row["number"])): row for row in self._entries.find(_ENTRY)
        }
        # One that was not sent yet is sent first, so that no number is missing.
        named = [
            (device, number, str(states[device, number]["snapshot_id"]))
            for device, number in self.replica.store.to_drop(self._member.device)
            if (device, number) in states and states[device, number]["state"] != "ready"
        ]
        for start in range(0, len(named), _DROPPED):
            some = named[start : start + _DROPPED]
            left = [
                patch
                for device, number, _ in some
                for patch in self.replica.store.carried_by(device, number)
            ]
            blocks = list(_blocks(left)) or [[]]
            for block in blocks[:-1]:
                self._make_entry(block)
            self._make_entry(blocks[-1], some)
            sent += self._push(tell)
        for row in self._entries.find(_ENTRY, {"state": "drop"}):
            self._drop(row)
        return sent

    def _drop(self, row: Mapping[str, Any]) -> None:
        device, number = str(row["device"]), int(row["number"])
        data = self._remote.read(self._member.project, device, number)
        if data is not None:
            entry = entry_of(data, self._remote.name, device, number)
            if entry.id != row["snapshot_id"]:
                reason = "it is another one than was read before"
                raise RemoteTampered(self._remote.name, device, number, reason)
            if entry.dropped is None:
                gone = without_content(entry).data()
                self._remote.drop(self._member.project, device, number, gone)
        with self._entries.change() as work:
            work.replace(_ENTRY, [{**row, "state": "sent"}])

    def _hashes(self, block: Sequence[Patch]) -> Iterator[str]:
        for patch in block:
            kind, key = kind_and_key(patch.item)
            path = patch.set.get("path")
            if kind == THREAD:
                yield self.hash_of(key)
            elif path is not None:
                yield self.hash_of(path)

    def _push(self, tell: Progress) -> int:
        rows = self._entries.find(_ENTRY, {"state": "ready"})
        rows.sort(key=lambda row: int(row["number"]))
        for done, row in enumerate(rows):
            device, number = str(row["device"]), int(row["number"])
            self._remote.write(self._member.project, device, number, row["body"])
            self._mark_sent(row)
            tell("push", done + 1, len(rows))
        return len(rows)

    # Fetching.

    def _pull(self, heads: Mapping[str, int], tell: Progress) -> int:
        self._refuse_rollback(heads)
        todo = [
            (device, number)
            for device, head in sorted(heads.items())
            if device != self._member.device
            for number in range(self.last_of(device)[0] + 1, head + 1)
        ]
        promised: dict[str, tuple[int, str, str]] = {}
        for done, (device, number) in enumerate(todo):
            content = self._take(device, number)
            for other, (last, snapshot, *_) in content.seen.items():
                if last > promised.get(other, (0, "", ""))[0]:
                    promised[other] = (last, snapshot, device)
            tell("pull", done + 1, len(todo))
        if self._remote.in_order:
            self._refuse_gaps(promised)
            self._refuse_unnamed()
        return len(todo)

    def _take(self, device: str, number: int) -> Content:
        """Read one entry, verify it, and take in what it says."""
        name = self._remote.name
        data = self._remote.read(self._member.project, device, number)
        if data is None:
            raise RemoteTampered(name, device, number, "it is missing, and later ones are there")
        entry = entry_of(data, name, device, number)
        if entry.header.project != self._member.project:
            raise RemoteTampered(name, device, number, "it is another project's")
        last, parent = self.last_of(device)
        if entry.header.parent != parent:
            reason = f"it does not follow entry {last}, which was read before"
            raise RemoteTampered(name, device, number, reason)
        if entry.dropped is not None:
            named = [device, number, entry.dropped] in self.replica.store.get(_NAMED, [])
            self._keep(entry, "named" if named else "unnamed")
            return Content()
        content = unseal(entry, self._cipher, name)
        self.replica.receive(content.patches, device, number)
        self._keep(entry, "received")
        self._take_names(content.dropped)
        return content

    def _take_names(self, dropped: Sequence[tuple[str, int, str]]) -> None:
        """Note which entries a device has named as without content: read already, or to come."""
        if not dropped:
            return
        with self._entries.change() as work:
            to_come = self.replica.store.get(_NAMED, [])
            for device, number, snapshot in dropped:
                rows = work.find(_ENTRY, {"device": device, "number": number})
                if not rows:
                    to_come.append([device, number, snapshot])
                elif (rows[0]["state"], rows[0]["snapshot_id"]) == ("unnamed", snapshot):
                    work.replace(_ENTRY, [rows[0] | {"state": "named"}])
            self.replica.store.within(work.write).put(_NAMED, to_come)

    def _keep(self, entry: Entry, state: str) -> None:
        with self._entries.change() as work:
            work.replace(_ENTRY, [_row(entry, state, None)])

    def _refuse_unnamed(self) -> None:
        """Refuse a remote that has taken the content out of an entry by itself."""
        for row in self._entries.find(_ENTRY, {"state": "unnamed"}):
            reason = "its content is gone, and no device has said so"
            device, number = str(row["device"]), int(row["number"])
            raise RemoteTampered(self._remote.name, device, number, reason)

    def _refuse_rollback(self, heads: Mapping[str, int]) -> None:
        """Refuse a remote that has less than was read from it, or sent to it, before."""
        own = self._member.device
        sent = self._note_sent(heads.get(own, 0))
        for device, known in (self.devices() | {own: sent}).items():
            if heads.get(device, 0) < known:
                reason = f"the remote has {heads.get(device, 0)} of the {known} that it had before"
                raise RemoteTampered(self._remote.name, device, known, reason)

    def _note_sent(self, head: int) -> int:
        """Note what a push that was interrupted has sent; the number of the last that was.

        `Diverged` where the remote has an entry under this device's name that it has not written.
        """
        own = self._member.device
        rows = {int(row["number"]): row for row in self._entries.find(_ENTRY, {"device": own})}
        sent = max((n for n, row in rows.items() if row["state"] == "sent"), default=0)
        for number in range(sent + 1, head + 1):
            row = rows.get(number)
            if row is None or not self._is_there(row):
                reason = (
                    f"entry {number} of this device is not one that it wrote: this home was "
                    "copied, or restored from a backup; `sync fork` makes it a device of its own"
                )
                raise Diverged(self._remote.name, reason)
            self._mark_sent(row)
        return max(sent, head)

    def _is_there(self, row: Mapping[str, Any]) -> bool:
        """Whether the remote has this very entry."""
        device, number = str(row["device"]), int(row["number"])
        data = self._remote.read(self._member.project, device, number)
        if data is None:
            return False
        return entry_of(data, self._remote.name, device, number).id == str(row["snapshot_id"])

    def _mark_sent(self, row: Mapping[str, Any]) -> None:
        with self._entries.change() as work:
            work.replace(_ENTRY, [{**row, "state": "sent", "body": None}])

    def _refuse_gaps(self, promised: Mapping[str, tuple[int, str, str]]) -> None:
        """Refuse a remote that keeps back what another device has read from it."""
        for device, (number, snapshot, by) in promised.items():
            last, _ = self.last_of(device)
            if last < number:
                reason = f"device {by} has read it, and the remote does not give it"
                raise RemoteTampered(self._remote.name, device, number, reason)
            rows = self._entries.find(_ENTRY, {"device": device, "number": number})
            if rows and rows[0]["snapshot_id"] != snapshot:
                reason = f"device {by} has read another one"
                raise RemoteTampered(self._remote.name, device, number, reason)


def _row(entry: Entry, state: str, body: bytes | None) -> dict[str, Any]:
    return {
        "device": entry.header.device,
        "number": entry.header.number,
        "snapshot_id": entry.id,
        "state": state,
        "body": body,
    }


def _blocks(patches: Sequence[Patch]) -> Iterator[list[Patch]]:
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


def _nobody(_what: str, _done: int, _total: int) -> None:
    """Tell nobody."""
