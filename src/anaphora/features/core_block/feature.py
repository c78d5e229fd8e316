"""The core block: what every session is told, and the pins that put memories into it."""

from __future__ import annotations

from anaphora.container.feature import Commands, Feature, later
from anaphora.features.core_block.calls import CoreBlockCalls

__all__ = ["FEATURE", "CoreBlockCalls"]


FEATURE = Feature(
    "core_block",
    later(f"{__package__}.services:CoreBlockServices"),
    routes=(f"{__package__}.routes:router",),
    resources=f"{__package__}.mcp_resources:RESOURCES",
    commands=(Commands(f"{__package__}.commands:register", 60, behind={"core": "Remember"}),),
)
