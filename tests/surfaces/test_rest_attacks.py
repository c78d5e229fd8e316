"""What callers can do to a server, before a token was asked for and after, and what others feel."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.surfaces.callers import ASK, PATIENT, WHOLE, ask, came, heard

from anaphora import Memory
from anaphora.testing import ScriptedModel, serve, server_app

pytestmark = pytest.mark.enable_socket
ANAPHORA = Path(sys.executable).parent / "anaphora"


@contextmanager
def listening(
    home: Path, options: Mapping[str, Any] | None = None, **given: Any
) -> Iterator[tuple[int, Memory]]:
    """The port of a server in a thread, and its memory."""
    with (
        Memory.open(home, embedder="hashing", **given) as memory,
        serve(memory, **({"page": None} if options is None else options)) as url,
    ):
        yield int(url.rsplit(":", 1)[1]), memory


@pytest.mark.promise("server.silent")
def test_a_server_short_of_files_answers_and_logs_little(tmp_path: Path) -> None:
    """With more silent callers than it may open files, it answers, and its log stays small."""
    words = f"ulimit -n 300; exec '{ANAPHORA}' --home '{tmp_path}/home' serve --no-token --port 0"
    with subprocess.Popen(
        ["/bin/sh", "-c", words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={
            "ANAPHORA_EMBEDDER": "hashing",
            "ANAPHORA_READER": "off",
            "PATH": "",
            "PYTHONUNBUFFERED": "1",
        },
    ) as server:
        assert server.stdout is not None
        found = re.search(r"http://\S+?:(\d+)", server.stdout.readline())
        assert found is not None
        port = int(found[1])
        callers = [came(port) for _ in range(400)]
        try:
            for _ in range(3):
                assert ask(port, "POST", "/v1/recall", {"query": "x"})[0] == 200
        finally:
            for caller in callers:
                caller.close()
            server.terminate()
            _, errors = server.communicate(timeout=PATIENT)
    assert len(errors) < 10_000, errors[:2_000]


@pytest.mark.promise("server.lanes")
def test_deep_questions_hold_up_no_short_one(tmp_path: Path) -> None:
    """While models are thought about on every thread for them, memories are found and kept."""
    go_on, thinking = threading.Event(), threading.Semaphore(0)

    class Slow(ScriptedModel):
        def ask(self, *given: Any, **named: Any) -> Any:
            thinking.release()
            assert go_on.wait(PATIENT)
            return super().ask(*given, **named)

    options = {"page": None, "threads": 2}
    model = Slow(["```python\nsubmit('x')\n```"] * 100)
    with (
        listening(tmp_path / "home", options=options, model=model) as (port, memory),
        ThreadPoolExecutor(10) as callers,
    ):
        memory.conversations.append("c", "user", "a heron came by the river")
        body = {"question": "how often did herons come by?", "scope": "all_sessions"}
        deep = [callers.submit(ask, port, "POST", "/v1/deep", body) for _ in range(8)]
        for _ in range(4):
            assert thinking.acquire(timeout=PATIENT)
        assert ask(port, "POST", "/v1/recall", {"query": "heron"})[0] == 200
        assert ask(port, "POST", "/v1/memories", {"text": "A heron is grey."})[0] == 201
        assert not any(one.done() for one in deep)
        go_on.set()
        assert {one.result(PATIENT)[0] for one in deep} == {200}


@pytest.mark.promise("server.lanes")
def test_questions_of_many_words_hold_up_no_short_one(tmp_path: Path) -> None:
    """While questions of 200 KB wait and are read, a short one is answered."""
    go_on, reading = threading.Event(), threading.Semaphore(0)

    def wait(event: Any) -> None:
        if len(event.query) > 1_000:
            reading.release()
            assert go_on.wait(PATIENT)

    with (
        listening(tmp_path / "home", options={"page": None, "threads": 2}) as (port, memory),
        ThreadPoolExecutor(9) as callers,
    ):
        memory.remember("A heron is grey.")
        memory.on("cache", wait)
        asked = [
            callers.submit(ask, port, "POST", "/v1/recall", {"query": f"{n} heron " * 20_000})
            for n in range(9)
        ]
        for _ in range(2):
            assert reading.acquire(timeout=PATIENT)
        assert ask(port, "POST", "/v1/recall", {"query": "heron"})[0] == 200
        go_on.set()
        assert {one.result(PATIENT)[0] for one in asked} == {200}


@pytest.mark.promise("server.lanes")
def test_a_change_that_waits_holds_up_no_question(tmp_path: Path) -> None:
    """While every thread for changes is taken, questions are answered."""
    with blocked(tmp_path / "home") as (port, _, go_on):
        assert ask(port, "POST", "/v1/recall", {"query": "heron"})[0] == 200
        go_on()


@pytest.mark.promise("server.gone")
def test_what_nobody_waits_for_is_not_begun(tmp_path: Path) -> None:
    """A call that still waits for a thread when its caller goes is not made."""
    with blocked(tmp_path / "home") as (port, memory, go_on):
        body = json.dumps({"text": "Nobody waits for this."}).encode()
        head = WHOLE.replace(b"recall", b"memories") + b"Content-Length: %d\r\n\r\n" % len(body)
        caller = came(port, head + body)
        _until(port, 2)
        caller.close()
        _until(port, 1)
        go_on()
        assert ask(port, "POST", "/v1/memories", {"text": "The last."})[0] == 201
        kept = {record.text for record in memory.list().items}
        assert kept == {"The first.", "The last."}


@contextmanager
def blocked(home: Path) -> Iterator[tuple[int, Memory, Callable[[], None]]]:
    """A server whose one thread for changes keeps a memory until it is told to go on."""
    begun, go_on = threading.Event(), threading.Event()

    def wait(_: Any) -> None:
        begun.set()
        assert go_on.wait(PATIENT)

    with (
        listening(home, options={"page": None, "threads": 1}) as (port, memory),
        ThreadPoolExecutor(1) as callers,
    ):
        memory.on("remember", wait)
        first = callers.submit(ask, port, "POST", "/v1/memories", {"text": "The first."})
        assert begun.wait(PATIENT)
        try:
            yield port, memory, go_on.set
        finally:
            go_on.set()
            assert first.result(PATIENT)[0] == 201


def _until(port: int, calls: int) -> None:
    """Ask until so many calls are under way or wait, the asking itself left out."""
    for _ in range(10_000):
        text = ask(port, "GET", "/metrics")[1].decode()
        found = re.search(r"^anaphora_calls_running (\S+)$", text, re.MULTILINE)
        assert found is not None
        if float(found[1]) == calls:
            return
    raise AssertionError(f"there were never {calls} calls")


@pytest.mark.promise("server.refusals")
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_large_hears_why(tmp_path: Path, chunked: bool) -> None:
    """Who sends all of a large body before reading finds the refusal, not a broken connection."""
    options = {"page": None, "body_limit": 1_000}
    with listening(tmp_path / "home", options=options) as (port, _):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENT)
        body = b"x" * 8_000_000
        given: Any = iter([body]) if chunked else body
        kind = {"Content-Type": "application/json"}
        connection.request("POST", "/v1/recall", given, kind, encode_chunked=chunked)
        answer = connection.getresponse()
        assert answer.status == 413
        assert json.loads(answer.read())["type"].endswith("too_large")
        connection.close()


@pytest.mark.promise("server.refusals")
def test_a_request_of_two_lengths_is_refused(tmp_path: Path) -> None:
    """With Content-Length and Transfer-Encoding both, what follows is no request."""
    with listening(tmp_path / "home") as (port, _):
        both = b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        answer = heard(came(port, WHOLE + both + ASK))
        assert answer.startswith(b"HTTP/1.1 400")
        assert answer.count(b"HTTP/1.1") == 1


@pytest.mark.promise("server.refusals")
@pytest.mark.parametrize(("query", "status"), [(b"after=caf\xfb", 400), ("after=é".encode(), 422)])
def test_a_query_string_of_other_bytes_is_refused(
    tmp_path: Path, query: bytes, status: int
) -> None:
    """Not every server in front of the application refuses raw bytes that are not UTF-8."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": "/v1/conversations",
        "raw_path": b"/v1/conversations",
        "query_string": query,
        "root_path": "",
        "headers": [(b"host", b"127.0.0.1")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 7411),
    }
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        asyncio.run(server_app(memory, page=None)(scope, receive, send))
    assert sent[0]["status"] == status
    named = b"byte 10 of the query string is not UTF-8" in sent[1]["body"]
    assert named == (status == 400)
