"""Every lane over HTTP, as the facade itself would answer; errors, limits, health, metrics."""

from __future__ import annotations

import io
import itertools
import json
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.as_json import as_json
from tests.ingest.memory_sources import mem0_history
from tests.sqlite_driver import dbapi2
from tests.surfaces.rest_desk import in_namespace, served, version

from anaphora import Memory

Pair = tuple[TestClient, Memory]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    with served(tmp_path / "home", {"page": None, "projects": (Path("/"),)}) as both:
        yield both


def ok(response: Any, status: int = 200) -> Any:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    return response.json()


@pytest.mark.promise("rest.lanes")
def test_the_tool_calls_of_a_session_are_listed(pair: Pair, tmp_path: Path) -> None:
    """A session that an agent wrote shows a line for each call of its tools."""
    client, memory = pair
    lines: tuple[dict[str, Any], ...] = (
        {"role": "user", "content": "run the tests"},
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "a", "name": "Bash", "input": {"command": "ls"}}
            ],
        },
    )
    place = tmp_path / "session.jsonl"
    common = {"sessionId": "s", "cwd": "/w", "timestamp": "2026-03-01T10:00:00Z", "version": "2"}
    place.write_text(
        "".join(
            json.dumps({**common, "type": line["role"], "uuid": str(n), "message": line}) + "\n"
            for n, line in enumerate(lines)
        )
    )
    report = memory.import_(place, format="claude_code")
    assert report.tool_calls == 1
    conversation = memory.conversations.list()[0].conversation_id
    listed = ok(client.get(f"/v1/conversations/{conversation}/tool-calls"))
    assert [(one["text"], one["conversation_id"]) for one in listed] == [("Bash ls", conversation)]


@pytest.mark.promise("rest.seed")
def test_the_routes_of_the_seed(pair: Pair) -> None:
    """All summaries as {items}; one record byte for byte as its file; 404 for what is not there."""
    client, memory = pair
    memory.conversations.append("conv_1", "user", "a <b> & \u2028 c", intent_id="i1")
    listed = ok(client.get("/conversations"))
    assert listed == {"items": as_json(memory.conversations.list())}
    record = client.get("/conversations/conv_1")
    assert record.content == memory.conversations.path("conv_1").read_bytes()
    assert record.json()["turns"][0]["intent_id"] == "i1"
    for unknown in ("conv_2", "...", "a%00b", "x" * 1024):
        missing = client.get(f"/conversations/{unknown}")
        assert missing.status_code in {404, 422}, unknown
        assert missing.headers["content-type"] == "application/problem+json"


@pytest.mark.promise("rest.streams")
def test_deep_recall_with_its_steps(tmp_path: Path) -> None:
    """A stream tells each step as it ends, and then the answer that a plain request gets."""
    pytest.importorskip("pydantic_monty")
    from anaphora.testing import ScriptedModel

    code = "```python\nfound = search('heron')\nsubmit('grey', [found[0]['id']])\n```"
    home = tmp_path / "home"
    with served(home, model=ScriptedModel([code, code])) as (client, memory):
        memory.conversations.append("c", "user", "the heron was grey")
        body = {"question": "How often was the heron grey, and when first?"}
        with client.stream(
            "POST", "/v1/deep", json=body, headers={"Accept": "text/event-stream"}
        ) as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            events = [block for block in "".join(response.iter_text()).split("\n\n") if block]
        names = [block.split("\n")[0] for block in events if block.startswith("event")]
        assert names[-1] == "event: answer"
        assert names[:-1]
        assert set(names[:-1]) == {"event: step"}
        answer = json.loads(events[-1].split("\ndata: ")[1])
        assert answer["steps"] == [
            json.loads(block.split("\ndata: ")[1]) for block in events if "event: step" in block
        ]
        assert [one["id"] for one in ok(client.get("/v1/traces"))] == [answer["trace_id"]]
        kept = ok(client.get(f"/v1/traces/{answer['trace_id']}"))
        assert kept["answer"] == answer["answer"]


@pytest.mark.promise("rest.lanes")
def test_a_question_without_a_model_leaves_a_gap(pair: Pair) -> None:
    """Deep recall without a model gives evidence and registers the gap, which a dream explores."""
    client, memory = pair
    memory.conversations.append("c", "user", "the heron was grey")
    answer = ok(client.post("/v1/deep", json={"question": "How many storks came in all?"}))
    assert not answer["complete"]
    assert ok(client.get("/v1/gaps")) == as_json(memory.gaps())
    assert len(ok(client.get("/v1/gaps", params={"status": "all"}))) == 1
    assert len(ok(client.post("/v1/dream", json={"model": False}))["explored"]) == 1
    assert ok(client.post("/v1/extract", json={"conversation_id": "c"}))["skipped"] == "no_model"


