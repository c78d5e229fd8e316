"""What is done to a whole namespace."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


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


@dataclass(frozen=True, slots=True)
class NamespaceAccess:
    """A person or program that can read a namespace through a server.

    `name` is the person's, or the token's where no person was named; `token` the token's name.
    `writes`: it may change the namespace, too. `everything`: its token opens all namespaces.
    `last_used` is right within an hour.
    """

    name: str
    token: str
    writes: bool
    everything: bool
    last_used: datetime | None = None
    expires_at: datetime | None = None
