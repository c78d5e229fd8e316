"""The entries of all devices of a project as one device knows them, with their states.

An entry of this device is `ready` until the remote has it, then `sent`; one of another device is
`received`. `void` ones are to be emptied in the remote, `gone` ones were, and `unnamed` ones were
empty before any device announced that. `covered` ones were never read: a checkpoint replaces them.
`refused` ones do not count, as their devices were removed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from anaphora.features.sync.entries import LogEntry
from anaphora.store.table_rows import TableRows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anaphora.store.crypto.columns import Sealer
    from anaphora.store.db.engine import Database
    from anaphora.store.table_rows import TableTransaction

ENTRY: Final = "sync_entry"
State = Literal["ready", "sent", "received", "void", "gone", "unnamed", "covered", "refused"]
Row = dict[str, Any]


class LogHead(NamedTuple):
    """The last known entry of a device, and when it was made (microseconds since 1970)."""

    number: int = 0
    id: str = ""
    at: int = 0


class EntryLog:
    """Rows of entries in one namespace. Heads are read once, until `reload`."""

    def __init__(self, truth: Database, namespace: str, sealer: Sealer) -> None:
        self._rows = TableRows(truth, namespace, sealer)
        self._heads: dict[str, LogHead] | None = None

    def reload(self) -> None:
        """Read heads again: another process may have synced."""
        self._heads = None

    def heads(self) -> Mapping[str, LogHead]:
        """The last known entry of each device."""
        if self._heads is None:
            heads: dict[str, LogHead] = {}
            for row in self._rows.find(ENTRY, only=("device", "number", "snapshot_id", "made")):
                head = LogHead(int(row["number"]), str(row["snapshot_id"]), int(row["made"]))
                device = str(row["device"])
                heads[device] = max(heads.get(device, head), head)
            self._heads = dict(sorted(heads.items()))
        return self._heads

    def last_of(self, device: str) -> LogHead:
        """The last known entry of a device; number 0 and id "" if there is none."""
        return self.heads().get(device, LogHead())

    def find(self, state: State) -> list[Row]:
        """The entries in a state, in order of devices and numbers."""
        return sorted(
            self._rows.find(ENTRY, {"state": state}),
            key=lambda row: (str(row["device"]), int(row["number"])),
        )

    def rows_of(self, device: str) -> dict[int, Row]:
        """The entries of a device by their numbers."""
        return {int(row["number"]): row for row in self._rows.find(ENTRY, {"device": device})}

    def find_by_id(self, snapshot: str) -> list[Row]:
        """The entry of this id, if it is known."""
        return self._rows.find(ENTRY, {"snapshot_id": snapshot})

    def row(self, device: str, number: int) -> Row | None:
        """One entry, if it is known."""
        return _first(self._rows.find(ENTRY, {"device": device, "number": number}))

    @contextmanager
    def change(self) -> Iterator[LogTransaction]:
        """One write transaction, committed as a whole or not at all."""
        try:
            with self._rows.change() as work:
                yield LogTransaction(work, self)
        except BaseException:
            self.reload()
            raise

    def note(self, entry: LogEntry, at: int) -> None:
        """Make an entry the last of its device; called within `change`."""
        if self._heads is not None:
            header = entry.header
            self._heads = {**self._heads, header.device: LogHead(header.number, entry.id, at)}


class LogTransaction:
    """One change to the rows of entries. `work` is the transaction, for other tables, too."""

    def __init__(self, work: TableTransaction, log: EntryLog) -> None:
        self.work = work
        self._log = log

    def keep(
        self, entry: LogEntry, state: State, at: int, size: int, body: bytes | None = None
    ) -> None:
        """Add a new entry, with its number of patches."""
        header = entry.header
        row = {
            "device": header.device,
            "number": header.number,
            "snapshot_id": entry.id,
            "state": state,
            "made": at,
            "size": size,
            "body": body,
        }
        self.work.replace(ENTRY, [row])
        self._log.note(entry, at)

    def cover(self, heads: Mapping[str, Sequence[Any]]) -> None:
        """Record all entries up to these as covered by a checkpoint."""
        rows = [
            {
                "device": device, "number": number, "snapshot_id": snapshot,
                "state": "covered", "made": 0, "size": 0, "body": None,
            }
            for device, (number, snapshot) in heads.items()
            if number
        ]  # fmt: skip
        self.work.replace(ENTRY, rows)
        self._log.reload()

    def move(self, row: Mapping[str, Any], state: State) -> None:
        """Change the state of an entry; its bytes are no longer needed."""
        self.work.replace(ENTRY, [{**row, "state": state, "body": None}])

    def unpack(self, rows: Sequence[Row]) -> None:
        """Delete the last entries of a device, which were never sent."""
        for row in rows:
            self.work.drop(ENTRY, {"device": row["device"], "number": row["number"]})
        self._log.reload()

    def row(self, device: str, number: int) -> Row | None:
        """One entry, if it is known."""
        return _first(self.work.find(ENTRY, {"device": device, "number": number}))


def _first(rows: Sequence[Row]) -> Row | None:
    return rows[0] if rows else None
