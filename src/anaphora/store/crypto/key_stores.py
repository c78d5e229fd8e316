"""Stores of a master key: the keychain of the operating system, or a file by explicit choice.

A key's name is its home and generation. What refuses raises `NoKeyringError` or `StoreError`;
nothing falls back to anything, and no key is ever made here.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from anaphora.errors import MissingExtra, NoKeyringError
from anaphora.store.disk import (
    identity_at,
    make_directory,
    replace_file,
    sync_directory,
    translate,
)

SERVICE = "anaphora"
KEY_FILE = "master.key"
_ADVICE = "choose the key file explicitly (encrypt='file'), or make a keychain available"
_LINE = re.compile(r"(\S+) ([0-9a-f]{64})\Z")
_TEMPORARY_KEY = "0" * 24
_STATEMENT = (
    "# The master key of this Anaphora home, in clear. Whoever can read this file can read\n"
    "# the home; a backup of the home that includes this file is not encrypted in effect.\n"
)


class Keychain:
    """The keychain of the user, through `keyring`, under the service "anaphora".

    `backend` is a `keyring` backend, by default the one that `keyring` finds best.
    """

    def __init__(self, backend: Any = None) -> None:
        self._backend = backend

    def name(self) -> str:
        """What the keychain calls itself, without a prompt. `NoKeyringError` when there is none."""
        backend = self._load_backend()
        try:
            usable, name = backend.priority > 0, str(backend.name)
        except (RuntimeError, OSError) as error:
            raise _no_keychain(error) from error
        if not usable:
            raise NoKeyringError("keychain", f"there is none; {_ADVICE}")
        return name

    def get(self, name: str) -> bytes | None:
        """The key of this name. `NoKeyringError` when there is no keychain to look in."""
        key_text = self._call("get_password", name)
        if key_text is None:
            return None
        if not re.fullmatch(r"[0-9a-f]{64}", key_text):
            raise NoKeyringError("keychain", f"the entry {name} is not a valid key")
        return bytes.fromhex(key_text)

    def put(self, name: str, key: bytes) -> None:
        """Keep a key. `NoKeyringError` when the keychain refuses, or keeps nothing."""
        self._call("set_password", name, key.hex())
        if self.get(name) != key:
            raise NoKeyringError("keychain", f"it stored the key but does not return it; {_ADVICE}")

    def drop(self, name: str) -> None:
        """Forget a key."""
        if self._call("get_password", name) is not None:
            self._call("delete_password", name)

    def _load_backend(self) -> Any:
        try:
            import keyring
        except ModuleNotFoundError as error:
            raise MissingExtra("encryption", "keyring") from error
        try:
            return self._backend if self._backend is not None else keyring.get_keyring()
        except (RuntimeError, OSError) as error:
            raise _no_keychain(error) from error

    def _call(self, operation: str, *arguments: str) -> Any:
        backend = self._load_backend()
        from keyring.errors import KeyringError

        try:
            return getattr(backend, operation)(SERVICE, *arguments)
        except (KeyringError, RuntimeError, OSError) as error:
            # Backends raise RuntimeError when nothing is installed, OSError when a service is gone.
            raise _no_keychain(error) from error


def _no_keychain(error: Exception) -> NoKeyringError:
    reason = " ".join(str(error).split()) or type(error).__name__
    return NoKeyringError("keychain", f"{reason}; {_ADVICE}")


class KeyFile:
    """A file of mode 0600 with the keys in clear: against other users, not against a thief."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def get(self, name: str) -> bytes | None:
        """The key of this name. `StoreError` when the file cannot be read."""
        key_text = self._keys().get(name)
        return bytes.fromhex(key_text) if key_text else None

    def put(self, name: str, key: bytes) -> None:
        """Keep a key beside those that are there. `StoreError` and its kinds."""
        self._write(self._keys() | {name: key.hex()})

    def drop(self, name: str) -> None:
        """Forget a key; the file goes with the last one."""
        keys = self._keys()
        if keys.pop(name, None) is None:
            return
        if keys:
            self._write(keys)
            return
        try:
            self.path.unlink()
            sync_directory(self.path.parent)
        except OSError as error:
            raise translate(error, "remove", self.path) from error

    def _keys(self) -> dict[str, str]:
        try:
            lines = self.path.read_text("ascii", "replace").splitlines()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise translate(error, "read", self.path) from error
        return {match[1]: match[2] for line in lines if (match := _LINE.match(line))}

    def _write(self, keys: dict[str, str]) -> None:
        text = _STATEMENT + "".join(f"{name} {key}\n" for name, key in keys.items())

        try:
            make_directory(self.path.parent)
            # A copy that came with wider rights must not hand them on to a new key.
            if os.name != "nt":
                with suppress(FileNotFoundError):
                    self.path.chmod(0o600)
            replace_file(self.path, _TEMPORARY_KEY, identity_at(self.path), text.encode("ascii"))
        except OSError as error:
            raise translate(error, "write", self.path) from error


KeyStore = Keychain | KeyFile
"""A place that keeps keys by name."""
