"""Filters over all memories at once: which rows does a filter let through?

In: a filter that was read, the records' metadata. Out: a mask with one entry a row, exactly what
`Filter.matches` says of each record. A filter is asked once for every distinct combination of the
values it looks at, so that one on category, type, path or tags costs little however many rows
share them. Metadata is read from truth with the first filter and kept; texts never are.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from anaphora.index.memory_rows import MemoryRows
from anaphora.memory_values import MemoryRecord
from anaphora.store.filters import Filter
from anaphora.store.record_rows import as_mapping
from anaphora.store.records import Records

__all__ = ["MemoryFilters"]

_STEP: Final = 4096
_KEPT: Final = 32
_PAYLOAD: Final = "payload"


class _Values:
    """One field of every row: a code a row, a value a code."""

    def __init__(self) -> None:
        self.codes = np.zeros(0, np.int64)
        self.values: list[Any] = [None]
        self._known: dict[Any, int] = {None: 0}

    def put(self, row: int, value: Any, key: Any) -> None:
        """Set the value of a row; `key` is equal for equal values."""
        if row >= len(self.codes):
            grown = np.zeros(row + row // 4 + 64, np.int64)
            grown[: len(self.codes)] = self.codes
            self.codes = grown
        code = self._known.get(key)
        if code is None:
            code = self._known[key] = len(self.values)
            self.values.append(value)
        self.codes[row] = code


class MemoryFilters:
    """The metadata of one namespace's memories. One thread at a time."""

    def __init__(self) -> None:
        self._fields: dict[str, _Values] | None = None
        self._masks: OrderedDict[Filter, NDArray[np.bool_]] = OrderedDict()

    def forget(self) -> None:
        """Drop everything; the next filter reads it again."""
        self._fields = None
        self._masks.clear()

    def changed(self, rows: MemoryRows, records: Iterable[MemoryRecord]) -> None:
        """Take in records that are new or changed."""
        self._masks.clear()
        if self._fields is not None:
            self._put(rows, records)

    def mask(self, keep: Filter, rows: MemoryRows, records: Records) -> NDArray[np.bool_]:
        """Which rows `keep` lets through, shape (N,)."""
        if not keep.fields:
            return np.ones(len(rows), np.bool_)
        found = self._masks.get(keep)
        if found is None:
            found = self._evaluate(keep, self._read(rows, records), len(rows))
            self._masks[keep] = found
            if len(self._masks) > _KEPT:
                self._masks.popitem(last=False)
        return found

    def _read(self, rows: MemoryRows, records: Records) -> dict[str, _Values]:
        if self._fields is None:
            self._fields = {}
            since = -1
            while changed := records.changed_since(since, _STEP):
                self._put(rows, changed)
                since = changed[-1].seq
        return self._fields

    def _put(self, rows: MemoryRows, records: Iterable[MemoryRecord]) -> None:
        assert self._fields is not None
        for record in records:
            row = rows.row(record.id)
            if row < 0:
                continue
            for name, value in as_mapping(record).items():
                field = self._fields.setdefault(name, _Values())
                field.put(row, value, _key(value))

    def _evaluate(
        self, keep: Filter, fields: Mapping[str, _Values], count: int
    ) -> NDArray[np.bool_]:
        names = sorted({name.split(".", 1)[0] for name in keep.fields} & set(fields))
        together = np.zeros(count, np.int64)
        columns = []
        for name in names:
            codes = _sized(fields[name].codes, count)
            columns.append(codes)
            # Renumbered after each field: the product of all sizes could overflow.
            pairs = together * len(fields[name].values) + codes
            together = np.unique(pairs, return_inverse=True)[1]
        _, first, where = np.unique(together, return_index=True, return_inverse=True)
        answers = np.fromiter(
            (
                keep.matches(
                    {
                        name: fields[name].values[int(codes[row])]
                        for name, codes in zip(names, columns, strict=True)
                    }
                )
                for row in first.tolist()
            ),
            np.bool_,
            len(first),
        )
        return answers[where]


def _key(value: Any) -> Any:
    if isinstance(value, Mapping):
        return (_PAYLOAD, json.dumps(value, sort_keys=True, default=dict))
    return tuple(value) if isinstance(value, list) else value


def _sized(codes: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    if len(codes) >= count:
        return codes[:count]
    return np.concatenate((codes, np.zeros(count - len(codes), np.int64)))
