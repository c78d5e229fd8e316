"""Identifies callers as far as possible, and limits how much each may ask for."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final

from starlette.datastructures import Headers
from starlette.types import Scope

from anaphora.surfaces.rates import TokenBuckets

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


class CallerBuckets:
    """A bucket for each caller, and one for all together that is `times` as large.

    A caller whose own bucket is empty takes nothing from the common one.
    """

    def __init__(self, rate: float, burst: int, times: int, clock: Callable[[], float]) -> None:
        self._each = TokenBuckets(rate, burst, clock, MOST_CALLERS)
        self._all = TokenBuckets(rate * times, burst * times, clock, 1)

    def take(self, caller: str) -> bool:
        """Take one token for a caller; False if there is none."""
        return not self._each.take(caller) and not self._all.take("")
