"""Targets that listen: the server over HTTP, and the server for coding agents.

In: a private folder. Out: rooms. An input is a request, or lines of a client. Whatever it says, the
answer is a well-formed one, it is no fault of the server, and the next question is answered.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import queue
import subprocess
import threading
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

from tests.mcp_client import SCRIPT

from anaphora import Memory
from anaphora.testing import server_app

from .rooms import OWN, Room, as_json, dice, read_all

__all__ = ["Agent", "asked", "mcp", "request_bytes", "rest", "well_answered"]

_PATIENCE = 60.0
_SERVER_ERRORS_MEANT = frozenset({501})
_Message = MutableMapping[str, Any]

_REQUESTS: tuple[tuple[str, object], ...] = (
    ("POST /v1/memories", {
        "text": "The heron is grey.", "type": "semantic", "path": "bird.heron", "tags": ["bird"],
        "payload": {"a": [1, {"b": 2.5}]}, "category": "birds", "source": "book",
        "expires_at": "2036-04-30T12:00:00Z", "created_at": "2026-04-30T12:00:00.5+02:00",
        "conversation_id": "c", "turn_index": 0,
    }),
    ("GET /v1/memories?limit=3&filters=%7B%22tags%22%3A%7B%22contains%22%3A%22bird%22%7D%7D", None),
    ("GET /v1/memories?cursor=abc", None),
    ("POST /v1/recall", {
        "query": "heron", "top_k": 3, "min_score": 0.1, "mode": "hybrid", "explain": True,
        "filters": {"AND": [{"category": "birds"}, {"payload.a": {"gt": 1}}]},
        "as_of": "2026-04-30T12:00:00Z",
    }),
    ("POST /v1/forget", {"filters": {"category": "nothing has this"}, "soft": True}),
    ("POST /v1/forget", {"id": "MEMORY", "undoable": True, "dry_run": True}),
    ("POST /v1/forget/undo", {"id": "MEMORY"}),
    ("POST /v1/search", {
        "query": "heron", "top_k": 3, "budget": 300, "kinds": ["memory", "turn", "tool_call"],
        "since": "2026-04-30T12:00:00Z", "speaker": "Ada", "tags": ["bird"], "project": "p",
        "min_confidence": 0.1, "exclude": ["x"],
    }),
    ("GET /v1/conversations/c/tool-calls", None),
    ("GET /v1/memories/history?path=bird.heron", None),
    ("GET /v1/memories/x", None),
    ("PATCH /v1/memories/MEMORY", {"tags": ["a"], "payload": {"b": 1}, "text": "It is white."}),
    ("DELETE /v1/memories/x?soft=true", None),
    ("POST /v1/conversations/recall", {
        "query": "heron", "conversation_id": "c", "top_k": 2, "budget": 500, "exclude": ["x"],
    }),
    ("GET /v1/conversations?limit=2", None),
    ("GET /v1/conversations/c?limit=2", None),
    ("POST /v1/conversations/d/turns", {"turns": [
        {"role": "user", "text": "a word", "speaker": "Ada", "ts": "2026-04-30T12:00:00Z"},
    ]}),
    ("PATCH /v1/conversations/c", {"title": "Herons"}),
    ("DELETE /v1/conversations/e", None),
    ("POST /v1/conversations/c/turns/0/redact", {}),
    ("GET /conversations", None),
    ("GET /conversations/c", None),
    ("POST /v1/deep", {
        "question": "how often did a heron come?", "scope": "all", "include_memory": True,
        "budget": {"iterations": 1, "seconds": 1.5},
    }),
    ("GET /v1/gaps?status=all", None),
    ("POST /v1/extract", {"conversation_id": "c"}),
    ("POST /v1/dream", {"model": False}),
    ("GET /v1/traces?limit=3", None),
    ("GET /v1/traces/x", None),
    ("GET /v1/projects", None),
    ("POST /v1/projects", {"root": "/nonexistent", "name": "p"}),
    ("GET /v1/projects/p/map?within=src", None),
    ("DELETE /v1/projects/p", None),
    ("POST /v1/context", {"focus": ["heron", "river"], "budget": 500, "include_sources": True}),
    ("GET /v1/warm-up?topic=heron&budget=300", None),
    ("POST /v1/observations", {
        "text": "a river", "kind": "blocker", "importance": 4, "tags": ["x"], "source": "me",
    }),
    ("GET /v1/observations?limit=3&project=p", None),
    ("GET /v1/diary?limit=3", None),
    ("POST /v1/diary", {"summary": "We looked.", "subject": "birds", "tags": []}),
    ("GET /v2/agent-state?project_id=p&query_hash=5e883", None),
    ("GET /v2/agent-state/entries?project_id=p&device=d&after=0&limit=3", None),
    ("POST /v2/agent-state", {"project_id": "p", "entries": [{
        "v": 1, "project": "p", "device": "d", "number": 1, "epoch": 1, "parent": "",
        "hashes": ["5e883"], "sealed": "AAAA",
    }]}),
    ("GET /v1/session", None),
    ("GET /v1/stats", None),
    ("GET /v1/export", None),
    ("GET /health", None),
    ("GET /metrics", None),
    ("GET /openapi.json", None),
    ("OPTIONS /v1/recall", None),
    ("HEAD /v1/stats", None),
)  # fmt: skip


def request_bytes(line: str, body: object) -> bytes:
    head = f"{line}\nhost: 127.0.0.1\ncontent-type: application/json\nanaphora-namespace: default"
    return head.encode() + b"\n\n" + (b"" if body is None else json.dumps(body).encode())


@contextmanager
def rest(folder: Path, shared: Path | None) -> Iterator[Room]:
    """Requests as text: a line, headers, an empty line, the body, which comes in pieces."""
    options = {"page": None, "body_limit": 200_000, "import_limit": 400_000}
    with Memory.open(folder / "home", embedder="hashing") as memory:
        memory.conversations.append("c", "user", "a heron came by")
        kept = memory.remember("The heron is grey.", tags=("bird",), category="birds").id
        # By such a token no folder of this machine is indexed, whatever is made up as one.
        secret = memory.tokens.create("all", namespaces=("*",)).secret
        app = server_app(memory, **options)
        corpus = tuple(
            request_bytes(line.replace("MEMORY", kept), body) for line, body in _REQUESTS
        )
        corpus += tuple(
            b"POST /v1/import\nhost: 127.0.0.1\n\n" + data[:20_000]
            for data in read_all(OWN / "ingest" / "fixtures", ".json", ".jsonl")
        )
        with asyncio.Runner() as runner:

            def check(data: bytes) -> None:
                status, headers, body = runner.run(asked(app, data, secret))
                well_answered(data, status, headers, body)
                good = request_bytes("POST /v1/recall", {"query": "heron"})
                assert dice(data, 4) or runner.run(asked(app, good, secret))[0] == 200

            yield Room(corpus, check)


async def asked(app: Any, data: bytes, secret: str) -> tuple[int, dict[str, str], bytes]:
    """The answer to one request, given to the application as a server gives it."""
    head, _, body = data.partition(b"\n\n")
    first, *lines = head.split(b"\n")
    method, _, target = first.partition(b" ")
    path, _, query = target.partition(b"?")
    split = (line.partition(b":") for line in lines)
    headers = [(name.lower(), value.strip()) for name, _, value in split]
    if dice(data, 16):
        headers.append((b"authorization", f"Bearer {secret}".encode()))
    size = 1 + dice(data, 5_000)
    pieces = [body[at : at + size] for at in range(0, len(body), size)] or [b""]
    waiting: list[_Message] = [
        {"type": "http.request", "body": piece, "more_body": piece is not pieces[-1]}
        for piece in pieces
    ]
    waiting[-1]["more_body"] = False
    answer: dict[str, Any] = {"status": 0, "headers": {}, "body": b""}

    answered = asyncio.Event()

    async def receive() -> _Message:
        if waiting:
            return waiting.pop(0)
        # Who has asked waits for the answer before it goes.
        await answered.wait()
        return {"type": "http.disconnect"}

    async def send(message: _Message) -> None:
        if message["type"] == "http.response.start":
            answer["status"] = message["status"]
            answer["headers"] = {
                n.decode("latin-1"): v.decode("latin-1") for n, v in message["headers"]
            }
        else:
            answer["body"] += message.get("body", b"")
            if not message.get("more_body", False):
                answered.set()

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method.decode("latin-1").upper(),
        "scheme": "http",
        # As uvicorn does it.
        "path": unquote_to_bytes(path).decode("utf-8", "replace") or "/",
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 7411),
    }
    await app(scope, receive, send)
    return answer["status"], answer["headers"], answer["body"]


def well_answered(data: bytes, status: int, headers: dict[str, str], body: bytes) -> None:
    assert 200 <= status < 500 or status in _SERVER_ERRORS_MEANT, (status, body[:500])
    assert b"Traceback" not in body
    kind = headers.get("content-type", "")
    if status >= 400 and not data.startswith(b"HEAD"):
        assert kind.startswith("application/problem+json"), (status, kind, body[:200])
        told = json.loads(body)
        assert told["status"] == status, told
        assert told["title"], told
    elif kind.startswith("application/json") and body:
        json.loads(body, parse_constant=_no_constant)


def _no_constant(name: str) -> None:
    raise AssertionError(f"{name} in an answer")


_CALLS: dict[str, dict[str, Any]] = {
    "recall_memory": {
        "question": "heron", "topK": 3, "minScore": 0.1, "filters": {"category": "a"},
    },
    "store_memory": {
        "content": "The heron is grey.", "type": "semantic", "tags": ["bird"], "path": "a.b",
        "payload": {"a": [1, {"b": 2.5}]}, "category": "birds",
    },
    "recall_conversation": {"question": "heron", "topK": 2},
    "recall_context": {"focus": ["heron"], "budget": 500},
    "warm_up": {"topic": "heron"},
    "deep_recall": {"question": "how often did a heron come?"},
    "save_diary": {"summary": "We looked at herons."},
    "save_turns": {"conversationId": "c", "turns": [{"role": "user", "text": "a word"}]},
    "observe": {"text": "a river", "kind": "blocker"},
    "forget": {"id": "x"},
    "gaps": {},
    "search": {"query": "heron"},
    "fetch": {"id": "x"},
}  # fmt: skip
_LINES = as_json(
    *(
        {"jsonrpc": "2.0", "id": number, "method": "tools/call",
         "params": {"name": name, "arguments": given, "_meta": {"progressToken": "t"}}}
        for number, (name, given) in enumerate(_CALLS.items())
    ),
    {"jsonrpc": "2.0", "id": "a", "method": "tools/list", "params": {"cursor": "x"}},
    {"jsonrpc": "2.0", "id": "b", "method": "resources/list"},
    {"jsonrpc": "2.0", "id": "c", "method": "resources/read",
     "params": {"uri": "anaphora://memories/recent"}},
    {"jsonrpc": "2.0", "id": "d", "method": "prompts/get",
     "params": {"name": "save_diary", "arguments": {"subject": "birds"}}},
    {"jsonrpc": "2.0", "id": "e", "method": "ping"},
    {"jsonrpc": "2.0", "id": "f", "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"}}},
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 5, "result": {"roots": []}},
    {"jsonrpc": "2.0", "id": 6, "error": {"code": -32600, "message": "no"}},
    {"jsonrpc": "2.0", "id": "g", "method": "completion/complete", "params": {}},
    {"jsonrpc": "2.0", "id": "h", "method": "logging/setLevel", "params": {"level": "debug"}},
)  # fmt: skip


class Agent:
    """A client that says anything, and reads every line that comes back."""

    def __init__(self, folder: Path) -> None:
        environ = {**os.environ, "ANAPHORA_EMBEDDER": "hashing", "HOME": str(folder)}
        self.log = (folder / "server.log").open("wb")
        self.process = subprocess.Popen(
            [SCRIPT, "--home", folder / "home", "mcp", "--tools", "all"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env=environ,
            cwd=folder,
        )
        self.lines: queue.Queue[bytes] = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(b"")

    def say(self, data: bytes) -> None:
        """Send lines."""
        assert self.process.stdin is not None
        self.process.stdin.write(data + b"\n")
        self.process.stdin.flush()

    def ask(self, name: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The answer to a good request; all that comes before it is looked at as well."""
        request = {"jsonrpc": "2.0", "id": name, "method": method, "params": params}
        self.say(json.dumps(request).encode())
        while True:
            line = self.lines.get(timeout=_PATIENCE)
            assert line, "the server has gone"
            told = json.loads(line, parse_constant=_no_constant)
            _well_told(told)
            if told.get("id") == name and "method" not in told:
                answer: dict[str, Any] = told
                return answer

    def close(self) -> None:
        """Go away, and wait for the server to do so."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.close()
            self.process.wait(_PATIENCE)
        finally:
            self.process.kill()
            self.process.wait()
            self.reader.join()
            assert self.process.stdout is not None
            self.process.stdout.close()
            self.log.close()


def _well_told(told: Any) -> None:
    assert told["jsonrpc"] == "2.0"
    if "error" in told:
        # Of a fault that nobody foresaw the protocol's library says one of these.
        assert told["error"]["code"] not in (0, -32603), told
        assert isinstance(told["error"]["message"], str)
    assert "Traceback" not in json.dumps(told)


@contextmanager
def mcp(folder: Path, shared: Path | None) -> Iterator[Room]:
    """Lines to the server's standard input; after each input a good call."""
    agent = Agent(folder)
    numbers = itertools.count()
    client = {"protocolVersion": "2025-06-18", "capabilities": {}}
    client["clientInfo"] = {"name": "fuzz", "version": "1"}

    def check(data: bytes) -> None:
        agent.say(data)
        answer = agent.ask(
            f"check {next(numbers)}",
            "tools/call",
            {"name": "recall_memory", "arguments": {"question": "heron"}},
        )
        assert answer["result"]["structuredContent"]["success"], answer

    try:
        agent.ask("begin", "initialize", client)
        agent.say(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        yield Room(_LINES, check)
    finally:
        agent.close()
    assert b"Traceback" not in (folder / "server.log").read_bytes()
