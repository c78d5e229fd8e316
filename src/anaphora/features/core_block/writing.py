"""The memories of the core block and their positions: each pinned or unpinned by one write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anaphora.store.records.store import Records


@dataclass(frozen=True, slots=True)
class CoreBlockWriter:
    """Changes the core block of one namespace."""

    records: Records
    clock: Callable[[], datetime]

    def pin(self, record_id: str, position: int | None = None) -> str:
        """Pin a memory at a position, from 1, or at the end; the id of the one that holds now.

        `NotFound`, `StoreError` and its kinds.
        """
        from anaphora.features.core_block import pins

        with self.records.change() as work:
            return pins.pin(work, record_id, position, self.clock())

    def unpin(self, record_id: str) -> str:
        """Remove a memory from the block, however it got there. Raises what `pin` does."""
        from anaphora.features.core_block import pins

        with self.records.change() as work:
            return pins.unpin(work, record_id, self.clock())
