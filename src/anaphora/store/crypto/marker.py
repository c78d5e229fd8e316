"""`sealed.json`: the file that says that a home is encrypted, by which key, and in which state.

It holds no secret: the data key in it is wrapped by the master key. A MAC under the data key covers
every field, so that without the key no program can be told to decrypt a home. A `Guard` tells a
process that has the home open when the marker changes: it must not write clear rows into a home
that another process has encrypted, nor the other way round.
"""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from anaphora.errors import SchemaTooOld, SealChanged, StoreError, Tampered
from anaphora.store.disk import (
    identity_at,
    identity_of,
    make_directory,
    replace_file,
    sync_directory,
    translate,
)

MARKER = "sealed.json"
FORMAT = 2
"""The format of sealed rows, of which one column is bound to the whole row."""
State = Literal["sealed", "encrypting", "decrypting", "rekeying"]
Kept = Literal["keychain", "file"]
"""Where a master key is."""
_TEMPORARY_KEY = "1" * 24

Place = tuple[int, int, int, int] | None
"""Identity of the marker file, None for none: tells cheaply whether it is still the same one."""


@dataclass(frozen=True, slots=True)
class Marker:
    """What `sealed.json` says.

    `home` is the id of the home; `kept` is where the master key is; `generation` counts master
    keys. `audit` has the heads of audit trails that the home's key vouches for, by namespace.
    `wrapped` is the data key, sealed by the master key, and `check` identifies it; `next`
    and `next_check` are those of the data key that a deep rotation moves to. `conversion` is the
    number of the conversion under way, 0 for none. `version` is the format of the rows. `mac`
    covers all the rest.
    """

    home: str
    kept: Kept
    state: State
    generation: int
    wrapped: str
    check: str
    conversion: int = 0
    next: str = ""
    next_check: str = ""
    version: int = FORMAT
    mac: str = ""
    audit: dict[str, list[str]] = field(default_factory=dict)

    @property
    def key_name(self) -> str:
        """The name under which the master key is kept."""
        return f"{self.home}.{self.generation}"


def place_of(home: Path) -> Place:
    """The identity of the marker in `home`; None for none. `StoreError` if unknown."""
    path = f"{home}{os.sep}{MARKER}"
    try:
        return identity_of(os.stat(path))  # noqa: PTH116 - called at every read; Path is slower
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise translate(error, "read", path) from error


def read(home: Path) -> Marker | None:
    """The marker of a home; None when the home is not sealed.

    `Tampered` when it makes no sense, `SchemaTooOld` for rows of an older format.
    """
    path = home / MARKER
    try:
        fields = json.loads(path.read_bytes())
        marker = Marker(**fields)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise translate(error, "read", path) from error
    except (ValueError, TypeError) as error:
        raise Tampered(str(path), "it was not written by this program") from error
    # "renewing": a build that read the older format was stopped while it sealed the rows anew.
    if marker.version in range(1, FORMAT) or str(marker.state) == "renewing":
        raise SchemaTooOld(path, str(FORMAT - 1), str(FORMAT))
    if marker.version != FORMAT:
        raise StoreError("open", path, f"its format {marker.version} is newer than this program")
    if marker.state not in get_args(State) or marker.kept not in get_args(Kept):
        raise Tampered(str(path), "it was not written by this program")
    return marker


def signed(marker: Marker, key: bytes) -> Marker:
    """The marker with the MAC that belongs to it under `key`."""
    text = json.dumps(_fields(replace(marker, mac="")), sort_keys=True).encode()
    return replace(marker, mac=hmac.digest(key, text, "sha256").hex())


def _fields(marker: Marker) -> dict[str, Any]:
    """What the file has; builds that know of no trails read it where there is none."""
    fields = asdict(marker)
    return fields if marker.audit else {k: v for k, v in fields.items() if k != "audit"}


def write(home: Path, marker: Marker) -> None:
    """Put the marker in place, in one step, for good. `StoreError` and its kinds."""
    path = home / MARKER
    text = json.dumps(_fields(marker), indent=1).encode() + b"\n"
    try:
        make_directory(home)
        replace_file(path, _TEMPORARY_KEY, identity_at(path), text)
    except OSError as error:
        raise translate(error, "write", path) from error


def remove(home: Path) -> None:
    """Take the marker away: the home is clear from now on."""
    path = home / MARKER
    try:
        path.unlink(missing_ok=True)
        sync_directory(home)
    except OSError as error:
        raise translate(error, "remove", path) from error


class Guard:
    """Watches the marker of one home, or nothing. `key_check` is the data key's, None for a clear
    home; `vouch` puts the heads of a namespace's audit trail into the marker."""

    def __init__(
        self,
        home: Path | None = None,
        key_check: str | None = None,
        vouch: Callable[[str, list[str]], object] | None = None,
    ) -> None:
        self._home = home
        self._key_check = key_check
        self._place = place_of(home) if home is not None and key_check is not None else None
        self._vouch = vouch
        self._audit: tuple[Place, Mapping[str, list[str]]] = (None, {})

    def vouch(self, namespace: str, heads: list[str]) -> None:
        """Let the marker vouch for these heads of an audit trail; with none, for nothing."""
        if self._vouch is not None and self.audited(namespace) != heads:
            self._vouch(namespace, heads)

    def audited(self, namespace: str) -> list[str]:
        """The heads of the namespace's audit trail that the marker vouches for."""
        if self._home is None or self._key_check is None:
            return []
        position = place_of(self._home)
        if position != self._audit[0]:
            marker = read(self._home)
            self._audit = position, marker.audit if marker is not None else {}
        return self._audit[1].get(namespace, [])

    def check(self) -> None:
        """Raise `SealChanged` when the home was sealed, opened up or given another data key."""
        if self._home is None or (position := place_of(self._home)) == self._place:
            return
        marker = read(self._home)
        expected_check = marker.check if marker is not None and marker.state == "sealed" else None
        if expected_check != self._key_check or (marker is not None and expected_check is None):
            reason = "it was encrypted, decrypted or re-keyed meanwhile: reopen it"
            raise SealChanged(str(self._home), reason)
        # A new master key alone changes nothing for a process that has the data key.
        self._place = position


class HomeForm:
    """How something of a home is kept, clear or sealed; `guard` watches whether it still is."""

    def __init__(self, guard: Guard | None = None) -> None:
        guard = guard or Guard()
        self.check, self.audited, self.vouch = guard.check, guard.audited, guard.vouch
