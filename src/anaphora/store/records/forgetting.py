"""What forgetting takes with it, and what it leaves: the rules, on one `RecordTransaction`.

- A memory that stands is forgotten with its whole history: the versions that it superseded.
- A past version is forgotten alone, and its neighbours are joined.
- What was derived from a forgotten memory (`parent`) goes with it.
- Hard: rows, events, links and vectors are deleted; a tombstone keeps id and number.
- Soft: the records are marked; they leave recall, and history keeps them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from anaphora.store.records.rows import RecordEvent
from anaphora.store.records.transaction import RecordTransaction
from anaphora.values.memories import MemoryRecord


@dataclass(frozen=True, slots=True)
class ForgottenRecords:
    """What was forgotten: ids, words and payloads (each once), and the turns they came from."""

    ids: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    turns: tuple[tuple[str, int], ...] = ()
    payloads: tuple[str, ...] = ()

    def and_more(self, more: ForgottenRecords) -> ForgottenRecords:
        """The same with what went along."""
        return ForgottenRecords(
            self.ids + more.ids,
            self.texts + more.texts,
            self.turns + more.turns,
            self.payloads + more.payloads,
        )


def forget_for_good(work: RecordTransaction, record_ids: Iterable[str]) -> ForgottenRecords:
    """Delete these memories and what goes with them."""
    records = _collect(work, record_ids)
    descriptions = describe_forgotten(work, records)
    for record in records.values():
        # What stays on either side points over it.
        later, earlier = record.superseded_by, record.supersedes
        while later in records:
            later = records[later].superseded_by
        while earlier in records:
            earlier = records[earlier].supersedes
        for neighbour in work.neighbours(record.id):
            if neighbour.id in records:
                continue
            if neighbour.superseded_by == record.id:
                work.change(neighbour.id, superseded_by=later)
            if neighbour.supersedes == record.id:
                work.change(neighbour.id, supersedes=earlier)
                if neighbour.pin is None and record.pin is not None:
                    work.change(neighbour.id, pin=record.pin)
    work.erase(records)
    return descriptions


def forget_softly(
    work: RecordTransaction, record_ids: Iterable[str], now: datetime
) -> ForgottenRecords:
    """Mark these memories and what goes with them; those marked already do not count again."""
    records = _collect(work, record_ids)
    live_records = {
        record_id: record for record_id, record in records.items() if not record.forgotten
    }
    descriptions = describe_forgotten(work, live_records)
    for record_id in live_records:
        work.hide(record_id, now)
        work.tell(RecordEvent(record_id, "forgotten", now))
    return descriptions


def would_forget(work: RecordTransaction, record_ids: Iterable[str]) -> ForgottenRecords:
    """What forgetting these memories would take, without doing it."""
    return describe_forgotten(work, _collect(work, record_ids))


def bring_back(
    work: RecordTransaction, record_ids: Iterable[str], now: datetime
) -> tuple[str, ...]:
    """Let memories that are softly forgotten be there again; the ids of those that were."""
    restored_ids = []
    ids = list(dict.fromkeys(record_ids))
    work.load(ids=ids)
    for record_id in ids:
        record = work.find(record_id)
        if record is not None and record.forgotten:
            work.reveal(record_id)
            work.tell(RecordEvent(record_id, "restored", now))
            restored_ids.append(record_id)
    return tuple(restored_ids)


def _collect(work: RecordTransaction, record_ids: Iterable[str]) -> dict[str, MemoryRecord]:
    """The records, their histories where they stand, and what was derived from any of them."""
    waiting = list(dict.fromkeys(record_ids))
    work.load(ids=waiting)
    records: dict[str, MemoryRecord] = {}
    while waiting:
        collected_records: dict[str, MemoryRecord] = {}
        for record_id in waiting:
            record = work.find(record_id)
            if record is not None and record_id not in records:
                collected_records[record_id] = record
        records |= collected_records
        stands = [
            record_id for record_id, record in collected_records.items() if record.valid_to is None
        ]
        waiting = [*_superseded_by_any(work, stands), *sorted(work.children(collected_records))]
    return records


def _superseded_by_any(work: RecordTransaction, record_ids: Iterable[str]) -> list[str]:
    """Every version that one of these has superseded, and those before it."""
    versions: dict[str, None] = {}
    waiting = list(record_ids)
    while waiting:
        record_id = waiting.pop()
        for neighbour in work.neighbours(record_id):
            if neighbour.superseded_by == record_id and neighbour.id not in versions:
                versions[neighbour.id] = None
                waiting.append(neighbour.id)
    return list(versions)


def describe_forgotten(
    work: RecordTransaction, records: Mapping[str, MemoryRecord]
) -> ForgottenRecords:
    """What goes with these records, by their ids: words, payloads, turns that said them."""
    texts: dict[str, None] = {}
    payloads: dict[str, None] = {}
    turns: dict[tuple[str, int], None] = {}
    for record in records.values():
        texts[record.text] = None
        if record.payload is not None:
            payloads[json.dumps(record.payload, ensure_ascii=False)] = None
        for event in work.events(record.id):
            if event.text is not None:
                texts[event.text] = None
            if event.conversation_id is not None and event.turn_index is not None:
                turns[event.conversation_id, event.turn_index] = None
    return ForgottenRecords(tuple(records), tuple(texts), tuple(turns), tuple(payloads))
