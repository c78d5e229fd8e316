"""README.md, beside its tables: what it is not good at, and durability."""

from __future__ import annotations

from typing import Any

from tools.claims.model import Claim
from tools.claims.registry.shared import Row, silenced
from tools.claims.sources import computed, figure, mean

__all__ = ["README"]


def _implicit(row: Row) -> bool:
    return "held out" in str(row["part"]) and row["kind"] == "implicit"


def _killed(content: Any) -> float:
    rows = [row for row in content["figures"] if row["name"].startswith("kills during ")]
    return float(sum(row["value"] for row in rows))


def _lost(content: Any) -> float:
    rows = [row for row in content["figures"] if "acknowledged writes lost" in row["name"]]
    return float(sum(row["value"] for row in rows)) if rows else float("nan")


README: tuple[Claim, ...] = (
    Claim(
        "readme.implicit",
        ("of facts that change without sharing a word it puts {share} in order",),
        {"share": mean("changes", _implicit, "right_first", "asked", "right_first, implicit")},
    ),
    Claim(
        "readme.never_answered",
        ("that were never answered it is silent for at most {most} in 100",),
        {"most": silenced("never said", max, ".0f", times=100)},
    ),
    Claim(
        "readme.killed",
        ("of {turns} turns acknowledged by processes killed at random moments, {lost} were lost",),
        {
            "turns": figure("durability", "turns acknowledged"),
            "lost": figure("durability", "acknowledged turns lost"),
        },
    ),
    Claim(
        "readme.faults",
        (
            "{lost} of the writes of {killed} processes killed while they remembered, forgot,"
            " reindexed"
            " and backed up",
        ),
        {
            "killed": computed("memory_faults", _killed, "all kills", ".0f"),
            "lost": computed("memory_faults", _lost, "acknowledged writes lost, all ways", ".0f"),
        },
    ),
)
