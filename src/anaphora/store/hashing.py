"""The digests that the database keeps: 32 lower-case hex digits, the first 128 bits of a SHA-256.

They are persisted: none of them may ever change. Lone surrogates count as themselves.
"""

from __future__ import annotations

import hashlib


def digest(*parts: str) -> str:
    """Of several texts; each follows its length, so that no two lists share their bytes."""
    hasher = hashlib.sha256()
    for part in parts:
        encoded_part = part.encode("utf-8", "surrogatepass")
        hasher.update(len(encoded_part).to_bytes(8, "big"))
        hasher.update(encoded_part)
    return hasher.hexdigest()[:32]


def stored_turn_hash(role: str, text: str) -> str:
    """Of a turn: how the sidecar and the index know that the turn they speak of still stands.

    The role is preceded by its length, so that no two pairs of role and text share their bytes.
    The time is left out: a turn that was written again with another time holds the same words.
    """
    role_bytes = role.encode("utf-8", "surrogatepass")
    hasher = hashlib.sha256(len(role_bytes).to_bytes(8, "big"))
    hasher.update(role_bytes)
    hasher.update(text.encode("utf-8", "surrogatepass"))
    return hasher.hexdigest()[:32]


def hash_text(text: str) -> str:
    """Of a text alone: what was embedded, so that a vector of an older text is not one of the
    present text; and a turn that a fact was taken from, so that it is known again."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
