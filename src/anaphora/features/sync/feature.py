"""Sync: one namespace on several devices, end-to-end encrypted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anaphora.container.feature import Commands, Feature
from anaphora.features.sync.calls import SyncCalls
from anaphora.features.sync.tables import TABLES

if TYPE_CHECKING:
    from datetime import datetime

    from anaphora.container.feature import FeatureServices
    from anaphora.container.namespace import NamespaceServices
    from anaphora.store.records.transaction import RecordTransaction

__all__ = ["FEATURE", "SyncCalls"]


def _make_services(services: NamespaceServices) -> FeatureServices:
    from anaphora.features.sync.services import SyncServices

    return SyncServices(services)


def _find_latest_seen(work: RecordTransaction) -> datetime | None:
    from anaphora.features.sync.latest import latest_seen

    return latest_seen(work)


FEATURE = Feature(
    "sync",
    _make_services,
    values=f"{__package__}.values",
    tables=TABLES,
    latest_seen=_find_latest_seen,
    commands=(Commands(f"{__package__}.commands:register", ("sync",), 140),),
    routes=(f"{__package__}.routes:own_router", f"{__package__}.routes:router"),
    events=("sync", "sync_stopped"),
    locks=("sync", "sync here"),
)
