"""The facade of the audit trail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anaphora.calls.operation import local
from anaphora.container.view import NamespaceView

if TYPE_CHECKING:
    from anaphora.features.audit.audit import Audit


class AuditCalls(NamespaceView):
    """The audit trail of one namespace of a home."""

    @property
    @local("do it on the server's machine (`anaphora audit`); entries are read by `/v1/audit`")
    def audit(self) -> Audit:
        """The audit trail: actions in this namespace with time and author, without content."""
        from anaphora.features.audit.audit import Audit
        from anaphora.features.audit.services import AuditServices

        return Audit(self._services().feature(AuditServices).trail)
