"""The resident process: listens where only its user can reach it, answers, and ends when idle.

There are three requests: `hook` answers an event of a session, `hello` only compares versions, as
`hook` does too (the older process makes room), `embed` returns vectors of the bundled model. Each
caller has a thread; background work runs after the requests, one item at a time. A crash loses
nothing: acknowledged writes are on the disk, and callers do the work themselves or start another
process. What a session was given is noted by the caller that printed it, never here.

It listens before it imports what answers: the first hook learns at once that it is at work.
"""

from __future__ import annotations

import gc
import json
import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from anaphora.errors import AnaphoraError
from anaphora.settings import client_folders, silence_libraries
from anaphora.surfaces.logs import server_logs
from anaphora.system import resident
from anaphora.system.environment import caller_mark, environment, is_trial
from anaphora.system.heap import HeapWatch, share_heap
from anaphora.system.incidents import report

if TYPE_CHECKING:
    from multiprocessing.connection import Connection, Listener

    from anaphora.api.memory import Memory
    from anaphora.embed.base import Embedder
    from anaphora.features.coding_agents.hooks.session import HookAnswer, SessionHooks

_LOOK: Final = 1.0
_QUIET: Final = 10.0
"""Seconds without a request until the databases' logs are truncated."""

_CLOSING: Final = 5.0
_MOST: Final = 64 << 20
"""Maximum bytes of one request: texts to embed are sent in batches."""

_HOMES: Final = 8
_OBJECTS: Final = 700
"""New objects between two runs of the garbage collector, after the first answer."""

MemoryKey: TypeAlias = frozenset[tuple[str, str]]


