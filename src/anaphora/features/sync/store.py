"""The tables of sync in the database of a home: patches, their items, and the state of sync.

A patch from another device is stored as pending until it is applied to the rest of the home:
changes that a user makes meanwhile are compared with the state without it. After that patches are
stored as long as they count. Content that a drop or a later value has replaced is deleted from the
rows, so that forgotten content is forgotten here, too. A patch that is reverted stays, and is
marked, until the home has reverted it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from anaphora.features.sync.changes import (
    WHOLE,
    ItemState,
    Patch,
    RecordChange,
    apply_changes,
    is_dropped,
    patch_of,
)
from anaphora.features.sync.clock import Stamp
from anaphora.features.sync.items import THREAD, kind_and_key
from anaphora.store.hashing import digest
from anaphora.store.lines import from_line, to_line
from anaphora.store.table_rows import TableRows, TableTransaction

if TYPE_CHECKING:
    from anaphora.store.crypto.columns import Sealer
    from anaphora.store.db.engine import Database, Write

GroupOf = Callable[[str, ItemState], str]
"""The group in which an item is merged, by its name and state."""
Row = dict[str, Any]
_ITEM: Final = "sync_item"
_PATCH: Final = "sync_patch"
_STATE: Final = "sync_state"
_COPY: Final = "sync_copy"
_ENTRY: Final = "sync_entry"
_NO_ENTRY: Final = 0
_TAKEN_BACK: Final = 2
"""The value of `applied` for a patch that the home has, and that no longer counts."""
Counts = Callable[[str, int], bool]
"""Whether an entry counts, by its device and number."""
_KEY: Final = ("item_key", "stamp")
CLOCK: Final = "clock"
CONFLICTS: Final = "conflicts"
TO_DROP: Final = "to_drop"
AGAIN: Final = "again "
"""The prefix of the device in a request to repeat an entry that a removed device has emptied."""
CAPTURED: Final = "captured"
"""The name of the number up to which changes of the home were captured."""


def _item_key(item: str) -> str:
    """The key of the rows of an item."""
    return digest("sync item", item)


def _group_key(group: str) -> str:
    return digest("sync group", group)


def stamp_text(stamp: Stamp) -> str:
    """A stamp as text that sorts as stamps do."""
    return f"{stamp.time:020d}.{stamp.number:08d}.{stamp.device}"


class SyncStore:
    """The rows of sync in one namespace. `group_of` says which items are merged together."""

    def __init__(self, truth: Database, namespace: str, sealer: Sealer, group_of: GroupOf) -> None:
        self._rows = TableRows(truth, namespace, sealer)
        self._group_of = group_of

    @contextmanager
    def change(self) -> Iterator[SyncTransaction]:
        """One write transaction, committed as a whole or not at all."""
        with self._rows.change() as work:
            yield SyncTransaction(work, self._group_of)

    def within(self, write: Write) -> SyncTransaction:
        """The same, within a write of this namespace that was begun elsewhere."""
        return SyncTransaction(self._rows.within(write), self._group_of)

    def get(self, name: str, default: Any = None) -> Any:
        """A value of the state, as JSON."""
        return _read_state(self._rows.find(_STATE, {"name": name}), default)

    def states(self, items: Iterable[str], *, applied: bool = False) -> dict[str, ItemState]:
        """The known states of items; with `applied`, those that the rest of the home has."""
        states = {}
        for item_id in items:
            rows = self._rows.find(_PATCH, {"item_key": _item_key(item_id)})
            states[item_id] = _fold(
                row for row in rows if (row["applied"] if applied else _is_known(row))
            )
        return states

    def group(self, group: str) -> list[str]:
        """The items of a group, in order of their names."""
        return sorted(
            row["name"] for row in self._rows.find(_ITEM, {"group_key": _group_key(group)})
        )

    def names(self, kind: str) -> list[str]:
        """The items of a kind that are known."""
        return sorted(row["name"] for row in self._rows.find(_ITEM, {"kind": kind}))

    def seen_states(self, kind: str) -> dict[str, str]:
        """The states in which the items of a kind were captured last."""
        return {row["name"]: row["seen"] for row in self._rows.find(_ITEM, {"kind": kind})}

    def last_seen_state(self, item: str) -> str | None:
        """The state in which this item was captured last."""
        rows = self._rows.find(_ITEM, {"item_key": _item_key(item)})
        return str(rows[0]["seen"]) if rows else None

    def dirty(self) -> list[str]:
        """The items that may differ from the rest of the home."""
        return sorted(row["name"] for row in self._rows.find(_ITEM, {"dirty": 1}))

    def to_drop(self, device: str) -> list[tuple[str, int]]:
        """The device and number of entries with content that this device is to remove."""
        return [(carrier, number) for carrier, number, by in self.get(TO_DROP, []) if by == device]

    def carried_by(self, device: str, entry: int) -> list[Patch]:
        """The patches of an entry that still count."""
        rows = self._rows.find(_PATCH, {"device": device, "entry": entry})
        for copy in self._rows.find(_COPY, {"device": device, "entry": entry}):
            rows += self._rows.find(_PATCH, {name: copy[name] for name in _KEY})
        rows = sorted(filter(_is_known, rows), key=lambda row: str(row["stamp"]))
        return [_with_way(row) for row in rows]

    def find_discounted(self, counts: Counts) -> set[str]:
        """The items with patches from entries that do not count."""
        return {
            _read_patch(row).item for row in self._rows.find(_PATCH) if not _is_backed(row, counts)
        }

    def pending(self, device: str) -> list[Patch]:
        """The patches of this device that no entry carries yet, oldest first."""
        return self.carried_by(device, _NO_ENTRY)


class SyncTransaction:
    """One change to the rows of sync."""

    def __init__(self, work: TableTransaction, group_of: GroupOf) -> None:
        self._work = work
        self._group_of = group_of

    def put(self, name: str, value: Any) -> None:
        """Keep a value of the state."""
        self._work.replace(_STATE, [{"name": name, "value": to_line({"value": value}).decode()}])

    def get(self, name: str, default: Any = None) -> Any:
        """A value of the state, as JSON."""
        return _read_state(self._work.find(_STATE, {"name": name}), default)

    def note(self, patches: Iterable[tuple[Patch, str]]) -> None:
        """Add captured patches, each with the state in which its item was captured."""
        for patch, looked_at in patches:
            self._add_rows(
                patch.item,
                [_build_row(patch, patch.stamp.device, _NO_ENTRY, applied=True)],
                seen=looked_at,
            )

    def receive(self, patches: Iterable[Patch], device: str, entry: int) -> None:
        """Add patches of other devices, from an entry of a device's log."""
        by_item: dict[str, list[Row]] = defaultdict(list)
        for patch in patches:
            by_item[patch.item].append(_build_row(patch, device, entry, applied=False))
        for item_id, rows in by_item.items():
            self._add_rows(item_id, rows)

    def note_carried(
        self,
        patches: Iterable[Patch],
        device: str,
        entry: int,
    ) -> None:
        """Record which entry of a device's log carries patches, besides earlier carriers."""
        carrier = {"device": device, "entry": entry}
        for patch in patches:
            key = {"item_key": _item_key(patch.item), "stamp": stamp_text(patch.stamp)}
            for row in self._work.find(_PATCH, key):
                if row["entry"] == _NO_ENTRY:
                    self._work.replace(_PATCH, [row | carrier])
                else:
                    # The first carrier stays: the patch goes when that entry no longer counts.
                    self._work.replace(_COPY, [key | carrier])

    def note_emptied(self, device: str, entry: int) -> None:
        """Record that an entry no longer carries patches."""
        self._work.drop(_COPY, {"device": device, "entry": entry})

    def note_dropped(self, entries: Iterable[tuple[str, int]]) -> None:
        """Record that these entries were emptied in the remote."""
        emptied_entries = set(entries)
        remaining = [
            request
            for request in self.get(TO_DROP, [])
            if (request[0], request[1]) not in emptied_entries
        ]
        self.put(TO_DROP, remaining)

    def mark(self, items: Iterable[str]) -> None:
        """Mark items as different from the rest of the home."""
        self._update_items(items, dirty=1)

    def clean(self, items: Iterable[str], seen: str | None = None) -> None:
        """Mark items as applied to the rest of the home; void patches are deleted."""
        item_ids = list(items)
        for item_id in item_ids:
            rows = self._find_patches(item_id)
            for row in (row for row in rows if not _is_known(row)):
                self._drop_patch(row)
            rows = [row for row in rows if _is_known(row)]
            self._prune(rows, _fold(rows))
            if not rows:
                self._work.drop(_ITEM, {"item_key": _item_key(item_id)})
        self._update_items(item_ids, dirty=0, **({} if seen is None else {"seen": seen}))

    def unpack(self, device: str, entries: Collection[int]) -> None:
        """Detach the patches of these entries of this device, to be packed again."""
        for number in entries:
            carrier: Row = {"device": device, "entry": number}
            for row in self._work.find(_PATCH, carrier):
                self._work.replace(_PATCH, [row | {"entry": _NO_ENTRY}])
            for copy in self._work.find(_COPY, carrier):
                self._work.drop(_COPY, copy)
        self.note_dropped((device, number) for number in entries)

    def take_back(self, counts: Counts) -> None:
        """Mark patches from entries that do not count, until the home has reverted them."""
        rows_by_item: dict[str, list[Row]] = defaultdict(list)
        for row in self._work.find(_PATCH):
            if not _is_known(row) or _is_backed(row, counts):
                continue
            rows_by_item[_read_patch(row).item].append(row)
            if row["applied"]:
                self._work.replace(_PATCH, [row | {"applied": _TAKEN_BACK}])
            else:
                self._drop_patch(row)
        for name, rows in rows_by_item.items():
            for item_row in self._work.find(_ITEM, {"item_key": _item_key(name)}):
                # The item differs from the home, with all that it is or was merged with.
                item_id = item_row["name"]
                state = _fold(row for row in self._find_patches(item_id) if _is_known(row))
                old = {"group_key": item_row["group_key"]}
                # An item without patches stays in its group until that is applied.
                now = {"group_key": _group_key(self._group_of(item_id, state))} if state else old
                self._work.replace(_ITEM, [item_row | now | {"dirty": 1}])
                for group in (old, now):
                    self._work.replace(
                        _ITEM, [row | {"dirty": 1} for row in self._work.find(_ITEM, group)]
                    )
                self._dirty_group(self._group_of(item_id, _fold(rows)))

    def set_again(self, void: Iterable[Patch], device: str) -> None:
        """Set the fields of patches that do not count again, to their values on this device.

        A device that accepted such a patch repeats it, and empties the entries with the values that
        it replaced. With the next stamp a value is new to all devices, but older than later ones.
        """
        for patch in void:
            rows = [
                row for row in self._find_patches(patch.item) if row["applied"] and _is_known(row)
            ]
            state, stamps = _fold(rows), {row["stamp"] for row in rows}
            items = self._work.find(_ITEM, {"item_key": _item_key(patch.item)})
            looked_at = str(items[0]["seen"]) if items else ""
            for name in patch.set:
                current = state.get(name)
                if current is None or current.action != "set" or is_dropped(state):
                    continue
                stamp = Stamp(current.stamp.time, current.stamp.number + 1, device)
                while stamp_text(stamp) in stamps:
                    stamp = stamp._replace(number=stamp.number + 1)
                stamps.add(stamp_text(stamp))
                self.note([(Patch(patch.item, stamp, set={name: current.value}), looked_at)])

    def find_void(self, counts: Counts) -> list[Patch]:
        """The patches that others repeated, and that came from entries which do not count."""
        patches = [_read_patch(row) for row in self._work.find(_PATCH) if not row["applied"]]
        return [patch for patch in patches if not all(counts(*carrier) for carrier in patch.via)]

    def restore(self, patches: Iterable[Patch], device: str, entry: int) -> None:
        """Restore the patches of an entry in full, if later changes had pruned them."""
        by_item: dict[str, list[Row]] = defaultdict(list)
        for patch in patches:
            by_item[patch.item].append(_build_row(patch, device, entry, applied=False))
        for item_id, new_rows in by_item.items():
            stored_rows = {row["stamp"]: row for row in self._find_patches(item_id)}
            repeats = [
                (stored_rows[row["stamp"]], row) for row in new_rows if row["stamp"] in stored_rows
            ]
            for old_row, row in repeats:
                carrier = row if not _is_known(old_row) else old_row
                applied_mark = {"applied": int(bool(old_row["applied"]))}
                origin = {name: carrier[name] for name in ("device", "entry")}
                # The device that repeated it may have left out changes that do count.
                body = to_line(_read_patch(old_row).united(_read_patch(row)).line()).decode()
                self._work.replace(_PATCH, [row | origin | applied_mark | {"body": body}])
            self._add_rows(item_id, new_rows)
            self.mark([item_id])

    def adopt(self, device: str) -> None:
        """Delete the unsent patches of a device, so that they are captured under another."""
        ready_rows = self._work.find(_ENTRY, {"device": device, "state": "ready"})
        unsent = {_NO_ENTRY, *(row["number"] for row in ready_rows)}
        rows = self._work.find(_PATCH, {"device": device})
        for row in (row for row in rows if row["entry"] in unsent):
            self._work.drop(_PATCH, {name: row[name] for name in _KEY})
        self._work.drop(_ENTRY, {"device": device, "state": "ready"})
        self.put(CAPTURED, 0)
        self._work.replace(
            _ITEM, [row | {"seen": "?", "dirty": 1} for row in self._work.find(_ITEM)]
        )

    def forget_all(self) -> None:
        """Delete all rows of sync."""
        for table in (_ITEM, _PATCH, _COPY, _ENTRY, _STATE):
            self._work.drop(table)

    def _add_rows(self, item: str, incoming: Sequence[Row], *, seen: str | None = None) -> None:
        rows = [row for row in self._find_patches(item) if _is_known(row)]
        stamps = {row["stamp"] for row in rows}
        previous_state = _fold(rows)
        new_rows = [row for row in incoming if row["stamp"] not in stamps and _read_patch(row)]
        state = _fold([*rows, *new_rows])
        local = seen is not None
        waits = any(not row["applied"] for row in rows)
        # While patches of others are not applied, the rows that count until then must stay.
        if local and not waits:
            self._prune(rows, state)
        incoming_by_stamp = {} if local else {row["stamp"]: row for row in incoming}
        for row in (row for row in rows if row["stamp"] in incoming_by_stamp):
            self._note_carrier(row, incoming_by_stamp[row["stamp"]])
        for row in new_rows:
            self._work.replace(_PATCH, [row])
        known_item = self._work.find(_ITEM, {"item_key": _item_key(item)})
        old_item = known_item[0] if known_item else None
        group = self._group_of(item, state)
        if new_rows and not local:
            self._dirty_group(self._group_of(item, previous_state) if previous_state else group)
            self._dirty_group(group)
        dirty = int(
            (old_item is not None and bool(old_item["dirty"])) or (bool(new_rows) and not local)
        )
        if new_rows and local and any(row["name"] != item for row in self._find_members(group)):
            # It is merged with others now, or is another value of their path.
            self._dirty_group(group)
            dirty = 1
        row = {
            "item_key": _item_key(item),
            "group_key": _group_key(group),
            "kind": kind_and_key(item)[0],
            "name": item,
            "dirty": dirty,
            "seen": seen
            if seen is not None
            else (old_item["seen"] if old_item is not None else ""),
        }
        self._work.replace(_ITEM, [row])

    def _note_carrier(self, row: Row, other: Row) -> None:
        """Record that another entry carries a patch, too.

        All carriers are recorded: forgotten content has to be removed from each of them.
        """
        carrier = {name: other[name] for name in ("device", "entry")}
        if carrier == {name: row[name] for name in carrier}:
            return
        key = {"device": other["device"], "number": other["entry"]}
        if any(log_row["state"] in ("void", "gone") for log_row in self._work.find(_ENTRY, key)):
            # That entry was emptied.
            return
        if row["entry"] == _NO_ENTRY:
            self._work.replace(_PATCH, [row | carrier])
        else:
            self._work.replace(_COPY, [{name: row[name] for name in _KEY} | carrier])

    def _drop_patch(self, row: Row) -> None:
        key = {name: row[name] for name in _KEY}
        self._work.drop(_PATCH, key)
        self._work.drop(_COPY, key)

    def _find_members(self, group: str) -> list[Row]:
        return self._work.find(_ITEM, {"group_key": _group_key(group)})

    def _dirty_group(self, group: str) -> None:
        self._work.replace(_ITEM, [row | {"dirty": 1} for row in self._find_members(group)])

    def _update_items(self, items: Iterable[str], **values: Any) -> None:
        rows = [
            row | values
            for item_id in items
            for row in self._work.find(_ITEM, {"item_key": _item_key(item_id)})
        ]
        self._work.replace(_ITEM, rows)

    def _find_patches(self, item: str) -> list[Row]:
        return self._work.find(_PATCH, {"item_key": _item_key(item)})

    def _prune(self, rows: Sequence[Row], state: ItemState) -> None:
        """Prune the rows of an item to the changes that still count."""
        to_drop = []
        for row in rows:
            patch = _read_patch(row)
            remaining = patch.pruned(state)
            key = {name: row[name] for name in _KEY}
            if remaining != patch:
                carriers = [row, *self._work.find(_COPY, key)]
                to_drop += [
                    [carrier["device"], carrier["entry"], drop.stamp.device]
                    for change in patch.changes()
                    if (drop := _find_drop(change, state)) is not None
                    for carrier in carriers
                    if carrier["entry"] != _NO_ENTRY
                ]
            if not remaining:
                self._drop_patch(row)
            elif remaining != patch or not row["applied"]:
                body = row["body"] if remaining == patch else to_line(remaining.line()).decode()
                self._work.replace(_PATCH, [row | {"body": body, "applied": 1}])
        if to_drop:
            noted_requests = self.get(TO_DROP, [])
            requests = {
                tuple(request): request for request in to_drop if request not in noted_requests
            }
            if requests:
                self.put(TO_DROP, [*noted_requests, *requests.values()])


