"""The child process of `system.worker`: calls functions of this package under limits that it sets.

A second thread reads the calls of the parent, and ends the process when the parent is gone.
"""

from __future__ import annotations

import gc
import json
import os
import pickle
import queue
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import IO, Any, Final, NoReturn

from anaphora.system.process_memory import resident_bytes
from anaphora.system.worker import IDLE_EXIT, TOGETHER, Piece, WorkerLimits, read, write
from anaphora.values.plain import to_plain


def _resource() -> Any:
    """The module of limits; None on Windows, where the parent watches."""
    if os.name == "nt":
        return None
    import resource

    return resource


resource: Final = _resource()

IDLE: Final = 15.0
"""Seconds without a call after which a worker ends."""
_LOOK: Final = 0.5
_LONGEST: Final = 1 << 62
_COLLECT: Final = (100_000, 50, 100)
_SOON: Final = 0.05
"""Seconds for which a value may wait for others that are sent with it."""


def serve() -> NoReturn:
    """Answer calls until there are none any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Printed text must not get between the answers.
    source, target = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr
    sys.dont_write_bytecode = True
    # A reader keeps what it builds until it is done, so that repeated full collections would take
    # ever more time. Young objects are still collected.
    gc.set_threshold(*_COLLECT)
    calls: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.stack_size(256 * 1024)
    threading.Thread(target=_listen, args=(source, calls), daemon=True).start()
    write(target, str(resident_bytes(os.getpid()) or 0).encode())
    while True:
        try:
            request = calls.get(timeout=IDLE)
        except queue.Empty:
            os._exit(IDLE_EXIT)
        with suppress(BrokenPipeError):
            _answer(request, target)


def _listen(source: IO[bytes], calls: queue.SimpleQueue[bytes]) -> None:
    """Pass on what the parent sends, and end the process with the parent."""
    parent = os.getppid()
    try:
        while True:
            # No end of file if a process that the parent forked has the pipe open as well.
            while os.name != "nt" and not select.select([source], [], [], _LOOK)[0]:
                if os.getppid() != parent:
                    os._exit(1)
            calls.put(read(source, _LONGEST))
    except BaseException:  # noqa: BLE001 - the parent is gone, so the error cannot be reported
        os._exit(1)


def _answer(request: bytes, target: IO[bytes]) -> None:
    # The data comes from our own parent. The function's module is imported before limits are set,
    # so that the memory of the reader itself does not count for the file.
    function, arguments, limits, blocked_modules = pickle.loads(request)  # noqa: S301
    request = b""
    write(target, b'["begun"]')
    sender = _Sender(target)
    function = _function(function)
    begun = resident_bytes(os.getpid()) or 0
    _limit_memory(limits)
    _limit_time(limits.seconds)
    modules: Any = sys.modules
    hidden = {module: modules[module] for module in blocked_modules if module in modules}
    modules.update(dict.fromkeys(blocked_modules))
    try:
        for sent in function(*arguments):
            if isinstance(sent, Piece):
                _begin(sent, sender)
            else:
                sender.add(["value", to_plain(sent)])
        message: Any = ["end", None]
    except MemoryError:
        message = ["limit", "memory"]
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001 - the parent decides what it is
        message = _of_error(error)
    for module in blocked_modules:
        del modules[module]
    modules.update(hidden)
    _unlimit()
    sender.send(message)
    if message[0] == "limit":
        os._exit(1)
    # The memory of a large file is freed before the next one is measured.
    if (resident_bytes(os.getpid()) or 0) > begun + (64 << 20):
        arguments = ()
        gc.collect()


def _begin(piece: Piece, sender: _Sender) -> None:
    _limit_time(piece.seconds)
    sender.add(["piece", piece.seconds])
    if piece.begins is not None:
        sender.add(["value", to_plain(piece.begins)])
    if not piece.soon:
        # Flushed now: if this piece ends the worker, the values before it are not lost.
        sender.flush()


def _function(reference: Callable[..., Iterator[Any]] | str) -> Callable[..., Iterator[Any]]:
    if not isinstance(reference, str):
        return reference
    from importlib import import_module

    module, _, name = reference.partition(":")
    function: Callable[..., Iterator[Any]] = getattr(import_module(module), name)
    return function


class _Sender:
    """Sends messages, several small ones at once: the parent is woken less often."""

    def __init__(self, target: IO[bytes]) -> None:
        self._target = target
        self._waiting: list[str] = []
        self._size = 0
        # The first is sent at once.
        self._sent = -_SOON

    def send(self, message: Any) -> None:
        """Send a message now, behind those that wait."""
        self.add(message)
        self.flush()

    def add(self, message: Any) -> None:
        """Send a message soon."""
        # With escapes all of it is ASCII, and lone surrogates come through.
        text = json.dumps(message)
        if self._size + len(text) > TOGETHER:
            self.flush()
        self._waiting.append(text)
        self._size += len(text) + 1
        if self._size > TOGETHER or time.monotonic() > self._sent + _SOON:
            self.flush()

    def flush(self) -> None:
        """Send what waits."""
        waiting, self._waiting, self._size = self._waiting, [], 0
        if waiting:
            write(self._target, f"[{','.join(waiting)}]".encode("ascii"))
        self._sent = time.monotonic()


def _of_error(error: Exception) -> list[Any]:
    text = str(error.args[0]) if error.args else ""
    attributes = {
        name: content for name, content in vars(error).items() if not name.startswith("_")
    }
    plain = {
        k: v for k, v in attributes.items() if v is None or isinstance(v, str | int | float | bool)
    }
    from anaphora.errors import AnaphoraError

    if isinstance(error, AnaphoraError):
        return ["error", [type(error).__name__, text[:10_000], plain]]
    return ["failed", f"{type(error).__name__}: {str(error)[:300]}"]


def _limit_memory(limits: WorkerLimits) -> None:
    if resource is None:
        return
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit(resource.RLIMIT_FSIZE, limits.files)
    system: str = sys.platform
    if not system.startswith("linux"):
        return
    with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - pathlib would double the start
        pages = int(file.read().split()[0])
    if pages:
        _limit(resource.RLIMIT_AS, pages * int(resource.getpagesize()) + limits.memory)


def _limit_time(seconds: float) -> None:
    if resource is not None:
        resource_usage = resource.getrusage(resource.RUSAGE_SELF)
        _limit(
            resource.RLIMIT_CPU,
            int(resource_usage.ru_utime + resource_usage.ru_stime + seconds) + 1,
        )


def _unlimit() -> None:
    if resource is not None:
        for kind in (resource.RLIMIT_CPU, resource.RLIMIT_AS):
            _limit(kind, resource.getrlimit(kind)[1])


def _limit(kind: int, most: int) -> None:
    """Set a soft limit, which can be raised again; if the system refuses, the parent watches."""
    hard = resource.getrlimit(kind)[1]
    if hard != resource.RLIM_INFINITY:
        most = hard if most == resource.RLIM_INFINITY else min(most, hard)
    with suppress(OSError, ValueError):
        resource.setrlimit(kind, (most, hard))
