"""The SQLite driver: `pysqlite3`, which carries a SQLite of its own, else the interpreter's.

Only this module chooses. Two SQLite libraries in one process would undo each other's locks on a
file (https://sqlite.org/howtocorrupt.html, 2.2.1), so everything goes through the same one.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

dbapi2: Any
"""The module of the driver, as PEP 249 has it."""

try:
    dbapi2 = import_module("pysqlite3.dbapi2")
except ImportError:
    # It has no wheel for every platform: none for Linux on ARM, nor for macOS on Intel.
    dbapi2 = import_module("sqlite3.dbapi2")

NAME: Final = str(dbapi2.__name__).partition(".")[0]
"""`pysqlite3` or `sqlite3`."""
