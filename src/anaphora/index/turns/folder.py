"""The folder of an index of turns: its file, and its ANN index.

Problems of the index are never raised: a torn file is made anew; if the directory cannot be
written, the file is only read, or is in memory.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from anaphora.index.file import remove_index_file
from anaphora.index.maintenance import IndexBusy, IndexLost, try_lock
from anaphora.index.turns.ledger import TurnIndexFile
from anaphora.index.turns.vectors import ann_folder
from anaphora.store.crypto.index import CLEAR_INDEX, IndexSealer
from anaphora.store.disk import make_directory

_FILE = "turns.sqlite"
_ATTEMPTS = 6


@dataclass(frozen=True, slots=True)
class IndexFolder:
    """The directory of one namespace's index of turns."""

    directory: Path
    sealer: IndexSealer = CLEAR_INDEX

    @property
    def ann(self) -> Path:
        """The folder of the ANN index, with one folder per embedder."""
        return self.directory / "ann"

    def begun(self) -> bool:
        """Whether there is an index file: the first turn makes one, a query does not."""
        with suppress(OSError):
            return (self.directory / _FILE).exists()
        return False

    def open(self, embedder: str) -> tuple[TurnIndexFile, str]:
        """Open the index file, made anew if it is torn; and why it cannot be written, or ""."""
        # An older version kept words there, which may have been forgotten since.
        shutil.rmtree(self.directory / "words", ignore_errors=True)
        reason = ""
        for attempt in range(_ATTEMPTS):
            try:
                make_directory(self.directory)
                return TurnIndexFile(self.directory / _FILE, embedder, sealer=self.sealer), ""
            except IndexLost as error:
                reason = str(error)
                self.discard()
            except IndexBusy as error:
                # Another process is making the file, which takes some milliseconds.
                reason = str(error)
                time.sleep(0.01 * attempt)
            except OSError as error:
                reason = str(error)
                break
        with suppress(IndexLost, IndexBusy, OSError):
            if (self.directory / _FILE).is_file():
                path = self.directory / _FILE
                return TurnIndexFile(path, embedder, read_only=True, sealer=self.sealer), reason
        return self.in_memory(embedder), reason

    def in_memory(self, embedder: str) -> TurnIndexFile:
        """An index file in memory."""
        return TurnIndexFile(None, embedder, sealer=self.sealer)

    def discard(self) -> bool:
        """Remove the index from the disk; False if another process is doing so."""
        with try_lock(self.directory, "index.lock") as is_locked:
            if not is_locked:
                return False
            with suppress(OSError):
                remove_index_file(self.directory / _FILE)
            shutil.rmtree(self.ann, ignore_errors=True)
            return True

    def size(self) -> int:
        """Bytes on disk."""
        with suppress(OSError):
            return sum(p.stat().st_size for p in self.directory.rglob("*") if p.is_file())
        return 0

    def remove_ann_but(self, embedders: Iterable[str]) -> None:
        """Remove the vectors of other embedders: they can be of forgotten texts."""
        remove_all_but(self.ann, {ann_folder(embedder) for embedder in embedders})


def remove_all_but(folder: Path, names: Collection[str]) -> None:
    """Remove all that is in `folder` except what has one of these names."""
    with suppress(OSError):
        for path in list(folder.iterdir()):
            if path.name in names:
                continue
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                with suppress(OSError):
                    path.unlink()
