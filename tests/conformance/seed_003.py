"""Recall of lasting memories: local, warm, filtered, and ranked by reinforcement and decay."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

from tests.conformance.desk import Desk, Placed
from tests.conformance.table import Seed, refusal

from anaphora import Memory
from anaphora.core.config import load_settings
from anaphora.errors import AnaphoraError, InvalidInput
from anaphora.values.memories import MemoryType

SEED = Seed("003", "recall of lasting memories")
row = SEED.row

VITEST = "The user prefers vitest over jest."
PREFERRED: dict[str, Any] = {
    "path": "user.preferences.testing",
    "payload": {"framework": "vitest"},
    "category": "development",
    "tags": ("testing",),
}
TESTING: dict[str, Any] = {
    "AND": [{"category": "development"}, {"tags": {"contains": "testing"}}],
}


def preferring(desk: Desk, embedder: Any = "hashing", **options: Any) -> Memory:
    """A memory that knows a preference and two things beside it."""
    memory = desk.memory(embedder, **options)
    memory.remember(VITEST, **PREFERRED)
    memory.remember("The user drinks tea.", category="kitchen", tags=("drinks",))
    memory.remember("Testing of the turbine is on Monday.", category="plant", tags=("testing",))
    return memory


@row("5, 7", "a search without a network round trip")
def offline(desk: Desk) -> str:
    # The suite runs with sockets off; tests/test_offline.py watches the kernel.
    assert preferring(desk).recall("vitest or jest")[0].text == VITEST
    return "answered with sockets off"


@row("5 p99", "in under 25 ms at the 99th percentile")
def fast(desk: Desk) -> str:
    del desk
    return "measured by `python -m bench --only memory_speed` (bench/RESULTS.md), not by a test"


@row("7", "LanceDB", on_purpose=("docs/decisions/0016-scanning-vectors.md", "LanceDB"))
def lancedb(desk: Desk) -> str:
    settings = load_settings(desk.home, None)
    assert settings.exact_cap > 0
    return f"an exact scan up to {settings.exact_cap:,} vectors, LanceDB beyond"


@row("12", "query is required")
def query_required(desk: Desk) -> str:
    answer = desk.client().post("/v1/recall", json={})
    assert answer.status_code == 422
    memory = preferring(desk)
    assert not memory.recall("  ")
    return "422 without; a blank one finds nothing and says so"


@row("13", "topK, 3 by default")
def top_k(desk: Desk) -> str:
    memory = desk.memory()
    for place in range(6):
        memory.remember(f"The turbine number {place} is cooled by water.")
    assert len(memory.recall("turbine cooled by water")) == 3
    assert len(memory.recall("turbine cooled by water", top_k=5)) == 5
    return "3; top_k 5: 5"


@row("14", "minScore on the composite score")
def min_score(desk: Desk) -> str:
    memory = preferring(desk)
    best = memory.recall("vitest over jest")[0].score
    assert memory.recall("vitest over jest", min_score=best)
    assert not memory.recall("vitest over jest", min_score=best + 0.01)
    refusal(InvalidInput, lambda: memory.recall("vitest", min_score=math.nan))
    return f"at the score {best:.2f} it comes, above it goes; nan is refused"


@row("14 default", "no floor", on_purpose=("docs/ranking.md", "Silence"))
def floor(desk: Desk) -> str:
    with preferring(desk):
        pass
    asked = "zebra migration in Kenya"
    assert desk.mcp("recall_memory", query=asked)["data"] == []
    assert desk.mcp("recall_memory", query=asked, minScore=0)["data"]
    with Memory.open(desk.folder / "silent") as memory:
        memory.remember("The user prefers vitest over jest.")
        assert memory.ready(60)
        assert not memory.recall(asked).hits
        assert memory.recall(asked, min_score=0).hits
    return "silence where nothing seems to answer, on every surface; min_confidence 0 lifts it"


@row("15", "filters on tags, lineages, categories")
def filters(desk: Desk) -> str:
    memory = preferring(desk)
    parent = memory.recall("vitest")[0].id
    child = memory.remember("Vitest runs in watch mode.", parent=parent)
    assert [h.id for h in memory.recall("vitest", filters={"parent": parent})] == [child.id]
    assert len(memory.recall("x", filters={"tags": {"contains": "drinks"}})) == 1
    refusal(AnaphoraError, lambda: memory.remember("A stray.", parent="nobody"))
    return "parent, tags, category, path, payload; one that leaves one memory gets it"


@row("15 lineages", "a whole lineage in one filter, to any depth")
def lineages(desk: Desk) -> str:
    memory = desk.memory()
    first = memory.remember("The alpha fact.").id
    second = memory.remember("The beta fact.", parent=first).id
    third = memory.remember("The gamma fact.", parent=second).id
    memory.remember("The delta fact.")
    wanted: tuple[tuple[Any, set[str]], ...] = (
        ({"descendant_of": first}, {second, third}),
        ({"ancestor_of": third}, {first, second}),
        (first, {first, second, third}),
    )
    for lineage, ids in wanted:
        hits = memory.recall("fact", top_k=10, filters={"lineage": lineage})
        assert {hit.id for hit in hits} == ids
    return "descendants, ancestors, and both with the memory itself"


@row("19-21", "eager warming; ready()")
def ready(desk: Desk) -> str:
    memory = preferring(desk, "minilm", warm=True)
    assert memory.ready(60)
    return "True"


@row("22", "background loading while the client registers")
def background(desk: Desk) -> str:
    with preferring(desk):
        pass
    assert desk.mcp("recall_memory", query="vitest over jest")["success"]
    return "initialize, then a first recall"


@row("26", "an LRU cache of 256 query vectors")
def cache_of_queries(desk: Desk) -> str:
    memory = preferring(desk)
    told: list[str] = []
    memory.on("cache", lambda event: told.append(event.type))
    for question in [f"question {n}" for n in range(257)]:
        memory.recall(question)
    told.clear()
    memory.recall("question 256")
    memory.recall("question 1")
    memory.recall("question 0")
    assert told == ["hit", "hit", "miss"]
    return "of 257 questions the least recently used one went"


@row("28", "repeated or similar queries bypass the model")
def bypass(desk: Desk) -> str:
    memory = preferring(desk)
    told: list[str] = []
    memory.on("cache", lambda event: told.append(event.type))
    for question in ("vitest over jest", "vitest over jest", " Vitest  over JEST "):
        memory.recall(question)
    assert told == ["miss", "hit", "hit"]
    return "the same, and in another case and spacing: hits"


@row("29-32", 'memory.on("cache", e => e.type, e.query)')
def observed(desk: Desk) -> str:
    memory = preferring(desk)
    told: list[Any] = []
    memory.on("cache", told.append)
    memory.recall("vitest over jest")
    assert (told[0].type, told[0].query) == ("miss", "vitest over jest")
    return "type and query"


@row("33-36", "cacheSize")
def cache_size(desk: Desk) -> str:
    memory = preferring(desk, cache_size=1)
    told: list[str] = []
    memory.on("cache", lambda event: told.append(event.type))
    for question in ("one", "two", "one"):
        memory.recall(question)
    assert told == ["miss", "miss", "miss"]
    refusal(InvalidInput, lambda: Memory.open(desk.home, cache_size="x"))  # type: ignore[arg-type]
    return "cache_size=1 keeps one; a word is refused"


@row("40", "metadata is decrypted before a filter is applied")
def sealed(desk: Desk) -> str:
    memory = preferring(desk, encrypt="file")
    assert [h.text for h in memory.recall("preference", filters=TESTING)] == [VITEST]
    words = (b"vitest", b"testing", b"development", b"user.preferences")
    bytes_on_disk = b"".join(p.read_bytes() for p in desk.home.rglob("*") if p.is_file())
    assert not [word for word in words if word in bytes_on_disk]
    return "the filter answers; no tag, category, path or word in any file"


@row("42-51", "the example of a filter")
def example_filter(desk: Desk) -> str:
    with preferring(desk) as memory:
        hits = memory.recall("user testing preferences", top_k=5, filters=TESTING)
        assert [hit.text for hit in hits] == [VITEST]
    answer = desk.client().post(
        "/v1/recall", json={"query": "user testing preferences", "filters": TESTING}
    )
    assert len(answer.json()["hits"]) == 1
    found = desk.mcp("recall_memory", query="user testing preferences", filters=TESTING, minScore=0)
    assert len(found["data"]) == 1
    return "one hit, in Python, HTTP and MCP"


@row("55", "8 × topK are fetched by distance and ranked again")
def over_fetched(desk: Desk) -> str:
    texts = {f"memory number {n}": 0.9 - n / 100 for n in range(20)}
    memory = desk.memory(Placed(texts))
    for text in texts:
        memory.remember(text)
    for _ in range(30):
        memory.remember("memory number 8")
    first = [memory.recall("any", top_k=k, mode="vector")[0].text for k in (1, 2)]
    assert first == ["memory number 0", "memory number 8"]
    return "one at rank 9, restated 30 times: not seen with top_k 1, first with 2"


def product(desk: Desk) -> Any:
    """A hit of the seed's formula: restated three times, 28 days ago."""
    memory = desk.memory()
    for _ in range(4):
        memory.remember("The turbine is cooled by water.")
    desk.later(days=28)
    return memory.recall("how is the turbine cooled", mode="vector")[0]


