"""Who calls, as far as callers can be told apart, and how much each may ask for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any, Final

from starlette.datastructures import Headers
from starlette.types import Scope

MOST_CALLERS: Final = 1_000
_SITE_BITS: Final = 64
"""Of an IPv6 address: what one customer of a network has to choose from."""


def peer_of(scope: Scope) -> str:
    """The address that a request comes from; of IPv6, the network.

    A proxy on this machine or in a private network adds the address of its caller at the end of
    X-Forwarded-For. A proxy that passes the header on unchanged lets callers invent one, so what
    depends on this needs a limit for all callers as well.
    """
    peer = str((scope.get("client") or ("",))[0])
    try:
        private = ip_address(peer).is_private
    except ValueError:
        return peer
    if private:
        told = Headers(scope=scope).getlist("x-forwarded-for")
        last = told[-1].rpartition(",")[2].strip() if told else ""
        return _network(last) or _network(peer)
    return _network(peer)


def _network(address: str) -> str:
    try:
        found = ip_address(address)
    except ValueError:
        return ""
    if not isinstance(found, IPv6Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ip_network((int(found), _SITE_BITS), strict=False))


@dataclass(slots=True)
class Bucket:
    """`rate` a second on average, `burst` at once."""

    rate: float
    burst: int
    clock: Callable[[], float]
    _left: float = field(init=False)
    _then: float = field(init=False)

    def __post_init__(self) -> None:
        self._left, self._then = float(self.burst), self.clock()

    def take(self) -> bool:
        """Take one; False where there is none."""
        now = self.clock()
        self._left = min(float(self.burst), self._left + (now - self._then) * self.rate)
        self._then = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


class Buckets:
    """A bucket for each caller, and one for all together that is `times` as large.

    Who has emptied its own takes nothing from that of all.
    """

    def __init__(self, rate: float, burst: int, times: int, clock: Callable[[], float]) -> None:
        self._one: tuple[float, int, Any] = (rate, burst, clock)
        self._all = Bucket(rate * times, burst * times, clock)
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()

    def take(self, caller: str) -> bool:
        """Take one for a caller; False where there is none."""
        bucket = self._buckets.get(caller)
        if bucket is None:
            bucket = self._buckets[caller] = Bucket(*self._one)
            if len(self._buckets) > MOST_CALLERS:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(caller)
        return bucket.take() and self._all.take()
