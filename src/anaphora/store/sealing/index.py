"""What an index of a sealed home may put on the disk: keyed words, sealed blobs.

In: tokens, texts and vectors of the index. Out: forms of them that say nothing without the key.
It never knows what the index does with them.
"""

from __future__ import annotations

import hmac
from typing import Protocol

from anaphora.store.sealing.cipher import binding
from anaphora.store.sealing.keys import Keys

__all__ = ["ClearIndex", "IndexSealer", "SealedIndex"]


class IndexSealer(Protocol):
    """How an index hides what it writes."""

    @property
    def sealed(self) -> bool:
        """Whether anything is hidden."""
        ...

    def token_key(self, token: str) -> str:
        """What stands for a token in the word index: equal for equal tokens."""
        ...

    def seal(self, kind: str, key: bytes, data: bytes) -> bytes:
        """The stored form of a blob of this kind and key."""
        ...

    def open(self, kind: str, key: bytes, data: bytes) -> bytes:
        """The blob. `Tampered` for what was changed, or sealed as another kind or key."""
        ...


class ClearIndex:
    """Hides nothing."""

    sealed = False

    def token_key(self, token: str) -> str:
        """The token itself."""
        return token

    def seal(self, kind: str, key: bytes, data: bytes) -> bytes:
        """The blob itself."""
        return data

    def open(self, kind: str, key: bytes, data: bytes) -> bytes:
        """The blob itself."""
        return data


class SealedIndex:
    """Hides words and blobs of one namespace."""

    sealed = True

    def __init__(self, keys: Keys, namespace: str) -> None:
        self._tokens = keys.of("tokens")
        self._cipher = keys.cipher("index")
        self._namespace = namespace
        self._start = binding(namespace)

    def token_key(self, token: str) -> str:
        """32 hex digits: HMAC-SHA256 of namespace and token, cut to 128 bits. About 1 µs."""
        data = self._start + token.encode("utf-8", "surrogatepass")
        return hmac.digest(self._tokens, data, "sha256").hex()[:32]

    def seal(self, kind: str, key: bytes, data: bytes) -> bytes:
        """The sealed blob, 28 bytes longer."""
        return self._cipher.seal(data, self._bound(kind, key))

    def open(self, kind: str, key: bytes, data: bytes) -> bytes:
        """The blob."""
        return self._cipher.open(data, self._bound(kind, key), f"{kind} in the index")

    def _bound(self, kind: str, key: bytes) -> bytes:
        return self._start + binding(kind) + key
