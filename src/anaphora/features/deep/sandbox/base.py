"""The interface of a sandbox for code that a model wrote, and the values that cross it.

Only plain data crosses: text, numbers, booleans, None, and lists and dictionaries of them. Nothing
here starts a process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from anaphora.errors import AnaphoraError

JsonValue: TypeAlias = (
    "bool | int | float | str | list[JsonValue] | tuple[JsonValue, ...] | Mapping[str, JsonValue] "
    "| None"
)
"""Plain data. Tuples go in as lists."""

HostFunction: TypeAlias = "Callable[..., JsonValue]"
"""A function of the host that sandboxed code may call by name, with plain data."""

LimitName: TypeAlias = Literal["seconds", "memory", "recursion", "calls", "crash"]
"""The limit that ended a session: the wall clock of a run, memory, depth of calls, number of host
calls; or "crash": the process that ran the code died for an unknown reason."""


class HostRefusal(Exception):
    """A host function refuses. Its message is for the model: unchanged, cut when very long."""


@dataclass(frozen=True, slots=True)
class Wall:
    """One wall around the code: its name, whether it is active here, and a description."""

    name: str
    active: bool
    detail: str


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """The limits of one session.

    `seconds` is the wall time of one run, host calls and sleeps included; `memory_bytes` bounds the
    memory of the code's own values; `output_chars` bounds the output of one run;
    `recursion` is the depth of function calls; `calls` is the number of host calls in one run.
    `argument_chars` and `result_chars` bound the data of one host call, as JSON; `input_chars`
    bounds all inputs together.
    """

    seconds: float = 10.0
    memory_bytes: int = 128 * 1024 * 1024
    output_chars: int = 20_000
    recursion: int = 200
    calls: int = 1_000
    argument_chars: int = 256 * 1024
    result_chars: int = 2 * 1024 * 1024
    input_chars: int = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Run:
    """The result of one run.

    `output` is the printed text, at most `SandboxLimits.output_chars` and a mark with the number of
    characters left out. `error` is a Python error as text, with the line, or None. `limit` is the
    limit that ended the session; then `alive` is False and the variables are gone. `failures` are
    the package's own errors that host functions raised: the code saw only "internal error in
    <name>".
    """

    output: str
    error: str | None = None
    limit: LimitName | None = None
    seconds: float = 0.0
    alive: bool = True
    failures: tuple[AnaphoraError, ...] = ()


class SandboxSession(Protocol):
    """Runs code piece by piece; variables persist from one run to the next.

    It belongs to the thread that opened it, and may end with that thread.
    """

    def run(self, code: str, seconds: float | None = None) -> Run:
        """Run a piece of code. A mistake of the code is a `Run` with an `error`, never raised.

        `seconds` bounds this run, if it is less than the session's limit.

        Host functions and `print` are restored at the start of every run, even if earlier code
        has changed their names; inputs are variables like any other. After a limit the session is
        dead: every later run says so. An exception of a host function that is neither
        `HostRefusal` nor an `AnaphoraError` is raised again when the run has ended.
        """

    def remaining(self) -> float:
        """Seconds of wall time left to the current run: a host function must not take longer."""

    def close(self) -> None:
        """End the process behind it. May be called twice."""

    def __enter__(self) -> SandboxSession: ...

    def __exit__(self, *exc: object) -> None: ...


class Engine(Protocol):
    """Opens sessions. Safe to use from several threads; a session belongs to one."""

    def walls(self) -> tuple[Wall, ...]:
        """The walls around every session, those inactive here included."""

    def open(
        self,
        inputs: Mapping[str, JsonValue],
        functions: Mapping[str, HostFunction],
        limits: SandboxLimits = SandboxLimits(),
    ) -> SandboxSession:
        """Start a session with `inputs` as variables and `functions` as functions.

        Raises InvalidInput for a name or a value that cannot cross, SandboxError when the process
        behind it does not start.
        """
