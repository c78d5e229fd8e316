"""The namespaces of a home, and what each works with, as of one moment or live.

In: a home, how it is sealed, its truth. Out: names, and the stores of one namespace. A `Snapshot`
stands in for truth where several reads must see one moment; it writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from anaphora.store.deep_rows import DeepRows
from anaphora.store.escaping import escape, unescape
from anaphora.store.home.opening import open_conversations
from anaphora.store.home.sealing import DEFAULT_NAMESPACE, Home, Sealing, folder_name
from anaphora.store.projects.notes import Notes
from anaphora.store.projects.store import Projects
from anaphora.store.records.store import Records
from anaphora.store.threads.ids import SUFFIX, id_of
from anaphora.store.threads.sidecar import Sidecar

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from anaphora.store.db.engine import Database
    from anaphora.store.threads.file_store import ConversationStore
    from anaphora.store.threads.sql_store import SqlConversationStore


@dataclass(frozen=True, slots=True)
class Lane:
    """What one namespace has. `folder` is where its threads lie."""

    namespace: str
    folder: Path
    conversations: ConversationStore | SqlConversationStore
    sidecar: Sidecar
    records: Records
    notes: Notes
    projects: Projects
    deep: DeepRows


@dataclass(frozen=True, slots=True)
class Parts:
    """A home as the facade opened it."""

    home: Home
    sealing: Sealing
    truth: Database

    def namespaces(self) -> tuple[str, ...]:
        """Every namespace that holds or held anything, the default one first."""
        rows = self.truth.rows("SELECT namespace FROM head ORDER BY namespace", {})
        found = {str(row[0]) for row in rows}
        folders = {folder_name(namespace) for namespace in found}
        for folder, _ in self.home.folders():
            # A long name's folder ends in a hash: such a namespace is known by its head alone.
            name = None if folder in folders else id_of(folder + SUFFIX)
            if name is not None:
                found.add(name)
        found.discard(DEFAULT_NAMESPACE)
        return (DEFAULT_NAMESPACE, *sorted(found))

    def lane(self, namespace: str, truth: Database | None = None) -> Lane:
        """The stores of a namespace, on `truth` where another one than the home's own is meant."""
        used = truth if truth is not None else self.truth
        folder = self.home.conversations
        if namespace != DEFAULT_NAMESPACE:
            folder = self.home.root / "namespaces" / folder_name(namespace) / "conversations"
        sidecar = Sidecar(used, namespace, self.sealing.rows)
        files = folder if self.truth.path is not None else None
        store = open_conversations(used, sidecar, self.sealing, files)
        rows = self.sealing.rows
        return Lane(
            namespace,
            folder,
            store,
            sidecar,
            records=Records(used, namespace, rows),
            notes=Notes(used, namespace, rows),
            projects=Projects(used, namespace, rows),
            deep=DeepRows(used, namespace, rows),
        )


@contextmanager
def snapshot(truth: Database) -> Iterator[Database]:
    """Truth as of one moment, to be read with `rows` alone.

    A file that does not exist yet is not made: it has no rows anyway.
    """
    if truth.path is not None and not truth.path.exists():
        yield truth
        return
    with truth.read() as connection:
        yield cast("Database", _Snapshot(connection))


class _Snapshot:
    """What `Database.rows` and `Database.version` give, within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def version(self, namespace: str) -> int:
        found = self.rows(
            "SELECT seq FROM head WHERE namespace = :namespace", {"namespace": namespace}
        )
        return int(found[0][0]) if found else 0

    def rows(
        self, statement: str, parameters: Mapping[str, str | int | None]
    ) -> list[tuple[Any, ...]]:
        from sqlalchemy import text

        given = {
            name: escape(value) if isinstance(value, str) else value
            for name, value in parameters.items()
        }
        found = self._connection.execute(text(statement), given)
        return [
            tuple(unescape(cell) if isinstance(cell, str) else cell for cell in row)
            for row in found
        ]
