"""The core block: what every session is told, and the pins that put memories into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anaphora.container.feature import Commands, Feature
from anaphora.features.core_block.calls import CoreBlockCalls

if TYPE_CHECKING:
    from anaphora.container.feature import FeatureServices
    from anaphora.container.namespace import NamespaceServices

__all__ = ["FEATURE", "CoreBlockCalls"]


def _make_services(services: NamespaceServices) -> FeatureServices:
    from anaphora.features.core_block.services import CoreBlockServices

    return CoreBlockServices(services)


FEATURE = Feature(
    "core_block",
    _make_services,
    routes=(f"{__package__}.routes:router",),
    resources=f"{__package__}.mcp_resources:RESOURCES",
    commands=(
        Commands(
            f"{__package__}.commands:register",
            ("core",),
            60,
        ),
    ),
)
