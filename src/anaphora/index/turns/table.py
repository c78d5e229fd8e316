"""Indexed turns as NumPy columns, and the table for ranking that is made from them.

In: rows of the index file, and records that are not in it yet. Out: `Columns`, `TurnTable`. Never
reads a disk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anaphora.index.maintenance import IndexLost
from anaphora.index.turns.records import Record
from anaphora.rank.table import SESSION_GAP_SECONDS, TurnTable


class Speakers:
    """Codes of speakers' names, given in the order in which names are met; -1 is nobody."""

    def __init__(self) -> None:
        self._codes: dict[str | None, int] = {None: -1}
        self.names: tuple[str, ...] = ()

    def codes(self, names: Sequence[str | None]) -> NDArray[np.int16]:
        """The code of every name."""
        for name in dict.fromkeys(names):
            if name not in self._codes and name is not None:
                self._codes[name] = len(self.names)
                self.names = (*self.names, name)
        return np.fromiter(map(self._codes.__getitem__, names), np.int16, len(names))


@dataclass(frozen=True, slots=True)
class Columns:
    """N turns: `ids` of their rows in the index file (-1: not in it) and what TurnTable holds.

    `conversation` is the thread's code in the index file here; `hashes` stand for the texts.
    """

    ids: NDArray[np.int64]
    conversation: NDArray[np.int32]
    position: NDArray[np.int32]
    role: NDArray[np.int8]
    speaker: NDArray[np.int16]
    ts: NDArray[np.float64]
    length: NDArray[np.int32]
    flags: NDArray[np.int32]
    hashes: list[bytes]

    def __len__(self) -> int:
        return len(self.ids)

    def joined(self, other: Columns) -> Columns:
        """These turns, then the other ones."""
        if not len(other):
            return self
        if not len(self):
            return other
        return Columns(
            np.concatenate((self.ids, other.ids)),
            np.concatenate((self.conversation, other.conversation)),
            np.concatenate((self.position, other.position)),
            np.concatenate((self.role, other.role)),
            np.concatenate((self.speaker, other.speaker)),
            np.concatenate((self.ts, other.ts)),
            np.concatenate((self.length, other.length)),
            np.concatenate((self.flags, other.flags)),
            self.hashes + other.hashes,
        )

    def kept(self, keep: NDArray[np.bool_]) -> Columns:
        """Only the turns where `keep` is true."""
        return Columns(
            self.ids[keep],
            self.conversation[keep],
            self.position[keep],
            self.role[keep],
            self.speaker[keep],
            self.ts[keep],
            self.length[keep],
            self.flags[keep],
            [value for value, stays in zip(self.hashes, keep.tolist(), strict=True) if stays],
        )


def empty_columns() -> Columns:
    """No turns."""
    return of_records(0, (), Speakers())


def of_records(code: int, records: Sequence[Record], speakers: Speakers) -> Columns:
    """Turns of the thread with this code that have no row in the index file."""
    n = len(records)
    return Columns(
        np.full(n, -1, np.int64),
        np.full(n, code, np.int32),
        np.fromiter((r.position for r in records), np.int32, n),
        np.fromiter((r.role for r in records), np.int8, n),
        speakers.codes([r.speaker for r in records]),
        np.fromiter((r.ts for r in records), np.float64, n),
        np.fromiter((r.length for r in records), np.int32, n),
        np.fromiter((r.flags for r in records), np.int32, n),
        [r.text_hash for r in records],
    )


# Odd multipliers of 64 bits: every bit of a column reaches the sum.
_MULTIPLIERS = np.array(
    [
        0x9E3779B97F4A7C15,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0xD6E8FEB86659FD93,
        0xFF51AFD7ED558CCD,
        0xC4CEB9FE1A85EC53,
        0x94D049BB133111EB,
        0xBF58476D1CE4E5B9,
        0x2545F4914F6CDD1D,
    ],
    np.uint64,
)


def checksums(
    numbers: Sequence[NDArray[np.int64]], ts: NDArray[np.float64], hashes: Sequence[bytes]
) -> NDArray[np.int64]:
    """A checksum a row over its six integer columns, its time and its text's hash (N,)."""
    pairs = np.frombuffer(b"".join(hashes), "<u8").reshape(-1, 2)
    parts = [*(np.asarray(n, np.int64).view(np.uint64) for n in numbers)]
    parts += [np.asarray(ts, np.float64).view(np.uint64), pairs[:, 0], pairs[:, 1]]
    total = np.zeros(len(ts), np.uint64)
    for part, multiplier in zip(parts, _MULTIPLIERS, strict=True):
        mixed = (part + np.uint64(1)) * multiplier
        total ^= mixed ^ (mixed >> np.uint64(29))
        total *= np.uint64(0xFF51AFD7ED558CCD)
    return total.view(np.int64)


def make_table(columns: Columns, ids: Mapping[int, str], speakers: tuple[str, ...]) -> TurnTable:
    """The table of these turns; `ids` gives the conversation id of each code.

    Raises IndexLost where a thread's positions are not 0, 1, 2 …: then rows are missing.
    """
    codes = sorted(ids)
    dense = np.full((codes[-1] if codes else 0) + 1, -1, np.int32)
    dense[codes] = np.arange(len(codes), dtype=np.int32)
    n = len(columns)
    order = np.argsort(
        columns.conversation.astype(np.int64) << 32 | columns.position, kind="stable"
    )
    thread, place, ts = columns.conversation[order], columns.position[order], columns.ts[order]
    first = np.ones(n, np.bool_)
    first[1:] = thread[1:] != thread[:-1]
    _check_places(first, place, columns.conversation, dense)
    apart = first.copy()
    apart[1:] |= (ts[1:] - ts[:-1]) > SESSION_GAP_SECONDS
    previous, following = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    session = np.empty(n, np.int32)
    later = np.flatnonzero(~first)
    previous[order[later]] = order[later - 1]
    following[order[later - 1]] = order[later]
    session[order] = np.cumsum(apart) - 1
    return TurnTable(
        conversation=dense[columns.conversation],
        position=columns.position,
        previous=previous,
        following=following,
        session=session,
        role=columns.role,
        speaker=columns.speaker,
        ts=columns.ts,
        length=columns.length,
        flags=columns.flags,
        conversations=tuple(ids[code] for code in codes),
        speakers=speakers,
    )


def _check_places(
    first: NDArray[np.bool_],
    place: NDArray[np.int32],
    conversation: NDArray[np.int32],
    dense: NDArray[np.int32],
) -> None:
    if not len(place):
        return
    expected = np.arange(len(place)) - np.maximum.accumulate(
        np.where(first, np.arange(len(place)), 0)
    )
    if not np.array_equal(expected, place):
        raise IndexLost("rows of a thread are missing")
    if conversation.max() >= len(dense) or (dense[conversation] < 0).any():
        raise IndexLost("rows without a thread")
