"""Contradictions between memories, settled or not, and the changes that devices exchange.

Links that say that two memories are close are not exchanged: they follow from vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from anaphora.store.db.tables import LINK
from anaphora.store.namespace import NamespaceReader
from anaphora.store.records.rows import CONTRADICTION, LINK_MAPPING, RecordLink
from anaphora.sync.changes import Patch
from anaphora.sync.clock import Stamp
from anaphora.sync.device import SyncedDevice
from anaphora.sync.items import LINK as LINK_ITEM
from anaphora.sync.items import item_name, kind_and_key

_SEPARATOR: Final = " "
_STATE: Final = "state"
RowOf = Callable[[str], str | None]
"""The id of the row that a memory of this id is a part of, None where there is none."""


class _Links(NamespaceReader):
    """The links of one namespace."""

    def changed_since(self, seq: int) -> list[RecordLink]:
        """Those that were written after a number."""
        found = self._found(LINK, LINK.select() + "AND seq > :seq", seq=seq)
        return [link for link in map(LINK_MAPPING.value, found) if link.kind in CONTRADICTION]


@dataclass(frozen=True, slots=True)
class LinkSync:
    """Links of one namespace on a device."""

    _device: SyncedDevice
    _row_of: RowOf

    def capture(self, since: int) -> Iterator[Patch]:
        """What changed in links after the number `since`."""
        services = self._device.services
        links = _Links(services.truth, services.namespace, services.sealing.rows)
        for link in links.changed_since(since):
            item = _item(link)
            state = self._device.store.states([item], applied=True)[item]
            told = [link.kind, link.strength]
            if (state[_STATE].value if _STATE in state else None) != told:
                yield Patch(item, self._device.clock.next(), {_STATE: told})

    def apply(self, items: Iterable[str]) -> None:
        """Bring links in line with all changes."""
        some = list(items)
        if not some:
            return
        rows: dict[str, str | None] = {}
        wanted = {ends for item in some if (ends := self._ends(item, rows)) is not None}
        latest: dict[tuple[str, str], tuple[Stamp, list[object]]] = {}
        for item in self._device.store.names(LINK_ITEM):
            ends = self._ends(item, rows)
            if ends in wanted and ends is not None:
                state = self._device.store.states([item])[item]
                if _STATE not in state:
                    continue
                told = (state[_STATE].stamp, state[_STATE].value)
                latest[ends] = max(latest.get(ends, told), told, key=lambda one: one[0])
        ids = {end for one, other in latest for end in (one, other)}
        with self._device.services.records.change() as work:
            work.load(ids=ids)
            here = {_key(link): link for link in work.linked(ids, CONTRADICTION)}
            for ends, (_, (kind, strength)) in latest.items():
                link = RecordLink(ends[0], ends[1], str(kind), float(str(strength)))
                if work.find(link.record_id) is None or work.find(link.other_id) is None:
                    continue
                if ends not in here:
                    work.join([link])
                elif here[ends].kind != link.kind:
                    work.turn(here[ends], link.kind)
            work.flush()
            self._device.store.within(work.write).clean(some)

    def around(self, ids: Iterable[str]) -> list[str]:
        """The links that have one of these ids at an end."""
        wanted = set(ids)
        names = self._device.store.names(LINK_ITEM) if wanted else []
        return [item for item in names if wanted & set(_parts(item))]

    def _ends(self, item: str, rows: dict[str, str | None]) -> tuple[str, str] | None:
        """The rows that a link is between; `rows` are those that were looked up already."""
        for end in _parts(item):
            if end not in rows:
                rows[end] = self._row_of(end)
        one, other = (rows[end] for end in _parts(item))
        if one is None or other is None or one == other:
            return None
        return (one, other) if one < other else (other, one)


def _item(link: RecordLink) -> str:
    return item_name(LINK_ITEM, _SEPARATOR.join((link.record_id, link.other_id)))


def _parts(item: str) -> tuple[str, str]:
    one, other = kind_and_key(item)[1].split(_SEPARATOR)
    return one, other


def _key(link: RecordLink) -> tuple[str, str]:
    return link.record_id, link.other_id
