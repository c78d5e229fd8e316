"""Coding agents: hooks into their sessions, the resident process, and setting them up."""

from __future__ import annotations

from anaphora.container.feature import Commands, Feature

FEATURE = Feature(
    "coding_agents",
    commands=(Commands("anaphora.surfaces.cli.setup:register", ("setup", "hook"), 110),),
)
