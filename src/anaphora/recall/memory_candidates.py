"""The memories of one question as candidates: scored, and read as they are needed.

In: what the indexes of memories and notes found. Out: candidates with their texts, best first, and
those that a link names. A text is read once.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from anaphora.rank.embedders import embedder_reads
from anaphora.rank.memories import UNREAD, MemoryScores, rank_memories
from anaphora.reading.inputs import statement_text
from anaphora.recall.candidates import Candidate
from anaphora.recall.memory_source import MemorySource, join_candidates
from anaphora.recall.reading import day_of, titled_text
from anaphora.store.codecs import to_micros
from anaphora.values.conversations import Degraded

if TYPE_CHECKING:
    from anaphora.index.memories.state import Candidates, MemoryQuery
    from anaphora.rank.silence import Lane
    from anaphora.recall.question import Question
    from anaphora.values.memories import MemoryRecord

_READ_FIRST: Final = 9
_MOST_WANTED: Final = 10
"""Texts of candidates that are read at once, first: so many, and one for each hit that is wanted,
of the first ten; then twice as many."""


@dataclass
class FoundMemories:
    """The scored memories of one question: `Found` of the pipeline.

    `is_ranked`: not by their cosine alone. `top_k` hits are wanted.
    """

    source: MemorySource
    question: Question
    lookup: MemoryQuery
    result: Candidates
    is_ranked: bool
    window: int
    top_k: int
    unread: list[Degraded] = field(default_factory=list)
    records: dict[str, MemoryRecord] = field(default_factory=dict)
    _candidates: dict[int, Candidate] = field(default_factory=dict)
    # What says the same was linked when it was kept.
    repetitions: bool = True
    lane: Lane = "facts"

    def __post_init__(self) -> None:
        self.scores = self.rank(self.result)
        self._indexes = {
            record_id: index for index, record_id in enumerate(self.result.columns.ids)
        }

    @property
    def searched(self) -> int:
        """How many memories may be shown."""
        return self.result.searched

    @property
    def count(self) -> int:
        """How many of them are candidates."""
        return len(self._best_first)

    @property
    def is_rated(self) -> bool:
        """Whether all memories that may be shown have a cosine."""
        return self.lookup.vector is not None and not self.result.pending

    @cached_property
    def silent(self) -> frozenset[int]:
        """The indexes of those that have nothing in common with the question."""
        if not self.is_ranked or self.lookup.every:
            return frozenset()
        return frozenset(np.flatnonzero(self.scores.similarity <= 0.0).tolist())

    @cached_property
    def _best_first(self) -> list[int]:
        indexes: list[int] = self.scores.order.tolist()
        return [index for index in indexes if index not in self.silent] if self.silent else indexes

    def best_first(self) -> Iterator[Candidate]:
        """Candidates with their texts, some at a time; without those that were forgotten since.

        Where their cosine alone orders them, without texts: none is compared.
        """
        if not self.is_ranked:
            for index in self._best_first:
                yield Candidate(index, "", float(self.scores.score[index]), 0.0, math.nan)
            return
        read_count, size = 0, max(self.window + 1, _READ_FIRST + min(self.top_k, _MOST_WANTED))
        while chunk := self._best_first[read_count : read_count + size]:
            self._make_candidates(chunk)
            yield from (self._candidates[index] for index in chunk if index in self._candidates)
            read_count, size = read_count + size, 2 * size

    def reference_of(self, candidate: Candidate) -> str:
        """The id of a candidate's memory, by which a link names it."""
        return self.result.columns.ids[candidate.index]

    def fetch(self, references: Collection[str]) -> list[Candidate]:
        """The candidates of these ids that may be shown: those that were none become ones."""
        new_ids = [record_id for record_id in references if record_id not in self._indexes]
        fetched = self.source.fetch(self.lookup, new_ids) if new_ids else None
        if fetched is not None and fetched.columns.ids:
            self.result = join_candidates(self.result, fetched)
            self.scores = self.rank(self.result)
            for record_id in fetched.columns.ids:
                self._indexes[record_id] = len(self._indexes)
        indexes = [self._indexes[name] for name in references if name in self._indexes]
        self._make_candidates(set(indexes) - self._candidates.keys())
        return [self._candidates[index] for index in indexes if index in self._candidates]

    def closeness(self, candidate: Candidate, others: Sequence[Candidate]) -> list[float]:
        """The cosine of a candidate to each of others, NaN where it is not known."""
        return self.source.closeness(
            self.reference_of(candidate), [self.reference_of(member) for member in others]
        )

    def reader_texts(self, candidates: Sequence[Candidate]) -> list[str]:
        """What a reader reads of them: titles, those properties that are asked for, the day."""
        return [
            statement_text(
                titled_text(candidate, question=self.question.text), day=day_of(candidate.at)
            )
            for candidate in candidates
        ]

    def read(self, ids: Iterable[str]) -> Mapping[str, MemoryRecord]:
        """What is known of these ids, and of others: each is read once, after the search."""
        unread = [record_id for record_id in ids if record_id not in self.records]
        if unread:
            source = self.source
            self.records |= source.reads.many(self.result.version, unread, source.read_records)
        return self.records

    def rank(self, candidates: Candidates) -> MemoryScores:
        """The scores of what an index found, best first by index."""
        now, columns = to_micros(self.lookup.moment), candidates.columns
        if self.is_ranked and columns.cosine is not None:
            cosine = self.source.embedder.calibration.asked.apply(columns.cosine)
            if not embedder_reads(self.source.embedder.name, self.question.text):
                cosine = cosine * UNREAD
            columns = replace(columns, cosine=cosine)
        return rank_memories(columns, now, self.source.half_lives, hybrid=self.is_ranked)

    def _make_candidates(self, indexes: Collection[int]) -> None:
        """Read the texts of candidates; those that were forgotten since become none."""
        columns, factors, indexes = self.result.columns, self.scores.factors, list(indexes)
        ids = [columns.ids[index] for index in indexes]
        records = self.read(ids)
        now, nothing = to_micros(self.lookup.moment), np.zeros(len(self._indexes))
        noted_at = columns.reinforced_at[indexes]
        # Said again at a time to come: what was noted first is sure.
        noted_at = np.where(noted_at > now, columns.created[indexes], noted_at)
        table = (
            self.scores.score[indexes],
            factors.get("meaning", nothing)[indexes],
            # What was said again holds from then on.
            noted_at / 1e6 if self.source.by_currency else nothing[indexes],
            columns.count[indexes],
            factors.get("title", nothing)[indexes],
            noted_at > now,
            (nothing if columns.timely is None else columns.timely)[indexes] > 0,
        )
        rows = zip(*(column.tolist() for column in table), strict=True)
        lines = self.source.readings_of(ids)
        for index, record_id, line, facts in zip(indexes, ids, lines, rows, strict=True):
            if (record := records.get(record_id)) is not None:
                score, meaning, at, count, titled, coming, timely = facts
                self._candidates[index] = Candidate(
                    index,
                    record.text,
                    score,
                    meaning,
                    at,
                    line=line,
                    restated=count,
                    title=self.source.title_of(record),
                    titled=titled,
                    coming=coming,
                    timely=timely,
                )