@row("57", "score = similarity × decay × reinforcement")
def formula(desk: Desk) -> str:
    hit = product(desk)
    assert math.isclose(hit.score, hit.similarity * hit.decay * hit.reinforcement, rel_tol=1e-6)
    return f"{hit.similarity:.4f} × {hit.decay:.4f} × {hit.reinforcement:.4f} = {hit.score:.4f}"


@row("57 default", "the same", on_purpose=("docs/ranking.md", "similarity"))
def formula_by_default(desk: Desk) -> str:
    memory = desk.memory()
    memory.remember("The turbine is cooled by water.", type="episodic")
    desk.later(days=365)
    hit = memory.recall("how is the turbine cooled")[0]
    assert hit.decay >= 0.7
    return f"words count in the similarity; decay never below 0.7 ({hit.decay:.2f} after a year)"


@row("59", "similarity = max(0, 1 - d / 2)")
def similarity(desk: Desk) -> str:
    memory = desk.memory(Placed({"near": 0.8, "away": -0.5}))
    memory.remember("near")
    memory.remember("away")
    found = {h.text: h.similarity for h in memory.recall("any", mode="vector", filters={})}
    assert math.isclose(found["near"], 0.8, abs_tol=1e-3)
    assert found.get("away", 0.0) == 0.0
    return "the cosine; 0 for a negative one"


