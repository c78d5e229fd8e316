"""The columns of an index on disk, written on closing so that the next opening is quick.

Without them, opening reads every row of the database. They are never trusted: rows are stored in
blocks by their numbers, each with a digest of its rows in the database, and a block is only used
while the digest still matches. If the database was changed, repaired, or restored from a backup
and changed since, the affected blocks are read from it again. The file contains only numbers that
are unencrypted in the database, and the digests.
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
"""Rows per digest. If one row changes, this many are read again."""

# Changes with the columns and the meaning of their numbers.
_FORM: Final = "1"
_KIND: Final = "rows"
_CHECK: Final = struct.Struct("<q")


@dataclass(frozen=True, slots=True)
class SnapshotBlock:
    """`count` rows after those of the previous block, up to number `upto`.

    `digest` is that of `Records.short_texts`.
    """

    upto: int
    count: int
    digest: str


@dataclass(frozen=True, slots=True)
class RowsSnapshot:
    """Columns of N rows in the order of their numbers, one block after another.

    `seq` is the number of the database at which it was made: rows deleted later may be among them.
    """

    seq: int = -1
    blocks: tuple[SnapshotBlock, ...] = ()
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def begins(self) -> list[int]:
        """The first row of each block, and the end of the last block."""
        return [0, *accumulate(block.count for block in self.blocks)]

    def standing(self, seqs: NDArray[np.int64]) -> int:
        """How many rows are in unchanged blocks, by the current numbers (N,) of all rows."""
        if not self.blocks:
            return 0
        ends = np.array([block.upto for block in self.blocks])
        # A changed row has a number beyond all blocks.
        unchanged_counts = np.bincount(np.searchsorted(ends, seqs), minlength=len(ends) + 1)[
            : len(ends)
        ]
        counts = np.array([block.count for block in self.blocks])
        return int(counts[unchanged_counts == counts].sum())


def digest_of(ids: str, columns: str) -> str:
    """The digest of both texts of `Records.short_texts`."""
    digest = hashlib.sha256(ids.encode("utf-8", "surrogatepass"))
    digest.update(b"\0" + columns.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


class SnapshotFile:
    """The file with the snapshot of one index. A writer holds the lock of the folder.

    Reading gives an empty snapshot if the file is torn, or has another format or other keys.
    """

    def __init__(self, path: Path, sealer: IndexSealer) -> None:
        self._path = path
        self._fresh = path.with_name(f"{path.name}.new")
        self._sealer = sealer

    def read(self) -> RowsSnapshot:
        """The snapshot that was written last."""
        try:
            return self._parse(self._path.read_bytes())
        except (OSError, ValueError, KeyError, TypeError, struct.error):
            return RowsSnapshot()

    def write(self, snapshot: RowsSnapshot) -> bool:
        """Replace the last snapshot atomically; False if the disk refuses."""
        parts = {}
        for name, values in snapshot.columns.items():
            uniform = bool(len(values)) and bool((values == values[0]).all())
            # A value that all rows share, such as no end, is stored once.
            parts[name] = values[:1] if uniform else values
        header = {
            "form": _FORM + self._sealer.mark,
            "seq": snapshot.seq,
            "blocks": [[block.upto, block.count, block.digest] for block in snapshot.blocks],
            "columns": [[name, values_.dtype.str, len(values_)] for name, values_ in parts.items()],
        }
        columns = (values_.tobytes() for values_ in parts.values())
        content = b"".join((json.dumps(header).encode(), b"\n", *columns))
        check = self._sealer.check(_KIND, b"", content)
        try:
            with open(
                self._fresh, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)
            ) as file:
                file.write(_CHECK.pack(check))
                file.write(content)
            self._fresh.replace(self._path)
        except OSError:
            # Otherwise a partial file would stay until the next closing.
            self.remove()
            return False
        return True

    def remove(self) -> None:
        """Remove the file, and a partial one left by a killed process."""
        for path in (self._fresh, self._path):
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def _parse(self, stored: bytes) -> RowsSnapshot:
        (check,), content = _CHECK.unpack_from(stored), stored[_CHECK.size :]
        if self._sealer.check(_KIND, b"", content) != check:
            raise ValueError("it is torn")
        at = content.index(b"\n") + 1
        header = json.loads(content[:at])
        if header["form"] != _FORM + self._sealer.mark:
            raise ValueError("it is of another form")
        blocks = tuple(SnapshotBlock(*stored_block) for stored_block in header["blocks"])
        count, columns = sum(block.count for block in blocks), {}
        for name, dtype, length in header["columns"]:
            values = np.frombuffer(content, dtype, length, at)
            columns[name] = np.broadcast_to(values, (count,))
            at += values.nbytes
        return RowsSnapshot(header["seq"], blocks, columns)