def _find_drop(change: RecordChange, state: ItemState) -> RecordChange | None:
    """The drop that deleted this change's content; None if it stays, or was replaced."""
    current = state.get(WHOLE) if is_dropped(state) else state.get(change.field)
    if current is None or current == change:
        return None
    if current.action == "set":
        # A conversation was deleted, and its title with it.
        is_thread = kind_and_key(change.item)[0] == THREAD
        return current if is_thread and current.value is None and change.value is not None else None
    if current.action != "drop":
        return None
    return None if change.action == "drop" and change.value is None else current


def _is_known(row: Mapping[str, Any]) -> bool:
    """Whether a patch was not reverted."""
    return bool(row["applied"] != _TAKEN_BACK)


def _is_backed(row: Mapping[str, Any], counts: Counts) -> bool:
    """Whether all entries that brought a patch here count."""
    ways = [*_read_patch(row).via, (row["device"], row["entry"])]
    return all(number == _NO_ENTRY or counts(device, number) for device, number in ways)


def _with_way(row: Mapping[str, Any]) -> Patch:
    """A patch as it is repeated, with the entries that brought it here."""
    patch = _read_patch(row)
    way = (str(row["device"]), int(row["entry"]))
    is_new_way = way[1] != _NO_ENTRY and way not in patch.via
    return replace(patch, via=(*patch.via, way)) if is_new_way else patch


def _build_row(patch: Patch, device: str, entry: int, *, applied: bool) -> Row:
    return {
        "item_key": _item_key(patch.item),
        "stamp": stamp_text(patch.stamp),
        "device": device,
        "entry": entry,
        "applied": int(applied),
        "body": to_line(patch.line()).decode(),
    }


def _read_state(rows: Sequence[Row], default: Any) -> Any:
    return from_line(rows[0]["value"].encode()).get("value") if rows else default


def _read_patch(row: Mapping[str, Any]) -> Patch:
    return patch_of(from_line(row["body"].encode()))


def _fold(rows: Iterable[Mapping[str, Any]]) -> ItemState:
    state: ItemState = {}
    for row in rows:
        apply_changes(state, _read_patch(row).changes())
    return state
