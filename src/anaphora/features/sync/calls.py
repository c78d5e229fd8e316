"""The facade of sync."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anaphora.container.view import NamespaceView

if TYPE_CHECKING:
    from anaphora.features.sync.hosted import HostedLogs
    from anaphora.features.sync.manager import Sync


class SyncCalls(NamespaceView):
    """Sync of one namespace of a home."""

    @property
    def sync(self) -> Sync:
        """This namespace on several devices."""
        from anaphora.features.sync.manager import Sync

        return Sync(self._services())

    @property
    def hosted_logs(self) -> HostedLogs:
        """What this home keeps for devices that sync through it; it can read none of it."""
        from anaphora.features.sync.hosted import HostedLogs

        return HostedLogs(self._services())
