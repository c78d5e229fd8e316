"""What waits for the owner's word: requests of clients, each with a code on the owner's terminal.

A request waits ten minutes, and takes five wrong answers. The code stands where only the owner
reads; who sees nothing but the page cannot approve.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from hmac import compare_digest
from typing import Final

# Without those that look like others.
_LETTERS: Final = "ABCDEFGHJKMNPQRSTVWXYZ23456789"
_SECONDS: Final = 600.0
_TRIES: Final = 5
_MOST: Final = 400
"""Requests that wait at once; the oldest of the client that has the most gives way."""
_MOST_OF_ONE: Final = 5


@dataclass(frozen=True, slots=True)
class Asked:
    """What a client asks for: its name as it gave it, and where the owner is sent back to."""

    client_id: str
    client_name: str
    redirect_uri: str
    redirect_uri_was_given: bool
    scopes: tuple[str, ...]
    challenge: str
    state: str | None


@dataclass(slots=True)
class Waiting:
    """A request that waits. `id` is in the address of the page, `code` on the terminal."""

    id: str
    asked: Asked
    code: str
    ends: float
    tries: int = 0


@dataclass(slots=True)
class Consents:
    """The requests that wait. Used by one event loop."""

    clock: Callable[[], float]
    _waiting: dict[str, Waiting] = field(default_factory=dict)

    def begin(self, asked: Asked) -> Waiting:
        """Let a request wait; it gets a code."""
        self._forget_ended()
        counts = Counter(one.asked.client_id for one in self._waiting.values())
        if counts[asked.client_id] >= _MOST_OF_ONE:
            self._end_oldest(asked.client_id)
        elif len(self._waiting) >= _MOST:
            self._end_oldest(counts.most_common(1)[0][0])
        code = "".join(secrets.choice(_LETTERS) for _ in range(8))
        made = Waiting(secrets.token_hex(32), asked, code, self.clock() + _SECONDS)
        self._waiting[made.id] = made
        return made

    def find(self, which: str) -> Waiting | None:
        """The request of this id, while it waits."""
        self._forget_ended()
        return self._waiting.get(which)

    def refuse(self, request: Waiting) -> int:
        """Count a wrong answer; how many more may come. After the last the request is gone."""
        request.tries += 1
        if request.tries >= _TRIES:
            self.end(request)
        return _TRIES - request.tries

    def end(self, request: Waiting) -> bool:
        """Let it wait no longer; whether it did until now."""
        return self._waiting.pop(request.id, None) is not None

    def _end_oldest(self, client_id: str) -> None:
        of_client = (one for one in self._waiting.values() if one.asked.client_id == client_id)
        self.end(next(of_client))

    def _forget_ended(self) -> None:
        now = self.clock()
        self._waiting = {one.id: one for one in self._waiting.values() if now < one.ends}


def is_code(request: Waiting, given: str) -> bool:
    """Whether this is the code on the terminal, however it was typed."""
    typed = "".join(given.split()).replace("-", "").upper()
    return compare_digest(typed.encode(), request.code.encode())


def shown_code(request: Waiting) -> str:
    """The code as it is read: two groups of four."""
    return f"{request.code[:4]}-{request.code[4:]}"
