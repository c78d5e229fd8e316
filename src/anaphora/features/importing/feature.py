"""Importing the conversations, memories and notes of other programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anaphora.container.feature import CommandLine, Feature

if TYPE_CHECKING:
    from anaphora.container.feature import FeatureServices
    from anaphora.container.namespace import NamespaceServices


def _make_services(services: NamespaceServices) -> FeatureServices:
    from anaphora.features.importing.services import ImportingServices

    return ImportingServices(services)


FEATURE = Feature(
    "importing",
    _make_services,
    cli=CommandLine(offers="anaphora.features.importing.offers:find_offers"),
)
