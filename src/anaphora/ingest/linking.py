"""Links between memories: close ones, ones that say the same, and ones that seem to contradict.

Closeness only links: two memories are never merged, however close. A pair is linked at most once;
if `same_fact` and type, path and payload agree, the younger reinforces the older, once. Two near
memories that contradict each other get a link of another family, which is open until it is settled.
Links are written in the same transaction as the vectors they come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from anaphora.language.names import label_of
from anaphora.rank.contradiction import NEAR, contradicts
from anaphora.rank.sameness import same_fact
from anaphora.rank.statements import read_statement
from anaphora.store.records.rows import (
    CLOSENESS,
    CONTRADICTION,
    OPEN,
    STANDS_ALONE,
    RecordEvent,
    RecordLink,
)
from anaphora.store.records.vectors import vector_rows
from anaphora.values.memories import MemoryRecord

if TYPE_CHECKING:
    from anaphora.embed.base import Vectors
    from anaphora.embed.service import EmbedderService
    from anaphora.rank.replacement import Statement
    from anaphora.store.records.store import Records
    from anaphora.store.records.transaction import RecordTransaction
    from anaphora.store.records.vectors import RecordVectors


CLOSE: Final = 0.9
"""The cosine from which on two memories are linked."""
MOST_LINKS: Final = 8
"""Links that one memory makes when it comes: the closest ones."""
NEWEST: Final = 5_000
"""Changes of the namespace that `Relinker` looks at: a dream comes more often than so many."""

MOST_PARTS: Final = 32
"""Vectors of a memory by which others are looked for, those of its beginning."""
_LONG: Final = 20_000
"""Characters from which on two texts are not read as one fact told twice, nor beyond them."""

_BATCH: Final = 256
_ROWS: Final = 32

Near: TypeAlias = tuple[str, float]
"""(record id, cosine) of a memory near to a vector."""
Neighbours: TypeAlias = Callable[["Vectors", float], Sequence[Sequence[Near]]]
"""Gives the memories nearest to each row of shape (n, dimensions), in any order: of at least a
cosine."""


@dataclass(frozen=True, slots=True)
class EmbeddedMemory:
    """A memory, its vectors, and what is near to them."""

    record_id: str
    text: str
    vectors: Vectors
    near: tuple[Near, ...] = ()


@dataclass(slots=True)
class Linker:
    """Keeps vectors of memories, and links the memories that they bring together."""

    vectors: RecordVectors
    embedder: EmbedderService
    neighbours: Neighbours

    def with_near(self, group: Sequence[EmbeddedMemory]) -> list[EmbeddedMemory]:
        """The same memories, each with the known ones near to any of its vectors."""
        if not group:
            return []
        import numpy as np

        line = self.embedder.calibration.alike
        vectors = np.concatenate([memory.vectors[:MOST_PARTS] for memory in group])
        rows = iter(
            [(memory_id, line.apply_to(cosine)) for memory_id, cosine in neighbours]
            for neighbours in self.neighbours(vectors, line.invert(NEAR))
        )
        return [
            replace(memory, near=near) if near else memory
            for memory in group
            for near in [
                _choose_closest(n for _ in memory.vectors[:MOST_PARTS] for n in next(rows))
            ]
        ]

    def with_each_other(self, group: Sequence[EmbeddedMemory]) -> list[EmbeddedMemory]:
        """The same memories, with those of them that are near to one another among the near."""
        import numpy as np

        from anaphora.index.vectors.matrix import products

        parts = [memory.vectors[:MOST_PARTS] for memory in group]
        rows = np.concatenate(parts)
        owner = np.repeat(np.arange(len(group)), [len(part) for part in parts])
        cosines = np.zeros((len(rows), len(rows)), np.float32)
        for start in range(0, len(rows), _ROWS):
            # Only with those before: the later one makes the link.
            end = start + _ROWS
            cosines[:end, start:end] = products(rows[:end, None], rows[start:end])
        cosines = np.triu(self.embedder.calibration.alike.apply(cosines), 1)
        near_earlier: list[list[Near]] = [[] for _ in group]
        earlier, later = np.nonzero((cosines >= NEAR) & (owner[:, None] != owner))
        pairs = zip(owner[earlier].tolist(), owner[later].tolist(), strict=True)
        for (at, by), cosine in zip(pairs, cosines[earlier, later].tolist(), strict=True):
            # The later one makes the link, as when they come one by one.
            near_earlier[by].append((group[at].record_id, cosine))
        return [
            replace(memory, near=_choose_closest((*memory.near, *more_neighbours)))
            if more_neighbours
            else memory
            for memory, more_neighbours in zip(group, near_earlier, strict=True)
        ]

    def keep(
        self, work: RecordTransaction, group: Sequence[EmbeddedMemory]
    ) -> dict[str, tuple[RecordLink, ...]]:
        """Write vectors and links in the change under way; return the new links of each."""
        rows = vector_rows((memory.record_id, memory.text, memory.vectors) for memory in group)
        work.keep_vectors(self.embedder.name, rows)
        return self.link(work, group)

    def link(
        self, work: RecordTransaction, group: Sequence[EmbeddedMemory]
    ) -> dict[str, tuple[RecordLink, ...]]:
        """The links of `keep` alone, for memories with stored vectors."""
        links_by_id: dict[str, tuple[RecordLink, ...]] = {memory.record_id: () for memory in group}
        group = [memory for memory in group if memory.near]
        work.load(
            ids=[memory.record_id for memory in group]
            + [n[0] for memory in group for n in memory.near]
        )
        stored_ids = [memory.record_id for memory in group if memory.record_id not in work.added]
        pairs = set(map(_identify_pair, work.linked(stored_ids, (*CLOSENESS, *CONTRADICTION))))
        links: list[RecordLink] = []
        for memory in group:
            new_links = [
                link for link in self._find_links(work, memory) if _identify_pair(link) not in pairs
            ]
            pairs.update(map(_identify_pair, new_links))
            links += new_links
            links_by_id[memory.record_id] = tuple(new_links)
        for link in links:
            if link.kind == "same":
                records = work.many((link.record_id, link.other_id)).values()
                older, younger = sorted(records, key=lambda record: (record.created_at, record.id))
                work.change(
                    older.id,
                    reinforce_count=older.reinforce_count + 1,
                    last_reinforced=max(older.last_reinforced, younger.last_reinforced),
                )
                details = {"other": younger.id}
                work.tell(RecordEvent(older.id, "linked", younger.last_reinforced, details=details))
        work.join(links)
        return links_by_id

    def _find_links(self, work: RecordTransaction, memory: EmbeddedMemory) -> list[RecordLink]:
        record = _find_linkable(work, memory.record_id)
        if record is None:
            return []
        statement = _make_statement(record)
        links: list[RecordLink] = []
        for other_id, cosine in memory.near:
            other_record = _find_linkable(work, other_id)
            if other_record is None or other_id == memory.record_id:
                continue
            first_id, second_id = min(record.id, other_record.id), max(record.id, other_record.id)
            is_same = False
            if cosine >= CLOSE:
                # The same text at two paths is two facts.
                identity, other_identity = (
                    (memory.type, memory.path, memory.payload) for memory in (record, other_record)
                )
                is_same = (
                    len(record.text) <= _LONG >= len(other_record.text)
                    and identity == other_identity
                    and same_fact(record.text, other_record.text)
                )
                links.append(
                    RecordLink(first_id, second_id, "same" if is_same else "related", cosine)
                )
            # Episodes, and different paths, never contradict.
            is_episode = "episodic" in (record.type, other_record.type)
            if is_same or is_episode or (record.path and other_record.path):
                continue
            # Two projects of one name have labels of their own.
            label = label_of(record.text)
            is_shared = label and label == label_of(other_record.text)
            sources = set(record.sources), set(other_record.sources)
            if is_shared and all(sources) and sources[0].isdisjoint(sources[1]):
                continue
            other = _make_statement(other_record)
            comes_later = (record.created_at, record.id) >= (other_record.created_at, other_id)
            older, newer = (other, statement) if comes_later else (statement, other)
            if contradicts(older, newer, cosine):
                links.append(RecordLink(first_id, second_id, OPEN, cosine))
        return links


def _find_linkable(work: RecordTransaction, record_id: str) -> MemoryRecord | None:
    """The memory, if it may be linked: current, not forgotten, not kept apart by `dedupe=False`."""
    record = work.find(record_id)
    if record is None or record.forgotten or record.valid_to is not None:
        return None
    return None if work.same_key(record_id) == STANDS_ALONE else record


def _make_statement(record: MemoryRecord) -> Statement:
    from anaphora.rank.replacement import Statement

    text = record.text[:_LONG]
    return Statement(text, record.created_at.timestamp(), "", False, read_statement(text))


def _identify_pair(link: RecordLink) -> tuple[str, str, bool]:
    """Two memories have at most one link of each family of kinds."""
    return link.record_id, link.other_id, link.kind in CLOSENESS


def _choose_closest(candidates: Iterable[Near]) -> tuple[Near, ...]:
    """Each memory once, at its best part, the closest first."""
    best_by_memory: dict[str, Near] = {}
    for neighbour in candidates:
        if neighbour[0] not in best_by_memory or neighbour[1] > best_by_memory[neighbour[0]][1]:
            best_by_memory[neighbour[0]] = neighbour
    return tuple(
        sorted(best_by_memory.values(), key=lambda neighbour: (-neighbour[1], neighbour[0]))[
            :MOST_LINKS
        ]
    )


@dataclass(frozen=True, slots=True)
class Relinker:
    """Links the newest memories of a namespace that no `remember` has brought together yet."""

    records: Records
    linker: Linker

    def run(self) -> tuple[RecordLink, ...]:
        """Look at the newest memories once; the links that are new."""
        import numpy as np

        since = max(0, self.records.version() - NEWEST)
        links: list[RecordLink] = []
        for batch in self.linker.vectors.get_all(
            self.linker.embedder.name, since=since, batch=_BATCH
        ):
            rows = np.frombuffer(batch.data, "<f2").reshape(len(batch.parts), -1)
            rows_by_id: dict[str, list[int]] = {}
            for row, record_id in enumerate(batch.record_ids):
                rows_by_id.setdefault(record_id, []).append(row)
            group = [
                EmbeddedMemory(memory_id, "", rows[at].astype(np.float32))
                for memory_id, at in rows_by_id.items()
            ]
            near_group = self.linker.with_near(group)
            ids = [memory.record_id for memory in near_group]
            with self.records.change() as work:
                work.load(ids=ids)
                links_by_id = self.linker.link(work, near_group)
            links += [link for memory_links in links_by_id.values() for link in memory_links]
        return tuple(links)
