"""Commands of `anaphora` and of Python as processes, forked off one that has imported everything.

A command takes half a second, nearly all of it for imports, those of its first question included.
Each runs in a process of its own, with its own environment, folder and streams, through the entry
point; only the imports are shared.
A test of what is imported, of how Python ends, or of the program's file, starts a real one.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import importlib
import json
import os
import runpy
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

__all__ = [
    "begin_home",
    "is_one_mistake",
    "program",
    "program_folder",
    "python",
    "run_command",
    "run_command_bytes",
]

_LENGTH = 1 << 20
# fcntl.h: the signal that tells of a descriptor. Python 3.11 has no name for it.
_SETSIG = 10
_SHIM = Path(__file__).with_name("forked_program.py")
_PRELOADED = (
    "numpy",
    "sqlalchemy",
    "anaphora.api.memory",
    "anaphora.embed.minilm",
    "anaphora.surfaces.cli.program",
    "anaphora.surfaces.cli.app",
    "anaphora.features.coding_agents.hooks.session",
    "anaphora.surfaces.mcp_server.server",
    "anaphora.surfaces.mcp_server.stdio",
    "anaphora.surfaces.rest",
)


def run_command(
    *words: object, environ: Mapping[str, str], text: str = "", folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `anaphora WORDS` with nothing but these variables; `text` is its standard input."""
    done = run_command_bytes(*words, environ=environ, given=text.encode(), folder=folder)
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8")
    )


