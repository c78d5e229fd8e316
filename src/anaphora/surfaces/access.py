"""Access rights of tokens on a server, for REST and MCP alike.

The user who runs a server on this machine has a token of their own, for the page and for their
programs. Its secret is stored in the home, in a file that only this user can read: whoever can read
the file can read the home itself. For a sealed home that does not hold, so nothing is written, and
the secret lives as long as the server. It is accepted at loopback addresses only, and never logged.
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
"""What the secret gives access to: everything, like the files of the home."""

Right: TypeAlias = Literal["change", "index", "any_folder", "whole_home", "verbatim"]
RIGHTS: Final[Mapping[Right, Callable[[Token | None], bool]]] = {
    # Writing. Reading is allowed to every token in its namespaces.
    "change": lambda token: token is None or not token.read_only,
    # Indexing folders on the server's machine, within those that the server allows.
    "index": lambda token: token is None or token.may_index,
    # Indexing any folder: the server's user can read them all anyway.
    "any_folder": lambda token: token is OWN,
    # Information about all namespaces: sizes on disk, counts, the path of the home.
    "whole_home": lambda token: token is None or EVERYTHING in token.namespaces,
    # Reading turns with the secrets in them, if the request asks for that.
    "verbatim": lambda token: token is None or token is OWN,
}
"""Every right that a server checks. None is a caller without a token, if none is required."""

_SECRET: Final = re.compile(rf"{PREFIX}[0-9a-f]{{64}}\n")
_LONGEST: Final = 1024


def may(token: Token | None, right: Right) -> bool:
    """Whether a caller with this token has the right."""
    return RIGHTS[right](token)


def bearer(authorization: str) -> str | None:
    """The secret in an Authorization header; None for another scheme."""
    kind, _, secret = authorization.partition(" ")
    return secret.strip() if kind.lower() == "bearer" else None


def own_secret(home: Path) -> str:
    """The secret of a home, created if there is none yet.

    If it cannot be stored (a sealed or read-only home), it is a new one each time. Raises
    `StoreError` for an unreadable file.
    """
    if place_of(home) is not None:
        return _new()
    stored_secret = kept_secret(home)
    if stored_secret is not None:
        return stored_secret
    secret = _new()
    aside = home / f".{FILE}.{secrets.token_hex(6)}"
    with suppress(OSError):
        make_directory(home)
        try:
            with open(aside, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
                file.write(f"{secret}\n".encode())
            with suppress(FileExistsError):
                # Unlike a rename, a link never replaces a file that another server has written.
                os.link(aside, home / FILE)
                return secret
            stored_secret = kept_secret(home)
            if stored_secret is not None:
                return stored_secret
            # Damaged, or readable by other users: no server can have given it out.
            aside.replace(home / FILE)
        finally:
            aside.unlink(missing_ok=True)
    return secret


def kept_secret(home: Path) -> str | None:
    """The secret stored in a home, or None. Raises `StoreError`.

    A file that other users can read or write, or that belongs to another user, is ignored.
    """
    path = home / FILE
    try:
        file = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise translate(error, "read", path) from error
    try:
        status = os.fstat(file)
        # Windows has no such bits: there the user's folder is protected as a whole.
        is_private = stat.S_ISREG(status.st_mode) and (
            os.name != "posix"
            or (status.st_uid == os.geteuid() and not stat.S_IMODE(status.st_mode) & 0o077)
        )
        text = os.read(file, _LONGEST).decode("ascii", "replace") if is_private else ""
    finally:
        os.close(file)
    return text.rstrip("\n") if _SECRET.fullmatch(text) else None


def is_own(secret: str, own: str | None) -> bool:
    """Compare with the user's own secret in constant time."""
    return own is not None and compare_digest(secret.encode("utf-8", "replace"), own.encode())


def _new() -> str:
    return PREFIX + secrets.token_bytes(32).hex()
