"""Who is let in: tokens, scopes, hosts, origins, over every route that there is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.testclient import TestClient
from tests.surfaces.rest_desk import BASE, in_namespace, served, version

import anaphora
from anaphora import Memory
from anaphora.errors import InvalidInput
from anaphora.testing import server_app

SECRET = "cardamom"
OPEN = {"page": None}
CLOSED = {"page": None, "require_token": True}

# What to send so that each route gets as far as it can; a route that is not here gets an empty
# body, which is refused before anything is read, so a new one should be added.
BODIES: dict[str, Any] = {
    "/v1/memories": {"text": "heron"},
    "/v1/recall": {"query": SECRET, "top_k": 100},
    "/v1/memories/recall": {"query": SECRET, "top_k": 100},
    "/v1/search": {"query": SECRET, "top_k": 100},
    "/v1/forget/undo": {"id": SECRET},
    "/v1/forget": {"filters": {"category": SECRET}},
    "/v1/memories/{memory_id}": {"text": "heron"},
    "/v1/conversations/{conversation_id}/turns": {"turns": [{"role": "user", "text": "heron"}]},
    "/v1/conversations/{conversation_id}": {"title": "heron"},
    "/v1/conversations/recall": {"query": SECRET},
    "/v1/projects": {"root": "/"},
    "/v1/context/recall": {"focus": SECRET},
    "/v1/observations": {"text": "heron"},
    "/v1/diary": {"summary": "heron"},
    "/v1/deep": {"question": SECRET, "scope": "all_sessions"},
    "/v1/extract": {"conversation_id": "work-thread"},
    "/v1/dream": {"model": False},
    "/v1/sync/remove": {"device": "d"},
    "/v2/agent-state": {"project_id": "p", "entries": []},
    "/v2/agent-state/drop": {"project_id": "p", "entries": []},
}
PLACES = {"index": "0", "name": "work"}


def routes(app: FastAPI) -> list[tuple[str, str]]:
    """Every method and path of the application, whatever it is for."""
    found = []
    for route in app.routes:
        assert isinstance(route, APIRoute), f"{route} is not looked at by these tests"
        found += [(method, route.path) for method in sorted(route.methods or ())]
    return found


def filled(path: str, memory_id: str) -> str:
    for name, value in {
        "memory_id": memory_id, "conversation_id": "work-thread", "project": "work-project",
        "trace_id": "x", "document_id": "work-document", **PLACES,
    }.items():  # fmt: skip
        path = path.replace("{" + name + "}", value)
    assert "{" not in path, f"{path} has a part that these tests do not know"
    return path


def call(client: TestClient, method: str, path: str, of: str, headers: dict[str, str]) -> Any:
    body = BODIES.get(path, {}) if method in {"POST", "PATCH"} else None
    query = {"path": SECRET} if path.endswith("/history") else {}
    return client.request(method, filled(path, of), json=body, params=query, headers=headers)


def fill(memory: Memory) -> str:
    """A namespace "work" full of the secret; the id of its memory."""
    work = memory.scoped("work")
    work.conversations.append("work-thread", "user", f"the {SECRET} turn")
    work.add_document(f"the {SECRET} page".encode(), name="work-document")
    work.observe(f"the {SECRET} note")
    return work.remember(f"the {SECRET} fact", category=SECRET, path=SECRET).id


@pytest.fixture
def filled_home(tmp_path: Path) -> Iterator[tuple[TestClient, Memory, str]]:
    with served(tmp_path / "home", CLOSED) as (client, memory):
        yield client, memory, fill(memory)


@dataclass(frozen=True)
class Guarded:
    """A filled home that is only asked for what is refused or changes nothing."""

    client: TestClient
    memory: Memory
    work_id: str
    revoked: str
    reader: str


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with served(tmp_path_factory.mktemp("guarded") / "home", CLOSED) as (client, memory):
        work_id = fill(memory)
        revoked = memory.tokens.create("gone", namespaces=("work",)).secret
        reader = memory.tokens.create("reader", namespaces=("work",), read_only=True).secret
        memory.tokens.revoke("gone")
        yield Guarded(client, memory, work_id, revoked, reader)


NOWHERE = Memory.open("/nonexistent/anaphora", embedder="hashing", warm=False)
ALL = routes(server_app(NOWHERE, **OPEN))
NOWHERE.close()


@pytest.mark.promise("rest.namespaces")
@pytest.mark.parametrize(("method", "path"), ALL, ids=str)
def test_no_token_reaches_beyond_its_scope(
    filled_home: tuple[TestClient, Memory, str], method: str, path: str
) -> None:
    """By no route does a token of "play" read, change or learn of anything in "work"."""
    client, memory, work_id = filled_home
    secret = memory.tokens.create("play", namespaces=("play",)).secret
    before = version(memory, "work")
    # Another's namespace and one that does not exist are refused in the same words.
    refused = [
        call(client, method, path, work_id, in_namespace(name, secret)) for name in ("work", "nix")
    ]
    assert [one.status_code for one in refused] == [403, 403]
    assert refused[0].content == refused[1].content
    # In its own namespace, and without naming one, nothing of the other comes back.
    for headers in (in_namespace("play", secret), {"Authorization": f"Bearer {secret}"}):
        answer = call(client, method, path, work_id, headers)
        assert answer.status_code < 500, answer.text
        assert f"the {SECRET}" not in answer.text
        assert '"work"' not in answer.text
    assert version(memory, "work") == before
    assert "work-thread" in [t.conversation_id for t in memory.scoped("work").conversations.list()]


@pytest.mark.promise("rest.namespaces")
@pytest.mark.parametrize(("method", "path"), ALL, ids=str)
def test_without_a_good_token_nothing_is_answered(guarded: Guarded, method: str, path: str) -> None:
    """Where tokens are asked for, none, a wrong one, a revoked one and another scheme get 401."""
    for value in (None, "Bearer wrong", "Basic eDp5", "Bearer", f"Bearer {guarded.revoked}"):
        headers = {"Anaphora-Namespace": "work"} | ({"Authorization": value} if value else {})
        answer = call(guarded.client, method, path, guarded.work_id, headers)
        if path == "/health/live" and value is None:
            # Who starts a server again has no token; it is told that the process answers.
            assert (answer.status_code, answer.json()) == (200, {"ok": True})
            continue
        assert answer.status_code == 401, (value, answer.text)
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.promise("tokens.scoped")
@pytest.mark.parametrize(("method", "path"), ALL, ids=str)
def test_a_read_only_token_changes_nothing(guarded: Guarded, method: str, path: str) -> None:
    """By no route does a read-only token change truth; what only reads is answered."""
    before = version(guarded.memory, "work")
    headers = in_namespace("work", guarded.reader)
    answer = call(guarded.client, method, path, guarded.work_id, headers)
    assert answer.status_code < 500, answer.text
    # Figures and the audit trail are for who opens the whole home, which this token does not.
    closed = path == "/metrics" or path.startswith("/v1/audit")
    reading = (method == "GET" and not closed) or path.endswith(("recall", "search"))
    assert (answer.status_code == 403) is not reading, answer.text
    assert version(guarded.memory, "work") == before


@pytest.mark.promise("rest.namespaces")
def test_a_token_opens_what_it_was_made_for(
    filled_home: tuple[TestClient, Memory, str],
) -> None:
    """The other way round: with the right token, the same questions are answered."""
    client, memory, work_id = filled_home
    for scope in (("work",), ("play", "work"), ("*",)):
        secret = memory.tokens.create("worker", namespaces=scope).secret
        found = client.post(
            "/v1/recall", json={"query": SECRET}, headers=in_namespace("work", secret)
        )
        # The memory of this namespace, and its note, which holds the word too.
        assert work_id in [hit["id"] for hit in found.json()["hits"]]
        said = client.get("/v1/session", headers={"Authorization": f"Bearer {secret}"}).json()
        assert "work" in said["namespaces"]
        assert said["token"] == "worker"


@pytest.mark.promise("tokens.people")
def test_what_a_person_writes_has_the_name(filled_home: tuple[TestClient, Memory, str]) -> None:
    """Memories, notes and turns that are written with a token of a person say whose they are."""
    client, memory, _ = filled_home
    made = memory.tokens.create("laptop", namespaces=("work",), person="Mara Öz")
    headers = in_namespace("work", made.secret)
    for source, expected in ((None, "Mara Öz"), ("plan.md", "Mara Öz: plan.md")):
        body = {"text": f"Deploys happen on Tuesday, says {source}.", "source": source}
        done = client.post("/v1/memories", json=body, headers=headers).json()
        assert memory.scoped("work").get(done["id"]).sources == (expected,)
    changed = client.patch(
        f"/v1/memories/{done['id']}", json={"text": "Deploys happen on Friday."}, headers=headers
    ).json()
    assert memory.scoped("work").get(changed["id"]).sources == ("Mara Öz",)
    turns = [
        {"role": "user", "text": "Redis lost jobs again."},
        {"role": "user", "text": "Not again!", "speaker": "Rafi"},
        {"role": "assistant", "text": "Noted."},
    ]
    client.post("/v1/conversations/standup/turns", json={"turns": turns}, headers=headers)
    thread = memory.scoped("work").conversations.get("standup")
    assert thread is not None
    assert [turn.speaker for turn in thread.turns] == ["Mara Öz", "Rafi", None]
    assert client.get("/v1/session", headers=headers).json()["person"] == "Mara Öz"
    told = client.get("/v1/access", headers=headers).json()
    assert "Mara Öz" in told["summary"]
    assert {one["name"] for one in told["readers"] if one["writes"]} >= {"Mara Öz"}


@pytest.mark.promise("rest.namespaces")
def test_a_token_of_a_part_learns_nothing_of_the_whole(tmp_path: Path) -> None:
    """Where the home lies, how large it is and what waits in it is for who opens all of it."""
    with served(tmp_path / "home", CLOSED) as (client, memory):
        work = memory.scoped("work")
        work.conversations.append("c", "user", f"the {SECRET} turn")
        assert work.end_session("c")
        for scope, whole in ((("play",), False), (("*",), True)):
            secret = memory.tokens.create("one", namespaces=scope).secret
            headers = in_namespace("play", secret)
            stats = client.get("/v1/stats", headers=headers)
            assert (str(tmp_path) in stats.text) is whole
            assert ("truth" in stats.json()["bytes"]) is whole
            assert (client.get("/health", headers=headers).json()["jobs"] > 0) is whole
            figures = client.get("/metrics", headers=headers)
            assert figures.status_code == (200 if whole else 403)


@pytest.mark.promise("tokens.revoked")
def test_a_token_revoked_by_another_process_is_refused_at_once(tmp_path: Path) -> None:
    """The next request after the revocation is refused, whoever revoked it."""
    with served(tmp_path / "home", CLOSED) as (client, memory):
        made = memory.tokens.create("agent")
        headers = in_namespace("default", made.secret)
        assert client.get("/v1/memories", headers=headers).status_code == 200
        with Memory.open(tmp_path / "home", embedder="hashing", warm=False) as other:
            other.tokens.revoke("agent")
        assert client.get("/v1/memories", headers=headers).status_code == 401


@pytest.mark.promise("rest.namespaces")
def test_a_token_indexes_only_folders_that_the_server_was_told_of(tmp_path: Path) -> None:
    """No token has the server's disk read into its namespace, by links and dots neither."""
    allowed, other = tmp_path / "allowed", tmp_path / "other"
    for folder in (allowed, other):
        (folder / "p").mkdir(parents=True)
        (folder / "p" / "README.md").write_text("# Heron\n")
    (allowed / "link").symlink_to(other)
    options = {"page": None, "projects": (allowed,)}
    with served(tmp_path / "home", options) as (client, memory):
        headers = in_namespace("default", memory.tokens.create("agent", may_index=True).secret)
        for root in (other / "p", allowed / "link" / "p", allowed / ".." / "other", tmp_path):
            answer = client.post("/v1/projects", json={"root": str(root)}, headers=headers)
            assert answer.status_code == 403, root
        body = {"root": str(allowed / "p")}
        assert client.post("/v1/projects", json=body, headers=headers).status_code == 200


