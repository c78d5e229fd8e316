"""The origin of a call: the surface that it came through, and the token and agent if known.

Surfaces set it, the audit trail records it. Worker threads get it with their context.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CallOrigin:
    """Where a call comes from. `token` is the name of an access token, `agent` a client's.

    `person` is the name of the person that the token was made for, where it was given.
    """

    surface: str = "python"
    token: str = ""
    agent: str = ""
    person: str = ""


_origin: ContextVar[CallOrigin | None] = ContextVar("anaphora_call_origin", default=None)
_PROGRAM = CallOrigin()


def call_origin() -> CallOrigin:
    """The origin of the current call: by default a program of the user's own."""
    return _origin.get() or _PROGRAM


@contextmanager
def called_from(origin: CallOrigin) -> Iterator[None]:
    """Calls inside have this origin."""
    mark = _origin.set(origin)
    try:
        yield
    finally:
        _origin.reset(mark)


def signed(source: str | None) -> str | None:
    """The source of a record written now, with the name of the calling person, if known.

    "Mara", or "Mara: notes/plan.md" where the call names a source itself.
    """
    person = call_origin().person
    if not person:
        return source
    return person if source is None else f"{person}: {source}"
