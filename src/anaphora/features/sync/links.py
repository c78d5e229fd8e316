"""Contradictions between memories, settled or not, and the changes that devices exchange.

Links that say that two memories are close are not exchanged: they follow from vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from anaphora.features.sync.changes import Patch
from anaphora.features.sync.clock import Stamp
from anaphora.features.sync.codec import LINK_STATES
from anaphora.features.sync.device import SyncedDevice
from anaphora.features.sync.items import LINK, item_name, kind_and_key
from anaphora.store.records.rows import CONTRADICTION, MEMORY, RecordLink

_SEPARATOR: Final = " "
_STATE: Final = "state"
RowOf = Callable[[str], str | None]
"""The id of the row that contains the memory of this id, None if there is no such row."""


@dataclass(frozen=True, slots=True)
class LinkSync:
    """Links of one namespace on a device."""

    _device: SyncedDevice
    _row_of: RowOf

    kinds: ClassVar = (LINK,)

    def capture(self, since: int) -> Iterator[tuple[Patch, str]]:
        """The changes of links after the number `since`."""
        for link in self._device.services.memory.records.links_since(since, CONTRADICTION):
            item_id = item_name(LINK, _SEPARATOR.join((link.record_id, link.other_id)))
            state = self._device.store.states([item_id], applied=True)[item_id]
            current = LINK_STATES.write(link)
            if (state[_STATE].value if _STATE in state else None) != current:
                yield Patch(item_id, self._device.clock.next(), {_STATE: current}), ""

    def removals(self, since: int) -> Iterator[tuple[Patch, str]]:
        """None: a link goes with its memories."""
        return iter(())

    def apply(self, items: Iterable[str], captured: int) -> list[str]:
        """Bring links in line with all changes."""
        item_ids = list(items)
        if not item_ids:
            return []
        rows: dict[str, str | None] = {}
        changed_ends = {
            ends for item_id in item_ids if (ends := self._find_rows(item_id, rows)) is not None
        }
        latest: dict[tuple[str, str], tuple[Stamp, list[Any]]] = {}
        for item_id in self._device.store.names(LINK):
            ends = self._find_rows(item_id, rows)
            if ends in changed_ends and ends is not None:
                state = self._device.store.states([item_id])[item_id]
                if _STATE not in state:
                    continue
                candidate = (state[_STATE].stamp, state[_STATE].value)
                latest[ends] = max(latest.get(ends, candidate), candidate, key=lambda pair: pair[0])
        ids = {end for ends in latest for end in ends}
        with self._device.services.memory.records.change() as work:
            work.load(ids=ids)
            stored_links = {
                (link.record_id, link.other_id): link for link in work.linked(ids, CONTRADICTION)
            }
            for ends, (_, members) in latest.items():
                link = RecordLink(*ends, **LINK_STATES.read(members))
                if work.find(link.record_id) is None or work.find(link.other_id) is None:
                    continue
                if ends not in stored_links:
                    work.join([link])
                elif stored_links[ends].kind != link.kind:
                    work.turn(stored_links[ends], link.kind)
            work.flush()
            self._device.store.within(work.write).clean(item_ids)
        return []

    def neighbours(self, items: Collection[str]) -> list[str]:
        """The links that have one of these memories at an end."""
        changed_ids = {key for kind, key in map(kind_and_key, items) if kind == MEMORY}
        names = self._device.store.names(LINK) if changed_ids else []
        return [item_id for item_id in names if changed_ids & set(_split_ends(item_id))]

    def _find_rows(self, item_id: str, rows: dict[str, str | None]) -> tuple[str, str] | None:
        """The rows that a link connects; `rows` caches the ids that were looked up before."""
        for end in _split_ends(item_id):
            if end not in rows:
                rows[end] = self._row_of(end)
        first_id, second_id = (rows[end] for end in _split_ends(item_id))
        if first_id is None or second_id is None or first_id == second_id:
            return None
        return (first_id, second_id) if first_id < second_id else (second_id, first_id)


def _split_ends(item_id: str) -> tuple[str, str]:
    first_id, second_id = kind_and_key(item_id)[1].split(_SEPARATOR)
    return first_id, second_id
