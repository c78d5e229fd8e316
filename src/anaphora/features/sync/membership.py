"""The devices of a project: their public keys, and the keys that they share.

The entries of a project are sealed under a key that all its devices have; keys are numbered by
**epochs**. Each device signs its entries (Ed25519, RFC 8032) and announces its public keys in its
first one. When a device is removed, another makes the key of a new epoch and sends it to each of
the others alone, sealed by a key agreed on with X25519 (RFC 7748): the keys of the removed one open
nothing that is written from then on, and it cannot write in another one's name.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from anaphora.errors import MissingExtra, Tampered
from anaphora.store.crypto.cipher import KEY_BYTES, Cipher, Random, binding, derive

MEMBER: Final = "member"
"""The name under which a device stores its own membership."""
_PUBLIC_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class Member:
    """A device as the others know it. Public keys are 32 bytes in hexadecimal digits."""

    device: str
    name: str
    signing: str
    exchange: str

    def line(self) -> dict[str, Any]:
        """Itself as JSON."""
        return {
            "device": self.device,
            "name": self.name,
            "signing": self.signing,
            "exchange": self.exchange,
        }

    def has_signed(self, text: str, signature: bytes) -> bool:
        """Whether this device signed a text."""
        from cryptography.exceptions import InvalidSignature

        try:
            key = _ed25519().Ed25519PublicKey.from_public_bytes(bytes.fromhex(self.signing))
            key.verify(signature, _signed_bytes(text))
        except (InvalidSignature, ValueError):
            return False
        return True


@dataclass(frozen=True, slots=True)
class Rotation:
    """A new epoch: its key for each device that has it from now on, wrapped for that one alone."""

    epoch: str
    keys: Mapping[str, str]

    def line(self) -> dict[str, Any]:
        """Itself as JSON."""
        return {"epoch": self.epoch, "keys": dict(self.keys)}


@dataclass(frozen=True, slots=True)
class Membership:
    """What a device knows of the project that it syncs. `keys` are those of all its epochs.

    `secret` is this device's own: its signing and exchange keys are derived from it.
    """

    project: str
    device: str
    name: str
    secret: bytes = field(repr=False)
    keys: Mapping[str, bytes] = field(repr=False)

    @property
    def epoch(self) -> str:
        """The newest epoch."""
        return max(self.keys)

    @property
    def first_epoch(self) -> str:
        """The epoch of the key that every device of the project has, removed ones among them."""
        return min(self.keys)

    @property
    def public(self) -> Member:
        """Itself as the others know it."""
        return Member(
            self.device,
            self.name,
            _public_bytes(self._derive_signing_key().public_key()).hex(),
            _public_bytes(self._derive_exchange_key().public_key()).hex(),
        )

    def line(self) -> dict[str, Any]:
        """Itself as JSON."""
        return {
            "project": self.project,
            "device": self.device,
            "name": self.name,
            "secret": self.secret.hex(),
            "keys": {epoch: key.hex() for epoch, key in self.keys.items()},
        }

    def key_for(self, purpose: str, epoch: str | None = None) -> bytes:
        """The key of an epoch, by default the present one, for a purpose. KeyError: unknown."""
        return derive(self.keys[epoch or self.epoch], purpose)

    def sign(self, text: str) -> bytes:
        """The signature of a text: 64 bytes."""
        signature: bytes = self._derive_signing_key().sign(_signed_bytes(text))
        return signature

    def with_key(self, epoch: str, key: bytes) -> Membership:
        """The same, with the key of one epoch more."""
        return replace(self, keys={**self.keys, epoch: key})

    def rotate(self, others: Iterable[Member], random: Random) -> tuple[Rotation, Membership]:
        """A new epoch for this device and these others; what to send, and what to keep."""
        number = int(self.epoch.partition("-")[0]) + 1
        epoch = f"{new_epoch(number, random)}-{self.device}"
        key = random(KEY_BYTES)
        keys = {member.device: self._wrap_key(key, epoch, member, random) for member in others}
        return Rotation(epoch, keys), self.with_key(epoch, key)

    def unwrap(self, rotation: Rotation, random: Random) -> Membership | None:
        """The same with the key of a rotation; None if it has none for this device."""
        wrapped_key = rotation.keys.get(self.device)
        if wrapped_key is None:
            return None
        try:
            packed_bytes = base64.b64decode(wrapped_key, validate=True)
            public, sealed_key = packed_bytes[:_PUBLIC_BYTES], packed_bytes[_PUBLIC_BYTES:]
            shared_secret = self._derive_exchange_key().exchange(
                _x25519().X25519PublicKey.from_public_bytes(public)
            )
            cipher = Cipher(derive(shared_secret, "sync_wrap"), random)
            bound = self._bind_wrapping(rotation.epoch, self.public, public)
            return self.with_key(rotation.epoch, cipher.open(sealed_key, bound, "key"))
        except (ValueError, binascii.Error, Tampered):
            return None

    def _wrap_key(self, key: bytes, epoch: str, to: Member, random: Random) -> str:
        ephemeral = _x25519().X25519PrivateKey.from_private_bytes(random(KEY_BYTES))
        peer_key = _x25519().X25519PublicKey.from_public_bytes(bytes.fromhex(to.exchange))
        public = _public_bytes(ephemeral.public_key())
        cipher = Cipher(derive(ephemeral.exchange(peer_key), "sync_wrap"), random)
        sealed_key = cipher.seal(key, self._bind_wrapping(epoch, to, public))
        return base64.b64encode(public + sealed_key).decode("ascii")

    def _bind_wrapping(self, epoch: str, to: Member, public: bytes) -> bytes:
        return binding(self.project, epoch, to.device, to.exchange, public.hex())

    def _derive_signing_key(self) -> Any:
        return _ed25519().Ed25519PrivateKey.from_private_bytes(derive(self.secret, "sync_signing"))

    def _derive_exchange_key(self) -> Any:
        return _x25519().X25519PrivateKey.from_private_bytes(derive(self.secret, "sync_exchange"))


def membership_of(line: Mapping[str, Any]) -> Membership:
    """The membership that `Membership.line` wrote."""
    keys = {epoch: bytes.fromhex(key) for epoch, key in line["keys"].items()}
    return Membership(
        line["project"], line["device"], line["name"], bytes.fromhex(line["secret"]), keys
    )


def new_membership(name: str, random: Random) -> Membership:
    """The membership of a project's first device."""
    member = join_project("", {new_epoch(1, random): random(KEY_BYTES)}, name, random)
    return replace(member, project=project_of(member.public.signing))


