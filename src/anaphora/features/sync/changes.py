"""What devices exchange: changes of fields of items, which merge to the same state in any order.

An **item** is a memory, a conversation, a link between memories or a question without an answer,
named by its kind and id. A **change** sets a field of one, adds an element to it, or drops it. Of
two changes of one field `join` keeps one; order, repetition and device do not matter: so every
device that has seen the same changes has the same state (a state-based CRDT; Shapiro et al., 2011,
"Conflict-free Replicated Data Types").

- A **set** field has the value with the latest stamp.
- An **added** element never changes: adding it twice adds it once.
- A **drop** wins over everything. It keeps nothing, or the rest of the element: a turn
  with redactions. Two drops that redacted different parts leave neither part.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

from anaphora.features.sync.clock import Stamp

Action = Literal["set", "add", "drop"]
_MOST_TIME: Final = 253_402_300_800_000_000
"""Microseconds from 1970 to the year 10000, in which no time of Python is."""
_MOST_NUMBER: Final = 10**8
WHOLE: Final = ""
"""The field that stands for the item itself: dropping it drops all of it."""


@dataclass(frozen=True, slots=True)
class RecordChange:
    """One change. `value` is JSON; `stamp` says when which device noticed it."""

    item: str
    field: str
    action: Action
    stamp: Stamp
    value: Any = None


@dataclass(frozen=True, slots=True)
class Patch:
    """What one device noticed of one item at one time: values by field, as `RecordChange` has them.

    `via` are the entries, device and number, by which it came to the device that says it again.
    """

    item: str
    stamp: Stamp
    set: Mapping[str, Any] = field(default_factory=dict)
    add: Mapping[str, Any] = field(default_factory=dict)
    drop: Mapping[str, Any] = field(default_factory=dict)
    via: tuple[tuple[str, int], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.set or self.add or self.drop)

    def changes(self) -> Iterator[RecordChange]:
        """Each change in it."""
        for name, content in self.set.items():
            yield RecordChange(self.item, name, "set", self.stamp, content)
        for name, content in self.add.items():
            yield RecordChange(self.item, name, "add", self.stamp, content)
        for name, content in self.drop.items():
            yield RecordChange(self.item, name, "drop", self.stamp, content)

    def pruned(self, state: ItemState) -> Patch:
        """The part of it that still counts in the state of its item."""
        counting = [
            change for change in self.changes() if _still_counts(change, state.get(change.field))
        ]
        parts: dict[str, dict[str, Any]] = {"set": {}, "add": {}, "drop": {}}
        for change in counting:
            parts[change.action][change.field] = change.value
        return Patch(self.item, self.stamp, **parts, via=self.via)

    def united(self, other: Patch) -> Patch:
        """This, completed by another version of the same patch."""
        return replace(
            other,
            set={**other.set, **self.set},
            add={**other.add, **self.add},
            drop={**other.drop, **self.drop},
        )

    def line(self) -> dict[str, Any]:
        """Itself as JSON."""
        parts = {"set": self.set, "add": self.add, "drop": self.drop}
        filled_parts: dict[str, Any] = {name: dict(part) for name, part in parts.items() if part}
        if self.via:
            filled_parts["via"] = [list(carrier) for carrier in self.via]
        return {"item": self.item, "stamp": list(self.stamp), **filled_parts}


def _still_counts(change: RecordChange, current: RecordChange | None) -> bool:
    """Whether a change is part of the current state of its field."""
    if current is None or current == change or change.action != "drop" or current.action != "drop":
        return current == change
    # Two drops that redacted different parts are both part of the joined drop.
    return current.value is not None and set(current.value["by"]) > set(change.value["by"])


def patch_of(line: Any) -> Patch:
    """The patch that `Patch.line` wrote. ValueError for anything else."""
    if not isinstance(line, dict) or not isinstance(line.get("item"), str):
        raise ValueError("a patch names no item")
    stamp, parts = line.get("stamp"), {name: line.get(name, {}) for name in ("set", "add", "drop")}
    if not isinstance(stamp, list) or list(map(type, stamp)) != [int, int, str]:
        raise ValueError("a patch has no stamp")
    if stamp[0] >= _MOST_TIME or not 0 <= stamp[1] < _MOST_NUMBER:
        raise ValueError("a patch has a stamp of no time")
    if not all(isinstance(part, dict) for part in parts.values()):
        raise ValueError("a patch has a part that is not an object")
    via = tuple((str(device), int(number)) for device, number in line.get("via", ()))
    return Patch(line["item"], Stamp(*stamp), **parts, via=via)


ItemState: TypeAlias = dict[str, RecordChange]
"""The changes of one item that count, by their fields."""


def join(first: RecordChange, second: RecordChange) -> RecordChange:
    """Which of two changes of one field counts. A field is either set or added to, never both."""
    if first.action != second.action:
        return first if first.action == "drop" else second
    if first.action == "set":
        return max(first, second, key=lambda change: (change.stamp, canonical(change.value)))
    if first.action == "drop":
        return _join_drops(first, second)
    return min(first, second, key=lambda change: (canonical(change.value), change.stamp))


def _join_drops(first: RecordChange, second: RecordChange) -> RecordChange:
    """The union of two drops. `by` in the value of a drop names all redactions."""
    if first.value is None or second.value is None:
        return min(first, second, key=lambda change: (change.value is not None, change.stamp))
    first_cuts, second_cuts = set(first.value["by"]), set(second.value["by"])
    if first_cuts == second_cuts:
        # Both have every redaction; one without a text is the union of two drops.
        return max(
            first,
            second,
            key=lambda change: ("text" in change.value, canonical(change.value), change.stamp),
        )
    if first_cuts < second_cuts or second_cuts < first_cuts:
        return max(first, second, key=lambda change: len(change.value["by"]))
    merged_drop = {name: part for name, part in first.value.items() if name != "text"}
    merged_drop["place"] = min(first.value["place"], second.value["place"])
    merged_drop["by"] = sorted(first_cuts | second_cuts)
    return replace(max(first, second, key=lambda change: change.stamp), value=merged_drop)


def apply_changes(state: ItemState, changes: Iterable[RecordChange]) -> bool:
    """Join changes of one item into its state; whether any of them counted."""
    is_changed = False
    for change in changes:
        if is_dropped(state) and change.field != WHOLE:
            continue
        current = state.get(change.field)
        joined_change = change if current is None else join(current, change)
        if joined_change != current:
            if joined_change.field == WHOLE and joined_change.action == "drop":
                state.clear()
            state[joined_change.field] = joined_change
            is_changed = True
    return is_changed


def is_dropped(state: ItemState) -> bool:
    """Whether the item as a whole is gone."""
    return WHOLE in state and state[WHOLE].action == "drop"


def canonical(value: Any) -> str:
    """The one JSON text of a value: keys sorted, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
