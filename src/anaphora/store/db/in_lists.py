"""Many ids for an IN of plain SQL, some at a time.

In: ids. Out: their parameters and the names of those. Imports nothing, and reads nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

AT_ONCE: Final = 200
"""Ids named in one statement: plans of a bounded size can be kept."""


def ids_named(
    ids: Iterable[str], at_once: int = AT_ONCE
) -> Iterator[tuple[dict[str, str | int | None], str]]:
    """Parameters for some ids at a time, each id once, and their names for an IN."""
    wanted = list(dict.fromkeys(ids))
    for start in range(0, len(wanted), at_once):
        some: dict[str, str | int | None] = {
            f"id{number}": one for number, one in enumerate(wanted[start : start + at_once])
        }
        yield some, ", ".join(f":{name}" for name in some)
