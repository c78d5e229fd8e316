"""Commands of `anaphora` as processes, forked off one that has imported everything already.

A command takes half a second, nearly all of it for imports. Each runs in a process of its own,
with its own environment, folder and streams, through the entry point; only the imports are shared.
A test of what is imported, or of the program's file, starts a real one.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["run_command"]

_LENGTH = 1 << 20
_PRELOADED = (
    "alembic.command",
    "numpy",
    "sqlalchemy",
    "tantivy",
    "anaphora.api.memory",
    "anaphora.surfaces.cli.program",
    "anaphora.surfaces.cli.app",
)


def run_command(
    *words: object, environ: Mapping[str, str], text: str = "", folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `anaphora WORDS` with nothing but these variables; `text` is its standard input."""
    listed = [str(word) for word in words]
    place = str(folder or Path.cwd())
    if not hasattr(os, "fork"):
        return subprocess.run(
            [sys.executable, "-m", "anaphora", *listed],
            capture_output=True,
            text=True,
            check=False,
            input=text,
            env=dict(environ),
            cwd=place,
        )
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as errors,
    ):
        given.write(text.encode())
        given.seek(0)
        request = json.dumps({"words": listed, "environ": dict(environ), "folder": place}).encode()
        streams = [given.fileno(), out.fileno(), errors.fileno()]
        socket.send_fds(_ready_process(), [request], streams)
        code = int(_ready_process().recv(_LENGTH))
        out.seek(0)
        errors.seek(0)
        shown, said = out.read().decode("utf-8"), errors.read().decode("utf-8")
    return subprocess.CompletedProcess(listed, code, shown, said)


@cache
def _ready_process() -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = subprocess.Popen(
        [sys.executable, __file__, str(theirs.fileno())],
        pass_fds=[theirs.fileno()],
        env={"PATH": ""},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    theirs.close()
    atexit.register(_end, ours, process)
    return ours


def _end(connection: socket.socket, process: subprocess.Popen[bytes]) -> None:
    connection.close()
    process.wait()


def serve(connection: socket.socket) -> None:
    """Fork a process for each request, and answer with its exit code."""
    for name in _PRELOADED:
        importlib.import_module(name)
    while True:
        data, streams, _, _ = socket.recv_fds(connection, _LENGTH, 3)
        if not data:
            return
        child = os.fork()
        if child == 0:
            _run(json.loads(data), streams)
        for stream in streams:
            os.close(stream)
        _, status = os.waitpid(child, 0)
        connection.send(str(os.waitstatus_to_exitcode(status)).encode())


def _run(request: dict[str, Any], streams: list[int]) -> None:
    from anaphora.surfaces.cli import main

    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(request["environ"])
    os.chdir(request["folder"])
    sys.argv = ["anaphora", *request["words"]]
    code = 1
    try:
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        sys.stdout.flush()
        sys.stderr.flush()
        # What a program does at its end: homes are closed, threads waited for.
        atexit._run_exitfuncs()
    finally:
        os._exit(code)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
