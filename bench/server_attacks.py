"""What an ordinary recall over HTTP feels while others attack the server that answers it.

In: the folder of shared data (500 memories out of its chats, their questions). Out: for a calm
server and for each attack the median and the slowest of the recalls asked meanwhile (each over a
connection of its own, with a question of its own), how many were not answered within ten seconds,
and how many bytes the server logged. The attacks: 600 connections that say nothing, half a head or
half a body; nine questions of 1 MB; eight deep questions to a model that takes a minute; 600
connections, opened again as they are closed, to a server that may open 300 files. About a minute.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from anaphora import Memory
from anaphora.values.memories import NewMemory
from bench.figures import Figure, below, exactly, keep, percentile
from bench.memory_texts import questions, texts

__all__ = ["run"]

MEMORIES = 500
SECONDS = 6.0
"""For how long an ordinary caller asks under each attack."""

_PATIENCE = 10.0
_FILES = 4096
_FEW_FILES = 300
_SILENT = 600
_LOG_BYTES = 20_000
_HALVES = (
    b"",
    b"POST /v1/recall HTTP/1.1\r\nHost: 127.0.0.1\r\n",
    b"POST /v1/recall HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99\r\n\r\n{",
)


@dataclass(frozen=True, slots=True)
class _Server:
    port: int
    token: str

    def ask(self, path: str, body: object, patience: float) -> int:
        """The status of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=patience)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        try:
            connection.request("POST", path, json.dumps(body), headers)
            answer = connection.getresponse()
            answer.read()
            return answer.status
        finally:
            connection.close()


Attack = Callable[[_Server], AbstractContextManager[None]]


def run(data: Path, *, memories: int = MEMORIES, seconds: float = SECONDS) -> tuple[Figure, ...]:
    """Measure, print and keep the figures."""
    attacks: tuple[tuple[str, Attack, int], ...] = (
        ("calm", _nothing, _FILES),
        ("600 silent connections", _silent, _FILES),
        ("9 questions of 1 MB", _long_questions, _FILES),
        ("8 deep questions", _deep_questions, _FILES),
        ("the limit of files", _reconnecting, _FEW_FILES),
    )
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder, _slow_model() as model:
        home = Path(folder) / "home"
        with Memory.open(home) as memory:
            memory.remember_many(NewMemory(text) for text in texts(data, memories))
            memory.ready()
        asked = questions(data, 500)
        for name, attack, files in attacks:
            log = Path(folder) / "log"
            with _server(home, model, files, log) as server, attack(server):
                figures += _felt(name, server, asked, seconds)
            size = log.stat().st_size
            figures.append(below(f"{name}: log", size, _LOG_BYTES, "bytes"))
    keep("server_attacks", "An ordinary recall over HTTP during an attack", figures)
    return tuple(figures)


def _felt(name: str, server: _Server, asked: Sequence[str], seconds: float) -> list[Figure]:
    taken: list[float] = []
    missed = 0
    end = time.perf_counter() + seconds
    while (begun := time.perf_counter()) < end:
        question = f"{asked[len(taken) % len(asked)]} {len(taken)}"
        try:
            good = server.ask("/v1/recall", {"query": question}, _PATIENCE) == 200
        except OSError:
            good = False
        missed += not good
        taken.append((time.perf_counter() - begun) * 1e3)
    return [
        Figure(f"{name}: p50", percentile(taken, 0.5), "ms"),
        below(f"{name}: slowest of {len(taken)}", max(taken), 1_000, "ms"),
        exactly(f"{name}: not answered", missed, 0),
    ]


@contextmanager
def _nothing(_: _Server) -> Iterator[None]:
    yield


@contextmanager
def _silent(server: _Server) -> Iterator[None]:
    callers = [_came(server, _HALVES[number % len(_HALVES)]) for number in range(_SILENT)]
    try:
        yield
    finally:
        for caller in callers:
            caller.close()


def _came(server: _Server, said: bytes) -> socket.socket:
    caller = socket.create_connection(("127.0.0.1", server.port), timeout=_PATIENCE)
    with suppress(OSError):
        caller.sendall(said)
    return caller


@contextmanager
def _reconnecting(server: _Server) -> Iterator[None]:
    over = threading.Event()

    def flood() -> None:
        callers: list[socket.socket] = []
        while not over.is_set():
            with suppress(OSError):
                callers.append(_came(server, b""))
            if len(callers) > _SILENT:
                callers.pop(0).close()
            # Faster than anybody falls silent, without taking the processors for itself.
            over.wait(0.002)
        for caller in callers:
            caller.close()

    thread = threading.Thread(target=flood)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _long_questions(server: _Server) -> AbstractContextManager[None]:
    return _asking(server, 9, "/v1/recall", {"query": "ab1 " * 250_000})


def _deep_questions(server: _Server) -> AbstractContextManager[None]:
    question = {"question": "how often did we talk about it?", "scope": "all_sessions"}
    return _asking(server, 8, "/v1/deep", question)


@contextmanager
def _asking(server: _Server, count: int, path: str, body: object) -> Iterator[None]:
    def ask() -> None:
        with suppress(OSError):
            server.ask(path, body, SECONDS * 2)

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    yield


@contextmanager
def _slow_model() -> Iterator[str]:
    """The URL of a model that takes a minute to think."""

    class Thinks(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            over.wait(60)

        def log_message(self, *_: object) -> None:
            return

    over = threading.Event()
    thinker = ThreadingHTTPServer(("127.0.0.1", 0), Thinks)
    thinker.daemon_threads = True
    threading.Thread(target=thinker.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{thinker.server_address[1]}/v1"
    finally:
        over.set()
        thinker.shutdown()
        thinker.server_close()


@contextmanager
def _server(home: Path, model: str, files: int, log: Path) -> Iterator[_Server]:
    words = [sys.executable, "-m", "anaphora", "--home", str(home), "serve", "--port", "0"]
    with (
        log.open("w", encoding="utf-8") as errors,
        subprocess.Popen(
            ["/bin/sh", "-c", f"ulimit -n {files} && exec {shlex.join(words)}"],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=os.environ
            | {"PYTHONUNBUFFERED": "1", "ANAPHORA_MODEL": "slow", "ANAPHORA_MODEL_URL": model},
        ) as process,
    ):
        try:
            assert process.stdout is not None
            found = re.search(r"http://\S+?:(\d+)", process.stdout.readline())
            assert found is not None, log.read_text("utf-8")
            server = _Server(int(found[1]), (home / "server.token").read_text().strip())
            server.ask("/v1/recall", {"query": "warm"}, 120)
            yield server
        finally:
            # Deep questions would be waited for.
            process.kill()
