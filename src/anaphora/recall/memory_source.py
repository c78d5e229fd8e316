"""Where memories and notes come from: their rows, what is found of them, how near they are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from anaphora.recall.record_reads import record_cache
from anaphora.recall.view_cache import ViewCache
from anaphora.store.records.titles import record_title
from anaphora.values.memories import HalfLives, MemoryRecord

if TYPE_CHECKING:
    from collections.abc import Callable

    from anaphora.embed.service import EmbedderService
    from anaphora.index.memories.index import MemoryIndex
    from anaphora.index.memories.state import Candidates, MemoryQuery
    from anaphora.store.records.store import Records

_ARRAYS: Final = ("words", "type", "created", "reinforced_at", "count", "titles", "timely")


@dataclass(frozen=True, slots=True)
class KeptNotes:
    """Notes about projects, which are memories to a reader."""

    records: Records
    index: MemoryIndex


@dataclass(frozen=True, slots=True)
class MemorySource:
    """The memories of one namespace, with its notes, if given.

    `by_currency` puts what holds now before what it replaced; where each stands for itself, it is
    False. `title_of` gives what a record is called.
    """

    records: Records
    index: MemoryIndex
    embedder: EmbedderService
    half_lives: HalfLives = field(default_factory=HalfLives)
    notes: KeptNotes | None = None
    by_currency: bool = True
    title_of: Callable[[MemoryRecord], str] = record_title
    reads: ViewCache[MemoryRecord] = field(default_factory=record_cache)

    def many(self, record_ids: Iterable[str]) -> dict[str, MemoryRecord]:
        """The memories and notes of these ids that exist, by id."""
        self.records.sealer.check()
        return self.reads.many(self.records.version(), record_ids, self.read_records)

    def read_records(self, ids: list[str]) -> dict[str, MemoryRecord]:
        """The same, from the database."""
        records = self.records.many(ids)
        if self.notes is not None and len(records) < len(ids):
            records |= self.notes.records.many(
                record_id for record_id in ids if record_id not in records
            )
        return records

    def readings_of(self, record_ids: Sequence[str]) -> list[str]:
        """What was read of each of these memories and notes that is on disk, "" for none."""
        lines = self.index.readings_of(record_ids)
        if self.notes is not None and not all(lines):
            note_lines = self.notes.index.readings_of(record_ids)
            lines = [line or note for line, note in zip(lines, note_lines, strict=True)]
        return lines

    def excluded(self, lookup: MemoryQuery) -> Candidates:
        """The candidates there would be if all might be shown, each with why it may not."""
        candidates = self.index.excluded(lookup)
        return (
            candidates
            if self.notes is None
            else join_candidates(candidates, self.notes.index.excluded(lookup))
        )

    def fetch(self, lookup: MemoryQuery, record_ids: Collection[str]) -> Candidates:
        """Those of these memories and notes that may be shown, scored for a question."""
        parts = [index.fetch(lookup, record_ids) for index in self._indexes_in_use()]
        return join_candidates(*parts)

    def closeness(self, record_id: str, others: Sequence[str]) -> list[float]:
        """The cosine of a memory to each of others, NaN where it is not known."""
        parts = [index.closeness(record_id, others) for index in self._indexes_in_use()]
        cosines: list[float] = np.fmax.reduce(np.array(parts)).tolist()
        return cosines

    def _indexes_in_use(self) -> tuple[MemoryIndex, ...]:
        notes = () if self.notes is None or not len(self.notes.index) else (self.notes.index,)
        return self.index, *notes

    def find(self, lookup: MemoryQuery) -> tuple[Candidates, ...]:
        """Those of each index: the very same ones while nothing changed and nothing expired."""
        memories = self.index.candidates(lookup)
        if self.notes is None:
            return (memories,)
        return memories, self.notes.index.candidates(lookup, memories.version)


def join_candidates(first: Candidates, second: Candidates | None = None) -> Candidates:
    """The candidates of one or two indexes. Where one has no cosines, both are judged by words."""
    if second is None:
        return first
    first_columns, second_columns = first.columns, second.columns
    if len(first_columns.ids) and len(second_columns.ids):
        arrays = {
            name: np.concatenate((getattr(first_columns, name), getattr(second_columns, name)))
            for name in _ARRAYS
        }
        cosine = None
        if first_columns.cosine is not None and second_columns.cosine is not None:
            cosine = np.concatenate((first_columns.cosine, second_columns.cosine))
        columns = replace(
            first_columns, ids=(*first_columns.ids, *second_columns.ids), cosine=cosine, **arrays
        )
    else:
        columns = first_columns if len(first_columns.ids) else second_columns
    return replace(
        first,
        columns=columns,
        # What is read after this is at least as new as either.
        version=max(first.version, second.version),
        excluded=first.excluded + second.excluded,
        degraded=tuple(dict.fromkeys(first.degraded + second.degraded)),
        pending=first.pending + second.pending,
        searched=first.searched + second.searched,
        # A word that the other index holds was not read as another one.
        notices=tuple(
            notice for notice in first.notices if notice in second.notices or not second.columns.ids
        ),
    )
