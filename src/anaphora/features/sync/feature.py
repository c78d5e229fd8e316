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
    values="anaphora.values.sync",
    tables=TABLES,
    latest_seen=_find_latest_seen,
    commands=(Commands("anaphora.surfaces.cli.sync:register", ("sync",), 140),),
    routes=("anaphora.surfaces.rest.sync:own_router", "anaphora.surfaces.rest.sync:router"),
    events=("sync", "sync_stopped"),
    locks=("sync", "sync here"),
)
