"""Sealing a home, opening it up, and looking after its key: `anaphora encrypt`, `anaphora key`.

Nobody of this process may have the home open; who has it open elsewhere gets `SealChanged`. No key
is ever printed, and the caller says where it is kept. What encryption protects against, and what it
does not, is in docs/security.md.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

from anaphora.errors import InvalidInput
from anaphora.settings import load_settings
from anaphora.store.home.conversion import Converted

if TYPE_CHECKING:
    from anaphora.calls.progress import Progress
    from anaphora.store.home.sealing import Home

__all__ = ["Converted", "Kept", "decrypt", "encrypt", "export_key", "import_key", "rotate_key"]

Place = str | os.PathLike[str] | None
Kept = Literal["keychain", "file"]


def encrypt(
    home: Place = None,
    *,
    kept: Kept = "keychain",
    conversations_dir: Place = None,
    progress: Progress | None = None,
) -> Converted:
    """Seal a clear home, its key in the keychain or in a file of the home.

    Can be killed at any moment: who opens the home next finishes it. Export the key afterwards.
    Raises `InvalidInput` for a home that is sealed or whose truth is on a server, `NoKeyringError`
    before anything was changed, `MissingExtra`, `StoreError`.
    """
    from anaphora.store.home import conversion

    return conversion.encrypt(
        _home(home, conversations_dir), _checked(kept) or "keychain", progress
    )


def decrypt(
    home: Place = None,
    *,
    conversations_dir: Place = None,
    progress: Progress | None = None,
) -> Converted:
    """Open a sealed home up; its key is dropped at the end.

    Raises `InvalidInput` for a clear home, `MissingKey`, `WrongKey`, `StoreError`, and `Tampered`
    before anything was changed when a row does not open.
    """
    from anaphora.store.home import conversion

    return conversion.decrypt(_sealed(home, conversations_dir), progress)


def export_key(home: Place = None, passphrase: str | None = None, *, raw: bool = False) -> str:
    """The key of a sealed home as a text to keep elsewhere, protected by `passphrase` (scrypt).

    Only with `raw` it is the key itself, as 64 hex digits. Raises `InvalidInput` for neither or
    both and for a clear home, `MissingKey`.
    """
    from anaphora.store.home.master_key import export_master_key

    return export_master_key(_home(home), passphrase, raw=raw)


def import_key(
    home: Place, exported: str, passphrase: str | None = None, *, kept: Kept | None = None
) -> None:
    """Keep an exported key for this home (a restored one, say), where it is kept now or in `kept`.

    Raises `WrongKey` for another home's or an older one, and for a wrong passphrase; `InvalidInput`
    for what is no exported key, and for a clear home.
    """
    from anaphora.store.home.master_key import import_master_key

    import_master_key(_sealed(home), exported, passphrase, kept=_checked(kept))


def rotate_key(
    home: Place = None,
    *,
    kept: Kept | None = None,
    deep: bool = False,
    conversations_dir: Place = None,
) -> None:
    """Give the home a new key, kept where the old one is or in `kept`.

    At once, whatever the home holds; keys exported before open older backups alone. `deep` also
    encrypts everything again. Raises `InvalidInput` for a clear home, `MissingKey`, `StoreError`.
    """
    from anaphora.store.home import conversion, master_key

    change = conversion.rotate_keys if deep else master_key.rotate_master_key
    change(_sealed(home, conversations_dir), kept=_checked(kept))


def _home(home: Place, conversations_dir: Place = None) -> Home:
    from anaphora.store.home.sealing import Home

    return Home.of(load_settings(home, conversations_dir))


def _sealed(home: Place, conversations_dir: Place = None) -> Home:
    """A home that is sealed: a mistaken path must not be made one by looking after its key."""
    from anaphora.store.crypto import marker

    sealed_home = _home(home, conversations_dir)
    if marker.read(sealed_home.root) is None:
        raise InvalidInput("home", str(sealed_home.root), "it is not encrypted")
    return sealed_home


def _checked(kept: Kept | None) -> Kept | None:
    if kept not in (None, "keychain", "file"):
        raise InvalidInput("kept", kept, "expected 'keychain' or 'file'")
    return kept