class ResidentServer:
    """Answers the requests of one user, from one environment. `idle` is in seconds."""

    def __init__(self, environ: Mapping[str, str], *, idle: float) -> None:
        self._environ = environ
        self._idle = idle
        self._lock = threading.Lock()
        self._opening = threading.Lock()
        self._busy = 0
        self._used = time.monotonic()
        self._ending = threading.Event()
        self._hooks: dict[MemoryKey, SessionHooks] = {}
        self._memories: dict[MemoryKey, Memory] = {}
        self._later: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._after: SimpleQueue[Callable[[], object]] = SimpleQueue()
        # The command collects nothing during a first answer: what that left goes, and from then on
        # it is as usual in Python.
        self._after.put(gc.collect)
        self._after.put(lambda: gc.set_threshold(_OBJECTS))
        self._put_off: list[tuple[float, Callable[[], object]]] = []
        self._embedder: Embedder | None = None
        self._stamp = resident.program_stamp()
        self._caller = caller_mark(environ)
        self._worker = threading.Thread(target=self._work, daemon=True)
        self._seen_homes: dict[Path, int] = {}

    def serve(self, listener: Listener) -> None:
        """Accept connections until idle for long enough, or until a newer version asks.

        It ends, too, once what it serves is gone: its program, its address, or the homes.
        """
        threading.Thread(target=self._listen, args=(listener,), daemon=True).start()
        self._worker.start()
        heap, tidied_at = HeapWatch(), 0.0
        while not self._ending.wait(_LOOK):
            now = time.monotonic()
            with self._lock:
                busy = self._busy > 0
                silent = not busy and now - self._used > self._idle
            heap.look(now, busy=busy)
            if not busy and now - self._used > _QUIET and now - tidied_at >= _QUIET:
                # Background work, such as a delayed reading, lets the databases' logs grow again
                # without a request, so this repeats.
                tidied_at = now
                self._cut_logs()
            self._take_up(now)
            if self._is_left(str(listener.address)) or (
                silent and self._later.empty() and not self._put_off
            ):
                self._ending.set()
        listener.close()

    def close(self) -> None:
        """Finish what is under way, within some seconds; another process may listen meanwhile."""
        self._take_up(float("inf"))
        self._later.put(None)
        self._worker.join(_CLOSING)
        # Answers in progress are still sent, if they do not take long.
        end = time.monotonic() + _CLOSING
        while self._busy and time.monotonic() < end:
            time.sleep(0.005)
        for memory in self._memories.values():
            memory.close(_CLOSING)

    def _present_homes(self) -> set[Path]:
        """The homes that are as this process found them.

        A folder that was deleted and that work still under way here makes anew is another one.
        """
        present = set()
        for memory in list(self._memories.values()):
            with suppress(OSError):
                inode = memory.home.stat().st_ino
                if self._seen_homes.setdefault(memory.home, inode) == inode:
                    present.add(memory.home)
        return present

    def _is_left(self, address: str) -> bool:
        """Whether what this process serves, or runs on, is gone."""
        homes = {memory.home for memory in list(self._memories.values())}
        present = self._present_homes()
        return (
            # A home that was not begun yet may still be.
            bool(homes and homes <= self._seen_homes.keys() - present)
            or (sys.platform != "win32" and not Path(address).exists())
            or not Path(sys.executable).exists()
            or resident.program_stamp() != self._stamp
        )

    def _cut_logs(self) -> None:
        from anaphora.container.view import cut_logs

        for memory in list(self._memories.values()):
            # The next call on a faulty database reports the fault.
            with self._reporting("tidy"), suppress(AnaphoraError, OSError):
                cut_logs(memory)

    def _take_up(self, until: float) -> None:
        """Queue the delayed work that is due by then."""
        with self._lock:
            due_work = [work for at, work in self._put_off if at <= until]
            self._put_off = [
                delayed_work for delayed_work in self._put_off if delayed_work[0] > until
            ]
        for work in due_work:
            self._later.put(work)

    def _listen(self, listener: Listener) -> None:
        with self._reporting("accept"):
            from multiprocessing import AuthenticationError

            while not self._ending.is_set():
                try:
                    connection = listener.accept()
                except (OSError, EOFError, AuthenticationError):
                    # Closed, or the caller disconnected or had no key.
                    self._ending.wait(0.01)
                    continue
                if _is_ours(connection):
                    threading.Thread(target=self._talk, args=(connection,), daemon=True).start()
                else:
                    connection.close()
        # A process that accepts no more callers makes room for another one.
        self._ending.set()

    def _talk(self, connection: Connection) -> None:
        """Answer one caller until it disconnects."""
        with suppress(OSError, EOFError, ValueError), connection:
            while not self._ending.is_set():
                request = resident.unpacked(connection.recv_bytes(_MOST))
                with self._counted():
                    answer = self._refusal(request)
                    if answer is None and request.get("call") == "hook":
                        connection.send_bytes(resident.packed({"pid": os.getpid()}))
                    answer = answer or self._answer(request)
                    # What is left to do, the loading of the model too, waits for the answer.
                    with suppress(OSError):
                        connection.send_bytes(resident.packed(answer))
                    while not self._after.empty():
                        self._later.put(self._after.get())

    @contextmanager
    def _counted(self) -> Iterator[None]:
        with self._lock:
            self._busy += 1
        try:
            yield
        finally:
            with self._lock:
                self._busy -= 1
                self._used = time.monotonic()

    def _refusal(self, request: Mapping[str, Any]) -> dict[str, Any] | None:
        """The answer to a caller of another version or environment; None for any other."""
        if request.get("call") not in {"hello", "hook"}:
            return None
        if not request.get("stamp") == self._stamp == resident.program_stamp():
            # The installed program has changed: a new process will run the new version.
            self._ending.set()
            return {"refused": "another version"}
        # The socket's name is a short hash, so two environments could share it.
        if request.get("caller", self._caller) != self._caller:
            return {"refused": "another environment"}
        return None

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer; for a failed request, an error message."""
        try:
            call = request.get("call")
            if call == "hello":
                return {"pid": os.getpid()}
            if call == "hook":
                answer = self._hook(request)
                return {
                    "body": answer.output.encode(),
                    "state_path": answer.state_path,
                    "state": answer.state,
                }
            if call == "embed":
                return _embed(request)
            return {"failed": f"unknown call {call!r}"}
        except BaseException as error:  # noqa: BLE001 - the caller must get an answer
            incident = report(self._environ, error, surface="resident", operation="request")
            words = f"something went wrong in the resident process (incident {incident.id})"
            return {"failed": words}

    # Hooks.

    def _hook(self, request: dict[str, Any]) -> HookAnswer:
        from anaphora.features.coding_agents.hooks.protocols import PROTOCOLS
        from anaphora.features.coding_agents.hooks.session import HookAnswer, answer_alone

        client = request["client"]
        try:
            if is_trial(request.get("namespace", "")):
                # A trial's namespace is deleted next, and must not stay open here.
                answers: list[HookAnswer] = []
                answer_alone(request, answers.append)
                return answers[0]
            answer = self._hooks_of(request).prepare(client, request["body"])
            self._present_homes()
            return answer
        except BaseException as error:  # noqa: BLE001 - the client must never fail
            self._report(request, error)
            return HookAnswer(PROTOCOLS[client].silence if client in PROTOCOLS else "")

    def _hooks_of(self, request: dict[str, Any]) -> SessionHooks:
        from anaphora.features.coding_agents.hooks.session import (
            SessionHooks,
            open_memory,
            variables_of,
        )

        def put_off(seconds: float, work: Callable[[], object]) -> None:
            with self._lock:
                due_at = time.monotonic() + seconds
                self._put_off.append((due_at, self._reported(request, work)))

        key = _memory_key(request)
        with self._opening:
            if key not in self._hooks:
                if len(self._memories) >= _HOMES:
                    oldest = next(iter(self._memories))
                    self._hooks.pop(oldest, None)
                    self._memories.pop(oldest).close(_CLOSING)
                memory = self._memories[key] = open_memory(request)
                user = client_folders(variables_of(request)).user
                self._hooks[key] = SessionHooks(
                    memory,
                    user=user,
                    background=lambda work: self._after.put(self._reported(request, work)),
                    clock=time.time,
                    later=put_off,
                )
                # The first prompt follows within seconds; the model is loaded by then.
                self._after.put(lambda: memory.ready(60))
                # A synced namespace is kept up to date while this process lives.
                self._after.put(memory.sync.start)
                self._after.put(memory.mirror.start)
            return self._hooks[key]

    def _reported(
        self, request: dict[str, Any], work: Callable[[], object]
    ) -> Callable[[], object]:
        """Wrap background work so that its errors are reported as the request's."""

        def run() -> None:
            try:
                work()
                # Embed what was imported, in the background.
                self._hooks_of(request)
                self._memories[_memory_key(request)].ready(60)
            except BaseException as error:  # noqa: BLE001 - later work goes on
                self._report(request, error)

        return run

    def _work(self) -> None:
        while (work := self._later.get()) is not None:
            # The next call meets the same error and reports it.
            with self._counted(), self._reporting("background"), suppress(AnaphoraError, OSError):
                work()

    def _report(self, request: Mapping[str, Any], error: BaseException) -> None:
        from anaphora.features.coding_agents.hooks.protocols import operation_of
        from anaphora.features.coding_agents.hooks.session import variables_of

        report(variables_of(request), error, surface="hook", operation=operation_of(request))

    @contextmanager
    def _reporting(self, operation: str) -> Iterator[None]:
        """Log errors raised inside: a thread of this process has no caller to report to."""
        try:
            yield
        except BaseException as error:  # noqa: BLE001 - the process goes on
            report(self._environ, error, surface="resident", operation=operation)


