"""Projects: their files and relations, notes about them, and recall packages for a task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anaphora.container.feature import Commands, Feature, LineKind
from anaphora.features.projects.calls import ProjectCalls
from anaphora.features.projects.remote import RemoteProjectCalls
from anaphora.features.projects.tables import TABLES

if TYPE_CHECKING:
    from anaphora.container.feature import FeatureServices
    from anaphora.container.namespace import NamespaceServices

__all__ = ["FEATURE", "ProjectCalls", "RemoteProjectCalls"]


def _make_services(services: NamespaceServices) -> FeatureServices:
    from anaphora.features.projects.services import ProjectServices

    return ProjectServices(services)


def _list_line_kinds() -> tuple[LineKind, ...]:
    from anaphora.features.projects.export import LINES

    return LINES


FEATURE = Feature(
    "projects",
    _make_services,
    values=f"{__package__}.values",
    tables=TABLES,
    search_kinds=("file",),
    commands=(
        Commands(
            f"{__package__}.commands:register",
            ("project", "observe", "notes", "diary"),
            160,
        ),
    ),
    routes=(f"{__package__}.routes:router",),
    tools=f"{__package__}.mcp_tools:TOOLS",
    line_kinds=_list_line_kinds,
)
