"""Rows with a key and typed columns that grow: what an index keeps in memory of each item.

An item keeps its row until it is deleted; the row of a deleted item is never reused.
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
    """A growing column, or `width` of them; earlier views stay valid."""

    def __init__(self, dtype: Any = np.int64, fill: int = 0, width: int | None = None) -> None:
        self._buffer: NDArray[Any] = np.empty(0 if width is None else (0, width), dtype)
        self._fill = fill
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, values: NDArray[Any]) -> None:
        """Append values."""
        first_row = self._count
        self.reserve(first_row + len(values))
        self._count = first_row + len(values)
        self._buffer[first_row : self._count] = values

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
        """Make room for so many values in all: unused memory costs nothing."""
        if needed > len(self._buffer):
            # Grown in large steps: copying a column of 100,000 for every value would be slow.
            # A column that was filled in one step rarely grows much.
            extra_size = min(needed // 2 + 64, 16_384) if self._count else 0
            grown = np.empty((needed + extra_size, *self._buffer.shape[1:]), self._buffer.dtype)
            grown[: self._count] = self.view()
            self._buffer = grown


class KeyedRows:
    """Columns of N rows. One thread at a time (the caller holds a lock).

    `columns` gives their types; each row also has `seq`, the number of the database at which it
    last changed, and `state` (CURRENT, PAST or GONE).
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
        """The row of an item, -1 for an unknown or deleted one."""
        return self._place.get(key, -1)

    def rows(self, keys: Sequence[str]) -> NDArray[np.int64]:
        """The rows of items, -1 for unknown ones."""
        return np.fromiter(map(self._place.get, keys, repeat(-1)), np.int64, len(keys))

    def own(self, keys: Sequence[str]) -> tuple[str, ...]:
        """The same keys, those of rows as the identical string objects that are stored here."""
        row_of, ids = self._place.get, self.ids
        return tuple(key if (row := row_of(key)) is None else ids[row] for key in keys)

    def put_rows(self, keys: Sequence[str], columns: Mapping[str, Any]) -> NDArray[np.int64]:
        """Set rows, new or existing, by their keys; a column is a sequence, or one value for all.

        New rows without a `state` are CURRENT; all other columns are required.
        """
        first_new = len(self.ids)
        rows_by_key = dict(zip(keys, range(first_new, first_new + len(keys)), strict=True))
        if len(rows_by_key) == len(keys) and self._place.keys().isdisjoint(rows_by_key):
            # All new, as on opening: added at once.
            self._place.update(rows_by_key)
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
        """Drop an item deleted at number `seq` (None: now); its row, or -1 if it still exists."""
        row = self.row(key)
        # A higher number means that the key came back after the deletion (a restored backup).
        if row < 0 or (seq is not None and self.column("seq")[row] > seq):
            return -1
        del self._place[key]
        self.column("state")[row] = GONE
        return row

    def known(self) -> int:
        """How many items there are, including past ones."""
        return int((self.column("state") != GONE).sum())
