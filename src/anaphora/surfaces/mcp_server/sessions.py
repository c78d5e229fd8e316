"""How many sessions of clients are open at once, shared fairly among callers.

A session lasts until its client ends it or is silent for long, and clients seldom end theirs. With
too many, the caller that has the most loses the one that has been silent for longest; its client
gets 404 and begins another, as the protocol says. So no caller can keep others out.
"""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_SESSIONS: Final = 200
"""Sessions of all callers at once."""
MOST_OPENING: Final = 50
"""Requests of one caller that may be opening a session at once."""

_HEADER: Final = b"mcp-session-id"
_ENDING: Final = frozenset((_HEADER, b"host", b"authorization", b"mcp-protocol-version"))

_log = logging.getLogger("anaphora")


@dataclass(slots=True)
class _Session:
    """A session: its caller, and how many of its requests are being answered."""

    caller: str
    requests: int = 0


class FairSessions:
    """An application before that of the SDK, which counts the sessions that it opens.

    Used by one event loop. Callers are told apart by `caller_of` a request.
    """

    def __init__(self, app: ASGIApp, most: int = MOST_SESSIONS) -> None:
        self._app = app
        self._most = most
        # The one that was used last is the last.
        self._sessions: OrderedDict[bytes, _Session] = OrderedDict()
        self._opening: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send, caller: str) -> bool:
        """One request of a caller. False where it has too many that are not begun."""
        name = _header(scope["headers"])
        if name is not None:
            await self._pass_on(name, scope, receive, send)
            return True
        if self._opening[caller] >= MOST_OPENING:
            return False
        self._opening[caller] += 1
        opened: list[bytes] = []

        async def send_noting(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                name = _header(message["headers"])
                if name is not None:
                    opened.append(name)
                    self._sessions[name] = _Session(caller, 1)
                    await self._end_surplus(scope)
            await send(message)

        try:
            await self._app(scope, receive, send_noting)
        finally:
            self._opening[caller] -= 1
            if not self._opening[caller]:
                del self._opening[caller]
            for name in opened:
                self._answered(name)
        return True

    async def _pass_on(self, name: bytes, scope: Scope, receive: Receive, send: Send) -> None:
        session = self._sessions.get(name)
        if session is not None:
            session.requests += 1
            self._sessions.move_to_end(name)

        async def send_noting(message: Message) -> None:
            ended = scope["method"] == "DELETE" and message.get("status") == 200
            if ended or message.get("status") == 404:
                self._sessions.pop(name, None)
            await send(message)

        try:
            await self._app(scope, receive, send_noting)
        finally:
            self._answered(name)

    def _answered(self, name: bytes) -> None:
        session = self._sessions.get(name)
        if session is not None:
            session.requests -= 1
            self._sessions.move_to_end(name)

    async def _end_surplus(self, scope: Scope) -> None:
        while len(self._sessions) > self._most:
            counts = Counter(session.caller for session in self._sessions.values())
            (most,) = counts.most_common(1)[0][:1]
            names = [name for name, session in self._sessions.items() if session.caller == most]
            # Of those that wait for an answer or for news, the oldest, where none is silent.
            name = next((one for one in names if not self._sessions[one].requests), names[0])
            del self._sessions[name]
            _log.info("MCP: more than %d sessions: the oldest silent one has ended", self._most)
            await self._end(name, scope)

    async def _end(self, name: bytes, scope: Scope) -> None:
        """End a session as its own client would."""
        headers = [(key, value) for key, value in scope["headers"] if key in _ENDING]
        headers = [(key, value) for key, value in headers if key != _HEADER]
        request = {**scope, "method": "DELETE", "headers": [*headers, (_HEADER, name)]}

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(_: Message) -> None:
            return None

        await self._app(request, receive, send)


def _header(headers: list[tuple[bytes, bytes]]) -> bytes | None:
    return next((value for key, value in headers if key.lower() == _HEADER), None)
