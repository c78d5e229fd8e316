"""What an index of a sealed home may put on the disk: keyed words, sealed blobs.

It never knows what the index does with them.
"""

from __future__ import annotations

import hashlib
import hmac
import zlib

from anaphora.store.crypto.cipher import Finder, Keys, binding


class ClearIndex:
    """Hides nothing.

    `mark` goes into the format of an index, so that one of another key is made again; `hash_key`
    is the key for every hash of a text that is kept (BLAKE2b's `key`).
    """

    sealed = False
    mark = ""
    hash_key = b""

    def token_key(self, token: str) -> str:
        """The token itself."""
        return token

    def name(self, text: str) -> bytes:
        """The text itself, in UTF-8."""
        return text.encode("utf-8", "surrogatepass")

    def named(self, stored: bytes) -> str:
        """The text itself."""
        return stored.decode("utf-8", "surrogatepass")

    def check(self, kind: str, key: bytes, data: bytes) -> int:
        """CRC-32 of the data: against accidents."""
        return zlib.crc32(data)

    def seal(self, kind: str, key: bytes, data: bytes) -> bytes:
        """The blob itself."""
        return data

    def open(self, kind: str, key: bytes, data: bytes) -> bytes:
        """The blob itself."""
        return data


CLEAR_INDEX = ClearIndex()


class SealedIndex:
    """Hides words and blobs of one namespace. What was changed, or is another's: `Tampered`."""

    sealed = True

    def __init__(self, keys: Keys, namespace: str) -> None:
        self.mark = f"/sealed-{keys.check}"
        self.hash_key = keys.of("hashes")
        self._tokens = keys.of("tokens")
        self._checks = keys.of("index_rows")
        self._cipher = keys.cipher("index")
        self._finder = Finder(keys.of("lookup", 64))
        self._namespace = namespace
        self._start = binding(namespace)
        # "index" keeps these apart from the lookups of the database, which have the same key.
        self._name_bound = binding("index", "name", namespace)

    def token_key(self, token: str) -> str:
        """32 hex digits: HMAC-SHA256 of namespace and token, cut to 128 bits. About 1 µs."""
        keyed_text = self._start + token.encode("utf-8", "surrogatepass")
        return hmac.digest(self._tokens, keyed_text, "sha256").hex()[:32]

    def name(self, text: str) -> bytes:
        """The keyed form of a text, equal for equal texts of one namespace."""
        return self._finder.seal(text, self._name_bound).encode("ascii")

    def named(self, stored: bytes) -> str:
        """The text behind a keyed form."""
        return self._finder.open(stored.decode("latin-1"), self._name_bound, "name in the index")

    def check(self, kind: str, key: bytes, data: bytes) -> int:
        """Keyed BLAKE2b of namespace, kind, key and data, cut to 64 bits. About 1 µs."""
        bound = b"%d:%b%b" % (len(key), self._bound(kind, key), data)
        digest = hashlib.blake2b(bound, digest_size=8, key=self._checks).digest()
        return int.from_bytes(digest, "little", signed=True)

    def seal(self, kind: str, key: bytes, data: bytes) -> bytes:
        """The sealed blob, 28 bytes longer."""
        return self._cipher.seal(data, self._bound(kind, key))

    def open(self, kind: str, key: bytes, data: bytes) -> bytes:
        """The blob."""
        return self._cipher.open(data, self._bound(kind, key), f"{kind} in the index")

    def _bound(self, kind: str, key: bytes) -> bytes:
        return self._start + binding(kind) + key


IndexSealer = ClearIndex | SealedIndex
"""How an index hides what it writes."""
