"""Checks of arguments before they are used. All raise `InvalidInput`.

A public class decorated with `checks_arguments` refuses arguments of wrong types, and values that
are never valid: NaN, a number beyond 64 bits, a blank path. Other modules check the meaning of
values. Arguments are passed on unchanged, except that checked lists arrive as tuples.
"""

from __future__ import annotations

import errno
import functools
import inspect
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, BinaryIO, Final, Literal, TypeVar, Union, get_args, get_origin

from anaphora.errors import InvalidInput

ClassT = TypeVar("ClassT", bound=type)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

MOST: Final = 2**63 - 1
"""The largest whole number that a database takes."""

EARLIEST = datetime.min.replace(tzinfo=UTC)
"""The first moment that can be kept."""
LATEST = datetime.max.replace(tzinfo=UTC)
"""The last one."""

# Protocols in modules that are too heavy to import just for a check: other modules check these.
_LEFT_TO_ROOMS: Final[Mapping[str, Any]] = {
    "Embedder": Any, "HttpClient": Any, "ModelRole": Any, "Sidecar": Any,
}  # fmt: skip


def checks_arguments(cls: ClassT) -> ClassT:
    """Decorate a class: its public methods refuse arguments of wrong types."""
    return each_method(cls, checked)


def each_method(
    cls: ClassT, wrap: Callable[[Callable[..., Any]], Callable[..., Any]], but: Sequence[str] = ()
) -> ClassT:
    """Wrap what a class itself defines as public methods, except those named in `but`."""
    for name, member in list(vars(cls).items()):
        if name.startswith("_") or name in but:
            continue
        if isinstance(member, staticmethod | classmethod):
            setattr(cls, name, type(member)(wrap(member.__func__)))
        elif inspect.isfunction(member):
            setattr(cls, name, wrap(member))
    return cls


def public_members(cls: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of a class and its bases, as they stand in them."""
    for base in cls.__mro__:
        for name, member in vars(base).items():
            if not name.startswith("_") and inspect.getattr_static(cls, name) is member:
                yield name, member


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


def utc_moment(seconds: float) -> datetime:
    """The moment so many seconds after 1970 UTC. ValueError or OverflowError where there is none.

    `datetime.fromtimestamp` fails on Windows for what was before 1970.
    """
    return _EPOCH + timedelta(seconds=seconds)


def from_epoch(seconds: float) -> datetime:
    """The moment so many seconds after 1970 UTC, or the nearest that there is.

    A float cannot tell the last microseconds of the year 9999 from the year 10000.
    """
    try:
        return utc_moment(seconds)
    except (ValueError, OverflowError):
        return LATEST if seconds > 0 else EARLIEST


def checked_moment(what: str, value: object) -> datetime:
    """The aware datetime that `value` is. Raises `InvalidInput` naming `what`.

    With an offset, it can be a moment outside the years of datetimes, such as the first hours of
    the year 1 east of Greenwich: the database could store it, but it could not be read again.
    """
    if not isinstance(value, datetime):
        raise InvalidInput(what, value, "must be a datetime")
    if value.utcoffset() is None:
        raise InvalidInput(what, value, "must have a time zone (an offset)")
    if not has_utc(value):
        raise InvalidInput(what, value, "must lie in the years 1 to 9999 in UTC")
    return value


def has_utc(value: datetime) -> bool:
    """Whether an aware datetime has a form in UTC."""
    try:
        value.astimezone(UTC)
    except OverflowError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class _Kind:
    """A type that a parameter may have: its name in messages, its check, and its conversion."""

    words: str
    fits: Callable[[Any], bool]
    taken: Callable[[str, Any], Any] = lambda _, value: value


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with checks of its arguments. The annotations are read at the first call."""
    table: dict[str, Callable[[str, Any], Any]] = {}
    names: list[str] = []

    def look(args: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        if not names:
            table.update(_table(function))
            names.extend(inspect.signature(function).parameters)
        for name, argument in named.items():
            check = table.get(name)
            if check is not None:
                named[name] = check(name, argument)
        positional = list(args)
        for position, name in enumerate(names[: len(positional)]):
            check = table.get(name)
            if check is not None:
                positional[position] = check(name, positional[position])
        return positional

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def later(*args: Any, **named: Any) -> Any:
            return await function(*look(args, named), **named)

        return later

    @functools.wraps(function)
    def now(*args: Any, **named: Any) -> Any:
        return function(*look(args, named), **named)

    return now


def _table(function: Callable[..., Any]) -> dict[str, Callable[[str, Any], Any]]:
    namespace = {**inspect.unwrap(function).__globals__, **_LEFT_TO_ROOMS}
    checks = {}
    for name, parameter in inspect.signature(function).parameters.items():
        annotation = parameter.annotation
        if annotation is parameter.empty or parameter.kind is parameter.VAR_KEYWORD:
            continue
        if isinstance(annotation, str):
            # An annotation of our own code, evaluated in its module.
            annotation = eval(annotation, namespace)  # noqa: S307
        check = _check_of(annotation)
        if check is not None:
            checks[name] = check
    return checks


def _check_of(annotation: Any) -> Callable[[str, Any], Any] | None:
    """A function (name, value) → value that raises `InvalidInput`; None if anything is allowed."""
    kinds = _kinds(annotation)
    if kinds is None:
        return None
    expected_kinds = " or ".join(kind.words for kind in kinds if kind.words)

    def check(name: str, value: Any) -> Any:
        for kind in kinds:
            if kind.fits(value):
                return kind.taken(name, value)
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
