"""Adding a device by a short code that is typed on it.

    7K4Q-M2XD-9F3T

The first group names a meeting point at the remote, the others are a password for SPAKE2 (RFC 9382,
by the library `spake2`): each side proves that it knows the code without showing it, and a
guess has one try, which ends the pairing. The remote stores two messages that reveal nothing about
the code, and the project's key, sealed under the agreed key; all three are emptied at the end.
"""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from anaphora.errors import InvalidInput, MissingExtra, PairingFailed, SyncError, Tampered
from anaphora.features.sync.entries import Header, LogEntry, entry_of, without_content
from anaphora.features.sync.remotes.base import Remote
from anaphora.store.crypto.cipher import Cipher, Random, binding, derive
from anaphora.system.bounded import read_json

PATIENCE: Final = 600.0
"""Seconds in which the code must be typed."""
_LETTERS: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's base 32: no letter looks like a digit."""
_ALIKE: Final = str.maketrans("OIL", "011")
_GROUP: Final = 4
_GROUPS: Final = 3
_POLL: Final = 0.25
_PRESENT: Final = "present"
_JOINING: Final = "joining"
_NO_EPOCH: Final = "0"


def new_code(random: Random) -> str:
    """A code: 20 bits name the meeting point, 40 are too many to guess in one try."""
    letters = [_LETTERS[byte % len(_LETTERS)] for byte in random(_GROUP * _GROUPS)]
    return "-".join(["".join(letters[at : at + _GROUP]) for at in range(0, len(letters), _GROUP)])


def read_code(text: str) -> str:
    """A typed code in its normal form; case and hyphens do not matter. InvalidInput."""
    letters = "".join(text.upper().translate(_ALIKE).replace("-", " ").split())
    if len(letters) != _GROUP * _GROUPS or set(letters) - set(_LETTERS):
        raise InvalidInput("code", "…", "expected the code that `sync pair` shows: 12 characters")
    return "-".join(letters[at : at + _GROUP] for at in range(0, len(letters), _GROUP))


class Meeting:
    """One side of a pairing, at the meeting point of a remote that the code names.

    `wait` waits for so many seconds.
    """

    def __init__(
        self, remote: Remote, code: str, random: Random, wait: Callable[[float], object]
    ) -> None:
        self._remote = remote
        self._code = code
        self._random = random
        self._wait = wait
        self._project = f"pair_{code[:_GROUP]}"
        self._last_sent_id = ""

    def is_free(self) -> bool:
        """Whether this meeting point is unused."""
        return not self._remote.heads(self._project)

    def offer(self) -> Any:
        """Begin as a device of the project; the result is passed to `hand_over`."""
        agreement = self._start_agreement("SPAKE2_A")
        self._send(_PRESENT, 1, {"begin": agreement.start().hex()})
        return agreement

    def hand_over(self, agreement: Any, invitation: Mapping[str, Any], patience: float) -> None:
        """Give the project to the device with the code. PairingFailed: too late, or a wrong code.

        The meeting point is cleared in any case: a code serves once.
        """
        try:
            heard = self._await_message(_JOINING, 1, patience)
            key = self._derive_key(agreement, heard)
            # `compare_digest` refuses texts beyond ASCII.
            proof = heard.get("proof", "").encode(errors="replace")
            if not hmac.compare_digest(proof, _prove(key).encode()):
                self._send(_PRESENT, 2, {})
                raise self._pairing_error("another code was typed; make a new one")
            payload = json.dumps(dict(invitation)).encode()
            sealed_bytes = self._cipher(key).seal(payload, binding(self._project))
            self._send(_PRESENT, 2, {"sealed": base64.b64encode(sealed_bytes).decode("ascii")})
            self._await_message(_JOINING, 2, patience)
        finally:
            # All messages are emptied, if the remote can be reached.
            with suppress(SyncError):
                for side, head in self._remote.heads(self._project).items():
                    for number in range(1, head + 1):
                        log_entry = self._read_message_entry(side, number)
                        if log_entry is not None and log_entry.dropped is None:
                            self._remote.drop(
                                self._project, side, number, without_content(log_entry).data()
                            )

    def join(self, patience: float) -> dict[str, Any]:
        """The invitation, for the joining device. PairingFailed: no offer, or a wrong code."""
        if self.is_free():
            raise self._pairing_error("nobody offers this code here; is it the same remote?")
        agreement = self._start_agreement("SPAKE2_B")
        begun = agreement.start().hex()
        key = self._derive_key(agreement, self._await_message(_PRESENT, 1, patience))
        self._send(_JOINING, 1, {"begin": begun, "proof": _prove(key)})
        sealed_text = self._await_message(_PRESENT, 2, patience).get("sealed", "")
        try:
            payload = base64.b64decode(sealed_text, validate=True)
            invitation: dict[str, Any] = json.loads(
                self._cipher(key).open(payload, binding(self._project), "key")
            )
        except (ValueError, Tampered) as error:
            raise self._pairing_error("the other side does not know the code") from error
        self._send(_JOINING, 2, {"done": ""})
        return invitation

    def _start_agreement(self, side: str) -> Any:
        try:
            import spake2
        except ModuleNotFoundError as error:
            raise MissingExtra("sync", "spake2") from error
        secret = self._code[_GROUP + 1 :].encode()
        present_id, joining_id = (
            f"{name} {self._project}".encode() for name in (_PRESENT, _JOINING)
        )
        return getattr(spake2, side)(secret, idA=present_id, idB=joining_id, entropy_f=self._random)

    def _derive_key(self, agreement: Any, heard: Mapping[str, str]) -> bytes:
        from spake2 import SPAKEError

        try:
            key: bytes = agreement.finish(bytes.fromhex(heard.get("begin", "")))
        except (ValueError, AssertionError, SPAKEError) as error:
            raise self._pairing_error("the other side sent what is no beginning") from error
        return key

    def _cipher(self, key: bytes) -> Cipher:
        return Cipher(derive(key, "sync_pairing"), self._random)

    def _send(self, side: str, number: int, message: Mapping[str, str]) -> None:
        log_entry = LogEntry(
            Header(self._project, side, number, _NO_EPOCH, self._last_sent_id),
            json.dumps(dict(message)).encode(),
        )
        self._remote.write(self._project, side, number, log_entry.data())
        self._last_sent_id = log_entry.id

    def _await_message(self, side: str, number: int, patience: float) -> dict[str, str]:
        """A message of the other side, once it is there."""
        for _ in range(max(1, round(patience / _POLL))):
            log_entry = self._read_message_entry(side, number)
            if log_entry is None:
                self._wait(_POLL)
                continue
            if log_entry.dropped is not None:
                raise self._pairing_error("the code is another one, or was used; make a new one")
            try:
                message = read_json(log_entry.sealed)
                if not isinstance(message, dict):
                    raise ValueError("it is no object")
            except ValueError as error:
                raise self._pairing_error("the other side sent what is no message") from error
            return {str(name): str(text) for name, text in message.items()}
        raise self._pairing_error("nobody answered in time; make a new code")

    def _read_message_entry(self, side: str, number: int) -> LogEntry | None:
        for payload in self._remote.read(self._project, side, number, 1):
            return entry_of(payload, self._remote.name, side, number)
        return None

    def _pairing_error(self, reason: str) -> PairingFailed:
        return PairingFailed(self._remote.name, reason)


def _prove(key: bytes) -> str:
    return hmac.new(derive(key, "sync_pairing"), b"joining", "sha256").hexdigest()
