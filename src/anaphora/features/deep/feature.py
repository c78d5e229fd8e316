"""Deep recall: questions that a model answers by searching, what it could not find, and dreams."""

from __future__ import annotations

from anaphora.container.feature import Commands, Feature, later
from anaphora.features.deep.calls import DeepCalls
from anaphora.features.deep.remote import RemoteDeepCalls
from anaphora.features.deep.tables import TABLES

__all__ = ["FEATURE", "DeepCalls", "RemoteDeepCalls"]


FEATURE = Feature(
    "deep",
    later(f"{__package__}.services:DeepServices"),
    values=f"{__package__}.values",
    tables=TABLES,
    commands=(
        Commands(
            f"{__package__}.commands:register",
            80,
            behind={"deep": "Recall", "gaps": "Recall", "dream": "Care", "extract": "Remember"},
        ),
    ),
    routes=(f"{__package__}.routes:router",),
    tools=f"{__package__}.mcp_tools:TOOLS",
    line_kinds=f"{__package__}.export:LINES",
    # A model that is none is refused when the home is opened, not with the first question.
    open=later(f"{__package__}.services:tools_of"),
)
