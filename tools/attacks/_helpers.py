"""What attacks share: homes, servers, and a search for words in files."""

from __future__ import annotations

import json
import os
import pty
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
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
def rest_server(
    home: Path, *, body_limit: int | None = None, **options: Any
) -> Iterator[tuple[int, Memory]]:
    """The port of the REST server in a thread, with the limits of `serve`, and its memory."""
    import uvicorn

    from anaphora.surfaces.connections import ConnectionLimits, uvicorn_settings
    from anaphora.surfaces.rest import create_app
    from anaphora.surfaces.rest.options import ServerOptions

    with opened(home, **options) as memory:
        server_options = ServerOptions(page=None)
        if body_limit is not None:
            server_options = replace(server_options, body_limit=body_limit)
        app = create_app(memory, settings=server_options)
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
) -> tuple[int, dict[str, str]]:
    """The status and the headers of an answer."""
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        given = body if body is None or isinstance(body, bytes) else json.dumps(body)
        connection.request(method, path, given, {**JSON, **headers})
        answer = connection.getresponse()
        answer.read()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}
    finally:
        connection.close()


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
