"""The columns of an index's rows on the disk, written at closing for the next opening to read.

An opening otherwise makes them of every row of truth. They are never trusted: rows lie in blocks by
their numbers, each with a digest of all that truth says of these rows, and a block is used where
truth says just that now. So a truth that was changed, mended, or put back to an earlier moment and
gone on from there costs the blocks that it touches, which are read as if they were not here.
Nothing but numbers that truth has in clear is in it, and the digests.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from anaphora.store.crypto.index import IndexSealer

BLOCK: Final = 512
"""Rows that one digest is of. One that changed has this many read again."""

# Another one where columns or what their numbers mean are others.
_FORM: Final = "1"
_KIND: Final = "rows"
_CHECK: Final = struct.Struct("<q")


@dataclass(frozen=True, slots=True)
class Block:
    """`count` rows up to number `upto`, from behind the block before on; what truth says of them.

    `digest` is that of `Records.short_texts`.
    """

    upto: int
    count: int
    digest: str


@dataclass(frozen=True, slots=True)
class RowsSnapshot:
    """Columns of N rows in the order of their numbers, one block after another.

    `seq` is the number of truth that they were made at: what was deleted later may be among them.
    """

    seq: int = -1
    blocks: tuple[Block, ...] = ()
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def begins(self) -> list[int]:
        """Where each block begins among the rows, and last where they end."""
        return [0, *accumulate(block.count for block in self.blocks)]

    def standing(self, seqs: NDArray[np.int64]) -> int:
        """How many rows lie in blocks of which none has changed, by the numbers (N,) of all now."""
        if not self.blocks:
            return 0
        ends = np.array([block.upto for block in self.blocks])
        # A row that changes takes a number behind all of them.
        unchanged = np.bincount(np.searchsorted(ends, seqs), minlength=len(ends) + 1)[: len(ends)]
        counts = np.array([block.count for block in self.blocks])
        return int(counts[unchanged == counts].sum())


def digest_of(ids: str, columns: str) -> str:
    """That of both texts of `Records.short_texts`."""
    digest = hashlib.sha256(ids.encode("utf-8", "surrogatepass"))
    digest.update(b"\0" + columns.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


class SnapshotFile:
    """The file of one index's snapshot. Whoever writes holds the lock of the folder.

    Reading gives an empty one for a file that is torn, of another form, or of other keys.
    """

    def __init__(self, path: Path, sealer: IndexSealer) -> None:
        self._path = path
        self._fresh = path.with_name(f"{path.name}.new")
        self._sealer = sealer

    def read(self) -> RowsSnapshot:
        """What was written last."""
        try:
            return self._parse(self._path.read_bytes())
        except (OSError, ValueError, KeyError, TypeError, struct.error):
            return RowsSnapshot()

    def write(self, snapshot: RowsSnapshot) -> bool:
        """Put it in the place of the last one, in whole; False where the disk refuses."""
        content = self._format(snapshot)
        check = self._sealer.check(_KIND, b"", content)
        try:
            with open(self._fresh, "wb", opener=_private) as file:
                file.write(_CHECK.pack(check))
                file.write(content)
            self._fresh.replace(self._path)
        except OSError:
            # Half of one would lie there until the next closing.
            self.remove()
            return False
        return True

    def remove(self) -> None:
        """Remove it, and what somebody was killed in writing."""
        for path in (self._fresh, self._path):
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def _format(self, snapshot: RowsSnapshot) -> bytes:
        parts = {}
        for name, values in snapshot.columns.items():
            uniform = bool(len(values)) and bool((values == values[0]).all())
            # Of one value for all rows, such as no end, nothing need be repeated.
            parts[name] = values[:1] if uniform else values
        header = {
            "form": _FORM + self._sealer.mark,
            "seq": snapshot.seq,
            "blocks": [[block.upto, block.count, block.digest] for block in snapshot.blocks],
            "columns": [[name, values_.dtype.str, len(values_)] for name, values_ in parts.items()],
        }
        columns = (values_.tobytes() for values_ in parts.values())
        return b"".join((json.dumps(header).encode(), b"\n", *columns))

    def _parse(self, stored: bytes) -> RowsSnapshot:
        (check,), content = _CHECK.unpack_from(stored), stored[_CHECK.size :]
        if self._sealer.check(_KIND, b"", content) != check:
            raise ValueError("it is torn")
        at = content.index(b"\n") + 1
        header = json.loads(content[:at])
        if header["form"] != _FORM + self._sealer.mark:
            raise ValueError("it is of another form")
        blocks = tuple(Block(*one) for one in header["blocks"])
        count, columns = sum(one.count for one in blocks), {}
        for name, dtype, length in header["columns"]:
            values = np.frombuffer(content, dtype, length, at)
            columns[name] = np.broadcast_to(values, (count,))
            at += values.nbytes
        return RowsSnapshot(header["seq"], blocks, columns)


def _private(name: str, flags: int) -> int:
    return os.open(name, flags, 0o600)
