"""The sandbox on Monty, a Python interpreter without files, sockets or processes.

Every session is a process of its own behind the walls of `walls.py`, killed by a watchdog when its
time is over. The host takes only text out of it: a host call arrives as one line of JSON, no value
of the code is ever converted, and no error carries a path of the host.
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

from anaphora.errors import InvalidInput, MissingExtra, SandboxError
from anaphora.features.deep.sandbox.base import HostFunction, JsonValue, Run, SandboxLimits, Wall
from anaphora.features.deep.sandbox.crossing import (
    HostCalls,
    Oversized,
    copy_plain,
    replace_surrogates,
    shorten,
)
from anaphora.features.deep.sandbox.walls import Launcher, Outer
from anaphora.system.late_threads import begins

if TYPE_CHECKING:
    import pydantic_monty

    from anaphora.features.deep.sandbox.base import LimitName


MESSAGE_CHARS = 1024 * 1024
_ERROR_CHARS = 4_000
_LINE_CHARS = 200
_NUMBER_CHARS = 18
_FIRST_FRAMES, _LAST_FRAMES = 2, 6

# The interpreter's own messages; code that raises the same ends only its own session.
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
            # Text printed there before a message is not needed, and must not grow.
            self._channel = (self._channel + text[-MESSAGE_CHARS:])[-MESSAGE_CHARS:]
            return
        self._seen += len(text)
        room = self._chars - self._length
        if room > 0:
            self._kept.append(text[:room])
            self._length += len(self._kept[-1])

    def last_message(self) -> str:
        """The last line of the channel, which is emptied; the code's own text there is output."""
        printed_text, self._channel = self._channel.removesuffix("\n"), ""
        text_before, _, message = printed_text.rpartition("\n")
        if text_before.strip():
            self.take("stdout", text_before + "\n")
        return message

    def text(self) -> str:
        """The collected output, with a mark if it was truncated."""
        if self._channel.strip():
            pending, self._channel = self._channel, ""
            self.take("stdout", pending)
        text = "".join(self._kept)
        if self._seen == self._length:
            return text
        counts = f"{self._length} of {self._seen} characters"
        return f"{text}\n[output truncated: {counts} shown]"


def limit_of(error: pydantic_monty.MontyError) -> LimitName | None:
    """The limit that an error of the interpreter reports, or None for a mistake of the code."""
    summary = _summarize(error)
    return next((limit for words, limit in _LIMITS if summary.startswith(words)), None)


def error_text(error: pydantic_monty.MontyError, runs: dict[int, int], current: int) -> str:
    """An error as the model reads it: lines and source of its own code, kind and message.

    `runs` maps the numbers of the model's pieces of code to the number of their run; `current` is
    the newest. Frames of other pieces are internal and left out.
    """
    frames = []
    for frame in getattr(error, "traceback", list)():
        location = _locate_frame(frame.filename, runs, current)
        if location is not None:
            within = f", in {frame.function_name}" if frame.function_name else ""
            frames.append(f"  {location}line {frame.line}{shorten(within, _LINE_CHARS)}")
            if frame.source_line:
                frames[-1] += f"\n    {shorten(frame.source_line.strip(), _LINE_CHARS)}"
    if len(frames) > _FIRST_FRAMES + _LAST_FRAMES:
        hidden = len(frames) - _FIRST_FRAMES - _LAST_FRAMES
        frames[_FIRST_FRAMES:-_LAST_FRAMES] = [f"  [{hidden} more calls]"]
    summary = shorten(_summarize(error), _ERROR_CHARS)
    return (
        "\n".join(("Traceback (most recent call last):", *frames, summary)) if frames else summary
    )


def _locate_frame(filename: str, runs: dict[int, int], current: int) -> str | None:
    """The run of a frame's code, "" for the current one; None for internal code."""
    if filename == "<string>":
        return "eval or exec, "
    number = filename.removeprefix("<python-input-").removesuffix(">")
    # The name comes from the sandbox: a million digits must not be parsed.
    if not number.isdecimal() or len(number) > _NUMBER_CHARS or int(number) not in runs:
        return None
    return "" if int(number) == current else f"run {runs[int(number)]}, "


def _summarize(error: pydantic_monty.MontyError) -> str:
    display = getattr(error, "display", None)
    try:
        return str(display("type-msg")) if display else str(error)
    except TypeError:
        return str(error)


class Watchdog:
    """Kills one process when its time is over; `fired` is True then."""

    def __init__(self, process: int | None) -> None:
        self._process = process
        self._lock = threading.Lock()
        self._handle: int | None = None
        self.fired = False
        if process is not None and hasattr(os, "pidfd_open"):
            with suppress(OSError):
                # A kernel or a container may refuse: then the process id has to do.
                self._handle = os.pidfd_open(process)

    @contextmanager
    def over(self, seconds: float) -> Iterator[None]:
        """Watch while the block runs. SandboxError if no thread can be started."""
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
        """Release the process. Nothing is killed after this."""
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
    """A limit that the host itself enforces was reached."""

    def __init__(self, limit: LimitName) -> None:
        self.limit = limit
        super().__init__(limit)


