"""What is done to a whole namespace."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeletedNamespace:
    """A namespace that was deleted: how many tokens opened it alone and went with it.

    `left` names what of it lies outside the home: its mirrored folder, its sync remote. `clean` is
    False where another program read the database all the while: deleted bytes leave its write-ahead
    log once that program has ended.
    """

    namespace: str
    tokens: int = 0
    left: tuple[str, ...] = ()
    clean: bool = True
