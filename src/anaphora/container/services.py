"""How services are made: each when it is first used, once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, overload

from anaphora.errors import Closed

if TYPE_CHECKING:
    from anaphora.container.namespace import NamespaceServices

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


class ServiceGroup:
    """Some of the services of a namespace. They are closed with it."""

    def __init__(self, services: NamespaceServices) -> None:
        self.services = services
        self.locks: dict[str, threading.RLock] = {}

    @property
    def closed(self) -> bool:
        """Whether the namespace is closed: no service is created any more."""
        return self.services.closed

    def close_created(self, *names: str) -> None:
        """Close these services, in this order; those that were not created stay so."""
        for name in names:
            if name in vars(self):
                vars(self)[name].close()
