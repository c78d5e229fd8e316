"""An entry of a device's log: patches, compressed, padded and encrypted, in a chain.

A device's entries are numbered from 1, and each names the one before it (`parent`). An entry's id
is the SHA-256 of its header and its parent and ciphertext: one id therefore fixes everything before
it. The header is bound to the ciphertext. What a remote sees of an entry is its header, its size
class and when it came:

    {"v": 1, "project": …, "device": …, "number": …, "epoch": …, "parent": …, "hashes": [...],
     "sealed": base64 of nonce (12), ciphertext, tag (16), "signature": base64 of 64 bytes}

If the whole content of an entry was forgotten, or repeated in a later one, a remote stores its
header without digests, its signature, and its id (`"dropped": id` instead of `sealed`). An entry of
some device says so (`dropped` inside): an entry that a remote empties by itself is detected.

`hashes` are HMACs of the paths and conversations that it is about, to look entries up by; `epoch`
names the key; the device's signature is that of the id. Inside is JSON: the patches, and up to
which entry of each other device this one had read (`seen`), so that a remote which withholds
entries is detected. A device's first entry announces it (`member`) and says nothing else; others
tell of devices that were `removed`, of a new key (`rotation`), of `keys` that some devices may
lack, and where a new device can begin (`checkpoint`).
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from anaphora.errors import RemoteTampered, Tampered
from anaphora.features.sync.admission import Admission, admission_of
from anaphora.features.sync.changes import Patch, canonical, patch_of
from anaphora.features.sync.membership import Member, Rotation, member_of
from anaphora.store.crypto.cipher import Cipher
from anaphora.store.lines import from_line, to_line
from anaphora.system.bounded import MOST_BYTES, read_json

VERSION: Final = 1
_SMALLEST: Final = 1024
_LENGTH: Final = 4
_MOST_LINES: Final = 100_000
_UNREADABLE: Final = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    MemoryError,
)
"""The exceptions of parsing bytes that no device wrote."""

Seen = Mapping[str, Sequence[Any]]
"""By device, the number and the id of the last entry of it that was read."""


@dataclass(frozen=True, slots=True)
class Header:
    """What a remote sees of an entry."""

    project: str
    device: str
    number: int
    epoch: str
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
class LogEntry:
    """An entry as it is sent: its header, and the content that only devices can read."""

    header: Header
    sealed: bytes
    signature: bytes = b""
    dropped: str | None = None

    @property
    def id(self) -> str:
        """The snapshot id: 64 hexadecimal digits."""
        if self.dropped is not None:
            return self.dropped
        return hashlib.sha256(
            canonical(self.header.line()).encode() + b"\n" + self.sealed
        ).hexdigest()

    def data(self) -> bytes:
        """The bytes to send: one line of JSON."""
        members = {"signature": _encode(self.signature)}
        members |= (
            {"sealed": _encode(self.sealed)} if self.dropped is None else {"dropped": self.dropped}
        )
        return canonical(self.header.line() | members).encode() + b"\n"


@dataclass(frozen=True, slots=True)
class LogCheckpoint:
    """Where a new device begins: its author has repeated all that came before it.

    `covers` are the entries before it, as in `Seen`; `members` all known devices; `removed` the
    removed ones, with the last entry of each that counts; `admission` the facts behind that.
    """

    covers: Seen
    members: tuple[Member, ...]
    removed: Mapping[str, int]
    admission: Admission | None = None

    def line(self) -> dict[str, Any]:
        """Itself as JSON."""
        return {
            "covers": {name: list(head) for name, head in self.covers.items()},
            "members": [member.line() for member in self.members],
            "removed": dict(self.removed),
            "admission": None if self.admission is None else self.admission.line(),
        }


@dataclass(frozen=True, slots=True)
class EntryContent:
    """The content of an entry. `dropped` names emptied entries: device, number, id.

    `at` is when it was made, in microseconds since 1970; `begin` the device and number of the entry
    with the newest checkpoint that its device knows, and when that was made.
    """

    patches: tuple[Patch, ...] = ()
    seen: Seen = field(default_factory=dict)
    dropped: tuple[tuple[str, int, str], ...] = ()
    at: int = 0
    member: Member | None = None
    removed: Mapping[str, int] = field(default_factory=dict)
    rotation: Rotation | None = None
    checkpoint: LogCheckpoint | None = None
    begin: tuple[str, int, int] | None = None
    keys: Mapping[str, str] = field(default_factory=dict)

    def first_line(self) -> dict[str, Any]:
        """All of it but patches, as JSON."""
        members: dict[str, Any] = {
            "seen": {name: list(head) for name, head in self.seen.items()},
            "dropped": [list(reference) for reference in self.dropped],
            "at": self.at,
            "removed": dict(self.removed),
            "keys": dict(self.keys),
            "begin": None if self.begin is None else list(self.begin),
        }
        for name in ("member", "rotation", "checkpoint"):
            part = getattr(self, name)
            members[name] = None if part is None else part.line()
        return {name: fact for name, fact in members.items() if fact}


def _parse_content(line: Mapping[str, Any], patches: tuple[Patch, ...]) -> EntryContent:
    """Parse what `EntryContent.first_line` wrote. Raises ValueError, KeyError or TypeError."""
    member, rotation, begin = line.get("member"), line.get("rotation"), line.get("begin")
    checkpoint = line.get("checkpoint")
    return EntryContent(
        patches,
        {
            str(name): (int(number), str(entry_id))
            for name, (number, entry_id) in line.get("seen", {}).items()
        },
        tuple(
            (str(device), int(number), str(entry_id))
            for device, number, entry_id in line.get("dropped", ())
        ),
        int(line.get("at", 0)),
        None if member is None else member_of(member),
        {str(name): int(last_number) for name, last_number in line.get("removed", {}).items()},
        None
        if rotation is None
        else Rotation(
            str(rotation["epoch"]), {str(to): str(key) for to, key in rotation["keys"].items()}
        ),
        None
        if checkpoint is None
        else LogCheckpoint(
            {
                str(name): (int(number), str(entry_id))
                for name, (number, entry_id) in checkpoint["covers"].items()
            },
            tuple(map(member_of, checkpoint["members"])),
            {str(name): int(last_number) for name, last_number in checkpoint["removed"].items()},
            admission_of(checkpoint["admission"]) if checkpoint.get("admission") else None,
        ),
        None if begin is None else (str(begin[0]), int(begin[1]), int(begin[2])),
        {str(epoch): bytes.fromhex(key).hex() for epoch, key in line.get("keys", {}).items()},
    )


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _read_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("a text is missing")
    return value


def read_number(value: Any) -> int:
    """A number from JSON: an integer that is not negative. TypeError for anything else."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**53:
        raise TypeError("a number is missing")
    return value


