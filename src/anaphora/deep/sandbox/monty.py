"""The sandbox on Monty, a Python interpreter without files, sockets or processes.

Every session is a process of its own behind the walls of `walls.py`, killed by a watchdog when its
time is over. The host takes nothing but text out of it: a host call arrives as one line of JSON, no
value of the code is ever converted, and no error carries a path of the host.
"""

from __future__ import annotations

import keyword
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anaphora.core.late_threads import begins
from anaphora.deep.sandbox.base import HostFunction, JsonValue, Limits, Run, Wall
from anaphora.deep.sandbox.crossing import HostCalls, Oversized, clean, plain, shorten
from anaphora.deep.sandbox.walls import Launcher, Outer
from anaphora.errors import InvalidInput, MissingExtra, SandboxError

if TYPE_CHECKING:
    import pydantic_monty

    from anaphora.deep.sandbox.base import LimitName


MESSAGE_CHARS = 1024 * 1024
_ERROR_CHARS = 4_000
_LINE_CHARS = 200
_NUMBER_CHARS = 18
_FIRST_FRAMES, _LAST_FRAMES = 2, 6

# The interpreter's own words; code that raises the same ends only its own session.
_LIMITS: tuple[tuple[str, LimitName], ...] = (
    ("MemoryError: memory limit exceeded", "memory"),
    ("MemoryError: the worker exceeded its memory limit", "memory"),
    ("TimeoutError: feed time limit exceeded", "seconds"),
    ("TimeoutError: turn time limit exceeded", "seconds"),
    ("RecursionError: maximum recursion depth exceeded", "recursion"),
    ("RuntimeError: suspension limit", "calls"),
)


class Output:
    """Collects at most `chars` characters of output, and the newest message of the channel."""

    def __init__(self, chars: int) -> None:
        self._chars = chars
        self._kept: list[str] = []
        self._length = 0
        self._seen = 0
        self._channel = ""

    def take(self, stream: str, text: str) -> None:
        """A piece of printed text, of "stdout" or "stderr"."""
        if stream == "stderr":
            # Whatever was printed there before a message is of no use, and must not grow.
            self._channel = (self._channel + text[-MESSAGE_CHARS:])[-MESSAGE_CHARS:]
            return
        self._seen += len(text)
        room = self._chars - self._length
        if room > 0:
            self._kept.append(text[:room])
            self._length += len(self._kept[-1])

    def last_message(self) -> str:
        """The last line of the channel, which is emptied; what code printed there is output."""
        said, self._channel = self._channel.removesuffix("\n"), ""
        before, _, message = said.rpartition("\n")
        if before.strip():
            self.take("stdout", before + "\n")
        return message

    def text(self) -> str:
        """All that is kept, and a mark where something is not."""
        if self._channel.strip():
            rest, self._channel = self._channel, ""
            self.take("stdout", rest)
        kept = "".join(self._kept)
        if self._seen == self._length:
            return kept
        shown = f"{self._length} of {self._seen} characters"
        return f"{kept}\n[output truncated: {shown} shown]"


def limit_of(error: pydantic_monty.MontyError) -> LimitName | None:
    """The limit that an error of the interpreter speaks of, or None for a mistake of the code."""
    said = _summary(error)
    return next((limit for words, limit in _LIMITS if said.startswith(words)), None)


def error_text(error: pydantic_monty.MontyError, runs: dict[int, int], current: int) -> str:
    """An error as the model reads it: lines and source of its own code, kind and message.

    `runs` are the numbers of the pieces that the model wrote, with the number of their run;
    `current` is the newest. Frames of other pieces are ours and left out.
    """
    frames = []
    for frame in getattr(error, "traceback", list)():
        place = _place(frame.filename, runs, current)
        if place is not None:
            within = f", in {frame.function_name}" if frame.function_name else ""
            frames.append(f"  {place}line {frame.line}{shorten(within, _LINE_CHARS)}")
            if frame.source_line:
                frames[-1] += f"\n    {shorten(frame.source_line.strip(), _LINE_CHARS)}"
    if len(frames) > _FIRST_FRAMES + _LAST_FRAMES:
        left = len(frames) - _FIRST_FRAMES - _LAST_FRAMES
        frames[_FIRST_FRAMES:-_LAST_FRAMES] = [f"  [{left} more calls]"]
    said = shorten(_summary(error), _ERROR_CHARS)
    return "\n".join(("Traceback (most recent call last):", *frames, said)) if frames else said


