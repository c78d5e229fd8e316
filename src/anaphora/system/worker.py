"""Worker processes that read untrusted files, with limits of memory, time and output.

A hostile file may make a reader take all memory, or run for hours: that ends the worker, not the
program. A worker is a child process with two pipes; it is reused for the next call, restarted after
it ended, and ends by itself when it is idle for a while or its parent is gone. It sends plain data
(`values.plain`) of a bounded size. Limits are set in the system if it supports them (`setrlimit`);
the parent watches as well, which is the only limit elsewhere.
"""

from __future__ import annotations

import atexit
import json
import os
import pickle
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import IO, Any, Final, Literal

from anaphora.system.interpreters import start_interpreter
from anaphora.system.late_threads import begins
from anaphora.system.process_memory import resident_bytes
from anaphora.values.plain import Types, from_plain

SIZE: Final = struct.Struct("!Q")
TOGETHER: Final = 64 << 10
"""Bytes of values that are sent in one message."""
IDLE_EXIT: Final = 75
"""The exit code of a worker that ended because it had nothing to do."""
MOST: Final = 8
"""Workers of this process at a time."""
_BEGIN: Final = "from anaphora.system.worker_child import serve; serve()"
_LOOK: Final = 0.1
_WALL: Final = 3
"""Factor from processor time to elapsed time of a piece, since other programs run as well."""
_GRACE: Final = 10.0
_BROKEN: Final = (OSError, ValueError, LookupError, TypeError, RecursionError, EOFError)

LimitName = Literal["seconds", "memory", "output", "crash", "start"]


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """What one piece of work may use: `seconds` of the processor, bytes of `memory` beyond those of
    the idle worker, bytes of one value that it sends (`output`), and of a file that it writes."""

    seconds: float = 60.0
    memory: int = 1 << 30
    output: int = 512 << 20
    files: int = 0


class WorkerEnded(Exception):
    """A worker was ended at a limit, or ended by itself; `limit` says which."""

    def __init__(self, limit: LimitName, limits: WorkerLimits) -> None:
        self.limit = limit
        super().__init__({
            "seconds": f"reading it takes more than {limits.seconds:,.0f} s",
            "memory": f"reading it takes more than {limits.memory >> 20:,} MiB of memory",
            "output": f"what is in it takes more than {limits.output >> 20:,} MiB",
            "crash": "the process that was reading it ended",
            "start": "no process can be started here to read it in",
        }[limit])  # fmt: skip


class WorkerFailed(Exception):
    """The function raised an error that is none of the `types` of the call; its name and text."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Yielded by a function in a worker: another piece of the work begins, with its own time.

    `begins` is a value to send then, which says what it is; with `soon` it may wait for others that
    are sent with it, so that the parent does not know of it where the worker ends meanwhile."""

    seconds: float
    begins: Any = None
    soon: bool = False


def call_in_worker(
    function: Callable[..., Any] | str, *arguments: Any, limits: WorkerLimits, types: Types
) -> Iterator[Any]:
    """Each value that a generator function of a module yields in a worker.

    A function that only the worker needs is named as `module:function`, and not imported here.
    `types` has the classes that values and errors may be of. An error of the function is raised
    here where its class is one of these, else `WorkerFailed`; `WorkerEnded` where a limit was hit.
    """
    pool = _pool()
    # What this program does not let itself import, its workers do not import either.
    modules: Mapping[str, ModuleType | None] = sys.modules.copy()
    blocked_modules = [name for name, module in modules.items() if module is None]
    request = (function, arguments, limits, blocked_modules)
    worker = pool.take()
    clean = False
    try:
        if not worker.send(request, limits):
            # It had been idle for too long, and has ended since.
            worker.end()
            worker = pool.replacement(worker)
            worker.send(request, limits)
        yield from worker.values(limits, types)
        clean = True
    except Exception as error:
        # An error that the worker reported: it can be used again.
        error_types = tuple(kind for kind in types.values() if issubclass(kind, BaseException))
        clean = isinstance(error, (WorkerFailed, *error_types))
        raise
    finally:
        pool.give_back(worker, clean=clean)


