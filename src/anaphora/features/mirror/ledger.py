"""The last common state of home and folder, in a file of the home.

It contains names of files, ids and digests, but no text: a file whose name contains a secret is
renamed before it is recorded. `planned` are files that are about to be written. Losing the ledger
loses nothing else: files are matched with pages by their ids.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from anaphora.errors import StoreError
from anaphora.features.mirror.values import MirrorProblem
from anaphora.store.disk import identity_at, make_directory, replace_file, translate

_VERSION: Final = 1
_KEY: Final = "0" * 24


@dataclass(frozen=True, slots=True)
class PageFile:
    """A page and its file: the page's present id, the digest of both, the file's time of
    change (nanoseconds) and size in bytes when it was read or written last, and the digest of its
    text alone ("" in ledgers of older versions)."""

    file: str
    id: str
    digest: str
    stamp: tuple[int, int]
    words: str = ""


@dataclass(frozen=True, slots=True)
class MirrorState:
    """The state of a mirror. `version` is the number of the last change of the home in it."""

    folder: str
    pairs: tuple[PageFile, ...] = ()
    version: int = -1
    at: datetime | None = None
    problems: tuple[MirrorProblem, ...] = ()
    seen: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    stopped: str | None = None
    planned: tuple[PageFile, ...] = ()


def ledger_path(root: Path, namespace: str) -> Path:
    """Where the ledger of a namespace lies in a home."""
    name = hashlib.sha256(f"mirror {namespace}".encode()).hexdigest()[:16]
    return root / "mirrors" / f"{name}.json"


class LedgerFile:
    """The file of the ledger of one namespace."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> MirrorState | None:
        """The saved ledger; None if the namespace is not mirrored. Raises StoreError."""
        try:
            line = json.loads(self._path.read_bytes())
            if line["v"] != _VERSION:
                raise StoreError("read", self._path, "a newer version wrote it")
            return MirrorState(
                str(line["folder"]),
                tuple(map(_pair_of, line["pairs"])),
                int(line["version"]),
                None if line["at"] is None else datetime.fromisoformat(line["at"]),
                tuple(MirrorProblem(file, reason) for file, reason in line["problems"]),
                {file: (int(stamp[0]), int(stamp[1])) for file, stamp in line["seen"].items()},
                line["stopped"],
                tuple(map(_pair_of, line.get("planned", ()))),
            )
        except FileNotFoundError:
            return None
        except OSError as error:
            raise translate(error, "read", self._path) from error
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(
                "read", self._path, "it is damaged: delete it, and run `anaphora mirror init` again"
            ) from error

    def save(self, ledger: MirrorState) -> None:
        """Save it atomically. Raises StoreError and its kinds."""
        line = {
            "v": _VERSION,
            "folder": ledger.folder,
            "pairs": [_line_of(pair) for pair in ledger.pairs],
            "version": ledger.version,
            "at": None if ledger.at is None else ledger.at.isoformat(),
            "problems": [[problem.file, problem.reason] for problem in ledger.problems],
            "seen": {file: list(stamp) for file, stamp in ledger.seen.items()},
            "stopped": ledger.stopped,
            "planned": [_line_of(pair) for pair in ledger.planned],
        }
        payload = json.dumps(line).encode() + b"\n"
        try:
            make_directory(self._path.parent)
            replace_file(self._path, _KEY, identity_at(self._path), payload)
        except OSError as error:
            raise translate(error, "write", self._path) from error

    def drop(self) -> None:
        """Delete it."""
        self._path.unlink(missing_ok=True)


def _line_of(pair: PageFile) -> list[Any]:
    return [pair.file, pair.id, pair.digest, *pair.stamp, pair.words]


def _pair_of(line: Sequence[Any]) -> PageFile:
    file, record_id, digest, changed_at, size, *words = line
    return PageFile(
        str(file),
        str(record_id),
        str(digest),
        (int(changed_at), int(size)),
        str(words[0]) if words else "",
    )
