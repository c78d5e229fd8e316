"""Filters over all memories at once: which rows does a filter let through?

A filter is evaluated once for every distinct combination of the values of its fields, so that one
on type, path or tags costs little however many rows share them; the result is that of
`Filter.matches` for each record. A field is read from the database with the first filter that uses
it, and cached; texts never are.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from anaphora.index.memories.rows import MemoryRows
from anaphora.index.rows import GrowingColumn
from anaphora.store.codecs import DAMAGE, parsed
from anaphora.store.filters import Filter
from anaphora.store.records.rows import RECORD_MAPPING, as_mapping
from anaphora.store.records.store import Records
from anaphora.values.memories import MemoryRecord

_CACHED_MASKS: Final = 32
_TABLE: Final = 4


def _source(stored: str | None) -> str | None:
    sources = parsed(stored, dict).get("sources", ())
    return sources[0] if sources else None


class _Values:
    """One field of every row: a code per row, a value per code."""

    def __init__(self) -> None:
        self.codes = GrowingColumn()
        self.values: list[Any] = [None]
        self._known: dict[Any, int] = {None: 0}

    def set_value(self, row: int, value: Any, key: Any) -> None:
        """Set the value of a row; `key` is equal for equal values."""
        code = self._known.get(key)
        if code is None:
            code = self._known[key] = len(self.values)
            self.values.append(value)
        self.codes.extend_to(row + 1)[row] = code

    def fill(
        self, rows: NDArray[np.int64], stored: Iterable[Any], read: Callable[[Any], Any], count: int
    ) -> None:
        """Set all rows at once from stored cells; equal cells are parsed once."""
        distinct_codes: dict[Any, int] = {}
        cells = [distinct_codes.setdefault(cell, len(distinct_codes)) for cell in stored]
        codes = []
        for cell in distinct_codes:
            try:
                parsed_cell = read(cell)
            except DAMAGE:
                # The record cannot be read either.
                parsed_cell = None
            code = self._known.setdefault(_key(parsed_cell), len(self.values))
            if code == len(self.values):
                self.values.append(parsed_cell)
            codes.append(code)
        existing = rows >= 0
        self.codes.extend_to(count)[rows[existing]] = np.array(codes, np.int64)[
            np.array(cells, np.int64)[existing]
        ]


class MemoryFilters:
    """The metadata of one namespace's memories. One thread at a time."""

    def __init__(self) -> None:
        self._fields: dict[str, _Values] = {}
        self._masks: OrderedDict[Filter, NDArray[np.bool_]] = OrderedDict()

    def forget(self) -> None:
        """Drop everything; the next filter reads its fields again."""
        self._fields = {}
        self._masks.clear()

    def changed(self, rows: MemoryRows, records: Iterable[MemoryRecord]) -> None:
        """Update new or changed records."""
        self._masks.clear()
        if not self._fields:
            return
        for record in records:
            row = rows.row(record.id)
            if row < 0:
                continue
            values = as_mapping(record)
            for name, field in self._fields.items():
                field.set_value(row, values[name], _key(values[name]))

    def mask(self, keep: Filter, rows: MemoryRows, records: Records) -> NDArray[np.bool_]:
        """Which rows `keep` lets through, shape (N,)."""
        if not keep.fields:
            return np.ones(len(rows), np.bool_)
        mask = self._masks.get(keep)
        if mask is None:
            names = sorted({name.split(".", 1)[0] for name in keep.fields})
            for name in names:
                if name not in self._fields:
                    column, read = (
                        ("origin", _source) if name == "source" else RECORD_MAPPING.cell(name)
                    )
                    columns = (
                        records.columns(column)
                        if column != "record_id"
                        else [(i, i) for i in rows.ids]
                    )
                    values = _Values()
                    positions = rows.rows([record_id for record_id, _ in columns])
                    values.fill(positions, (cell for _, cell in columns), read, len(rows))
                    self._fields[name] = values
            mask = self._evaluate(keep, names, len(rows))
            self._masks[keep] = mask
            if len(self._masks) > _CACHED_MASKS:
                self._masks.popitem(last=False)
        return mask

    def _evaluate(self, keep: Filter, names: Sequence[str], count: int) -> NDArray[np.bool_]:
        fields = [self._fields[name] for name in names]
        columns = [field.codes.extend_to(count) for field in fields]
        combinations, size = np.zeros(count, np.int64), 1
        for field, codes in zip(fields, columns, strict=True):
            # Renumbered after each field: the product of all sizes could overflow.
            pairs = combinations * len(field.values) + codes
            combinations, size = _renumber(pairs, size * len(field.values))
        rows = np.empty(size, np.int64)
        # Any row with a combination stands for it.
        rows[combinations] = np.arange(count)
        answers = np.fromiter(
            (
                keep.matches(
                    {
                        name: field.values[int(codes[row])]
                        for name, field, codes in zip(names, fields, columns, strict=True)
                    }
                )
                for row in rows.tolist()
            ),
            np.bool_,
            size,
        )
        return answers[combinations]


def _renumber(numbers: NDArray[np.int64], size: int) -> tuple[NDArray[np.int64], int]:
    """Numbers below `size` replaced by those of distinct ones from 0, and how many these are."""
    if size > _TABLE * len(numbers):
        distinct_numbers, positions = np.unique(numbers, return_inverse=True)
        return positions, len(distinct_numbers)
    # By a table instead of sorting: a tenth of the time.
    is_used = np.zeros(size, np.bool_)
    is_used[numbers] = True
    return (np.cumsum(is_used) - 1)[numbers], int(is_used.sum())


def _key(value: Any) -> Any:
    if isinstance(value, Mapping):
        return ("payload", json.dumps(value, sort_keys=True, default=dict))
    return tuple(value) if isinstance(value, list) else value
