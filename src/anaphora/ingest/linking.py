"""Links between memories: close ones, ones that say the same, and ones that seem to contradict.

Closeness only links: two memories are never merged, however close. A pair is linked at most once.
What the younger of two near memories makes of the older, the judge of pairs says: if it repeats it,
and type, path and payload agree, it reinforces it, once; if it replaces it, the two get a link of
another family, which is open until it is settled. Links are written in the same transaction as the
vectors they come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from anaphora.language.names import label_of
from anaphora.rank.pairs import (
    REPEATED,
    REPLACED,
    JudgePairs,
    PairVerdict,
    Statement,
    StatementPair,
    beside_rivals,
    statement_of,
)
from anaphora.store.records.rows import (
    CLOSENESS,
    CONTRADICTION,
    OPEN,
    STANDS_ALONE,
    RecordEvent,
    RecordLink,
)
from anaphora.store.records.vectors import vector_rows
from anaphora.values.fitted import fitted
from anaphora.values.memories import MemoryRecord

if TYPE_CHECKING:
    from anaphora.embed.base import Vectors
    from anaphora.embed.service import EmbedderService
    from anaphora.store.records.store import Records
    from anaphora.store.records.transaction import RecordTransaction
    from anaphora.store.records.vectors import RecordVectors


_NUMBERS: Final = fitted("links")

CLOSE: Final[float] = _NUMBERS["CLOSE"]
"""The cosine from which on two memories are linked."""
NEAR: Final[float] = _NUMBERS["NEAR"]
"""The cosine from which on two memories can contradict each other."""
MOST_LINKS: Final = 8
"""Links that one memory makes when it comes: the closest ones."""
NEWEST: Final = 5_000
"""Changes of the namespace that `Relinker` looks at: a dream comes more often than so many."""

MOST_PARTS: Final = 32
"""Vectors of a memory by which others are looked for, those of its beginning."""
_READ: Final = 600
"""Characters of a text that the judge reads: what is longer may say something else after them."""

_BATCH: Final = 256
_ROWS: Final = 32

Near: TypeAlias = tuple[str, float]
"""(record id, cosine) of a memory near to a vector."""
Judged: TypeAlias = tuple[str, float, PairVerdict]
"""The same with what the later one of the two makes of the earlier."""
Neighbours: TypeAlias = Callable[["Vectors", float], Sequence[Sequence[Near]]]
"""Gives the memories nearest to each row of shape (n, dimensions), in any order: of at least a
cosine."""


@dataclass(frozen=True, slots=True)
class EmbeddedMemory:
    """A memory, its vectors, and what is near to them."""

    record_id: str
    text: str
    vectors: Vectors
    near: tuple[Judged, ...] = ()


@dataclass(slots=True)
class Linker:
    """Keeps vectors of memories, and links the memories that they bring together."""

    records: Records
    vectors: RecordVectors
    embedder: EmbedderService
    neighbours: Neighbours
    judge: JudgePairs

    def with_near(
        self, group: Sequence[EmbeddedMemory], unwritten: Iterable[MemoryRecord] = ()
    ) -> list[EmbeddedMemory]:
        """The same memories, each with those near to any of its vectors, judged.

        Near are known ones, and those of the group before it. `unwritten` are records of the group
        that are not stored yet.
        """
        near = self._find_near(group)
        ids = {memory.record_id for memory in group} | {
            other_id for row in near for other_id, _ in row
        }
        records = self.records.many(ids) | {record.id: record for record in unwritten}
        pairs = [
            (memory.record_id, other_id, cosine)
            for memory, row in zip(group, near, strict=True)
            for other_id, cosine in row
            if memory.record_id in records and other_id in records
        ]
        statements = {memory_id: _make_statement(record) for memory_id, record in records.items()}
        # Of those that came together the one with the later id is later.
        ends = [
            sorted(pair[:2], key=lambda memory_id: (statements[memory_id].at, memory_id))
            for pair in pairs
        ]
        verdicts = self.judge(
            [
                _pair_up(statements[older], statements[newer], cosine)
                for (older, newer), (_, _, cosine) in zip(ends, pairs, strict=True)
            ]
        )
        in_order = sorted(
            zip(ends, verdicts, strict=True), key=lambda entry: statements[entry[0][1]].at
        )
        beside = beside_rivals({(older, newer): verdict for (older, newer), verdict in in_order})
        judged: dict[str, list[Judged]] = {}
        for (memory_id, other_id, cosine), (older, newer) in zip(pairs, ends, strict=True):
            judged.setdefault(memory_id, []).append((other_id, cosine, beside[older, newer]))
        return [replace(memory, near=tuple(judged.get(memory.record_id, ()))) for memory in group]

    def _find_near(self, group: Sequence[EmbeddedMemory]) -> list[list[Near]]:
        """The closest to each memory: at least `NEAR`, each at its best part, the closest first."""
        if not group:
            return []
        import numpy as np

        from anaphora.index.vectors.matrix import products

        line = self.embedder.calibration.alike
        parts = [memory.vectors[:MOST_PARTS] for memory in group]
        rows, owner = np.concatenate(parts), np.repeat(range(len(group)), list(map(len, parts)))
        best: list[dict[str, float]] = [{} for _ in group]

        def note(at: int, other_id: str, cosine: float) -> None:
            if other_id != group[at].record_id:
                best[at][other_id] = max(cosine, best[at].get(other_id, cosine))

        neighbours_of_rows = self.neighbours(rows, line.invert(NEAR))
        for at, neighbours in zip(owner.tolist(), neighbours_of_rows, strict=True):
            for other_id, cosine in neighbours:
                note(at, other_id, line.apply_to(cosine))
        for start in range(0, len(rows), _ROWS):
            # Only with those before: the later one makes the link, as when they come one by one.
            end = start + _ROWS
            cosines = line.apply(products(rows[:end, None], rows[start:end]))
            for earlier, later in np.argwhere(cosines >= NEAR).tolist():
                if owner[earlier] < owner[start + later]:
                    note(
                        int(owner[start + later]),
                        group[owner[earlier]].record_id,
                        float(cosines[earlier, later]),
                    )
        return [
            sorted(row.items(), key=lambda near: (-near[1], near[0]))[:MOST_LINKS] for row in best
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
        record = find_linkable(work, memory.record_id)
        if record is None:
            return []
        links: list[RecordLink] = []
        for other_id, cosine, verdict in memory.near:
            other_record = find_linkable(work, other_id)
            if other_record is None:
                continue
            first_id, second_id = sorted((record.id, other_record.id))
            repeats = _say_the_same(record.text, other_record.text, verdict)
            if cosine >= CLOSE:
                # The same text at two paths is two facts.
                is_same = repeats and _identify(record) == _identify(other_record)
                kind = "same" if is_same else "related"
                links.append(RecordLink(first_id, second_id, kind, cosine))
            if (
                verdict.replaces >= REPLACED
                and not repeats
                and can_contradict(record, other_record)
            ):
                links.append(RecordLink(first_id, second_id, OPEN, cosine))
        return links


def find_linkable(work: RecordTransaction, record_id: str) -> MemoryRecord | None:
    """The memory, if it may be linked: current, not forgotten, not kept apart by `dedupe=False`."""
    record = work.find(record_id)
    if record is None or record.forgotten or record.valid_to is not None:
        return None
    return None if work.same_key(record_id) == STANDS_ALONE else record


def _make_statement(record: MemoryRecord) -> Statement:
    return statement_of(record.text, record.created_at.timestamp())


def _pair_up(older: Statement, newer: Statement, cosine: float) -> StatementPair:
    """The two as the judge takes them: one that came with the other came a moment later."""
    later = newer if newer.at > older.at else replace(newer, at=older.at + 1.0)
    return StatementPair(older, later, cosine)


def _say_the_same(one: str, other: str, verdict: PairVerdict) -> bool:
    is_read = max(len(one), len(other)) <= _READ
    words, other_words = _bare(one), _bare(other)
    if words.casefold() == other_words.casefold():
        # "Send it to us", "send it to US": the judge knows no capitals.
        is_loud = words.isupper() or other_words.isupper()
        return is_loud or words[1:] == other_words[1:]
    return is_read and verdict.repeats >= REPEATED


def _bare(text: str) -> str:
    return " ".join(text.split()).rstrip(".!")


def _identify(record: MemoryRecord) -> tuple[object, ...]:
    return record.type, record.path, record.payload


def can_contradict(one: MemoryRecord, other: MemoryRecord) -> bool:
    """Whether two memories can be about one thing: episodes, and different paths, never are."""
    if "episodic" in (one.type, other.type) or (one.path and other.path):
        return False
    # Two projects of one name have labels of their own.
    label = label_of(one.text)
    is_shared = label and label == label_of(other.text)
    sources = set(one.sources), set(other.sources)
    return not (is_shared and all(sources) and sources[0].isdisjoint(sources[1]))


def _identify_pair(link: RecordLink) -> tuple[str, str, bool]:
    """Two memories have at most one link of each family of kinds."""
    return link.record_id, link.other_id, link.kind in CLOSENESS


@dataclass(frozen=True, slots=True)
class Relinker:
    """Links the newest memories of a namespace that no `remember` has brought together yet."""

    linker: Linker

    def run(self) -> tuple[RecordLink, ...]:
        """Look at the newest memories once; the links that are new."""
        import numpy as np

        records = self.linker.records
        since = max(0, records.version() - NEWEST)
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
            with records.change() as work:
                work.load(ids=ids)
                links_by_id = self.linker.link(work, near_group)
            links += [link for memory_links in links_by_id.values() for link in memory_links]
        return tuple(links)