class MontyEngine:
    """Opens sandboxes on Monty. Needs the extra `deep`; raises MissingExtra without it."""

    def __init__(
        self, outer: Outer = "auto", *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`outer` names the outermost wall; "auto" takes the strongest that works here."""
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
        inner_wall = Wall(
            "interpreter",
            active=True,
            detail=f"monty {self._monty.__version__}: no files, sockets, processes or environment; "
            "time, memory and depth are limited",
        )
        watchdog = Wall("watchdog", active=True, detail="kills the process when its time is up")
        return (inner_wall, watchdog, *self._launcher.standing.walls)

    def open(
        self,
        inputs: Mapping[str, JsonValue],
        functions: Mapping[str, HostFunction],
        limits: SandboxLimits = SandboxLimits(),  # noqa: B008 - a frozen value
    ) -> MontySession:
        """Start a session; see `Engine.open`."""
        for name in (*inputs, *functions):
            usable = (
                name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("_")
            )
            if not usable or name == "print":
                reason = "must be an identifier that does not begin with an underscore"
                raise InvalidInput("name", name, reason)
        for name in inputs.keys() & functions.keys():
            raise InvalidInput("inputs", name, "is also the name of a function")
        try:
            bound_inputs = copy_plain(dict(inputs), limits.input_chars)
        except Oversized as error:
            raise InvalidInput("inputs", list(inputs), str(error)) from None
        assert isinstance(bound_inputs, dict)
        try:
            program = self._launcher.path(limits.memory_bytes)
            return MontySession(
                self._monty,
                program,
                HostCalls(functions, limits),
                limits,
                bound_inputs,
                self._clock,
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
        limits: SandboxLimits,
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
            self._print: Any = self._inner.feed_run("print", inputs=inputs, print_callback=_discard)
        except BaseException:
            self._pool.__exit__(None, None, None)
            raise

    def run(self, code: str, seconds: float | None = None) -> Run:
        """Run a piece of code; see `Session.run`."""
        if self._ended is not None:
            return self._end(self._clock(), Output(0))
        if self._closed:
            return Run("", "the session is over: it was closed", alive=False)
        start = self._clock()
        output = Output(self._limits.output_chars)
        allowed_seconds = (
            self._limits.seconds if seconds is None else min(seconds, self._limits.seconds)
        )
        self._calls.begin(start + allowed_seconds)
        error: str | None = None
        with self._watchdog.over(allowed_seconds + _GRACE):
            try:
                self._feed(self._prelude, output, {"_ask": _ask, "_print": self._print})
                self._made += 1
                code = replace_surrogates(code)
                self._runs[self._feeds] = self._made
                try:
                    # `pass`, since the value of a last expression would be sent out, to no use.
                    self._feed(code + "\npass", output, {})
                except self._monty.MontySyntaxError:
                    # The error may be about the added line, and none of the code has run.
                    self._runs[self._feeds] = self._made
                    self._feed(code, output, {})
            except _LimitReached as over:
                # A killed process may still answer for a moment: it is not resumed any more.
                self._ended = over.limit
            except self._monty.MontyCrashedError as crash:
                self._ended = self._limit_of_crash(crash)
            except self._monty.MontyError as mistake:
                self._ended = limit_of(mistake)
                error = error_text(mistake, self._runs, self._feeds - 1)
            except BaseException:
                # An interrupt leaves the process amid a call that will never be answered.
                self.close()
                raise
        self._calls.raise_foreign()
        if self._ended is not None:
            return self._end(start, output, error)
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
            # It is dead already, as intended.
            pass
        finally:
            self._pool.__exit__(None, None, None)
            self._watchdog.close()

    def __enter__(self) -> MontySession:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _feed(self, code: str, output: Output, inputs: dict[str, Any]) -> None:
        """Run one piece and answer its host calls, until it ends or breaks a limit."""
        self._feeds += 1
        step: Any = self._inner.feed_start(code, inputs=inputs, print_callback=output.take)
        while not isinstance(step, self._monty.MontyComplete):
            if self.remaining() <= 0.0:
                raise _LimitReached("seconds")
            step = self._resume(step, output)

    def _resume(self, step: Any, output: Output) -> Any:
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

    def _limit_of_crash(self, crash: pydantic_monty.MontyCrashedError) -> LimitName:
        if self._watchdog.fired or crash.timed_out:
            return "seconds"
        # The interpreter aborts when the address space is used up; a shell in between adds 128.
        return "memory" if "SIGABRT" in str(crash) or crash.exit_status == 134 else "crash"

    def _end(self, start: float, output: Output, error: str | None = None) -> Run:
        limit, limits = self._ended or "crash", self._limits
        cause = {
            "seconds": f"a run may take {limits.seconds:g} s",
            "memory": f"values may take {limits.memory_bytes // (1024 * 1024)} MiB",
            "recursion": f"calls may be {limits.recursion} deep",
            "calls": f"a run may make {limits.calls} host calls",
            "crash": "its process ended",
        }[limit]
        reason = f"the session is over: {cause}; its variables are gone"
        self.close()
        return Run(
            output.text(),
            f"{error}\n{reason}" if error else reason,
            limit,
            self._clock() - start,
            alive=False,
            failures=self._calls.failures,
        )


def _discard(stream: str, text: str) -> None:
    """Discards the output of internal pieces of code, which have none."""
