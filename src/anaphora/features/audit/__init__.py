"""The audit trail: actions in a namespace with time and author, without content."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anaphora.container.feature import Feature
from anaphora.features.audit.tables import TABLES

if TYPE_CHECKING:
    from anaphora.container.feature import FeatureServices
    from anaphora.container.namespace import NamespaceServices


def _make_services(services: NamespaceServices) -> FeatureServices:
    from anaphora.features.audit.services import AuditServices

    return AuditServices(services)


FEATURE = Feature(
    "audit",
    _make_services,
    tables=TABLES,
    commands="anaphora.surfaces.cli.audit",
    routes="anaphora.surfaces.rest.audit",
)
