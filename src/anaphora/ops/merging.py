"""How memories of an export meet those that are there: the rules, on one change of truth.

In: memories with their events, as another home or an older moment had them. Out: what became of
each. Importing twice changes nothing the second time, and the order of two imports hardly matters.

- An id that is unknown is added as it is, with its id, times and events.
- An id that is here with the same words, path and payload is the same memory at another moment:
  events are united, counts follow from them, times widen, an end or a soft forgetting stays.
- An id that is here with another value: both are kept, the imported one under an id that is made
  from its content.
- An unknown id with the value of a present memory is a restatement of it: its events join.
- Two values of one path end up in one line, by the time from which they hold.
- What was forgotten here for good stays away; asked for again, it comes under a new id.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise
from typing import Any, Literal

from anaphora.store.records.rows import STANDS_ALONE, RecordEvent, same_key_of
from anaphora.store.records.transaction import RecordTransaction
from anaphora.values.memories import MemoryRecord

Became = Literal["added", "changed", "known", "forgotten"]
_SAID = ("added", "restated", "linked")


@dataclass(frozen=True, slots=True)
class Incoming:
    """A memory of an export. `stands_alone`: nothing restates it, as adapters ask for."""

    record: MemoryRecord
    events: tuple[RecordEvent, ...]
    stands_alone: bool = False

    @property
    def same_key(self) -> str:
        """Its identity."""
        return STANDS_ALONE if self.stands_alone else same_key_of(self.record)

    @property
    def last(self) -> datetime:
        """When it was last touched."""
        return max((event.at for event in self.events), default=self.record.last_reinforced)


@dataclass(slots=True)
class Merger:
    """Brings memories into one namespace. `gone` are the ids that were deleted here for good.

    `ids` tells under which id a memory of the export is here, where that is another one.
    """

    gone: frozenset[str]
    again: bool = False
    ids: dict[str, str] = field(default_factory=dict)

    def take(self, work: RecordTransaction, items: Sequence[Incoming]) -> list[Became]:
        """Bring in several memories in one change."""
        work.load(
            ids=[item.record.id for item in items],
            same_keys=[item.same_key for item in items if item.same_key],
            paths=[item.record.path for item in items if item.record.path is not None],
        )
        became = [self._one(work, item) for item in items]
        for path in {item.record.path for item in items if item.record.path is not None}:
            _line_up(work, path)
        return became

    def id_of(self, record_id: str | None) -> str | None:
        """The id here of a memory of the export."""
        return record_id if record_id is None else self.ids.get(record_id, record_id)

    def _one(self, work: RecordTransaction, item: Incoming) -> Became:
        record_id = item.record.id
        if record_id in self.gone:
            if not self.again:
                return "forgotten"
            return self._under_another_id(work, item)
        here = work.find(record_id)
        if here is None:
            return self._new(work, item)
        if _value(here) == _value(item.record):
            return _unite(work, here, item)
        return self._under_another_id(work, item)

    def _new(self, work: RecordTransaction, item: Incoming) -> Became:
        record = item.record
        if item.same_key and record.valid_to is None and not record.forgotten:
            standing = [one for one in work.having(item.same_key) if one.valid_to is None]
            if standing:
                self.ids[record.id] = standing[-1].id
                return _unite(work, standing[-1], item)
        self._add(work, item)
        return "added"

    def _under_another_id(self, work: RecordTransaction, item: Incoming) -> Became:
        derived = _derived_id(item)
        self.ids[item.record.id] = derived
        if derived in self.gone:
            return "forgotten"
        events = tuple(replace(event, record_id=derived) for event in item.events)
        moved = replace(item, record=replace(item.record, id=derived), events=events)
        here = work.find(derived)
        if here is not None:
            return _unite(work, here, moved)
        return self._new(work, moved)

    def _add(self, work: RecordTransaction, item: Incoming) -> None:
        record = replace(
            item.record,
            parent=self.id_of(item.record.parent),
            supersedes=self.id_of(item.record.supersedes),
            superseded_by=self.id_of(item.record.superseded_by),
            forgotten=False,
        )
        work.add(record, item.same_key)
        for event in item.events:
            work.tell(event)
        if item.record.forgotten:
            work.hide(record.id, item.last)


def _value(record: MemoryRecord) -> str:
    # Type, tags, category and expiry change in place: they are not what a memory says.
    return same_key_of(replace(record, type="semantic"))


def _unite(work: RecordTransaction, here: MemoryRecord, item: Incoming) -> Became:
    """One memory at two moments, or said in two homes."""
    there = item.record
    own = work.events(here.id)
    known = {_event_key(event) for event in own}
    fresh = [event for event in item.events if _event_key(event) not in known]
    wanted = {
        "created_at": min(here.created_at, there.created_at),
        "last_reinforced": max(here.last_reinforced, there.last_reinforced),
        "valid_from": min(here.valid_from, there.valid_from),
    } | _gained(here, there, own, fresh)
    if here.valid_to is None and there.valid_to is not None and here.id == there.id:
        wanted |= {"valid_to": there.valid_to, "superseded_by": there.superseded_by}
    changes = {name: value for name, value in wanted.items() if getattr(here, name) != value}
    if "type" in changes and work.same_key(here.id) != STANDS_ALONE:
        changes["same_key"] = same_key_of(replace(here, type=there.type))
    if changes:
        work.change(here.id, **changes)
    for event in fresh:
        kind = "restated" if event.kind == "added" else event.kind
        work.tell(replace(event, record_id=here.id, kind=kind))
    if there.forgotten and not here.forgotten:
        work.hide(here.id, item.last)
        return "changed"
    return "changed" if changes or fresh else "known"


def _gained(
    here: MemoryRecord,
    there: MemoryRecord,
    own: Sequence[RecordEvent],
    fresh: Sequence[RecordEvent],
) -> dict[str, Any]:
    """What events that are new here bring: occurrences join; a later change in place wins."""
    last = max((event.at for event in own), default=here.last_reinforced)
    if here.id == there.id and any(e.kind == "updated" and e.at > last for e in fresh):
        gained = {name: getattr(there, name) for name in ("type", "tags", "category", "expires_at")}
    else:
        said = [event for event in fresh if event.kind in _SAID]
        gained = {"tags": _joined(here.tags, *(event.tags for event in said))}
        if said and here.category is None:
            gained["category"] = there.category
        if said and here.expires_at is not None:
            longer = there.expires_at is None or there.expires_at > here.expires_at
            gained["expires_at"] = there.expires_at if longer else here.expires_at
    sources = [event.source for event in fresh if event.source is not None]
    count = here.reinforce_count + sum(event.kind in _SAID for event in fresh)
    return gained | {"sources": _joined(here.sources, sources), "reinforce_count": count}


def _line_up(work: RecordTransaction, path: str) -> None:
    """Let no two values of a path hold at one time: the earlier ends where the later begins."""
    line = work.versions(path)
    for one, following in pairwise(line):
        if one.valid_to is not None and one.valid_to <= following.valid_from:
            continue
        work.change(one.id, valid_to=following.valid_from, superseded_by=following.id)
        if following.supersedes is None:
            work.change(following.id, supersedes=one.id)


def _event_key(event: RecordEvent) -> str:
    said = "said" if event.kind in {"added", "restated"} else event.kind
    shown = [
        said, event.at.isoformat(), event.source, event.conversation_id, event.turn_index,
        event.text, dict(event.details),
    ]  # fmt: skip
    return json.dumps(shown, sort_keys=True, default=str)


def _derived_id(item: Incoming) -> str:
    """An id that is the same however often the same memory comes."""
    data = f"{item.record.id}\n{_value(item.record)}".encode("utf-8", "surrogatepass")
    return f"{item.record.id[:36]}-{hashlib.sha256(data).hexdigest()[:8]}"


def _joined(*groups: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one for group in groups for one in group))
