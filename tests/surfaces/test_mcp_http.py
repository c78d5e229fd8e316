"""The server for coding agents over HTTP: who is let in, and who is not."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as types
import pytest
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from tests.commands import program
from tests.mcp_client import call, refusal

from anaphora import Memory

pytestmark = pytest.mark.enable_socket

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
TAKES = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@contextmanager
def serving(home: Path, host: str = "127.0.0.1", *more: str) -> Iterator[int]:
    """The port of a server of this home; it is interrupted at the end."""
    environ = {**os.environ, "ANAPHORA_EMBEDDER": "hashing", "HOME": str(home.parent)}
    words = ["--home", str(home), "mcp", "--http", f"{host}:0", "--tools", "all", *more]
    with subprocess.Popen(
        [*program(), *words], stderr=subprocess.PIPE, text=True, env=environ
    ) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert line.startswith("anaphora: http://"), line
        try:
            yield int(line.rsplit(":", 1)[1].split("/")[0])
        finally:
            process.terminate()


def status_of(port: int, **headers: str) -> int:
    connection = HTTPConnection("127.0.0.1", port)
    connection.request("POST", "/mcp", json.dumps(PING), {**TAKES, **headers})
    found = connection.getresponse().status
    connection.close()
    return found


async def asked(port: int, token: str | None, work: Any) -> None:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as client,
        streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=client) as streams,
        ClientSession(streams[0], streams[1]) as session,
    ):
        await session.initialize()
        await work(session)


@pytest.mark.promise("mcp.http")
def test_on_this_machine_a_client_works_and_pages_of_others_do_not(home: Path) -> None:
    """The official client keeps and recalls; a foreign Host or Origin is refused."""

    async def work(session: ClientSession) -> None:
        kept = await call(session, "store_memory", content="The heron wades at dawn.")
        found = await call(session, "recall_memory", question="when does the heron wade?")
        assert [hit["id"] for hit in found["data"]] == [kept["data"]["id"]]

    with serving(home) as port:
        own = (home / "server.token").read_text().strip()
        anyio.run(asked, port, own, work)
        assert status_of(port) == 401
        assert status_of(port, Authorization=own) == 401
        status = partial(status_of, Authorization=f"Bearer {own}")
        assert status(port, Host="attacker.example") == 421
        assert status(port, Host=f"attacker.example:{port}") == 421
        assert status(port, Origin="https://attacker.example") == 403
        assert status(port, Origin="null") == 403
        assert status(port, Origin="http://localhost:3000") == 403
        assert status(port, Origin=f"http://localhost:{port}") == 403
        assert status(port, Origin=f"http://127.0.0.1:{port}") not in {401, 403, 421}
        assert status(port, Authorization="Bearer anaphora_0") == 401
        assert status(port) not in {401, 403, 421}


@pytest.mark.promise("mcp.http")
def test_other_addresses_need_a_token(home: Path) -> None:
    """Without a token in the home the address is refused; then every request needs one."""
    environ = {**os.environ, "ANAPHORA_EMBEDDER": "hashing"}
    words = ["--home", str(home), "mcp", "--http", "0.0.0.0:0"]
    done = subprocess.run(
        [*program(), *words], capture_output=True, text=True, check=False, env=environ
    )
    assert done.returncode == 2
    assert "token" in done.stderr
    with Memory.open(home, embedder="hashing") as memory:
        whole = memory.tokens.create("agent")
        reads = memory.tokens.create("reader", read_only=True)
        other = memory.tokens.create("other", namespaces=["elsewhere"])
        memory.remember("The heron wades at dawn.")

    async def everything(session: ClientSession) -> None:
        await call(session, "store_memory", content="The kestrel hovers.")

    async def reading(session: ClientSession) -> None:
        found = await call(session, "recall_memory", question="when does the heron wade?")
        assert found["data"][0]["text"] == "The heron wades at dawn."
        assert "only read" in await refusal(session, "store_memory", content="No.")

    with serving(home, "0.0.0.0") as port:
        assert status_of(port) == 401
        assert status_of(port, Authorization="Bearer nonsense") == 401
        assert status_of(port, Authorization="Basic Og==") == 401
        assert status_of(port, Authorization=f"Bearer {other.secret}") == 401
        anyio.run(asked, port, whole.secret, everything)
        anyio.run(asked, port, reads.secret, reading)
        with Memory.open(home, embedder="hashing") as memory:
            memory.tokens.revoke("agent")
        assert status_of(port, Authorization=f"Bearer {whole.secret}") == 401


@pytest.mark.promise("mcp.http")
def test_without_a_token_only_where_that_was_said(home: Path) -> None:
    """`--no-token` lets everybody on this machine in, and is refused for other addresses."""
    with serving(home, "127.0.0.1", "--no-token") as port:
        assert status_of(port) not in {401, 403, 421}
        assert status_of(port, Origin="http://localhost:3000") == 403
    words = ["--home", str(home), "mcp", "--http", "0.0.0.0:0", "--no-token"]
    done = subprocess.run([*program(), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no-token" in done.stderr


@pytest.mark.promise("rest.index_right")
def test_a_client_names_no_folder_of_somebody_else(home: Path, tmp_path: Path) -> None:
    """A folder that a client names is indexed for the user who runs the server, for no other."""
    project = tmp_path / "priv"
    project.mkdir()
    (project / "README.md").write_text("# The heron wades at dawn\n")
    with Memory.open(home, embedder="hashing") as memory:
        made = memory.tokens.create("agent", may_index=True)

    async def roots(context: object) -> types.ListRootsResult:
        named = types.Root(uri=project.as_uri())  # type: ignore[arg-type]
        return types.ListRootsResult(roots=[named])

    async def asking(port: int, token: str | None, found: list[str]) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30) as client,
            streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=client) as streams,
            ClientSession(streams[0], streams[1], list_roots_callback=roots) as session,
        ):
            await session.initialize()
            found.append(str(await call(session, "recall_context", focus="when does it wade?")))

    said: list[str] = []
    with serving(home) as port:
        anyio.run(asking, port, made.secret, said)
        anyio.run(asking, port, (home / "server.token").read_text().strip(), said)
    with serving(home, "127.0.0.1", "--no-token") as port:
        anyio.run(asking, port, None, said)
    # What its own user had indexed is there; the others could not begin it.
    assert "wades at dawn" not in said[0]
    assert "wades at dawn" in said[1]


@pytest.mark.promise("mcp.http")
@pytest.mark.parametrize("address", ["here", "127.0.0.1:port", "127.0.0.1:70000", "127.0.0.1:-1"])
def test_a_bad_address_is_named(home: Path, address: str) -> None:
    """What is no HOST:PORT is refused with a word on what is expected."""
    words = ["--home", str(home), "mcp", "--http", address]
    done = subprocess.run([*program(), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "HOST:PORT" in done.stderr


HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    },
}


def sessions_begun(port: int, count: int, token: str | None = None) -> list[str]:
    """Begin so many sessions, and end none: their ids."""
    headers = TAKES | ({"Authorization": f"Bearer {token}"} if token else {})
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    names = []
    for _ in range(count):
        connection.request("POST", "/mcp", json.dumps(HELLO), headers)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200
        names.append(str(answer.getheader("mcp-session-id")))
    connection.close()
    return names


def status_within(port: int, name: str, token: str | None = None) -> int:
    """What a ping within a session is answered with."""
    more = {"Authorization": f"Bearer {token}"} if token else {}
    return status_of(port, **{"mcp-session-id": name, "mcp-protocol-version": "2025-06-18"}, **more)


@pytest.mark.promise("server.silent")
def test_clients_that_never_say_good_bye_are_bounded(home: Path) -> None:
    """Sessions that are begun and left do not grow without end: beyond 200 the oldest silent one
    gives way, and its client may begin another."""
    with serving(home, "127.0.0.1", "--no-token") as port:
        names = sessions_begun(port, 200)
        assert status_within(port, names[0]) == 200
        names += sessions_begun(port, 2)
        assert status_within(port, names[0]) == 200
        assert [status_within(port, name) for name in names[1:3]] == [404, 404]
        assert {status_within(port, name) for name in (names[3], *names[-2:])} == {200}


@pytest.mark.promise("server.silent")
def test_no_caller_takes_the_sessions_of_others(home: Path) -> None:
    """Who opens sessions without end loses their own, whoever else comes, early or late."""
    with Memory.open(home, embedder="hashing") as memory:
        secrets = [
            memory.tokens.create(name, read_only=True).secret for name in ("early", "flood", "late")
        ]
    early, flood, late = secrets
    with serving(home) as port:
        (before,) = sessions_begun(port, 1, early)
        flooded = sessions_begun(port, 210, flood)
        (after,) = sessions_begun(port, 1, late)
        assert status_within(port, before, early) == 200
        assert status_within(port, after, late) == 200
        assert status_within(port, flooded[0], flood) == 404
        assert status_within(port, flooded[-1], flood) == 200


@pytest.mark.promise("server.refusals")
def test_a_request_of_two_lengths_is_no_request(home: Path) -> None:
    """Content-Length beside Transfer-Encoding is refused, and what follows is not read."""
    with (
        serving(home, "127.0.0.1", "--no-token") as port,
        socket.create_connection(("127.0.0.1", port), timeout=60) as caller,
    ):
        head = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 4\r\n"
        caller.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + head + b"\r\n")
        said = b""
        while piece := caller.recv(65_536):
            said += piece
    assert said.startswith(b"HTTP/1.1 400")
    assert said.count(b"HTTP/1.1") == 1
