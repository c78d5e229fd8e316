"""The facade of sync."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anaphora.calls.operation import local
from anaphora.container.view import NamespaceView

if TYPE_CHECKING:
    from anaphora.features.sync.hosted import HostedLogs
    from anaphora.features.sync.manager import Sync


class SyncCalls(NamespaceView):
    """Sync of one namespace of a home."""

    @property
    @local("do it on the server's machine (`anaphora sync`)")
    def sync(self) -> Sync:
        """This namespace on several devices."""
        from anaphora.features.sync.manager import Sync

        return Sync(self._services())

    @property
    @local("devices reach it by `/v2/agent-state`")
    def hosted_logs(self) -> HostedLogs:
        """What this home keeps for devices that sync through it; it can read none of it."""
        from anaphora.features.sync.hosted import HostedLogs

        return HostedLogs(self._services())