def _read_hashes(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError("the hashes are missing")
    return tuple(map(_read_text, value))


_HEADER: Final[Mapping[str, Callable[[Any], Any]]] = {
    "project": _read_text,
    "device": _read_text,
    "number": read_number,
    "epoch": _read_text,
    "parent": _read_text,
    "hashes": _read_hashes,
}


def seal(
    header: Header, content: EntryContent, cipher: Cipher, sign: Callable[[str], bytes]
) -> LogEntry:
    """The entry with this content, signed."""
    lines = [to_line(content.first_line())]
    lines += [to_line(patch.line()) for patch in content.patches]
    packed_bytes = zlib.compress(b"".join(lines), 6)
    padded_bytes = len(packed_bytes).to_bytes(_LENGTH, "big") + packed_bytes
    # Padded to a power of two, so that the length tells little.
    size = _SMALLEST
    while size < len(padded_bytes):
        size *= 2
    padded_bytes += bytes(size - len(padded_bytes))
    unsigned_entry = LogEntry(header, cipher.seal(padded_bytes, canonical(header.line()).encode()))
    return replace(unsigned_entry, signature=sign(unsigned_entry.id))


def unseal(entry: LogEntry, cipher: Cipher, remote: str) -> EntryContent:
    """The content of an entry. `RemoteTampered` if no device with the key wrote it."""
    header = entry.header
    try:
        padded_bytes = cipher.open(
            entry.sealed, canonical(header.line()).encode(), f"entry {header.number}"
        )
        length = int.from_bytes(padded_bytes[:_LENGTH], "big")
        decompressor = zlib.decompressobj()
        unpacked_bytes = decompressor.decompress(
            padded_bytes[_LENGTH : _LENGTH + length], MOST_BYTES
        )
        if decompressor.unconsumed_tail or unpacked_bytes.count(b"\n") > _MOST_LINES:
            raise ValueError("it is too large")
        lines = unpacked_bytes.splitlines()
        patches = tuple(patch_of(_read_object(line)) for line in lines[1:])
        return _parse_content(_read_object(lines[0]), patches)
    except Tampered as error:
        raise _tampered_error(remote, header, error.reason) from None
    except (*_UNREADABLE, zlib.error) as error:
        raise _tampered_error(remote, header, f"it cannot be read ({error})") from None


def _read_object(line: bytes) -> dict[str, Any]:
    """The object of a line. ValueError for JSON that no device writes."""
    read_json(line)
    return from_line(line)


def entry_of(data: bytes | Mapping[str, Any], remote: str, device: str, number: int) -> LogEntry:
    """The entry in these bytes, or this JSON.

    `RemoteTampered` if it is not the entry of that device and number.
    """
    try:
        line = read_json(data) if isinstance(data, bytes) else data
        header = Header(**{name: read(line[name]) for name, read in _HEADER.items()})
        dropped_text = _read_text(line["dropped"]) if "dropped" in line else None
        sealed_bytes = b"" if dropped_text else base64.b64decode(line["sealed"], validate=True)
        signature = base64.b64decode(line["signature"], validate=True)
        if line["v"] != VERSION:
            raise ValueError(f"its version is {line['v']!r}")
    except _UNREADABLE as error:
        raise RemoteTampered(remote, device, number, f"it is not an entry ({error})") from None
    if (header.device, header.number) != (device, number):
        raise RemoteTampered(
            remote, device, number, f"it is entry {header.number} of device {header.device}"
        )
    return LogEntry(header, sealed_bytes, signature, dropped_text)


def without_content(entry: LogEntry) -> LogEntry:
    """The entry as a remote stores it once it was emptied: without digests, too."""
    return replace(entry, header=replace(entry.header, hashes=()), sealed=b"", dropped=entry.id)


def _tampered_error(remote: str, header: Header, reason: str) -> RemoteTampered:
    return RemoteTampered(remote, header.device, header.number, reason)
