"""How a thread lies on the disk, by name and by bytes: as Go's JSON, or sealed.

A sealed file: `ANSEAL1\\n`, 8 bytes that identify the data key, 16 random bytes that identify this
writing of the file, then pieces: a length (4 bytes, big-endian) and as many sealed bytes. Piece 0
is the id, the last one the JSON after the list of turns. Each is bound to namespace, id, writing,
place and to whether it is the last: none can be dropped, moved or taken from another file. An
append keeps all but the last piece, and adds two.
"""

from __future__ import annotations

import hmac
import json
import struct
from dataclasses import dataclass
from pathlib import Path

from anaphora.errors import EncryptionError, InvalidId, Tampered, WrongKey
from anaphora.store.crypto.cipher import Keys, binding
from anaphora.store.crypto.marker import Guard, HomeForm
from anaphora.store.threads.ids import (
    SUFFIX,
    check_id,
    file_name,
    id_of,
    id_of_unreadable,
    lock_name,
    needs_content,
)

SEALED_SUFFIX = ".json.sealed"
_MAGIC = b"ANSEAL1\n"
_START = len(_MAGIC) + 8 + 16
_LENGTH = struct.Struct(">I")
# Longer than any id that we write, with the key before it.
_HEAD_BYTES = 16_384
_ID_START = b'{"conversation_id":'
# Ids in headers are padded to a multiple of this, so that a file says little of how long its id is.
_PAD = 64
# Pieces are cut at this size: a length has 4 bytes, and a cipher takes 2 GiB at once at most.
_PIECE = 1 << 26


@dataclass(frozen=True, slots=True)
class Seam:
    """Where new turns go: the first `offset` bytes of the file stay, `piece` is the next number."""

    offset: int
    piece: int = 0
    writing: bytes = b""


@dataclass(frozen=True, slots=True)
class DecodedThread:
    """A thread file's JSON. A sealed one can be extended where byte `body` of the JSON is alone."""

    data: bytes
    seam: Seam | None = None
    body: int = 0

    def seam_at(self, offset: int) -> Seam | None:
        """The seam for turns that go to byte `offset` of the JSON; None: write the file anew."""
        if self.seam is None:
            return Seam(offset)
        return self.seam if offset == self.body else None


class PlainThreads(HomeForm):
    """Go's JSON under names that tell the id; another program may write the same files."""

    suffix = SUFFIX
    shared = True

    def file_name(self, conversation_id: str) -> str:
        """The id and ".json". Raises InvalidId."""
        return file_name(conversation_id)

    def lock_name(self, conversation_id: str) -> str:
        """What its lock is named by."""
        return lock_name(conversation_id)

    def id_in(self, name: str, path: Path) -> str | None:
        """The id from the name; from inside the file, where the name does not tell."""
        if not needs_content(name):
            return id_of(name)
        conversation_id = _id_inside(path)
        if conversation_id is None:
            # Another program's layout, or damage.
            return id_of_unreadable(name)
        is_own_name = name == file_name(conversation_id) or not name.isascii()
        return conversation_id if is_own_name else None

    def decode(self, conversation_id: str, data: bytes) -> DecodedThread:
        """The bytes themselves."""
        return DecodedThread(data)

    def whole(self, conversation_id: str, head: bytes, end: bytes) -> tuple[bytes, Seam]:
        """The bytes of a new file, and where its next turns go: both pieces, in a row."""
        return head + end, Seam(len(head))

    def more(
        self, conversation_id: str, seam: Seam, added: bytes, end: bytes
    ) -> tuple[bytes, Seam]:
        """What follows the first `seam.offset` bytes when `added` goes in, and the next seam."""
        return added + end, Seam(seam.offset + len(added))


PLAIN = PlainThreads()


def _id_inside(path: Path) -> str | None:
    """The id at the start of a thread file, as Go writes it; None where it is not there."""
    try:
        with path.open("rb") as file:
            start = file.read(_HEAD_BYTES)
        if not start.startswith(_ID_START):
            return None
        text = start[len(_ID_START) :].decode("utf-8", "replace")
        conversation_id, _end = json.JSONDecoder().raw_decode(text)
        return check_id(conversation_id)
    except (OSError, ValueError, InvalidId):
        return None


