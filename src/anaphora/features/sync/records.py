"""Records of all kinds between the database and the changes that devices exchange.

`capture` compares rows with the merged state of the known changes, and makes a patch of each
difference; `apply` does it the other way round. Both can be interrupted and repeated: they store
nothing that a comparison would not find again.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from anaphora.features.sync.changes import WHOLE, ItemState, Patch, is_dropped
from anaphora.features.sync.clock import Stamp
from anaphora.features.sync.codec import (
    EVENT,
    HIDDEN,
    ORIGINS,
    RecordCodec,
    SharedRecord,
    identity_of,
)
from anaphora.features.sync.device import SyncedDevice
from anaphora.features.sync.items import KILLED, THREAD, item_name, kind_and_key
from anaphora.features.sync.merge.records import (
    LONGEST_START,
    SAID,
    MergedRecord,
    item_of,
    merge,
    tail_id,
)
from anaphora.features.sync.origins import Origins
from anaphora.features.sync.store import CLOCK
from anaphora.language.names import composed
from anaphora.store.namespace import portions
from anaphora.store.records.forgetting import ForgottenRecords, describe_forgotten
from anaphora.store.records.rows import (
    MEMORY,
    STANDS_ALONE,
    RecordEvent,
)
from anaphora.store.records.store import Records
from anaphora.store.records.transaction import RecordTransaction
from anaphora.values.memories import MemoryRecord

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices

_DERIVED: Final = frozenset({"tags", "sources", "last_reinforced", "created_at"})
"""Fields that follow from the events of a record, unless it was changed in place."""
_UNCHANGING: Final = frozenset({"turn", "conversation_id", "extra", "reinforce_count"})
"""Fields that never change once a record is there, or follow from the others."""
_FORGOTTEN: Final = "forgotten"
_GROUP: Final = "group"
_AT_ONCE: Final = 256
_GROUPS: Final = 100
"""Groups that are applied in one transaction."""


OnForgotten = Callable[["NamespaceServices", RecordTransaction, ForgottenRecords], None]


@dataclass(frozen=True, slots=True)
class RecordKind:
    """How the records of one kind differ from those of others.

    A `lasting` one may stand alone, may be a fact with origins, and is forgotten for good on every
    device with all that is the same. `row_key` gives the identity of a row, where that is not that
    of its content. `on_forgotten` is called in the transaction that erases records.
    """

    lasting: bool = False
    row_key: Callable[[MemoryRecord], str] | None = None
    on_forgotten: OnForgotten | None = None


def group_of(kinds: Collection[str], item: str, state: ItemState, secret: bytes) -> str:
    """The group that an item is merged in: of its path, or its identity; else its own.

    `kinds` are those of records. The group is a digest under `secret`: a mark that something was
    forgotten names its group, too.
    """
    kind, _ = kind_and_key(item)
    if kind == KILLED:
        return str(_value(state, _GROUP) or item)
    if kind not in kinds or is_dropped(state) or "text" not in state:
        return item
    path = _value(state, "path")
    same_key = _find_same_key(state)
    if path is None and not same_key:
        return item
    identity = f"same {same_key}" if path is None else f"path {composed(path)}"
    return _digest(secret, f"{kind} {identity}")


def _digest(secret: bytes, text: str) -> str:
    return hmac.new(secret, text.encode("utf-8", "surrogatepass"), "sha256").hexdigest()


def _value(state: ItemState, name: str) -> Any:
    return state[name].value if name in state and state[name].action == "set" else None


def _find_same_key(state: ItemState) -> str:
    """The identity of the record that a state describes."""
    return identity_of(
        {name: change.value for name, change in state.items() if change.action == "set"}
    )


def _find_conversations(state: ItemState) -> set[str | None]:
    """The conversations that a record, its events or its origins name."""
    events = (change.value for change in state.values() if isinstance(change.value, dict))
    conversation_ids = {event.get("conversation_id") for event in events}
    origins = _value(state, ORIGINS) or ()
    return conversation_ids | {source for source, _ in origins} | {_value(state, "conversation_id")}


def _find_hidden_at(record: MemoryRecord, events: Iterable[RecordEvent]) -> datetime | None:
    """When a record was softly forgotten; None if it was not."""
    if not record.forgotten:
        return None
    times = (event.at for event in events if event.kind == "forgotten")
    return max(times, default=record.last_reinforced)


@dataclass(frozen=True, slots=True)
class RecordSync:
    """Records of one namespace on a device."""

    _device: SyncedDevice
    _codec: RecordCodec
    _origins: Origins
    _kinds: Mapping[str, RecordKind]

    @property
    def kinds(self) -> Collection[str]:
        """The kinds of records."""
        return self._kinds.keys()

    def _records(self, kind: str) -> Records:
        services = self._device.services
        sealer = services.sealing.rows
        return Records(services.truth, services.namespace, sealer, kinds=(kind,))

    # From the rows.

    def capture(self, since: int) -> Iterator[tuple[Patch, str]]:
        """The changes of records after the number `since`."""
        for kind in self._kinds:
            records, last_seq = self._records(kind), since
            for ids in portions(records.told_since(since), _AT_ONCE):
                yield from self._capture_records(kind, records, ids)
            while batch := records.changed_since(last_seq, _AT_ONCE):
                yield from self._capture_records(kind, records, [record.id for record in batch])
                last_seq = batch[-1].seq
        yield from self.removals(since)

    def removals(self, since: int) -> Iterator[tuple[Patch, str]]:
        """The permanent deletions after the number `since`."""
        for kind in self._kinds:
            for _, record_id in self._records(kind).tombstones_since(since):
                yield from ((patch, "") for patch in self._find_drops(kind, record_id))

    def _capture_records(
        self, kind: str, records: Records, ids: Sequence[str]
    ) -> Iterator[tuple[Patch, str]]:
        with records.change() as work:
            work.load(ids=ids)
            for record_id in ids:
                record = work.find(record_id)
                if record is None:
                    continue
                events = work.events(record_id)
                alone = self._kinds[kind].lasting and work.same_key(record_id) == STANDS_ALONE
                origins = self._origins.list_for(record_id)
                shared = SharedRecord(record, origins, alone, _find_hidden_at(record, events))
                yield from ((patch, "") for patch in self._compare(kind, shared, events))

    def _compare(
        self, kind: str, shared: SharedRecord, events: Sequence[RecordEvent]
    ) -> Iterator[Patch]:
        """The differences between a record and the known changes."""
        record = shared.record
        lines, fields = dict(self._codec.write_events(events)), self._codec.write(shared)
        merged_record = self._find_known(kind, record.id)
        if merged_record is None:
            occurrences = sum(line["kind"] in SAID for line in lines.values())
            extra = record.reinforce_count - max(0, occurrences - 1)
            if extra:
                fields["extra"] = extra
            yield Patch(item_name(kind, record.id), self._device.clock.next(), fields, lines)
            return
        known_keys = dict.fromkeys(event.key for event in merged_record.events)
        new_lines = {key: line for key, line in lines.items() if key not in known_keys}
        moved_events = [key for key in known_keys if key not in lines]
        is_updated = any(line["kind"] == "updated" for line in new_lines.values())
        ignored_names = _UNCHANGING | (frozenset() if is_updated else _DERIVED)
        if fields.get(HIDDEN) and merged_record.fields.get(HIDDEN):
            ignored_names |= {HIDDEN}
        names = {*fields, *merged_record.fields} - ignored_names
        changed_fields = {
            n: fields.get(n) for n in names if fields.get(n) != merged_record.fields.get(n)
        }
        if not (changed_fields or new_lines or moved_events):
            return
        stamp = self._device.clock.next()
        for at, owner in enumerate(merged_record.owners):
            is_first = at == 0
            yield Patch(
                item_name(kind, owner),
                stamp,
                changed_fields,
                new_lines if is_first else {},
                dict.fromkeys(moved_events, None),
            )

    def _find_drops(self, kind: str, record_id: str) -> Iterator[Patch]:
        """The drops of the items of a row that was forgotten for good."""
        merged_record = self._find_known(kind, record_id)
        if merged_record is None:
            return
        store, stamp = self._device.store, self._device.clock.next()
        first_item = item_name(kind, merged_record.owners[0])
        group = self._group_of(first_item, store.states([first_item])[first_item])
        parts = sum(
            not set(record.owners).isdisjoint(merged_record.owners)
            for record in self._merge_group(group)
        )
        dropped_keys = dict.fromkeys((event.key for event in merged_record.events), None)
        for owner in merged_record.owners:
            item_id = item_name(kind, owner)
            has_more = parts > 1 and any(
                key.startswith(EVENT) and key not in dropped_keys
                for key, change in store.states([item_id])[item_id].items()
                if change.action == "add"
            )
            yield Patch(item_id, stamp, drop=dropped_keys if has_more else {WHOLE: None})
        if merged_record.same and self._kinds[kind].lasting:
            applied_state = store.states([first_item], applied=True)[first_item]
            group = self._group_of(first_item, applied_state)
            mark = self._killed_mark(merged_record.same)
            yield Patch(mark, stamp, {_FORGOTTEN: True, _GROUP: group})

    # The merged state of the changes.

    def row_of(self, record_id: str) -> str | None:
        """The id of the row that contains a memory; None if nothing of it is left."""
        item_id = item_name(MEMORY, record_id)
        state = self._device.store.states([item_id])[item_id]
        if not state or is_dropped(state):
            known_record = self._find_known(MEMORY, record_id)
            return None if known_record is None else known_record.id
        merged_records = self._merge_group(self._group_of(item_id, state))
        return next((record.id for record in merged_records if record_id in record.owners), None)

    def _killed_mark(self, same: str) -> str:
        return item_name(KILLED, _digest(self._device.secret, same))

    def _find_known(self, kind: str, record_id: str) -> MergedRecord | None:
        """The record of this id by the applied changes, if any."""
        item_id = item_name(kind, record_id)
        state = self._device.store.states([item_id], applied=True)[item_id]
        if not state:
            item_id, state = self._find_source(kind, record_id)
        if not state:
            return None
        merged_records = self._merge_group(self._group_of(item_id, state), applied=True)
        return next((record for record in merged_records if record.id == record_id), None)

    def _find_source(self, kind: str, record_id: str) -> tuple[str, ItemState]:
        """The item of a version that was split, by the id of its later part."""
        start = item_name(kind, record_id.rpartition("-")[0])
        items = [start]
        if len(record_id) == len(tail_id("-" * LONGEST_START, "")):
            # The id in it may have been shortened.
            items += [
                item_id for item_id in self._device.store.names(kind) if item_id.startswith(start)
            ]
        for item_id, state in self._device.store.states(items, applied=True).items():
            if state:
                return item_id, state
        return start, {}

    def _group_of(self, item: str, state: ItemState) -> str:
        return group_of(self._kinds, item, state, self._device.secret)

    def _merge_group(self, group: str, *, applied: bool = False) -> list[MergedRecord]:
        items = []
        for name, state, same_key, killed_at in self._find_living(group, applied=applied):
            kind, key = kind_and_key(name)
            record_item = item_of(key, kind, same_key, state, killed_at)
            if record_item is not None:
                items.append(record_item)
        return merge(items)

    def _find_living(
        self, group: str, *, applied: bool
    ) -> Iterator[tuple[str, ItemState, str, Stamp | None]]:
        """The records of a group that were not dropped: names, states, identities.

        And when the text of a memory was forgotten for good on any device.
        """
        store = self._device.store
        for name, state in store.states(store.group(group), applied=applied).items():
            kind, _ = kind_and_key(name)
            if kind not in self._kinds or is_dropped(state) or "text" not in state:
                continue
            same_key = _find_same_key(state)
            killed_at: Stamp | None = None
            if same_key and self._kinds[kind].lasting:
                mark = self._killed_mark(same_key)
                forgotten_change = store.states([mark], applied=applied)[mark].get(_FORGOTTEN)
                killed_at = forgotten_change.stamp if forgotten_change is not None else None
            yield name, state, same_key, killed_at

    def _find_killed(self, group: str) -> Iterator[Patch]:
        """The drops in a group of which the text was forgotten on some device."""
        for name, state, same_key, killed_at in self._find_living(group, applied=False):
            kind, _ = kind_and_key(name)
            if not self._kinds[kind].lasting:
                continue
            if item_of(name, kind, same_key, state, killed_at) is None:
                yield Patch(name, self._device.clock.next(), drop={WHOLE: None})
                continue
            events = [
                key
                for key, change in state.items()
                if key.startswith(EVENT) and change.action == "add"
                if killed_at is not None and change.stamp <= killed_at
            ]
            if events:
                yield Patch(name, self._device.clock.next(), drop=dict.fromkeys(events, None))

    # Into the rows.

    def neighbours(self, items: Collection[str]) -> list[str]:
        """The records that name turns of these conversations."""
        keys_by_kind = map(kind_and_key, items)
        conversation_ids = {key for kind, key in keys_by_kind if kind == THREAD}
        if not conversation_ids:
            return []
        store = self._device.store
        names = [name for kind in self._kinds for name in store.names(kind)]
        return [
            item_id
            for item_id, state in store.states(names).items()
            if not conversation_ids.isdisjoint(_find_conversations(state))
        ]

    def apply(self, items: Iterable[str], captured: int) -> list[str]:
        """Update rows to the merged state; the items of added and deleted rows.

        A group is skipped if one of its rows was changed after `captured`, the number up to which
        changes were captured.
        """
        by_kind: dict[str, dict[str, list[str]]] = {kind: {} for kind in self._kinds}
        for item_id in items:
            kind, _ = kind_and_key(item_id)
            # Of a reverted item only the applied state tells with what it was merged.
            state = (
                self._device.store.states([item_id])[item_id]
                or self._device.store.states([item_id], applied=True)[item_id]
            )
            by_kind[kind].setdefault(self._group_of(item_id, state), []).append(item_id)
        changed_items: list[str] = []
        for kind, groups in by_kind.items():
            for batch in portions(groups, _GROUPS):
                batch_groups = {group: groups[group] for group in batch}
                changed_ids = self._apply_groups(kind, batch_groups, captured)
                changed_items += [item_name(kind, record_id) for record_id in changed_ids]
        return changed_items

    def _apply_groups(
        self, kind: str, groups: Mapping[str, Sequence[str]], captured: int
    ) -> list[str]:
        """Apply groups in one transaction; those with rows that were just changed are skipped."""
        records, on_forgotten = self._records(kind), self._kinds[kind].on_forgotten
        changed_ids: list[str] = []
        has_erased = False
        with records.change() as work:
            buried_ids = {record_id for _, record_id in records.tombstones_since(captured)}
            sync = self._device.store.within(work.write)
            for group, item_ids in groups.items():
                group_outcome = self._apply_group(work, kind, group, item_ids, captured, buried_ids)
                if group_outcome is None:
                    continue
                members, group_ids, forgotten_records = group_outcome
                changed_ids += group_ids
                if forgotten_records.ids and on_forgotten is not None:
                    on_forgotten(self._device.services, work, forgotten_records)
                has_erased |= bool(forgotten_records.ids)
                work.flush()
                # Text that was forgotten elsewhere, and set here before that, is deleted for good.
                sync.note((patch, "") for patch in self._find_killed(group))
                sync.clean(members)
            sync.put(CLOCK, self._device.clock.state())
        if has_erased:
            self._device.services.truth.scrub()
        return changed_ids

    def _apply_group(
        self,
        work: RecordTransaction,
        kind: str,
        group: str,
        item_ids: Sequence[str],
        captured: int,
        buried: Collection[str],
    ) -> tuple[list[str], list[str], ForgottenRecords] | None:
        """Its items, the ids of added and deleted rows, and the forgotten ones; None if skipped."""
        members = sorted({*item_ids, *self._device.store.group(group)})
        targets = self._merge_group(group)
        applied_records = self._merge_group(group, applied=True)
        ids = [kind_and_key(member)[1] for member in members]
        ids += [target.id for target in (*applied_records, *targets)]
        work.load(ids=ids)
        stored_records = {
            record_id: row for record_id in ids if (row := work.find(record_id)) is not None
        }
        if set(buried) & set(ids) or any(
            record.seq > captured for record in stored_records.values()
        ):
            return None
        owners = {owner for target in targets for owner in target.owners}
        for target in targets:
            self._write_record(work, target, stored_records.get(target.id))
        stale_ids = [
            record_id
            for record_id in stored_records
            if record_id not in {merged_record.id for merged_record in targets}
        ]
        forgotten_ids = [
            record_id
            for record_id in stale_ids
            if record_id not in owners
            and not any(record_id.startswith(f"{owner[:LONGEST_START]}-") for owner in owners)
        ]
        forgotten_records = describe_forgotten(
            work, {record_id: stored_records[record_id] for record_id in forgotten_ids}
        )
        by_owner = {owner: target.id for target in targets for owner in target.owners}
        work.note_merged(
            {record_id: by_owner[record_id] for record_id in stale_ids if record_id in by_owner}
        )
        work.erase(stale_ids)
        came = [target.id for target in targets if target.id not in stored_records]
        moved_ids = [owner for target in targets for owner in target.owners if came or stale_ids]
        return members, [*stale_ids, *came, *moved_ids], forgotten_records

    def _write_record(
        self, work: RecordTransaction, merged: MergedRecord, stored: MemoryRecord | None
    ) -> None:
        shared = self._codec.read(merged.id, merged.fields)
        record, hidden_at = shared.record, shared.forgotten_at
        kind = self._kinds[merged.kind]
        same_key = merged.same if kind.row_key is None else kind.row_key(record)
        events_by_key = {event.key: event.told for event in merged.events}
        if stored is None:
            work.add(record, same_key)
            known_events: dict[str, RecordEvent] = {}
        else:
            names = MemoryRecord.__dataclass_fields__.keys() - {"id", "seq", "forgotten"}
            changed_fields = {
                name: getattr(record, name)
                for name in names
                if getattr(record, name) != getattr(stored, name)
            }
            if changed_fields or work.same_key(stored.id) != same_key:
                work.change(stored.id, same_key=same_key, **changed_fields)
            events = work.events(stored.id)
            known_events = {
                key: event
                for (key, _), event in zip(self._codec.write_events(events), events, strict=True)
            }
        work.untell(event for key, event in known_events.items() if key not in events_by_key)
        for key, event in events_by_key.items():
            if key not in known_events:
                work.tell(self._codec.read_event(merged.id, event))
        if kind.lasting:
            self._origins.write(work, merged.id, shared.origins)
        hidden = stored is not None and stored.forgotten
        if hidden_at is not None and not hidden:
            work.hide(merged.id, hidden_at)
        elif hidden_at is None and hidden:
            work.reveal(merged.id)
