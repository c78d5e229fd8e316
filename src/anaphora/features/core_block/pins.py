"""Pins: which memories stand in the core block, and in which order.

A pin is a number in the memory itself, so that it goes wherever the memory goes. A new value of a
path takes over its pin as it is put; where a memory was replaced in another way (by a verdict, by
another device), the pin is followed from the old one to what stands in its place now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from anaphora.errors import NotFound
from anaphora.store.records.rows import IN_CORE
from anaphora.store.records.rules import change_in_place
from anaphora.store.records.transaction import RecordTransaction
from anaphora.values.memories import MemoryRecord

KEPT_OUT = 0.0
"""The pin of what stays out of the core block."""

Find = Callable[[str], MemoryRecord | None]
Pin = tuple[MemoryRecord, float]


def standing_pins(records: Iterable[MemoryRecord], find: Find, current: Find) -> dict[str, Pin]:
    """What stands now where these pinned memories stood, by id, each with its pin.

    `find` gives a memory by its id, `current` the present value of a path.
    """
    pins: dict[str, Pin] = {}
    # Of two that became one the later counts.
    for record in sorted(records, key=lambda record_key: (record_key.valid_from, record_key.id)):
        stands = _follow(record, find, current)
        if stands is not None and record.pin is not None:
            pins[stands.id] = (stands, record.pin if stands.pin is None else stands.pin)
    return pins


def pin(work: RecordTransaction, record_id: str, position: int | None, now: datetime) -> str:
    """Pin what stands where this memory stood at a position among the pinned, from 1.

    Without a position at their end, or where it is. Returns its id; `NotFound` if nothing stands.
    """
    target = _find_standing(work, record_id)
    pins = standing_pins(work.marked(IN_CORE), work.find, _current_in(work))
    positions = {pinned_id: number for pinned_id, (_, number) in pins.items() if number > KEPT_OUT}
    order = sorted(positions, key=lambda pinned_id: (positions[pinned_id], pinned_id))
    if target.id in order:
        if position is None:
            return target.id
        order.remove(target.id)
    at = len(order) if position is None else min(position - 1, len(order))
    low = positions[order[at - 1]] if at else KEPT_OUT
    high = positions[order[at]] if at < len(order) else None
    number = low + 1.0 if high is None else (low + high) / 2
    if high is not None and not low < number < high:
        # No number is left between the two.
        order.insert(at, target.id)
        for rank, pinned_id in enumerate(order, 1):
            change_in_place(work, pinned_id, {"pin": float(rank)}, now)
    else:
        change_in_place(work, target.id, {"pin": number}, now)
    return target.id


def unpin(work: RecordTransaction, record_id: str, now: datetime) -> str:
    """Keep what stands where this memory stood out of the block, of any kind; its id."""
    target = _find_standing(work, record_id)
    change_in_place(work, target.id, {"pin": KEPT_OUT}, now)
    return target.id


def _find_standing(work: RecordTransaction, record_id: str) -> MemoryRecord:
    record = work.find(record_id)
    stands = None if record is None else _follow(record, work.find, _current_in(work))
    if stands is None:
        raise NotFound("memory", record_id)
    return stands


def _current_in(work: RecordTransaction) -> Find:
    def current(path: str) -> MemoryRecord | None:
        living: Sequence[MemoryRecord] = work.versions(path)
        return next((version for version in reversed(living) if version.valid_to is None), None)

    return current


def _follow(record: MemoryRecord, find: Find, current: Find) -> MemoryRecord | None:
    """The memory that stands where `record` stood; None where nothing does."""
    seen_ids: set[str] = set()
    while record.valid_to is not None:
        seen_ids.add(record.id)
        later = None if record.superseded_by is None else find(record.superseded_by)
        if later is None or later.id in seen_ids:
            return None
        # A path may have had thousands of values since.
        at_path = None if later.path is None else current(later.path)
        record = at_path or later
    return None if record.forgotten else record
