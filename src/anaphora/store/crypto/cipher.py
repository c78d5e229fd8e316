"""Sealing bytes and text: AES-256-GCM for contents, AES-256-SIV for what rows are found by.

In: clear values, and what each is bound to (its place). Out: sealed forms, and back; what was
changed, cut or moved raises `Tampered` and gives nothing. It never stores a key, and imports
`cryptography` only when a cipher is made.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any

from anaphora.errors import MissingExtra, Tampered

Random = Callable[[int], bytes]
"""So many random bytes, fit for keys: `os.urandom`."""

TEXT_PREFIX = "an1:"
LOOKUP_PREFIX = "an1d:"
# A text that is bound to the rest of its row; and what says, sealed, that there is none.
ANCHOR_PREFIX = "an2:"
NOTHING_PREFIX = "an2n:"
_PREFIXES = (TEXT_PREFIX, LOOKUP_PREFIX, ANCHOR_PREFIX, NOTHING_PREFIX)
_NONCE = 12
_TAG = 16


def binding(*parts: str | int) -> bytes:
    """One string of bytes for these parts in this order, as associated data."""
    # Lengths first: without them ("ab", "c") and ("a", "bc") would be one.
    texts = [f"{len(text)}:{text}" for text in map(str, parts)]
    return "".join(texts).encode("utf-8", "surrogatepass")


def looks_sealed(value: object) -> bool:
    """Whether a value has the form of a sealed one. A text of a user's can have it, too."""
    return isinstance(value, str) and value.startswith(_PREFIXES)


class Cipher:
    """AES-256-GCM (NIST SP 800-38D) with random 96-bit nonces, under one key of 32 bytes.

    Sealed bytes are nonce (12), ciphertext, tag (16). Safe to share between threads.
    """

    def __init__(self, key: bytes, random: Random) -> None:
        self._aead = _ciphers().AESGCM(key)
        self._random = random
        self._refused = _refusal()

    def seal(self, data: bytes, bound: bytes) -> bytes:
        """The sealed form of `data`; only `open` with the same `bound` gives it back."""
        nonce = self._random(_NONCE)
        sealed: bytes = nonce + self._aead.encrypt(nonce, data, bound)
        return sealed

    def open(self, sealed: bytes, bound: bytes, what: str) -> bytes:
        """What was sealed. `Tampered`, naming `what`, for anything else."""
        if len(sealed) < _NONCE + _TAG:
            raise Tampered(what, "it was cut short")
        try:
            data: bytes = self._aead.decrypt(sealed[:_NONCE], sealed[_NONCE:], bound)
        except self._refused:
            reason = "it was changed, or it was sealed for another place"
            raise Tampered(what, reason) from None
        return data

    def seal_text(self, text: str, bound: bytes, prefix: str = TEXT_PREFIX) -> str:
        """The sealed form of a text, as ASCII: the prefix and base64. Any text will do."""
        sealed = self.seal(text.encode("utf-8", "surrogatepass"), bound)
        return prefix + base64.b64encode(sealed).decode("ascii")

    def open_text(self, sealed: str, bound: bytes, what: str, prefix: str = TEXT_PREFIX) -> str:
        """The text that was sealed. `Tampered`, naming `what`, for anything else."""
        data = self.open(_decoded(sealed, prefix, what), bound, what)
        return data.decode("utf-8", "surrogatepass")


class Finder:
    """AES-256-SIV (RFC 5297): equal texts in equal places have equal sealed forms.

    The form begins with a keyed MAC of text and place, so nobody without the key can make one or
    check a guess; with the key the text comes back, so that a home can be opened up again.
    """

    def __init__(self, key: bytes) -> None:
        # `key` has 64 bytes: one half for the MAC, one for the cipher.
        self._aead = _ciphers().AESSIV(key)
        self._refused = _refusal()

    def seal(self, text: str, bound: bytes) -> str:
        """The sealed form: "an1d:" and base64."""
        # The library refuses empty data; no text begins with NUL here but through this.
        data = b"\0" + text.encode("utf-8", "surrogatepass")
        sealed = self._aead.encrypt(data, [bound])
        return LOOKUP_PREFIX + base64.b64encode(sealed).decode("ascii")

    def open(self, sealed: str, bound: bytes, what: str) -> str:
        """The text that was sealed. `Tampered`, naming `what`, for anything else."""
        data = _decoded(sealed, LOOKUP_PREFIX, what)
        if len(data) <= _TAG:
            raise Tampered(what, "it was cut short")
        try:
            clear: bytes = self._aead.decrypt(data, [bound])
        except self._refused:
            reason = "it was changed, or it was sealed for another place"
            raise Tampered(what, reason) from None
        return clear[1:].decode("utf-8", "surrogatepass")


def _decoded(sealed: object, prefix: str, what: str) -> bytes:
    if not isinstance(sealed, str) or not sealed.startswith(prefix):
        raise Tampered(what, "it is not sealed, in a home where everything is")
    try:
        return base64.b64decode(sealed[len(prefix) :], validate=True)
    except (binascii.Error, ValueError):
        raise Tampered(what, "it was changed") from None


def _ciphers() -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers import aead
    except ModuleNotFoundError as error:
        raise MissingExtra("encryption", "cryptography") from error
    return aead


def _refusal() -> type[Exception]:
    from cryptography.exceptions import InvalidTag

    return InvalidTag
