"""One device's copy of a namespace: its own changes, and those of the others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from anaphora.features.sync.changes import Patch
from anaphora.features.sync.clock import HybridClock, Stamp
from anaphora.features.sync.device import SyncedDevice
from anaphora.features.sync.items import KILLED, kind_and_key
from anaphora.features.sync.kinds import RECORD_KINDS, open_parts
from anaphora.features.sync.records import group_of
from anaphora.features.sync.store import CAPTURED, CLOCK, SyncStore, SyncTransaction

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices

_ROUNDS: Final = 20


class Replica:
    """A namespace as a device that syncs it. `secret` is a key that all its devices share.

    The caller ensures that one process at a time uses it.
    """

    def __init__(self, services: NamespaceServices, device: str, secret: bytes) -> None:
        self.device = device
        self.store = SyncStore(
            services.truth,
            services.namespace,
            services.sealing.rows,
            lambda item, state: group_of(RECORD_KINDS, item, state, secret),
        )
        self._services = services
        self._clock = HybridClock(device, services.clock, *self.store.get(CLOCK, [0, 0]))
        self._parts = open_parts(SyncedDevice(services, self.store, self._clock, secret))

    def capture(self) -> bool:
        """Capture the changes of the home since the last call; whether there were any."""
        since = self.store.get(CAPTURED, 0)
        # Before anything is read: later writes are compared again next time.
        version = self._services.conversation.sidecar.version()
        has_changes = False
        for part in self._parts:
            has_changes |= self._note(list(part.capture(since)))
        if version != since:
            with self.store.change() as work:
                work.put(CAPTURED, version)
        return has_changes

    def capture_removals(self) -> bool:
        """Capture what sync knows and the home no longer has; whether there was anything.

        Its cost grows with the removals only: items that sync does not know are left to `capture`.
        """
        since = self.store.get(CAPTURED, 0)
        has_changes = False
        for part in self._parts:
            has_changes |= self._note(list(part.removals(since)))
        return has_changes

    def follow_clock(self) -> None:
        """Advance the clock beyond the stamps of other processes."""
        self._clock.see(_stamp(self.store.get(CLOCK, [0, 0]), self.device))

    def receive(
        self, work: SyncTransaction, patches: Sequence[Patch], device: str, entry: int
    ) -> None:
        """Add patches of other devices, from an entry of a device's log."""
        for patch in patches:
            self._clock.see(patch.stamp)
        work.receive(patches, device, entry)
        self._clock.see(_stamp(work.get(CLOCK, [0, 0]), self.device))
        work.put(CLOCK, self._clock.state())

    def apply(self) -> None:
        """Apply all known changes to the home."""
        for _ in range(_ROUNDS):
            if not self.store.dirty():
                return
            # Concurrent writes are captured before the home is compared.
            self.capture()
            for part in self._parts:
                dirty_items = _filter_kinds(self.store.dirty(), part.kinds)
                moved_items = part.apply(dirty_items, self.store.get(CAPTURED, 0))
                for neighbour in self._parts:
                    self._mark_dirty(neighbour.neighbours(moved_items))
            # The mark of a forgotten identity has no row of its own.
            with self.store.change() as work:
                work.clean(_filter_kinds(self.store.dirty(), (KILLED,)))

    def pending(self) -> list[Patch]:
        """The patches of this device that no entry carries yet."""
        return self.store.pending(self.device)

    def _note(self, noticed: list[tuple[Patch, str]]) -> bool:
        if noticed:
            with self.store.change() as work:
                work.note(noticed)
                work.put(CLOCK, self._clock.state())
        return bool(noticed)

    def _mark_dirty(self, items: Iterable[str]) -> None:
        item_ids = list(items)
        if item_ids:
            with self.store.change() as work:
                work.mark(item_ids)


def _stamp(clock: Sequence[int], device: str) -> Stamp:
    time, number = clock
    return Stamp(time, number, device)


def _filter_kinds(items: Iterable[str], kinds: Collection[str]) -> Iterator[str]:
    return (item_id for item_id in items if kind_and_key(item_id)[0] in kinds)