def path_for_worker(path: Path) -> Path:
    """The path as another process finds it: that of an open file is this process's own."""
    text, start = str(path), "/proc/self/"
    if not text.startswith(start):
        return path
    return Path(f"/proc/{os.getpid()}", text.removeprefix(start))


def limits_here() -> str:
    """Which kind of limits holds on this system, in words."""
    parent_limit = "the parent ends a reader that takes too much memory or time"
    system: str = sys.platform
    if system.startswith("linux"):
        return "the kernel limits memory, processor time and files of readers (setrlimit)"
    if system == "win32":
        return f"{parent_limit}; Windows has no limits of its own for that"
    return f"the system limits processor time and files of readers (setrlimit); {parent_limit}"


class Worker:
    """A child, and what watches it. One call at a time."""

    def __init__(self, child: subprocess.Popen[bytes], base: int) -> None:
        self._child = child
        self._base = base
        self._limit: LimitName | None = None
        self._limits = WorkerLimits()
        self._deadline: float | None = None
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._watched = False

    def send(self, request: tuple[Any, ...], limits: WorkerLimits) -> bool:
        """Send a call; False if the worker had ended before."""
        self._limits = limits
        if self._child.poll() is not None:
            return False
        if not self._watched:
            self._watched = begins(threading.Thread(target=self._watch, daemon=True))
        try:
            write(_pipe(self._child.stdin), pickle.dumps(request, pickle.HIGHEST_PROTOCOL))
            # It first confirms each call: an idle worker may end while the call is sent.
            if self._receive(limits) != ["begun"]:
                return False
        except WorkerEnded:
            return False
        except (OSError, ValueError):
            return False
        return True

    def values(self, limits: WorkerLimits, types: Types) -> Iterator[Any]:
        """The values that the call yields, as they come."""
        waiting: deque[Any] = deque()
        while True:
            if not waiting:
                waiting.extend(self._receive(limits))
                continue
            try:
                kind, content = waiting.popleft()
                if kind == "end":
                    return
                if kind == "piece":
                    limits = replace(limits, seconds=float(content))
                    continue
                if kind == "limit":
                    raise WorkerEnded(content, limits)
                if kind == "failed":
                    raise WorkerFailed(str(content))
                received_values = (
                    from_plain(content, types) if kind == "value" else _make_error(content, types)
                )
            except _BROKEN as error:
                raise WorkerEnded("crash", limits) from error
            if isinstance(received_values, BaseException):
                raise received_values
            yield received_values

    def _receive(self, limits: WorkerLimits) -> list[Any]:
        """The parts of the next message. The clock only runs during this wait."""
        self._limits = limits
        self._deadline = time.monotonic() + limits.seconds * _WALL + _GRACE
        try:
            message = read(_pipe(self._child.stdout), limits.output + TOGETHER)
            parts = json.loads(message)
            if not isinstance(parts, list):
                raise TypeError(type(parts).__name__)
            return parts
        except OverflowError as error:
            raise WorkerEnded("output", limits) from error
        except _BROKEN as error:
            limit = self._limit
            if limit is None:
                self.end()
                import signal

                too_long = -int(getattr(signal, "SIGXCPU", 0) or 0)
                is_over = too_long and self._child.returncode == too_long
                limit = "seconds" if is_over else "crash"
            raise WorkerEnded(limit, limits) from error
        finally:
            self._deadline = None

    def _watch(self) -> None:
        while not self._ended.wait(_LOOK):
            if self._child.poll() is not None:
                return
            deadline = self._deadline
            if deadline is None:
                continue
            if time.monotonic() > deadline:
                self._stop("seconds")
            else:
                memory = resident_bytes(self._child.pid)
                if memory is not None and memory > self._base + self._limits.memory:
                    self._stop("memory")

    def _stop(self, limit: LimitName) -> None:
        self._limit = limit
        with suppress(OSError):
            self._child.kill()

    def end(self) -> None:
        """End it at once."""
        self._ended.set()
        with self._lock:
            if self._child.poll() is None:
                with suppress(OSError, subprocess.TimeoutExpired):
                    # If its pipe broke, it is ending: its own exit code gives the reason.
                    self._child.wait(0.5 if self._limit is None and self._deadline else 0)
            with suppress(OSError):
                self._child.kill()
            self.drop()
            self._child.wait()

    def drop(self) -> None:
        """Close our ends of its pipes."""
        for pipe in (self._child.stdin, self._child.stdout):
            with suppress(OSError, ValueError):
                _pipe(pipe).close()

    def forget(self) -> None:
        """Disown the worker in a forked process: it belongs to the parent."""
        self._child.returncode = 0


