"""The former values of a path: what a hit replaced, and which of them a question asks for.

The database has what each value of a path superseded, so nothing is judged here: a question for
the past
("my previous number", "in October") means the version that held then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeAlias

from anaphora.language.names import composed
from anaphora.rank.statements import read_cues
from anaphora.recall.question import Question
from anaphora.values.memories import MemoryRecord, RelatedMemory

__all__ = ["REASON", "PastAsked", "read_chains", "with_chain"]

REASON: Final = "its path has a newer value"
SHOWN: Final = 3
"""Former values that a hit names where the past is asked for; else the last one."""
_LOOKED_AT: Final = 16
"""Versions that are gone back where the past is asked for: each takes a read of the database."""

Read: TypeAlias = Callable[[Iterable[str]], Mapping[str, MemoryRecord]]
Chain: TypeAlias = tuple[MemoryRecord, ...]
"""The former values of a path, the last first."""


@dataclass(frozen=True, slots=True)
class PastAsked:
    """What a question asks of the past: by words ("previous"), by the first of all, by times."""

    by_words: bool
    first: bool
    spans: tuple[tuple[datetime, datetime], ...]

    @classmethod
    def read(cls, question: Question) -> PastAsked:
        """What `question` asks for."""
        cues = read_cues(question.text)
        # "What is it now?" may name a day, too, and asks for no other value.
        times = () if cues.now else question.times
        spans = tuple((span.start, span.end) for span in times)
        return cls(cues.past >= 2, cues.first, spans)

    def __bool__(self) -> bool:
        return self.by_words or bool(self.spans)

    @property
    def depth(self) -> int:
        """How many versions to go back."""
        return _LOOKED_AT if self else 1

    def version(self, current: MemoryRecord, chain: Chain) -> MemoryRecord | None:
        """Which value of the path is asked for, of `current` and before; None where none is."""
        if not chain:
            return None
        for start, end in self.spans:
            versions = (
                record
                for record in (current, *chain)
                if record.valid_from < end and (record.valid_to is None or record.valid_to > start)
            )
            if (last_version := next(versions, None)) is not None:
                return last_version
        if self.spans or not self.by_words:
            return None
        return chain[-1] if self.first else chain[0]


def read_chains(records: Sequence[MemoryRecord], read: Read, depth: int) -> dict[str, Chain]:
    """By id, at most `depth` former values of each record's path; none forgotten or never held."""
    chains: dict[str, Chain] = {record.id: () for record in records}
    ends = {record.id: record for record in records if record.path is not None}
    for _ in range(depth):
        former_ids = [
            record.supersedes for record in ends.values() if record.supersedes is not None
        ]
        if not former_ids:
            break
        formers = read(former_ids)
        further_records: dict[str, MemoryRecord] = {}
        for record_id, end in ends.items():
            former = formers.get(end.supersedes or "")
            if former is None or former.path is None:
                continue
            if composed(former.path) != composed(end.path or ""):
                continue
            further_records[record_id] = former
            never_held = former.valid_to is not None and former.valid_to <= former.valid_from
            if not former.forgotten and not never_held:
                chains[record_id] += (former,)
        ends = further_records
    return chains


def with_chain(previous: Iterable[RelatedMemory], chain: Chain) -> tuple[RelatedMemory, ...]:
    """What a hit replaced: the former values of its path, then what its words tell."""
    former = [RelatedMemory(memory.id, memory.text, memory.created_at) for memory in chain[:SHOWN]]
    former_ids = {memory.id for memory in former}
    return (*former, *(memory for memory in previous if memory.id not in former_ids))
