"""Importing the conversations, memories and notes of other programs."""

from __future__ import annotations

from anaphora.container.feature import CommandLine, Commands, Feature, later

FEATURE = Feature(
    "importing",
    later(f"{__package__}.services:ImportingServices"),
    commands=(
        # Before the group itself: `app` gets its commands when it is added.
        Commands(
            f"{__package__}.commands:register_conversation", 19, behind={"conversation": "Recall"}
        ),
        Commands(f"{__package__}.commands:register", 91, {"import": "Bring in"}),
    ),
    cli=CommandLine(offers=f"{__package__}.offers:find_offers"),
)
