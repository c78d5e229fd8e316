"""The tool `recall_memory`, the HTTP interface, and the request for a snapshot's status."""

from __future__ import annotations

import base64
import json
import math
from datetime import timedelta
from typing import Any

from tests.conformance.desk import Desk
from tests.conformance.preferences import PREFERRED, TESTING, VITEST, preferring
from tests.conformance.seed_003 import ELSEWHERE, SEED
from tests.conformance.shared import Tools
from tests.conformance.table import ROOT, refusal

from anaphora import Memory, RemoteMemory
from anaphora.errors import FilterError, NotOffered

__all__ = ["SEED"]

row = SEED.row

QUERY = "prefers vitest over jest"
EXAMPLE = {"query": "user testing preferences", "filters": TESTING}


@row("3, 7, 82", "the tool recall_memory is listed by the server as it is started")
def tool_listed(desk: Desk) -> str:
    assert "recall_memory" in desk.shared.tools.listed()
    return ", ".join(desk.shared.tools.listed())


@row("11-15", "its arguments: query (required), topK (3 by default), minScore, filters")
def tool_schema(desk: Desk) -> str:
    schema = desk.shared.tools.listed()["recall_memory"]
    assert schema["required"] == ["query"]
    assert schema["properties"]["topK"]["default"] == 3
    assert {"query", "topK", "minScore", "filters"} <= set(schema["properties"])
    return ", ".join(schema["properties"])


@row("12-14", "arguments of another kind are refused with a sentence")
def tool_refusals(desk: Desk) -> str:
    tools = desk.shared.tools
    bad: tuple[dict[str, Any], ...] = (
        {"topK": 0},
        {"topK": "3"},
        {"topK": 2.5},
        {"minScore": "x"},
        {"foo": 1},
    )
    sentences = [tools.refusal("recall_memory", query="vitest", **argument) for argument in bad]
    sentences.append(tools.refusal("recall_memory", topK=3))
    assert all(sentences)
    assert len(tools.call("recall_memory", query="vitest", topK=3.0)["data"]) > 0
    return sentences[-1]


@row("82-104", "{query, topK} gives {success, data[path, payload, score], timestamp}")
def tool_result(desk: Desk) -> str:
    answer = desk.shared.tools.call("recall_memory", query=QUERY, topK=3)
    assert_example(answer)
    return "that form; data also has id, text and factors"


def assert_example(answer: dict[str, Any]) -> None:
    """The result of the seed's example."""
    assert answer["success"] is True
    best = answer["data"][0]
    assert (best["path"], best["payload"]) == (PREFERRED["path"], PREFERRED["payload"])
    assert isinstance(best["score"], float)
    assert answer["timestamp"] > 1_700_000_000_000


@row("91-104 text", "a client that reads only the text content gets the result as JSON")
def tool_text(desk: Desk) -> str:
    assert_example(json.loads(desk.shared.tools.text("recall_memory", query=QUERY, topK=3)))
    return "the structured result as one line of JSON"


@row("42-51 tool", "the example of a filter, over MCP and HTTP")
def tool_filters(desk: Desk) -> str:
    answer = desk.shared.tools.call("recall_memory", topK=5, **EXAMPLE)
    assert [hit["text"] for hit in answer["data"]] == [VITEST]
    preferring(desk.memory()).close()
    client = desk.client()
    assert len(client.post("/v1/recall", json={**EXAMPLE, "top_k": 5}).json()["hits"]) == 1
    assert client.post("/v1/recall", json={}).status_code == 422
    (hit,) = desk.shared.tools.call(
        "recall_memory", query=QUERY, minScore=0.85, mode="vector", filters=TESTING
    )["data"]
    assert (hit["path"], hit["payload"]) == (PREFERRED["path"], PREFERRED["payload"])
    return "one hit each; without a query 422"


@row("14 tool", "minScore over MCP")
def tool_min_score(desk: Desk) -> str:
    tools = desk.shared.tools
    assert len(tools.call("recall_memory", query=QUERY, topK=3, minScore=0.85)["data"]) == 1
    return "0.85: one hit"


@row(
    "14 tool default",
    "no floor over MCP",
    on_purpose="docs/seeds.md#silence-when-nothing-answers",
)
def tool_floor(desk: Desk) -> str:
    tools = desk.shared.tools
    silent = tools.call("recall_memory", query=ELSEWHERE)
    assert silent["data"] == []
    assert silent["notices"]
    assert tools.call("recall_memory", query=ELSEWHERE, minScore=0)["data"]
    assert tools.call("recall_memory", query=ELSEWHERE, minConfidence=0)["data"]
    return str(silent["notices"][0])


@row("57 tool", "the tool ranks by the formula: mode vector, filters and minScore")
def tool_formula(desk: Desk) -> str:
    tools = desk.shared.tools
    asked = {"query": "vitest or jest", "filters": TESTING, "mode": "vector"}
    (hit,) = tools.call("recall_memory", **asked)["data"]
    product = hit["similarity"] * hit["decay"] * hit["reinforcement"]
    assert math.isclose(hit["score"], product, abs_tol=1e-5)
    assert tools.call("recall_memory", **asked, minScore=hit["score"] + 0.01)["data"] == []
    return f"score {hit['score']:.2f} is the product of three factors"


@row("22", "initialize is answered at once; the first recall finds a warm engine")
def background(desk: Desk) -> str:
    with desk.memory("minilm") as memory:
        preferring(memory)
        memory.ready(60)
    tools = Tools(desk.home)
    try:
        answer = tools.call("recall_memory", query=QUERY)
    finally:
        tools.close()
    assert answer["degraded"] == []
    assert answer["data"][0]["path"] == PREFERRED["path"]
    return "initialize, then a first recall, by vectors and words"


