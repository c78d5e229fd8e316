"""The core block of one namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anaphora.container.feature import FeatureServices
from anaphora.container.services import service

if TYPE_CHECKING:
    from anaphora.ingest.pinning import CoreBlockWriter
    from anaphora.recall.context.core_block import CoreBlockRecall


class CoreBlockServices(FeatureServices):
    """Puts the core block together, and changes it."""

    name = "core block"

    @service
    def recall(self) -> CoreBlockRecall:
        """What every session is told."""
        from anaphora.recall.context.core_block import CoreBlockRecall

        services = self.services
        tokens = services.container.settings.core_tokens
        return CoreBlockRecall(services.records, services.clock, tokens)

    @service
    def writing(self) -> CoreBlockWriter:
        """Pins memories, and takes them out."""
        from anaphora.ingest.pinning import CoreBlockWriter

        return CoreBlockWriter(self.services.records, self.services.clock)