@pytest.mark.promise("rest.lanes")
def test_a_namespace_goes_out_and_comes_in(pair: Pair) -> None:
    """An export is a file that another namespace takes in whole, and once."""
    client, memory = pair
    memory.remember("The heron is grey.")
    memory.conversations.append("c", "user", "hello")
    file = client.get("/v1/export")
    assert file.headers["content-type"] == "application/x-ndjson"
    assert len(file.content) == int(file.headers["content-length"])
    headers = in_namespace("other") | {"Content-Type": "application/octet-stream"}
    first = ok(client.post("/v1/import", content=file.content, headers=headers))
    assert (first["memories_added"], first["added"]) == (1, 1)
    again = ok(client.post("/v1/import", content=file.content, headers=headers))
    assert (again["memories_added"], again["added"]) == (0, 0)
    assert memory.scoped("other").list().items[0].text == "The heron is grey."
    said = ok(client.get("/v1/session"))
    assert said["namespaces"] == ["default", "other"]


@pytest.mark.promise("import.unknown")
def test_what_is_uploaded_is_told_by_its_own_names(pair: Pair) -> None:
    """What came in, what it is that did not, and not where the upload lay."""
    client, memory = pair
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("_chat.txt", "[05/01/2026, 10:01:00] Ola: The key is under the pot")
        archive.writestr("IMG.jpg", "picture")
    for name, content, told in (
        ("/home/ola/WhatsApp.zip", file.getvalue(), '["IMG.jpg"]'),
        ("C:\\notes\\torn.pdf", b"%PDF-1.4", '"path": "notes/torn.pdf"'),
        ("../photo.jpg", b"\xff\xd8\xff", '["photo.jpg"]'),
        ("log.jsonl", b'{"flour": 2}', "no importer recognises this file"),
    ):
        answer = client.post("/v1/import", content=content, params={"name": name})
        assert answer.status_code == (422 if name == "log.jsonl" else 200)
        assert told in answer.text
        assert "/proc" not in answer.text
    (document,) = memory.documents()
    assert document.name == "home/ola/WhatsApp.zip/_chat.txt"


@pytest.mark.promise("import.memories_twice")
def test_what_another_program_keeps_is_uploaded(pair: Pair, tmp_path: Path) -> None:
    """A database and a note come in as files of their own names, and once."""
    client, memory = pair
    database = mem0_history(tmp_path / "history.db").read_bytes()
    note = b"# Tides\n\nHigh water at Aveiro is 12 minutes late.\n"
    headers = {"Content-Type": "application/octet-stream"}
    for added, known, documents in ((2, 0, 1), (0, 2, 0)):
        told = [
            ok(client.post("/v1/import", content=content, headers=headers, params={"name": name}))
            for name, content in (("history.db", database), ("tides.md", note))
        ]
        assert sum(one["memories_added"] + one["memories_changed"] for one in told) == added
        assert sum(one["memories_known"] for one in told) == known
        assert sum(one["documents_added"] for one in told) == documents
    assert [one.name for one in memory.documents()] == ["tides.md"]


