"""Sync: one namespace on several devices, end-to-end encrypted."""

from __future__ import annotations

from anaphora.container.feature import Commands, Feature, later
from anaphora.features.sync.calls import SyncCalls
from anaphora.features.sync.tables import TABLES

__all__ = ["FEATURE", "SyncCalls"]


FEATURE = Feature(
    "sync",
    later(f"{__package__}.services:SyncServices"),
    values=f"{__package__}.values",
    tables=TABLES,
    latest_seen=later(f"{__package__}.latest:latest_seen"),
    commands=(Commands(f"{__package__}.commands:register", 140, {"sync": "Devices"}),),
    routes=(f"{__package__}.routes:own_router", f"{__package__}.routes:router"),
    events=("sync", "sync_stopped"),
    locks=("sync", "sync here"),
)
