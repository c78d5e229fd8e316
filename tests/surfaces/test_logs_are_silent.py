"""What servers, the resident process and hooks write: no word of a user, no token, no path.

Real processes get a marked word in every part of a request, in what they keep, and in the names of
files and folders that fail them. All that they write but the answers is then searched for it.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.commands import program

from anaphora import Memory

pytestmark = [pytest.mark.enable_socket, pytest.mark.skipif(os.name == "nt", reason="sockets")]
CANARY = "zyxquill"
OUTSIDE = "farfolder"
DEEP = b"[" * 200_000


class User:
    """A user whose home is damaged, with a synced folder and conversations outside of it."""

    def __init__(self, root: Path) -> None:
        self.home, self.log = root / "home", root / "said.log"
        self.state, self.outside = root / "state", root / OUTSIDE
        for folder in ("run", "state", f"{OUTSIDE}/{CANARY}/remote", f"{OUTSIDE}/threads", "user"):
            (root / folder).mkdir(mode=0o700, parents=True)
        self.remote = self.outside / CANARY / "remote"
        self.environ = {
            "PATH": "",
            "HOME": str(root / "user"),
            "XDG_RUNTIME_DIR": str(root / "run"),
            "XDG_STATE_HOME": str(self.state),
            "ANAPHORA_HOME": str(self.home),
            "ANAPHORA_CONVERSATIONS_DIR": str(self.outside / "threads"),
            "ANAPHORA_EMBEDDER": "hashing",
            "ANAPHORA_READER": "off",
            "ANAPHORA_RESIDENT": "0",
            "PYTHONUNBUFFERED": "1",
        }
        self.secrets: list[str] = []
        self._fill(root)

    def _fill(self, root: Path) -> None:
        threads = self.outside / "threads"
        with (
            Memory.open(
                self.home, embedder="hashing", warm=False, conversations_dir=threads
            ) as one,
            Memory.open(root / "second", embedder="hashing", warm=False) as other,
        ):
            one.sync.init(str(self.remote))
            other.sync.init(str(self.remote), key=one.sync.export_key())
            one.remember(f"The {CANARY} is blue", path=f"{CANARY}.colour")
            one.conversations.append(CANARY, "user", f"Where is the {CANARY}?")
            self.secrets += [one.sync.export_key(), one.tokens.create(CANARY).secret]
            other.remember("The cup is green")
            other.sync.now()
        # What sync, conversations and memories are read from is damaged.
        for entry in self.remote.rglob("*.entry"):
            entry.write_bytes(DEEP)
        for file in threads.rglob("*"):
            if file.is_file():
                file.write_text(f"{{{CANARY}")
        with closing(sqlite3.connect(self.home / "anaphora.db")) as database, database:
            for (table,) in database.execute(
                "SELECT name FROM sqlite_master WHERE name LIKE '%record%' AND sql LIKE '%tags%'"
            ).fetchall():
                database.execute(f"UPDATE {table} SET tags = ?", (f"{{{CANARY}",))

    @contextmanager
    def running(self, *words: str, ready: str, **more: str) -> Iterator[int]:
        """A server of the user, as the number of its port, until it has been stopped."""
        with self.log.open("ab") as log:
            log.write(f"== {words[0]}\n".encode())
            log.flush()
            start = log.tell()
            process = subprocess.Popen(
                [*program(), *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.environ | more,
            )
            try:
                yield self._port(process, start, ready)
            finally:
                process.terminate()
                process.wait(60)

    def _port(self, process: subprocess.Popen[bytes], start: int, ready: str) -> int:
        def match() -> re.Match[str] | None:
            assert process.poll() is None, self.log.read_text()
            return re.search(ready, self.log.read_bytes()[start:].decode())

        return int(until(match)[1])

    def written(self) -> str:
        """All that was written to standard output and error, and to files of logs."""
        logs = [self.log, *self.state.rglob("*"), *self.home.rglob("*.log")]
        return "".join(file.read_text() for file in logs if file.is_file())


def until(condition: Callable[[], Any], seconds: float = 30.0) -> Any:
    """What a condition returns once it holds."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, "the condition never held"
        time.sleep(0.02)
    return value


@pytest.fixture
def user() -> Iterator[User]:
    folder = Path(tempfile.mkdtemp(prefix="anl"))
    yield User(folder)
    shutil.rmtree(folder, ignore_errors=True)


