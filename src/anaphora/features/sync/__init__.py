"""Sync: one namespace on several devices, end-to-end encrypted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anaphora.container.feature import Feature
from anaphora.features.sync.tables import TABLES

if TYPE_CHECKING:
    from anaphora.container.feature import FeatureServices
    from anaphora.container.namespace import NamespaceServices


def _make_services(services: NamespaceServices) -> FeatureServices:
    from anaphora.features.sync.services import SyncServices

    return SyncServices(services)


FEATURE = Feature(
    "sync",
    _make_services,
    tables=TABLES,
    commands="anaphora.surfaces.cli.sync",
    routes="anaphora.surfaces.rest.sync",
    events=("sync", "sync_stopped"),
    locks=("sync", "sync here"),
)
