"""Memories, notes and tool calls between the database and the changes that devices exchange.

`capture` compares rows with what the known changes add up to, and makes a patch of what differs;
`apply` does it the other way round. Both can be interrupted and asked again: nothing is noted that
a comparison would not find once more.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from anaphora.core.names import composed
from anaphora.ops.transfer.lines import LineFields, from_line, string, time_text, to_line
from anaphora.store.namespace import NamespaceReader, portions
from anaphora.store.records.forgetting import ForgottenRecords, describe_forgotten
from anaphora.store.records.rows import (
    MEMORY,
    STANDS_ALONE,
    TOOL_CALL,
    RecordEvent,
    same_key_of,
    session_key,
)
from anaphora.store.records.store import Records
from anaphora.store.records.transaction import RecordTransaction
from anaphora.sync.changes import WHOLE, ItemState, Patch, canonical, is_dropped
from anaphora.sync.clock import Stamp
from anaphora.sync.device import SyncedDevice
from anaphora.sync.items import KILLED, RECORD_KINDS, item_name, kind_and_key
from anaphora.sync.merge.records import (
    EVENT,
    LONGEST_START,
    ORIGINS,
    MergedRecord,
    RecordItem,
    item_of,
    merge,
    tail_id,
)
from anaphora.sync.origins import Origins
from anaphora.sync.store import CLOCK
from anaphora.values.memories import MemoryRecord

_FIELDS: Final = LineFields(
    MemoryRecord,
    ("text", "type", "path", "payload"),
    left_out=("id", "seq", "reinforce_count", "forgotten", "turn_index"),
    readers={"type": string},
)
_EVENT: Final = LineFields(
    RecordEvent,
    ("kind", "at", "tags", "source", "conversation_id", "text", "details"),
    left_out=("record_id", "seq", "turn_index"),
    readers={"kind": string},
)
_DERIVED: Final = frozenset({"tags", "sources", "last_reinforced", "created_at"})
"""Fields that follow from the events of a record, unless it was changed in place."""
_UNCHANGING: Final = frozenset({"turn", "conversation_id", "extra", "reinforce_count"})
"""Fields that never change once a record is there, or follow from the others."""
_ALONE: Final = "stands_alone"
_TURN: Final = "turn"
_FORGOTTEN: Final = "forgotten"
_GROUP: Final = "group"
_AT_ONCE: Final = 256
_GROUPS: Final = 100
"""Groups that are brought in line in one transaction."""

_TOLD: Final = """
SELECT told.record_id FROM (
  SELECT namespace, record_id FROM record_event WHERE namespace = :namespace AND seq > :since
   UNION
  SELECT namespace, record_id FROM fact_turn WHERE namespace = :namespace AND seq > :since
) AS told
  JOIN record ON record.namespace = told.namespace AND record.record_id = told.record_id
 WHERE record.seq <= :since AND record.kind = :kind
 ORDER BY told.record_id
