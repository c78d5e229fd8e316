"""The tables of authorization; see `store.db.tables`."""

from __future__ import annotations

from typing import Final

from anaphora.store.db.table import Table, clear, namespaced, sealed

# Access by OAuth, as `token` the home's: a `kind` of client that registered, or of grant that the
# owner gave one. `body` is JSON; of a secret it has the SHA-256 alone.
OAUTH = namespaced(
    "oauth",
    ("kind", "item_id"),
    clear("kind"),
    clear("item_id"),
    sealed("body", needed=True),
    clear("seq", "big"),
)

TABLES: Final[tuple[Table, ...]] = (OAUTH,)
