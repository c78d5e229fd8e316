"""Role and text of a turn in, a short stable fingerprint out. Never reads a disk or a clock.

The fingerprint is how the sidecar and the index know that the turn they speak of is still the
turn that stands in the thread file.
"""

from __future__ import annotations

import hashlib


def turn_hash(role: str, text: str) -> str:
    """Fingerprint of a turn: 32 lower-case hex digits (the first 128 bits of a SHA-256).

    The role is preceded by its length, so that no two pairs of role and text share their bytes.
    Lone surrogates count as themselves. The time is left out: a turn that was written again with
    another time holds the same words.
    """
    role_bytes = role.encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(len(role_bytes).to_bytes(8, "big"))
    digest.update(role_bytes)
    digest.update(text.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:32]
