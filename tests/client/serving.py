"""A server of Anaphora on this machine for tests: a real one, in a thread, on a free port."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn

from anaphora import Memory
from anaphora.testing import server_app

__all__ = ["listening", "served"]


@contextmanager
def listening(app: Any) -> Iterator[str]:
    """The address of a server of this application, while it runs."""
    config = uvicorn.Config(app, port=0, log_level="error", access_log=False, ws="none")
    server, socket = uvicorn.Server(config), config.bind_socket()
    # Who comes before it has begun waits in the queue of the socket.
    socket.listen()
    thread = threading.Thread(target=server.run, args=([socket],))
    thread.start()
    try:
        yield f"http://127.0.0.1:{socket.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def served(
    home: Path, options: Mapping[str, Any] | None = None, **given: Any
) -> Iterator[tuple[str, Memory]]:
    """The address of a server over the memory at `home`, and that memory."""
    with Memory.open(home, embedder="hashing", **given) as memory:
        app = server_app(memory, **({"page": None} if options is None else options))
        with listening(app) as url:
            yield url, memory
