"""The resident process: it listens where only its user can reach it, answers, and ends when idle.

Three requests: `hello` compares versions (of two, the older one makes room), `hook` answers an
event of a session, `embed` gives vectors of the bundled model. A request is answered in a thread of
its own; what nobody waits for runs behind them, one thing after the other. A crash loses nothing:
what was acknowledged is on the disk, and whoever asked does the work alone or starts another one.
"""

from __future__ import annotations

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
from typing import TYPE_CHECKING, Any, Final

from anaphora.core import resident
from anaphora.core.config import client_folders, silence_libraries
from anaphora.core.environment import caller_mark, environment, is_trial
from anaphora.core.heap import HeapWatch, share_heap
from anaphora.core.incidents import report
from anaphora.errors import AnaphoraError
from anaphora.surfaces.hooks.protocols import operation_of
from anaphora.surfaces.hooks.session import SessionHooks, answer_alone, open_home, open_memory
from anaphora.surfaces.logs import server_logs

if TYPE_CHECKING:
    from multiprocessing.connection import Connection, Listener

    from anaphora.api.memory import Memory
    from anaphora.container.home import Container
    from anaphora.embed.base import Embedder

_LOOK: Final = 1.0
_QUIET: Final = 10.0
"""Seconds without a request until logs are cut."""

_CLOSING: Final = 5.0
_MOST: Final = 64 << 20
"""Bytes of one request: texts to embed come some at a time."""

_HOMES: Final = 8


