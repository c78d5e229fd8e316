"""What sync takes part in, in one namespace."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from anaphora.container.feature import FeatureServices

if TYPE_CHECKING:
    from anaphora.values.conversations import Check


class SyncServices(FeatureServices):
    """Takes forgotten content out of what waits for other devices, and is checked."""

    name = "sync"

    def after_removal(self) -> None:
        """As in `FeatureServices`."""
        from anaphora.features.sync.removal import note_removal

        note_removal(self.services)

    def list_outside(self) -> Iterator[str]:
        """As in `FeatureServices`."""
        for row in self.services.table_rows.find("sync_state", {"name": "remote"}):
            address, *_ = json.loads(row["value"])["value"]
            yield f"sync remote: {address}"

    def checks(self) -> Iterable[Check]:
        """As in `FeatureServices`."""
        from anaphora.features.sync.checks import sync_checks

        return sync_checks(self.services)
