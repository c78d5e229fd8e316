"""A real HTTP server on the loopback that speaks OpenAI's and Ollama's forms of embeddings.

Its vectors are those of hashed words. It can be told to fail, to be exchanged for another model, to
want a key and to take no long texts; it notes what it was asked.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from anaphora import Vectors
from anaphora.testing import WordHashingEmbedder

MODEL = "tiny-embed"


@dataclass
class EmbeddingServer:
    """What the server does, and what it was asked: (path, headers, body) of each request."""

    url: str = ""
    key: str = ""
    dimensions: int = 64
    longest: int = 10_000
    failures: list[int] = field(default_factory=list)
    turned: bool = False
    requests: list[tuple[str, dict[str, str], dict[str, Any]]] = field(default_factory=list)

    @property
    def openai(self) -> str:
        """The setting for it as an OpenAI-compatible server."""
        return f"openai:{self.url}/v1#{MODEL}"

    @property
    def ollama(self) -> str:
        """The setting for it as Ollama."""
        return f"ollama:{self.url}#{MODEL}"

    @property
    def texts(self) -> list[str]:
        """Every text that it was asked for."""
        return [text for _, _, body in self.requests for text in body["input"]]

    def answer(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> tuple[int, Any]:
        self.requests.append((path, headers, body))
        if self.failures:
            return self.failures.pop(0), {"error": {"message": "not now"}}
        if self.key and headers.get("authorization") != f"Bearer {self.key}":
            given = headers.get("authorization", "")
            return 401, {"error": {"message": f"wrong key: {given}"}}
        if path not in {"/v1/embeddings", "/api/embed"}:
            return 404, {"error": "page not found"}
        if body["model"] != MODEL:
            return 404, {"error": f'model "{body["model"]}" not found, try pulling it first'}
        if any(len(text.split()) > self.longest for text in body["input"]):
            return 400, {"error": "the input length exceeds the context length"}
        rows = self._vectors(body["input"]).tolist()
        if path == "/api/embed":
            return 200, {"model": MODEL, "embeddings": rows}
        data = [{"index": at, "embedding": row} for at, row in enumerate(rows)]
        return 200, {"data": data[::-1], "model": MODEL}

    def _vectors(self, texts: list[str]) -> Vectors:
        made = WordHashingEmbedder(self.dimensions).embed(texts)
        # A server need not give unit vectors.
        rows: Vectors = 3.0 * np.concatenate(made)
        return rows[:, ::-1] if self.turned else rows

    @contextmanager
    def running(self) -> Iterator[EmbeddingServer]:
        """Serve, the second time at the same address."""
        port = int(self.url.rpartition(":")[2]) if self.url else 0
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                headers = {name.lower(): value for name, value in self.headers.items()}
                code, answer = owner.answer(self.path, headers, body)
                content = json.dumps(answer).encode()
                self.send_response(code)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                self.send_header("retry-after", "0")
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        ThreadingHTTPServer.allow_reuse_address = True
        server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
