"""What callers can do to a server, before a token was asked for and after, and what others feel."""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from tests.conftest import Clock

from anaphora import Memory
from anaphora.surfaces.connections import ConnectionLimits, throttled_logs, uvicorn_settings
from anaphora.testing import ScriptedModel, server_app

pytestmark = pytest.mark.enable_socket
ANAPHORA = Path(sys.executable).parent / "anaphora"
PATIENT = 60
USUAL = ConnectionLimits()
WHOLE = b"POST /v1/recall HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
ASK = WHOLE + b'Content-Length: 14\r\n\r\n{"query": "x"}'


@contextmanager
def listening(
    home: Path,
    limits: ConnectionLimits = USUAL,
    options: Mapping[str, Any] | None = None,
    **given: Any,
) -> Iterator[tuple[int, Memory]]:
    """The port of a server in a thread, as `serve` runs it, and its memory."""
    with Memory.open(home, embedder="hashing", **given) as memory:
        app = server_app(memory, **({"page": None} if options is None else options))
        server = uvicorn.Server(
            uvicorn.Config(
                app, port=0, log_level="critical", access_log=False, **uvicorn_settings(limits)
            )
        )
        with socket.create_server(("127.0.0.1", 0)) as listener:
            # Who comes before it has started waits in the queue.
            thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
            thread.start()
            try:
                yield listener.getsockname()[1], memory
            finally:
                server.should_exit = True
                thread.join(PATIENT)


def came(port: int, said: bytes = b"") -> socket.socket:
    """A caller who says this and nothing more."""
    caller = socket.create_connection(("127.0.0.1", port), timeout=PATIENT)
    caller.sendall(said)
    return caller


def heard(caller: socket.socket) -> bytes:
    """All that the server says until it closes the connection."""
    found = b""
    with caller:
        try:
            while piece := caller.recv(65_536):
                found += piece
        except ConnectionResetError:
            pass
    return found


def ask(port: int, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENT)
    try:
        given = None if body is None else json.dumps(body)
        connection.request(method, path, given, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


SILENT = {
    "nothing": b"",
    "half a line": b"GET /v1/mem",
    "half a head": b"GET /v1/memories HTTP/1.1\r\nHost: 127.0.0.1\r\n",
    "half a body": WHOLE + b'Content-Length: 14\r\n\r\n{"que',
    "half a chunk": WHOLE + b"Transfer-Encoding: chunked\r\n\r\n8\r\n{",
    "half a second request": ASK + b"GET /v1/mem",
    "no body for a refusal": b"POST / HTTP/1.1\r\nHost: evil\r\nContent-Length: 9\r\n\r\n",
}


@pytest.mark.promise("server.silent")
@pytest.mark.parametrize("said", SILENT.values(), ids=SILENT)
def test_who_falls_silent_is_let_go(tmp_path: Path, said: bytes) -> None:
    """A caller who stops in the middle of anything loses the connection."""
    with listening(tmp_path / "home", ConnectionLimits(head=0.2, body=0.2)) as (port, _):
        answer = heard(came(port, said))
        assert answer.startswith(b"HTTP/1.1 200") == said.startswith(ASK)
        # Others do not notice.
        assert ask(port, "POST", "/v1/recall", {"query": "x"})[0] == 200


@pytest.mark.promise("server.silent")
def test_the_silent_give_way_to_who_asks(tmp_path: Path) -> None:
    """With all places taken by the silent, the oldest of them goes and the next asker is heard."""
    with listening(tmp_path / "home", ConnectionLimits(connections=4, head=600)) as (port, _):
        silent = [came(port) for _ in range(3)] + [came(port, SILENT["half a head"])]
        for _ in range(3):
            assert ask(port, "POST", "/v1/recall", {"query": "x"})[0] == 200
        assert heard(silent[0]) == b""
        for caller in silent:
            caller.close()


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


@pytest.mark.promise("server.log")
def test_a_log_takes_few_lines_of_a_kind(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    """A thousand equal lines are five, then one that counts the others; none is a traceback."""
    log = logging.getLogger("asyncio")

    def complain() -> None:
        try:
            raise OSError(24, os.strerror(24))
        except OSError:
            log.exception("socket.accept() out of system resource\nsocket: <%s>", "x")

    with throttled_logs(lambda: clock().timestamp()):
        for _ in range(1_000):
            complain()
        log.error("another thing")
        assert len(caplog.records) == 6
        assert not any(record.exc_info for record in caplog.records)
        clock.advance(seconds=60)
        complain()
    assert "995 more" in caplog.records[-1].getMessage()
    complain()
    assert caplog.records[-1].exc_info


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
