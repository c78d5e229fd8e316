"""What lies in a sealed home in clear, because nothing of ours put it there.

In: a home. Out: paths of files and folders that sealing knows nothing of: notes, copies that
somebody made, what other programs keep. It reads names only, and never changes anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from anaphora.core.config import SETTINGS_FILE
from anaphora.store.crypto.keepers import KEY_FILE
from anaphora.store.crypto.marker import MARKER
from anaphora.store.crypto.threads import SEALED_SUFFIX
from anaphora.store.threads.folder import CORRUPT
from anaphora.store.threads.locks import FOLDER

if TYPE_CHECKING:
    from anaphora.store.crypto.home import Home

_LOCKS: Final = ("sealing.lock", "anaphora.db.lock", FOLDER)
_DATABASE: Final = ("anaphora.db", "anaphora.db-wal", "anaphora.db-shm", "anaphora.db-journal")
_OURS: Final = frozenset(
    (MARKER, KEY_FILE, SETTINGS_FILE, "index", "namespaces", *_LOCKS, *_DATABASE)
)


def left_in_clear(home: Home) -> tuple[str, ...]:
    """What is not ours, by path, in order; a folder stands for all that is in it."""
    return tuple(sorted(map(str, _strangers(home))))


def _strangers(home: Home) -> Iterator[Path]:
    threads = [folder for _, folder in home.folders()]
    yield from (p for p in _entries(home.root) if p.name not in _OURS and p not in threads)
    yield from (path for path in _entries(home.root / "namespaces") if not path.is_dir())
    for folder in threads:
        yield from _beside_threads(folder)
        if folder != home.conversations:
            yield from (path for path in _entries(folder.parent) if path != folder)


def _beside_threads(folder: Path) -> Iterator[Path]:
    for path in _entries(folder):
        if path.name not in (FOLDER, CORRUPT) and not path.name.endswith(SEALED_SUFFIX):
            yield path
    # What was set aside has a number behind its name.
    yield from (p for p in _entries(folder / CORRUPT) if not p.stem.endswith(SEALED_SUFFIX))


def _entries(folder: Path) -> list[Path]:
    with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
        return list(folder.iterdir())
    return []
