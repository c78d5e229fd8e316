"""Tools for tests of programs that use Anaphora: nothing here needs a model or the network.

A test of an agent that remembers:

    clock = Clock()
    with open_memory(clock=clock) as memory:
        memory.remember("The ferry leaves at nine.")
        clock.advance(days=30)
        assert memory.recall("when does the ferry leave?")
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

from anaphora.api.memory import Memory
from anaphora.container.feature import load, registered
from anaphora.embed.hashing import WordHashingEmbedder
from anaphora.system.environment import environment
from anaphora.testing.scripted import ScriptedModel

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = [
    "CliResult",
    "Clock",
    "ScriptedModel",
    "WordHashingEmbedder",
    "open_memory",
    "run_cli",
    "serve",
    "server_app",
]

_START: Final = datetime(2026, 4, 30, 12, tzinfo=UTC)


class Clock:
    """A clock that stands still until it is moved; for the argument `clock` of `Memory.open`."""

    def __init__(self, now: datetime = _START) -> None:
        self.now = now

    def __call__(self) -> datetime:
        """The time it shows."""
        return self.now

    def advance(self, **duration: float) -> datetime:
        """Move on by a duration (`days=1`, `hours=2`, as in `timedelta`)."""
        self.now += timedelta(**duration)
        return self.now


@contextmanager
def open_memory(home: str | PathLike[str] | None = None, **options: Any) -> Iterator[Memory]:
    """A memory with hashed words as vectors, at `home` or in a folder that is removed at the end.

    `options` are those of `Memory.open`. A `model=ScriptedModel([...])` answers deep recall:

        model = ScriptedModel(["```python\\nsubmit('at nine', [])\\n```"])
        with open_memory(model=model) as memory:
            memory.deep_recall("when does the ferry leave?", scope="all_sessions")
    """
    with (
        tempfile.TemporaryDirectory(prefix="anaphora-") as folder,
        Memory.open(home or folder, **{"embedder": "hashing", **options}) as memory,
    ):
        yield memory


@dataclass(frozen=True, slots=True)
class CliResult:
    """What a command gave back; `output` is what a terminal shows, both streams in their order."""

    exit_code: int
    stdout: str
    stderr: str
    output: str


def run_cli(
    *words: object,
    home: str | PathLike[str] | None = None,
    input: str | bytes | None = None,  # noqa: A002 - as in `subprocess.run`
    env: Mapping[str, str | None] | None = None,
) -> CliResult:
    """Run `anaphora WORDS` in this process, on `home`; not from several threads at once.

    `input` is its standard input; `env` are variables beside those of this process (None: not set).
    Vectors are hashed words unless `ANAPHORA_EMBEDDER` says otherwise. It is for commands that end,
    and not for servers and hooks:

        stored = run_cli("remember", "The ferry leaves at nine.", home=tmp_path)
        assert stored.exit_code == 0, stored.stderr
    """
    from typer.testing import CliRunner

    from anaphora.surfaces.cli import main

    place = () if home is None else ("--home", str(home))
    variables = {
        "ANAPHORA_EMBEDDER": environment().get("ANAPHORA_EMBEDDER", "hashing"),
        **(env or {}),
    }
    exit_code = 0
    with CliRunner().isolation(input=input, env=variables) as streams:
        try:
            main([*place, *map(str, words)])
        except SystemExit as end:
            exit_code = end.code if isinstance(end.code, int) else int(end.code is not None)
        sys.stdout.flush()
        sys.stderr.flush()
        return CliResult(exit_code, *(stream.getvalue().decode() for stream in streams))


def server_app(memory: Memory, **options: Any) -> FastAPI:
    """The server over `memory` as an ASGI application, for a test client in this process.

    `options` are those of the server, such as `require_token=True`, `page=None` (no web page),
    `projects=(folder,)`, `rate=10.0`. Needs the extra `server`:

        client = starlette.testclient.TestClient(server_app(memory), base_url="http://localhost")
        assert client.get("/v1/health").status_code == 200
    """
    application = next(filter(None, (feature.application for feature in registered())))
    app: FastAPI = load(application)(memory, **options)
    return app


@contextmanager
def serve(memory: Memory, **options: Any) -> Iterator[str]:
    """The address of a server over `memory` on a free port of this machine, while it runs.

    It runs in a thread. `options` are those of `server_app`:

        with serve(memory, page=None) as url, RemoteMemory.connect(url) as remote:
            remote.remember("The ferry leaves at nine.")
    """
    import uvicorn

    config = uvicorn.Config(
        server_app(memory, **options), port=0, log_level="error", access_log=False, ws="none"
    )
    server, socket = uvicorn.Server(config), config.bind_socket()
    # Requests that come before the server has started wait in the queue of the socket.
    socket.listen()
    thread = threading.Thread(target=server.run, args=([socket],))
    thread.start()
    try:
        yield f"http://127.0.0.1:{socket.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
