"""The seeds whose statements are tried, in their order."""

from __future__ import annotations

from tests.conformance.seed_000 import SEED as RECALL_LANE
from tests.conformance.seed_001 import SEED as CONVERSATIONS
from tests.conformance.seed_002 import SEED as CONTEXT
from tests.conformance.seed_003_surfaces import SEED as MEMORIES
from tests.conformance.seed_004 import SEED as DEEP

__all__ = ["SEEDS"]

SEEDS = (RECALL_LANE, CONVERSATIONS, CONTEXT, MEMORIES, DEEP)