class ResidentServer:
    """Answers the requests of one user, from one environment. `idle` is in seconds."""

    def __init__(self, environ: Mapping[str, str], *, idle: float) -> None:
        self._environ = environ
        self._idle = idle
        self._lock = threading.Lock()
        self._busy = 0
        self._used = time.monotonic()
        self._ending = threading.Event()
        self._hooks: dict[str, SessionHooks] = {}
        self._memories: dict[str, Memory] = {}
        self._homes: dict[str, Container] = {}
        self._tidied = 0.0
        self._later: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._put_off: list[tuple[float, Callable[[], object]]] = []
        self._embedder: Embedder | None = None
        self._stamp = resident.program_stamp()
        self._caller = caller_mark(environ)

    def serve(self, listener: Listener) -> None:
        """Take connections until nobody has asked for a while, or a newer version came."""
        threading.Thread(target=self._listen, args=(listener,), daemon=True).start()
        worker = threading.Thread(target=self._work, daemon=True)
        worker.start()
        heap = HeapWatch(_free_arenas)
        while not self._ending.wait(_LOOK):
            now = time.monotonic()
            with self._lock:
                busy = self._busy > 0
                silent = not busy and now - self._used > self._idle
            heap.look(now, busy=busy)
            if not busy and now - self._used > _QUIET:
                self._tidy_up(now)
            self._take_up(now)
            if silent and self._later.empty() and not self._put_off:
                self._ending.set()
        listener.close()
        self._take_up(float("inf"))
        self._later.put(None)
        worker.join(_CLOSING)
        self._finish_answers()
        for memory in self._memories.values():
            memory.close(_CLOSING)

    def _take_up(self, until: float) -> None:
        """Queue what was put off until then."""
        with self._lock:
            due = [work for at, work in self._put_off if at <= until]
            self._put_off = [one for one in self._put_off if one[0] > until]
        for work in due:
            self._later.put(work)

    def _tidy_up(self, now: float) -> None:
        """Cut the logs of the databases: nothing waits for them. Work behind the calls, such as a
        reading that was put off, lets them grow again without a call, so this is done again."""
        if now - self._tidied < _QUIET:
            return
        self._tidied = now
        for home in list(self._homes.values()):
            # What is wrong with a database the next call on it says.
            with self._reporting("tidy"), suppress(AnaphoraError, OSError):
                home.cut_logs()

    def _finish_answers(self) -> None:
        """Who was being answered when the end came gets the answer, if it is not long in coming."""
        end = time.monotonic() + _CLOSING
        while self._busy and time.monotonic() < end:
            time.sleep(0.005)

    def _listen(self, listener: Listener) -> None:
        with self._reporting("accept"):
            self._accept(listener)
        # A process that takes no more callers makes room for one that does.
        self._ending.set()

    def _accept(self, listener: Listener) -> None:
        from multiprocessing import AuthenticationError

        while not self._ending.is_set():
            try:
                connection = listener.accept()
            except (OSError, EOFError, AuthenticationError):
                # Closed, or a caller that went, or had no key.
                if self._ending.wait(0.01):
                    return
                continue
            if _is_ours(connection):
                threading.Thread(target=self._talk, args=(connection,), daemon=True).start()
            else:
                connection.close()

    def _talk(self, connection: Connection) -> None:
        """Answer one caller until it goes."""
        with suppress(OSError, EOFError, ValueError), connection:
            while not self._ending.is_set():
                request = json.loads(connection.recv_bytes(_MOST))
                with self._counted():
                    connection.send_bytes(self._answered(request))

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

    def _answered(self, request: object) -> bytes:
        """The answer as JSON; to a request that fails, in words."""
        known = request if isinstance(request, dict) else {}
        try:
            return json.dumps(self._answer(known)).encode()
        except BaseException as error:  # noqa: BLE001 - the caller is to have an answer
            incident = report(self._environ, error, surface="resident", operation="request")
            words = f"something went wrong in the resident process (incident {incident.id})"
            return json.dumps({"failed": words}).encode()

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        call = request.get("call")
        if call == "hello":
            current = request.get("stamp") == self._stamp == resident.program_stamp()
            if not current:
                # The program was replaced on the disk: a new process will have the new one.
                self._ending.set()
            # The name of the socket is a short hash: two environments could share one.
            same = request.get("caller", self._caller) == self._caller
            return {"ok": current and same, "pid": os.getpid()}
        if call == "hook":
            return {"out": self._hook(request)}
        if call == "embed":
            return self._embed(request)
        return {"failed": f"unknown call {call!r}"}

    # Hooks.

    def _hook(self, request: dict[str, Any]) -> str:
        from anaphora.surfaces.hooks.protocols import PROTOCOLS

        client, told = str(request["client"]), request["told"]
        try:
            if is_trial(str(request.get("namespace", ""))):
                # It is deleted next, and must not stay open here.
                return answer_alone(request)
            return self._hooks_of(request).answer(client, told)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the client goes on
            self._report(request, error)
            return PROTOCOLS[client].silence if client in PROTOCOLS else ""

    def _hooks_of(self, request: dict[str, Any]) -> SessionHooks:
        names = ("home", "namespace", "conversations", "environ")
        key = json.dumps({name: request.get(name) for name in names}, sort_keys=True)
        with self._lock:
            if key not in self._hooks:
                if len(self._memories) >= _HOMES:
                    oldest = next(iter(self._memories))
                    self._hooks.pop(oldest, None)
                    self._homes.pop(oldest, None)
                    self._memories.pop(oldest).close(_CLOSING)
                home = open_home(request)
                memory = open_memory(request, home)
                self._memories[key], self._homes[key] = memory, home
                user = client_folders(request.get("environ") or {}).user
                self._hooks[key] = SessionHooks(
                    memory,
                    user=user,
                    background=self._behind(request),
                    clock=time.time,
                    later=self._after(request),
                )
                # The first prompt comes seconds after the start: the model is there by then.
                self._later.put(lambda: memory.ready(60))
                # A synced namespace is kept alike with the other devices while this process lives.
                self._later.put(memory.sync.start)
                self._later.put(memory.mirror.start)
            return self._hooks[key]

    def _behind(self, request: dict[str, Any]) -> Callable[[Callable[[], object]], None]:
        return lambda work: self._later.put(self._reported(request, work))

    def _after(self, request: dict[str, Any]) -> Callable[[float, Callable[[], object]], None]:
        def put_off(seconds: float, work: Callable[[], object]) -> None:
            with self._lock:
                due = time.monotonic() + seconds
                self._put_off.append((due, self._reported(request, work)))

        return put_off

    def _reported(
        self, request: dict[str, Any], work: Callable[[], object]
    ) -> Callable[[], object]:
        """Work behind an answer, what goes wrong in it reported as the request's."""

        def run() -> None:
            try:
                work()
                # What came in gets its vectors while nobody waits.
                self._hooks_memory(request).ready(60)
            except BaseException as error:  # noqa: BLE001 - what waits behind it goes on
                self._report(request, error)

        return run

    def _hooks_memory(self, request: dict[str, Any]) -> Memory:
        self._hooks_of(request)
        names = ("home", "namespace", "conversations", "environ")
        return self._memories[json.dumps({n: request.get(n) for n in names}, sort_keys=True)]

    def _work(self) -> None:
        while (work := self._later.get()) is not None:
            # What an error of ours says is met again by the next call.
            with self._counted(), self._reporting("background"), suppress(AnaphoraError, OSError):
                work()

    def _report(self, request: Mapping[str, Any], error: BaseException) -> None:
        told = request.get("told")
        event = str(told.get("hook_event_name", "")) if isinstance(told, dict) else ""
        environ = request.get("environ")
        report(
            environ if isinstance(environ, dict) else self._environ,
            error,
            surface="hook",
            operation=operation_of(str(request.get("client", "")), event),
        )

    @contextmanager
    def _reporting(self, operation: str) -> Iterator[None]:
        """Log what is raised inside: a thread of this process has no caller to tell."""
        try:
            yield
        except BaseException as error:  # noqa: BLE001 - the process goes on
            report(self._environ, error, surface="resident", operation=operation)

    # The model.

    def _embed(self, request: dict[str, Any]) -> dict[str, Any]:
        from anaphora.embed.resident import text_of
        from anaphora.embed.service import spec_for

        spec = spec_for("minilm")
        texts = request.get("texts")
        if request.get("model") != spec.name or not isinstance(texts, list):
            return {"failed": f"this process has {spec.name}"}
        try:
            return {"vectors": [text_of(rows) for rows in spec.load().embed(list(map(str, texts)))]}
        except (AnaphoraError, RuntimeError, ValueError, MemoryError) as error:
            return {"failed": str(error)}


