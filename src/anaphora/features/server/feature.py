"""The HTTP server: the REST API, the web page, and tokens for them."""

from __future__ import annotations

from anaphora.container.feature import Commands, Feature

FEATURE = Feature(
    "server",
    application=f"{__package__}.serving:application_over",
    commands=(
        Commands(f"{__package__}.start:register", 10, {"start": "Agents and server"}),
        Commands(
            f"{__package__}.commands:register",
            170,
            behind={"serve": "Agents and server", "token": "Agents and server"},
        ),
    ),
)
