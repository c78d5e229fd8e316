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
    found: dict[str, Pin] = {}
    # Of two that became one the later counts.
    for record in sorted(records, key=lambda one: (one.valid_from, one.id)):
        stands = _standing(record, find, current)
        if stands is not None and record.pin is not None:
            found[stands.id] = (stands, record.pin if stands.pin is None else stands.pin)
    return found


def pin(work: RecordTransaction, record_id: str, position: int | None, now: datetime) -> str:
    """Pin what stands where this memory stood at a position among the pinned, from 1.

    Without a position at their end, or where it is. Returns its id; `NotFound` if nothing stands.
    """
    target = _target(work, record_id)
    places = _pinned(work)
    order = sorted(places, key=lambda one: (places[one], one))
    if target.id in order:
        if position is None:
            return target.id
        order.remove(target.id)
    at = len(order) if position is None else min(position - 1, len(order))
    place = _between(
        places[order[at - 1]] if at else KEPT_OUT,
        places[order[at]] if at < len(order) else None,
    )
    if place is None:
        order.insert(at, target.id)
        for number, one in enumerate(order, 1):
            change_in_place(work, one, {"pin": float(number)}, now)
    else:
        change_in_place(work, target.id, {"pin": place}, now)
    return target.id


def unpin(work: RecordTransaction, record_id: str, now: datetime) -> str:
    """Keep what stands where this memory stood out of the block, whatever its kind; its id."""
    target = _target(work, record_id)
    change_in_place(work, target.id, {"pin": KEPT_OUT}, now)
    return target.id


def _target(work: RecordTransaction, record_id: str) -> MemoryRecord:
    record = work.find(record_id)
    stands = None if record is None else _standing(record, work.find, _current_in(work))
    if stands is None:
        raise NotFound("memory", record_id)
    return stands


def _pinned(work: RecordTransaction) -> dict[str, float]:
    said = standing_pins(work.marked(IN_CORE), work.find, _current_in(work))
    return {record_id: place for record_id, (_, place) in said.items() if place > KEPT_OUT}


def _current_in(work: RecordTransaction) -> Find:
    def current(path: str) -> MemoryRecord | None:
        living: Sequence[MemoryRecord] = work.versions(path)
        return next((one for one in reversed(living) if one.valid_to is None), None)

    return current


def _standing(record: MemoryRecord, find: Find, current: Find) -> MemoryRecord | None:
    """The memory that stands where `record` stood; None where nothing does."""
    seen: set[str] = set()
    while record.valid_to is not None:
        seen.add(record.id)
        later = None if record.superseded_by is None else find(record.superseded_by)
        if later is None or later.id in seen:
            return None
        # A path may have had thousands of values since.
        at_path = None if later.path is None else current(later.path)
        record = at_path or later
    return None if record.forgotten else record


def _between(low: float, high: float | None) -> float | None:
    """A number between two; None where none is left."""
    if high is None:
        return low + 1.0
    middle = (low + high) / 2
    return middle if low < middle < high else None
