"""Several processes for one server, each with the home open; the first accepts all connections.

It keeps a connection or hands it to the process with the fewest open ones, as a descriptor through
a socket pair; otherwise the process that wakes first would accept them all. The first process
starts the others by its own command line, with their end of the pair. It restarts one that ends,
and all end with it: they read from it until it is gone.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from anaphora.surfaces.logs import SERVER

MOST: Final = 64
"""Maximum number of processes of one server."""
_BACKLOG: Final = 2048
_LOOK: Final = 1.0
"""Seconds between two checks for ended processes, which also delays a restart loop."""
_STARTING: Final = 30.0
_LOOK_FIRST: Final = 0.02
"""Seconds that the others have to start, and between two checks whether they have."""
_PATIENCE: Final = 40.0
"""Seconds that the others have to end: more than running requests have."""

_READY, _OPENED, _CLOSED = b"+", b"c", b"-"
"""Bytes on a socket pair: the process is ready, a connection is handed over, or has closed."""
_PIECE, _AT_ONCE = 4096, 64

_log = logging.getLogger(SERVER)


def one_per_core() -> int:
    """One process per available core, on platforms that support several."""
    if sys.platform == "win32":
        return 1
    has_affinity = hasattr(os, "sched_getaffinity")
    return min(MOST, len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises OSError if that fails."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    with ExitStack() as closing:
        listener = closing.enter_context(socket.socket(family, kind, protocol))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
        closing.pop_all()
    return listener


def free_port(host: str, ports: Iterable[int]) -> int:
    """The first of these ports that is free; 0, which chooses any, if none is."""
    for port in ports:
        try:
            listen(host, port).close()
        except OSError:
            continue
        return port
    return 0


@dataclass(slots=True)
class Sibling:
    """Another process of the server, and the number of its open connections."""

    process: subprocess.Popen[bytes]
    channel: socket.socket
    open: int = 0
    _ready: bool = False

    def takes(self) -> bool:
        """Whether it accepts connections, by its last message."""
        try:
            while received_bytes := self.channel.recv(_PIECE):
                self._ready = self._ready or _READY in received_bytes
                self.open -= received_bytes.count(_CLOSED)
            self._ready = False
        except BlockingIOError:
            pass
        except OSError:
            self._ready = False
        return self._ready

    def take(self, connection: socket.socket) -> bool:
        """Hand a connection over; False if the process is gone or does not read."""
        try:
            socket.send_fds(self.channel, [_OPENED], [connection.fileno()])
        except OSError:
            return False
        self.open += 1
        return True


@dataclass(slots=True)
class Siblings:
    """The other processes of a server, started by `command` and given the `own` token."""

    command: Sequence[str]
    own: str | None
    _running: list[Sibling] = field(default_factory=list)
    _ended: list[Sibling] = field(default_factory=list)
    _stopping: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self, count: int) -> Iterator[None]:
        """Run `count` of them within the context."""
        with ExitStack() as stack:
            stack.callback(self._end_all)
            for _ in range(count):
                self._running.append(self._start())
            watching = threading.Thread(target=self._watch, name="anaphora-siblings", daemon=True)
            watching.start()
            stack.callback(watching.join)
            stack.callback(self._stopping.set)
            yield

    async def ready(self) -> None:
        """Wait until all accept connections: earlier ones would stay with the first process.

        After a time-out the server runs without those that did not start.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(_STARTING):
                while not all(sibling.takes() for sibling in self._running):
                    await asyncio.sleep(_LOOK_FIRST)

    def hand_on(self, connection: socket.socket, open_here: int) -> bool:
        """Try to hand a connection to the least loaded process with fewer open ones than here."""
        while self._ended:
            self._ended.pop().channel.close()
        taking = [
            sibling for sibling in self._running if sibling.takes() and sibling.open < open_here
        ]
        return any(
            sibling.take(connection) for sibling in sorted(taking, key=lambda sibling: sibling.open)
        )

    def closed(self) -> None:
        """Nothing to do: the first process counts its own connections."""

    def _start(self) -> Sibling:
        own_end, other_end = socket.socketpair()
        own_end.setblocking(False)
        with other_end:
            descriptor = other_end.fileno()
            process = subprocess.Popen(  # noqa: S603 - the command that this process is
                [*self.command, "--descriptor", str(descriptor)],
                stdin=subprocess.PIPE,
                pass_fds=(descriptor,),
                # Signals of the terminal are for the first process alone.
                start_new_session=True,
            )
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps({"own": self.own}).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            # It has already ended, and reported why.
            pass
        return Sibling(process, own_end)

    def _watch(self) -> None:
        while not self._stopping.wait(_LOOK):
            for index, sibling in enumerate(self._running):
                if sibling.process.poll() is not None:
                    code = sibling.process.returncode
                    _log.warning("a process of the server ended (%s): another one", code)
                    self._running[index] = self._start()
                    # Its channel is closed by the event loop, in `hand_on`.
                    self._ended.append(sibling)

    def _end_all(self) -> None:
        for sibling in self._running:
            if sibling.process.stdin is not None:
                sibling.process.stdin.close()
        for sibling in self._running:
            try:
                sibling.process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                sibling.process.kill()
                sibling.process.wait()
        for sibling in (*self._running, *self._ended):
            sibling.channel.close()


class HandedConnections:
    """The connections that the first process hands to this one, through a descriptor's channel."""

    def __init__(self, descriptor: int) -> None:
        self.channel = socket.socket(fileno=descriptor)
        self._coming: set[asyncio.Task[Any]] = set()

    def hand_on(self, connection: socket.socket, open_here: int) -> bool:
        """A connection that was handed over stays in this process."""
        return False

    def closed(self) -> None:
        """Tell the first process that a connection has closed."""
        # If that process is gone, the count no longer matters.
        with suppress(OSError):
            self.channel.send(_CLOSED)

    def take_in(self, make: Callable[[], asyncio.Protocol]) -> None:
        """Accept connections from now on, each with its own protocol."""
        loop = asyncio.get_running_loop()
        self.channel.setblocking(False)
        loop.add_reader(self.channel, self._take_handed, loop, make)
        # If the first process is gone, this one is about to end.
        with suppress(OSError):
            self.channel.send(_READY)

    def stop(self) -> None:
        """Accept no more connections."""
        asyncio.get_running_loop().remove_reader(self.channel)

    def _take_handed(
        self, loop: asyncio.AbstractEventLoop, make: Callable[[], asyncio.Protocol]
    ) -> None:
        try:
            received_bytes, descriptors, _, _ = socket.recv_fds(self.channel, _AT_ONCE, _AT_ONCE)
        except BlockingIOError:
            return
        except OSError:
            received_bytes, descriptors = b"", []
        if not received_bytes:
            self.stop()
        for _ in range(len(received_bytes) - len(descriptors)):
            # The process had no free descriptors for it.
            self.closed()
        for descriptor in descriptors:
            connection = socket.socket(fileno=descriptor)
            connection.setblocking(False)
            coming = loop.create_task(loop.connect_accepted_socket(make, connection))
            self._coming.add(coming)
            coming.add_done_callback(self._coming.discard)


def read_own_token() -> str | None:
    """The token that the first process passes on standard input; this one ends with it."""
    line = sys.stdin.buffer.readline()
    watching = threading.Thread(target=_end_with_first, name="anaphora-first", daemon=True)
    watching.start()
    token = json.loads(line)["own"] if line else None
    return str(token) if token is not None else None


def _end_with_first() -> None:
    while sys.stdin.buffer.read(1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
