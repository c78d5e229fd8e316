"""What attacks share: homes, servers, and a search for words in files."""

from __future__ import annotations

import json
import os
import pty
import resource
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from email.message import Message
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from anaphora import Memory

PATIENCE = 60
JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "attack", "version": "1"},
    },
}


def opened(home: Path, **options: Any) -> Memory:
    """A home with the embedder that needs no model."""
    return Memory.open(home, embedder="hashing", warm=False, **options)


def command(home: Path, *words: str) -> list[str]:
    """The command line on a home."""
    return [sys.executable, "-m", "anaphora", "--home", str(home), *words]


def environ() -> dict[str, str]:
    """The environment of a command."""
    return {**os.environ, "ANAPHORA_EMBEDDER": "hashing"}


def holds(folder: Path, word: bytes) -> list[str]:
    """The files below a folder that have a word."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return [path.name for path in files if word in path.read_bytes()]


def most_memory() -> int:
    """The most MB that this process or one of its children had."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(kind).ru_maxrss for kind in kinds) // 1024


@contextmanager
def mcp_server(home: Path, *more: str) -> Iterator[tuple[int, int]]:
    """The port and the process of the MCP server over HTTP."""
    words = command(home, "mcp", "--http", "127.0.0.1:0", *more)
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environ()) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert line.startswith("anaphora: http://"), line
        try:
            yield int(line.rsplit(":", 1)[1].split("/")[0]), process.pid
        finally:
            process.terminate()


@contextmanager
def rest_server(home: Path, **options: Any) -> Iterator[tuple[int, Memory]]:
    """The port of the REST server in a thread, with the limits of `serve`, and its memory."""
    import uvicorn

    from anaphora.features.server.serving import create_app
    from anaphora.surfaces.connections import ConnectionLimits, uvicorn_settings
    from anaphora.surfaces.rest.options import ServerOptions

    with opened(home, **options) as memory:
        app = create_app(memory, settings=ServerOptions(page=None))
        config = uvicorn.Config(
            app, log_level="critical", access_log=False, **uvicorn_settings(ConnectionLimits())
        )
        server = uvicorn.Server(config)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
            thread.start()
            try:
                yield listener.getsockname()[1], memory
            finally:
                server.should_exit = True
                thread.join(PATIENCE)


def ask(
    port: int, method: str, path: str, body: Any = None, **headers: str
) -> tuple[int, Message, bytes]:
    """The status, the headers and the words of an answer."""
    with closing(HTTPConnection("127.0.0.1", port, timeout=PATIENCE)) as connection:
        sent = body if body is None or isinstance(body, bytes) else json.dumps(body)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, sent, {**JSON, **named})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()


def on_a_terminal(words: list[str]) -> bytes:
    """What a command writes to a terminal."""
    master, slave = pty.openpty()
    with subprocess.Popen(words, stdout=slave, stderr=slave, env=environ()):
        os.close(slave)
        shown = b""
        with suppress(OSError):
            while piece := os.read(master, 65_536):
                shown += piece
    os.close(master)
    return shown
