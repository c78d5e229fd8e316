"""How memories go: by id or by filter, softly or for good, with an honest count.

In: an id or filters. Out: `Forgotten`, which names what still holds the words. What goes with a
memory is told by `anaphora.store.records.forgetting`. After forgetting for good nothing of it is
left in the files of a SQLite database; a log that another process keeps from being cut is named.
It never touches a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from anaphora.errors import InvalidInput
from anaphora.store.filters import Filter, parse
from anaphora.store.records.rows import as_mapping
from anaphora.values.memories import Forgotten, MemoryRecord, SurvivingSource

if TYPE_CHECKING:
    from anaphora.store.records.forgetting import Gone
    from anaphora.store.records.store import Records
    from anaphora.store.records.transaction import RecordTransaction

Survivors = Callable[[Sequence[str]], Iterable[SurvivingSource]]
"""What in this namespace still holds these words, or what tells who they were about."""
HasTurn = Callable[[str, int], bool]
"""Whether a conversation still has its turn at an index."""

Derived = Callable[["RecordTransaction", Sequence[str]], Iterable[str]]
"""The memories that were taken from these, in the change under way: they go too."""
OnGone = Callable[["RecordTransaction", "Gone", bool], None]
"""Told in the change under way what is gone, and whether softly."""

_PAGE = 512
_NAMED = 100


class Forget:
    """Forgets in one namespace."""

    def __init__(
        self,
        records: Records,
        *,
        clock: Callable[[], datetime],
        survivors: Survivors,
        has_turn: HasTurn,
        derived: Derived | None = None,
        on_gone: OnGone | None = None,
    ) -> None:
        self._records = records
        self._clock = clock
        self._survivors = survivors
        self._has_turn = has_turn
        self._derived = derived
        self._on_gone = on_gone

    def forget(
        self,
        record_id: str | None = None,
        *,
        filters: Mapping[str, Any] | None = None,
        soft: bool = False,
    ) -> Forgotten:
        """Forget one memory, or all that `filters` let through, in history too.

        An id that is not there forgets nothing. Raises InvalidInput unless exactly one of the two
        is given and the filters say something, FilterError for a bad one, StoreError and its kinds
        when truth cannot be written.
        """
        from anaphora.store.records.forgetting import forget_softly

        keep = _one_of(record_id, filters)
        wanted = [record_id] if record_id is not None else self._matching(keep)
        with self._records.change() as work:
            # What a filter found may have changed since.
            still = [one for one in wanted if (found := work.find(one)) and _matches(keep, found)]
            if soft:
                gone = forget_softly(work, still, self._clock())
            else:
                gone = self._for_good(work, still)
            if self._on_gone is not None:
                # In the same transaction: nothing may die between the two.
                self._on_gone(work, gone, soft)
        return named(gone, () if soft else self._surviving(gone))

    def _for_good(self, work: RecordTransaction, wanted: list[str]) -> Gone:
        from anaphora.store.records.forgetting import forget_for_good

        gone = forget_for_good(work, wanted)
        more = [] if self._derived is None else list(self._derived(work, gone.ids))
        if not more:
            return gone
        return gone.and_more(forget_for_good(work, more))

    def _matching(self, keep: Filter) -> list[str]:
        found: list[str] = []
        cursor: str | None = None
        while True:
            page = self._records.list(keep, limit=_PAGE, cursor=cursor, history=True)
            found += [record.id for record in page]
            cursor = page.cursor
            if cursor is None:
                return found

    def _surviving(self, gone: Gone) -> Iterator[SurvivingSource]:
        if not gone.ids:
            return
        from anaphora.store.db.scrub import log_of, scrub

        if not scrub(self._records.truth):
            yield SurvivingSource("log", str(log_of(self._records.truth)))
        for text in gone.texts:
            for record_id in self._records.with_text(text):
                yield SurvivingSource("memory", record_id)
        for conversation_id, index in gone.turns:
            if self._has_turn(conversation_id, index):
                yield SurvivingSource("turn", conversation_id, index)
        yield from self._survivors((*gone.texts, *gone.payloads))


def named(gone: Gone, surviving: Iterable[SurvivingSource]) -> Forgotten:
    """What was done: the first of what survives by name, the rest as a number."""
    found = tuple(dict.fromkeys(surviving))
    return Forgotten(len(gone.ids), found[:_NAMED], gone.ids, max(0, len(found) - _NAMED))


def _one_of(record_id: str | None, filters: Mapping[str, Any] | None) -> Filter:
    if record_id is not None:
        if filters is not None:
            raise InvalidInput("filters", filters, "expected an id or filters, not both")
        return Filter()
    if not filters:
        raise InvalidInput("filters", filters, "expected an id, or filters that say what to forget")
    return parse(filters)


def _matches(keep: Filter, record: MemoryRecord) -> bool:
    return keep.matches(as_mapping(record))
