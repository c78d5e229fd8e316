"""Coding agents: hooks into their sessions, the resident process, and setting them up."""

from __future__ import annotations

from anaphora.container.feature import CommandLine, Commands, Feature

FEATURE = Feature(
    "coding_agents",
    cli=CommandLine(
        offers=f"{__package__}.offers:find_offers",
        checks=f"{__package__}.checks:check_clients",
        remedies=f"{__package__}.checks:REMEDIES",
    ),
    commands=(
        Commands(
            f"{__package__}.commands:register",
            110,
            {"setup": "Agents and server"},
            {"hook": "Agents and server"},
        ),
    ),
)
