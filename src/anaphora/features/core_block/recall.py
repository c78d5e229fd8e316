"""The core block: what every session is told, put together without a model.

First what is pinned, in the order of the pins, then rules, then preferences, as `standing` tells
them by labels and words. A memory that another one replaced gives way to it, and so does its pin;
what was taken out of the block stays out, whatever its kind. Of two that openly contradict each
other each says what stands against it. What belongs to another project than a session's does not
open it, unless it is pinned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from anaphora.features.core_block.pins import standing_pins
from anaphora.rank.budget import token_cost
from anaphora.recall.opposed import find_opposing, render_opposing
from anaphora.recall.packing import TokenBudget, check_budget, rendered_left_out, rendered_memory
from anaphora.recall.session.standing import (
    LATELY,
    LOOKED_AT,
    TEXT,
    held_memories,
    kind_of,
    weightiest,
)
from anaphora.store.records.rows import IN_CORE, RULE
from anaphora.text.display import cut
from anaphora.text.shown_times import shown_day
from anaphora.values.context import ContextMemory
from anaphora.values.memories import CoreBlock, CoreEntry, MemoryRecord, RelatedMemory

if TYPE_CHECKING:
    from anaphora.store.records.store import Records

CORE_HEADER: Final = (
    'What memory holds for every session. Lines that begin with "|" are what was remembered.'
)
WHOLE: Final = "the core block"
_BY_KIND: Final = ("constraint", "preference")


@dataclass(frozen=True, slots=True)
class CoreBlockRecall:
    """Puts the core block of one namespace together. `tokens` is its budget, if none is given."""

    records: Records
    clock: Callable[[], datetime]
    tokens: int

    def block(self, budget: int | None = None) -> CoreBlock:
        """As much of it as `budget` tokens hold. `InvalidInput` for a budget that is too small."""
        budget = self.tokens if budget is None else budget
        check_budget(budget)
        now = self.clock()
        entries = core_entries(self.records, held_memories(self.records, now), now)
        remaining = TokenBudget(budget)
        remaining.pay(CORE_HEADER)
        if not all(remaining.pay(rendered_entry(core_entry)) for core_entry in entries):
            remaining = TokenBudget(budget)
            remaining.pay(CORE_HEADER)
            remaining.pay(rendered_left_out(len(entries), WHOLE))
            fitting = remaining.take(entries, rendered_entry, "", len(entries))
        else:
            fitting = entries
        fitting_ids = {core_entry.id for core_entry in fitting}
        left_out = [core_entry for core_entry in entries if core_entry.id not in fitting_ids]
        block = CoreBlock(_add_tokens(fitting), _add_tokens(left_out), 0, budget)
        return replace(block, tokens=token_cost(render_core(block)))


def render_core(block: CoreBlock) -> str:
    """The block as text for an agent; "" where there is nothing in it."""
    lines = [rendered_entry(core_entry) for core_entry in block.entries]
    if block.left_out:
        lines.append(rendered_left_out(len(block.left_out), WHOLE))
    return "\n".join([CORE_HEADER, *lines]) if lines else ""


def rendered_entry(entry: CoreEntry) -> str:
    """An entry's head, and its words."""
    return rendered_memory(as_context(entry))


def as_context(entry: CoreEntry) -> ContextMemory:
    """The entry as the parts of a warm-up have it, with what it replaced lately."""
    previous_version, was = entry.previous, ""
    if previous_version is not None:
        was = f"\n(until {shown_day(entry.since)}: {cut(previous_version.text, TEXT)})"
    was += render_opposing(entry.contradicts, entry.since)
    return ContextMemory(
        id=entry.id,
        kind="memory" if entry.kind == "fact" else entry.kind,
        title=entry.path or "",
        text=entry.text + was,
        score=0.0,
        created_at=entry.since,
    )


def core_entries(
    records: Records,
    current: Sequence[MemoryRecord],
    now: datetime,
    is_foreign: Callable[[MemoryRecord], bool] = lambda _: False,
) -> list[CoreEntry]:
    """All that belongs into the block, in order. `current` are among what comes by its kind.

    What `is_foreign` comes only where it is pinned.
    """
    pin_by_id = standing_pins(records.marked(IN_CORE), records.find, records.current)
    pins = sorted(
        (pin, record.id)
        for record, pin in pin_by_id.values()
        if pin > 0 and not _has_expired(record, now)
    )
    rules = [memory for memory in records.marked(RULE, LOOKED_AT) if not _has_expired(memory, now)]
    candidates = {
        memory.id: memory
        for memory in (*current, *rules)
        if memory.id not in pin_by_id and not is_foreign(memory)
    }
    by_kind: dict[str, list[MemoryRecord]] = {kind: [] for kind in _BY_KIND}
    for record in weightiest(candidates.values()):
        by_kind.get(kind_of(record), []).append(record)
    core_records = [pin_by_id[record_id][0] for _, record_id in pins]
    core_records += [record for kind in _BY_KIND for record in by_kind[kind]]
    against = find_opposing(
        records, core_records, lambda memory: _has_expired(memory, now) or is_foreign(memory)
    )
    previous_by_id = records.many(replaced_lately(core_records, now))
    entries = []
    for at, record in enumerate(core_records, 1):
        old = previous_by_id.get(record.supersedes or "")
        entries.append(
            CoreEntry(
                id=record.id,
                text=cut(record.text, TEXT),
                kind=kind_of(record),
                position=at if at <= len(pins) else None,
                since=record.valid_from,
                path=record.path,
                sources=record.sources,
                conversation_id=record.conversation_id,
                turn_index=record.turn_index,
                previous=None
                if old is None or old.forgotten
                else RelatedMemory(old.id, cut(old.text, TEXT), old.created_at),
                contradicts=tuple(against.get(record.id, ())),
            )
        )
    return entries


def replaced_lately(held: Iterable[MemoryRecord], now: datetime) -> Iterator[str]:
    """The ids of what these have replaced in the last two weeks."""
    for record in held:
        if record.supersedes and now - record.valid_from <= LATELY:
            yield record.supersedes


def _add_tokens(entries: Iterable[CoreEntry]) -> tuple[CoreEntry, ...]:
    return tuple(
        replace(core_entry, tokens=token_cost(rendered_entry(core_entry))) for core_entry in entries
    )


def _has_expired(record: MemoryRecord, now: datetime) -> bool:
    return record.expires_at is not None and record.expires_at <= now