@pytest.mark.promise("rest.index_right")
def test_indexing_needs_a_right_of_its_own(tmp_path: Path) -> None:
    """Without the right no token indexes anything, without a token nobody outside the folders."""
    allowed, other = tmp_path / "allowed", tmp_path / "other"
    for folder in (allowed, other):
        folder.mkdir()
        (folder / "README.md").write_text("# Heron\n")
    own = "anaphora_" + "0" * 64
    options = {"page": None, "projects": (allowed,), "own": own}
    with served(tmp_path / "home", options) as (client, memory):

        def index(folder: Path, secret: str | None) -> int:
            body, headers = {"root": str(folder)}, in_namespace("default", secret)
            return int(client.post("/v1/projects", json=body, headers=headers).status_code)

        plain = memory.tokens.create("plain", namespaces=("*",)).secret
        assert (index(allowed, plain), index(other, plain)) == (403, 403)
        assert (index(allowed, None), index(other, None)) == (200, 403)
        assert (index(allowed, own), index(other, own)) == (200, 200)
        with pytest.raises(InvalidInput):
            memory.tokens.create("reader", read_only=True, may_index=True)


HOSTS = [
    ("127.0.0.1:7411", True), ("localhost:7411", True), ("LOCALHOST", True), ("[::1]:7411", True),
    ("memory.example:80", True), ("evil.example", False), ("127.0.0.1.evil.example", False),
    ("localhost.evil.example:7411", False), ("192.168.1.7:7411", False), ("", False),
]  # fmt: skip


