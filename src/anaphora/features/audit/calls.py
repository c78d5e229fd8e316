"""The facade of the audit trail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anaphora.container.view import NamespaceView

if TYPE_CHECKING:
    from anaphora.ops.audit import Audit


class AuditCalls(NamespaceView):
    """The audit trail of one namespace of a home."""

    @property
    def audit(self) -> Audit:
        """The audit trail: actions in this namespace with time and author, without content."""
        from anaphora.features.audit.services import AuditServices
        from anaphora.ops.audit import Audit

        return Audit(self._services().feature(AuditServices).trail)
