"""Opening a home, sealed or clear, and looking after its master key.

In: where a home lies, and whether it shall be sealed. Out: a `Sealing`, with which rows, threads
and index files are written and read. It fails closed: a sealed home is never opened as a clear
one, and no key is ever made for a home that has one.
"""

from __future__ import annotations

import hmac
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Literal

from anaphora.errors import InvalidInput, MissingKey, Tampered, WrongKey
from anaphora.store.crypto import marker as markers
from anaphora.store.crypto.cipher import Random
from anaphora.store.crypto.columns import Clear, Sealed, Sealer
from anaphora.store.crypto.guard import Guard
from anaphora.store.crypto.index import ClearIndex, IndexSealer, SealedIndex
from anaphora.store.crypto.keepers import KEY_FILE, Keeper, Keychain, KeyFile
from anaphora.store.crypto.keys import KEY_BYTES, Keys, derive, export_key, import_key, unwrap, wrap
from anaphora.store.crypto.marker import Marker
from anaphora.store.crypto.threads import SEALED_SUFFIX, Plain, SealedThreads, ThreadForm
from anaphora.store.disk import make_directory, translate
from anaphora.store.threads.ids import SUFFIX, file_name

Kept = Literal["keychain", "file"]
DEFAULT_NAMESPACE = "default"
# Sealed threads lie among sealed ones: the first files of a folder tell.
_LOOK_AT = 64


def folder_name(namespace: str) -> str:
    """The name of a namespace's folder, to which its threads are bound."""
    return Path(file_name(namespace)).stem


