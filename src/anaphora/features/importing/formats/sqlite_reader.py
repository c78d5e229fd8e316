"""Rows out of another program's SQLite database, which is only read and never believed.

The program may have it open. Only plain tables are read: no view and no virtual table of the file
runs anything here. A row beyond the bounds of the file is an error of the driver, as damage is.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, Final

from anaphora.features.importing.formats.base import ImportFile, too_long
from anaphora.store.db.driver import dbapi2
from anaphora.store.disk import open_regular
from anaphora.values.conversations import ImportProblem

MAGIC: Final = b"SQLite format 3\0"
"""The first bytes of every SQLite database."""
Row = Mapping[str, Any]

_STEPS: Final = 100_000
_MOST_STEPS: Final = 2_000
_WAIT: Final = 5.0
_CHUNK: Final = 1 << 20


@contextmanager
def _open_database(file: ImportFile) -> Iterator[Any]:
    with _put_on_disk(file) as path:
        # As a reader that waits for the program's own writes. If there are none to wait for,
        # it is read as it lies: else a log and a file of locks would be made beside it.
        still = (
            ""
            if (
                _has_log(path)
                or any(_name_beside(path, end).exists() for end in ("-shm", "-journal"))
            )
            else "&immutable=1"
        )
        uri = f"{path.absolute().as_uri()}?mode=ro{still}"
        with closing(
            dbapi2.connect(uri, uri=True, timeout=_WAIT, isolation_level=None)
        ) as connection:
            connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            for pragma in (
                "trusted_schema = OFF",
                "cell_size_check = ON",
                "query_only = ON",
                "temp_store = MEMORY",
            ):
                connection.execute(f"PRAGMA {pragma}")
            try:
                yield connection
            except UnicodeDecodeError as error:
                # What SQLite says of a damaged schema repeats its bytes, which may be no text.
                raise dbapi2.DatabaseError("malformed database schema") from error


@contextmanager
def _put_on_disk(file: ImportFile) -> Iterator[Path]:
    """The database as a file with a name. What has none (a member of a zip file, an upload), or has
    a log that nothing reads any more, is copied for as long as it is read."""
    is_on_disk = file.member is None and file.path.resolve().exists()
    left_behind = (
        is_on_disk and _has_log(file.path) and not _name_beside(file.path, "-shm").exists()
    )
    if is_on_disk and not left_behind:
        yield file.path
        return
    with TemporaryDirectory(prefix="anaphora-") as folder:
        path = Path(folder, "import.db")
        with file.open() as raw:
            _copy(raw, path, file.size)
        if left_behind:
            with open_regular(_name_beside(file.path, "-wal")) as log:
                _copy(log, _name_beside(path, "-wal"), file.bounds.files)
        yield path


def _copy(source: BinaryIO | BufferedReader, target: Path, most: int) -> None:
    remaining = most
    with target.open("xb") as copy:
        while remaining > 0 and (chunk := source.read(min(_CHUNK, remaining))):
            copy.write(chunk)
            remaining -= len(chunk)


def _name_beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _has_log(path: Path) -> bool:
    with suppress(OSError):
        return _name_beside(path, "-wal").stat().st_size > 0
    return False


def tables_of(file: ImportFile) -> dict[str, tuple[str, ...]]:
    """The columns of every plain table, by its name. Raises the driver's Error."""
    with _open_database(file) as connection:
        return _read_tables(connection)


def _read_tables(connection: Any) -> dict[str, tuple[str, ...]]:
    name_rows = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE%' "
        "LIMIT 1000"
    ).fetchall()
    tables: dict[str, tuple[str, ...]] = {}
    for (name,) in name_rows:
        columns = connection.execute(f"PRAGMA table_xinfo({_quote(name)})").fetchall()
        # The last says of a column that it is computed.
        tables[name] = tuple(row[1] for row in columns if not row[6])
    return tables


def rows(
    file: ImportFile,
    table: str,
    columns: Sequence[str],
    *,
    order: Sequence[str] = (),
    beginning: tuple[str, str] | None = None,
) -> Generator[tuple[Row, str] | ImportProblem, None, None]:
    """The rows of a plain table, and the place of each: a mapping from `columns` to values.

    With `beginning` only those whose column of that name begins with that text. A column that is
    missing is None; a row beyond the bounds of the file is a problem. Raises the
    driver's Error for damage, and where a row takes unreasonably long.
    """
    with _open_database(file) as connection:
        existing = _read_tables(connection).get(table)
        if existing is None:
            return
        present = [name for name in columns if name in existing]
        column_list = ", ".join(map(_quote, present)) or "NULL"
        sorting = ", ".join(_quote(name) for name in order if name in existing)
        statement = f"SELECT {column_list} FROM {_quote(table)}"  # noqa: S608 - names of ours, and quoted
        values: tuple[str, ...] = ()
        if beginning is not None:
            name, start = beginning
            statement += f" WHERE {_quote(name)} >= ? AND {_quote(name)} < ?"
            values = (start, start[:-1] + chr(ord(start[-1]) + 1))
        nothing = dict.fromkeys(columns)
        steps = _Steps()
        connection.set_progress_handler(steps, _STEPS)
        cursor = connection.execute(statement + (f" ORDER BY {sorting}" if sorting else ""), values)
        for number, row in enumerate(cursor, start=1):
            steps.count = 0
            position = f"table {table}, row {number}"
            size = sum(len(cell) for cell in row if isinstance(cell, str | bytes))
            file.consumed = min(file.size, file.consumed + size)
            if size > file.bounds.characters:
                yield file.problem(position, too_long(file.bounds))
            else:
                yield nothing | dict(zip(present, row, strict=False)), position


def has_key(file: ImportFile, table: str, start: str) -> bool:
    """Whether the column `key` of a table has a value that begins with `start`. Raises the
    driver's Error for damage."""
    with closing(rows(file, table, ("key",), beginning=("key", start))) as matches:
        return next(matches, None) is not None


class _Steps:
    """Stops a statement that has taken too many steps since the last rows."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> int:
        self.count += 1
        return int(self.count > _MOST_STEPS)


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
