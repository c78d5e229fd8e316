"""The audit trail of one namespace."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from anaphora.container.feature import FeatureServices
from anaphora.container.services import service

if TYPE_CHECKING:
    from anaphora.features.audit.trail import AuditTrail
    from anaphora.values.actions import AuditAction
    from anaphora.values.conversations import Check


class AuditServices(FeatureServices):
    """Records what is read and changed, if a trail is kept."""

    name = "audit"

    @service
    def trail(self) -> AuditTrail:
        """The audit trail, if one is recorded."""
        from anaphora.features.audit.trail import AuditTrail

        services = self.services
        return AuditTrail(services.truth, services.namespace, services.rows_sealer)

    def is_auditing(self) -> bool:
        """As in `FeatureServices`."""
        return self.trail.is_on()

    def after_call(self, action: AuditAction, lane: str, ids: Sequence[str], question: str) -> None:
        """As in `FeatureServices`."""
        self.trail.add(action, lane, ids, count=len(ids), question=question)

    def after_turns(self, action: AuditAction, conversation_id: str, count: int) -> None:
        """As in `FeatureServices`."""
        self.trail.add_turns(action, conversation_id, count)

    def checks(self) -> Iterable[Check]:
        """As in `FeatureServices`."""
        from anaphora.features.audit.audit import audit_checks

        return audit_checks(self.trail)
