"""The claims themselves, by what they are about."""

from __future__ import annotations

from tools.claims.checking import Registry
from tools.claims.registry.comparison import COMPARISON, COMPARISON_TABLES
from tools.claims.registry.limits import LIMITS, NO_LIMITS
from tools.claims.registry.promises import NO_PROMISES, PROMISES
from tools.claims.registry.ranking import RANKING
from tools.claims.registry.readme import README
from tools.claims.registry.scale import SCALE
from tools.claims.registry.tables import TABLES

__all__ = ["REGISTRY"]

REGISTRY = Registry(
    claims=(*README, *RANKING, *COMPARISON, *SCALE, *LIMITS, *PROMISES),
    tables=(*TABLES, *COMPARISON_TABLES),
    no_claims=(*NO_LIMITS, *NO_PROMISES),
)
