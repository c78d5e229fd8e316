"""What a device knows of its project: its own keys, the other devices, and the removed ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from anaphora.errors import DeviceRemoved
from anaphora.features.sync.admission import TOLD, Admission, EntryStatement, admission_of
from anaphora.features.sync.entries import EntryContent, Header, LogCheckpoint
from anaphora.features.sync.membership import (
    MEMBER,
    Member,
    Membership,
    Rotation,
    is_made_by,
    member_of,
    membership_of,
    project_of,
)
from anaphora.features.sync.store import SyncStore, SyncTransaction
from anaphora.store.crypto.cipher import Cipher, Random

_DEVICES: Final = "devices"
Begin = tuple[str, int, int]
"""The device and number of a checkpoint's entry, and when it was made."""


@dataclass(frozen=True, slots=True)
class Devices:
    """The devices of a project, and which of their entries count.

    `written` are the epochs under which this device has written, `told` those whose keys it has
    announced again.
    """

    members: Mapping[str, Member] = field(default_factory=dict)
    admission: Admission = field(default_factory=Admission)
    begin: Begin | None = None
    written: frozenset[str] = frozenset()
    told: frozenset[str] = frozenset()

    @property
    def removed(self) -> Mapping[str, int]:
        """The removed devices, and the last entry of each that counts."""
        return self.admission.limits

    def line(self) -> dict[str, Any]:
        """Itself as JSON."""
        return {
            "members": [member.line() for member in self.members.values()],
            "admission": self.admission.line(),
            "begin": None if self.begin is None else list(self.begin),
            "written": sorted(self.written),
            "told": sorted(self.told),
        }


