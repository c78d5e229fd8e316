"""The objects that all parts of a device share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from anaphora.features.sync.clock import HybridClock
from anaphora.features.sync.store import SyncStore

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices


@dataclass(frozen=True, slots=True)
class SyncedDevice:
    """A namespace on one device. `secret` is a key that all its devices share: it keys digests."""

    services: NamespaceServices
    store: SyncStore
    clock: HybridClock
    secret: bytes
