"""The features of Anaphora: the one place that names them all."""

from __future__ import annotations

from typing import Final

from anaphora.container.feature import Feature, register
from anaphora.features.audit import FEATURE as AUDIT
from anaphora.features.coding_agents import FEATURE as CODING_AGENTS
from anaphora.features.core_block import FEATURE as CORE_BLOCK
from anaphora.features.deep import FEATURE as DEEP
from anaphora.features.documents import FEATURE as DOCUMENTS
from anaphora.features.embedders import FEATURE as EMBEDDERS
from anaphora.features.importing import FEATURE as IMPORTING
from anaphora.features.mirror import FEATURE as MIRROR
from anaphora.features.oauth import FEATURE as OAUTH
from anaphora.features.projects import FEATURE as PROJECTS
from anaphora.features.server import FEATURE as SERVER
from anaphora.features.sync import FEATURE as SYNC

FEATURES: Final[tuple[Feature, ...]] = (
    CODING_AGENTS, IMPORTING, PROJECTS, DOCUMENTS, DEEP, CORE_BLOCK, SYNC, MIRROR, AUDIT, OAUTH,
    SERVER, EMBEDDERS,
)  # fmt: skip

register(*FEATURES)
