"""Which memories are close to one another, which say the same, and which seem to contradict.

Closeness only links: two memories are never merged, however close. A pair is linked once, ever;
where `same_fact` agrees and type, path and payload do, the older of the two is reinforced by the
younger, once. Two that are near and say otherwise get a link of another family, which is open until
somebody settles it. Links are written in the same transaction as the vectors they come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

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
        vectors = np.concatenate([one.vectors[:MOST_PARTS] for one in group])
        rows = iter(
            [(other, line.applied_to(cosine)) for other, cosine in near]
            for near in self.neighbours(vectors, line.undone(NEAR))
        )
        return [
            replace(one, near=_closest(n for _ in one.vectors[:MOST_PARTS] for n in next(rows)))
            for one in group
        ]

    def with_each_other(self, group: Sequence[EmbeddedMemory]) -> list[EmbeddedMemory]:
        """The same memories, with those of them that are near to one another among the near."""
        import numpy as np

        from anaphora.index.vectors.matrix import products_of

        parts = [one.vectors[:MOST_PARTS] for one in group]
        rows = np.concatenate(parts)
        owner = np.repeat(np.arange(len(group)), [len(own) for own in parts])
        cosines = np.zeros((len(rows), len(rows)), np.float32)
        for start in range(0, len(rows), _ROWS):
            # Only with those before: the later one makes the link.
            end = start + _ROWS
            cosines[:end, start:end] = products_of(rows[:end], rows[start:end])
        cosines = np.triu(self.embedder.calibration.alike.applied(cosines), 1)
        found: list[list[Near]] = [[] for _ in group]
        for a, b in np.argwhere(cosines >= NEAR).tolist():
            # The later one makes the link, as when they come one by one.
            if owner[a] != owner[b]:
                first = group[owner[a]]
                found[owner[b]].append((first.record_id, float(cosines[a, b])))
        return [
            replace(one, near=_closest((*one.near, *more)))
            for one, more in zip(group, found, strict=True)
        ]

    def keep(
        self, work: RecordTransaction, group: Sequence[EmbeddedMemory]
    ) -> dict[str, tuple[RecordLink, ...]]:
        """Write vectors and links in the change under way; return the new links of each."""
        rows = [row for one in group for row in vector_rows(one.record_id, one.text, one.vectors)]
        work.keep_vectors(self.embedder.name, rows)
        return self.link(work, group)

    def link(
        self, work: RecordTransaction, group: Sequence[EmbeddedMemory]
    ) -> dict[str, tuple[RecordLink, ...]]:
        """Only the links of `keep`, for memories whose vectors are stored already."""
        made: dict[str, tuple[RecordLink, ...]] = {one.record_id: () for one in group}
        group = [one for one in group if one.near]
        work.load(ids=[one.record_id for one in group] + [n[0] for one in group for n in one.near])
        older = [one.record_id for one in group if one.record_id not in work.added]
        pairs = set(map(_pair, work.linked(older, (*CLOSENESS, *CONTRADICTION))))
        links: list[RecordLink] = []
        for one in group:
            new = [link for link in self._links(work, one) if _pair(link) not in pairs]
            pairs.update(map(_pair, new))
            links += new
            made[one.record_id] = tuple(new)
        for link in links:
            if link.kind == "same":
                _reinforce_older(work, link)
        work.join(links)
        return made

    def _links(self, work: RecordTransaction, one: EmbeddedMemory) -> list[RecordLink]:
        mine = _linkable(work, one.record_id)
        links = []
        for other_id, cosine in one.near if mine else ():
            other = _linkable(work, other_id)
            if other is None or mine is None or other_id == one.record_id:
                continue
            same = cosine >= CLOSE and _say_the_same(mine, other)
            first, second = min(mine.id, other.id), max(mine.id, other.id)
            if cosine >= CLOSE:
                links.append(RecordLink(first, second, "same" if same else "related", cosine))
            if not same and _contradict(mine, other, cosine):
                links.append(RecordLink(first, second, OPEN, cosine))
        return links


def _linkable(work: RecordTransaction, record_id: str) -> MemoryRecord | None:
    """The memory, if it may be linked: current, not forgotten, not kept apart by `dedupe=False`."""
    record = work.find(record_id)
    if record is None or record.forgotten or record.valid_to is not None:
        return None
    return None if work.same_key(record_id) == STANDS_ALONE else record


def _say_the_same(one: MemoryRecord, other: MemoryRecord) -> bool:
    """Words alone do not decide: the same words at two paths are two facts."""
    place, other_place = ((each.type, each.path, each.payload) for each in (one, other))
    short = len(one.text) <= _LONG >= len(other.text)
    return short and place == other_place and same_fact(one.text, other.text)


def _contradict(one: MemoryRecord, other: MemoryRecord, cosine: float) -> bool:
    """Whether they seem to. What happened is past, and different paths are different things."""
    if "episodic" in (one.type, other.type) or (one.path and other.path):
        return False
    older, newer = sorted((one, other), key=lambda record: (record.created_at, record.id))
    return contradicts(_statement(older), _statement(newer), cosine)


def _statement(record: MemoryRecord) -> Statement:
    from anaphora.rank.replacement import Statement

    text = record.text[:_LONG]
    return Statement(text, record.created_at.timestamp(), "", False, read_statement(text))


def _reinforce_older(work: RecordTransaction, link: RecordLink) -> None:
    one, other = work.find(link.record_id), work.find(link.other_id)
    assert one is not None
    assert other is not None
    older, younger = sorted((one, other), key=lambda record: (record.created_at, record.id))
    work.change(
        older.id,
        reinforce_count=older.reinforce_count + 1,
        last_reinforced=max(older.last_reinforced, younger.last_reinforced),
    )
    details = {"other": younger.id}
    work.tell(RecordEvent(older.id, "linked", younger.last_reinforced, details=details))


def _pair(link: RecordLink) -> tuple[str, str, bool]:
    """Two memories have at most one link of each family of kinds."""
    return link.record_id, link.other_id, link.kind in CLOSENESS


def _closest(found: Iterable[Near]) -> tuple[Near, ...]:
    """Each memory once, at its best part, the closest first."""
    best: dict[str, Near] = {}
    for near in found:
        if near[0] not in best or near[1] > best[near[0]][1]:
            best[near[0]] = near
    return tuple(sorted(best.values(), key=lambda near: (-near[1], near[0]))[:MOST_LINKS])


@dataclass(frozen=True, slots=True)
class Relinker:
    """Links the newest memories of a namespace that no `remember` has brought together yet."""

    records: Records
    linker: Linker

    def run(self) -> tuple[RecordLink, ...]:
        """Look at the newest memories once; the links that are new."""
        import numpy as np

        since = max(0, self.records.version() - NEWEST)
        made: list[RecordLink] = []
        for batch in self.linker.vectors.get_all(
            self.linker.embedder.name, since=since, batch=_BATCH
        ):
            rows = np.frombuffer(batch.data, "<f2").reshape(len(batch.parts), -1)
            places: dict[str, list[int]] = {}
            for place, record_id in enumerate(batch.record_ids):
                places.setdefault(record_id, []).append(place)
            group = [
                EmbeddedMemory(one, "", rows[at].astype(np.float32)) for one, at in places.items()
            ]
            made += self._link(group)
        return tuple(made)

    def _link(self, group: list[EmbeddedMemory]) -> list[RecordLink]:
        found = self.linker.with_near(group)
        ids = [one.record_id for one in found]
        with self.records.change() as work:
            work.load(ids=ids)
            made = self.linker.link(work, found)
        return [link for links in made.values() for link in links]
