"""Rows told by a key, with typed columns that grow: what an index keeps of each thing in memory.

A thing keeps its row while it lives; the row of a deleted one is never given out again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

CURRENT: Final = 1
PAST: Final = 0
"""Replaced, or softly forgotten."""
GONE: Final = -1


class GrowingColumn:
    """A column, or `width` of them, that grows; what it showed before stays as it was."""

    def __init__(self, dtype: Any = np.int64, fill: int = 0, width: int | None = None) -> None:
        self._buffer: NDArray[Any] = np.empty(0 if width is None else (0, width), dtype)
        self._fill = fill
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, values: NDArray[Any]) -> None:
        """Put values behind those that are here."""
        first = self._count
        self.reserve(first + len(values))
        self._count = first + len(values)
        self._buffer[first : self._count] = values

    def extend_to(self, count: int) -> NDArray[Any]:
        """All of them, at least `count`: new ones have the value `fill`."""
        if count > self._count:
            self.reserve(count)
            self._buffer[self._count : count] = self._fill
            self._count = count
        return self.view()

    def view(self) -> NDArray[Any]:
        """All of them, in place."""
        return self._buffer[: self._count]

    def reserve(self, needed: int) -> None:
        """Make room for so many in all: what is not used costs nothing."""
        if needed > len(self._buffer):
            # Copied once in many times: a column of 100,000 is not worth copying for every one.
            # What was filled at once rarely grows much.
            more = min(needed // 2 + 64, 16_384) if self._count else 0
            grown = np.empty((needed + more, *self._buffer.shape[1:]), self._buffer.dtype)
            grown[: self._count] = self.view()
            self._buffer = grown


class KeyedRows:
    """Columns of N rows. One thread at a time (the caller holds a lock).

    `columns` gives their types; beside them each row has `seq`, the number of truth that it last
    changed at, and `state` (CURRENT, PAST or GONE).
    """

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self.ids: list[str] = []
        self._place: dict[str, int] = {}
        types = {**columns, "seq": np.int64, "state": np.int8}
        self._columns = {name: GrowingColumn(dtype) for name, dtype in types.items()}

    def __len__(self) -> int:
        return len(self.ids)

    def column(self, name: str) -> NDArray[Any]:
        """One column, shape (N,), in place."""
        return self._columns[name].view()

    def row(self, key: str) -> int:
        """The row of a thing, -1 for an unknown or a deleted one."""
        return self._place.get(key, -1)

    def rows(self, keys: Sequence[str]) -> NDArray[np.int64]:
        """The rows of things, -1 for unknown ones."""
        return np.fromiter(map(self._place.get, keys, repeat(-1)), np.int64, len(keys))

    def own(self, keys: Sequence[str]) -> tuple[str, ...]:
        """The same keys, those of rows as the very strings that are kept here."""
        row_of, ids = self._place.get, self.ids
        return tuple(key if (row := row_of(key)) is None else ids[row] for key in keys)

    def put_rows(self, keys: Sequence[str], columns: Mapping[str, Any]) -> NDArray[np.int64]:
        """Set rows, new or known, of as many keys; a column is a sequence, or one value for all.

        A new row whose `state` is not given is CURRENT; the other columns are all given.
        """
        first_new = len(self.ids)
        numbered = dict(zip(keys, range(first_new, first_new + len(keys)), strict=True))
        if len(numbered) == len(keys) and self._place.keys().isdisjoint(numbered):
            # As at an opening: not one by one.
            self._place.update(numbered)
            self.ids.extend(keys)
        else:
            for key in keys:
                if self._place.setdefault(key, len(self.ids)) == len(self.ids):
                    self.ids.append(key)
        if len(self.ids) > first_new:
            for column in self._columns.values():
                column.extend_to(len(self.ids))
            self.column("state")[first_new:] = CURRENT
        rows = self.rows(keys)
        for name, values in columns.items():
            self.column(name)[rows] = values
        return rows

    def delete(self, key: str, seq: int | None) -> int:
        """Drop what was deleted at number `seq` (None: now); its row, or -1 when it lives on."""
        row = self.row(key)
        # Numbers tell a deletion from a later return under the same key (a restored backup).
        if row < 0 or (seq is not None and self.column("seq")[row] > seq):
            return -1
        del self._place[key]
        self.column("state")[row] = GONE
        return row

    def known(self) -> int:
        """How many there are, past ones too."""
        return int((self.column("state") != GONE).sum())