def ask(port: int, method: str, path: str, body: bytes, **headers: str) -> tuple[int, bytes]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        connection.request(method, path, body, {"Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        return answer.status, answer.read()


def every_request(port: int, token: str) -> Iterator[int]:
    """Ask for everything that a server offers, marked, rightly and wrongly; the statuses."""
    allowed = {"Authorization": f"Bearer {token}"}
    document = json.loads(ask(port, "GET", "/openapi.json", b"", **allowed)[1])
    fields = ("text", "query", "question", "path", "title", "conversation_id", "id", "name")
    marked = json.dumps({name: f"{CANARY} {name}" for name in fields}).encode()
    for path, methods in document["paths"].items():
        if path.startswith(("/v1/sync", "/v1/export")):
            # An exchange waits for what runs in the background; an export has no end here.
            continue
        place = re.sub(r"{\w+}", CANARY, path)
        for method in methods:
            for body in (marked, b'{"' + CANARY.encode(), json.dumps({"text": CANARY}).encode()):
                yield ask(port, method.upper(), place, body, **allowed)[0]
            yield ask(port, method.upper(), f"{place}?{CANARY}={CANARY}", b"", **allowed)[0]
    namespace = {"Anaphora-Namespace": f"{CANARY}/.."}
    yield ask(port, "GET", "/v1/memories", b"", **allowed, **namespace)[0]
    yield ask(port, "GET", f"/{CANARY}", b"", Authorization=f"Bearer {CANARY}")[0]
    yield ask(port, "GET", "/v1/memories", b"", **allowed)[0]
    yield ask(port, "POST", "/v1/import", f"{{{CANARY}\n".encode() * 9, **allowed)[0]
    with closing(socket.create_connection(("127.0.0.1", port), 30)) as raw:
        raw.sendall(f"{CANARY} \x00 {CANARY}\r\n\r\n".encode())
        with suppress(ConnectionError):
            raw.recv(100)


def messages(*calls: tuple[str, Any]) -> bytes:
    """Messages of the Model Context Protocol after its handshake, and some that are none."""
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": CANARY, "version": CANARY},
    }
    lines = [
        {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        for number, (method, params) in enumerate([("initialize", hello), *calls])
    ]
    broken = [f'{{"{CANARY}', f'["{CANARY}"]', f'{{"id": "{CANARY}"}}']
    return "\n".join([*map(json.dumps, lines), *broken, ""]).encode()


CALLS = [
    ("tools/call", {"name": "remember", "arguments": {"text": f"The {CANARY} sings"}}),
    ("tools/call", {"name": "recall", "arguments": {"question": CANARY}}),
    ("tools/call", {"name": "recall", "arguments": {CANARY: CANARY}}),
    ("tools/call", {"name": CANARY, "arguments": CANARY}),
    (CANARY, {CANARY: CANARY}),
    ("resources/read", {"uri": f"file:///{CANARY}"}),
]


@pytest.mark.promise("logs.silent")
def test_no_word_token_or_path_is_logged(user: User) -> None:
    """Of `serve`, `mcp` over both transports, the resident process and the hooks."""
    with user.running("serve", "--port", "0", ready=r"Anaphora is at http://\S+?:(\d+)") as port:
        own = (user.home / "server.token").read_text().strip()
        user.secrets.append(own)
        statuses = set(every_request(port, own))
        until(lambda: "sync stopped" in user.written())
    assert {200, 201, 400, 401, 404, 422} <= statuses
    ready = r"anaphora: http://\S+?:(\d+)/mcp"
    with user.running("mcp", "--http", "127.0.0.1:0", "--no-token", ready=ready) as port:
        accepts = {"Accept": "application/json, text/event-stream", "Mcp-Session-Id": CANARY}
        for line in messages(*CALLS).splitlines():
            ask(port, "POST", "/mcp", line, **accepts)
            ask(port, "POST", f"/mcp?{CANARY}", line, Accept=accepts["Accept"], Origin=CANARY)
    with user.log.open("ab") as log:
        stdio = [*program(), "mcp"]
        done = subprocess.run(
            stdio,
            input=messages(*CALLS),
            stdout=subprocess.PIPE,
            stderr=log,
            env=user.environ,
            timeout=60,
            check=False,
        )
    assert CANARY in done.stdout.decode()
    with user.log.open("ab") as log:
        resident = user.environ | {"ANAPHORA_RESIDENT": "1"}
        shared = subprocess.Popen([*program(), "resident"], stdout=log, stderr=log, env=resident)
        try:
            _run_hooks(user, resident, log.fileno())
        finally:
            shared.kill()
            shared.wait(60)
    written = user.written()
    for private in (CANARY, OUTSIDE, *user.secrets):
        assert private not in written, _lines_with(private, written)


@pytest.mark.promise("logs.silent")
def test_what_is_logged_is_written_without_what_it_quotes(tmp_path: Path) -> None:
    """Whichever library logs, and in whichever way; codes, numbers and places stay."""
    child = Path(__file__).with_name("logging_child.py")
    environ = {"PATH": "", "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, child, CANARY], capture_output=True, text=True, check=True, env=environ
    )
    written = done.stderr
    assert CANARY not in written
    lines = [re.sub(r":\d+", ":N", line) for line in written.splitlines()]
    assert lines[:9] == [
        "anaphora: warning: … of 3: …",
        "anaphora: warning: '…'",
        "anaphora: warning: it stopped: OSError (No space left on device)",
        "anaphora: error: at %(place)s",
        "anaphora: error: OSError (Address already in use)",
        "anaphora: warning: returned '…'.",
        "anaphora: warning: mcp.server logged at logging_child:N",
        "anaphora: error: Exception in callback f(",
        "anaphora: warning: py.warnings logged at warnings:N",
    ]
    assert re.search(r"error: sqlalchemy logged at .+ \(incident \w{6}: ValueError", lines[9])
    logs = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any("incident" in path.read_text() or path.stat().st_size for path in logs)
    assert not any(CANARY in path.read_text() for path in logs)


def _run_hooks(user: User, environ: dict[str, str], log: int) -> None:
    transcript = user.outside / f"{CANARY}.jsonl"
    transcript.write_text(f"{{{CANARY}\n")
    common = {"session_id": CANARY, "cwd": str(user.outside), "transcript_path": str(transcript)}
    events = [
        json.dumps(common | {"hook_event_name": "SessionStart", "source": CANARY}),
        json.dumps(common | {"hook_event_name": "UserPromptSubmit", "prompt": f"{CANARY}?"}),
        json.dumps(common | {"hook_event_name": "SessionEnd", "reason": CANARY}),
        json.dumps(common | {"hook_event_name": CANARY}),
        f'{{"{CANARY}',
    ]
    for event in events:
        done = subprocess.run(
            [*program(), "hook", "claude-code"],
            input=event.encode(),
            stdout=subprocess.DEVNULL,
            stderr=log,
            env=environ,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0


def _lines_with(private: str, written: str) -> str:
    return "\n".join(line[:400] for line in written.splitlines() if private in line)
