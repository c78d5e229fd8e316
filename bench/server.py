"""What a server answers: REST over a home of 10,000 memories, asked through 16 connections.

In: the folder of shared data. Out: figures beside their targets in bench/results/server.json and
.md. The server is `anaphora serve`, in processes of its own and without the reader; the client
keeps its connections open, asks each question once, and shares the cores with the server.

    python -m bench.server --data DIR [--homes DIR]
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from anaphora import Memory
from anaphora.surfaces.access import FILE
from bench.crowd import read_statements
from bench.datasets import haystacks
from bench.figures import Figure, at_least, at_most, keep, percentile, run_alone
from bench.homes import home_of, tell_once
from bench.measuring import plain_environment, processor_time

SIZE: Final = 10_000
CONNECTIONS: Final = 16
ALONE: Final = 200
"""Questions asked one after the other: fewer than the vectors that a server keeps."""
WITHOUT_READER: Final = {"ANAPHORA_READER": "off"}
TICKS: Final = 100
"""Of the processor in a second."""
_ADDRESS: Final = re.compile(rb"Anaphora is at http://([^:]+):(\d+)")
_LENGTH: Final = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)


def run(data: Path, homes: Path | None = None) -> list[Figure]:
    """Fill a home, serve it by one process and by two; print and keep the figures."""
    every = list(dict.fromkeys(q.text for _, chat in haystacks(data) for q in chat.questions))
    with home_of(homes, "server") as home:
        tell_once(home, lambda: _fill(home, data))
        figures = [
            Figure("memories", SIZE),
            *_one_request(home, every[:ALONE]),
            *_many_connections(home, every, processes=1, least=300),
            *_many_connections(home, every, processes=2, least=450),
        ]
    keep("server", f"What a server answers, {SIZE:,} memories", figures)
    return figures


def _fill(home: Path, data: Path) -> None:
    with Memory.open(home) as memory:
        memory.remember_many(read_statements(data, SIZE))
        memory.ready(3600)


def _one_request(home: Path, questions: Sequence[str]) -> Iterator[Figure]:
    """What one request costs beside the call that it makes; the questions' vectors are known."""
    with Memory.open(home, environ=WITHOUT_READER) as memory:
        for question in questions:
            memory.recall(question)
        recall = list(_seconds_of(memory.recall, questions))
        search = list(_seconds_of(memory.search, questions))
        token = memory.tokens.create(f"bench {time.time_ns()}", namespaces=["*"]).secret
    with Server(home, 1) as server:
        own = {}
        for path in ("recall", "search"):
            _asked(server, path, questions, 1)
            own[path] = _asked(server, path, questions, 1)
        by_token = _asked(server, "recall", questions, 1, token)
    for path, call in (("recall", recall), ("search", search)):
        name = f"one connection, {path}"
        yield Figure(f"{name}, the call alone, p50", 1000 * percentile(call, 0.5), "ms")
        spent = 1000 * percentile(own[path].seconds, 0.5)
        limit = 6 if path == "search" else 4
        yield at_most(f"{name} by REST, p50", spent, limit, "ms")
        over = spent - 1000 * percentile(call, 0.5)
        yield Figure(f"{name}, REST over the call, p50", over, "ms")
    spent = 1000 * percentile(by_token.seconds, 0.5)
    yield Figure("one connection, recall with a created token, p50", spent, "ms")


def _many_connections(
    home: Path, questions: Sequence[str], *, processes: int, least: int
) -> Iterator[Figure]:
    with Server(home, processes) as server:
        # Each process loads its model and its indexes at the first question.
        _asked(server, "recall", ["?"] * CONNECTIONS * 4, CONNECTIONS)
        asked = _asked(server, "recall", questions, CONNECTIONS)
    name = f"{CONNECTIONS} connections, {processes} process{'es' if processes > 1 else ''}"
    yield at_least(f"{name}, answers", asked.rate, least, "/s")
    yield Figure(f"{name}, p50", 1000 * percentile(asked.seconds, 0.5), "ms")
    yield at_most(f"{name}, p99", 1000 * percentile(asked.seconds, 0.99), 80, "ms")
    yield Figure(f"{name}, processor time of an answer", 1000 * asked.processor, "ms")


@dataclass(frozen=True, slots=True)
class Answers:
    """What asking gave: seconds of each request, requests a second, and the seconds of processor
    time that the server took for one."""

    seconds: list[float]
    rate: float
    processor: float


class Server:
    """`anaphora serve` over a home, until the context ends."""

    def __init__(self, home: Path, processes: int) -> None:
        self._command = [
            *(sys.executable, "-m", "anaphora", "--home", str(home)),
            *("serve", "--port", "0", "--processes", str(processes)),
        ]
        self._home = home

    def __enter__(self) -> Server:
        environ = {**plain_environment(), **WITHOUT_READER}
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, env=environ)
        assert self._process.stdout is not None
        for line in self._process.stdout:
            match = _ADDRESS.search(line)
            if match:
                self.host, self.port = match[1].decode(), int(match[2])
                break
        self.token = (self._home / FILE).read_text().strip()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()

    def processor_seconds(self) -> float:
        """Processor time of all processes of the server."""
        children = Path(f"/proc/{self._process.pid}/task").glob("*/children")
        processes = [int(word) for file in children for word in file.read_text().split()]
        return sum(map(processor_time, (self._process.pid, *processes))) / TICKS


def _asked(
    server: Server, path: str, questions: Sequence[str], connections: int, token: str = ""
) -> Answers:
    """Ask each question once, through so many connections at a time."""
    requests = iter([_request(server, path, question, token) for question in questions])
    seconds: list[float] = []

    async def ask() -> None:
        reader, writer = await asyncio.open_connection(server.host, server.port)
        for request in requests:
            began = time.perf_counter()
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            length = _LENGTH.search(head)
            if not head.startswith(b"HTTP/1.1 200") or length is None:
                raise SystemExit(head.decode())
            await reader.readexactly(int(length[1]))
            seconds.append(time.perf_counter() - began)
        writer.close()

    async def ask_all() -> None:
        await asyncio.gather(*(ask() for _ in range(connections)))

    processor, began = server.processor_seconds(), time.perf_counter()
    asyncio.run(ask_all())
    spent = time.perf_counter() - began
    processor = server.processor_seconds() - processor
    return Answers(seconds, len(questions) / spent, processor / len(questions))


def _request(server: Server, path: str, question: str, token: str) -> bytes:
    body = json.dumps({"question": question}).encode()
    head = (
        f"POST /v1/{path} HTTP/1.1\r\nHost: {server.host}:{server.port}\r\n"
        f"Authorization: Bearer {token or server.token}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def _seconds_of(call: Callable[[str], Any], questions: Sequence[str]) -> Iterator[float]:
    for question in questions:
        began = time.perf_counter()
        call(question)
        yield time.perf_counter() - began


if __name__ == "__main__":
    run_alone("bench.server", __doc__, run, homes=True)
