"""The revision of the schema that this program reads and writes."""

from __future__ import annotations

from pathlib import Path

from anaphora.errors import SchemaTooNew, SchemaTooOld

REVISION = "0015"
"""Raise it with every change of `db.tables`: homes of another revision are refused."""
REVISION_TABLE = "anaphora_schema"


def check_revision(found: str, location: Path | str) -> None:
    """Raise `SchemaTooOld` or `SchemaTooNew` for a home of another revision."""
    if found == REVISION:
        return
    if found.isdecimal() and int(found) < int(REVISION):
        raise SchemaTooOld(location, found, REVISION)
    raise SchemaTooNew(location, found)