@pytest.mark.promise("rest.origins")
@pytest.mark.parametrize(("host", "ours"), HOSTS)
def test_only_our_own_names_are_answered(tmp_path: Path, host: str, ours: bool) -> None:
    """A page that has its own name point to this machine is refused: the name is not ours."""
    options = {"page": None, "hosts": ("memory.example",)}
    with served(tmp_path / "home", options) as (client, _):
        answer = client.get("/v1/memories", headers={"Host": host})
        assert answer.status_code == (200 if ours else 421)


ORIGINS = [
    ({}, True),
    ({"Origin": BASE}, True),
    ({"Origin": "http://localhost:7411", "Host": "localhost:7411"}, True),
    ({"Origin": "https://page.example"}, True),
    ({"Origin": "http://page.example"}, False),
    ({"Origin": "https://page.example.evil"}, False),
    ({"Origin": "http://127.0.0.1:8000"}, False),
    ({"Origin": "http://localhost:7411"}, False),
    ({"Origin": "null"}, False),
    ({"Origin": "file://"}, False),
    ({"Origin": "http://[evil"}, False),
    ({"Sec-Fetch-Site": "same-origin"}, True),
    ({"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}, True),
    ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, False),
]


@pytest.mark.promise("rest.origins")
@pytest.mark.parametrize(("headers", "ours"), ORIGINS)
@pytest.mark.parametrize("with_token", [False, True])
def test_only_known_origins_are_answered(
    tmp_path: Path, headers: dict[str, str], ours: bool, with_token: bool
) -> None:
    """A page of another site is refused, for reading and for writing, with a token or without."""
    options = {"page": None, "origins": ("https://page.example",)}
    with served(tmp_path / "home", options) as (client, memory):
        if with_token:
            headers = headers | in_namespace("default", memory.tokens.create("a").secret)
        read = client.get("/v1/memories", headers=headers)
        wrote = client.post("/v1/memories", json={"text": "heron"}, headers=headers)
        assert [read.status_code, wrote.status_code] == ([200, 201] if ours else [403, 403])
        foreign = headers.get("Origin") == "https://page.example"
        allowed = read.headers.get("access-control-allow-origin")
        assert allowed == ("https://page.example" if foreign else None)


@pytest.mark.promise("rest.origins")
def test_a_preflight_is_answered_for_known_origins_alone(tmp_path: Path) -> None:
    """Without configuration no other site may even ask; a configured one may send a token."""
    asked = {"Access-Control-Request-Method": "POST", "Origin": "https://page.example"}
    with served(tmp_path / "closed") as (client, _):
        assert client.options("/v1/memories", headers=asked).status_code == 403
    options = {"page": None, "origins": ("https://page.example",), "require_token": True}
    with served(tmp_path / "open", options) as (client, _):
        answer = client.options("/v1/memories", headers=asked)
        assert answer.status_code == 204
        assert answer.headers["access-control-allow-origin"] == "https://page.example"
        assert "Authorization" in answer.headers["access-control-allow-headers"]


@pytest.mark.promise("rest.origins")
def test_the_page_is_served_safely(tmp_path: Path) -> None:
    """The page's files come with a policy that lets in no script but its own, token or none."""
    page = tmp_path / "web"
    page.mkdir()
    (page / "index.html").write_text("<!doctype html><title>x</title>")
    (page / "app.js").write_text("'use strict';")
    options = {"page": page, "require_token": True}
    with served(tmp_path / "home", options) as (client, _):
        for path in ("/", "/app.js"):
            answer = client.get(path)
            assert answer.status_code == 200, path
            policy = answer.headers["content-security-policy"]
            assert policy.startswith("default-src 'self';")
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["referrer-policy"] == "no-referrer"
        for path in ("/v1/memories", "/conversations/a.js", "/v1/memories/x.css", "/metrics"):
            assert client.get(path).status_code == 401, path
        assert client.get("/../secret.js").status_code in {401, 404}


@pytest.mark.promise("rest.origins")
def test_every_file_of_the_page_comes_without_a_token(tmp_path: Path) -> None:
    """A browser fetches the page's modules without the token, beside routes of the same name."""
    options = {"require_token": True}
    page = Path(anaphora.__file__).parent / "surfaces" / "web"
    names = [f"/{file.relative_to(page).as_posix()}" for file in page.rglob("*") if file.is_file()]
    assert len(names) > 10
    assert "/metrics.js" in names
    with served(tmp_path / "home", options) as (client, _):
        refused = {name for name in names if client.get(name).status_code != 200}
        assert refused == set()
        data = {path for method, path in ALL if method == "GET"} - {"/health/live"}
        assert {"/metrics", "/health", "/conversations", "/v1/stats"} <= data
        answered = {path for path in data if client.get(filled(path, "x")).status_code != 401}
        assert answered == set()
