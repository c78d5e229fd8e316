"""One more interpreter for long work of the processor: another core takes a share of it.

In: a function of ours, by module and name, and things to call it with. Out: what it returns, in
their order. Where no helper can be had, or it dies, the caller does all of it: nothing is lost and
nothing differs. The helper is a child with two private pipes; it reads what it is sent, writes what
comes of it, and ends when its parent does.
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

from anaphora.core.interpreters import start_interpreter

GivenT = TypeVar("GivenT")
MadeT = TypeVar("MadeT")

_SIZE: Final = struct.Struct("!Q")
_BEGIN: Final = "from anaphora.core.helper import serve; serve(sys.argv[2], sys.argv[3])"
_TROUBLE: Final = (OSError, ValueError, EOFError, struct.error, pickle.PickleError)


def with_helper(
    function: Callable[[GivenT], MadeT],
    given: Iterable[GivenT],
    *,
    worth: bool,
    shares: tuple[int, int],
) -> Iterator[MadeT]:
    """`function` of each thing, in order, with a helper if it is `worth` starting one.

    `shares` is how many things the caller and the helper take at a time: the caller less, who has
    to do something with what comes of them. The function is one of a module of ours, and pure; what
    it takes and returns can be pickled. An error in it is raised here, wherever it happened.
    """
    things = iter(given)
    helper = _Helper.begun(function) if worth and _cores() > 1 else None
    if helper is None:
        yield from map(function, things)
        return
    try:
        yield from _shared(function, things, helper, *shares)
    finally:
        helper.end()


def _shared(
    function: Callable[[GivenT], MadeT],
    things: Iterator[GivenT],
    helper: _Helper,
    callers: int,
    helpers: int,
) -> Iterator[MadeT]:
    sent = list(islice(things, helpers))
    helper.send(sent)
    while sent:
        own = list(map(function, islice(things, callers)))
        made = helper.receive(len(sent))
        following = list(islice(things, helpers))
        # Before anything is done with what came: the helper works meanwhile.
        helper.send(following)
        yield from map(function, sent) if made is None else made
        yield from own
        sent = following


def serve(module: str, name: str) -> None:
    """What the helper does until its parent sends nothing more."""
    function = getattr(import_module(module), name)
    source, target = sys.stdin.buffer, sys.stdout.buffer
    # What anything prints must not come between the answers.
    sys.stdout = sys.stderr
    with suppress(*_TROUBLE, KeyboardInterrupt):
        while True:
            given = _read(source)
            try:
                made = [function(one) for one in given]
            except Exception:  # noqa: BLE001 - the parent meets it itself, and raises it
                made = None
            _write(target, made)


class _Helper:
    """The child. After the first trouble it answers nothing any more."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self._child = child
        self._well = True

    @classmethod
    def begun(cls, function: Callable[..., Any]) -> _Helper | None:
        """A helper for this function; None where none can be started."""
        child = start_interpreter(_BEGIN, function.__module__, function.__name__)
        return None if child is None else cls(child)

    def send(self, things: Sequence[Any]) -> None:
        """Let it begin with these; what came of the last ones must have been received."""
        if self._well and things:
            try:
                _write(_pipe(self._child.stdin), things)
            except _TROUBLE:
                self._well = False

    def receive(self, count: int) -> list[Any] | None:
        """What came of the things that were sent last; None where nothing did."""
        if not self._well:
            return None
        try:
            made = _read(_pipe(self._child.stdout))
        except _TROUBLE:
            self._well = False
            return None
        return made if isinstance(made, list) and len(made) == count else None

    def end(self) -> None:
        """Let it go, whatever it is doing."""
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


def _write(pipe: IO[bytes], value: Any) -> None:
    packed = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    pipe.write(_SIZE.pack(len(packed)) + packed)
    pipe.flush()


def _read(pipe: IO[bytes]) -> Any:
    (size,) = _SIZE.unpack(pipe.read(_SIZE.size))
    # Only what our own child or parent wrote ever comes through this pipe.
    return pickle.loads(pipe.read(size))  # noqa: S301


def _cores() -> int:
    """The cores that this process may use."""
    with suppress(AttributeError, OSError):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
