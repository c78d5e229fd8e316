"""What home and folder both had when they were compared last, in a file of the home.

It holds names of files, ids and digests, no words. Where it is lost, nothing else is: pages that
are alike are known by the ids in their files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from anaphora.errors import StoreError
from anaphora.store.disk import identity_at, make_directory, replace_file, translate
from anaphora.values.mirror import MirrorProblem

_VERSION: Final = 1
_KEY: Final = "0" * 24


@dataclass(frozen=True, slots=True)
class Pair:
    """A page and its file: the page's present id, the digest of what both said, and the file's
    time of change (nanoseconds) and size in bytes when it was read or written last."""

    file: str
    id: str
    digest: str
    stamp: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Ledger:
    """What is known of a mirror. `version` is the number of changes of the home that it has."""

    folder: str
    pairs: tuple[Pair, ...] = ()
    version: int = -1
    at: datetime | None = None
    problems: tuple[MirrorProblem, ...] = ()
    seen: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    stopped: str | None = None


class LedgerFile:
    """The file in which the ledger of one namespace is kept."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> Ledger | None:
        """What was kept last; None where the namespace is not mirrored. Raises StoreError."""
        try:
            line = json.loads(self._path.read_bytes())
            if line["v"] != _VERSION:
                raise StoreError("read", self._path, "a newer version wrote it")
            return _ledger_of(line)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise translate(error, "read", self._path) from error
        except (ValueError, KeyError, TypeError) as error:
            reason = "it is damaged: delete it, and run `anaphora mirror init` again"
            raise StoreError("read", self._path, reason) from error

    def save(self, ledger: Ledger) -> None:
        """Keep it, whole or not at all. Raises StoreError and its kinds."""
        try:
            make_directory(self._path.parent)
            replace_file(self._path, _KEY, identity_at(self._path), _bytes_of(ledger))
        except OSError as error:
            raise translate(error, "write", self._path) from error

    def drop(self) -> None:
        """Forget it."""
        self._path.unlink(missing_ok=True)


def _bytes_of(ledger: Ledger) -> bytes:
    line = {
        "v": _VERSION,
        "folder": ledger.folder,
        "pairs": [[one.file, one.id, one.digest, *one.stamp] for one in ledger.pairs],
        "version": ledger.version,
        "at": None if ledger.at is None else ledger.at.isoformat(),
        "problems": [[one.file, one.reason] for one in ledger.problems],
        "seen": {file: list(stamp) for file, stamp in ledger.seen.items()},
        "stopped": ledger.stopped,
    }
    return json.dumps(line).encode() + b"\n"


def _ledger_of(line: Mapping[str, Any]) -> Ledger:
    return Ledger(
        str(line["folder"]),
        tuple(
            Pair(str(file), str(id_), str(digest), (int(changed), int(size)))
            for file, id_, digest, changed, size in line["pairs"]
        ),
        int(line["version"]),
        None if line["at"] is None else datetime.fromisoformat(line["at"]),
        tuple(MirrorProblem(file, reason) for file, reason in line["problems"]),
        {file: (int(stamp[0]), int(stamp[1])) for file, stamp in line["seen"].items()},
        line["stopped"],
    )
