"""The features of Anaphora: the one module that names them.

A new feature is a folder of `anaphora.features` and a line here in `FEATURES`. It takes a second
in `FeatureCalls` if `Memory` has calls of it, and a third in `RemoteFeatureCalls` if one of them is
more than a request to a server.
"""

from __future__ import annotations

from typing import Final

from anaphora.container.feature import Feature, register
from anaphora.features.audit import feature as audit
from anaphora.features.coding_agents import feature as coding_agents
from anaphora.features.core_block import feature as core_block
from anaphora.features.deep import feature as deep
from anaphora.features.documents import feature as documents
from anaphora.features.embedders import feature as embedders
from anaphora.features.importing import feature as importing
from anaphora.features.mirror import feature as mirror
from anaphora.features.oauth import feature as oauth
from anaphora.features.projects import feature as projects
from anaphora.features.server import feature as server
from anaphora.features.sync import feature as sync

FEATURES: Final[tuple[Feature, ...]] = (
    coding_agents.FEATURE,
    importing.FEATURE,
    projects.FEATURE,
    documents.FEATURE,
    deep.FEATURE,
    core_block.FEATURE,
    sync.FEATURE,
    mirror.FEATURE,
    audit.FEATURE,
    oauth.FEATURE,
    server.FEATURE,
    embedders.FEATURE,
)

register(*FEATURES)


class FeatureCalls(
    projects.ProjectCalls,
    documents.DocumentCalls,
    deep.DeepCalls,
    core_block.CoreBlockCalls,
    audit.AuditCalls,
    sync.SyncCalls,
    mirror.MirrorCalls,
):
    """The calls of all features, for `Memory`."""


class RemoteFeatureCalls(
    projects.RemoteProjectCalls, documents.RemoteDocumentCalls, deep.RemoteDeepCalls
):
    """The calls of all features over a server that are more than a request, for `RemoteMemory`."""
