"""Identifies callers as far as possible, and limits how much each may ask for."""

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
"""Prefix length of an IPv6 network: one customer controls all addresses within it."""


def peer_of(scope: Scope) -> str:
    """The address that a request comes from; for IPv6, its network.

    A proxy on this machine or in a private network appends its caller's address to
    X-Forwarded-For. A proxy that passes the header on unchanged lets callers forge it, so limits
    based on this need one for all callers together as well.
    """
    peer = str((scope.get("client") or ("",))[0])
    try:
        private = ip_address(peer).is_private
    except ValueError:
        return peer
    if private:
        forwarded_headers = Headers(scope=scope).getlist("x-forwarded-for")
        last_address = forwarded_headers[-1].rpartition(",")[2].strip() if forwarded_headers else ""
        return _network(last_address) or _network(peer)
    return _network(peer)


def _network(address: str) -> str:
    try:
        parsed_address = ip_address(address)
    except ValueError:
        return ""
    if not isinstance(parsed_address, IPv6Address):
        return str(parsed_address)
    if parsed_address.ipv4_mapped is not None:
        return str(parsed_address.ipv4_mapped)
    return str(ip_network((int(parsed_address), _SITE_BITS), strict=False))


@dataclass(slots=True)
class Bucket:
    """A token bucket: `rate` per second on average, `burst` at once."""

    rate: float
    burst: int
    clock: Callable[[], float]
    _left: float = field(init=False)
    _then: float = field(init=False)

    def __post_init__(self) -> None:
        self._left, self._then = float(self.burst), self.clock()

    def take(self) -> bool:
        """Take one token; False if there is none."""
        now = self.clock()
        self._left = min(float(self.burst), self._left + (now - self._then) * self.rate)
        self._then = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


class CallerBuckets:
    """A bucket for each caller, and one for all together that is `times` as large.

    A caller whose own bucket is empty takes nothing from the common one.
    """

    def __init__(self, rate: float, burst: int, times: int, clock: Callable[[], float]) -> None:
        self._per_caller: tuple[float, int, Any] = (rate, burst, clock)
        self._all = Bucket(rate * times, burst * times, clock)
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()

    def take(self, caller: str) -> bool:
        """Take one token for a caller; False if there is none."""
        bucket = self._buckets.get(caller)
        if bucket is None:
            bucket = self._buckets[caller] = Bucket(*self._per_caller)
            if len(self._buckets) > MOST_CALLERS:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(caller)
        return bucket.take() and self._all.take()
