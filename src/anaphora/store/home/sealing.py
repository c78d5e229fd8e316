"""Where everything of a home lies, and how an open home is written and read.

A `Sealing` gives rows, thread files and index files the form that the home has: clear, or
encrypted with the home's keys.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from anaphora.errors import StoreError
from anaphora.settings import SETTINGS_FILE, Settings
from anaphora.store.crypto import marker as markers
from anaphora.store.crypto.cipher import (
    Keys,
    Random,
)
from anaphora.store.crypto.columns import ClearRows, SealedRows, Sealer
from anaphora.store.crypto.index import ClearIndex, IndexSealer, SealedIndex
from anaphora.store.crypto.key_stores import KEY_FILE, Keychain, KeyFile, KeyStore
from anaphora.store.crypto.marker import Guard, Kept
from anaphora.store.disk import make_directory, translate
from anaphora.store.threads.forms import PlainThreads, SealedThreads, ThreadForm
from anaphora.store.threads.ids import escaped_name

DEFAULT_NAMESPACE = "default"
_PATIENCE = 2.0


def folder_name(namespace: str) -> str:
    """The name of a namespace's folder, to which its threads are bound."""
    return Path(escaped_name(namespace)).stem


@dataclass(frozen=True, slots=True)
class Home:
    """Where everything of a home lies, and where its keys may be kept.

    `conversations` has the threads of the default namespace; `database` is a path, or a
    PostgreSQL URL; by default the file in `root`.
    """

    root: Path
    conversations: Path
    database: Path | str | None = None
    keychain: KeyStore = field(default_factory=Keychain)
    random: Random = os.urandom

    @classmethod
    def of(cls, settings: Settings) -> Home:
        """The home at the places that settings name."""
        return cls(settings.home, settings.conversations, settings.database)

    @property
    def truth(self) -> Path | str:
        """The database."""
        return self.database if self.database is not None else self.root / "anaphora.db"

    @property
    def is_begun(self) -> bool:
        """Whether anything was ever stored in it. What cannot be looked at may have been."""
        if not isinstance(self.truth, Path):
            return True
        files = (self.truth, self.root / markers.MARKER, self.root / SETTINGS_FILE)
        try:
            return any(path.exists() for path in files) or any(
                any(folder.iterdir()) for _, folder in self.folders() if folder.is_dir()
            )
        except (OSError, StoreError):
            return True

    def key_store(self, kept: Kept) -> KeyStore:
        """Where the master key is kept."""
        return self.keychain if kept == "keychain" else KeyFile(self.root / KEY_FILE)

    def folder(self, namespace: str) -> Path:
        """Where the threads of a namespace lie."""
        if namespace == DEFAULT_NAMESPACE:
            return self.conversations
        return self.root / "namespaces" / folder_name(namespace) / "conversations"

    def folders(self) -> Iterator[tuple[str, Path]]:
        """Folder name of the namespace, and folder, of all threads. `StoreError` if unknown."""
        yield DEFAULT_NAMESPACE, self.conversations
        namespaces = self.root / "namespaces"
        try:
            folders = sorted(namespaces.iterdir())
        except FileNotFoundError:
            return
        except OSError as error:
            raise translate(error, "read", namespaces) from error
        for folder in folders:
            yield folder.name, folder / "conversations"

    @contextmanager
    def locked(self, patience: float = -1) -> Iterator[None]:
        """Hold the lock under which a home becomes sealed, clear, or gets other keys.

        `StoreError` where it cannot be had, within so many seconds if that is not negative.
        """
        from filelock import FileLock

        try:
            make_directory(self.root)
            lock = FileLock(self.root / "sealing.lock", mode=0o600)
            lock.acquire(timeout=patience)
        except OSError as error:
            raise translate(error, "lock", self.root) from error
        try:
            yield
        finally:
            lock.release()

    def forget_index(self) -> None:
        """Remove everything derived."""
        index = self.root / "index"
        try:
            if index.exists():
                shutil.rmtree(index)
        except OSError as error:
            raise translate(error, "remove", index) from error


@dataclass(frozen=True, slots=True)
class Sealing:
    """How an open home is written and read. `keys` is None for a clear home."""

    rows: Sealer
    keys: Keys | None = None
    guard: Guard | None = None

    @property
    def sealed(self) -> bool:
        """Whether the home is encrypted."""
        return self.keys is not None

    def threads(self, namespace: str) -> ThreadForm:
        """The form of a namespace's thread files."""
        return self.threads_in(folder_name(namespace))

    def threads_in(self, folder: str) -> ThreadForm:
        """The form of the thread files of the namespace with this folder name."""
        if self.keys is None:
            return PlainThreads(self.guard)
        return SealedThreads(self.keys, folder, self.guard)

    def index(self, namespace: str) -> IndexSealer:
        """How the index of a namespace hides what it writes."""
        return ClearIndex() if self.keys is None else SealedIndex(self.keys, namespace)


def clear_sealing(home: Home, *, guarded: bool) -> Sealing:
    """How a clear home is written; `guarded` watches whether it becomes sealed."""
    guard = Guard(home.root, None) if guarded else None
    return Sealing(ClearRows(guard), guard=guard)


def sealing_of(home: Home, keys: Keys, *, guarded: bool) -> Sealing:
    """How a home with these keys is written; `guarded` watches whether it keeps them."""

    def vouch(namespace: str, heads: list[str]) -> None:
        # A conversion may hold the lock and wait for the write that this is part of. Where the home
        # cannot be written, what was vouched for before stays.
        with suppress(StoreError), home.locked(_PATIENCE):
            marker = markers.read(home.root)
            if marker is None or marker.state != "sealed":
                return
            audit = {**marker.audit, namespace: heads}
            marker = replace(marker, audit={name: of for name, of in audit.items() if of})
            markers.write(home.root, markers.signed(marker, keys.of("marker")))

    guard = Guard(home.root, keys.check, vouch) if guarded else None
    return Sealing(SealedRows(keys, guard), keys, guard)