def _embed(request: Mapping[str, Any]) -> dict[str, Any]:
    from anaphora.embed.resident import answer_with
    from anaphora.embed.service import spec_for

    spec = spec_for("minilm")
    if request.get("model") != spec.name:
        return {"failed": f"this process has {spec.name}"}
    try:
        return answer_with(spec.load().embed(json.loads(request["body"])))
    except (AnaphoraError, RuntimeError, ValueError, MemoryError) as error:
        return {"failed": str(error)}


def _memory_key(request: Mapping[str, str]) -> MemoryKey:
    """What determines the memory of a request."""
    return frozenset(
        (name, text)
        for name, text in request.items()
        if name.startswith("$") or name in {"home", "namespace", "conversations"}
    )


def _is_ours(connection: Connection) -> bool:
    """Whether the caller is the same user, as far as the system can tell."""
    peer = getattr(socket, "SO_PEERCRED", None)
    if peer is None:
        # The permissions of the socket's folder, or the pipe's key, keep other users out.
        return True
    with socket.socket(fileno=os.dup(connection.fileno())) as peer_socket:
        if peer_socket.family != socket.AF_UNIX:
            return False
        _, uid, _ = struct.unpack("3i", peer_socket.getsockopt(socket.SOL_SOCKET, peer, 12))
        return bool(uid == os.getuid())


def main() -> None:
    """Run until idle; returns at once if another process runs already."""
    silence_libraries()
    environ = environment()
    minutes = resident.idle_minutes(environ)
    if not minutes:
        return
    share_heap()
    try:
        with _single_instance(environ) as address:
            if address is None:
                return
            from multiprocessing.connection import Listener

            family = "AF_PIPE" if sys.platform == "win32" else "AF_UNIX"
            listener = Listener(address, family, backlog=64, authkey=resident.pipe_key(environ))
            server = ResidentServer(environ, idle=60 * minutes)
            try:
                with server_logs(environ, "resident"):
                    server.serve(listener)
            finally:
                with suppress(OSError):
                    listener.close()
        # The address is free: one of a newer version need not wait.
        server.close()
    except BaseException as error:  # noqa: BLE001 - there is no terminal to report to
        report(environ, error, surface="resident", operation="start")
        os._exit(1)
    # Threads of silent callers must not keep the process alive.
    os._exit(0)


@contextmanager
def _single_instance(environ: Mapping[str, str]) -> Iterator[str | None]:
    """The address to listen on; None if another process does already."""
    address = resident.address(environ)
    if sys.platform == "win32":
        # The system refuses a second pipe of this name.
        yield address
        return
    import fcntl

    path = Path(address)
    with path.with_suffix(".lock").open("w") as lock_file:
        for _ in range(200):
            try:
                fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                # An older version takes a moment to end; one of this version stays.
                with suppress(resident.NoResident):
                    resident.reach(environ, 0.0, start=False).close()
                    yield None
                    return
                time.sleep(0.01)
        else:
            yield None
            return
        # The previous owner of the lock is gone, so its socket is only a stale name.
        path.unlink(missing_ok=True)
        yield address
