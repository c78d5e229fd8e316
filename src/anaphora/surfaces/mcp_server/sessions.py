"""Limits the number of open client sessions, and shares it fairly among callers.

A session lasts until its client ends it or is silent for long, and clients seldom end theirs. Above
the limit, the caller with the most sessions loses the one that was silent longest; its client gets
404 and starts another, as the protocol requires. So no caller can lock others out.
"""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_SESSIONS: Final = 200
"""Maximum number of sessions of all callers."""
MOST_OPENING: Final = 50
"""Maximum number of requests of one caller that may be opening a session at once."""

_HEADER: Final = b"mcp-session-id"
_PASSED_ON: Final = frozenset((b"host", b"authorization", b"mcp-protocol-version"))

_log = logging.getLogger("anaphora")


@dataclass(slots=True)
class _McpSession:
    """A session: its caller, and the number of its requests in progress."""

    caller: str
    requests: int = 0


class FairSessions:
    """Wraps the SDK's application and counts the sessions that it opens, by `caller`.

    Used by one event loop.
    """

    def __init__(self, app: ASGIApp, most: int = MOST_SESSIONS) -> None:
        self._app = app
        self._most = most
        # Ordered by last use, the most recent at the end.
        self._sessions: OrderedDict[bytes, _McpSession] = OrderedDict()
        self._opening: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send, caller: str) -> bool:
        """Handle one request; False if the caller is opening too many sessions at once."""
        name = _header(scope["headers"])
        if name is not None:
            await self._pass_on(name, scope, receive, send)
            return True
        if self._opening[caller] >= MOST_OPENING:
            return False
        self._opening[caller] += 1
        session_names: list[bytes] = []

        async def send_noting(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < 400:
                name = _header(message["headers"])
                if name is not None:
                    session_names.append(name)
                    self._sessions[name] = _McpSession(caller, 1)
                    await self._end_surplus(scope)
            await send(message)

        try:
            await self._app(scope, receive, send_noting)
        finally:
            self._opening[caller] -= 1
            if not self._opening[caller]:
                del self._opening[caller]
            for name in session_names:
                self._note_answered(name)
        return True

    async def _pass_on(self, name: bytes, scope: Scope, receive: Receive, send: Send) -> None:
        session = self._sessions.get(name)
        if session is not None:
            session.requests += 1
            self._sessions.move_to_end(name)

        async def send_noting(message: Message) -> None:
            is_ended = scope["method"] == "DELETE" and message.get("status") == 200
            if is_ended or message.get("status") == 404:
                self._sessions.pop(name, None)
            await send(message)

        try:
            await self._app(scope, receive, send_noting)
        finally:
            self._note_answered(name)

    def _note_answered(self, name: bytes) -> None:
        session = self._sessions.get(name)
        if session is not None:
            session.requests -= 1
            self._sessions.move_to_end(name)

    async def _end_surplus(self, scope: Scope) -> None:
        """End sessions above the limit, each the way its own client would."""
        headers = [(key, content) for key, content in scope["headers"] if key in _PASSED_ON]

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(_: Message) -> None:
            return None

        while len(self._sessions) > self._most:
            counts = Counter(session.caller for session in self._sessions.values())
            (busiest_caller,) = counts.most_common(1)[0][:1]
            names = [
                name for name, session in self._sessions.items() if session.caller == busiest_caller
            ]
            # If none is silent, the oldest of those that wait for an answer or for events.
            name = next(
                (session_id for session_id in names if not self._sessions[session_id].requests),
                names[0],
            )
            del self._sessions[name]
            _log.info("MCP: more than %d sessions: the oldest silent one has ended", self._most)
            request = {**scope, "method": "DELETE", "headers": [*headers, (_HEADER, name)]}
            await self._app(request, receive, send)


def _header(headers: list[tuple[bytes, bytes]]) -> bytes | None:
    return next((content for key, content in headers if key.lower() == _HEADER), None)
