"""Conversation ids in, file names out, and back. Never touches a disk.

A thread lies under the name that Neo's daemon gives it: the id and ".json", capitals and letters
beyond ASCII included. An id whose name no file system holds (255 bytes, those of the daemon's
temporary file included) gets an escaped name that ends in a hash; the id is read from the file.

`escaped_name` is the name of a namespace's folder, which no other program shares.
"""

from __future__ import annotations

import re
import sys
import unicodedata

from anaphora.errors import InvalidId
from anaphora.store.hashing import digest

SUFFIX = ".json"
MAX_ID_CHARACTERS = 1024

# File systems allow 255 bytes, and the daemon writes `<id>.json.tmp` first.
_MAX_NAME_BYTES = 255 - len(".tmp")
_MAX_STEM = 180
_MAX_SAFE_ID = 100
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
_REFUSED_BY_WINDOWS = frozenset('<>:"|?*')


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


def safe_id(source: str, key: str) -> str:
    """A conversation id that every store takes: "<source>_<key>", plain characters only.

    A key with other characters, or a long one, ends in a hash so that no two keys meet.
    """
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", key)[:_MAX_SAFE_ID]
    if plain != key:
        plain = f"{plain}-{digest(key)[:8]}"
    return f"{source}_{plain}"


def file_name(conversation_id: str) -> str:
    """The name of the file that holds this conversation; raises InvalidId for an invalid id."""
    name = check_id(conversation_id) + SUFFIX
    if len(name.encode("utf-8")) > _MAX_NAME_BYTES:
        return _hashed_stem(conversation_id) + SUFFIX
    return name


def escaped_name(conversation_id: str) -> str:
    """The name of a namespace's folder, with ".json"; raises InvalidId for an invalid id.

    Lower-case ASCII letters, digits, ".", "_" and "-" stand for themselves, anything else as %xx,
    the hex of its UTF-8 bytes.
    """
    return _escaped_stem(check_id(conversation_id)) + SUFFIX


def unfit_for_windows(conversation_id: str) -> str | None:
    """Why Windows cannot hold the file of this conversation; None where it can."""
    # Windows looks only at what stands before the first dot.
    if conversation_id.split(".", 1)[0].rstrip(" ").lower() in _RESERVED:
        return "Windows reserves this name for a device"
    if not _REFUSED_BY_WINDOWS.isdisjoint(conversation_id):
        return 'Windows allows none of < > : " | ? * in the name of a file'
    return None


def lock_name(conversation_id: str) -> str:
    """What the lock of a conversation is named by: the same for ids that some disk confuses."""
    folded_id = unicodedata.normalize("NFC", conversation_id).casefold()
    return unicodedata.normalize("NFC", folded_id) + SUFFIX


def spellings(name: str) -> tuple[str, ...]:
    """Other names that a file system which ignores case or normal forms takes for this one."""
    normal = (unicodedata.normalize(form, name) for form in ("NFC", "NFD"))
    forms = (name.swapcase(), *normal)
    return tuple(dict.fromkeys(form for form in forms if form != name))


def id_of(name: str) -> str | None:
    """The conversation id that a thread file of this name holds.

    None where the name cannot tell: no id has it, or `needs_content` says that the file has to.
    """
    if not name.endswith(SUFFIX) or needs_content(name):
        return None
    try:
        return check_id(name[: -len(SUFFIX)])
    except InvalidId:
        return None


def id_of_unreadable(name: str) -> str | None:
    """The id by the name alone, of a file that does not tell it; None where the name is hashed."""
    stem = name[: -len(SUFFIX)]
    if stem.startswith(".") or _HASHED.match(stem):
        return None
    try:
        return check_id(stem)
    except InvalidId:
        return None


def needs_content(name: str) -> bool:
    """Whether only the file tells its id: its name may be hashed, or it may be no thread at all."""
    if not name.endswith(SUFFIX):
        return False
    # A leading dot marks what other programs hide, "._x.json" of macOS among them.
    if name.startswith(".") or "%" in name:
        return True
    # Some of its file systems give names back in another normal form than they were given.
    return not name.isascii() and sys.platform == "darwin"


def id_of_escaped(name: str) -> str | None:
    """The id that `escaped_name` gave this name to; None where none has it, or it is hashed."""
    if not name.endswith(SUFFIX) or name.startswith("."):
        return None
    stem = name[: -len(SUFFIX)]
    if _is_simple(stem):
        return stem
    if _HASHED.match(stem):
        return None
    try:
        plain_id = _unescape(stem)
        if plain_id is not None and _escaped_stem(check_id(plain_id)) == stem:
            return plain_id
        # Another program's file: its name is its id.
        return check_id(stem)
    except InvalidId:
        return None


def _is_simple(conversation_id: str) -> bool:
    return (
        _SIMPLE.match(conversation_id) is not None
        and conversation_id.split(".", 1)[0] not in _RESERVED
    )


def _escaped_stem(conversation_id: str) -> str:
    if _is_simple(conversation_id):
        return conversation_id
    stem = _escape(conversation_id)
    return stem if len(stem) <= _MAX_STEM else _hashed_stem(conversation_id)


def _hashed_stem(conversation_id: str) -> str:
    import hashlib

    id_hash = hashlib.sha256(conversation_id.encode("utf-8")).hexdigest()[:32]
    # Without the escape that the cut has split.
    start = re.sub(r"%[0-9a-f]?\Z", "", _escape(conversation_id)[:_KEPT_OF_LONG])
    return start + _HASH_MARK + id_hash


def _escape(conversation_id: str) -> str:
    escaped_characters = [c if c in _PLAIN else _percent(c) for c in conversation_id]
    if escaped_characters[0] == "." or conversation_id.split(".", 1)[0] in _RESERVED:
        escaped_characters[0] = _percent(escaped_characters[0])
    return "".join(escaped_characters)


def _percent(character: str) -> str:
    return "".join(f"%{byte:02x}" for byte in character.encode("utf-8"))


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
