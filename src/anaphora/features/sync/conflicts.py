"""Values that two devices set for one thing before either had read the other's.

An entry names the entries that its device had read. A value in one of them, and a value of this
device in a later entry, were therefore set independently. Sync makes the later one current; the
user should know.

Only ids are stored: texts are read from the memories, so that a forgotten memory is in no conflict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from anaphora.features.sync.changes import Patch
from anaphora.features.sync.clock import Stamp
from anaphora.features.sync.items import kind_and_key
from anaphora.features.sync.values import SyncConflict, SyncSide
from anaphora.store.records.rows import MEMORY
from anaphora.text.shown_times import in_shown_zone
from anaphora.values.memories import MemoryRecord

MOST: Final = 100
"""The number of conflicts that a device stores, the latest ones."""
CONFLICT_AGE: Final = timedelta(days=30)
_SHOWN: Final = 120
"""The longest quotation of a memory in a sentence, in characters."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
Key = tuple[str, str]
"""What two values have in common: ("path", a path), or ("version", the id that both replace)."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value that a device set: the memory's id, its text, and the stamp of the change."""

    id: str
    text: str
    stamp: Stamp


@dataclass(frozen=True, slots=True)
class Clash:
    """Two values of one thing, the earlier first."""

    earlier: Value
    later: Value

    def line(self) -> list[Any]:
        """Itself as JSON, without texts."""
        return [
            [side.id, side.stamp.device, side.stamp.time] for side in (self.earlier, self.later)
        ]


@dataclass(frozen=True, slots=True)
class ReadEntry:
    """What was read of another device: its patches, and the last entry of this one that it knew."""

    patches: Sequence[Patch]
    known: int


def find_clashes(own: Mapping[int, Sequence[Patch]], read: Iterable[ReadEntry]) -> list[Clash]:
    """The clashes of what was read with this device's patches, by the number of their entry.

    Of each thing the last value of each device counts.
    """
    clashes: dict[tuple[str, str], Clash] = {}
    for peer_entry in read:
        own_values = _last_values(
            patch
            for number, patches in own.items()
            if number > peer_entry.known
            for patch in patches
        )
        for key, peer_value in _last_values(peer_entry.patches).items():
            own_value = own_values.get(key)
            if (
                own_value is None
                or own_value.text == peer_value.text
                or own_value.id == peer_value.id
            ):
                continue
            if own_value.stamp.device != peer_value.stamp.device:
                clash = Clash(*sorted((own_value, peer_value), key=lambda value: value.stamp))
                clashes[key[1], peer_value.stamp.device] = clash
    return list(dict.fromkeys(clashes.values()))


def has_values(patches: Iterable[Patch]) -> bool:
    """Whether a patch among these can clash with another."""
    return any(True for patch in patches for _ in _find_keys(patch))


def _last_values(patches: Iterable[Patch]) -> dict[Key, Value]:
    last_by_key: dict[Key, Value] = {}
    for patch in sorted(patches, key=lambda patch: patch.stamp):
        for key in _find_keys(patch):
            last_by_key[key] = Value(
                kind_and_key(patch.item)[1], str(patch.set["text"]), patch.stamp
            )
    return last_by_key


def _find_keys(patch: Patch) -> Iterator[Key]:
    if kind_and_key(patch.item)[0] != MEMORY or "text" not in patch.set:
        return
    if path := patch.set.get("path"):
        yield "path", str(path)
    elif superseded_id := patch.set.get("supersedes"):
        yield "version", str(superseded_id)


def conflict_of(
    line: Sequence[Any],
    find: Callable[[str], MemoryRecord | None],
    names: Mapping[str, str],
    since: datetime,
) -> SyncConflict | None:
    """A stored conflict with texts; None if it is older, settled, or a side was forgotten."""
    sides: list[SyncSide] = []
    paths: list[str] = []
    for memory, device, time in line:
        record = find(memory)
        at = _EPOCH + timedelta(microseconds=time)
        if record is None or record.forgotten or at < since:
            return None
        current = record.superseded_by is None and record.valid_to is None
        if current and record.last_reinforced > at:
            # Reinforced since: the user has seen it and agrees.
            return None
        # Not the time of the stamp: a device that was offline captures a change long after it.
        sides.append(
            SyncSide(memory, record.text, names.get(device, device), record.created_at, current)
        )
        paths.append(record.path or "")
    # Stamps follow the order of exchanges, not that of the changes themselves.
    earlier, later = sorted(sides, key=lambda side: side.at)
    # Of two versions without a path one that is replaced was settled; a path has one value.
    if not (earlier.current or later.current if paths[0] else earlier.current and later.current):
        return None
    return SyncConflict(paths[0], earlier, later, _summarise(paths[0], earlier, later))


def _summarise(path: str, earlier: SyncSide, later: SyncSide) -> str:
    texts = [" ".join(side.text.split()) for side in (earlier, later)]
    short = [text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…" for text in texts]
    first_statement, second_statement = (
        f'{earlier.device} said "{short[0]}"',
        f'{later.device} said "{short[1]}"',
    )
    times = [in_shown_zone(side.at) for side in (earlier, later)]
    days = [f"{at.day} {at:%B %Y}" for at in times]
    if days[0] == days[1]:
        sentence = f"On {days[0]} {first_statement}, and {second_statement}."
    else:
        sentence = f"On {days[0]} {first_statement}; on {days[1]} {second_statement}."
    if earlier.current and later.current:
        return f"{sentence} Both are current."
    prefix = f"{path}: " if path else ""
    return (
        f"{prefix}{sentence} Current is what {(later if later.current else earlier).device} said."
    )
