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
    taken = _with_what_follows(work, record_ids)
    gone = describe_forgotten(work, taken)
    for record in taken.values():
        _join_around(work, record, taken)
    work.erase(taken)
    return gone


def forget_softly(
    work: RecordTransaction, record_ids: Iterable[str], now: datetime
) -> ForgottenRecords:
    """Mark these memories and what goes with them; those marked already do not count again."""
    taken = _with_what_follows(work, record_ids)
    fresh = {one: record for one, record in taken.items() if not record.forgotten}
    gone = describe_forgotten(work, fresh)
    for one in fresh:
        work.hide(one, now)
        work.tell(RecordEvent(one, "forgotten", now))
    return gone


def would_forget(work: RecordTransaction, record_ids: Iterable[str]) -> ForgottenRecords:
    """What forgetting these memories would take, without doing it."""
    return describe_forgotten(work, _with_what_follows(work, record_ids))


def bring_back(
    work: RecordTransaction, record_ids: Iterable[str], now: datetime
) -> tuple[str, ...]:
    """Let memories that are softly forgotten be there again; the ids of those that were."""
    back = []
    wanted = list(dict.fromkeys(record_ids))
    work.load(ids=wanted)
    for one in wanted:
        record = work.find(one)
        if record is not None and record.forgotten:
            work.reveal(one)
            work.tell(RecordEvent(one, "restored", now))
            back.append(one)
    return tuple(back)


def _with_what_follows(
    work: RecordTransaction, record_ids: Iterable[str]
) -> dict[str, MemoryRecord]:
    """The records, their histories where they stand, and what was derived from any of them."""
    waiting = list(dict.fromkeys(record_ids))
    work.load(ids=waiting)
    taken: dict[str, MemoryRecord] = {}
    while waiting:
        fresh: dict[str, MemoryRecord] = {}
        for one in waiting:
            record = work.find(one)
            if record is not None and one not in taken:
                fresh[one] = record
        taken |= fresh
        stands = [one for one, record in fresh.items() if record.valid_to is None]
        waiting = [*_history(work, stands), *sorted(work.children(fresh))]
    return taken


def _history(work: RecordTransaction, record_ids: Iterable[str]) -> list[str]:
    """Every version that one of these has superseded, and those before it."""
    found: dict[str, None] = {}
    waiting = list(record_ids)
    while waiting:
        record_id = waiting.pop()
        for other in work.neighbours(record_id):
            if other.superseded_by == record_id and other.id not in found:
                found[other.id] = None
                waiting.append(other.id)
    return list(found)


def _join_around(
    work: RecordTransaction, gone: MemoryRecord, taken: dict[str, MemoryRecord]
) -> None:
    """Let what stays on either side of `gone` point over it."""
    later, earlier = gone.superseded_by, gone.supersedes
    while later in taken:
        later = taken[later].superseded_by
    while earlier in taken:
        earlier = taken[earlier].supersedes
    for other in work.neighbours(gone.id):
        if other.id in taken:
            continue
        if other.superseded_by == gone.id:
            work.change(other.id, superseded_by=later)
        if other.supersedes == gone.id:
            work.change(other.id, supersedes=earlier)
            if other.pin is None and gone.pin is not None:
                work.change(other.id, pin=gone.pin)


def describe_forgotten(
    work: RecordTransaction, taken: Mapping[str, MemoryRecord]
) -> ForgottenRecords:
    """What goes with these records, by their ids: words, payloads, turns that said them."""
    texts: dict[str, None] = {}
    payloads: dict[str, None] = {}
    turns: dict[tuple[str, int], None] = {}
    for record in taken.values():
        texts[record.text] = None
        if record.payload is not None:
            payloads[json.dumps(record.payload, ensure_ascii=False)] = None
        for event in work.events(record.id):
            if event.text is not None:
                texts[event.text] = None
            if event.conversation_id is not None and event.turn_index is not None:
                turns[event.conversation_id, event.turn_index] = None
    return ForgottenRecords(tuple(taken), tuple(texts), tuple(turns), tuple(payloads))
