"""The HTTP server: the REST API, the web page, and tokens for them."""

from __future__ import annotations

from anaphora.container.feature import Commands, Feature

FEATURE = Feature(
    "server",
    application=f"{__package__}.serving:application_over",
    commands=(
        Commands(f"{__package__}.start:register", ("start",), 10),
        Commands(f"{__package__}.commands:register", ("serve", "token"), 170),
    ),
)
