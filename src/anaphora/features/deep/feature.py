"""Deep recall: questions that a model answers by searching, what it could not find, and dreams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anaphora.container.feature import Commands, Feature, LineKind
from anaphora.features.deep.calls import DeepCalls
from anaphora.features.deep.remote import RemoteDeepCalls
from anaphora.features.deep.tables import TABLES

if TYPE_CHECKING:
    from anaphora.container.feature import FeatureServices
    from anaphora.container.home import Container
    from anaphora.container.namespace import NamespaceServices

__all__ = ["FEATURE", "DeepCalls", "RemoteDeepCalls"]


def _make_services(services: NamespaceServices) -> FeatureServices:
    from anaphora.features.deep.services import DeepServices

    return DeepServices(services)


def _open(container: Container) -> None:
    # A model that is none is refused when the home is opened, not with the first question.
    from anaphora.features.deep.services import tools_of

    tools_of(container)


def _list_line_kinds() -> tuple[LineKind, ...]:
    from anaphora.features.deep.export import LINES

    return LINES


FEATURE = Feature(
    "deep",
    _make_services,
    values=f"{__package__}.values",
    tables=TABLES,
    commands=(
        Commands(f"{__package__}.commands:register", ("deep", "gaps", "dream", "extract"), 80),
    ),
    routes=(f"{__package__}.routes:router",),
    tools=f"{__package__}.mcp_tools:TOOLS",
    line_kinds=_list_line_kinds,
    open=_open,
)
