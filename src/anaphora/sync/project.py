"""What a device knows of its project: its own keys, the other devices, and who was removed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from anaphora.errors import DeviceRemoved, RemoteTampered
from anaphora.store.crypto.cipher import Cipher, Random
from anaphora.sync.entries import Checkpoint, Content, Entry
from anaphora.sync.membership import MEMBER, Member, Membership, Rotation, member_of, membership_of
from anaphora.sync.store import SyncStore, SyncTransaction

_DEVICES: Final = "devices"
Begin = tuple[str, int, int]
"""The device and number of a checkpoint's entry, and when it was made."""


@dataclass(frozen=True, slots=True)
class Devices:
    """The devices of a project. `removed` maps those that left to their last entry that counts.

    `recipients` have the newest key; None before there was a second one. `untold`: this device
    knows of more removed ones than it has told.
    """

    members: Mapping[str, Member] = field(default_factory=dict)
    removed: Mapping[str, int] = field(default_factory=dict)
    recipients: frozenset[str] | None = None
    begin: Begin | None = None
    untold: bool = False

    def line(self) -> dict[str, Any]:
        """Itself as JSON."""
        return {
            "members": [member.line() for member in self.members.values()],
            "removed": dict(self.removed),
            "recipients": None if self.recipients is None else sorted(self.recipients),
            "begin": None if self.begin is None else list(self.begin),
            "untold": self.untold,
        }

    def admits(self, device: str) -> bool:
        """Whether a device that announces itself under an old key is one that was known then."""
        return self.recipients is None or device in self.recipients or device in self.removed

    def without(self, last: Mapping[str, int], *, told: bool) -> Devices:
        """The same with these devices removed, each behind an entry, the later one if two are."""
        removed = dict(self.removed)
        for device, number in last.items():
            removed[device] = max(number, removed.get(device, 0))
        return replace(self, removed=removed, untold=self.untold or not told)


def _devices_of(line: Mapping[str, Any]) -> Devices:
    recipients, begin = line["recipients"], line["begin"]
    members = {member.device: member for member in map(member_of, line["members"])}
    return Devices(
        members,
        line["removed"],
        None if recipients is None else frozenset(recipients),
        None if begin is None else (begin[0], begin[1], begin[2]),
        line["untold"],
    )


class Project:
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
        self.devices = Devices() if line is None else _devices_of(line)
        self.membership = self.membership if member is None else membership_of(member)

    def save(self, work: SyncTransaction) -> None:
        """Keep it with what else a transaction does."""
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
        """The cipher for entries of an epoch; None where its key is not known."""
        if epoch not in self.membership.keys:
            return None
        return Cipher(self.membership.key_for("sync_entries", epoch), self._random)

    def limit(self, device: str) -> int | None:
        """The last entry of a device that counts; None where all do."""
        return self.devices.removed.get(device)

    def others(self) -> list[Member]:
        """The other devices that were not removed."""
        members = self.devices.members.values()
        return [
            one
            for one in members
            if one.device != self.own and one.device not in self.devices.removed
        ]

    def must_rotate(self) -> bool:
        """Whether a device that was removed has the newest key."""
        has, removed = self.devices.recipients, self.devices.removed.keys()
        return bool(removed) if has is None else bool(has & removed)

    def rotate(self) -> Rotation:
        """Go on under a new key; what tells it to the others."""
        others = self.others()
        rotation, self.membership = self.membership.rotate(others, self._random)
        has = frozenset({self.own, *(one.device for one in others)})
        self.devices = replace(self.devices, recipients=has)
        return rotation

    def admit(self, member: Member) -> None:
        """Know a device."""
        members = {**self.devices.members, member.device: member}
        self.devices = replace(self.devices, members=members)

    def begin_with(self, checkpoint: Checkpoint, begin: Begin) -> None:
        """Know what the devices knew that made a checkpoint."""
        members = {member.device: member for member in checkpoint.members}
        members |= self.devices.members
        rotated = len(self.membership.keys) > 1
        has = frozenset(members.keys() - checkpoint.removed.keys()) if rotated else None
        self.devices = Devices(members, checkpoint.removed, has, begin)

    def take(self, entry: Entry, content: Content, heads: Mapping[str, int], remote: str) -> None:
        """Take in what an entry tells of devices and keys; `heads` are the last ones read here.

        Raises DeviceRemoved where this device is none any more.
        """
        by, number = entry.header.device, entry.header.number
        if content.member is not None:
            self.admit(content.member)
        if content.removed:
            self._take_removed(content.removed, heads, remote)
        if content.rotation is not None and content.rotation.epoch not in self.membership.keys:
            self._take_rotation(content.rotation, entry, heads, remote)
        begin = content.begin
        if content.checkpoint is not None:
            begin = (by, number, content.at)
        if begin is not None:
            newest = max(begin, self.devices.begin or begin, key=lambda one: one[2])
            self.devices = replace(self.devices, begin=newest)

    def _take_removed(
        self, removed: Mapping[str, int], heads: Mapping[str, int], remote: str
    ) -> None:
        if self.own in removed:
            raise DeviceRemoved(remote, "this device was removed from the project")
        # What was read of them before counts, and the others are told so.
        read = {device: max(last, heads.get(device, 0)) for device, last in removed.items()}
        self.devices = self.devices.without(read, told=read == removed)

    def _take_rotation(
        self, rotation: Rotation, entry: Entry, heads: Mapping[str, int], remote: str
    ) -> None:
        by, number = entry.header.device, entry.header.number
        if self.own not in rotation.keys:
            reason = "the project has a new key, which was not made for this device: join it again"
            raise DeviceRemoved(remote, reason)
        after = self.membership.unwrap(rotation, self._random)
        if after is None:
            raise RemoteTampered(remote, by, number, "the key in it is none for this device")
        self.membership = after
        if rotation.epoch != after.epoch:
            return
        has = frozenset({by, *rotation.keys})
        self.devices = replace(self.devices, recipients=has)
        unknown = self.devices.members.keys() - has - self.devices.removed.keys()
        if unknown:
            # Whoever rotated did not know them: they are to join again.
            last = {device: heads.get(device, 0) for device in unknown}
            self.devices = self.devices.without(last, told=False)
