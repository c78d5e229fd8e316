"""The server as a process: start, addresses, tokens, a stop in the middle of work, a kill."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.commands import program, run_command

from anaphora import Memory

pytestmark = pytest.mark.enable_socket
Start = Callable[..., "Server"]
ANAPHORA = Path(sys.executable).parent / "anaphora"


class Server:
    """A running `anaphora serve`, and a way to ask it; with `own` the program's file is started."""

    def __init__(self, home: Path, *words: str, own: bool = False) -> None:
        self.process = subprocess.Popen(
            [*([ANAPHORA] if own else program()), "--home", home, "serve", "--port", "0", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={
                "ANAPHORA_EMBEDDER": "hashing",
                "ANAPHORA_READER": "off",
                "PATH": "",
                "PYTHONUNBUFFERED": "1",
                "TMPDIR": os.environ.get("TMPDIR", "/tmp"),
            },
        )
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        found = re.search(r"http://\S+?:(\d+)", said)
        if found is None:
            _, error = self.process.communicate(timeout=60)
            raise AssertionError(f"it did not start: {said}{error}")
        self.port = int(found[1])
        # Standard output is a pipe here, as of a service: the link's token is not told to it.
        assert "#token" not in said
        kept = home / "server.token"
        self.own = kept.read_text().strip() if "token own" in said else None

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            given = None if body is None else json.dumps(body)
            usual = {"Content-Type": "application/json"}
            if self.own is not None:
                usual["Authorization"] = f"Bearer {self.own}"
            connection.request(method, path, given, usual | (headers or {}))
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        self.process.communicate(timeout=60)
        return self.process.returncode


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    running: list[Server] = []

    def one(*words: str, own: bool = False) -> Server:
        running.append(Server(tmp_path / "home", *words, own=own))
        return running[-1]

    yield one
    for server in running:
        if server.process.poll() is None:
            server.process.kill()
        server.process.communicate(timeout=60)


def run(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run_command(
        "--home",
        home,
        *words,
        environ={"ANAPHORA_EMBEDDER": "hashing", "ANAPHORA_READER": "off", "PATH": ""},
    )


def children(server: Server) -> set[int]:
    """The processes that a server has started."""
    found = Path(f"/proc/{server.process.pid}/task").glob("*/children")
    return {int(one) for file in found for one in file.read_text().split()}


@pytest.mark.promise("rest.processes")
def test_several_processes_answer_as_one(start: Start) -> None:
    """Each reads what another kept; one that is killed is replaced; all end with the first."""
    server = start("--processes", "2", own=True)
    (other,) = children(server)
    for number in range(30):
        text = f"Heron number {number} is grey."
        status, kept = server.ask("POST", "/v1/memories", {"text": text})
        assert status == 201
        assert server.ask("GET", f"/v1/memories/{kept['id']}")[1]["text"] == text
    os.kill(other, signal.SIGKILL)
    while not children(server) - {other}:
        assert server.ask("GET", "/v1/session")[0] == 200
    (again,) = children(server) - {other}
    assert server.ask("GET", "/v1/stats")[1]["memories"] == 30
    assert server.stop() == 0
    with pytest.raises(ProcessLookupError):
        os.kill(again, 0)


@contextmanager
def connections(server: Server, count: int) -> Iterator[list[http.client.HTTPConnection]]:
    """So many callers who stay, each of whom has asked for something."""
    made = [http.client.HTTPConnection("127.0.0.1", server.port, timeout=60) for _ in range(count)]
    try:
        for one in made:
            assert told(server, one, "/v1/session")
        yield made
    finally:
        for one in made:
            leave(server, one)


def leave(server: Server, connection: http.client.HTTPConnection) -> None:
    """Go, and wait until the server has noted that."""
    with connection.sock.dup() as same:
        told(server, connection, "/health/live", Connection="close")
        assert same.recv(1) == b""


def told(server: Server, connection: http.client.HTTPConnection, path: str, **headers: str) -> str:
    """What this connection's process answers."""
    own = {"Authorization": f"Bearer {server.own}"}
    connection.request("GET", path, headers=own | headers)
    answer = connection.getresponse()
    assert answer.status == 200
    return answer.read().decode()


def answered(server: Server, connection: http.client.HTTPConnection) -> int:
    """How often this connection's process, which has figures of its own, told of a session."""
    figures = told(server, connection, "/metrics")
    found = re.search(r'requests_total\{.*route="/v1/session".*\} (\d+)', figures)
    return int(found[1]) if found else 0


@pytest.mark.promise("rest.processes")
def test_connections_are_shared_out_evenly(start: Start) -> None:
    """Each process has as many as the others, of those that come and, when they go, once more."""
    server = start("--processes", "3")
    for again in (1, 2):
        with connections(server, 9) as made:
            assert [answered(server, one) for one in made] == [3 * again] * 9


@pytest.mark.promise("rest.processes")
def test_a_process_for_each_core(start: Start, tmp_path: Path) -> None:
    """`auto` counts the cores that it may use; what is no number of processes is refused."""
    may = os.sched_getaffinity(0)
    some = set(sorted(may)[:2])
    # What it starts inherits which cores it may use.
    os.sched_setaffinity(0, some)
    try:
        server = start("--processes", "auto", own=True)
    finally:
        os.sched_setaffinity(0, may)
    assert len(children(server)) == len(some) - 1
    assert server.ask("GET", "/health")[1]["ok"]
    assert server.stop() == 0
    for wrong in ("0", "65", "many"):
        refused = run(tmp_path / "home", "serve", "--port", "0", "--processes", wrong)
        assert refused.returncode == 2
        assert "auto" in refused.stderr


@pytest.mark.promise("rest.stops")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_server_starts_answers_and_stops(start: Start, how: signal.Signals) -> None:
    """It says where it is, answers there, and ends in peace when it is told to."""
    server = start(own=True)
    assert server.ask("GET", "/health")[1]["ok"]
    assert server.ask("POST", "/v1/memories", {"text": "The heron is grey."})[0] == 201
    assert server.ask("GET", "/health", headers={"Host": "evil.example"})[0] == 421
    assert server.ask("GET", "/health", headers={"Origin": "http://evil.example"})[0] == 403
    assert server.stop(how) == 0


@pytest.mark.promise("rest.stops")
def test_a_stopping_server_finishes_what_runs(start: Start, tmp_path: Path) -> None:
    """Requests under way when it is told to stop get their answers, and what they say is true."""
    server = start()
    answers: list[tuple[int, Any]] = []
    one_is_in = threading.Event()

    def write(number: int) -> None:
        for step in range(200):
            try:
                text = f"fact {number} {step}"
                answers.append(server.ask("POST", "/v1/memories", {"text": text}))
            except (ConnectionError, http.client.HTTPException):
                return
            one_is_in.set()

    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    assert one_is_in.wait(60)
    assert server.stop() == 0
    for writer in writers:
        writer.join(60)
    assert answers
    assert {status for status, _ in answers} == {201}
    with Memory.open(tmp_path / "home", embedder="hashing", warm=False) as memory:
        kept = {record.id for record in memory.list(limit=1_000).items}
    assert {told["id"] for _, told in answers} <= kept


@pytest.mark.promise("rest.stops")
def test_a_killed_server_has_lost_nothing_acknowledged(start: Start, tmp_path: Path) -> None:
    """After kill -9 in the middle of writes, the next server has every memory that was answered."""
    server = start()
    told: list[str] = []
    enough = threading.Event()

    def write(number: int) -> None:
        for step in range(2_000):
            try:
                status, done = server.ask("POST", "/v1/memories", {"text": f"fact {number} {step}"})
            except (ConnectionError, http.client.HTTPException, ValueError):
                return
            assert status == 201
            told.append(done["id"])
            if len(told) >= 20:
                enough.set()

    writers = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for writer in writers:
        writer.start()
    assert enough.wait(60)
    os.kill(server.process.pid, signal.SIGKILL)
    for writer in writers:
        writer.join(60)
    again = start()
    assert again.ask("GET", "/health")[1]["ok"]
    for one in told:
        assert again.ask("GET", f"/v1/memories/{one}")[0] == 200
    found = again.ask("POST", "/v1/recall", {"query": "fact 0 0"})[1]["hits"]
    assert found[0]["text"] == "fact 0 0"
    assert again.stop() == 0
    assert tmp_path.exists()


@pytest.mark.promise("rest.loopback")
def test_no_address_but_loopback_without_a_token(start: Start, tmp_path: Path) -> None:
    """Without a token it does not start there; with one, every request needs it."""
    home = tmp_path / "home"
    for words in (("--host", "0.0.0.0"), ("--host", "::"), ("--require-token",)):
        refused = run(home, "serve", "--port", "0", *words)
        assert refused.returncode == 2
        assert "token create" in refused.stderr
    made = json.loads(run(home, "token", "create", "agent", "--json").stdout)
    assert made["secret"] not in run(home, "token", "list", "--json").stdout
    server = start("--host", "0.0.0.0")
    assert server.ask("GET", "/v1/memories")[0] == 401
    bearer = {"Authorization": f"Bearer {made['secret']}"}
    assert server.ask("GET", "/v1/memories", headers=bearer)[0] == 200
    assert server.ask("GET", "/v1/memories", headers=bearer | {"Host": "evil.example"})[0] == 421
    assert server.ask("GET", "/v1/memories", headers=bearer | {"Host": "10.0.0.7:7411"})[0] == 200
    other = bearer | {"Anaphora-Namespace": "other"}
    assert server.ask("GET", "/v1/memories", headers=other)[0] == 403
    assert run(home, "token", "revoke", "agent").returncode == 0
    assert server.ask("GET", "/v1/memories", headers=bearer)[0] == 401
    assert server.stop() == 0


@pytest.mark.promise("rest.uploads")
@pytest.mark.parametrize("sealed", [False, True])
def test_a_killed_upload_leaves_nothing(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sealed: bool
) -> None:
    """After kill -9 in the middle of an upload no byte of it is in the home or elsewhere."""
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setenv("TMPDIR", str(elsewhere))
    Memory.open(home, embedder="hashing", encrypt="file" if sealed else False).close()
    made = json.loads(run(home, "token", "create", "uploads", "--json").stdout)
    server = start(own=True)
    canary = b"canary-5d1c-of-the-upload "
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as caller:
        head = "POST /v1/import HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10000000\r\n"
        caller.sendall(f"{head}Authorization: Bearer {made['secret']}\r\n\r\n".encode())
        caller.sendall(canary * 40_000)
        files = Path(f"/proc/{server.process.pid}/fd")
        while not any(canary in _beginning(file) for file in files.iterdir()):
            assert server.process.poll() is None
        server.stop(signal.SIGKILL)
    for file in (*home.rglob("*"), *elsewhere.rglob("*")):
        assert not file.is_file() or canary not in file.read_bytes(), file


def _beginning(file: Path) -> bytes:
    """The first bytes of an open file of another process; nothing of what is no file."""
    try:
        return file.read_bytes()[:1_000] if stat.S_ISREG(file.stat().st_mode) else b""
    except OSError:
        return b""


@pytest.mark.promise("rest.own_token")
def test_the_link_is_for_the_user_who_runs_the_server(start: Start, tmp_path: Path) -> None:
    """On loopback nothing is answered without the token in the link, which only its user reads."""
    server, home = start(), tmp_path / "home"
    assert server.own is not None
    for wrong in ("", "Bearer", "Bearer anaphora_0", "Bearer \xe9", f"Basic {server.own}"):
        assert server.ask("GET", "/v1/memories", headers={"Authorization": wrong})[0] == 401
    assert server.ask("GET", "/v1/memories")[0] == 200
    assert server.ask("GET", "/v1/memories", headers={"Anaphora-Namespace": "other"})[0] == 200
    kept = home / "server.token"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert run(home, "token", "own").stdout.strip() == server.own
    made = json.loads(run(home, "token", "create", "agent", "--json").stdout)
    bearer = {"Authorization": f"Bearer {made['secret']}"}
    assert server.ask("GET", "/v1/memories", headers=bearer)[0] == 200
    assert server.stop() == 0
    # Bookmarks and programs go on working; what others could have read does not.
    again = start()
    assert again.own == server.own
    again.stop()
    kept.chmod(0o644)
    changed = start()
    assert changed.own not in {None, server.own}
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert (
        changed.ask("GET", "/v1/memories", headers={"Authorization": f"Bearer {server.own}"})[0]
        == 401
    )
    # Whoever listens beyond this machine takes tokens that were made, and no other.
    others = start("--host", "0.0.0.0")
    assert others.own is None
    headers = {"Authorization": f"Bearer {changed.own}"}
    assert others.ask("GET", "/v1/memories", headers=headers)[0] == 401


@pytest.mark.promise("rest.own_token")
def test_no_token_is_asked_for_where_that_was_said(start: Start, tmp_path: Path) -> None:
    """`--no-token` answers everybody on this machine, but indexes no folder, and not elsewhere."""
    server = start("--no-token")
    assert server.own is None
    assert server.ask("GET", "/v1/memories")[0] == 200
    assert server.ask("POST", "/v1/projects", {"root": str(tmp_path)})[0] == 403
    assert not (tmp_path / "home" / "server.token").exists()
    for words in (("--host", "0.0.0.0"), ("--require-token",)):
        refused = run(tmp_path / "home", "serve", "--port", "0", "--no-token", *words)
        assert refused.returncode == 2
        assert "no-token" in refused.stderr


@pytest.mark.promise("rest.own_token")
def test_a_sealed_home_keeps_no_token(start: Start, tmp_path: Path) -> None:
    """Who gets the files of a sealed home does not get into its server by them."""
    home = tmp_path / "home"
    Memory.open(home, embedder="hashing", encrypt="file").close()
    made = json.loads(run(home, "token", "create", "agent", "--json").stdout)
    first = start()
    # Its own token is in the link alone, which a pipe is not given.
    assert first.own is None
    assert first.ask("GET", "/v1/memories")[0] == 401
    bearer = {"Authorization": f"Bearer {made['secret']}"}
    assert first.ask("GET", "/v1/memories", headers=bearer)[0] == 200
    first.stop()
    assert not (home / "server.token").exists()
    told = run(home, "token", "own")
    assert told.returncode == 3
    assert "sealed" in told.stderr


@pytest.mark.promise("rest.lanes")
def test_the_command_line_says_the_same(start: Start, tmp_path: Path) -> None:
    """What a route answers and what the command prints with --json is one JSON."""
    server, home = start(), tmp_path / "home"
    said = server.ask("POST", "/v1/memories", {"text": "The heron is grey.", "tags": ["bird"]})
    server.ask("POST", "/v1/conversations/c/turns", {"turns": [{"role": "user", "text": "hello"}]})
    pairs = [
        ("/v1/memories", ("list", "--json")),
        (f"/v1/memories/{said[1]['id']}", ("get", said[1]["id"], "--json")),
        ("/v1/conversations/c", ("conversation", "show", "c", "--json")),
        ("/v1/gaps", ("gaps", "--json")),
        ("/v1/projects", ("project", "list", "--json")),
    ]
    for path, words in pairs:
        status, answer = server.ask("GET", path)
        assert status == 200
        printed = run(home, *words)
        assert printed.returncode == 0, printed.stderr
        assert json.loads(printed.stdout) == answer, path
