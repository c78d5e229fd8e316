"""Several processes for one server: all take connections from one socket, each has the home open.

The first owns the socket and starts the others by its own command line, with the socket's
descriptor. It starts one again that ended, and all end with it: they read from it until it is gone.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Final

from anaphora.errors import InvalidInput

_BACKLOG: Final = 2048
_LOOK: Final = 1.0
"""Seconds between two looks whether one has ended; who ends at once is not started in a loop."""
_PATIENCE: Final = 40.0
"""Seconds that the others have to end, more than running requests have."""

_log = logging.getLogger(__name__)


def refuse_unless_possible(processes: int) -> None:
    """`InvalidInput` for several processes where a listening socket cannot be handed on."""
    if processes > 1 and sys.platform == "win32":
        raise InvalidInput("processes", processes, "one process is all there is on Windows")


def listen(host: str, port: int) -> socket.socket:
    """A listening socket that processes can share. OSError where it cannot be had."""
    found = socket.getaddrinfo(
        host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    family, kind, protocol, _, address = found[0]
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(_BACKLOG)
        made.set_inheritable(True)
    except OSError:
        made.close()
        raise
    return made


def handed_on(descriptor: int) -> socket.socket:
    """The socket that the first process has handed on."""
    return socket.socket(fileno=descriptor)


@dataclass(slots=True)
class Siblings:
    """The other processes of a server, started by `command` and told the `own` token."""

    command: Sequence[str]
    shared: socket.socket
    own: str | None
    _running: list[subprocess.Popen[bytes]] = field(default_factory=list)
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

    def _started(self) -> subprocess.Popen[bytes]:
        descriptor = self.shared.fileno()
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
        return made

    def _watch(self) -> None:
        while not self._stopping.wait(_LOOK):
            for place, one in enumerate(self._running):
                if one.poll() is not None:
                    _log.warning("a process of the server ended (%s): another one", one.returncode)
                    self._running[place] = self._started()

    def _end(self) -> None:
        for one in self._running:
            if one.stdin is not None:
                one.stdin.close()
        for one in self._running:
            try:
                one.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                one.kill()
                one.wait()


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
