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


class MemoryLinks:
    """The links of N rows, each at both ends. One thread at a time (the caller holds a lock).

    A link goes with the row of either end, and never without: none is deleted by itself.
    """

    def __init__(self) -> None:
        self._links = np.empty(0, _LINK)
        # Where those of each row begin, and the end of the last.
        self._begins = np.zeros(1, np.int32)

    def put(self, rows: MemoryRows, links: Iterable[RecordLink]) -> None:
        """Add links between known memories, of closeness alone; the same one may come twice."""
        ends = (
            (rows.row(link.record_id), rows.row(link.other_id), link)
            for link in links
            # A damaged strength must not stop every question.
            if link.kind in CLOSENESS and isinstance(link.strength, float)
        )
        entries = sorted(
            (row, (2 * linked_row + CLOSENESS.index(link.kind), link.strength))
            for first_row, second_row, link in ends
            if min(first_row, second_row) >= 0
            for row, linked_row in ((first_row, second_row), (second_row, first_row))
        )
        if entries:
            linked_rows, new_links = zip(*entries, strict=True)
            begins = np.pad(self._begins, (0, len(rows) + 1 - len(self._begins)), "edge")
            places = begins[np.array(linked_rows) + 1]
            self._links = np.insert(self._links, places, np.array([*new_links], _LINK))
            counts = np.bincount(linked_rows, minlength=len(rows))
            begins[1:] += np.cumsum(counts, dtype=np.int32)
            self._begins = begins

    def of(self, rows: MemoryRows, record_id: str) -> list[tuple[str, str]]:
        """The ids that are linked with this one, each with the kind, the closest first."""
        row, state = rows.row(record_id), rows.column("state")
        # Clipped, an unknown row has no links, and neither has one that came after the last link.
        begin, end = self._begins.take((row, row + 1), mode="clip").tolist()
        links = {
            (-strength, rows.ids[end_and_kind >> 1], CLOSENESS[end_and_kind & 1])
            for end_and_kind, strength in self._links[begin:end].tolist()
            if state[end_and_kind >> 1] != GONE
        }
        return [(linked_id, kind) for _, linked_id, kind in sorted(links)]
