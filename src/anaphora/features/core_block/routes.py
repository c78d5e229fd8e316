"""The routes of the core block."""

from __future__ import annotations

from anaphora.features.core_block.calls import CoreBlockCalls
from anaphora.surfaces.rest.routing import LaneRouter

router = LaneRouter("memory")
router.offer(CoreBlockCalls)
