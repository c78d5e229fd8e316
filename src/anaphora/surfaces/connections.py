"""Limits a server's connections: their number, and how long each may stay silent.

This happens before authentication. Above the limit, the longest idle connection is closed; so is
one whose request does not arrive, or whose body stalls. A client that sends its request at once is
always served, and repeated log records are throttled. The REST server and the MCP server over HTTP
both use these.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any, Final, Protocol

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from anaphora.surfaces.logs import SERVER

BACKLOG: Final = 64
"""Connections accepted at a time: each has a descriptor before it is counted."""

# Descriptors for databases, indexes and models, and for connections accepted but not yet counted.
_OTHER_FILES: Final = 128 + 3 * BACKLOG
_LEAST: Final = 8
# These numbers are the same on every system.
_TCP, _NO_DELAY = 6, 1
_LINES, _SECONDS = 5, 10.0
_MUCH: Final = 64 * 1024
_TOO_MANY_FILES: Final = "socket.accept() out of system resource"
_LOGGERS: Final = ("uvicorn.error", "asyncio", SERVER)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """`connections` at once, fewer if the system allows fewer; seconds for a request's headers,
    from the first moment to the end; seconds between two chunks of a body.
    """

    connections: int = 512
    head: float = 10.0
    body: float = 20.0


class Sharing(Protocol):
    """How several processes share the connections of one server."""

    def hand_on(self, made: Any, open_here: int) -> bool:
        """Try to hand the socket of an accepted connection to another process."""

    def closed(self) -> None:
        """Note that a connection of this process has ended."""


@dataclass(slots=True)
class OpenConnections:
    """All connections of one server. `silent` are those without a request, oldest first."""

    limits: ConnectionLimits
    sharing: Sharing | None = None
    most: int = 0
    silent: OrderedDict[HttpConnection, None] = field(default_factory=OrderedDict)

    def __post_init__(self) -> None:
        # As many as leave enough descriptors for everything else.
        self.most = self.limits.connections
        with suppress(ImportError, OSError):
            import resource

            file_limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            open_count = len(os.listdir("/dev/fd"))  # noqa: PTH208 - names alone
            if file_limit != resource.RLIM_INFINITY:
                self.most = min(self.most, max(_LEAST, file_limit - open_count - _OTHER_FILES))

    def admit(self, new: HttpConnection) -> None:
        """Admit a connection; above the limit, the one silent for longest is dropped."""
        self.silent[new] = None
        if len(new.connections) > self.most:
            next(iter(self.silent)).drop()


class HttpConnection(H11Protocol):
    """One connection. Created by uvicorn with all arguments but `others`."""

    def __init__(self, *given: Any, others: OpenConnections, **named: Any) -> None:
        super().__init__(*given, **named)
        self._others = others
        self._timer: asyncio.TimerHandle | None = None
        self._elsewhere = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has connected, and has sent nothing yet."""
        sock, sharing = transport.get_extra_info("socket"), self._others.sharing
        if sharing is not None and sharing.hand_on(sock, len(self.connections)):
            # Nothing was read yet, and the other process's descriptor keeps the socket open.
            self._elsewhere = True
            transport.abort()
            return
        super().connection_made(JoinedWrites(transport, self.loop))  # type: ignore[arg-type]
        if sock is not None and sock.family.name in {"AF_INET", "AF_INET6"}:
            # Otherwise the next chunk of an answer waits 40 ms for an acknowledgement.
            sock.setsockopt(_TCP, _NO_DELAY, 1)
        self._wait(self._others.limits.head, self.drop)
        self._others.admit(self)

    def data_received(self, data: bytes) -> None:
        """Data has arrived."""
        super().data_received(data)
        self._look(came=True)

    def on_response_complete(self) -> None:
        """A response is complete; data already received may be the next request."""
        super().on_response_complete()
        self._look(came=False)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has disconnected, or was dropped."""
        if self._elsewhere:
            return
        self._wait(None)
        self._others.silent.pop(self, None)
        super().connection_lost(exc)
        if self._others.sharing is not None:
            self._others.sharing.closed()

    def drop(self) -> None:
        """Close the connection at once, without a response."""
        self.connections.discard(self)
        self._others.silent.pop(self, None)
        self._wait(None)
        self.transport.abort()

    def _look(self, *, came: bool) -> None:
        """Set the time-out for the part of a request that is expected next."""
        if self.transport.is_closing():
            return
        client_state = self.conn.their_state
        if client_state is h11.IDLE:
            # Between two requests uvicorn's own keep-alive time-out runs.
            if self not in self._others.silent:
                self._wait(None)
                self._others.silent[self] = None
            if came and self._timer is None:
                self._wait(self._others.limits.head, self.drop)
            return
        self._others.silent.pop(self, None)
        if client_state is not h11.SEND_BODY:
            self._wait(None)
        elif self._timer is None or not self.cycle.response_complete:
            # After the response, chunks do not restart the time-out.
            self._wait(self._others.limits.body, self._drop_stopped_body)

    def _drop_stopped_body(self) -> None:
        """Drop a stalled body, unless the server itself has paused reading."""
        if self.flow.read_paused and not self.cycle.response_complete:
            self._wait(self._others.limits.body, self._drop_stopped_body)
        else:
            self.drop()

    def _wait(self, seconds: float | None, then: Callable[[], None] | None = None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if seconds is not None and then is not None:
            self._timer = self.loop.call_later(seconds, then)


class JoinedWrites:
    """A transport that joins writes of one step into one send: a response's head and body.

    Every system call releases the interpreter lock and waits to get it back.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._pieces: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        """Send data soon, or at once if it is large."""
        if not self._pieces:
            self._loop.call_soon(self._send)
        self._pieces.append(data)
        self._size += len(data)
        if self._size > _MUCH:
            self._send()

    def close(self) -> None:
        """Close the connection after sending what is pending."""
        self._send()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def _send(self) -> None:
        if self._pieces:
            pieces, self._pieces, self._size = self._pieces, [], 0
            self._transport.write(b"".join(pieces))


def uvicorn_settings(limits: ConnectionLimits, sharing: Sharing | None = None) -> dict[str, Any]:
    """Settings with which uvicorn enforces the limits, and shares connections if asked to."""
    return {
        "http": partial(HttpConnection, others=OpenConnections(limits, sharing)),
        "ws": "none",
        "backlog": BACKLOG,
    }


class _LogThrottle(logging.Filter):
    """Passes a few records of each kind per period, and counts the suppressed ones."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self._clock = clock
        self._seen: dict[str, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to pass the record."""
        kind, now = str(record.msg).partition("\n")[0], self._clock()
        begun, count = self._seen.get(kind, (now, 0))
        if now - begun >= _SECONDS:
            if count > _LINES:
                record.msg = f"{record.msg} ({count - _LINES:,} more in {now - begun:.0f} s)"
            begun, count = now, 0
        self._seen[kind] = (begun, count + 1)
        if kind == _TOO_MANY_FILES:
            # The message says everything; the traceback is the event loop's own.
            record.exc_info = None
        return count < _LINES


@contextmanager
def throttled_logs(clock: Callable[[], float] = monotonic) -> Iterator[None]:
    """While a server runs, throttle repeated log records, so that they cannot fill the disk."""
    throttle = _LogThrottle(clock)
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(throttle)
    try:
        yield
    finally:
        for name in _LOGGERS:
            logging.getLogger(name).removeFilter(throttle)