class SealedThreads(HomeForm):
    """Sealed files of one namespace, under names that are HMACs of their ids."""

    suffix = SEALED_SUFFIX
    shared = False

    def __init__(self, keys: Keys, namespace: str, guard: Guard | None = None) -> None:
        super().__init__(guard)
        self._cipher = keys.cipher("threads")
        self._names = keys.of("names")
        self._random = keys.random
        self._key = bytes.fromhex(keys.check)
        self._namespace = namespace
        self._ids: dict[str, str] = {}

    def file_name(self, conversation_id: str) -> str:
        """32 hex digits (HMAC-SHA256 of namespace and id, 128 bits) and ".json.sealed"."""
        return self._name("id", check_id(conversation_id))

    def lock_name(self, conversation_id: str) -> str:
        """What its lock is named by, which does not tell the id."""
        return self.file_name(conversation_id)

    def name_for_nameless(self, original: str) -> str:
        """The name for a file that belongs to no conversation and was called `original`."""
        return self._name("file", original)

    def id_in(self, name: str, path: Path) -> str | None:
        """The id from the header of the file."""
        cached_id = self._ids.get(name)
        if cached_id is not None:
            return cached_id
        try:
            conversation_id, _original = self.label(path)
            if not conversation_id or self.file_name(conversation_id) != name:
                return None
        except (OSError, EncryptionError, InvalidId):
            return None
        self._ids[name] = conversation_id
        return conversation_id

    def label(self, path: Path) -> tuple[str, str]:
        """Id and original name in the header of a file. OSError, `Tampered`, `WrongKey`."""
        with path.open("rb") as file:
            conversation_id, original, _offset = self._label(file.read(_HEAD_BYTES))
        return conversation_id, original

    def decode(self, conversation_id: str, data: bytes) -> DecodedThread:
        """The JSON. `Tampered` for another conversation's file, and for any change at all."""
        id_inside, _original, decoded_thread = self.decode_any(data)
        if id_inside != conversation_id:
            raise Tampered("thread", "it is the file of another conversation")
        return decoded_thread

    def decode_any(self, data: bytes) -> tuple[str, str, DecodedThread]:
        """Id, original name and JSON in a file's bytes."""
        conversation_id, original, offset = self._label(data)
        writing = data[_START - 16 : _START]
        start = self._bound(conversation_id, writing)
        pieces: list[bytes] = []
        number, last_offset = 1, offset
        while offset < len(data):
            last_offset = offset
            piece, offset = _piece(data, offset)
            bound = start + _place(number, last=offset == len(data))
            pieces.append(self._cipher.open(piece, bound, "thread"))
            number += 1
        if not pieces:
            raise Tampered("thread", "it is truncated")
        body = sum(map(len, pieces[:-1]))
        seam = Seam(last_offset, number - 1, writing)
        return conversation_id, original, DecodedThread(b"".join(pieces), seam, body)

    def whole(
        self, conversation_id: str, head: bytes, end: bytes, original: str = ""
    ) -> tuple[bytes, Seam]:
        """The bytes of a new file."""
        writing = self._random(16)
        label = json.dumps([conversation_id, original], ensure_ascii=True).encode()
        label += b" " * (-len(label) % _PAD)
        bound = binding("label", self._namespace) + writing
        start = _MAGIC + self._key + writing + _framed(self._cipher.seal(label, bound))
        pieces, seam = self.more(conversation_id, Seam(len(start), 1, writing), head, end)
        return start + pieces, seam

    def more(
        self, conversation_id: str, seam: Seam, added: bytes, end: bytes
    ) -> tuple[bytes, Seam]:
        """What follows the pieces that stay, and the next seam."""
        start, number = self._bound(conversation_id, seam.writing), seam.piece
        body: list[bytes] = []
        for at in range(0, len(added), _PIECE):
            bound = start + _place(number, last=False)
            body.append(_framed(self._cipher.seal(added[at : at + _PIECE], bound)))
            number += 1
        body_bytes = b"".join(body)
        last_piece = _framed(self._cipher.seal(end, start + _place(number, last=True)))
        return body_bytes + last_piece, Seam(seam.offset + len(body_bytes), number, seam.writing)

    def _label(self, data: bytes) -> tuple[str, str, int]:
        if data[: len(_MAGIC)] != _MAGIC or len(data) < _START:
            raise Tampered("thread", "it is truncated, or not an encrypted thread")
        if data[len(_MAGIC) : len(_MAGIC) + 8] != self._key:
            raise WrongKey("thread", "it was encrypted with another key")
        sealed_label, offset = _piece(data, _START)
        bound = binding("label", self._namespace) + data[_START - 16 : _START]
        conversation_id, original = json.loads(self._cipher.open(sealed_label, bound, "thread"))
        return conversation_id, original, offset

    def _bound(self, conversation_id: str, writing: bytes) -> bytes:
        return binding("thread", self._namespace, conversation_id) + writing

    def _name(self, kind: str, name: str) -> str:
        keyed_text = binding(kind, self._namespace, name)
        return hmac.digest(self._names, keyed_text, "sha256").hex()[:32] + SEALED_SUFFIX


ThreadForm = PlainThreads | SealedThreads
"""How thread files of one namespace are named, written and read."""


def _framed(piece: bytes) -> bytes:
    return _LENGTH.pack(len(piece)) + piece


def _piece(data: bytes, offset: int) -> tuple[bytes, int]:
    if offset + 4 > len(data):
        raise Tampered("thread", "it is truncated")
    start = offset + 4
    end = start + _LENGTH.unpack_from(data, offset)[0]
    if end > len(data):
        raise Tampered("thread", "it is truncated")
    return data[start:end], end


def _place(number: int, *, last: bool) -> bytes:
    return (b"last" if last else b"more") + number.to_bytes(8, "big")
