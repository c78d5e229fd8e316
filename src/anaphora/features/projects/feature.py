"""Projects: their files and relations, notes about them, and recall packages for a task."""

from __future__ import annotations

from anaphora.container.feature import Commands, Feature, later
from anaphora.features.projects.calls import ProjectCalls
from anaphora.features.projects.kinds import FILE
from anaphora.features.projects.remote import RemoteProjectCalls
from anaphora.features.projects.tables import TABLES

__all__ = ["FEATURE", "ProjectCalls", "RemoteProjectCalls"]


FEATURE = Feature(
    "projects",
    later(f"{__package__}.services:ProjectServices"),
    values=f"{__package__}.values",
    tables=TABLES,
    search_kinds=(FILE,),
    commands=(
        Commands(
            f"{__package__}.commands:register",
            160,
            {"project": "Projects"},
            {"observe": "Projects", "notes": "Projects", "diary": "Projects"},
        ),
    ),
    routes=(f"{__package__}.routes:router",),
    tools=f"{__package__}.mcp_tools:TOOLS",
    line_kinds=f"{__package__}.export:LINES",
)