@row("60", "half-lives of 14, 90 and 180 days")
def half_lives(desk: Desk) -> str:
    memory = desk.memory()
    expected: dict[MemoryType, int] = {"episodic": 14, "semantic": 90, "procedural": 180}
    for kind in expected:
        memory.remember(f"The turbine is cooled, {kind} said.", type=kind)
    desk.later(days=28)
    decays = {h.type: h.decay for h in memory.recall("turbine cooled", mode="vector")}
    assert all(math.isclose(decays[k], 0.5 ** (28 / d), rel_tol=1e-4) for k, d in expected.items())
    return ", ".join(f"{kind} {decays[kind]:.4f}" for kind in expected) + " after 28 days"


@row(
    "60 override",
    "SOVSEAL_DECAY_EPISODIC and its kin",
    on_purpose=("docs/reference/configuration.md", "ANAPHORA_DECAY_EPISODIC"),
)
def override(desk: Desk) -> str:
    settings = load_settings(desk.home, None, environ={"ANAPHORA_DECAY_EPISODIC": "10"})
    assert settings.half_lives.episodic == 10
    bad = {"ANAPHORA_DECAY_EPISODIC": "14d"}
    return refusal(AnaphoraError, lambda: load_settings(desk.home, None, environ=bad))


@row("61", "reinforcement = 1 + ln(1 + n)")
def reinforcement(desk: Desk) -> str:
    hit = product(desk)
    assert math.isclose(hit.reinforcement, 1 + math.log(4), rel_tol=1e-6)
    return f"{hit.reinforcement:.4f} for n = 3"


@row("63", "a restated older fact can out-rank a fresher one")
def outranks(desk: Desk) -> str:
    memory = desk.memory(Placed({"the old": 0.7, "the fresh": 0.9}))
    for _ in range(13):
        memory.remember("the old")
    desk.later(days=30)
    memory.remember("the fresh")
    texts = [h.text for h in memory.recall("any", mode="vector")]
    assert texts == ["the old", "the fresh"]
    return "restated 12 times, 30 days old: first"


@row("63 results", "{ id, text, score }, descending")
def results(desk: Desk) -> str:
    hits = preferring(desk).recall("testing of the turbine or vitest")
    assert [h.score for h in hits] == sorted((h.score for h in hits), reverse=True)
    assert all(h.id and h.text for h in hits)
    return "id, text, score, and the factors"


@row("65", "type and reinforce_count are set")
def counted(desk: Desk) -> str:
    memory = desk.memory()
    done = [memory.remember("The turbine is cooled by water.") for _ in range(4)][-1]
    record = memory.get(done.id)
    assert (record.type, record.reinforce_count) == ("semantic", 3)
    return "semantic; 3 after four times"


@row("70-81", "the SDK example: minScore 0.85")
def example(desk: Desk) -> str:
    memory = preferring(desk, "minilm")
    (hit,) = memory.recall("prefers vitest over jest", top_k=3, min_score=0.85)
    assert (hit.path, hit.payload) == ("user.preferences.testing", {"framework": "vitest"})
    return f"score {hit.score:.2f}"


