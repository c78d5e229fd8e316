"""Several processes for one server, each with the home open: the first takes all connections in.

It keeps one, or hands it on to the process that has fewest open, as a descriptor through a pair of
sockets; left to themselves, the process that wakes first takes all that have come. The first
starts the others by its own command line, with their end of the pair. It starts one again that
ended, and all end with it: they read from it until it is gone.
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

from anaphora.errors import InvalidInput
from anaphora.surfaces.logs import SERVER

MOST: Final = 64
"""Processes of one server."""
_BACKLOG: Final = 2048
_LOOK: Final = 1.0
"""Seconds between two looks whether one has ended; who ends at once is not started in a loop."""
_STARTING: Final = 30.0
_LOOK_FIRST: Final = 0.02
"""Seconds that the others have to start, and between two looks whether they have."""
_PATIENCE: Final = 40.0
"""Seconds that the others have to end, more than running requests have."""

_READY, _OPENED, _CLOSED = b"+", b"c", b"-"
"""What goes through a pair of sockets: a process is ready, has a connection, has one no more."""
_PIECE, _AT_ONCE = 4096, 64

_log = logging.getLogger(SERVER)


def one_a_core() -> int:
    """A process for each core that this one may use, where there can be several."""
    if sys.platform == "win32":
        return 1
    known = hasattr(os, "sched_getaffinity")
    return min(MOST, len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1)


def refuse_unless_possible(processes: int) -> None:
    """`InvalidInput` for several processes where a connection cannot be handed on."""
    if processes > 1 and sys.platform == "win32":
        raise InvalidInput("processes", processes, "one process is all there is on Windows")


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. OSError where it cannot be had."""
    found = socket.getaddrinfo(
        host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    family, kind, protocol, _, address = found[0]
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(_BACKLOG)
    except OSError:
        made.close()
        raise
    return made


def free_port(host: str, ports: Iterable[int]) -> int:
    """The first of these ports that nothing listens on; 0, any free one, where all are taken."""
    for port in ports:
        try:
            listen(host, port).close()
        except OSError:
            continue
        return port
    return 0


@dataclass(slots=True)
class Sibling:
    """Another process of the server, and how many connections it has open."""

    process: subprocess.Popen[bytes]
    channel: socket.socket
    open: int = 0
    _ready: bool = False

    def takes(self) -> bool:
        """Whether it takes connections, by what it has said until now."""
        try:
            while said := self.channel.recv(_PIECE):
                self._ready = self._ready or _READY in said
                self.open -= said.count(_CLOSED)
            self._ready = False
        except BlockingIOError:
            pass
        except OSError:
            self._ready = False
        return self._ready

    def take(self, made: socket.socket) -> bool:
        """Hand a connection on to it; False where it is gone, or does not read."""
        try:
            socket.send_fds(self.channel, [_OPENED], [made.fileno()])
        except OSError:
            return False
        self.open += 1
        return True


@dataclass(slots=True)
class Siblings:
    """The other processes of a server, started by `command` and told the `own` token."""

    command: Sequence[str]
    own: str | None
    _running: list[Sibling] = field(default_factory=list)
    _ended: list[Sibling] = field(default_factory=list)
    _stopping: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self, count: int) -> Iterator[None]:
        """So many of them while inside."""
        with ExitStack() as stack:
            stack.callback(self._end)
            for _ in range(count):
                self._running.append(self._started())
            watching = threading.Thread(target=self._watch, name="anaphora-siblings", daemon=True)
            watching.start()
            stack.callback(watching.join)
            stack.callback(self._stopping.set)
            yield

    async def ready(self) -> None:
        """Wait until all take connections: callers who come before stay with the first process.

        Not for ever: one that does not start is missed, and the others answer.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(_STARTING):
                while not all(one.takes() for one in self._running):
                    await asyncio.sleep(_LOOK_FIRST)

    def hand_on(self, made: socket.socket, open_here: int) -> bool:
        """Whether another process has it now: one that has fewer open, of these the first."""
        while self._ended:
            self._ended.pop().channel.close()
        taking = [one for one in self._running if one.takes() and one.open < open_here]
        return any(one.take(made) for one in sorted(taking, key=lambda one: one.open))

    def closed(self) -> None:
        """Here they are counted anyway."""

    def _started(self) -> Sibling:
        own_end, other_end = socket.socketpair()
        own_end.setblocking(False)
        with other_end:
            descriptor = other_end.fileno()
            made = subprocess.Popen(  # noqa: S603 - the command that this process is
                [*self.command, "--descriptor", str(descriptor)],
                stdin=subprocess.PIPE,
                pass_fds=(descriptor,),
                # A signal from a terminal is the first process's alone to answer.
                start_new_session=True,
            )
        assert made.stdin is not None
        try:
            made.stdin.write(json.dumps({"own": self.own}).encode() + b"\n")
            made.stdin.flush()
        except BrokenPipeError:
            # It has ended already, and said why.
            pass
        return Sibling(made, own_end)

    def _watch(self) -> None:
        while not self._stopping.wait(_LOOK):
            for place, one in enumerate(self._running):
                if one.process.poll() is not None:
                    code = one.process.returncode
                    _log.warning("a process of the server ended (%s): another one", code)
                    self._running[place] = self._started()
                    # Closed where it is used.
                    self._ended.append(one)

    def _end(self) -> None:
        for one in self._running:
            if one.process.stdin is not None:
                one.process.stdin.close()
        for one in self._running:
            try:
                one.process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                one.process.kill()
                one.process.wait()
        for one in (*self._running, *self._ended):
            one.channel.close()


@dataclass(slots=True)
class HandedConnections:
    """The connections that the first process hands on to this one, through its `channel`."""

    channel: socket.socket
    _coming: set[asyncio.Task[Any]] = field(default_factory=set)

    @classmethod
    def through(cls, descriptor: int) -> HandedConnections:
        """Those that come through the channel of this descriptor."""
        return cls(socket.socket(fileno=descriptor))

    def hand_on(self, made: socket.socket, open_here: int) -> bool:
        """What was handed on stays."""
        return False

    def closed(self) -> None:
        """Tell the first process that one has ended."""
        # Where that is gone, nobody counts.
        with suppress(OSError):
            self.channel.send(_CLOSED)

    def take_in(self, make: Callable[[], asyncio.Protocol]) -> None:
        """Take connections from now on, each with a protocol of its own."""
        loop = asyncio.get_running_loop()
        self.channel.setblocking(False)
        loop.add_reader(self.channel, self._take, loop, make)
        # Where the first process is gone, this one is about to end.
        with suppress(OSError):
            self.channel.send(_READY)

    def stop(self) -> None:
        """Take no more."""
        asyncio.get_running_loop().remove_reader(self.channel)

    def _take(self, loop: asyncio.AbstractEventLoop, make: Callable[[], asyncio.Protocol]) -> None:
        try:
            said, descriptors, _, _ = socket.recv_fds(self.channel, _AT_ONCE, _AT_ONCE)
        except BlockingIOError:
            return
        except OSError:
            said, descriptors = b"", []
        if not said:
            self.stop()
        for _ in range(len(said) - len(descriptors)):
            # There were no descriptors left for it.
            self.closed()
        for descriptor in descriptors:
            made = socket.socket(fileno=descriptor)
            made.setblocking(False)
            coming = loop.create_task(loop.connect_accepted_socket(make, made))
            self._coming.add(coming)
            coming.add_done_callback(self._coming.discard)


def told_own() -> str | None:
    """The token that the first process tells one of the others, which ends when that has gone."""
    line = sys.stdin.buffer.readline()
    watching = threading.Thread(target=_end_with_first, name="anaphora-first", daemon=True)
    watching.start()
    own = json.loads(line)["own"] if line else None
    return str(own) if own is not None else None


def _end_with_first() -> None:
    while sys.stdin.buffer.read(1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