@row("65 tool", "type and reinforcement over MCP")
def tool_reinforces(desk: Desk) -> str:
    tools = desk.shared.all_tools
    stated = {"content": "The kettle is descaled in May.", "type": "procedural"}
    first, again = (tools.call("store_memory", **stated)["data"] for _ in range(2))
    assert (first["action"], again["action"]) == ("added", "reinforced")
    assert first["id"] == again["id"]
    return "store_memory: added, then reinforced"


@row("29-36, 70-78", "a JavaScript SDK", on_purpose="docs/seeds.md#no-javascript-sdk")
def no_javascript(desk: Desk) -> str:
    assert not list(ROOT.glob("clients/*/package.json"))
    paths = desk.client().get("/openapi.json").json()["paths"]
    assert {"/v1/recall", "/v1/memories"} <= set(paths)
    with RemoteMemory.connect("http://127.0.0.1:1", token="x") as remote:
        refusal(NotOffered, lambda: remote.on("cache", print))
    return "Python, HTTP (OpenAPI, from which a client can be made), MCP; cache events in process"


@row("105-109", "GET /v2/agent-state with a bearer token: the active snapshot", sockets=True)
def snapshot(desk: Desk) -> str:
    status, answer = desk.shared.device.state()
    assert (status, answer["status"]) == (200, "active")
    assert answer["payload"]
    head = answer["heads"][answer["payload"]["device"]]
    assert head["number"] >= answer["payload"]["number"] >= 1
    return f"active, entry {answer['payload']['number']}"


@row("106", "the payload returns as ciphertext, and the server has nothing else", sockets=True)
def ciphertext(desk: Desk) -> str:
    device = desk.shared.device
    _, answer = device.state()
    sealed = base64.b64decode(answer["payload"]["sealed"])
    content = b"".join(
        path.read_bytes() for path in device.server.home.rglob("*") if path.is_file()
    )
    for word in (b"Zanzibar", b"vitest over", b"user.preferences", b"harpsichord", b"conv_1"):
        assert word not in json.dumps(answer).encode() + sealed
        assert word not in content
    return f"{len(sealed)} bytes"


@row("106 devices", "the local SDK decrypts: another device has all of it", sockets=True)
def second_device(desk: Desk) -> str:
    device = desk.shared.device
    key = device.memory.sync.export_key()
    other = desk.memory()
    other.sync.init(device.server.url, token=device.server.token, key=key, name="desktop")
    other.sync.now()
    assert other.recall("vitest jest")[0].payload == {"framework": "vitest"}
    thread = other.conversations.get("conv_1")
    assert thread is not None
    assert [turn.text for turn in thread.turns] == ["the harpsichord is tuned"]
    return "the memory with its payload, and the conversation"


@row("106 payload", "the owner's key opens the payload of a query_hash in one call", sockets=True)
def payload_opened(desk: Desk) -> str:
    device = desk.shared.device
    _, answer = device.state()
    opened = device.memory.sync.open(answer["payload"])
    assert "Zanzibar" in repr(opened)
    assert "vitest" in repr(opened)
    return "memory.sync.open(payload)"


@row("108", "project_id and query_hash", sockets=True)
def query_hash(desk: Desk) -> str:
    device = desk.shared.device
    assert device.state(digest="5e883")[1]["payload"] is None
    status, whole = device.server.ask("GET", f"/v2/agent-state?project_id={device.project}")
    assert status == 200
    assert whole["payload"]["sealed"]
    assert device.server.ask("GET", "/v2/agent-state")[0] == 422
    return "no entry has another digest; without a hash the latest entry; without a project 422"


@row(
    "108 query",
    "query_hash is the hash of a query",
    on_purpose="docs/seeds.md#query_hash-is-of-a-path",
    sockets=True,
)
def hash_of_a_path(desk: Desk) -> str:
    device = desk.shared.device
    assert device.state(device.memory.sync.hash_of(QUERY))[1]["payload"] is None
    for name in (PREFERRED["path"], "conv_1"):
        assert device.state(device.memory.sync.hash_of(name))[1]["payload"], name
    return "a path or a conversation id has entries, the words of a query have none"


@row("109", "a bearer token", sockets=True)
def bearer(desk: Desk) -> str:
    server = desk.shared.device.server
    for path in (f"/v2/agent-state?project_id={desk.shared.device.project}", "/v1/memories"):
        statuses = [server.ask("GET", path, token=token)[0] for token in ("", None, "wrong")]
        assert statuses == [200, 401, 401], (path, statuses)
    return "with 200, without or with another 401"


@row("105 rollback", "snapshots can be rolled back", sockets=True)
def rollback(desk: Desk) -> str:
    device = desk.shared.device
    with Memory.open(desk.home, embedder="hashing", warm=False, clock=None) as memory:
        memory.sync.init(device.server.url, token=device.server.token, name="roller")
        before = memory.remember("The zebra is fed at nine.", path="zoo.zebra")
        memory.sync.now()
        moment = memory.get(before.id).created_at + timedelta(microseconds=1)
        memory.remember("The zebra is fed at ten.", path="zoo.zebra")
        memory.sync.now()
        report = memory.sync.rollback(moment, dry_run=True)
    return str(report)[:120]


@row("15 refused", "a filter that means nothing is refused")
def filter_refused(desk: Desk) -> str:
    memory = preferring(desk.memory())
    return refusal(FilterError, lambda: memory.recall("x", filters={"tags": {"near": "x"}}))