def _free_arenas() -> None:
    """Free what models hold for their next run, where one was loaded."""
    module = sys.modules.get("anaphora.embed.onnx")
    if module is not None:
        module.shrink_arenas()


def _is_ours(connection: Connection) -> bool:
    """Whether the caller is of the same user, as far as the system tells."""
    peer = getattr(socket, "SO_PEERCRED", None)
    if peer is None:
        # The folder of the socket, or the key of the pipe, keeps others out.
        return True
    with socket.socket(fileno=os.dup(connection.fileno())) as other:
        if other.family != socket.AF_UNIX:
            return False
        _, uid, _ = struct.unpack("3i", other.getsockopt(socket.SOL_SOCKET, peer, 12))
        return bool(uid == os.getuid())


def main() -> None:
    """Run until idle. Where one runs already, there is nothing to do."""
    silence_libraries()
    environ = environment()
    minutes = resident.idle_minutes(environ)
    if not minutes:
        return
    share_heap()
    try:
        with _alone(environ) as address:
            if address is None:
                return
            from multiprocessing.connection import Listener

            family = "AF_PIPE" if sys.platform == "win32" else "AF_UNIX"
            listener = Listener(address, family, backlog=64, authkey=resident.pipe_key(environ))
            try:
                with server_logs(environ, "resident"):
                    ResidentServer(environ, idle=60 * minutes).serve(listener)
            finally:
                with suppress(OSError):
                    listener.close()
    except BaseException as error:  # noqa: BLE001 - there is no terminal to tell
        report(environ, error, surface="resident", operation="start")
        os._exit(1)
    # Threads of callers that say nothing must not keep the process.
    os._exit(0)


@contextmanager
def _alone(environ: Mapping[str, str]) -> Iterator[str | None]:
    """The address, for the only process that may listen there; None where another one does."""
    address = resident.address(environ)
    if sys.platform == "win32":
        # A second pipe of this name is refused by the system.
        yield address
        return
    import fcntl

    place = Path(address)
    with place.with_suffix(".lock").open("w") as held:
        for _ in range(200):
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                # One of an older version takes a moment to end; one of this version stays.
                if _answers(environ):
                    yield None
                    return
                time.sleep(0.01)
        else:
            yield None
            return
        # Whoever had the lock is gone: what is left of it is only a name.
        place.unlink(missing_ok=True)
        yield address


def _answers(environ: Mapping[str, str]) -> bool:
    try:
        with resident.connect(environ) as connection:
            return resident.is_current(connection, environ)
    except resident.NoResident:
        return False
