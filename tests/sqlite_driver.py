"""SQLite as Anaphora has it: two libraries in one process would undo each other's locks."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

dbapi2: Any
try:
    dbapi2 = import_module("pysqlite3.dbapi2")
except ImportError:
    dbapi2 = import_module("sqlite3.dbapi2")

# The write-ahead log wants a library with the fix of 2025 (https://sqlite.org/wal.html).
_VERSION = dbapi2.sqlite_version_info
IS_SAFE: bool = (
    _VERSION >= (3, 51, 3)
    or (3, 50, 7) <= _VERSION < (3, 51, 0)
    or (3, 44, 6) <= _VERSION < (3, 45, 0)
)
JOURNAL = "wal" if IS_SAFE else "delete"
wal = pytest.mark.skipif(not IS_SAFE, reason="there is no write-ahead log with this SQLite")
