"""Rows that make no sense: how they are told apart, so that none takes others along.

In: rows, and what makes a value of one. Out: the values of those that can be read. What cannot is
named in the log, once for each reason: the same row is met with every question. Never reads or
writes a database.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Final, TypeVar

from anaphora.errors import Unreadable

DAMAGE: Final = (TypeError, ValueError, KeyError, AttributeError, RecursionError)
"""What reading a row raises whose columns hold what no program of ours has written."""

_log = logging.getLogger("anaphora")

RowT = TypeVar("RowT")
ValueT = TypeVar("ValueT")


def readable(rows: Iterable[RowT], make: Callable[[RowT], ValueT]) -> Iterator[ValueT]:
    """What the rows stand for, but for those of which `make` raises `Unreadable`."""
    for row in rows:
        try:
            yield make(row)
        except Unreadable as error:
            _tell(str(error))


def parsed(stored: str | None, kind: type) -> Any:
    """The list of texts, or the mapping, that a column of JSON holds; an empty one for None.

    Raises one of `DAMAGE`.
    """
    if not stored:
        return kind()
    found: Any = json.loads(stored)
    sound = isinstance(found, kind)
    if isinstance(found, list):
        sound = sound and all(isinstance(item, str) for item in found)
    if not sound:
        # Not what it holds: words of a user have no place in a log.
        raise ValueError(f"a column holds no {kind.__name__}")
    return found


@lru_cache(maxsize=1024)
def _tell(message: str) -> None:
    _log.warning("%s", message)