@dataclass(frozen=True, slots=True)
class Home:
    """Where everything of a home lies, and where its keys may be kept.

    `conversations` has the threads of the default namespace; `database` is truth: a path, or a
    PostgreSQL URL; by default the file in `root`. `drop_index` removes what was derived.
    """

    root: Path
    conversations: Path
    database: Path | str | None = None
    keychain: Keeper = field(default_factory=Keychain)
    random: Random = os.urandom
    drop_index: Callable[[], None] | None = None

    @property
    def truth(self) -> Path | str:
        """The database."""
        return self.database if self.database is not None else self.root / "anaphora.db"

    def keeper(self, kept: Kept) -> Keeper:
        """Where the master key is kept."""
        return self.keychain if kept == "keychain" else KeyFile(self.root / KEY_FILE)

    def folders(self) -> Iterator[tuple[str, Path]]:
        """Folder name of the namespace, and folder, of all threads. `StoreError` if unknown."""
        yield DEFAULT_NAMESPACE, self.conversations
        others = self.root / "namespaces"
        try:
            found = sorted(others.iterdir())
        except FileNotFoundError:
            return
        except OSError as error:
            raise translate(error, "read", others) from error
        for place in found:
            yield place.name, place / "conversations"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock under which a home becomes sealed, clear, or gets other keys."""
        from filelock import FileLock

        try:
            make_directory(self.root)
            lock = FileLock(self.root / "sealing.lock", mode=0o600)
            lock.acquire()
        except OSError as error:
            raise translate(error, "lock", self.root) from error
        try:
            yield
        finally:
            lock.release()

    def forget_index(self) -> None:
        """Remove everything derived."""
        if self.drop_index is not None:
            self.drop_index()
        place = self.root / "index"
        try:
            if place.exists():
                shutil.rmtree(place)
        except OSError as error:
            raise translate(error, "remove", place) from error


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
            return Plain(self.guard)
        return SealedThreads(self.keys, folder, self.guard)

    def index(self, namespace: str) -> IndexSealer:
        """How the index of a namespace hides what it writes."""
        return ClearIndex() if self.keys is None else SealedIndex(self.keys, namespace)


def open_home(home: Home, encrypt: bool | Kept | None = None) -> Sealing:
    """How the home is written and read; a conversion that was interrupted is finished first.

    `encrypt` makes a new home sealed (True: the key goes into the keychain; "file": into a file
    of the home, in clear); a sealed home opens as one whatever it says but False. `NoKeyringError`
    where there is no keychain, `MissingKey` or `WrongKey` where the key is not there,
    `InvalidInput` for a home that has clear contents. Rows of an older format are sealed anew.
    """
    marker = markers.read(home.root)
    if marker is None and not encrypt:
        _refuse_sealed_leftovers(home)
        return clear_sealing(home, guarded=True)
    if marker is not None and encrypt is False:
        raise InvalidInput("encrypt", False, "the home is sealed: decrypt it first")
    if marker is None:
        marker = _begin_sealed(home, "file" if encrypt == "file" else "keychain")
    if marker.state != "sealed" or marker.older:
        from anaphora.store.crypto import convert

        return convert.resume(home)
    return sealing_of(home, load(home, marker), guarded=True)


def clear_sealing(home: Home, *, guarded: bool) -> Sealing:
    """How a clear home is written; `guarded` watches whether it becomes sealed."""
    guard = Guard(home.root, None) if guarded else None
    return Sealing(Clear(guard), guard=guard)


def sealing_of(home: Home, keys: Keys, *, guarded: bool, older: bool = False) -> Sealing:
    """How a home with these keys is written; `guarded` watches whether it keeps them.

    `older` opens rows of an older format, too: for conversions.
    """
    guard = Guard(home.root, keys.check) if guarded else None
    return Sealing(Sealed(keys, guard, older=older), keys, guard)


def new_marker(home: Home, kept: Kept, state: markers.State, conversion: int = 0) -> Marker:
    """Make a master key and a data key; the master key is kept when this returns."""
    master, data_key = home.random(KEY_BYTES), home.random(KEY_BYTES)
    keys = Keys(data_key, home.random)
    identity = home.random(8).hex()
    marker = Marker(
        home=identity,
        kept=kept,
        state=state,
        generation=1,
        wrapped=wrap(master, data_key, identity, home.random),
        check=keys.check,
        conversion=conversion,
    )
    home.keeper(kept).put(marker.key_name, master)
    return markers.signed(marker, keys.of("marker"))


def load(home: Home, marker: Marker) -> Keys:
    """The keys of a sealed home. `MissingKey`, `WrongKey`; `Tampered` for a changed marker."""
    return _opened(home, marker, _master(home, marker))


def load_next(home: Home, marker: Marker) -> Keys:
    """The keys that a deep rotation moves to."""
    return Keys(unwrap(_master(home, marker), marker.next, marker.home), home.random)


def wrap_next(home: Home, marker: Marker) -> Marker:
    """The marker with a new data key to move to; not signed yet."""
    data_key = home.random(KEY_BYTES)
    wrapped = wrap(_master(home, marker), data_key, marker.home, home.random)
    return replace(marker, next=wrapped, next_check=Keys(data_key, home.random).check)


def export(home: Home, passphrase: str | None = None, *, raw: bool = False) -> str:
    """The master key as a text to keep elsewhere, protected by `passphrase`.

    Only with `raw` it is the key itself, as 64 hex digits. `InvalidInput` for neither or both.
    """
    if raw == (passphrase is not None):
        raise InvalidInput("passphrase", None, "give one, or ask for the raw key, not both")
    marker = _marker(home)
    master = _master(home, marker)
    _opened(home, marker, master)
    return export_key(master, marker.home, passphrase, home.random)


def import_(
    home: Home, exported: str, passphrase: str | None = None, *, kept: Kept | None = None
) -> None:
    """Keep an exported key for this home, where it is kept now or in `kept`.

    `WrongKey` when it is another home's or an older one; nothing is kept then.
    """
    master = import_key(exported, passphrase)
    with home.locked():
        marker = _marker(home)
        keys = _opened(home, marker, master)
        wanted = kept or marker.kept
        home.keeper(wanted).put(marker.key_name, master)
        if wanted != marker.kept:
            moved = replace(marker, kept=wanted)
            markers.write(home.root, markers.signed(moved, keys.of("marker")))


def rotate(home: Home, *, kept: Kept | None = None, deep: bool = False) -> None:
    """Give the home a new master key, kept where the old one is or in `kept`.

    The data key is wrapped anew: one small file, whatever the home holds. What was exported
    before opens older backups alone. `deep` also makes a new data key and encrypts everything
    again. A crash leaves the old key or the new one in force, and that one is kept.
    """
    if deep and _marker(home).state == "rekeying":
        # It was interrupted after the master key had been changed: the rest is all there is to do.
        from anaphora.store.crypto import convert

        convert.rekey(home)
        return
    with home.locked():
        marker = _marker(home)
        if marker.state != "sealed":
            raise InvalidInput("home", marker.state, "its conversion is unfinished: open the home")
        keys = load(home, marker)
        master = home.random(KEY_BYTES)
        turned = replace(
            marker,
            generation=marker.generation + 1,
            kept=kept or marker.kept,
            wrapped=wrap(master, keys.data_key, marker.home, home.random),
        )
        # The new key is kept before anything needs it, the old one until nothing does.
        home.keeper(turned.kept).put(turned.key_name, master)
        markers.write(home.root, markers.signed(turned, keys.of("marker")))
        home.keeper(marker.kept).drop(marker.key_name)
    if deep:
        from anaphora.store.crypto import convert

        convert.rekey(home)


def _marker(home: Home) -> Marker:
    marker = markers.read(home.root)
    if marker is None:
        raise InvalidInput("home", str(home.root), "it is not sealed")
    return marker


def _master(home: Home, marker: Marker) -> bytes:
    master = home.keeper(marker.kept).get(marker.key_name)
    if master is None:
        where = "keychain" if marker.kept == "keychain" else "key file"
        reason = f"the {where} has no key of this home ({marker.key_name}): import the exported one"
        raise MissingKey(str(home.root), reason)
    return master


def _opened(home: Home, marker: Marker, master: bytes) -> Keys:
    keys = Keys(unwrap(master, marker.wrapped, marker.home), home.random)
    if keys.check != marker.check:
        raise WrongKey("data key", "it is not the one that this home was sealed with")
    expected = markers.signed(marker, keys.of("marker")).mac
    if not hmac.compare_digest(expected, marker.mac):
        raise Tampered(str(home.root / markers.MARKER), "it was changed")
    return keys


def _begin_sealed(home: Home, kept: Kept) -> Marker:
    # A missing library is reported before anything is made.
    derive(b"\0" * KEY_BYTES, "check")
    with home.locked():
        found = markers.read(home.root)
        if found is not None:
            return found
        _refuse_sealed_leftovers(home)
        _refuse_clear_contents(home)
        marker = new_marker(home, kept, "sealed")
        markers.write(home.root, marker)
        return marker


def _refuse_clear_contents(home: Home) -> None:
    truth = home.truth
    if isinstance(truth, Path) and truth.exists():
        raise InvalidInput("encrypt", str(home.root), "the home has clear contents: encrypt it")
    for _, folder in home.folders():
        with suppress(FileNotFoundError, NotADirectoryError):
            if any(place.suffix == SUFFIX for place in folder.iterdir()):
                reason = "there are clear threads here: encrypt the home"
                raise InvalidInput("encrypt", str(folder), reason)


def _refuse_sealed_leftovers(home: Home) -> None:
    """Sealed threads without sealed.json: somebody removed it, or restored half of a backup."""
    for _, folder in home.folders():
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
            if any(entry.name.endswith(SEALED_SUFFIX) for entry in islice(entries, _LOOK_AT)):
                reason = "its threads are sealed and sealed.json is missing; restore that file"
                raise MissingKey(str(home.root), reason)
