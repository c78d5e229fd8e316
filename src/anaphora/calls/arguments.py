"""Checks of arguments before they are used. All raise `InvalidInput`.

A public function decorated with `checked` refuses arguments of wrong types, and values that are
never valid: NaN, a number beyond 64 bits, a blank path. Other modules check the meaning of values.
Arguments are passed on unchanged, except that checked lists arrive as tuples.
"""

from __future__ import annotations

import errno
import functools
import inspect
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from itertools import islice
from pathlib import Path
from types import NoneType, SimpleNamespace, UnionType
from typing import (
    Any,
    BinaryIO,
    Final,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from anaphora.errors import InvalidInput

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
Check = Callable[[str, Any], Any]
"""(name, argument) → the argument to pass on. Raises `InvalidInput`."""

MOST: Final = 2**63 - 1
"""The largest whole number that a database takes."""

# Protocols in modules that are too heavy to import just for a check: other modules check these.
_LEFT_TO_ROOMS: Final[dict[str, Any]] = {
    "Embedder": Any, "HttpClient": Any, "ModelRole": Any, "Sidecar": Any,
}  # fmt: skip


def path_of(name: str, given: object) -> Path:
    """The absolute path that a caller named, `~` resolved. `InvalidInput` for what names none."""
    if not isinstance(given, str | os.PathLike):
        raise InvalidInput(name, given, "expected a path")
    text = os.fspath(given)
    if not isinstance(text, str):
        raise InvalidInput(name, given, "expected a path of text, not of bytes")
    if not text.strip():
        # Path("") is the current folder, but "" is more likely a variable that is not set.
        raise InvalidInput(name, given, "must not be blank")
    if "\0" in text:
        raise InvalidInput(name, given, "must not contain a NUL character")
    try:
        path = Path(text).expanduser().absolute()
        os.fsencode(path)
        try:
            path.lstat()
        except OSError as error:
            # Only the file system knows how long a name may be.
            if error.errno == errno.ENAMETOOLONG:
                raise InvalidInput(name, path, "is longer than the file system allows") from None
    except UnicodeEncodeError:
        raise InvalidInput(name, given, "must be a name that a file system accepts") from None
    except RuntimeError as error:
        raise InvalidInput(name, given, str(error)) from None
    return path


@dataclass(frozen=True, slots=True)
class _Kind:
    """A type that a parameter may have: its name in messages, its check, and its conversion."""

    words: str
    fits: Callable[[Any], bool]
    taken: Check | None = None


class ArgumentChecks:
    """The checks of one function's arguments, made from its annotations at its first call.

    `least` gives the smallest number that a parameter may have; None if there is none.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        least: Callable[[str], float | None] = lambda _: None,
    ) -> None:
        self._function = function
        self._least = least
        self._checks: dict[str, Check | None] | None = None

    @property
    def hints(self) -> dict[str, Any]:
        """The types of the parameters by name."""
        return _parameter_hints(self._function)

    def apply(self, args: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        """The positional arguments to pass on; those in `named` are replaced in place."""
        if self._checks is None:
            self._checks = _parameter_checks(self._function, self._least)
        for name, argument in named.items():
            check = self._checks.get(name)
            if check is not None:
                named[name] = check(name, argument)
        positional = list(args)
        for place, (name, check) in enumerate(islice(self._checks.items(), len(args))):
            if check is not None:
                positional[place] = check(name, args[place])
        return positional

    def argument(self, name: str, args: list[Any], named: dict[str, Any]) -> Any:
        """The argument of one parameter in a call; None where it is left out."""
        place = list(self._checks or ()).index(name)
        return args[place] if place < len(args) else named.get(name)


def checked(function: FunctionT, checks: ArgumentChecks | None = None) -> FunctionT:
    """The function with checks of its arguments."""
    apply = (checks or ArgumentChecks(function)).apply

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        return function(*apply(args, named), **named)

    return call  # type: ignore[return-value]


def _parameter_checks(
    function: Callable[..., Any], least: Callable[[str], float | None]
) -> dict[str, Check | None]:
    """The check of each parameter, in their order; None where anything is allowed."""
    hints = _parameter_hints(function)
    checks: dict[str, Check | None] = {}
    for name in inspect.signature(function).parameters:
        hint = hints.get(name, Any)
        check, bound = _check_of(hint), least(name)
        kinds = (hint, *get_args(hint))
        if check is not None and bound is not None and (int in kinds or float in kinds):
            words = "a number" if float in kinds else "a whole number"
            check = _at_least(check, bound, f"expected {words}, {bound:g} or more")
        checks[name] = check
    return checks


def _at_least(check: Check, least: float, reason: str) -> Check:
    def _check_bound(name: str, argument: Any) -> Any:
        number = check(name, argument)
        if number is not None and number < least:
            raise InvalidInput(name, argument, reason)
        return number

    return _check_bound


def _parameter_hints(function: Callable[..., Any]) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters
    # A result is often of a module that only type checkers import.
    annotated = SimpleNamespace(
        __annotations__={
            name: parameter.annotation
            for name, parameter in parameters.items()
            if parameter.annotation is not parameter.empty
            and parameter.kind is not parameter.VAR_KEYWORD
        }
    )
    return signature_types(annotated, inspect.unwrap(function).__globals__)


def signature_types(annotated: Any, names: dict[str, Any]) -> dict[str, Any]:
    """The types that stand in a signature, by the `names` of its module.

    A feature's own may be of its `values`, which are not loaded before: most calls need none.
    """
    try:
        return get_type_hints(annotated, names, _LEFT_TO_ROOMS)
    except NameError:
        values = vars(import_module(f"{names['__package__']}.values"))
        return get_type_hints(annotated, {**values, **names}, _LEFT_TO_ROOMS)


def _check_of(annotation: Any) -> Check | None:
    """The check of an annotation; None if anything is allowed."""
    kinds = _kinds(annotation)
    if kinds is None:
        return None
    expected_kinds = " or ".join(kind.words for kind in kinds if kind.words)

    def check(name: str, value: Any) -> Any:
        for kind in kinds:
            if kind.fits(value):
                return value if kind.taken is None else kind.taken(name, value)
        raise InvalidInput(name, value, f"expected {expected_kinds}")

    return check


def _kinds(annotation: Any) -> list[_Kind] | None:
    """The types that an annotation allows; None for any."""
    parts = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    # In a union with a path, a text is a path.
    paths = any(get_origin(part) is os.PathLike for part in parts)
    kinds: list[_Kind] = []
    for part in parts:
        if part is Any or part is object or get_origin(part) is Mapping:
            return None
        kinds.append(_PATH if part is str and paths else _kind(part))
    return kinds


def _kind(annotation: Any) -> _Kind:
    origin = get_origin(annotation)
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if origin is os.PathLike:
        return _Kind("", lambda choice: isinstance(choice, os.PathLike), _PATH.taken)
    if origin is Literal:
        values = get_args(annotation)
        words = "one of " + ", ".join(str(choice) for choice in values)
        return _Kind(words, lambda choice: isinstance(choice, str) and choice in values)
    if origin is Callable or annotation is Callable:
        return _Kind("something that can be called", callable)
    if origin in (Iterable, Sequence):
        return _several(get_args(annotation)[0])
    if isinstance(annotation, type):
        return _Kind(f"a {annotation.__name__}", lambda choice: isinstance(choice, annotation))
    raise TypeError(f"no check for {annotation}")


def _several(annotation: Any) -> _Kind:
    """A list with checked elements; any iterable is accepted, and iterated once."""
    check = _check_of(annotation)
    words = " or ".join(kind.words for kind in _kinds(annotation) or [] if kind.words)

    def taken(name: str, values: Iterable[Any]) -> tuple[Any, ...]:
        if check is None:
            return tuple(values)
        return tuple(check(f"{name}[{n}]", value) for n, value in enumerate(values))

    def fits(value: Any) -> bool:
        return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)

    return _Kind(f"a list, each {words}" if words else "a list", fits, taken)


def _whole(name: str, value: int) -> int:
    if not -MOST <= value <= MOST:
        raise InvalidInput(name, value, "expected an integer that fits in 63 bits")
    return value


def _number(name: str, value: float) -> float:
    if isinstance(value, int):
        return _whole(name, value)
    if math.isnan(value):
        raise InvalidInput(name, value, "expected a number")
    return value


def _path(name: str, value: Any) -> Any:
    path_of(name, value)
    return value


_PATH: Final = _Kind("a path", lambda value: isinstance(value, str), _path)
_PLAIN: Final[Mapping[Any, _Kind]] = {
    None: _Kind("", lambda value: value is None),
    NoneType: _Kind("", lambda value: value is None),
    str: _Kind("a text", lambda value: isinstance(value, str)),
    bool: _Kind("True or False", lambda value: isinstance(value, bool)),
    int: _Kind("a whole number", lambda v: isinstance(v, int) and not isinstance(v, bool), _whole),
    float: _Kind(
        "a number", lambda v: isinstance(v, int | float) and not isinstance(v, bool), _number
    ),
    datetime: _Kind("a datetime", lambda value: isinstance(value, datetime)),
    BinaryIO: _Kind("an open file", lambda value: hasattr(value, "write")),
}
