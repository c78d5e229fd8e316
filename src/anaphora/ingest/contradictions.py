"""The memories that seem to contradict each other, and the verdicts on them.

A contradiction is a link of two memories; a verdict changes its kind and, where one of the two no
longer holds, ends that one as any newer value does. Nothing is deleted, and every verdict can be
taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final, cast

from anaphora.errors import InvalidInput, NotFound
from anaphora.ingest.linking import can_contradict, find_linkable
from anaphora.store.namespace import NO_LIMIT
from anaphora.store.records.rows import CONTRADICTION, OPEN, SETTLED, RecordEvent, RecordLink
from anaphora.values.memories import Contradiction, MemoryRecord, RelatedMemory, Verdict

if TYPE_CHECKING:
    from anaphora.store.db.engine import Write
    from anaphora.store.records.store import Records
    from anaphora.store.records.transaction import RecordTransaction

_KIND: Final = "contradiction"


@dataclass(frozen=True, slots=True)
class Contradictions:
    """The contradictions between the memories of one namespace."""

    records: Records
    clock: Callable[[], datetime]

    def list(self, *, settled: bool = False, limit: int = 50) -> tuple[Contradiction, ...]:
        """At most `limit` that are open, or that were settled, the last found or settled first."""
        contradictions: list[Contradiction] = []
        position = NO_LIMIT
        kinds = SETTLED if settled else (OPEN,)
        while len(contradictions) < limit and (links := self.records.links_of(kinds, position)):
            ends = {end for link, _ in links for end in (link.record_id, link.other_id)}
            records = self.records.many(ends)
            for link, _ in links:
                first_record, second_record = (
                    records.get(link.record_id),
                    records.get(link.other_id),
                )
                if (
                    first_record is None
                    or second_record is None
                    or first_record.forgotten
                    or second_record.forgotten
                ):
                    continue
                # If one of the two was replaced meanwhile there is nothing to settle.
                if settled or first_record.valid_to is second_record.valid_to is None:
                    contradictions.append(_make_contradiction(link, first_record, second_record))
            position = links[-1][1]
        return tuple(contradictions[:limit])

    def settle(self, record_id: str, other_id: str, verdict: Verdict) -> Contradiction:
        """Resolve a contradiction: the first replaces the other, both hold, or the first is wrong.

        `NotFound` unless they contradict each other and are both there, `InvalidInput` for another
        verdict, or where it is settled already.
        """
        if verdict not in SETTLED:
            raise InvalidInput("verdict", verdict, f"expected one of {', '.join(SETTLED)}")
        with self.records.change() as work:
            link, first_record, second_record = self._find_pair(work, record_id, other_id)
            if link.kind != OPEN:
                raise InvalidInput("id", record_id, f'it is settled as "{link.kind}": reopen it')
            if verdict != "both_hold":
                for record in (first_record, second_record):
                    if record.valid_to is not None:
                        reason = (
                            f"it was replaced by {record.superseded_by}: nothing is left to settle"
                        )
                        raise InvalidInput("id", record.id, reason)
            if verdict == "replaces":
                now = self.clock()
                # If the current one was said first, it is current again from now on.
                at = (
                    first_record.valid_from
                    if first_record.valid_from >= second_record.valid_from
                    else max(now, second_record.valid_from)
                )
                work.change(second_record.id, valid_to=at, superseded_by=first_record.id)
                if first_record.supersedes is None:
                    work.change(first_record.id, supersedes=second_record.id)
            elif verdict == "wrong":
                # It never held: no moment lies between its beginning and its end.
                work.change(
                    first_record.id,
                    valid_to=first_record.valid_from,
                    superseded_by=second_record.id,
                )
            work.turn(link, verdict)
            details = {"other": other_id, "verdict": verdict}
            work.tell(RecordEvent(record_id, "settled", self.clock(), details=details))
            return _reload(work, replace(link, kind=verdict))

    def reopen(self, record_id: str, other_id: str) -> Contradiction:
        """Undo a resolution: what it ended is current again, and the contradiction is open.

        `NotFound` unless the two exist and contradict each other, `InvalidInput` if it is not
        settled, or if the path of the ended one has another value by now.
        """
        with self.records.change() as work:
            link, first_record, second_record = self._find_pair(work, record_id, other_id)
            if link.kind == OPEN:
                raise InvalidInput("id", record_id, "it is not settled")
            for ended_record, by in ((first_record, second_record), (second_record, first_record)):
                if link.kind != "both_hold" and ended_record.superseded_by == by.id:
                    if ended_record.path is not None:
                        for version in work.versions(ended_record.path):
                            if version.id != ended_record.id and version.valid_to is None:
                                reason = f"its path has another value by now: {version.id}"
                                raise InvalidInput("id", ended_record.id, reason)
                    work.change(ended_record.id, valid_to=None, superseded_by=None)
                    if by.supersedes == ended_record.id:
                        work.change(by.id, supersedes=None)
            work.turn(link, OPEN)
            details = {"other": other_id, "verdict": link.kind}
            work.tell(RecordEvent(record_id, "reopened", self.clock(), details=details))
            return _reload(work, replace(link, kind=OPEN))

    def propose(
        self, write: Write, replacements: Mapping[tuple[str, str], float]
    ) -> tuple[Contradiction, ...]:
        """Open those that were found behind a write: (older, newer) memories, and their cosines.

        Returns the new ones: what is open already, was settled, or cannot be one, stays as it is.
        """
        from anaphora.store.records.transaction import RecordTransaction

        work = RecordTransaction(write, self.records.sealer)
        ids = {end for ends in replacements for end in ends}
        work.load(ids=ids)
        told_pairs = {
            frozenset((link.record_id, link.other_id)) for link in work.linked(ids, CONTRADICTION)
        }
        proposed = []
        for ends, closeness in replacements.items():
            older, newer = (find_linkable(work, record_id) for record_id in ends)
            if older is None or newer is None or frozenset(ends) in told_pairs:
                continue
            if can_contradict(older, newer):
                first_id, second_id = sorted(ends)
                link = RecordLink(first_id, second_id, OPEN, closeness)
                work.join([link])
                proposed.append(_make_contradiction(link, older, newer))
                event = RecordEvent(
                    older.id, "contradicted", self.clock(), details={"other": newer.id}
                )
                work.tell(event)
        work.finish()
        return tuple(proposed)

    def _find_pair(
        self, work: RecordTransaction, record_id: str, other_id: str
    ) -> tuple[RecordLink, MemoryRecord, MemoryRecord]:
        """The link of the two, and they themselves."""
        pair = []
        for memory_id in (record_id, other_id):
            record = work.find(memory_id)
            if record is None or record.forgotten:
                raise NotFound("memory", memory_id)
            pair.append(record)
        ends = {record_id, other_id}
        for link in work.linked([record_id], CONTRADICTION):
            if {link.record_id, link.other_id} == ends:
                return link, pair[0], pair[1]
        raise NotFound(_KIND, f"{record_id} and {other_id}")


def _reload(work: RecordTransaction, link: RecordLink) -> Contradiction:
    first_record, second_record = work.find(link.record_id), work.find(link.other_id)
    assert first_record is not None
    assert second_record is not None
    return _make_contradiction(link, first_record, second_record)


def _make_contradiction(
    link: RecordLink, first: MemoryRecord, second: MemoryRecord
) -> Contradiction:
    older, newer = sorted((first, second), key=lambda record: (record.created_at, record.id))
    return Contradiction(
        _make_related(older),
        _make_related(newer),
        link.strength,
        None if link.kind == OPEN else cast(Verdict, link.kind),
        tuple(memory.id for memory in (older, newer) if memory.valid_to is None),
    )


def _make_related(record: MemoryRecord) -> RelatedMemory:
    return RelatedMemory(record.id, record.text, record.created_at)
