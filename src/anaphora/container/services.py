"""How services are made: each when it is first used, once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar, overload

from anaphora.errors import Closed

ServiceT = TypeVar("ServiceT")


class ServiceOwner(Protocol):
    """What has services."""

    locks: dict[str, threading.RLock]
    """For each service, the lock under which it is created."""

    @property
    def closed(self) -> bool:
        """Whether it is closed: no service is created any more."""


class service(Generic[ServiceT]):  # noqa: N801 - it is written and read as a decorator
    """A property that is created once, at its first use by any thread.

    Its dependencies are created first, so services must not depend on each other in a cycle.
    """

    def __init__(self, make: Callable[[Any], ServiceT]) -> None:
        self.make = make
        self.name = make.__name__
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> service[ServiceT]: ...
    @overload
    def __get__(self, owner: ServiceOwner, kind: type) -> ServiceT: ...
    def __get__(self, owner: ServiceOwner | None, kind: type) -> ServiceT | service[ServiceT]:
        if owner is None:
            return self
        # Afterwards Python finds it in the instance and does not call this.
        with owner.locks.setdefault(self.name, threading.RLock()):
            attributes = vars(owner)
            if self.name not in attributes:
                if owner.closed:
                    raise Closed
                attributes[self.name] = self.make(owner)
            instance: ServiceT = attributes[self.name]
            return instance