def join_project(project: str, keys: Mapping[str, bytes], name: str, random: Random) -> Membership:
    """The membership of a new device of a project. Its identifier says nothing of it."""
    return Membership(project, random(8).hex(), name, random(KEY_BYTES), dict(keys))


def project_of(signing: str) -> str:
    """The name of the project of which the first device has this signing key."""
    return f"ana_proj_{hashlib.sha256(bytes.fromhex(signing)).hexdigest()[:32]}"


def new_epoch(number: int, random: Random) -> str:
    """What an epoch is called: later ones sort behind earlier ones, and two at once differ."""
    return f"{number:06d}-{random(4).hex()}"


def member_of(line: Any) -> Member:
    """The member that `Member.line` wrote. ValueError, KeyError or TypeError for anything else."""
    member = Member(*(str(line[name]) for name in ("device", "name", "signing", "exchange")))
    if {len(bytes.fromhex(key)) for key in (member.signing, member.exchange)} != {_PUBLIC_BYTES}:
        raise ValueError("its keys are none")
    return member


def is_made_by(rotation: Rotation, device: str) -> bool:
    """Whether an epoch is one that this device may make: its name ends with that of its maker."""
    maker_parts = rotation.epoch.split("-")[2:]
    return not maker_parts or maker_parts == [device]


def _signed_bytes(text: str) -> bytes:
    return b"anaphora sync entry\n" + text.encode()


def _public_bytes(public: Any) -> bytes:
    raw: bytes = public.public_bytes_raw()
    return raw


def _ed25519() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ModuleNotFoundError as error:
        raise MissingExtra("sync", "cryptography") from error
    return ed25519


def _x25519() -> Any:
    from cryptography.hazmat.primitives.asymmetric import x25519

    return x25519
