"""Authorization of clients by OAuth, beside tokens."""

from __future__ import annotations

from anaphora.container.feature import Feature
from anaphora.features.oauth.tables import TABLES

FEATURE = Feature("oauth", tables=TABLES)