def run_command_bytes(
    *words: object, environ: Mapping[str, str], given: bytes = b"", folder: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """The same for input and output as they are."""
    listed = [str(word) for word in words]
    place = str(folder or Path.cwd())
    if not hasattr(os, "fork"):
        return subprocess.run(
            [sys.executable, "-m", "anaphora", *listed],
            capture_output=True,
            check=False,
            input=given,
            env=dict(environ),
            cwd=place,
        )
    with (
        tempfile.TemporaryFile() as stdin,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as errors,
    ):
        stdin.write(given)
        stdin.seek(0)
        asked = {"words": ["-m", "anaphora", *listed], "environ": dict(environ), "folder": place}
        request = json.dumps(asked).encode()
        streams = [stdin.fileno(), out.fileno(), errors.fileno()]
        socket.send_fds(_ready_process(), [request], streams)
        code = int(_ready_process().recv(_LENGTH))
        out.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(listed, code, out.read(), errors.read())


def begin_home(home: Path) -> None:
    """Make a home that holds nothing but its settings: there is one, and it is empty."""
    home.mkdir(parents=True, exist_ok=True)
    (home / "settings.json").write_text("{}", "utf-8")


def is_one_mistake(text: str) -> bool:
    """Whether standard error has one line of what went wrong, and at most its next step."""
    first, *rest = text.strip().splitlines()
    steps = [line for line in rest if line.startswith("  next: ")]
    return first.startswith("anaphora: ") and rest == steps and len(steps) <= 1


def program() -> list[str]:
    """The beginning of a command line that runs `anaphora` in this way, for who starts it."""
    return [*python(), "-m", "anaphora"]


def python() -> list[str]:
    """The same for Python: what follows is `-c` and a program, `-m` and a module, or a file.

    It can be ended as any process can, by `kill -9` too, and says how it ended.
    """
    if sys.platform != "linux":
        return [sys.executable]
    _ready_process()
    return [sys.executable, "-I", "-S", str(_SHIM), str(_socket())]


@cache
def program_folder() -> Path:
    """A folder for a search path, in which `anaphora` is that."""
    folder = _socket().parent / "bin"
    folder.mkdir()
    (folder / "anaphora").write_text(f'#!/bin/sh\nexec {shlex.join(program())} "$@"\n', "utf-8")
    (folder / "anaphora").chmod(0o755)
    return folder


@cache
def _socket() -> Path:
    """Where programs are asked for: a short path, as that of a socket must be."""
    folder = Path(tempfile.mkdtemp(prefix="anp"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder / "socket"


@cache
def _ready_process() -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(_socket()))
        listener.listen(64)
        given = [theirs.fileno(), listener.fileno()]
        process = subprocess.Popen(
            [sys.executable, __file__, *map(str, given)],
            pass_fds=given,
            # The code that is tested, which may lie elsewhere than the installed one.
            env={"PATH": "", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
    theirs.close()
    atexit.register(_end, ours, process)
    return ours


def _end(connection: socket.socket, process: subprocess.Popen[bytes]) -> None:
    connection.close()
    process.wait()


def serve(connection: socket.socket, listener: socket.socket) -> None:
    """Fork a process for each request, and answer with its exit code.

    Who asks by `connection` is answered before the next one; programs run side by side.
    """
    for name in (*_PRELOADED, *_imported_by_use()):
        with suppress(ImportError):
            importlib.import_module(name)
    _compile_patterns("when does the ferry leave?", "The ferry left.", "heron")
    # What is imported stays: a search for garbage would copy all of it into each process.
    gc.collect()
    gc.freeze()
    while True:
        if listener in select.select([connection, listener], [], [])[0]:
            _begin(connection, listener)
            continue
        data, streams, _, _ = socket.recv_fds(connection, _LENGTH, 3)
        if not data:
            return
        child = os.fork()
        if child == 0:
            listener.close()
            _run(json.loads(data), streams)
        for stream in streams:
            os.close(stream)
        _, status = os.waitpid(child, 0)
        connection.send(str(os.waitstatus_to_exitcode(status)).encode())


def _begin(connection: socket.socket, listener: socket.socket) -> None:
    """Fork a program that answers by itself. Its parent ends at once, so that nobody waits."""
    asked, _ = listener.accept()
    with asked:
        child = os.fork()
        if child == 0:
            if os.fork():
                os._exit(0)
            connection.close()
            listener.close()
            data, (*streams, asker), _, _ = socket.recv_fds(asked, _LENGTH, 4)
            # The kernel kills this process when the one that asked is gone, and so its end of this.
            fcntl.fcntl(asker, fcntl.F_SETOWN, os.getpid())
            fcntl.fcntl(asker, _SETSIG, signal.SIGKILL)
            fcntl.fcntl(asker, fcntl.F_SETFL, os.O_ASYNC)
            asked.send(str(os.getpid()).encode())
            _run(json.loads(data), streams, asked)
        os.waitpid(child, 0)


def _imported_by_use() -> list[str]:
    """What a memory imports when it is used: in a process that ends, for it leaves threads."""
    with tempfile.TemporaryDirectory() as folder:
        names = Path(folder) / "names.json"
        child = os.fork()
        if child == 0:
            try:
                _use(Path(folder))
                names.write_text(json.dumps(sorted(sys.modules)), "utf-8")
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        return [*json.loads(names.read_text("utf-8"))]


def _use(folder: Path) -> None:
    from anaphora import Memory

    with Memory.open(folder / "home", embedder="hashing") as memory:
        memory.remember("The ferry leaves at nine.")
        memory.conversations.append_user("chat", "And the heron is grey.")
        memory.ready()
        memory.search("when does the ferry leave?")
        memory.warm_up()
        memory.recall_context("what of the heron?")
        memory.doctor()
        memory.export(folder / "all.jsonl")
        memory.import_(folder / "all.jsonl")


def _compile_patterns(*texts: str) -> None:
    """What the first question of a process compiles, in each language that these may be in."""
    from anaphora.language.times.reading import read_times
    from anaphora.rank.statements import read_cues, read_statement

    for text in texts:
        read_times(text, datetime.now(UTC))
        read_statement(text)
        read_cues(text)


def _run(request: dict[str, Any], streams: list[int], asked: socket.socket | None = None) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(request["environ"])
    time.tzset()
    tempfile.tempdir = None
    os.chdir(request["folder"])
    _answer_at_exit(asked)
    code = 1
    try:
        try:
            _perform(*request["words"])
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except Exception:  # noqa: BLE001
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        # What a program does at its end: homes are closed, threads waited for.
        atexit._run_exitfuncs()
    finally:
        os._exit(code)


def _answer_at_exit(asked: socket.socket | None) -> None:
    """Let the program's own `os._exit` tell its code, as the kernel tells that of a process."""
    end, process = os._exit, os.getpid()

    def end_with(status: int) -> NoReturn:
        if asked is not None and os.getpid() == process:
            asked.send(str(status).encode())
        end(status)

    os._exit = end_with


def _perform(how: str, *words: str) -> None:
    """What Python does with these words of a command line."""
    if (how, words[0]) == ("-m", "anaphora"):
        from anaphora.surfaces.cli import main

        sys.argv = [*words]
        main()
    elif how == "-c":
        sys.argv = [how, *words[1:]]
        exec(compile(words[0], "<string>", "exec"), {"__name__": "__main__"})
    elif how == "-m":
        sys.argv = [*words]
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = [how, *words]
        runpy.run_path(how, run_name="__main__")


if __name__ == "__main__":
    serve(*(socket.socket(fileno=int(word)) for word in sys.argv[1:]))
