"""Connections of a server: how many there are, and how long each may say nothing.

It counts before a token was asked for. Too many: the oldest goes that has asked for nothing; a
connection whose request does not come, or whose body stops, is closed. A caller who asks at once
always finds a place, and the log takes a few lines of each kind at a time, whatever is done to the
server. The REST server and the MCP server over HTTP both run on these.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any, Final, Protocol

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from anaphora.surfaces.logs import SERVER

BACKLOG: Final = 64
"""Connections that are taken in at a time: each has a descriptor before it can be counted."""

# What truth, indexes and models have open besides, and connections that were just taken in.
_OTHER_FILES: Final = 128 + 3 * BACKLOG
_LEAST: Final = 8
# The same numbers on every system.
_TCP, _NO_DELAY = 6, 1
_LINES, _SECONDS = 5, 10.0
_MUCH: Final = 64 * 1024
_TOO_MANY_FILES: Final = "socket.accept() out of system resource"
_LOGGERS: Final = ("uvicorn.error", "asyncio", SERVER)


@dataclass(frozen=True, slots=True)
class Limits:
    """`connections` at once, fewer where the system allows fewer; seconds for the head of a request
    to come, from its first moment to its end; seconds between two pieces of a body.
    """

    connections: int = 512
    head: float = 10.0
    body: float = 20.0


class Sharing(Protocol):
    """How several processes share the connections of one server."""

    def hand_on(self, made: Any, open_here: int) -> bool:
        """Whether another process has the socket now, of a connection that was just taken in."""

    def closed(self) -> None:
        """One that this process had has ended."""


@dataclass(slots=True)
class OpenConnections:
    """All connections of one server. `silent` are those that ask for nothing now, oldest first."""

    limits: Limits
    sharing: Sharing | None = None
    most: int = 0
    silent: OrderedDict[Connection, None] = field(default_factory=OrderedDict)

    def __post_init__(self) -> None:
        self.most = _affordable(self.limits.connections)

    def admit(self, new: Connection) -> None:
        """Take a connection in; with too many, the one goes that has been silent for longest."""
        self.silent[new] = None
        if len(new.connections) > self.most:
            next(iter(self.silent)).drop()


class Connection(H11Protocol):
    """One connection. Made by uvicorn, which passes all but the others."""

    def __init__(self, *given: Any, others: OpenConnections, **named: Any) -> None:
        super().__init__(*given, **named)
        self._others = others
        self._timer: asyncio.TimerHandle | None = None
        self._elsewhere = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A caller has come, and has said nothing yet."""
        made, sharing = transport.get_extra_info("socket"), self._others.sharing
        if sharing is not None and sharing.hand_on(made, len(self.connections)):
            # Nothing was read yet, and the other process's descriptor keeps it open.
            self._elsewhere = True
            transport.abort()
            return
        super().connection_made(JoinedWrites(transport, self.loop))  # type: ignore[arg-type]
        if made is not None and made.family.name in {"AF_INET", "AF_INET6"}:
            # Else the next piece of an answer waits 40 ms for an acknowledgement of the last.
            made.setsockopt(_TCP, _NO_DELAY, 1)
        self._wait(self._others.limits.head, self.drop)
        self._others.admit(self)

    def data_received(self, data: bytes) -> None:
        """Something has come."""
        super().data_received(data)
        self._look(came=True)

    def on_response_complete(self) -> None:
        """An answer has gone out; what was sent with it already may be the next request."""
        super().on_response_complete()
        self._look(came=False)

    def connection_lost(self, exc: Exception | None) -> None:
        """The caller has gone, or was sent away."""
        if self._elsewhere:
            return
        self._wait(None)
        self._others.silent.pop(self, None)
        super().connection_lost(exc)
        if self._others.sharing is not None:
            self._others.sharing.closed()

    def drop(self) -> None:
        """Let go of it at once: it is not owed an answer."""
        self.connections.discard(self)
        self._others.silent.pop(self, None)
        self._wait(None)
        self.transport.abort()

    def _look(self, *, came: bool) -> None:
        """Which part of a request is awaited now, and for how long."""
        if self.transport.is_closing():
            return
        theirs = self.conn.their_state
        if theirs is h11.IDLE:
            # Between two requests uvicorn's own time for a silent connection runs.
            if self not in self._others.silent:
                self._wait(None)
                self._others.silent[self] = None
            if came and self._timer is None:
                self._wait(self._others.limits.head, self.drop)
            return
        self._others.silent.pop(self, None)
        if theirs is not h11.SEND_BODY:
            self._wait(None)
        elif self._timer is None or not self.cycle.response_complete:
            # After the answer the time does not begin again with each piece.
            self._wait(self._others.limits.body, self._drop_stopped_body)

    def _drop_stopped_body(self) -> None:
        """A body has not gone on, unless it is we who do not read."""
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
    """A transport that sends what is written at one go in one piece: an answer's head and body.

    Every call of the system lets another thread have the interpreter, and waits to have it back.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._pieces: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        """Send something soon, or at once where it is much."""
        if not self._pieces:
            self._loop.call_soon(self._send)
        self._pieces.append(data)
        self._size += len(data)
        if self._size > _MUCH:
            self._send()

    def close(self) -> None:
        """End the connection when all is sent."""
        self._send()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def _send(self) -> None:
        if self._pieces:
            pieces, self._pieces, self._size = self._pieces, [], 0
            self._transport.write(b"".join(pieces))


def uvicorn_settings(limits: Limits, sharing: Sharing | None = None) -> dict[str, Any]:
    """What uvicorn's settings need so that a server keeps to the limits, and shares if it does."""
    return {
        "http": partial(Connection, others=OpenConnections(limits, sharing)),
        "ws": "none",
        "backlog": BACKLOG,
    }


class _LogThrottle(logging.Filter):
    """Lets a few records of each kind pass in a while, and says how many it kept back."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self._clock = clock
        self._seen: dict[str, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is one of the few."""
        kind, now = str(record.msg).partition("\n")[0], self._clock()
        begun, count = self._seen.get(kind, (now, 0))
        if now - begun >= _SECONDS:
            if count > _LINES:
                record.msg = f"{record.msg} ({count - _LINES:,} more in {now - begun:.0f} s)"
            begun, count = now, 0
        self._seen[kind] = (begun, count + 1)
        if kind == _TOO_MANY_FILES:
            # It says all; the traceback is the event loop's own.
            record.exc_info = None
        return count < _LINES


@contextmanager
def throttled_logs(clock: Callable[[], float] = monotonic) -> Iterator[None]:
    """While a server runs, nobody fills the disk by making it log the same again and again."""
    few = _LogThrottle(clock)
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(few)
    try:
        yield
    finally:
        for name in _LOGGERS:
            logging.getLogger(name).removeFilter(few)


def _affordable(wanted: int) -> int:
    """As many connections as leave descriptors for everything else."""
    try:
        import resource

        allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        opened = len(os.listdir("/dev/fd"))  # noqa: PTH208 - names alone
    except (ImportError, OSError):
        return wanted
    if allowed == resource.RLIM_INFINITY:
        return wanted
    return min(wanted, max(_LEAST, allowed - opened - _OTHER_FILES))