@pytest.mark.promise("rest.problems")
@pytest.mark.parametrize(
    ("method", "path", "given", "status"),
    [
        ("GET", "/v1/nothing", {}, 404),
        ("PUT", "/v1/memories", {}, 405),
        ("POST", "/v1/memories", {"json": {"text": 5}}, 422),
        ("POST", "/v1/memories", {"json": {"text": "a", "words": "b"}}, 422),
        ("POST", "/v1/memories", {"json": {"text": " \n"}}, 422),
        ("POST", "/v1/memories", {"json": {"text": "a", "created_at": "yesterday"}}, 422),
        ("POST", "/v1/memories", {"json": {"text": "a", "created_at": 5}}, 422),
        ("POST", "/v1/memories", {"json": {"text": "a", "payload": {"x": 1e400}}}, 422),
        ("POST", "/v1/memories", {"content": b"{"}, 422),
        ("POST", "/v1/memories", {"content": b"\xff\xfe"}, 422),
        ("POST", "/v1/recall", {"json": {"question": "a", "filters": {"color": "x"}}}, 422),
        ("POST", "/v1/recall", {"json": {}}, 422),
        ("POST", "/v1/recall", {"json": {"question": "a", "query": "b"}}, 422),
        ("POST", "/v1/recall", {"json": {"questions": "a"}}, 422),
        ("POST", "/v1/forget", {"json": {}}, 422),
        ("GET", "/v1/memories?filters=[", {}, 422),
        ("GET", "/v1/memories?limit=many", {}, 422),
        ("GET", "/v1/memories?cursor=x", {}, 422),
        ("GET", "/v1/conversations?cursor=x", {}, 422),
        ("GET", "/v1/memories/x", {}, 404),
        ("GET", "/v1/traces/x", {}, 404),
        ("GET", "/v1/conversations/x", {}, 404),
        ("POST", "/v1/extract", {"json": {"conversation_id": "x"}}, 404),
        ("POST", "/v1/projects", {"json": {"root": "/no/such/folder"}}, 422),
        ("GET", "/v1/memories", {"headers": {"Anaphora-Namespace": "../x"}}, 400),
        ("PATCH", "/v1/memories/x", {"json": {"type": None}}, 422),
        ("PATCH", "/v1/memories/x", {"json": {"tags": None}}, 422),
        ("PATCH", "/v1/memories/x", {"json": {"path": None}}, 422),
        ("PATCH", "/v1/memories/x", {"json": {"payload": None}}, 404),
    ],
)
def test_every_mistake_is_a_problem_document(
    pair: Pair, method: str, path: str, given: dict[str, Any], status: int
) -> None:
    """A mistake has its status, a type, words for it, and neither traceback nor what was sent."""
    client, _ = pair
    if "json" in given:
        text = json.dumps(given["json"]).replace("Infinity", "1e400")
        given = {"content": text, "headers": {"Content-Type": "application/json"}}
    elif "content" in given:
        given = given | {"headers": {"Content-Type": "application/json"}}
    response = client.request(method, path, **given)
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    told = response.json()
    assert told.keys() >= {"type", "title", "status", "detail"}
    assert told["status"] == status
    assert "Traceback" not in response.text
    if status == 405:
        assert response.headers["allow"] == "GET, POST"


@pytest.mark.promise("rest.problems")
def test_a_method_is_told_from_a_path_beside_the_page(tmp_path: Path) -> None:
    """With the page: 405 and what is allowed where a path has other methods, else 404."""
    allowed = {
        ("GET", "/v1/recall"): "POST",
        ("HEAD", "/v1/recall"): "POST",
        ("DELETE", "/v1/search"): "POST",
        ("OPTIONS", "/v1/recall"): "POST",
        ("PUT", "/v1/memories/x"): "DELETE, GET, PATCH",
        ("POST", "/index.html"): "GET, HEAD",
        ("POST", "/mcp"): None,
        ("GET", "/mcp"): None,
        ("DELETE", "/v1/nothing"): None,
        ("GET", "/nothing.js"): None,
    }
    with served(tmp_path, {}) as (client, _):
        for (method, path), methods in allowed.items():
            response = client.request(method, path)
            told = (response.status_code, response.headers.get("allow"))
            assert told == (404 if methods is None else 405, methods), (method, path)


@pytest.mark.promise("rest.openapi")
def test_what_no_memory_is_without_cannot_be_taken_by_the_schema(pair: Pair) -> None:
    """The document says of each field whether null is a change, as the route does."""
    client, memory = pair
    record = memory.remember("Tea at four.", path="tea.time")
    fields = client.get("/openapi.json").json()["components"]["schemas"]["MemoryChanges"]
    assert not fields.get("required")
    for name, schema in fields["properties"].items():
        kinds = {one.get("type") for one in schema.get("anyOf", [schema])}
        status = client.patch(f"/v1/memories/{record.id}", json={name: None}).status_code
        assert status == (200 if "null" in kinds else 422), name
        assert "default" not in schema or schema["default"] is None


@pytest.mark.promise("rest.problems")
def test_what_nobody_foresaw_is_a_problem_too(pair: Pair, monkeypatch: Any) -> None:
    """A defect gives 500 as a problem document, without its words."""
    client, memory = pair

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(type(memory), "recall", broken)
    response = client.post("/v1/recall", json={"query": "a"})
    assert response.status_code == 500
    assert response.headers["content-type"] == "application/problem+json"
    assert "secret" not in response.text


