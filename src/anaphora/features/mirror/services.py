"""What the mirror takes part in, in one namespace."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from anaphora.container.feature import FeatureServices

if TYPE_CHECKING:
    from anaphora.values.conversations import Check


class MirrorServices(FeatureServices):
    """Says where a namespace is mirrored, and is checked."""

    name = "mirror"

    def list_outside(self) -> Iterator[str]:
        """As in `FeatureServices`."""
        from anaphora.features.mirror.ledger import ledger_path

        ledger = ledger_path(self.services.container.home.root, self.services.namespace)
        # A ledger that is missing or damaged names no folder.
        with suppress(OSError, ValueError, KeyError, TypeError):
            yield f"mirror: {json.loads(ledger.read_bytes())['folder']}"

    def checks(self) -> Iterable[Check]:
        """As in `FeatureServices`."""
        from anaphora.features.mirror.checks import mirror_checks

        return mirror_checks(self.services)
