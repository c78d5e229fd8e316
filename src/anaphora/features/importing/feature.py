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
        Commands(f"{__package__}.commands:register_conversation", ("conversation",), 19),
        Commands(f"{__package__}.commands:register", ("import",), 91),
    ),
    cli=CommandLine(offers=f"{__package__}.offers:find_offers"),
)
