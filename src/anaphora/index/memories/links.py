"""The links between close memories as columns: 16 bytes a link, and 4 a memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from anaphora.index.memories.rows import MemoryRows
from anaphora.index.rows import GONE
from anaphora.store.records.rows import CLOSENESS, RecordLink

# `end` is twice the row of the other end, plus the place of the kind in CLOSENESS.
_LINK: Final = np.dtype([("end", np.int32), ("strength", np.float32)])
_MOST_RECENT: Final = 1_000
"""Rows with new links that are not in the columns yet: inserting moves all that follow."""


class MemoryLinks:
    """The links of N rows, each at both ends. One thread at a time (the caller holds a lock).

    A link goes with the row of either end, and never without: none is deleted by itself.
    """

    def __init__(self) -> None:
        self._links = np.empty(0, _LINK)
        # Where those of each row begin, and the end of the last.
        self._begins = np.zeros(1, np.int32)
        self._recent: dict[int, list[tuple[int, float]]] = {}

    def put(self, rows: MemoryRows, links: Iterable[RecordLink]) -> None:
        """Add links between known memories, of closeness alone; the same one may come twice."""
        ends = (
            (rows.row(link.record_id), rows.row(link.other_id), link)
            for link in links
            # A damaged strength must not stop every question.
            if link.kind in CLOSENESS and isinstance(link.strength, float)
        )
        for first_row, second_row, link in ends:
            if min(first_row, second_row) >= 0:
                kind, strength = CLOSENESS.index(link.kind), float(np.float32(link.strength))
                for row, linked_row in ((first_row, second_row), (second_row, first_row)):
                    links_of_row = self._recent.setdefault(row, [])
                    links_of_row.append((2 * linked_row + kind, strength))
        if len(self._recent) > _MOST_RECENT:
            self._insert_recent(len(rows))

    def _insert_recent(self, count: int) -> None:
        recent_rows = sorted(self._recent)
        sizes = np.zeros(count, np.int32)
        sizes[recent_rows] = [len(self._recent[row]) for row in recent_rows]
        begins = np.pad(self._begins, (0, count + 1 - len(self._begins)), "edge")
        places = np.repeat(begins[1:], sizes)
        new_links = [link for row in recent_rows for link in self._recent[row]]
        self._links = np.insert(self._links, places, np.array(new_links, _LINK))
        begins[1:] += np.cumsum(sizes, dtype=np.int32)
        self._begins, self._recent = begins, {}

    def of(self, rows: MemoryRows, record_id: str) -> list[tuple[str, str]]:
        """The ids that are linked with this one, each with the kind, the closest first."""
        row, state = rows.row(record_id), rows.column("state")
        # Clipped, an unknown row has no links, and neither has one that came after the last link.
        begin, end = self._begins.take((row, row + 1), mode="clip").tolist()
        links = {
            (-strength, rows.ids[end_and_kind >> 1], CLOSENESS[end_and_kind & 1])
            for end_and_kind, strength in (
                *self._links[begin:end].tolist(),
                *self._recent.get(row, ()),
            )
            if state[end_and_kind >> 1] != GONE
        }
        return [(linked_id, kind) for _, linked_id, kind in sorted(links)]
