"""The options of a server: addresses, origins, sizes, rates and times. Plain values, no library."""

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

    `hosts` are the names (without port) by which it may be called, in addition to those of
    loopback; `any_address` also allows every IP address, since DNS rebinding needs a name.
    `origins` are other sites whose pages may call it ("https://example.org"). `rate` requests per
    second and `burst` at once are allowed per token, or per address without one; 0 is no limit.
    `long_seconds` is the limit for calls that may take long (deep recall, dream, import, indexing),
    which have their own threads; up to `waiting` calls, and `long_waiting` long ones, may queue.
    Of the threads that answer questions, about `computing` compute at a time: one in Python, and
    another in a library that releases the interpreter lock.
    Requests slower than `slow_seconds`, or `slow_long_seconds` for long ones, are logged.
    At more than `connections`, the one idle longest is closed; a request has `head_seconds` for its
    headers, and its body `body_seconds` between chunks.
    `projects` are the folders within which callers with a suitable token may index projects. `own`
    is the token of the user who runs the server, who may index any folder.
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
        """Threads for calls of the memory."""
        # Calls wait for disks and for the embedder; waiting ones share its next batch.
        return self.threads or max(16, 2 * (os.cpu_count() or 1) + 2)

    @property
    def names(self) -> frozenset[str]:
        """Every name by which the server may be called, in lower case."""
        return frozenset((*_LOOPBACK_NAMES, *(host.lower() for host in self.hosts)))


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`. Names other than localhost count as no."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
