"""Rows that leave no trace in a file of an index once they are wiped.

SQLite's `secure_delete` overwrites a deleted row, but not the copies that lie in the gaps of pages
since rows were moved there: one in some hundred deleted texts could be read in the file for ever.
So no row is ever moved here. Rows are appended, which begins a new page where one is full, and
wiped in place by zeros of the same length; a file with many of these is written anew as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from anaphora.index.file import IndexFile, placeholders

_AT_ONCE: Final = 500
_LEAST: Final = 1_000
_SHARE: Final = 4
"""A file is written anew if it has more wiped rows than 1,000, and than 1/4 of the others."""

_NAMED: Final = 1 << 61
"""Names are from here to twice as much: all take 8 bytes in a row, wiped (negative) or not."""


def cell_name(digest: bytes) -> int:
    """The name that 8 bytes of a hash give."""
    return _NAMED | int.from_bytes(digest[:8], "little") % _NAMED


class CellTable:
    """A table of cells with a content each; several may have one name. It holds no transaction."""

    def __init__(self, table: str) -> None:
        self.table = table
        self.schema = (
            f"CREATE TABLE {table} (id INTEGER PRIMARY KEY AUTOINCREMENT, "
            "name INTEGER NOT NULL, content BLOB NOT NULL);\n"
            f"CREATE INDEX {table}_by_name ON {table} (name)"
        )

    def add(self, db: Any, cells: Iterable[tuple[int, bytes]]) -> None:
        """Append cells, each with its name."""
        db.executemany(f"INSERT INTO {self.table} (name, content) VALUES (?, ?)", cells)  # noqa: S608

    def wipe(self, db: Any, names: Iterable[int]) -> None:
        """Overwrite all cells with these names, in place."""
        db.executemany(
            f"UPDATE {self.table} SET name = -name, content = zeroblob(length(content))"  # noqa: S608
            " WHERE name = ?",
            ((name,) for name in names),
        )

    def read(self, db: Any) -> list[tuple[int, bytes]]:
        """Names and contents of all cells."""
        query = f"SELECT name, content FROM {self.table} WHERE name > 0"  # noqa: S608
        rows: list[tuple[int, bytes]] = db.execute(query).fetchall()
        return rows

    def find(self, db: Any, names: Sequence[int]) -> dict[int, bytes]:
        """The contents of the cells with these names, by name."""
        contents: dict[int, bytes] = {}
        for start in range(0, len(names), _AT_ONCE):
            chunk = names[start : start + _AT_ONCE]
            condition = f"name IN ({placeholders(chunk)})"
            query = f"SELECT name, content FROM {self.table} WHERE {condition}"  # noqa: S608
            contents |= db.execute(query, chunk).fetchall()
        return contents


def write_anew(file: IndexFile, tables: Sequence[CellTable], *, least: int = _LEAST) -> None:
    """Give the room of wiped cells back if they are many. Raises IndexLost and IndexBusy."""
    names = [cells.table for cells in tables]

    def count(sign: str) -> int:
        counts = (f"SELECT count(*) FROM {name} WHERE name {sign} 0" for name in names)  # noqa: S608
        return sum(file.db.execute(query).fetchone()[0] for query in counts)

    with file.guarded():
        # What deleting the wiped rows moves lies in gaps until all is written anew: a kill between
        # both is told by this number.
        (is_begun,) = file.db.execute("PRAGMA user_version").fetchone()
        wiped = 0 if is_begun else count("<")
        if not is_begun and (wiped <= least or wiped <= count(">") // _SHARE):
            return
        file.db.execute("BEGIN IMMEDIATE")
        file.db.execute("PRAGMA user_version = 1")
        for name in names:
            file.db.execute(f"DELETE FROM {name} WHERE name < 0")  # noqa: S608
        file.db.execute("COMMIT")
        file.db.execute("VACUUM")
        file.db.execute("PRAGMA user_version = 0")
    file.purge()
