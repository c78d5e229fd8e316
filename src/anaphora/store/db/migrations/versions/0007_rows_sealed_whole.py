"""Sealed rows are bound whole: no table changes, but older programs must not write any more.

What they would write lacks what the rows of a sealed home are checked by. The rows that are there
are sealed anew by `anaphora.store.home.convert_rows`, which has the key.
"""

from __future__ import annotations

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Change nothing."""
