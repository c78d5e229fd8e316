"""The traffic between host and sandbox: plain data of a bounded size, and host calls.

Arguments and results are checked and bounded on the host's side. No text of an exception of the
host goes to the sandbox, except that of a `HostRefusal`.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from anaphora.errors import AnaphoraError
from anaphora.features.deep.sandbox.base import HostFunction, HostRefusal, JsonValue, SandboxLimits

MAX_DEPTH = 16
MAX_VALUES = 200_000
MAX_ARGUMENT_VALUES = 20_000
# Most other readers of JSON are inexact for larger ones.
MAX_INTEGER = 2**63


class Oversized(Exception):
    """Data of the host that must not cross, with the reason."""


def shorten(text: str, chars: int) -> str:
    """The first `chars` characters; a mark says how many are missing."""
    if len(text) <= chars:
        return text
    return f"{text[:chars]}… [{len(text) - chars} more characters]"


def replace_surrogates(text: str) -> str:
    """The text as valid Unicode: lone surrogates, unknown to the sandbox, become U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def read_call(line: str, chars: int) -> tuple[str, list[JsonValue], dict[str, JsonValue]]:
    """Name, positional and named arguments of a host call: `["name", [...], {...}]`.

    Raises HostRefusal, worded for the model, for a call that is too large, too deep or malformed.
    """
    if len(line) > chars:
        raise HostRefusal(f"the arguments are too large: more than {chars} characters as JSON")
    try:
        read = json.loads(line, parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        raise HostRefusal("the arguments could not be read") from None
    if not (isinstance(read, list) and len(read) == 3):
        raise HostRefusal("the arguments could not be read")
    name, positional, keyword_arguments = read
    if not (
        isinstance(name, str)
        and isinstance(positional, list)
        and isinstance(keyword_arguments, dict)
    ):
        raise HostRefusal("the arguments could not be read")
    try:
        budget = _CrossingAllowance(chars, MAX_ARGUMENT_VALUES)
        values = [budget.take(argument, MAX_DEPTH) for argument in positional]
        return name, values, {k: budget.take(v, MAX_DEPTH) for k, v in keyword_arguments.items()}
    except Oversized as error:
        raise HostRefusal(f"the arguments are refused: {error}") from None


def copy_plain(value: object, chars: int) -> JsonValue:
    """A copy of the host's `value` as plain data with at most `chars` characters of text.

    A shared value is counted, and copied, as often as it occurs: the cost is bounded by `chars` and
    by the number of values. Raises Oversized for more, for depth, cycles and other kinds of data.
    """
    return _CrossingAllowance(chars, MAX_VALUES).take(value, MAX_DEPTH)


class _CrossingAllowance:
    """Characters and values that are still allowed."""

    def __init__(self, chars: int, values: int) -> None:
        self._chars = chars
        self._values = values

    def take(self, value: object, depth: int) -> JsonValue:
        self._values -= 1
        if self._values < 0:
            raise Oversized("too many values")
        if depth < 0:
            raise Oversized(f"nested deeper than {MAX_DEPTH}")
        if value is None or isinstance(value, bool | float):
            return value
        if isinstance(value, int):
            if not -MAX_INTEGER <= value < MAX_INTEGER:
                raise Oversized("an integer of more than 64 bits")
            return int(value)
        if isinstance(value, str):
            return self._take_text(value)
        if isinstance(value, Mapping):
            return self._take_mapping(value.items(), depth)
        if isinstance(value, list | tuple):
            return [self.take(part, depth - 1) for part in value]
        raise Oversized(f"{type(value).__name__} is not plain data")

    def _take_text(self, value: str) -> str:
        self._chars -= len(value)
        if self._chars < 0:
            raise Oversized("too much text")
        return replace_surrogates(value)

    def _take_mapping(self, items: Iterable[tuple[object, object]], depth: int) -> JsonValue:
        copied_mapping: dict[str, JsonValue] = {}
        for key, part in items:
            if not isinstance(key, str):
                raise Oversized("a key that is not a string")
            copied_mapping[self._take_text(key)] = self.take(part, depth - 1)
        return copied_mapping


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(name)


_MESSAGE_CHARS = 2_000


class HostCalls:
    """Answers the host calls of one session, and records the failures of a run.

    `names` are the available functions, `failures` the package's own errors in this run.
    """

    def __init__(self, functions: Mapping[str, HostFunction], limits: SandboxLimits) -> None:
        self._functions = dict(functions)
        self._signatures = {name: inspect.signature(f) for name, f in functions.items()}
        self._limits = limits
        self._made = 0
        self._foreign: Exception | None = None
        self.names = tuple(functions)
        self.deadline = 0.0
        self.failures: tuple[AnaphoraError, ...] = ()

    def begin(self, deadline: float) -> None:
        """A new run, which ends at `deadline` on the session's clock."""
        self.deadline = deadline
        self._made = 0
        self.failures = ()
        self._foreign = None

    def exhausted(self) -> bool:
        """Count one more call; True when it is one too many."""
        self._made += 1
        return self._made > self._limits.calls

    def raise_foreign(self) -> None:
        """Raise the first unexpected exception of this run."""
        if self._foreign is not None:
            foreign, self._foreign = self._foreign, None
            raise foreign

    def answer(self, line: str) -> Any:
        """The answer to the interpreter: a value, or an exception by name and message."""
        try:
            name, positional, keyword_arguments = read_call(line, self._limits.argument_chars)
        except HostRefusal as refusal:
            return _to_exception("ValueError", str(refusal))
        if name not in self._functions:
            return _to_exception("NameError", f"name {shorten(name, 100)!r} is not defined")
        try:
            self._signatures[name].bind(*positional, **keyword_arguments)
        except TypeError as error:
            return _to_exception("TypeError", f"{name}() {error}")
        try:
            return_value = self._functions[name](*positional, **keyword_arguments)
        except HostRefusal as refusal:
            return _to_exception("RuntimeError", str(refusal))
        except AnaphoraError as error:
            self.failures += (error,)
            return _to_exception("RuntimeError", f"internal error in {name}")
        except Exception as error:  # noqa: BLE001 - raised again at the end of the run, never lost
            self._foreign = self._foreign or error
            return _to_exception("RuntimeError", f"internal error in {name}")
        try:
            return {"return_value": copy_plain(return_value, self._limits.result_chars)}
        except Oversized as error:
            return _to_exception("RuntimeError", f"the result of {name} is refused: {error}")


def _to_exception(kind: str, message: str) -> dict[str, Any]:
    return {"exc_type": kind, "message": replace_surrogates(shorten(message, _MESSAGE_CHARS))}
