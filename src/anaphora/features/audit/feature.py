"""The audit trail: actions in a namespace with time and author, without content."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anaphora.container.feature import Commands, Feature, later
from anaphora.features.audit.calls import AuditCalls
from anaphora.features.audit.tables import TABLES

if TYPE_CHECKING:
    from anaphora.store.crypto.columns import Sealer
    from anaphora.store.db.engine import Write
    from anaphora.store.extensions import Journal

__all__ = ["FEATURE", "AuditCalls"]


def _open_journal(write: Write, kind: str, sealer: Sealer) -> Journal | None:
    # Most homes keep no trail, and need not load what keeps one.
    if write.audit is None and not sealer.audited(write.namespace):
        return None
    from anaphora.features.audit.trail import RecordJournal, is_kept

    return RecordJournal(kind) if is_kept(write, sealer) else None


FEATURE = Feature(
    "audit",
    later(f"{__package__}.services:AuditServices"),
    values=f"{__package__}.values",
    tables=TABLES,
    journal=_open_journal,
    commands=(Commands(f"{__package__}.commands:register", 70, behind={"audit": "Care"}),),
    routes=(f"{__package__}.routes:router",),
)