def _place(filename: str, runs: dict[int, int], current: int) -> str | None:
    """Where a frame's code stands, as "" for the current run; None for code of ours."""
    if filename == "<string>":
        return "eval or exec, "
    number = filename.removeprefix("<python-input-").removesuffix(">")
    # The name comes from the sandbox: a million digits are no number to be read.
    if not number.isdecimal() or len(number) > _NUMBER_CHARS or int(number) not in runs:
        return None
    return "" if int(number) == current else f"run {runs[int(number)]}, "


def _summary(error: pydantic_monty.MontyError) -> str:
    display = getattr(error, "display", None)
    try:
        return str(display("type-msg")) if display else str(error)
    except TypeError:
        return str(error)


class Watchdog:
    """Over one process. `fired` is True once its time was over."""

    def __init__(self, process: int | None) -> None:
        self._process = process
        self._lock = threading.Lock()
        self._handle: int | None = None
        self.fired = False
        if process is not None and hasattr(os, "pidfd_open"):
            with suppress(OSError):
                # A kernel or a container may refuse: then the number has to do.
                self._handle = os.pidfd_open(process)

    @contextmanager
    def over(self, seconds: float) -> Iterator[None]:
        """Watch while the block runs. SandboxError where nothing can watch."""
        timer = threading.Timer(seconds, self._fire)
        timer.daemon = True
        if not begins(timer):
            raise SandboxError("the main thread has ended, and Python begins no thread after that")
        try:
            yield
        finally:
            timer.cancel()

    def kill(self) -> None:
        """End the process now."""
        with self._lock, suppress(OSError):
            if self._handle is not None:
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)
            elif self._process is not None:
                os.kill(self._process, getattr(signal, "SIGKILL", signal.SIGTERM))

    def close(self) -> None:
        """Let go of the process. Nothing is killed after this."""
        with self._lock:
            if self._handle is not None:
                os.close(self._handle)
            self._handle = self._process = None

    def _fire(self) -> None:
        self.fired = True
        self.kill()


# How much later than the interpreter's own limit the process is killed: its error names the line.
_GRACE = 0.25

# The wrappers of host functions. The names that code could have changed come in anew each time; the
# call itself carries nothing, its arguments go before it as text.
_PRELUDE = """\
def _bind(ask, say, channel, dumps):
    def named(name):
        def call(*args, **kwargs):
            say("\\n" + dumps([name, args, kwargs], ensure_ascii=False), file=channel)
            return ask()
        return call
    return named
from json import dumps as _dumps
from sys import stderr as _channel
_named = _bind(_ask, _print, _channel, _dumps)
print = _print
"""


def _ask() -> None:
    """Stands for the host in the sandbox; `MontySession` answers the calls itself."""


class _LimitReached(Exception):
    """A limit that the host itself keeps was reached."""

    def __init__(self, limit: LimitName) -> None:
        self.limit = limit
        super().__init__(limit)


