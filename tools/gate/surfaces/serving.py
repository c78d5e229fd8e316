"""`anaphora serve` as a process on a free port, and a caller with its token."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tools.gate.environments import User

__all__ = ["Answer", "Server", "serving"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered."""

    status: int
    kind: str
    body: bytes

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode("utf-8", "replace")

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Server:
    """A running server: where it is, and the token that its link carries."""

    url: str
    token: str

    def ask(
        self, method: str, path: str, body: Any = None, *, raw: bytes | None = None,
        token: bool = True,
    ) -> Answer:  # fmt: skip
        """The answer to a request, whatever its status; `raw` is a body that is no JSON value."""
        data = raw if raw is not None else None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}{path}", data=data, method=method)
        if token:
            request.add_header("Authorization", f"Bearer {self.token}")
        if data is not None:
            kind = "application/octet-stream" if raw is not None else "application/json"
            request.add_header("Content-Type", kind)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return Answer(response.status, response.headers["Content-Type"], response.read())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, error.headers["Content-Type"] or "", error.read())

    def result(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """The JSON of a request that must succeed."""
        answer = self.ask(method, path, body, **options)
        if not 200 <= answer.status < 300:
            raise AssertionError(f"{method} {path}: {answer.status} {answer.text[:500]}")
        return answer.json if answer.kind.startswith("application/json") else answer.text


@contextmanager
def serving(user: User) -> Iterator[Server]:
    """A server until the end of the block."""
    with (user.folder / "serve.log").open("w+") as log:
        process = subprocess.Popen(
            user.command("anaphora", "serve", "--port", "0"), cwd=user.work, env=user.variables,
            stdout=subprocess.PIPE, stderr=log, text=True,
        )  # fmt: skip
        assert process.stdout is not None
        try:
            said = ""
            for line in process.stdout:
                said += line
                match = re.search(r"(http://[0-9.]+:[1-9][0-9]*)", line)
                if match:
                    # A link with the token is shown on terminals alone.
                    token = subprocess.run(
                        user.command("anaphora", "token", "own"), cwd=user.work,
                        env=user.variables, capture_output=True, text=True, check=True,
                    )  # fmt: skip
                    yield Server(match[1], token.stdout.strip())
                    return
            log.seek(0)
            raise RuntimeError(f"the server ended: {said}{log.read()}")
        finally:
            process.terminate()
            process.communicate(timeout=60)
