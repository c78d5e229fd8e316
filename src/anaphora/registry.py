"""The features of Anaphora: the one place that names them all."""

from __future__ import annotations

from typing import Final

from anaphora.container.feature import Feature, register
from anaphora.features.audit.feature import FEATURE as AUDIT
from anaphora.features.coding_agents.feature import FEATURE as CODING_AGENTS
from anaphora.features.core_block.feature import FEATURE as CORE_BLOCK
from anaphora.features.deep.feature import FEATURE as DEEP
from anaphora.features.documents.feature import FEATURE as DOCUMENTS
from anaphora.features.embedders.feature import FEATURE as EMBEDDERS
from anaphora.features.importing.feature import FEATURE as IMPORTING
from anaphora.features.mirror.feature import FEATURE as MIRROR
from anaphora.features.oauth.feature import FEATURE as OAUTH
from anaphora.features.projects.feature import FEATURE as PROJECTS
from anaphora.features.server.feature import FEATURE as SERVER
from anaphora.features.sync.feature import FEATURE as SYNC

FEATURES: Final[tuple[Feature, ...]] = (
    CODING_AGENTS, IMPORTING, PROJECTS, DOCUMENTS, DEEP, CORE_BLOCK, SYNC, MIRROR, AUDIT, OAUTH,
    SERVER, EMBEDDERS,
)  # fmt: skip

register(*FEATURES)
