"""The tables of the audit trail; see `store.db.tables`."""

from __future__ import annotations

from typing import Final

from anaphora.store.db.table import Table, clear, namespaced, sealed

# An entry of the audit trail: `body` is JSON, without words of what it is about; `link` binds it to
# all entries before it.
AUDIT_ENTRY = namespaced(
    "audit_entry",
    ("number",),
    clear("number", "big"),
    sealed("body", needed=True),
    clear("link"),
)

# The key of the trail's links and digests.
AUDIT_STATE = namespaced(
    "audit_state",
    ("name",),
    clear("name"),
    sealed("value", needed=True),
)

TABLES: Final[tuple[Table, ...]] = (
    AUDIT_ENTRY,
    AUDIT_STATE,
)
