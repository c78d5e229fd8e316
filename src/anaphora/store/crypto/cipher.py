"""The ciphers, and the keys that they take.

AES-256-GCM seals contents, AES-256-SIV what rows are found by; whatever was changed, cut or moved
to another place raises `Tampered`. A master key of 32 random bytes wraps the data key, from which
every other key is derived by HKDF-SHA256 (RFC 5869) with a label of its own; so a new master key
costs one small file. Nothing here stores a key; `cryptography` is imported with the first cipher.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from anaphora.errors import InvalidInput, MissingExtra, Tampered, WrongKey

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
        sealed_bytes: bytes = nonce + self._aead.encrypt(nonce, data, bound)
        return sealed_bytes

    def open(self, sealed: bytes, bound: bytes, what: str) -> bytes:
        """What was sealed. `Tampered`, naming `what`, for anything else."""
        if len(sealed) < _NONCE + _TAG:
            raise Tampered(what, "it is truncated")
        try:
            plaintext: bytes = self._aead.decrypt(sealed[:_NONCE], sealed[_NONCE:], bound)
        except self._refused:
            reason = "it was modified, or moved from another place"
            raise Tampered(what, reason) from None
        return plaintext

    def seal_text(self, text: str, bound: bytes, prefix: str = TEXT_PREFIX) -> str:
        """The sealed form of a text, as ASCII: the prefix and base64. Any text will do."""
        sealed_bytes = self.seal(text.encode("utf-8", "surrogatepass"), bound)
        return prefix + base64.b64encode(sealed_bytes).decode("ascii")

    def open_text(self, sealed: str, bound: bytes, what: str, prefix: str = TEXT_PREFIX) -> str:
        """The text that was sealed. `Tampered`, naming `what`, for anything else."""
        plaintext = self.open(_decoded(sealed, prefix, what), bound, what)
        return plaintext.decode("utf-8", "surrogatepass")


class Finder:
    """AES-256-SIV (RFC 5297): equal texts in equal places have equal sealed forms.

    The form begins with a keyed MAC of text and place, so without the key none can be made
    and no guess checked; with the key the text comes back, so that a home can be decrypted again.
    """

    def __init__(self, key: bytes) -> None:
        # `key` has 64 bytes: one half for the MAC, one for the cipher.
        self._aead = _ciphers().AESSIV(key)
        self._refused = _refusal()

    def seal(self, text: str, bound: bytes) -> str:
        """The sealed form: "an1d:" and base64."""
        # The library refuses empty data; no text begins with NUL here but through this.
        plaintext = b"\0" + text.encode("utf-8", "surrogatepass")
        sealed_bytes = self._aead.encrypt(plaintext, [bound])
        return LOOKUP_PREFIX + base64.b64encode(sealed_bytes).decode("ascii")

    def open(self, sealed: str, bound: bytes, what: str) -> str:
        """The text that was sealed. `Tampered`, naming `what`, for anything else."""
        ciphertext = _decoded(sealed, LOOKUP_PREFIX, what)
        if len(ciphertext) <= _TAG:
            raise Tampered(what, "it is truncated")
        try:
            clear: bytes = self._aead.decrypt(ciphertext, [bound])
        except self._refused:
            reason = "it was modified, or moved from another place"
            raise Tampered(what, reason) from None
        return clear[1:].decode("utf-8", "surrogatepass")


def _decoded(sealed: object, prefix: str, what: str) -> bytes:
    if not isinstance(sealed, str) or not sealed.startswith(prefix):
        raise Tampered(what, "it is not encrypted, but the home is")
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


KEY_BYTES = 32
LABELS = {
    "records": b"anaphora/records/v1",
    "threads": b"anaphora/threads/v1",
    "index": b"anaphora/index/v1",
    "index_rows": b"anaphora/index_rows/v1",
    "lookup": b"anaphora/lookup/v1",
    "tokens": b"anaphora/tokens/v1",
    "hashes": b"anaphora/hashes/v1",
    "names": b"anaphora/names/v1",
    "marker": b"anaphora/marker/v1",
    "check": b"anaphora/check/v1",
    "wrap": b"anaphora/wrap/v1",
    "sync_entries": b"anaphora/sync/entries/v1",
    "sync_hashes": b"anaphora/sync/hashes/v1",
    "sync_identities": b"anaphora/sync/identities/v1",
    "sync_signing": b"anaphora/sync/signing/v1",
    "sync_exchange": b"anaphora/sync/exchange/v1",
    "sync_wrap": b"anaphora/sync/wrap/v1",
    "sync_pairing": b"anaphora/sync/pairing/v1",
}
_HEX = re.compile(r"[0-9a-fA-F]{64}\Z")
# 128 MiB and about half a second a try (RFC 7914; the cost that OWASP names first for scrypt).
_SCRYPT = {"n": 2**17, "r": 8, "p": 1}
_MOST_MEMORY = 1 << 30


def derive(key: bytes, purpose: str, length: int = KEY_BYTES) -> bytes:
    """The key for one purpose (a name of `LABELS`), of `length` bytes."""
    try:
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF
    except ModuleNotFoundError as error:
        raise MissingExtra("encryption", "cryptography") from error
    return HKDF(algorithm=SHA256(), length=length, salt=None, info=LABELS[purpose]).derive(key)


@dataclass(frozen=True, slots=True)
class Keys:
    """A data key and what is derived from it. `check` identifies it and says nothing of it."""

    data_key: bytes = field(repr=False)
    random: Random = field(repr=False)
    check: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "check", derive(self.data_key, "check", 8).hex())

    def of(self, purpose: str, length: int = KEY_BYTES) -> bytes:
        """The key for one purpose."""
        return derive(self.data_key, purpose, length)

    def cipher(self, purpose: str) -> Cipher:
        """A cipher for one purpose."""
        return Cipher(self.of(purpose), self.random)


def wrap(master: bytes, data_key: bytes, home: str, random: Random) -> str:
    """The data key of a home, sealed by its master key."""
    cipher = Cipher(derive(master, "wrap"), random)
    return base64.b64encode(cipher.seal(data_key, binding("data key", home))).decode("ascii")


def unwrap(master: bytes, wrapped: str, home: str) -> bytes:
    """The data key. `WrongKey` when the master key is another home's, or an older one."""
    cipher = Cipher(derive(master, "wrap"), _no_randomness)
    try:
        sealed_key = base64.b64decode(wrapped, validate=True)
        return cipher.open(sealed_key, binding("data key", home), "data key")
    except (Tampered, binascii.Error, ValueError) as error:
        raise WrongKey("master key", "it is not the key of this home") from error


