"""The core block of one namespace."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from anaphora.container.feature import FeatureServices
from anaphora.container.services import service

if TYPE_CHECKING:
    from anaphora.features.core_block.recall import CoreBlockRecall
    from anaphora.features.core_block.writing import CoreBlockWriter
    from anaphora.recall.session.standing import StandingContext
    from anaphora.values.context import ContextMemory
    from anaphora.values.memories import MemoryRecord


class CoreBlockServices(FeatureServices):
    """Puts the core block together, and changes it."""

    name = "core block"

    @service
    def recall(self) -> CoreBlockRecall:
        """What every session is told."""
        from anaphora.features.core_block.recall import CoreBlockRecall

        services = self.services
        tokens = services.container.settings.core_tokens
        return CoreBlockRecall(services.memory.records, services.clock, tokens)

    def opening(
        self, standing: StandingContext, memories: Sequence[MemoryRecord]
    ) -> Iterable[ContextMemory]:
        """As in `FeatureServices`: the core block, without what belongs to other projects."""
        from anaphora.features.core_block.recall import as_context, core_entries

        is_foreign = standing.project.is_foreign
        return map(as_context, core_entries(standing.records, memories, standing.now, is_foreign))

    @service
    def writing(self) -> CoreBlockWriter:
        """Pins memories, and takes them out."""
        from anaphora.features.core_block.writing import CoreBlockWriter

        return CoreBlockWriter(self.services.memory.records, self.services.clock)
