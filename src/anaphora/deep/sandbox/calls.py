"""The host's side of a host call: arguments checked, the function called, its result bounded.

In: the line that the sandbox sent, the host's functions. Out: what the interpreter is answered. No
text of an exception of the host goes to the sandbox, except that of a `HostRefusal`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from anaphora.deep.sandbox.base import HostFunction, HostRefusal, JsonValue, Limits
from anaphora.deep.sandbox.bounded import Oversized, clean, plain, read_call, shorten
from anaphora.errors import AnaphoraError

_MESSAGE_CHARS = 2_000


class HostCalls:
    """Answers the host calls of one session, and remembers what went wrong in a run."""

    def __init__(self, functions: Mapping[str, HostFunction], limits: Limits) -> None:
        self._functions = dict(functions)
        self._signatures = {name: _signature(f) for name, f in self._functions.items()}
        self._limits = limits
        self._made = 0
        self._failures: list[AnaphoraError] = []
        self._foreign: Exception | None = None
        self.deadline = 0.0

    @property
    def names(self) -> tuple[str, ...]:
        """The functions that there are."""
        return tuple(self._functions)

    @property
    def failures(self) -> tuple[AnaphoraError, ...]:
        """Errors of our own in this run, oldest first."""
        return tuple(self._failures)

    def begin(self, deadline: float) -> None:
        """A new run, which ends at `deadline` on the session's clock."""
        self.deadline = deadline
        self._made = 0
        self._failures = []
        self._foreign = None

    def exhausted(self) -> bool:
        """Count one more call; True when it is one too many."""
        self._made += 1
        return self._made > self._limits.calls

    def raise_foreign(self) -> None:
        """Raise the first exception of this run that nobody had planned for."""
        if self._foreign is not None:
            foreign, self._foreign = self._foreign, None
            raise foreign

    def answer(self, line: str) -> Any:
        """What the interpreter is told: a value, or an exception by name and message."""
        try:
            name, positional, named = read_call(line, self._limits.argument_chars)
        except HostRefusal as refusal:
            return _raised("ValueError", str(refusal))
        if name not in self._functions:
            return _raised("NameError", f"name {shorten(name, 100)!r} is not defined")
        try:
            self._signatures[name].bind(*positional, **named)
        except TypeError as error:
            return _raised("TypeError", f"{name}() {error}")
        return self._call(name, positional, named)

    def _call(
        self, name: str, positional: list[JsonValue], named: dict[str, JsonValue]
    ) -> dict[str, Any]:
        try:
            value = self._functions[name](*positional, **named)
        except HostRefusal as refusal:
            return _raised("RuntimeError", str(refusal))
        except AnaphoraError as error:
            self._failures.append(error)
            return _raised("RuntimeError", f"internal error in {name}")
        except Exception as error:  # noqa: BLE001 - raised again at the end of the run, never lost
            self._foreign = self._foreign or error
            return _raised("RuntimeError", f"internal error in {name}")
        try:
            return {"return_value": plain(value, self._limits.result_chars)}
        except Oversized as error:
            return _raised("RuntimeError", f"the result of {name} is refused: {error}")


def _signature(function: HostFunction) -> inspect.Signature:
    return inspect.signature(function)


def _raised(kind: str, message: str) -> dict[str, Any]:
    return {"exc_type": kind, "message": clean(shorten(message, _MESSAGE_CHARS))}