class MontyEngine:
    """Opens sandboxes on Monty. Needs the extra `deep`; raises MissingExtra without it."""

    def __init__(
        self, outer: Outer = "auto", *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`outer` names the outermost wall; "auto" takes the strongest that stands here."""
        try:
            import pydantic_monty
            from pydantic_monty._binary import find_monty_binary
        except ImportError as error:
            raise MissingExtra("deep", "pydantic-monty") from error
        try:
            program = Path(find_monty_binary())
        except FileNotFoundError as error:
            raise MissingExtra("deep", "pydantic-monty-runtime") from error
        self._monty = pydantic_monty
        self._launcher = Launcher(program, outer)
        self._clock = clock

    def walls(self) -> tuple[Wall, ...]:
        """The walls around every session, from the inside out."""
        inner = Wall(
            "interpreter",
            active=True,
            detail=f"monty {self._monty.__version__}: no files, sockets, processes or environment; "
            "time, memory and depth are limited",
        )
        watchdog = Wall("watchdog", active=True, detail="kills the process when its time is up")
        return (inner, watchdog, *self._launcher.standing.walls)

    def open(
        self,
        inputs: Mapping[str, JsonValue],
        functions: Mapping[str, HostFunction],
        limits: Limits = Limits(),  # noqa: B008 - a frozen value
    ) -> MontySession:
        """Start a session; see `Engine.open`."""
        for name in (*inputs, *functions):
            _check_name(name)
        for name in inputs.keys() & functions.keys():
            raise InvalidInput("inputs", name, "is also the name of a function")
        try:
            given = plain(dict(inputs), limits.input_chars)
        except Oversized as error:
            raise InvalidInput("inputs", list(inputs), str(error)) from None
        assert isinstance(given, dict)
        try:
            program = self._launcher.path(limits.memory_bytes)
            return MontySession(
                self._monty, program, HostCalls(functions, limits), limits, given, self._clock
            )
        except (OSError, RuntimeError, self._monty.MontyError) as error:
            raise SandboxError(str(error)) from error


class MontySession:
    """One process that runs code; see `Session`."""

    def __init__(
        self,
        monty: Any,
        program: Path,
        calls: HostCalls,
        limits: Limits,
        inputs: dict[str, JsonValue],
        clock: Callable[[], float],
    ) -> None:
        self._monty = monty
        self._calls = calls
        self._limits = limits
        self._clock = clock
        self._ended: LimitName | None = None
        self._closed = False
        self._feeds = 1
        self._made = 0
        self._runs: dict[int, int] = {}
        self._prelude = _PRELUDE + "".join(f"{n} = _named({n!r})\n" for n in calls.names)
        self._pool: pydantic_monty.Monty = monty.Monty(
            binary_path=program,
            min_processes=1,
            max_processes=1,
            max_checkouts_per_worker=1,
            checkout_timeout=limits.seconds + 10.0,
            feed_duration_limit_grace=_GRACE * 2,
        )
        self._pool.__enter__()
        try:
            self._inner: pydantic_monty.MontySession = self._pool.checkout(
                limits={
                    "max_feed_duration_secs": limits.seconds,
                    "max_memory": limits.memory_bytes,
                    "max_recursion_depth": limits.recursion,
                    # Host calls are counted here; unknown names and modules ask the host as well.
                    "max_suspensions": 1_000_000,
                },
                os_policy={"sleep": "zero", "timezone": "utc"},
            )
            self._inner.__enter__()
            self._watchdog = Watchdog(self._inner.worker_pid)
            # The inputs are bound, and a handle of the real `print` taken: no code was here before.
            self._print: Any = self._inner.feed_run("print", inputs=inputs, print_callback=_nowhere)
        except BaseException:
            self._pool.__exit__(None, None, None)
            raise

    def run(self, code: str, seconds: float | None = None) -> Run:
        """Run a piece of code; see `Session.run`."""
        if self._ended is not None:
            return self._dead(self._clock(), Output(0))
        if self._closed:
            return Run("", "the session is over: it was closed", alive=False)
        start = self._clock()
        output = Output(self._limits.output_chars)
        allowed = self._limits.seconds if seconds is None else min(seconds, self._limits.seconds)
        self._calls.begin(start + allowed)
        error: str | None = None
        with self._watchdog.over(allowed + _GRACE):
            try:
                self._feed(self._prelude, output, {"_ask": _ask, "_print": self._print})
                self._made += 1
                self._feed_code(clean(code), output)
            except _LimitReached as over:
                # A killed process may still answer for a moment: it is not resumed any more.
                self._ended = over.limit
            except self._monty.MontyCrashedError as crash:
                self._ended = self._why_it_died(crash)
            except self._monty.MontyError as mistake:
                self._ended = limit_of(mistake)
                error = error_text(mistake, self._runs, self._feeds - 1)
            except BaseException:
                # An interrupt leaves the process amid a call that nobody will answer.
                self.close()
                raise
        self._calls.raise_foreign()
        if self._ended is not None:
            return self._dead(start, output, error)
        return Run(
            output.text(),
            error,
            seconds=self._clock() - start,
            failures=self._calls.failures,
        )

    def remaining(self) -> float:
        """Seconds left to the current run; never negative."""
        return max(self._calls.deadline - self._clock(), 0.0)

    def close(self) -> None:
        """End the process. May be called twice."""
        if self._closed:
            return
        self._closed = True
        self._watchdog.kill()
        try:
            self._inner.__exit__(None, None, None)
        except (self._monty.MontyError, RuntimeError):
            # It is dead already: that is what was wanted.
            pass
        finally:
            self._pool.__exit__(None, None, None)
            self._watchdog.close()

    def __enter__(self) -> MontySession:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _feed_code(self, code: str, output: Output) -> None:
        """Run what the model wrote."""
        self._runs[self._feeds] = self._made
        try:
            # The value of a last expression would be sent out: nobody reads it.
            self._feed(code + "\npass", output, {})
        except self._monty.MontySyntaxError:
            # An error that may speak of the line that was added, and none of it has run.
            self._runs[self._feeds] = self._made
            self._feed(code, output, {})

    def _feed(self, code: str, output: Output, inputs: dict[str, Any]) -> None:
        """Run one piece and answer what it asks, until it ends or breaks a limit."""
        self._feeds += 1
        step: Any = self._inner.feed_start(code, inputs=inputs, print_callback=output.take)
        while not isinstance(step, self._monty.MontyComplete):
            if self.remaining() <= 0.0:
                raise _LimitReached("seconds")
            step = self._answer(step, output)

    def _answer(self, step: Any, output: Output) -> Any:
        """Resume one suspended step. Never reads `step.args`: that would convert hostile values."""
        if isinstance(step, self._monty.NameLookupSnapshot):
            return step.resume()
        if not isinstance(step, self._monty.FunctionSnapshot):
            # It waits for a promise of the host, which never made one.
            raise _LimitReached("crash")
        if step.is_os_function:
            return step.resume_not_handled()
        if step.function_name != _ask.__name__:
            name = step.function_name[:100]
            message = f"name {name!r} is not defined"
            return step.resume({"exc_type": "NameError", "message": message})
        if self._calls.exhausted():
            raise _LimitReached("calls")
        reply = self._calls.answer(output.last_message())
        if self.remaining() <= 0.0:
            raise _LimitReached("seconds")
        return step.resume(reply)

    def _why_it_died(self, crash: pydantic_monty.MontyCrashedError) -> LimitName:
        if self._watchdog.fired or crash.timed_out:
            return "seconds"
        # The interpreter aborts when the address space is used up; a shell in between adds 128.
        return "memory" if "SIGABRT" in str(crash) or crash.exit_status == 134 else "crash"

    def _dead(self, start: float, output: Output, error: str | None = None) -> Run:
        limit = self._ended or "crash"
        said = f"the session is over: {_words(limit, self._limits)}; its variables are gone"
        self.close()
        return Run(
            output.text(),
            f"{error}\n{said}" if error else said,
            limit,
            self._clock() - start,
            alive=False,
            failures=self._calls.failures,
        )


def _words(limit: LimitName, limits: Limits) -> str:
    return {
        "seconds": f"a run may take {limits.seconds:g} s",
        "memory": f"values may take {limits.memory_bytes // (1024 * 1024)} MiB",
        "recursion": f"calls may be {limits.recursion} deep",
        "calls": f"a run may make {limits.calls} host calls",
        "crash": "its process ended",
    }[limit]


def _check_name(name: str) -> None:
    usable = name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("_")
    if not usable or name == "print":
        raise InvalidInput(
            "name", name, "must be an identifier that does not begin with an underscore"
        )


def _nowhere(stream: str, text: str) -> None:
    """Takes the output of our own pieces of code, which have none."""
