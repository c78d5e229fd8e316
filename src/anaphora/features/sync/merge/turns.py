"""The turns of a conversation from all devices, in one order.

A turn's place is (time, number, device): the latest time among it and the turns before it on the
device that wrote it, its number there, and that device. Places of one device rise, so turns keep
the order in which they were written, also where a clock jumped or an import gave all the same time;
turns of two devices interleave by time. The same turn from two devices (two imports of one chat)
has one identity, and the lower of its two places.
"""

from __future__ import annotations

from anaphora.features.sync.changes import ItemState
from anaphora.features.sync.codec import NOTE, TURN, Place, SharedTurn


def turns_of(state: ItemState) -> list[SharedTurn]:
    """The turns of a conversation in their order."""
    turns = []
    for field, change in state.items():
        # A deleted turn has no value any more; a redacted one still says where and when it stood.
        if not field.startswith(TURN) or not change.value:
            continue
        turn_id = field.removeprefix(TURN)
        note = None if change.action == "drop" else state.get(NOTE + turn_id)
        turns.append(SharedTurn.read(turn_id, change.value, None if note is None else note.value))
    return sorted(turns, key=lambda turn: (turn.place, turn.id))


def next_place(before: SharedTurn | None, time: int, device: str) -> Place:
    """The place of a turn of this time that is written on a device behind `before`."""
    if before is None:
        return Place(time, 0, device)
    return Place(max(time, before.place.time), before.place.number + 1, device)
