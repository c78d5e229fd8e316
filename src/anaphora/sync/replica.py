"""One device's copy of a namespace: its own changes, and those of the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from anaphora.sync.changes import Patch
from anaphora.sync.clock import HybridClock, Stamp
from anaphora.sync.codec import RecordCodec
from anaphora.sync.device import SyncedDevice
from anaphora.sync.items import KILLED, LINK, RECORD_KINDS, THREAD, kind_and_key
from anaphora.sync.links import LinkSync
from anaphora.sync.records import RecordSync, group_of
from anaphora.sync.store import CAPTURED, CLOCK, SyncStore, SyncTransaction
from anaphora.sync.threads import ThreadSync

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
            lambda item, state: group_of(item, state, secret),
        )
        self._services = services
        self._clock = HybridClock(device, services.clock, *self.store.get(CLOCK, [0, 0]))
        synced_device = SyncedDevice(services, self.store, self._clock, secret)
        self._threads = ThreadSync(synced_device)
        codec = RecordCodec(self._threads.name_of, self._threads.place_of)
        self._records = RecordSync(synced_device, codec, self._threads.origins)
        self._links = LinkSync(synced_device, self._records.row_of)

    def capture(self) -> bool:
        """Capture the changes of the home since the last call; whether there were any."""
        since = self.store.get(CAPTURED, 0)
        # Before anything is read: later writes are compared again next time.
        version = self._services.sidecar.version()
        states = {
            kind_and_key(item_id)[1]: state
            for item_id, state in self.store.seen_states(THREAD).items()
        }
        # Turns first: memories name turns by their ids.
        has_changes = self._note(list(self._threads.capture(since, states)))
        has_changes |= self._note([(patch, "") for patch in self._records.capture(since)])
        has_changes |= self._note([(patch, "") for patch in self._links.capture(since)])
        if version != since:
            with self.store.change() as work:
                work.put(CAPTURED, version)
        return has_changes

    def capture_removals(self) -> bool:
        """Capture what sync knows and the home no longer has; whether there was anything.

        Its cost grows with the removals only: items that sync does not know are left to `capture`.
        """
        since = self.store.get(CAPTURED, 0)
        states = {
            kind_and_key(item_id)[1]: state
            for item_id, state in self.store.seen_states(THREAD).items()
        }
        has_changes = bool(states) and self._note(
            list(self._threads.capture(since, states, known_only=True))
        )
        return self._note([(patch, "") for patch in self._records.removals(since)]) or has_changes

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
            dirty = self.store.dirty()
            if not dirty:
                return
            # Concurrent writes are captured before the home is compared.
            self.capture()
            moved_ids = self._threads.apply(_filter_kinds(dirty, (THREAD,)))
            if moved_ids:
                self._mark_dirty(self._records.list_about(moved_ids))
            changed_ids = self._records.apply(
                _filter_kinds(self.store.dirty(), RECORD_KINDS), self.store.get(CAPTURED, 0)
            )
            self._mark_dirty(self._links.find_around(changed_ids))
            self._links.apply(_filter_kinds(self.store.dirty(), (LINK,)))
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


def _filter_kinds(items: Iterable[str], kinds: Sequence[str]) -> Iterator[str]:
    return (item_id for item_id in items if kind_and_key(item_id)[0] in kinds)
