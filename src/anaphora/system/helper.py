"""A second interpreter for CPU-bound work, so that another core takes a share of it.

It calls a function, given by module and name, with arguments, and returns the results in order. If
no helper can be started, or it dies, the caller does all the work, with the same results. The
helper is a child process with two private pipes; it ends when its parent does.
"""

from __future__ import annotations

import os
import pickle
import struct
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from itertools import islice
from typing import IO, Any, Final, TypeVar

from anaphora.system.interpreters import start_interpreter

GivenT = TypeVar("GivenT")
MadeT = TypeVar("MadeT")

_SIZE: Final = struct.Struct("!Q")
_BEGIN: Final = "from anaphora.system.helper import serve; serve(sys.argv[2], sys.argv[3])"
_TROUBLE: Final = (OSError, ValueError, EOFError, struct.error, pickle.PickleError)


def with_helper(
    function: Callable[[GivenT], MadeT],
    given: Iterable[GivenT],
    *,
    worth: bool,
    shares: tuple[int, int],
) -> Iterator[MadeT]:
    """`function` of each thing, in order, with a helper if it is `worth` starting one.

    `shares` is how many arguments the caller and the helper take at a time: fewer for the caller,
    which also processes the results. The function is defined in a module of this package, and pure;
    its arguments and results can be pickled. Its errors are raised here in either case.
    """
    things = iter(given)
    cores = os.cpu_count() or 1
    with suppress(AttributeError, OSError):
        # Those that this process may use.
        cores = len(os.sched_getaffinity(0))
    helper = _Helper.start(function) if worth and cores > 1 else None
    if helper is None:
        yield from map(function, things)
        return
    try:
        callers, helpers = shares
        computed_here = list(islice(things, helpers))
        helper.send(computed_here)
        while computed_here:
            results = list(map(function, islice(things, callers)))
            computed_there = helper.receive(len(computed_here))
            following = list(islice(things, helpers))
            # Before the results are yielded, so that the helper works meanwhile.
            helper.send(following)
            yield from map(function, computed_here) if computed_there is None else computed_there
            yield from results
            computed_here = following
    finally:
        helper.end()


def serve(module: str, name: str) -> None:
    """The main loop of the helper, until its parent sends nothing more."""
    function = getattr(import_module(module), name)
    source, target = sys.stdin.buffer, sys.stdout.buffer
    # What anything prints must not come between the answers.
    sys.stdout = sys.stderr
    with suppress(*_TROUBLE, KeyboardInterrupt):
        while True:
            arguments = _read(source)
            try:
                results = [function(argument) for argument in arguments]
            except Exception:  # noqa: BLE001 - the parent calls the function itself, and raises it
                results = None
            _write(target, results)


class _Helper:
    """The child process. After the first failure it is not used any more."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self._child = child
        self._well = True

    @classmethod
    def start(cls, function: Callable[..., Any]) -> _Helper | None:
        """A helper for this function; None if it cannot be started."""
        child = start_interpreter(_BEGIN, function.__module__, function.__name__)
        return None if child is None else cls(child)

    def send(self, things: Sequence[Any]) -> None:
        """Send arguments; the results of the last ones must have been received."""
        if self._well and things:
            try:
                _write(_pipe(self._child.stdin), things)
            except _TROUBLE:
                self._well = False

    def receive(self, count: int) -> list[Any] | None:
        """The results for the last arguments; None if it failed."""
        if not self._well:
            return None
        try:
            results = _read(_pipe(self._child.stdout))
        except _TROUBLE:
            self._well = False
            return None
        return results if isinstance(results, list) and len(results) == count else None

    def end(self) -> None:
        """End it at once."""
        with suppress(OSError):
            self._child.kill()
        for pipe in (self._child.stdin, self._child.stdout):
            with suppress(OSError):
                _pipe(pipe).close()
        self._child.wait()


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise ValueError("the helper has no pipe")
    return pipe


def _write(pipe: IO[bytes], content: Any) -> None:
    packed_content = pickle.dumps(content, pickle.HIGHEST_PROTOCOL)
    pipe.write(_SIZE.pack(len(packed_content)) + packed_content)
    pipe.flush()


def _read(pipe: IO[bytes]) -> Any:
    (size,) = _SIZE.unpack(pipe.read(_SIZE.size))
    # Only what our own child or parent wrote ever comes through this pipe.
    return pickle.loads(pipe.read(size))  # noqa: S301
