"""What a server allows: addresses, origins, sizes, rates and times. Values alone, no library."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

DEFAULT_PORT = 7411
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How a server behaves. Sizes are bytes, times seconds.

    `hosts` are the names (without port) by which it may be called, beside those of loopback, and
    `any_address` allows every number: a page that rebinds its name has a name. `origins` are other
    sites whose pages may call it ("https://example.org"). `rate` requests a second and `burst` at
    once are allowed to each token, or to each address without one; rate 0 is no limit.
    `long_seconds` is the time for what may take long (deep recall, dream, import, indexing), which
    has threads of its own; `waiting` calls, and `long_waiting` of the long ones, may wait for one.
    Of the threads that answer questions so many as `computing` compute at a time, if none is slow:
    one, and another that is in a library which lets Python go on.
    A request that takes longer than `slow_seconds`, a long one than `slow_long_seconds`, is logged.
    Of `connections` at once the one that has asked for nothing longest gives way; a request has
    `head_seconds` to say what it wants, and its body `body_seconds` from piece to piece.
    `projects` are the folders inside of which a caller may index a project, with a token only one
    that may. `own` is the token of the user who runs the server, who may index any folder.
    """

    require_token: bool = False
    own: str | None = field(default=None, repr=False)
    hosts: tuple[str, ...] = ()
    any_address: bool = False
    origins: tuple[str, ...] = ()
    body_limit: int = 8 * 1024 * 1024
    import_limit: int = 512 * 1024 * 1024
    document_limit: int = 100_000_000
    rate: float = 0.0
    burst: int = 200
    seconds: float = 60.0
    long_seconds: float = 900.0
    slow_seconds: float = 2.0
    slow_long_seconds: float = 60.0
    heartbeat: float = 15.0
    connections: int = 512
    head_seconds: float = 10.0
    body_seconds: float = 20.0
    threads: int = 0
    computing: int = 2
    waiting: int = 512
    long_waiting: int = 32
    projects: tuple[Path, ...] = ()
    dream_every: float | None = None
    page: Path | None = Path(__file__).parents[1] / "web"
    clock: Callable[[], float] = monotonic

    @property
    def workers(self) -> int:
        """Threads in which the memory is called."""
        # Calls wait for disks and for the embedder: those that wait for it share its next run.
        return self.threads or max(16, 2 * (os.cpu_count() or 1) + 2)

    @property
    def names(self) -> frozenset[str]:
        """Every name by which the server may be called, lower case."""
        return frozenset((*_LOOPBACK_NAMES, *(host.lower() for host in self.hosts)))


def is_loopback(host: str) -> bool:
    """Whether nobody but this machine reaches `host`. Other names than localhost may mislead."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