class SyncProject:
    """The project of one namespace, as its rows have it since it was loaded or saved last."""

    def __init__(self, store: SyncStore, membership: Membership, random: Random) -> None:
        self._store = store
        self._random = random
        self.membership = membership
        self.devices = Devices()
        self.load()

    def load(self) -> None:
        """Read it again: another process may have changed it."""
        line, member = self._store.get(_DEVICES), self._store.get(MEMBER)
        self.membership = self.membership if member is None else membership_of(member)
        devices = Devices()
        if line is not None:
            begin = line["begin"]
            devices = Devices(
                {peer.device: peer for peer in map(member_of, line["members"])},
                admission_of(line["admission"]),
                None if begin is None else (begin[0], begin[1], begin[2]),
                frozenset(line.get("written", ())),
                frozenset(line.get("told", ())),
            )
        self.devices = devices
        self._find_founder()

    def save(self, work: SyncTransaction) -> None:
        """Save it within a transaction."""
        work.put(_DEVICES, self.devices.line())
        work.put(MEMBER, self.membership.line())

    @property
    def name(self) -> str:
        """What remotes call it."""
        return self.membership.project

    @property
    def own(self) -> str:
        """This device."""
        return self.membership.device

    def cipher(self, epoch: str) -> Cipher | None:
        """The cipher for entries of an epoch; None if its key is not known."""
        if epoch not in self.membership.keys:
            return None
        return Cipher(self.membership.key_for("sync_entries", epoch), self._random)

    @property
    def epoch(self) -> str:
        """The epoch to write under: its key is known to all present devices, and to no other."""
        return max(self._find_usable_epochs() or [self.membership.first_epoch])

    @property
    def must_rotate(self) -> bool:
        """Whether there is no such key."""
        return not self._find_usable_epochs()

    def other_members(self) -> list[Member]:
        """The other devices that were not removed."""
        members, removed_devices = self.devices.members.values(), self.devices.removed
        return [
            member
            for member in members
            if member.device != self.own and member.device not in removed_devices
        ]

    def rotate(self, removed: Collection[str] = ()) -> Rotation:
        """Make a new key, without these devices; the message that gives it to the others."""
        rotation, self.membership = self.membership.rotate(
            [member for member in self.other_members() if member.device not in removed],
            self._random,
        )
        return rotation

    def keys_to_tell(self) -> dict[str, str]:
        """The keys under which this device has written, and which another one may lack."""
        devices, admission = self.devices, self.devices.admission
        present = [self.own, *(member.device for member in self.other_members())]
        return {
            epoch: self.membership.keys[epoch].hex()
            for epoch in sorted(devices.written - devices.told)
            if not admission.have_all(epoch, present)
        }

    def begin_with(self, checkpoint: LogCheckpoint, begin: Begin) -> None:
        """Take over the knowledge of the device that made a checkpoint."""
        members = {member.device: member for member in checkpoint.members}
        members |= self.devices.members
        admission = self.devices.admission
        if checkpoint.admission is not None:
            facts = checkpoint.admission
            admission = admission.with_facts(facts.statements, facts.announced)
        elif checkpoint.removed:
            admission = admission.with_facts(
                [EntryStatement(TOLD, 0, checkpoint.removed, seen=dict.fromkeys(members, 0))]
            )
        self.devices = replace(self.devices, members=members, admission=admission, begin=begin)
        self._find_founder()

    def note(self, entry: Header, content: EntryContent) -> None:
        """Record the statements of an entry about devices and keys, whether or not it counts."""
        author, number = entry.device, entry.number
        if content.member is not None and content.member.device == author:
            # The first announcement of a device counts.
            members = {author: content.member, **self.devices.members}
            self.devices = replace(self.devices, members=members)
            self._find_founder()
        rotation = content.rotation
        # The name of a new epoch must be one that its maker may give.
        if rotation is not None and not (
            is_made_by(rotation, author) and rotation.epoch > self.membership.first_epoch
        ):
            rotation = None
        statements = []
        if content.removed or rotation is not None:
            last_read = {device: int(last_head[0]) for device, last_head in content.seen.items()}
            epoch, recipients = "", frozenset[str]()
            if rotation is not None:
                epoch, recipients = rotation.epoch, frozenset({author, *rotation.keys})
            removed_numbers = {
                device: at for device, at in content.removed.items() if device != author
            }
            statements.append(
                EntryStatement(author, number, removed_numbers, epoch, recipients, last_read)
            )
        announced_epochs = {author: entry.epoch} if number == 1 else {}
        admission = self.devices.admission.with_facts(statements, announced_epochs)
        self.devices = replace(self.devices, admission=admission)
        if rotation is not None:
            # The name of an epoch names its maker: its key replaces an announced one.
            self.membership = self.membership.unwrap(rotation, self._random) or self.membership
        for epoch, key in content.keys.items():
            if epoch not in self.membership.keys and epoch > self.membership.first_epoch:
                self.membership = self.membership.with_key(epoch, bytes.fromhex(key))

    def note_begin(self, entry: Header, content: EntryContent) -> None:
        """Record where a new device can begin, from an entry that counts."""
        begin = content.begin
        if content.checkpoint is not None:
            begin = (entry.device, entry.number, content.at)
        if begin is not None:
            self.devices = replace(
                self.devices,
                begin=max(begin, self.devices.begin or begin, key=lambda candidate: candidate[2]),
            )

    def note_written(self, epoch: str, keys: Iterable[str]) -> None:
        """Record under which key this device has written, and which keys it has announced."""
        devices = self.devices
        self.devices = replace(
            devices, written=devices.written | {epoch}, told=devices.told | set(keys)
        )

    def refuse_removed(self, remote: str) -> None:
        """Raise DeviceRemoved if this device was removed."""
        admission = self.devices.admission
        if self.own not in admission.limits:
            return
        reason = (
            "this device was removed from the project: what is here stays, and nothing is sent; "
            "where it should belong to it, join again (`sync leave`, then `sync init` with a new "
            "code)"
        )
        if admission.lost_to_founder(self.own):
            reason += "; it removed the project's first device, which removed it, too, and wins"
        if not any(self.own in statement.removed for statement in admission.accepted):
            # No statement names it: it only lacks the new key.
            reason = (
                "a device was removed while this one joined, and the project has a new key, which "
                "was not made for this device: join it again (`sync leave`, then `sync init` with "
                "a new code); what was written here stays, and is sent then"
            )
        raise DeviceRemoved(remote, reason)

    def _find_usable_epochs(self) -> list[str]:
        # Before it has announced itself, a device has the keys of its invitation.
        return self.devices.admission.usable_epochs(self.membership.keys, self.devices.members)

    def _find_founder(self) -> None:
        members = self.devices.members.items()
        admission = self.devices.admission
        # A joining device has the founder from its invitation until it has read the members.
        founders = (name for name, member in members if project_of(member.signing) == self.name)
        admission = replace(admission, founder=next(founders, admission.founder))
        self.devices = replace(self.devices, admission=admission)
