"""Who may do what through a server: the rights of tokens, for REST and MCP alike.

The user who runs a server on this machine has a token of their own, for the page and for their
programs. Its secret lies in the home, in a file that this user alone can read: who can read the
file can read the home itself. In a sealed home that is not so; there nothing is written, and the
secret lives as long as the server. It never leaves this machine's own addresses, and is never
logged.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from hmac import compare_digest
from pathlib import Path
from typing import Final, Literal, TypeAlias

from anaphora.store.crypto.marker import place_of
from anaphora.store.disk import make_directory, translate
from anaphora.store.tokens import EVERYTHING, PREFIX, Token

FILE: Final = "server.token"
OWN: Final = Token(
    id="own",
    name="this user",
    namespaces=(EVERYTHING,),
    read_only=False,
    created_at=datetime.fromtimestamp(0, UTC),
    may_index=True,
)
"""What the secret opens: everything, as the files of the home do."""

Right: TypeAlias = Literal["change", "index", "any_folder", "whole_home", "verbatim"]
RIGHTS: Final[Mapping[Right, Callable[[Token | None], bool]]] = {
    # To write anything. Reading is what every token may do in its namespaces.
    "change": lambda token: token is None or not token.read_only,
    # To have a folder on the server's machine indexed, of those that the server was told of.
    "index": lambda token: token is None or token.may_index,
    # To have any folder indexed: this user can read them all without us.
    "any_folder": lambda token: token is OWN,
    # To know what concerns all namespaces: sizes on disk, counts, where the home lies.
    "whole_home": lambda token: token is None or EVERYTHING in token.namespaces,
    # To read turns word for word, with the secrets that stand in them, if it asks for that.
    "verbatim": lambda token: token is None or token is OWN,
}
"""Every right that a server asks about. None is a caller without a token, where none is needed."""

_SECRET: Final = re.compile(rf"{PREFIX}[0-9a-f]{{64}}\n")
_LONGEST: Final = 1024


def may(token: Token | None, right: Right) -> bool:
    """Whether a caller with this token has the right."""
    return RIGHTS[right](token)


def bearer(authorization: str) -> str | None:
    """The secret in an Authorization header; None where it is of another kind."""
    kind, _, secret = authorization.partition(" ")
    return secret.strip() if kind.lower() == "bearer" else None


def own_secret(home: Path) -> str:
    """The secret of a home, made if there is none yet.

    Where it cannot be kept (a sealed home, one that is not writable) it is another one each time.
    Raises `StoreError` for a file that cannot be read.
    """
    if place_of(home) is not None:
        return _new()
    found = kept_secret(home)
    if found is not None:
        return found
    secret = _new()
    try:
        return _write_secret(home, secret)
    except OSError:
        return secret


def kept_secret(home: Path) -> str | None:
    """The secret that lies in a home; None without one. Raises `StoreError`.

    A file that others may read or write, or that is another user's, is none: it was known to them.
    """
    path = home / FILE
    try:
        file = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise translate(error, "read", path) from error
    try:
        text = os.read(file, _LONGEST).decode("ascii", "replace") if _private(file) else ""
    finally:
        os.close(file)
    return text.rstrip("\n") if _SECRET.fullmatch(text) else None


def is_own(secret: str, own: str | None) -> bool:
    """Whether a secret is the user's own one; takes as long for any other."""
    return own is not None and compare_digest(secret.encode("utf-8", "replace"), own.encode())


def _new() -> str:
    return PREFIX + secrets.token_bytes(32).hex()


def _write_secret(home: Path, secret: str) -> str:
    """Keep a secret; another one that came first is taken. Raises OSError, `StoreError`."""
    make_directory(home)
    path = home / FILE
    aside = home / f".{FILE}.{secrets.token_hex(6)}"
    try:
        with open(aside, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(f"{secret}\n".encode())
        with suppress(FileExistsError):
            # Unlike a rename, a link never replaces what another server put there meanwhile.
            os.link(aside, path)
            return secret
        found = kept_secret(home)
        if found is None:
            # Damaged, or open to others: nobody can have been told of it by us.
            aside.replace(path)
            return secret
        return found
    finally:
        aside.unlink(missing_ok=True)


def _private(file: int) -> bool:
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode):
        return False
    # Windows has no such bits: there the folder is the user's own.
    return os.name != "posix" or (
        status.st_uid == os.geteuid() and not stat.S_IMODE(status.st_mode) & 0o077
    )
