"""Coding agents: hooks into their sessions, the resident process, and setting them up."""

from __future__ import annotations

from anaphora.container.feature import CommandLine, Commands, Feature

FEATURE = Feature(
    "coding_agents",
    cli=CommandLine(
        offers="anaphora.features.coding_agents.offers:find_offers",
        checks="anaphora.features.coding_agents.checks:check_clients",
        remedies="anaphora.features.coding_agents.checks:REMEDIES",
    ),
    commands=(Commands("anaphora.surfaces.cli.setup:register", ("setup", "hook"), 110),),
)