@pytest.mark.promise("rest.limits")
def test_a_body_that_is_too_large_is_refused(tmp_path: Path) -> None:
    """By its declared length, and as it comes when none was declared."""
    options = {"page": None, "body_limit": 1_000, "import_limit": 2_000}
    with served(tmp_path / "home", options) as (client, memory):
        long = json.dumps({"text": "x" * 2_000}).encode()
        kind = {"Content-Type": "application/json"}
        declared = client.post("/v1/memories", content=long, headers=kind)
        streamed = client.post("/v1/memories", content=iter([long[:900], long[900:]]), headers=kind)
        file = {"Content-Type": "application/octet-stream"}
        imported = client.post("/v1/import", content=iter([b"x" * 1_500] * 2), headers=file)
        for response in (declared, streamed, imported):
            assert response.status_code == 413, response.text
            assert response.json()["type"].endswith("too_large")
        assert not memory.list().items


@pytest.mark.promise("rest.limits")
def test_too_many_requests_are_told_when_to_come_again(tmp_path: Path) -> None:
    """A burst is let in, the next one is refused, and after the time told one is let in again."""
    now = itertools.count()
    moment = [0.0]
    options = {"page": None, "rate": 0.5, "burst": 3, "clock": lambda: moment[0]}
    with served(tmp_path / "home", options) as (client, _):
        statuses = [client.get("/health/live").status_code for _ in range(4)]
        assert statuses == [200, 200, 200, 429]
        refused = client.get("/health/live")
        assert refused.json()["type"].endswith("rate")
        moment[0] += int(refused.headers["retry-after"])
        assert client.get("/health/live").status_code == 200
        assert client.get("/health/live").status_code == 429
    assert next(now) == 0


@pytest.mark.promise("rest.limits")
def test_a_call_that_takes_too_long_is_answered_and_finished(tmp_path: Path) -> None:
    """After its time the caller gets 504; what was begun is there all the same."""
    import threading

    options = {"page": None, "seconds": 0.05}
    held, done = threading.Event(), threading.Event()
    with served(tmp_path / "home", options) as (client, memory):

        def slow(value: object) -> None:
            assert held.wait(30)
            done.set()

        memory.on("remember", slow)
        response = client.post("/v1/memories", json={"text": "The heron is grey."})
        assert response.status_code == 504
        held.set()
        assert done.wait(30)
        assert memory.list().items[0].text == "The heron is grey."


@pytest.mark.promise("rest.health")
def test_health_tells_the_truth(tmp_path: Path) -> None:
    """All is well at first; where nothing can be written any more it is 503, and says what."""
    with served(tmp_path / "home") as (client, memory):
        memory.conversations.append("c", "user", "hello")
        seen = ok(client.get("/health"))
        assert seen["ok"]
        assert {"write", "threads", "index", "embedder", "disk"} == {
            check["name"] for check in seen["checks"]
        }
        before = version(memory, "default")
        ok(client.get("/health"))
        assert version(memory, "default") == before
        # A table that the probe writes to is taken away from under the server.
        shutil.copy(tmp_path / "home" / "anaphora.db", tmp_path / "kept.db")
        with closing(dbapi2.connect(str(memory.home / "anaphora.db"))) as truth:
            truth.execute("ALTER TABLE tombstone RENAME TO taken")
            truth.commit()
        broken = client.get("/health")
        assert broken.status_code == 503
        assert broken.headers["content-type"] == "application/json"
        failing = [check for check in broken.json()["checks"] if not check["ok"]]
        assert failing[0]["name"] == "write"
        assert ok(client.get("/health/live")) == {"ok": True}


@pytest.mark.promise("rest.metrics")
def test_metrics_hold_no_word_of_the_user(pair: Pair) -> None:
    """Requests, latencies, cache and what waits are counted; labels are routes, never texts."""
    client, memory = pair
    memory.remember("The cardamom secret.")
    for _ in range(2):
        client.post("/v1/recall", json={"query": "cardamom"})
    client.get("/v1/memories/cardamom-id")
    client.get("/cardamom-path")
    client.request("CARDAMOM", "/v1/memories")
    client.get("/v1/memories", headers=in_namespace("cardamom"))
    response = client.get("/metrics")
    text = response.text
    assert response.headers["content-type"].startswith("text/plain")
    assert "cardamom" not in text.lower()
    wanted = (
        'anaphora_requests_total{lane="memory",method="POST",route="/v1/recall",status="200"} 2.0',
        'anaphora_query_cache_total{result="hit"} 1.0',
        'anaphora_query_cache_total{result="miss"} 1.0',
        'anaphora_request_seconds_bucket{lane="memory",le="0.001",route="/v1/recall"}',
        "anaphora_embeddings_pending 0.0",
        "anaphora_jobs_pending 0.0",
    )
    for line in wanted:
        assert line in text, text
