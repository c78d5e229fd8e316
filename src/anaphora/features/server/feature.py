"""The HTTP server: the REST API, the web page, and tokens for them."""

from __future__ import annotations

from anaphora.container.feature import Commands, Feature

FEATURE = Feature(
    "server",
    application="anaphora.surfaces.rest.serving:application_over",
    commands=(
        Commands("anaphora.surfaces.cli.start:register", ("start",), 10),
        Commands("anaphora.surfaces.cli.serve:register", ("serve", "token"), 170),
    ),
)
