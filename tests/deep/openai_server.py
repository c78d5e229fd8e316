"""An OpenAI-compatible server on the loopback that replays scripted turns over real HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any


@dataclass
class Answer:
    """What the server says to one request. `body` replaces everything else of a 200."""

    text: str = ""
    status: int = 200
    usage: tuple[int, int] | None = (10, 5)
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    hold: threading.Event | None = None
    finish: str = "stop"


Script = Callable[[dict[str, Any]], Answer | None]


class OpenAIServer:
    """Answers `turns` in order; `route` may answer a request before the script does."""

    def __init__(self) -> None:
        self.turns: list[Answer] = []
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.route: Script | None = None
        self.listing = 501
        """The status of its list of models."""
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def says(self, *turns: str | Answer) -> OpenAIServer:
        self.turns += [Answer(turn) if isinstance(turn, str) else turn for turn in turns]
        return self

    def __enter__(self) -> OpenAIServer:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for turn in self.turns:
            if turn.hold is not None:
                turn.hold.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _next(self, request: dict[str, Any], key: str) -> Answer:
        with self._lock:
            self.requests.append(request)
            self.keys.append(key)
            routed = self.route(request) if self.route is not None else None
            if routed is not None:
                return routed
            used = sum(1 for _ in self.requests) if self.route is None else None
            place = len(self.requests) - 1 if used is not None else self._scripted()
            if place < len(self.turns):
                return self.turns[place]
            return Answer(status=400, body=b'{"error": {"message": "the script is at its end"}}')

    def _scripted(self) -> int:
        assert self.route is not None
        return sum(1 for earlier in self.requests if self.route(earlier) is None) - 1

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(outer.listing)
                self.send_header("content-length", "0")
                self.end_headers()

            def do_POST(self) -> None:
                length = int(self.headers.get("content-length", "0"))
                request = json.loads(self.rfile.read(length))
                answer = outer._next(request, self.headers.get("authorization", ""))
                if answer.hold is not None:
                    answer.hold.wait(30)
                body = answer.body if answer.body is not None else _completion(answer)
                try:
                    self.send_response(answer.status)
                    self.send_header("content-type", "application/json")
                    self.send_header("content-length", str(len(body)))
                    for name, value in answer.headers.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(body)
                except (BrokenPipeError, ConnectionResetError):
                    # A client that did not wait: that is what some tests are about.
                    self.close_connection = True

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                del format, args

        return Handler


def _completion(answer: Answer) -> bytes:
    found: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_760_000_000,
        "model": "loopback",
        "choices": [
            {
                "index": 0,
                "finish_reason": answer.finish,
                "message": {"role": "assistant", "content": answer.text},
            }
        ],
    }
    if answer.usage is not None:
        taken, given = answer.usage
        found["usage"] = {
            "prompt_tokens": taken,
            "completion_tokens": given,
            "total_tokens": taken + given,
        }
    return json.dumps(found).encode()
