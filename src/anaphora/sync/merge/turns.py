"""The turns of a conversation from all devices, in one order.

A turn's place is (time, number, device): the latest time among it and the turns before it on the
device that wrote it, its number there, and that device. Places of one device rise, so turns keep
the order in which they were written, also where a clock jumped or an import gave all the same time;
turns of two devices interleave by time. The same turn from two devices (two imports of one chat)
has one identity, and the lower of its two places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from anaphora.store.threads.gojson import REDACTED
from anaphora.sync.changes import ItemState

TURN: Final = "turn:"
"""The prefix of the fields of turns; the id of the turn follows."""
NOTE: Final = "note:"
"""The prefix of the fields of notes on turns."""


class Place(NamedTuple):
    """The sort key of a turn: microseconds since 1970, a number, a device."""

    time: int
    number: int
    device: str


@dataclass(frozen=True, slots=True)
class MergedTurn:
    """A turn as every device has it. `note` is what a thread has no field for."""

    id: str
    place: Place
    role: str
    text: str
    time: str
    intent: str = ""
    note: Sequence[str | None] | None = None


def turns_of(state: ItemState) -> list[MergedTurn]:
    """The turns of a conversation in their order."""
    turns = []
    for field, change in state.items():
        # A deleted turn has no value any more; a redacted one still says where and when it stood.
        if not field.startswith(TURN) or not change.value:
            continue
        turn_id, content = field.removeprefix(TURN), change.value
        note = state.get(NOTE + turn_id)
        turns.append(
            MergedTurn(
                turn_id,
                Place(*content["place"]),
                content["role"],
                content.get("text", REDACTED),
                content["time"],
                content.get("intent", ""),
                None if note is None or change.action == "drop" else note.value,
            )
        )
    return sorted(turns, key=lambda turn: (turn.place, turn.id))


def next_place(before: MergedTurn | None, time: int, device: str) -> Place:
    """The place of a turn of this time that is written on a device behind `before`."""
    if before is None:
        return Place(time, 0, device)
    return Place(max(time, before.place.time), before.place.number + 1, device)
