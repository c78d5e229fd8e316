"""What the index keeps of each memory in memory: columns that time and status are judged by.

In: records as truth has them, or all of them at once in plain SQL. Out: columns with one row a
memory. A memory keeps its row while it lives; the row of a deleted one is never given out again.
Texts and payloads are not held: `Records` reads them for the few that are shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from anaphora.errors import Unreadable
from anaphora.store.codecs import DAMAGE, readable, to_micros
from anaphora.store.records.store import Records
from anaphora.values.memories import MemoryRecord

TYPES: Final = ("episodic", "semantic", "procedural")
NEVER: Final = 2**62
"""Stands for a time that does not come: no end, no expiry."""

_CODES = {name: code for code, name in enumerate(TYPES)}
# A type that no program of ours has written ages as most memories do.
_USUAL = _CODES["semantic"]
_NUMBERS = (
    "seq", "type", "created", "reinforced_at", "count", "valid_from", "valid_until", "expires",
    "alive",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Moment:
    """The time that an answer is for: `now`, or the past moment that was asked about."""

    at: datetime
    past: bool = False

    @property
    def micros(self) -> int:
        """Microseconds since 1970 UTC."""
        found = to_micros(self.at)
        assert found is not None
        return found


class MemoryRows:
    """Columns of N rows. One thread at a time (the caller holds a lock).

    `column(name)` is an array (N,) of int64: seq, type (a place in TYPES), created, reinforced_at,
    count, valid_from, valid_until, expires (microseconds; NEVER for none), alive (1: kept,
    0: softly forgotten, -1: deleted).
    """

    def __init__(self) -> None:
        self.ids: list[str] = []
        self._place: dict[str, int] = {}
        self._columns = np.empty((len(_NUMBERS), 0), np.int64)

    def __len__(self) -> int:
        return len(self.ids)

    def column(self, name: str) -> NDArray[np.int64]:
        """One column, shape (N,)."""
        found: NDArray[np.int64] = self._columns[_NUMBERS.index(name), : len(self.ids)]
        return found

    def row(self, record_id: str) -> int:
        """The row of a memory, -1 for an unknown or a deleted one."""
        return self._place.get(record_id, -1)

    def rows(self, record_ids: Sequence[str]) -> NDArray[np.int64]:
        """The rows of memories, -1 for unknown ones."""
        find = self._place.get
        return np.fromiter((find(one, -1) for one in record_ids), np.int64, len(record_ids))

    def load(self, records: Records) -> None:
        """Take in every memory of the namespace, without texts: the way to open."""
        found = records.short_rows()
        try:
            self._load(found)
        except DAMAGE:
            self._load(list(readable(found, _sound)))

    def _load(self, found: Sequence[tuple[Any, ...]]) -> None:
        if not found:
            return
        ids, seq, types, *rest = zip(*found, strict=True)
        forgotten = rest.pop()
        columns = np.empty((len(_NUMBERS), len(ids)), np.int64)
        columns[0] = seq
        columns[1] = [_CODES.get(name, _USUAL) for name in types]
        for at, values in enumerate(rest, 2):
            columns[at] = values if at < 6 else [NEVER if v is None else v for v in values]
        columns[8] = [int(value is None) for value in forgotten]
        self.ids = list(ids)
        self._place = dict(zip(ids, range(len(ids)), strict=True))
        self._columns = columns

    def put(self, changed: Iterable[MemoryRecord]) -> list[int]:
        """Take in records that are new or changed; their rows, in the same order."""
        return [self._put(record) for record in changed]

    def _put(self, record: MemoryRecord) -> int:
        row = self._place.get(record.id, -1)
        if row < 0:
            row = len(self.ids)
            self._reserve(row + 1)
            self.ids.append(record.id)
            self._place[record.id] = row
        self._columns[:, row] = _numbers(record)
        return row

    def delete(self, record_id: str, seq: int) -> int:
        """Drop a memory that was deleted at number `seq`; its row, or -1 when it lives on."""
        row = self._place.get(record_id, -1)
        # Numbers tell a deletion from a later return under the same id (a restored backup).
        if row < 0 or self.column("seq")[row] > seq:
            return -1
        self.column("alive")[row] = -1
        del self._place[record_id]
        return row

    def standing(self, moment: Moment) -> NDArray[np.bool_]:
        """Which rows an answer for `moment` may show, shape (N,).

        Now: neither superseded nor expired nor forgotten. Then: what was valid at that time.
        """
        at = moment.micros
        until = self.column("valid_until")
        keep: NDArray[np.bool_] = (self.column("alive") == 1) & (self.column("expires") > at)
        if moment.past:
            keep &= (self.column("valid_from") <= at) & (until > at)
        else:
            # Not `until > at`: a clock that jumped back must not bring back what was replaced.
            keep &= until == NEVER
        return keep

    def why_not(self, row: int, moment: Moment) -> str:
        """Why `standing` leaves a row out; "" where it does not."""
        at = moment.micros
        if self.column("alive")[row] != 1:
            return "forgotten"
        if self.column("expires")[row] <= at:
            return "expired"
        if moment.past and self.column("valid_from")[row] > at:
            return "not_yet_known"
        ended = self.column("valid_until")[row]
        return "superseded" if ended <= (at if moment.past else NEVER - 1) else ""

    def _reserve(self, needed: int) -> None:
        size = self._columns.shape[1]
        if needed > size:
            grown = np.empty((len(_NUMBERS), max(needed, size + size // 4 + 64)), np.int64)
            grown[:, : len(self.ids)] = self._columns[:, : len(self.ids)]
            self._columns = grown


def _sound(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row of `Records.short_rows` whose numbers are numbers. Raises `Unreadable`."""
    if not all(isinstance(number, int) for number in row[3:] if number is not None):
        raise Unreadable("record", str(row[0]), "its numbers make no sense")
    return row


def _numbers(record: MemoryRecord) -> tuple[Any, ...]:
    return (
        record.seq,
        _CODES.get(record.type, _USUAL),
        to_micros(record.created_at),
        to_micros(record.last_reinforced),
        record.reinforce_count,
        to_micros(record.valid_from),
        NEVER if record.valid_to is None else to_micros(record.valid_to),
        NEVER if record.expires_at is None else to_micros(record.expires_at),
        int(not record.forgotten),
    )