@row("82-89", "the tool's arguments {query, topK}")
def tool_arguments(desk: Desk) -> str:
    with preferring(desk):
        pass
    assert "recall_memory" in desk.mcp_tools()
    assert desk.mcp("recall_memory", query="prefers vitest over jest", topK=3)["data"]
    return "listed as the server is started, and accepted from the official client"


@row("91-104", "the tool's result {success, data[path, payload, score], timestamp}")
def tool_result(desk: Desk) -> str:
    with preferring(desk):
        pass
    found = desk.mcp("recall_memory", query="prefers vitest over jest")
    assert found["success"]
    assert {"path", "payload", "score"} <= set(found["data"][0])
    assert found["timestamp"] > 1_700_000_000_000
    return "that form; data also has id, text and factors"


@row("91-104 text", "a client that reads only the text content gets the result as JSON")
def tool_text(desk: Desk) -> str:
    with preferring(desk):
        pass
    answer = json.loads(desk.mcp_text("recall_memory", query="prefers vitest over jest", topK=3))
    best = answer["data"][0]
    assert answer["success"] is True
    assert (best["path"], best["payload"]) == (PREFERRED["path"], PREFERRED["payload"])
    assert isinstance(best["score"], float)
    assert answer["timestamp"] > 1_700_000_000_000
    return "the structured result as one line of JSON"


@row("57 tool", "the tool ranks by the formula: mode vector, filters and minScore")
def tool_formula(desk: Desk) -> str:
    with preferring(desk) as memory:
        memory.remember(VITEST, **PREFERRED)
        (wanted,) = memory.recall("vitest or jest", filters=TESTING, mode="vector")
    asked = {"query": "vitest or jest", "filters": TESTING, "mode": "vector"}
    (hit,) = desk.mcp("recall_memory", **asked)["data"]
    assert hit["id"] == wanted.id
    assert math.isclose(hit["reinforcement"], 1 + math.log(2), abs_tol=1e-5)
    product = hit["similarity"] * hit["decay"] * hit["reinforcement"]
    assert math.isclose(hit["score"], product, abs_tol=1e-5)
    assert desk.mcp("recall_memory", **asked, minScore=hit["score"] + 0.01)["data"] == []
    return f"score {hit['score']:.2f} is the product of its three factors"


def agent_state(desk: Desk, query: str = "") -> Any:
    """The answer to the seed's request, of a server that keeps a device's log."""
    folder = desk.folder / "remote"
    folder.mkdir(exist_ok=True)
    with Memory.open(desk.folder / "device", embedder="hashing") as device:
        device.sync.init(str(folder))
        device.remember("Zanzibar prefers quiet mornings", path="guest.habit")
        device.sync.now()
        project, digest = device.sync.status().project, device.sync.hash_of("guest.habit")
    entries = [json.loads(file.read_bytes()) for file in folder.rglob("*.entry")]
    client = desk.client()
    client.post("/v2/agent-state", json={"project_id": project, "entries": entries})
    place = f"/v2/agent-state?project_id={project}&query_hash={query or digest}"
    return client.get(place).json()


@row("105-108", "GET /v2/agent-state: the status of the active snapshot")
def snapshot(desk: Desk) -> str:
    answer = agent_state(desk)
    (head,) = answer["heads"].values()
    assert answer["status"] == "active"
    assert head["number"] == answer["payload"]["number"] == 2
    return "active, 2 entries: who the device is, and what it noticed"


@row("106", "the payload returns as ciphertext")
def ciphertext(desk: Desk) -> str:
    answer = agent_state(desk)
    sealed = base64.b64decode(answer["payload"]["sealed"])
    assert b"Zanzibar" not in sealed
    assert "guest.habit" not in json.dumps(answer)
    return f"{len(sealed)} bytes"


@row("106 opens", "the local SDK decrypts what the request returned, in one call")
def opens(desk: Desk) -> str:
    answer = agent_state(desk)
    with Memory.open(desk.folder / "device", embedder="hashing") as device:
        items = device.sync.open(answer).items
    (text,) = [item.values["text"] for item in items if item.kind == "memory"]
    assert text == "Zanzibar prefers quiet mornings"
    refusal(AnaphoraError, lambda: desk.memory().sync.open(answer))
    return "memory.sync.open(answer)"


@row("108", "project_id and query_hash")
def query_hash(desk: Desk) -> str:
    assert agent_state(desk, query="5e883")["payload"] is None
    return "no entry has that digest"


@row("109", "a bearer token")
def bearer(desk: Desk) -> str:
    token = desk.memory().tokens.create("reader")
    client = desk.client(require_token=True)
    codes = [
        client.get("/v1/memories", headers=headers).status_code
        for headers in ({}, {"Authorization": f"Bearer {token.secret}"})
    ]
    assert codes == [401, 200]
    return "without 401, with 200"
