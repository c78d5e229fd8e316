"""Conversation ids in, file names out, and back. Never touches a disk.

A plain id (lower-case ASCII letters, digits, ".", "_", "-") is its own file name, so that threads
lie where Neo looks for them. Everything that some file system would confuse or refuse is written
as %xx, the hex of its UTF-8 bytes: capital letters (abc and Abc are one file on many disks),
non-ASCII letters (which some disks normalise), a leading dot, the names that Windows reserves.
An id whose name would grow too long keeps its beginning and ends in a hash; its real id is read
from inside the file.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata

from anaphora.errors import InvalidId

SUFFIX = ".json"
MAX_ID_CHARACTERS = 1024

# File systems allow 255 bytes; the names of temporary, lock and set-aside files add to this one.
_MAX_STEM = 180
_KEPT_OF_LONG = 120
# "%-" cannot come out of escaping: what follows a "%" there is always a hex digit.
_HASH_MARK = "%-"
_HASHED = re.compile(r"[a-z0-9._%-]{1,120}%-[0-9a-f]{32}\Z")
# Ids as programs make them; the rest of this module is for the others.
_SIMPLE = re.compile(r"[a-z0-9_-][a-z0-9._-]{0,179}\Z")
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789._-")
_RESERVED = frozenset(
    ["con", "prn", "aux", "nul"] + [f"{device}{n}" for device in ("com", "lpt") for n in range(10)]
)


def check_id(conversation_id: str) -> str:
    """The id itself, if it can name a conversation; raises InvalidId otherwise.

    Refused: what is no string, blank, longer than 1,024 characters, "." and "..", path
    separators, control characters and lone surrogates. Everything else works.
    """
    if not isinstance(conversation_id, str):
        raise InvalidId("conversation id", conversation_id, "must be a string")
    if _SIMPLE.match(conversation_id):
        return conversation_id
    if not conversation_id.strip():
        raise InvalidId("conversation id", conversation_id, "must not be blank")
    if len(conversation_id) > MAX_ID_CHARACTERS:
        raise InvalidId(
            "conversation id",
            conversation_id,
            f"must be at most {MAX_ID_CHARACTERS} characters long",
        )
    if conversation_id in {".", ".."}:
        raise InvalidId("conversation id", conversation_id, "must not be a relative path")
    for character in conversation_id:
        if character in "/\\":
            raise InvalidId("conversation id", conversation_id, "must not contain path separators")
        if unicodedata.category(character) in {"Cc", "Cs"}:
            raise InvalidId(
                "conversation id",
                conversation_id,
                "must not contain control characters or lone surrogates",
            )
    return conversation_id


def file_name(conversation_id: str) -> str:
    """The name of the file that holds this conversation; raises InvalidId for an invalid id."""
    return _stem(check_id(conversation_id)) + SUFFIX


def plain_name(conversation_id: str) -> str | None:
    """The name under which a program that escapes nothing would have written this conversation.

    None where that is no different from `file_name`, cannot exist on any disk, or is the name
    that we give to another id.
    """
    if _is_simple(conversation_id):
        return None
    name = check_id(conversation_id) + SUFFIX
    if name == file_name(conversation_id) or len(name.encode("utf-8")) > 255:
        return None
    return name if id_of(name) == conversation_id else None


def id_of(name: str) -> str | None:
    """The conversation id that a file of this name holds.

    None where the name cannot tell: it is no thread file (hidden, or without ".json"), it could
    not have come from a valid id, or it ends in a hash because the id is long.
    """
    if not name.endswith(SUFFIX) or name.startswith("."):
        return None
    stem = name[: -len(SUFFIX)]
    if _is_simple(stem):
        return stem
    if _HASHED.match(stem):
        return None
    try:
        unescaped = _unescape(stem)
        if unescaped is not None and _stem(check_id(unescaped)) == stem:
            return unescaped
        # Another program's file: its name is its id.
        return check_id(stem)
    except InvalidId:
        return None


def is_hashed(name: str) -> bool:
    """Whether this is the name of a long id's file, whose id is inside."""
    return name.endswith(SUFFIX) and _HASHED.match(name[: -len(SUFFIX)]) is not None


def _is_simple(conversation_id: str) -> bool:
    return (
        _SIMPLE.match(conversation_id) is not None
        and conversation_id.split(".", 1)[0] not in _RESERVED
    )


def _stem(conversation_id: str) -> str:
    if _is_simple(conversation_id):
        return conversation_id
    escaped = [c if c in _PLAIN else _percent(c) for c in conversation_id]
    # Windows looks at what stands before the first dot, whatever follows it.
    if escaped[0] == "." or conversation_id.split(".", 1)[0] in _RESERVED:
        escaped[0] = _percent(escaped[0])
    stem = "".join(escaped)
    if len(stem) <= _MAX_STEM:
        return stem
    digest = hashlib.sha256(conversation_id.encode("utf-8")).hexdigest()[:32]
    return _whole_escapes(stem[:_KEPT_OF_LONG]) + _HASH_MARK + digest


def _percent(character: str) -> str:
    return "".join(f"%{byte:02x}" for byte in character.encode("utf-8"))


def _whole_escapes(cut: str) -> str:
    """Without the escape that the cut has split."""
    return re.sub(r"%[0-9a-f]?\Z", "", cut)


def _unescape(stem: str) -> str | None:
    if "%" not in stem:
        return stem
    if re.search(r"%(?![0-9a-f]{2})", stem) or not stem.isascii():
        return None
    raw = re.sub(rb"%([0-9a-f]{2})", lambda m: bytes([int(m[1], 16)]), stem.encode("ascii"))
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return None
