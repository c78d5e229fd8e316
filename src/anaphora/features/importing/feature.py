"""Importing the conversations, memories and notes of other programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anaphora.container.feature import CommandLine, Commands, Feature

if TYPE_CHECKING:
    from anaphora.container.feature import FeatureServices
    from anaphora.container.namespace import NamespaceServices


def _make_services(services: NamespaceServices) -> FeatureServices:
    from anaphora.features.importing.services import ImportingServices

    return ImportingServices(services)


FEATURE = Feature(
    "importing",
    _make_services,
    commands=(
        # Before the group itself: `app` gets its commands when it is added.
        Commands(
            "anaphora.features.importing.commands:register_conversation", ("conversation",), 19
        ),
        Commands("anaphora.features.importing.commands:register", ("import",), 91),
    ),
    cli=CommandLine(offers="anaphora.features.importing.offers:find_offers"),
)
