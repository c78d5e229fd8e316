"""A server's refusals as the errors of the facade: the same kinds, with the same data.

Data that a server does not send (its paths, the refused values) is its address, or empty.
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
    """The error for a refusal; `problem` is its parsed body, of any type."""
    body = problem if isinstance(problem, Mapping) else {}
    detail = str(body.get("detail") or f"it answered {status}")[:_LONGEST]
    kind = _KINDS.get(str(body.get("error")))
    if kind is not None:
        return _rebuild(kind, url, str(body.get("detail")), body.get("data"))
    if status in _DENIED:
        return AccessDenied(url, detail, status)
    if status not in _UNUSABLE or not body:
        return ServerError(url, detail, status)
    # The server refused the request before it called its memory: the first error is named.
    reasons = body.get("errors")
    first_reason = reasons[0] if isinstance(reasons, list) and reasons else None
    if not isinstance(first_reason, Mapping):
        return InvalidInput("request", None, detail)
    reason_place = str(first_reason.get("at"))
    for prefix in _PLACES:
        reason_place = reason_place.removeprefix(prefix)
    # In the notation of the facade: items[3].tags.
    reason_place = _NUMBER.sub(r"[\1]", reason_place)
    return InvalidInput(reason_place, None, str(first_reason.get("reason")))


def _rebuild(kind: type[AnaphoraError], url: str, detail: str, data: Any) -> AnaphoraError:
    """An error of this kind with this data, as the one that the server caught."""
    # Without its constructor: each has its own parameters, and the message exists already.
    error = kind.__new__(kind)
    Exception.__init__(error, detail)
    if isinstance(error, StoreError):
        error.path = url
    if isinstance(error, InvalidInput):
        error.value = ""
    if isinstance(error, EncryptionError):
        error.what, error.reason = url, detail
    for name, attribute in (data if isinstance(data, Mapping) else {}).items():
        if isinstance(name, str) and name.isidentifier() and not name.startswith("_"):
            setattr(error, name, attribute)
    return error