"""

TurnNames = Callable[[str, int], str | None]
"""What the turn at a place of a conversation is called on all devices."""
TurnPlaces = Callable[[str, str], int | None]
"""Where the turn of this name stands here."""


def group_of(item: str, state: ItemState, secret: bytes) -> str:
    """What an item is merged with: for a record its path, or what says the same; else nothing.

    As a digest under `secret`: a mark that something was forgotten names its group, too.
    """
    kind, _ = kind_and_key(item)
    if kind == KILLED:
        return str(_value(state, _GROUP) or item)
    if kind not in RECORD_KINDS or is_dropped(state) or "text" not in state:
        return item
    path = _value(state, "path")
    same = _same_of(kind, state)
    if path is None and not same:
        return item
    said = f"same {same}" if path is None else f"path {composed(path)}"
    return _digest(secret, f"{kind} {said}")


def _digest(secret: bytes, text: str) -> str:
    return hmac.new(secret, text.encode("utf-8", "surrogatepass"), "sha256").hexdigest()


def _value(state: ItemState, name: str) -> Any:
    return state[name].value if name in state and state[name].action == "set" else None


def _same_of(kind: str, state: ItemState) -> str:
    """The identity of the record that a state says."""
    if _value(state, _ALONE):
        return STANDS_ALONE
    given = {name: _value(state, name) for name in ("path", "payload")}
    at = datetime.min.replace(tzinfo=UTC)
    record = MemoryRecord("", _value(state, "text"), _value(state, "type"), at, at, at, 0, **given)
    return same_key_of(record)


class _Events(NamespaceReader):
    """The events of one namespace."""

    def told_of(self, kind: str, since: int) -> list[str]:
        """The records that changed by events or origins alone after a number: a verdict is one."""
        return [str(row[0]) for row in self._rows(_TOLD, kind=kind, since=since)]


@dataclass(frozen=True, slots=True)
class RecordSync:
    """Records of one namespace on a device."""

    _device: SyncedDevice
    _name_of: TurnNames
    _place_of: TurnPlaces
    _origins: Origins

    def _records(self, kind: str) -> Records:
        services = self._device.services
        sealer = services.sealing.rows
        return Records(services.truth, services.namespace, sealer, kinds=(kind,))

    # From the rows.

    def capture(self, since: int) -> Iterator[Patch]:
        """What changed in records after the number `since`."""
        services = self._device.services
        events = _Events(services.truth, services.namespace, services.sealing.rows)
        for kind in RECORD_KINDS:
            records, after = self._records(kind), since
            for ids in portions(events.told_of(kind, since), _AT_ONCE):
                yield from self._changed(kind, records, ids)
            while found := records.changed_since(after, _AT_ONCE):
                yield from self._changed(kind, records, [record.id for record in found])
                after = found[-1].seq
        yield from self.removals(since)

    def removals(self, since: int) -> Iterator[Patch]:
        """What was deleted for good after the number `since`."""
        for kind in RECORD_KINDS:
            gone = [record_id for _, record_id in self._records(kind).tombstones_since(since)]
            yield from self._gone(kind, gone)

    def _changed(self, kind: str, records: Records, ids: Sequence[str]) -> Iterator[Patch]:
        with records.change() as work:
            work.load(ids=ids)
            for record_id in ids:
                record = work.find(record_id)
                if record is not None:
                    alone = kind == MEMORY and work.same_key(record_id) == STANDS_ALONE
                    yield from self._compared(kind, record, work.events(record_id), alone=alone)

    def _compared(
        self, kind: str, record: MemoryRecord, events: Sequence[RecordEvent], *, alone: bool
    ) -> Iterator[Patch]:
        """What a record has that the known changes do not say."""
        told = dict(self._told(events))
        fields = self._fields(record, events, alone=alone)
        known = self._expected(kind, record.id)
        if known is None:
            said = sum(one["kind"] in ("added", "restated", "linked") for one in told.values())
            extra = record.reinforce_count - max(0, said - 1)
            if extra:
                fields["extra"] = extra
            yield Patch(item_name(kind, record.id), self._device.clock.next(), fields, told)
            return
        fresh = {key: one for key, one in told.items() if key not in {e.key for e in known.events}}
        moved = [event.key for event in known.events if event.key not in told]
        updated = any(one["kind"] == "updated" for one in fresh.values())
        ignored = _UNCHANGING | (frozenset() if updated else _DERIVED)
        if fields.get("forgotten_at") and known.fields.get("forgotten_at"):
            ignored |= {"forgotten_at"}
        names = {*fields, *known.fields} - ignored
        changed = {n: fields.get(n) for n in names if fields.get(n) != known.fields.get(n)}
        if not (changed or fresh or moved):
            return
        stamp = self._device.clock.next()
        for at, owner in enumerate(known.owners):
            first = at == 0
            dropped = dict.fromkeys(moved, None)
            yield Patch(item_name(kind, owner), stamp, changed, fresh if first else {}, dropped)

    def _gone(self, kind: str, ids: Iterable[str]) -> Iterator[Patch]:
        """What forgetting these rows for good says of the items that they were made of."""
        for record_id in ids:
            known = self._expected(kind, record_id)
            if known is None:
                continue
            stamp = self._device.clock.next()
            parts = self._parts(known)
            for owner in known.owners:
                item = item_name(kind, owner)
                state = self._device.store.states([item])[item]
                kept = parts > 1 and any(
                    key.startswith(EVENT) and key not in {e.key for e in known.events}
                    for key, change in state.items()
                    if change.action == "add"
                )
                dropped = (
                    dict.fromkeys((e.key for e in known.events), None) if kept else {WHOLE: None}
                )
                yield Patch(item, stamp, drop=dropped)
            if known.same and kind == MEMORY:
                item = item_name(kind, known.owners[0])
                group = self._group_of(item, self._device.store.states([item], applied=True)[item])
                yield Patch(self._killed(known.same), stamp, {_FORGOTTEN: True, _GROUP: group})

    def _parts(self, known: MergedRecord) -> int:
        item = item_name(known.kind, known.owners[0])
        group = self._group_of(item, self._device.store.states([item])[item])
        return sum(set(one.owners) & set(known.owners) != set() for one in self._merged(group))

    def _told(self, events: Sequence[RecordEvent]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Each event as JSON, under a digest of what it tells."""
        seen: Counter[str] = Counter()
        for event in events:
            told = from_line(to_line(_EVENT.write(event)))
            text = canonical(told | {"kind": "said" if event.kind == "restated" else told["kind"]})
            told |= self._turn(event.conversation_id, event.turn_index)
            digest = hashlib.sha256(f"{seen[text]} {text}".encode()).hexdigest()[:32]
            seen[text] += 1
            yield EVENT + digest, told

    def _fields(
        self, record: MemoryRecord, events: Sequence[RecordEvent], *, alone: bool
    ) -> dict[str, Any]:
        fields = from_line(to_line(_FIELDS.write(record)))
        fields |= self._turn(record.conversation_id, record.turn_index)
        if alone:
            fields[_ALONE] = True
        if origins := self._origins.of(record.id):
            fields[ORIGINS] = origins
        if record.forgotten:
            hidden = [event.at for event in events if event.kind == "forgotten"]
            fields["forgotten_at"] = time_text(max(hidden, default=record.last_reinforced))
        return fields

    def _turn(self, conversation_id: str | None, index: int | None) -> dict[str, Any]:
        if conversation_id is None or index is None:
            return {}
        return {_TURN: self._name_of(conversation_id, index) or index}

    # What the changes add up to.

    def row_of(self, record_id: str) -> str | None:
        """The id of the row that a memory is a part of; None where nothing of it is left."""
        item = item_name(MEMORY, record_id)
        state = self._device.store.states([item])[item]
        if not state or is_dropped(state):
            known = self._expected(MEMORY, record_id)
            return None if known is None else known.id
        merged = self._merged(self._group_of(item, state))
        return next((one.id for one in merged if record_id in one.owners), None)

    def _killed(self, same: str) -> str:
        return item_name(KILLED, _digest(self._device.secret, same))

    def _expected(self, kind: str, record_id: str) -> MergedRecord | None:
        """The record that the known changes make of this id, if any."""
        item = item_name(kind, record_id)
        state = self._device.store.states([item], applied=True)[item]
        if not state:
            item, state = self._cut_from(kind, record_id)
        if not state:
            return None
        merged = self._merged(self._group_of(item, state), applied=True)
        return next((one for one in merged if one.id == record_id), None)

    def _cut_from(self, kind: str, record_id: str) -> tuple[str, ItemState]:
        """The item of a version that was said again later, by the id of that part of it."""
        start = item_name(kind, record_id.rpartition("-")[0])
        items = [start]
        if len(record_id) == len(tail_id("-" * LONGEST_START, "")):
            # The id may have been longer than what is left of it.
            items += [item for item in self._device.store.names(kind) if item.startswith(start)]
        for item, state in self._device.store.states(items, applied=True).items():
            if state:
                return item, state
        return start, {}

    def _group_of(self, item: str, state: ItemState) -> str:
        return group_of(item, state, self._device.secret)

    def _merged(self, group: str, *, applied: bool = False) -> list[MergedRecord]:
        return merge(self._items(group, applied=applied))

    def _items(self, group: str, *, applied: bool) -> Iterator[RecordItem]:
        for name, state, same, killed in self._living(group, applied=applied):
            kind, key = kind_and_key(name)
            made = item_of(key, kind, same, state, killed)
            if made is not None:
                yield made

    def _living(
        self, group: str, *, applied: bool
    ) -> Iterator[tuple[str, ItemState, str, Stamp | None]]:
        """The records of a group that were not dropped: names, states, identities.

        And when what a memory says was forgotten for good, on whatever device.
        """
        store = self._device.store
        for name, state in store.states(store.group(group), applied=applied).items():
            kind, _ = kind_and_key(name)
            if kind not in RECORD_KINDS or is_dropped(state) or "text" not in state:
                continue
            same = _same_of(kind, state)
            killed: Stamp | None = None
            if same and kind == MEMORY:
                mark = self._killed(same)
                said = store.states([mark], applied=applied)[mark].get(_FORGOTTEN)
                killed = said.stamp if said is not None else None
            yield name, state, same, killed

    def _killed_in(self, group: str) -> Iterator[Patch]:
        """What has to go of a group because its words were forgotten on some device."""
        for name, state, same, killed in self._living(group, applied=False):
            if kind_and_key(name)[0] != MEMORY:
                continue
            if item_of(name, MEMORY, same, state, killed) is None:
                yield Patch(name, self._device.clock.next(), drop={WHOLE: None})
                continue
            events = [
                key
                for key, change in state.items()
                if key.startswith(EVENT) and change.action == "add"
                if killed is not None and change.stamp <= killed
            ]
            if events:
                yield Patch(name, self._device.clock.next(), drop=dict.fromkeys(events, None))

    # Into the rows.

    def about(self, conversations: Collection[str]) -> list[str]:
        """The records that name turns of these conversations."""
        found = []
        for kind in RECORD_KINDS:
            for item, state in self._device.store.states(self._device.store.names(kind)).items():
                told = (change.value for change in state.values() if isinstance(change.value, dict))
                named = [one.get("conversation_id") for one in told]
                named += [source for source, _ in _value(state, ORIGINS) or ()]
                if {_value(state, "conversation_id"), *named} & set(conversations):
                    found.append(item)
        return found

    def apply(self, items: Iterable[str], captured: int) -> list[str]:
        """Bring rows in line with all changes; the ids of rows that came or went.

        A row that somebody has changed after the number `captured`, up to which changes were looked
        at, waits with those it belongs to.
        """
        by_kind: dict[str, dict[str, list[str]]] = {kind: {} for kind in RECORD_KINDS}
        for item in items:
            kind, _ = kind_and_key(item)
            # Of what was taken back the home knows with what it is merged.
            state = (
                self._device.store.states([item])[item]
                or self._device.store.states([item], applied=True)[item]
            )
            by_kind[kind].setdefault(self._group_of(item, state), []).append(item)
        changed: list[str] = []
        for kind, groups in by_kind.items():
            for some in portions(groups, _GROUPS):
                changed += self._apply_groups(kind, {one: groups[one] for one in some}, captured)
        return changed

    def _apply_groups(
        self, kind: str, groups: Mapping[str, Sequence[str]], captured: int
    ) -> list[str]:
        """In one transaction: what was acknowledged meanwhile waits, with those it belongs to."""
        records = self._records(kind)
        changed: list[str] = []
        erased = False
        with records.change() as work:
            buried = {one for _, one in records.tombstones_since(captured)}
            sync = self._device.store.within(work.write)
            for group, some in groups.items():
                done = self._apply_group(work, kind, group, some, captured, buried)
                if done is None:
                    continue
                members, more, lost = done
                changed += more
                if lost.ids and kind == MEMORY:
                    self._device.services.deep_forgetting.forget_memories(work, lost, False)
                erased |= bool(lost.ids)
                work.flush()
                # What was forgotten elsewhere, and was said here before that, leaves for good.
                sync.note((patch, "") for patch in self._killed_in(group))
                sync.clean(members)
            sync.put(CLOCK, self._device.clock.state())
        if erased:
            self._device.services.truth.scrub()
        return changed

    def _apply_group(
        self,
        work: RecordTransaction,
        kind: str,
        group: str,
        some: Sequence[str],
        captured: int,
        buried: Collection[str],
    ) -> tuple[list[str], list[str], ForgottenRecords] | None:
        """Its items, the ids of rows that came or went, and what was forgotten; None: it waits."""
        members = sorted({*some, *self._device.store.group(group)})
        wanted = self._merged(group)
        before = self._merged(group, applied=True)
        ids = [kind_and_key(item)[1] for item in members]
        ids += [one.id for one in (*before, *wanted)]
        work.load(ids=ids)
        here = {one: found for one in ids if (found := work.find(one)) is not None}
        if set(buried) & set(ids) or any(record.seq > captured for record in here.values()):
            return None
        owners = {owner for one in wanted for owner in one.owners}
        for one in wanted:
            self._write(work, one, here.get(one.id))
        gone = [one for one in here if one not in {merged.id for merged in wanted}]
        forgotten = [one for one in gone if one not in owners and not self._is_tail(one, owners)]
        lost = describe_forgotten(work, {one: here[one] for one in forgotten})
        by_owner = {owner: one.id for one in wanted for owner in one.owners}
        work.note_merged({one: by_owner[one] for one in gone if one in by_owner})
        work.erase(gone)
        came = [one.id for one in wanted if one.id not in here]
        moved = [owner for one in wanted for owner in one.owners if came or gone]
        return members, [*gone, *came, *moved], lost

    @staticmethod
    def _is_tail(record_id: str, owners: Iterable[str]) -> bool:
        return any(record_id.startswith(f"{owner[:LONGEST_START]}-") for owner in owners)

    def _write(
        self, work: RecordTransaction, merged: MergedRecord, here: MemoryRecord | None
    ) -> None:
        record = self._record_of(merged)
        at = merged.fields.get("forgotten_at")
        same = merged.same
        if merged.kind == TOOL_CALL:
            same = session_key(record.conversation_id or "")
        told = {event.key: event.told for event in merged.events}
        if here is None:
            work.add(record, same)
            known: dict[str, RecordEvent] = {}
        else:
            names = MemoryRecord.__dataclass_fields__.keys() - {"id", "seq", "forgotten"}
            changed = {
                n: getattr(record, n) for n in names if getattr(record, n) != getattr(here, n)
            }
            if changed or work.same_key(here.id) != same:
                work.change(here.id, same_key=same, **changed)
            events = work.events(here.id)
            known = {key: one for (key, _), one in zip(self._told(events), events, strict=True)}
        work.untell(event for key, event in known.items() if key not in told)
        for key, one in told.items():
            if key not in known:
                work.tell(self._event_of(merged.id, one))
        if merged.kind == MEMORY:
            self._origins.write(work, merged.id, merged.fields.get(ORIGINS) or ())
        hidden = here is not None and here.forgotten
        if at is not None and not hidden:
            work.hide(merged.id, datetime.fromisoformat(at))
        elif at is None and hidden:
            work.reveal(merged.id)

    def _record_of(self, merged: MergedRecord) -> MemoryRecord:
        line = {name: value for name, value in merged.fields.items() if value is not None}
        given = _FIELDS.read(line)
        index = self._index(line)
        count = merged.fields["reinforce_count"]
        return MemoryRecord(id=merged.id, seq=0, turn_index=index, reinforce_count=count, **given)

    def _event_of(self, record_id: str, told: Mapping[str, Any]) -> RecordEvent:
        return RecordEvent(record_id, turn_index=self._index(told), **_EVENT.read(told))

    def _index(self, line: Mapping[str, Any]) -> int | None:
        """Where the turn that a line names stands here."""
        turn, conversation_id = line.get(_TURN), line.get("conversation_id")
        if isinstance(turn, str) and conversation_id is not None:
            return self._place_of(conversation_id, turn)
        return turn if isinstance(turn, int) else None
