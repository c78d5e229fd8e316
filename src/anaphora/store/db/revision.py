"""Which schema this program writes. Plain constants, so that reading them costs no import."""

from __future__ import annotations

REVISION = "0015"
REVISION_TABLE = "anaphora_schema"


def is_older(found: str) -> bool:
    """Whether a home of revision `found` can be brought to `REVISION` by migrations."""
    return found.isdecimal() and int(found) < int(REVISION)