def export_key(master: bytes, home: str, passphrase: str | None, random: Random) -> str:
    """The master key as a text to keep elsewhere: JSON sealed by a passphrase, or 64 hex digits.

    Without a passphrase it is the key itself, in clear. `InvalidInput` for a blank passphrase.
    """
    if passphrase is None:
        return master.hex()
    if not passphrase.strip():
        raise InvalidInput("passphrase", "", "must not be blank")
    salt = random(16)
    cipher = Cipher(_scrypt(passphrase, salt, _SCRYPT), random)
    sealed_key = cipher.seal(master, binding("exported key", home))
    key_fields = {
        "anaphora": "master key",
        "version": 1,
        "home": home,
        "kdf": {"name": "scrypt", **_SCRYPT, "salt": base64.b64encode(salt).decode("ascii")},
        "sealed": base64.b64encode(sealed_key).decode("ascii"),
    }
    return json.dumps(key_fields)


def import_key(exported: str, passphrase: str | None) -> bytes:
    """The master key in an exported text. `WrongKey` for a wrong passphrase or a changed text.

    `InvalidInput` where the text is none that `export_key` writes, or the passphrase is missing.
    """
    text = exported.strip()
    if _HEX.match(text):
        return bytes.fromhex(text)
    try:
        fields: dict[str, Any] = json.loads(text)
        kdf, home = fields["kdf"], str(fields["home"])
        salt = base64.b64decode(kdf["salt"], validate=True)
        sealed_key = base64.b64decode(fields["sealed"], validate=True)
        costs = {name: int(kdf[name]) for name in _SCRYPT}
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInput("exported key", "…", "not what `key export` wrote") from error
    if passphrase is None:
        raise InvalidInput("passphrase", None, "this key was exported with a passphrase")
    try:
        cipher = Cipher(_scrypt(passphrase, salt, costs), _no_randomness)
        return cipher.open(sealed_key, binding("exported key", home), "exported key")
    except Tampered as error:
        raise WrongKey(
            "exported key", "the passphrase is wrong, or the text was changed"
        ) from error


def _scrypt(passphrase: str, salt: bytes, costs: dict[str, int]) -> bytes:
    memory = 128 * costs["r"] * (costs["n"] + costs["p"] + 2)
    if min(costs.values()) < 1 or memory > _MOST_MEMORY:
        raise InvalidInput("exported key", costs, "its scrypt parameters are invalid")
    secret = passphrase.encode("utf-8", "surrogatepass")
    try:
        return hashlib.scrypt(
            secret, salt=salt, maxmem=memory + (1 << 20), dklen=KEY_BYTES, **costs
        )
    except ValueError as error:
        raise InvalidInput("exported key", costs, "its scrypt parameters are invalid") from error


def _no_randomness(_count: int) -> bytes:
    raise AssertionError("opening needs no randomness")
