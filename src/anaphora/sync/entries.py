"""An entry of a device's log: patches, compressed, padded and encrypted, in a chain.

A device's entries are numbered from 1, and each names the one before it (`parent`). An entry's id
is the SHA-256 of its header and its parent and ciphertext: who knows one id knows everything before
it. The header is bound to the ciphertext. What a remote sees of an entry is its header, its size
class and when it came:

    {"v": 1, "project": …, "device": …, "number": …, "epoch": …, "parent": …, "hashes": [...],
     "sealed": base64 of nonce (12), ciphertext, tag (16)}

Where all that an entry said was forgotten, or said again in a later one, a remote keeps its header
and its id alone (`"dropped": id` instead of `sealed`). An entry of some device says so (`dropped`
inside): what a remote drops by itself is found out.

`hashes` are HMACs of the paths and conversations that it is about, to look entries up by; `epoch`
is the number of the key. Inside is JSON: the patches, and up to which entry of each other device
this one had read (`seen`): so that a remote which keeps entries back is found out.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from anaphora.errors import RemoteTampered, Tampered
from anaphora.ops.transfer.lines import from_line, to_line
from anaphora.store.crypto.cipher import Cipher
from anaphora.sync.changes import Patch, canonical, patch_of

VERSION: Final = 1
_SMALLEST: Final = 1024
_LENGTH: Final = 4
_MOST: Final = 1 << 30

Seen = Mapping[str, Sequence[Any]]
"""By device, the number and the id of the last entry of it that was read."""


@dataclass(frozen=True, slots=True)
class Header:
    """What a remote sees of an entry."""

    project: str
    device: str
    number: int
    epoch: int
    parent: str
    hashes: tuple[str, ...] = ()

    def line(self) -> dict[str, Any]:
        """Itself as JSON."""
        return {
            "v": VERSION,
            "project": self.project,
            "device": self.device,
            "number": self.number,
            "epoch": self.epoch,
            "parent": self.parent,
            "hashes": list(self.hashes),
        }


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry as it is sent: its header, and what only devices can read."""

    header: Header
    sealed: bytes
    dropped: str | None = None

    @property
    def id(self) -> str:
        """The snapshot id: 64 hexadecimal digits."""
        if self.dropped is not None:
            return self.dropped
        bound = canonical(self.header.line()).encode()
        return hashlib.sha256(bound + b"\n" + self.sealed).hexdigest()

    def data(self) -> bytes:
        """The bytes to send: one line of JSON."""
        if self.dropped is not None:
            return canonical(self.header.line() | {"dropped": self.dropped}).encode() + b"\n"
        sealed = base64.b64encode(self.sealed).decode("ascii")
        return canonical(self.header.line() | {"sealed": sealed}).encode() + b"\n"


@dataclass(frozen=True, slots=True)
class Content:
    """What is in an entry. `dropped` names entries whose content is gone: device, number, id."""

    patches: tuple[Patch, ...] = ()
    seen: Seen = field(default_factory=dict)
    dropped: tuple[tuple[str, int, str], ...] = ()


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("a text is missing")
    return value


def _number(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**53:
        raise TypeError("a number is missing")
    return value


def _hashes(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError("the hashes are missing")
    return tuple(map(_text, value))


_HEADER: Final[Mapping[str, Callable[[Any], Any]]] = {
    "project": _text,
    "device": _text,
    "number": _number,
    "epoch": _number,
    "parent": _text,
    "hashes": _hashes,
}


def size_class(length: int) -> int:
    """How long the padded form of so many bytes is: a power of two, from 1 KiB on."""
    size = _SMALLEST
    while size < length + _LENGTH:
        size *= 2
    return size


def seal(header: Header, content: Content, cipher: Cipher) -> Entry:
    """The entry with this content."""
    seen = {name: list(one) for name, one in content.seen.items()}
    lines = [to_line({"seen": seen, "dropped": [list(one) for one in content.dropped]})]
    lines += [to_line(patch.line()) for patch in content.patches]
    packed = zlib.compress(b"".join(lines), 6)
    padded = len(packed).to_bytes(_LENGTH, "big") + packed
    padded += bytes(size_class(len(packed)) - len(padded))
    return Entry(header, cipher.seal(padded, canonical(header.line()).encode()))


def unseal(entry: Entry, cipher: Cipher, remote: str) -> Content:
    """What is in an entry. `RemoteTampered` for one that no device with the key wrote."""
    header = entry.header
    try:
        bound = canonical(header.line()).encode()
        padded = cipher.open(entry.sealed, bound, f"entry {header.number}")
        length = int.from_bytes(padded[:_LENGTH], "big")
        lines = _unpacked(padded[_LENGTH : _LENGTH + length]).splitlines()
        first = from_line(lines[0])
        dropped = tuple((str(of), int(at), str(name)) for of, at, name in first["dropped"])
        patches = tuple(patch_of(from_line(line)) for line in lines[1:])
        return Content(patches, first["seen"], dropped)
    except Tampered as error:
        raise _tampered(remote, header, error.reason) from None
    except (ValueError, KeyError, IndexError, zlib.error) as error:
        raise _tampered(remote, header, f"it cannot be read ({error})") from None


def _unpacked(packed: bytes) -> bytes:
    made = zlib.decompressobj()
    data = made.decompress(packed, _MOST)
    if made.unconsumed_tail:
        raise ValueError("it is too large")
    return data


def entry_of(data: bytes | Mapping[str, Any], remote: str, device: str, number: int) -> Entry:
    """The entry in these bytes, or this JSON.

    `RemoteTampered` where it is none of that device and number.
    """
    try:
        line = json.loads(data) if isinstance(data, bytes) else data
        header = Header(**{name: read(line[name]) for name, read in _HEADER.items()})
        dropped = _text(line["dropped"]) if "dropped" in line else None
        sealed = b"" if dropped else base64.b64decode(line["sealed"], validate=True)
        if line["v"] != VERSION:
            raise ValueError(f"its version is {line['v']!r}")
    except (ValueError, KeyError, TypeError, binascii.Error) as error:
        raise RemoteTampered(remote, device, number, f"it is not an entry ({error})") from None
    if (header.device, header.number) != (device, number):
        reason = f"it is entry {header.number} of device {header.device}"
        raise RemoteTampered(remote, device, number, reason)
    return Entry(header, sealed, dropped)


def without_content(entry: Entry) -> Entry:
    """The entry as a remote keeps it once what it said is gone. It shows no digests either."""
    return replace(entry, sealed=b"", dropped=entry.id)


def _tampered(remote: str, header: Header, reason: str) -> RemoteTampered:
    return RemoteTampered(remote, header.device, header.number, reason)
