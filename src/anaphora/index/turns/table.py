"""Turns in memory, one row each, and the table that is made from them for ranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from anaphora.index.maintenance import IndexLost
from anaphora.index.turns.records import IndexedTurn
from anaphora.rank.turn_table import SESSION_GAP_SECONDS, TurnTable

TURN: Final = np.dtype(
    [
        ("id", "<i8"),
        ("conversation", "<i4"),
        ("position", "<i4"),
        ("role", "i1"),
        ("length", "<i4"),
        ("flags", "<i4"),
        ("ts", "<f8"),
        ("offset", "<i2"),
        ("speaker", "<i2"),
    ]
)
"""A turn: its row in the index file (-1: not in it), its thread's code there, and the columns of
TurnTable."""

_OWN: Final = ("position", "role", "length", "flags", "ts", "offset")


class Speakers:
    """Codes of the names of speakers, in the order of their appearance; -1 for no speaker."""

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


def turn_rows(columns: Sequence[Any], count: int) -> NDArray[Any]:
    """Rows of the type TURN from their columns, each a sequence or one value for all."""
    rows = np.empty(count, TURN)
    for name, column in zip(TURN.names or (), columns, strict=True):
        rows[name] = column
    return rows


@dataclass(frozen=True, slots=True)
class Turns:
    """N turns: `rows` (N,) of the type TURN, and the `hashes` of their texts."""

    rows: NDArray[Any]
    hashes: list[bytes]

    def __len__(self) -> int:
        return len(self.rows)

    def join(self, other: Turns) -> Turns:
        """These turns, then the other ones."""
        if not len(other):
            return self
        return Turns(np.concatenate((self.rows, other.rows)), self.hashes + other.hashes)

    def select(self, keep: NDArray[np.bool_]) -> Turns:
        """The turns for which `keep` is true."""
        pairs = zip(self.hashes, keep.tolist(), strict=True)
        return Turns(self.rows[keep], [hash_ for hash_, stays in pairs if stays])


def no_turns() -> Turns:
    """No turns."""
    return Turns(np.empty(0, TURN), [])


def make_turns(
    code: int, records: Sequence[IndexedTurn], speakers: Speakers | None, first: int = -1
) -> Turns:
    """Turns of the thread with this code; their rows in the index file count from `first`."""
    n = len(records)
    columns_of_records = ([getattr(r, name) for r in records] for name in _OWN)
    ids = np.full(n, -1) if first < 0 else np.arange(first, first + n)
    speaker_codes = -1 if speakers is None else speakers.codes([r.speaker for r in records])
    columns = (ids, code, *columns_of_records, speaker_codes)
    return Turns(turn_rows(columns, n), [r.text_hash for r in records])


def make_table(turns: Turns, ids: Mapping[int, str], speakers: tuple[str, ...]) -> TurnTable:
    """The table of these turns; `ids` gives the conversation id of each code.

    Raises IndexLost if a thread's positions are not 0, 1, 2 …: then rows are missing.
    """
    codes = sorted(ids)
    dense = np.full((codes[-1] if codes else 0) + 1, -1, np.int32)
    dense[codes] = np.arange(len(codes), dtype=np.int32)
    n = len(turns)
    columns = {name: np.ascontiguousarray(turns.rows[name]) for name in TURN.names or ()}
    conversation, position = columns["conversation"], columns["position"]
    order = np.argsort(conversation.astype(np.int64) << 32 | position, kind="stable")
    threads, positions, ts = conversation[order], position[order], columns["ts"][order]
    is_first = np.ones(n, np.bool_)
    is_first[1:] = threads[1:] != threads[:-1]
    _check_places(is_first, positions, conversation, dense)
    apart = is_first.copy()
    apart[1:] |= (ts[1:] - ts[:-1]) > SESSION_GAP_SECONDS
    previous, following = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    session = np.empty(n, np.int32)
    later = np.flatnonzero(~is_first)
    previous[order[later]] = order[later - 1]
    following[order[later - 1]] = order[later]
    session[order] = np.cumsum(apart) - 1
    return TurnTable(
        conversation=dense[conversation],
        position=position,
        previous=previous,
        following=following,
        session=session,
        role=columns["role"],
        speaker=columns["speaker"],
        ts=columns["ts"],
        length=columns["length"],
        flags=columns["flags"],
        offset=columns["offset"],
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
    expected_places = np.arange(len(place)) - np.maximum.accumulate(
        np.where(first, np.arange(len(place)), 0)
    )
    if not np.array_equal(expected_places, place):
        raise IndexLost("rows of a thread are missing")
    if conversation.max() >= len(dense) or (dense[conversation] < 0).any():
        raise IndexLost("rows without a thread")
