"""The columns of the index of memories, which decide by time and status what may be shown.

Texts and payloads are not in memory: `Records` reads them for the few that are shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from anaphora.errors import Unreadable
from anaphora.index.rows import CURRENT, PAST, KeyedRows
from anaphora.store.codecs import DAMAGE, readable, to_micros
from anaphora.store.records.store import ENDLESS, Records
from anaphora.values.memories import MemoryRecord

TYPES: Final = ("episodic", "semantic", "procedural")
NEVER: Final = ENDLESS
"""A time that never comes: no end, no expiry."""

_SPREAD: Final = 0x9E3779B97F4A7C15 - (1 << 64)

_CODES = {name: code for code, name in enumerate(TYPES)}
# An unknown type ages as most memories do.
_USUAL = _CODES["semantic"]
_NUMBERS = (
    "type", "created", "reinforced_at", "count", "valid_from", "valid_until", "expires",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Moment:
    """The time that an answer is for: now, or the past moment that was asked about."""

    at: datetime
    past: bool = False

    @property
    def micros(self) -> int:
        """Microseconds since 1970 UTC."""
        return to_micros(self.at)


class MemoryRows(KeyedRows):
    """Columns of N memories. One thread at a time (the caller holds a lock).

    `column(name)` is an array (N,) of int64: seq, type (an index of TYPES), created, reinforced_at,
    count, valid_from, valid_until, expires (microseconds; NEVER for none); `state` (int8) is PAST
    for softly forgotten memories.
    """

    def __init__(self) -> None:
        super().__init__(dict.fromkeys(_NUMBERS, np.int64))

    def load(self, records: Records) -> None:
        """Load every memory of the namespace, without texts, to open the index."""
        for rows in records.short_rows():
            try:
                self._put_stored(rows)
            except DAMAGE:
                self._put_stored(list(readable(rows, _sound)))

    def marks(self, rows: NDArray[np.int64] | slice = slice(None)) -> NDArray[np.int64]:
        """For each of these rows a number that is another one when the memory changes.

        The number of the database alone comes again where it is put back and goes on.
        """
        marks = self.column("seq")[rows]
        for name in ("created", "reinforced_at", "count"):
            # An odd factor loses no bit (Knuth's multiplicative hashing).
            marks = marks * np.int64(_SPREAD) + self.column(name)[rows]
        return marks

    def _put_stored(self, rows: Sequence[tuple[Any, ...]]) -> None:
        if not rows:
            return
        ids, seq, types, *numbers, until, expires, forgotten_flags = zip(*rows, strict=True)
        ends = ([NEVER if end is None else end for end in column] for column in (until, expires))
        codes = [_CODES.get(name, _USUAL) for name in types]
        columns = zip(_NUMBERS, (codes, *numbers, *ends), strict=True)
        number_columns = {name: np.array(column, np.int64) for name, column in columns}
        state = [CURRENT if forgotten_at is None else PAST for forgotten_at in forgotten_flags]
        self.put_rows(ids, {**number_columns, "seq": np.array(seq, np.int64), "state": state})

    def put_records(self, records: Sequence[MemoryRecord]) -> list[int]:
        """Add or update records; their rows."""
        self._put_stored(
            [
                (
                    record.id,
                    record.seq,
                    record.type,
                    to_micros(record.created_at),
                    to_micros(record.last_reinforced),
                    record.reinforce_count,
                    *map(to_micros, (record.valid_from, record.valid_to, record.expires_at)),
                    record.forgotten or None,
                )
                for record in records
            ]
        )
        return [self.row(record.id) for record in records]

    def visible(self, moment: Moment, rows: NDArray[np.int64] | None = None) -> NDArray[np.bool_]:
        """Which rows (None: all, in order) an answer for `moment` may show, shape (N,).

        Now: neither superseded nor expired nor forgotten. In the past: valid at that time.
        """

        def column(name: str) -> NDArray[Any]:
            values = self.column(name)
            return values if rows is None else values[rows]

        at = moment.micros
        until = column("valid_until")
        keep: NDArray[np.bool_] = (column("state") == CURRENT) & (column("expires") > at)
        if moment.past:
            keep &= (column("valid_from") <= at) & (until > at)
        else:
            # Not `until > at`: if the clock jumps back, replaced memories must not return.
            keep &= until == NEVER
        return keep

    def why_not(self, row: int, moment: Moment) -> str:
        """Why `visible` leaves a row out; "" if it does not."""
        at = moment.micros
        if self.column("state")[row] != CURRENT:
            return "forgotten"
        if self.column("expires")[row] <= at:
            return "expired"
        if moment.past and self.column("valid_from")[row] > at:
            return "not_yet_known"
        end_time = self.column("valid_until")[row]
        return "superseded" if end_time <= (at if moment.past else NEVER - 1) else ""


def _sound(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Check the numbers of a row of `Records.short_rows`. Raises `Unreadable`."""
    if not all(isinstance(number, int) for number in row[3:] if number is not None):
        raise Unreadable("record", str(row[0]), "its numbers are invalid")
    return row
