"""Requests of clients that wait for the owner's consent, each with a code on the owner's terminal.

A request waits ten minutes and allows five wrong answers. The code appears only on the owner's
terminal, so that seeing the page is not enough to approve.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from hmac import compare_digest
from typing import Final

# Without letters and digits that look alike.
_LETTERS: Final = "ABCDEFGHJKMNPQRSTVWXYZ23456789"
_SECONDS: Final = 600.0
_TRIES: Final = 5
_MOST: Final = 400
"""Requests waiting at once; beyond that, the oldest of the client with the most is dropped."""
_MOST_OF_ONE: Final = 5


@dataclass(frozen=True, slots=True)
class AccessRequest:
    """What a client asks for: its self-chosen name, and where the owner is redirected to."""

    client_id: str
    client_name: str
    redirect_uri: str
    redirect_uri_was_given: bool
    scopes: tuple[str, ...]
    challenge: str
    state: str | None


@dataclass(slots=True)
class PendingRequest:
    """A pending request. `id` is part of the page's address, `code` is shown on the terminal."""

    id: str
    asked: AccessRequest
    code: str
    ends: float
    tries: int = 0


@dataclass(slots=True)
class Consents:
    """The pending requests. Used by one event loop."""

    clock: Callable[[], float]
    _waiting: dict[str, PendingRequest] = field(default_factory=dict)

    def begin(self, asked: AccessRequest) -> PendingRequest:
        """Add a request; it gets a code."""
        self._forget_ended()
        counts = Counter(waiting.asked.client_id for waiting in self._waiting.values())
        if counts[asked.client_id] >= _MOST_OF_ONE:
            self._end_oldest(asked.client_id)
        elif len(self._waiting) >= _MOST:
            self._end_oldest(counts.most_common(1)[0][0])
        code = "".join(secrets.choice(_LETTERS) for _ in range(8))
        request = PendingRequest(secrets.token_hex(32), asked, code, self.clock() + _SECONDS)
        self._waiting[request.id] = request
        return request

    def find(self, which: str) -> PendingRequest | None:
        """The pending request with this id."""
        self._forget_ended()
        return self._waiting.get(which)

    def refuse(self, request: PendingRequest) -> int:
        """Count a wrong answer; returns how many are left. After the last the request ends."""
        request.tries += 1
        if request.tries >= _TRIES:
            self.end(request)
        return _TRIES - request.tries

    def end(self, request: PendingRequest) -> bool:
        """Remove a request; returns whether it was still pending."""
        return self._waiting.pop(request.id, None) is not None

    def _end_oldest(self, client_id: str) -> None:
        of_client = (
            request for request in self._waiting.values() if request.asked.client_id == client_id
        )
        self.end(next(of_client))

    def _forget_ended(self) -> None:
        now = self.clock()
        self._waiting = {
            request.id: request for request in self._waiting.values() if now < request.ends
        }


def is_code(request: PendingRequest, given: str) -> bool:
    """Whether this is the code on the terminal, in any spelling."""
    typed_code = "".join(given.split()).replace("-", "").upper()
    return compare_digest(typed_code.encode(), request.code.encode())
