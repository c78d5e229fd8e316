"""A server's refusals as the errors of the facade: the same kinds, with the same data on them.

What a server does not tell (where it keeps things, what was sent to it) is its address, or empty.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from anaphora import errors
from anaphora.errors import (
    AccessDenied,
    AnaphoraError,
    EncryptionError,
    InvalidInput,
    ServerError,
    StoreError,
)

_DENIED: Final = frozenset((401, 403, 421))
_UNUSABLE: Final = frozenset((400, 422))
_PLACES: Final = ("body.", "query.", "path.", "header.")
_KINDS: Final[Mapping[str, type[AnaphoraError]]] = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, AnaphoraError)
}
_LONGEST: Final = 500
_NUMBER: Final = re.compile(r"\.(\d+)(?=\.|$)")


def error_of(url: str, status: int, problem: Any) -> AnaphoraError:
    """The error that a refusal stands for; `problem` is its body, whatever that is."""
    said = problem if isinstance(problem, Mapping) else {}
    detail = str(said.get("detail") or f"it answered {status}")[:_LONGEST]
    kind = _KINDS.get(str(said.get("error")))
    if kind is not None:
        return _same(kind, url, str(said.get("detail")), said.get("data"))
    if status in _DENIED:
        return AccessDenied(url, detail, status)
    if status in _UNUSABLE and said:
        return _unusable(said, detail)
    return ServerError(url, detail, status)


def _same(kind: type[AnaphoraError], url: str, detail: str, data: Any) -> AnaphoraError:
    """An error of this kind with this data, as the one that the server caught."""
    # Not by its constructor: each has another one, and the words are there already.
    made = kind.__new__(kind)
    Exception.__init__(made, detail)
    if isinstance(made, StoreError):
        made.path = url
    if isinstance(made, InvalidInput):
        made.value = ""
    if isinstance(made, EncryptionError):
        made.what, made.reason = url, detail
    for name, value in (data if isinstance(data, Mapping) else {}).items():
        if isinstance(name, str) and name.isidentifier() and not name.startswith("_"):
            setattr(made, name, value)
    return made


def _unusable(said: Mapping[str, Any], detail: str) -> AnaphoraError:
    """What the server refused before it asked its memory: the first thing that it names."""
    found = said.get("errors")
    first = found[0] if isinstance(found, list) and found else None
    if not isinstance(first, Mapping):
        return InvalidInput("request", None, detail)
    where = str(first.get("at"))
    for place in _PLACES:
        where = where.removeprefix(place)
    # As the facade names a place: items[3].tags.
    where = _NUMBER.sub(r"[\1]", where)
    return InvalidInput(where, None, str(first.get("reason")))
