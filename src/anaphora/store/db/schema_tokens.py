"""The table of the tokens by which programs reach a home through its server.

Declared as `schema` declares the others, in the same metadata; `metadata` is given again here, so
that whoever needs every table imports it from here, the last of the four modules. Importing this
module imports SQLAlchemy.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Index, Integer, PrimaryKeyConstraint, Table

from anaphora.store.db.schema import clear, lookup, moment, sealed
from anaphora.store.db.schema_deep import metadata

__all__ = ["metadata", "token"]

# A token is the home's, not a namespace's: all rows lie in the default one, and `scopes` is a JSON
# list of the namespaces that it opens. `token_hash` is the SHA-256 of 256 random bits: nobody can
# guess what it was made of, so it needs no salt. `last_used` is coarse, an hour or so.
token = Table(
    "token",
    metadata,
    clear("namespace"),
    clear("token_id"),
    clear("seq", BigInteger),
    sealed("name", needed=True),
    lookup("token_hash", needed=True),
    sealed("scopes", needed=True),
    clear("read_only", Integer),
    moment("created_at"),
    moment("expires_at", needed=False),
    moment("last_used", needed=False),
    moment("revoked_at", needed=False),
    PrimaryKeyConstraint("namespace", "token_id", name="token_pk"),
    Index("token_hash_of", "namespace", "token_hash", unique=True),
)