class Pool:
    """The workers of this process, and calls that wait for one."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self._idle: list[Worker] = []
        self._busy: set[Worker] = set()
        self._changed = threading.Condition()
        self._closed = False

    def take(self) -> Worker:
        """A worker that is free; a new one where there is none, once fewer than `MOST` are busy."""
        with self._changed:
            self._changed.wait_for(lambda: self._idle or len(self._busy) < MOST)
            worker = self._idle.pop() if self._idle else _start_worker()
            self._busy.add(worker)
            return worker

    def replacement(self, worker: Worker) -> Worker:
        """A new worker in the place of one that has ended."""
        new_worker = _start_worker()
        with self._changed:
            self._busy.discard(worker)
            self._busy.add(new_worker)
        return new_worker

    def give_back(self, worker: Worker, *, clean: bool) -> None:
        """Take a worker back; one that is in the middle of something is ended."""
        if not clean:
            worker.end()
        with self._changed:
            self._busy.discard(worker)
            if clean and not self._closed:
                self._idle.append(worker)
            self._changed.notify()
        if clean and self._closed:
            worker.end()

    def end(self) -> None:
        """End all workers."""
        with self._changed:
            self._closed = True
            workers = [*self._idle, *self._busy]
            self._idle.clear()
        for worker in workers:
            worker.end()

    def forget(self) -> None:
        """Disown the workers in a forked process: they belong to the parent."""
        for worker in (*self._idle, *self._busy):
            worker.forget()


_process_pool: Pool | None = None
_making: threading.Lock = threading.Lock()


def _pool() -> Pool:
    global _process_pool, _making  # noqa: PLW0603 - one for the process, and another one after a fork
    if _process_pool is not None and _process_pool.process != os.getpid():
        _making = threading.Lock()
        _process_pool.forget()
        _process_pool = None
    with _making:
        if _process_pool is None:
            _process_pool = Pool()
        return _process_pool


def end_workers() -> None:
    """End all workers of this process; the next call starts one again."""
    global _process_pool
    pool, _process_pool = _process_pool, None
    if pool is not None and pool.process == os.getpid():
        pool.end()


atexit.register(end_workers)


def _start_worker() -> Worker:
    child = start_interpreter(_BEGIN)
    if child is None:
        raise WorkerEnded("start", WorkerLimits())
    try:
        base = int(read(_pipe(child.stdout), 64))
    except (*_BROKEN, OverflowError) as error:
        child.kill()
        child.communicate()
        raise WorkerEnded("start", WorkerLimits()) from error
    return Worker(child, base)


def _make_error(content: Any, types: Types) -> BaseException:
    """The error that a function raised, without running what its class does when it is made."""
    name, text, attributes = content
    kind = types[name]
    if not issubclass(kind, BaseException):
        raise TypeError(name)
    error = kind.__new__(kind)
    error.args = (text,)
    for attribute, attribute_value in attributes.items():
        setattr(error, attribute, attribute_value)
    return error


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise ValueError("the worker has no pipe")
    return pipe


def write(pipe: IO[bytes], data: bytes) -> None:
    """Send a message."""
    pipe.write(SIZE.pack(len(data)))
    pipe.write(data)
    pipe.flush()


def read(pipe: IO[bytes], most: int) -> bytes:
    """The next message. Raises EOFError if there is none, OverflowError if it is too long."""
    head = pipe.read(SIZE.size)
    if len(head) < SIZE.size:
        raise EOFError
    (size,) = SIZE.unpack(head)
    if size > most:
        raise OverflowError
    message = pipe.read(size)
    if len(message) < size:
        raise EOFError
    return message
