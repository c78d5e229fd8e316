"""One question, one JSON: the same scenario through every surface.

Each surface opens one and the same home, which stands still while it is asked, so that ids and
times are equal too and nothing needs to be left out of the comparison but the factors' last digits.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.testclient import TestClient
from tests.as_json import as_json
from tests.commands import program
from tests.mcp_client import call, connected, refusal
from tests.tokens import LEAST_BUDGET

from anaphora import AsyncMemory, Memory
from anaphora.errors import InvalidInput, NotFound
from anaphora.testing import server_app

NOBODY = {"tags": {"contains": "nobody"}}
MEMORY = "which test framework does the user prefer, vitest or jest?"
FILTER = {"AND": [{"category": "development"}, {"tags": {"contains": "testing"}}]}
TURN = "which port does the staging database listen on?"
FOCUS = "where is fly_kestrel, and which port is decided?"
DEEP = "how often did the user name the port of staging?"
# What hits over MCP leave out where it is the usual value, or only explains their order.
UNSAID = {"current", "type", "similarity", "reinforcement", "related", "read"}
# What depends on the moment of asking, or names one asking.
MOMENTARY = {"decay", "score", "trace_id", "gap_id", "seconds", "signals", "factors", "cost"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with memories, turns, notes and a project in it."""
    place = tmp_path / "user" / "aviary"
    place.mkdir(parents=True)
    (place / "pyproject.toml").write_text('[project]\nname = "aviary"\n')
    (place / "kestrel.py").write_text("def fly_kestrel(speed):\n    return speed\n")
    home = tmp_path / "user" / "home"
    with Memory.open(home, embedder="hashing") as memory:
        memory.remember(
            "The user prefers vitest over jest.",
            path="user.preferences.testing",
            payload={"framework": "vitest"},
            tags=["testing"],
            category="development",
        )
        memory.remember("The user drinks tea.")
        for text in ("The staging database listens on port 5433.", "Port 5433 again?", "Yes."):
            memory.conversations.append_user("chat", text)
        memory.index_project(place)
        memory.observe("fly_kestrel is called with the port 5433.", kind="decision")
        memory.ready()
    return home


def asked(memory: Memory) -> dict[str, Any]:
    """The answers of the facade itself."""
    return {
        "recall": memory.recall(MEMORY, filters=FILTER, min_score=0.5),
        "turns": memory.recall_conversation("chat", TURN, top_k=2),
        "context": memory.recall_context(FOCUS),
        "deep": memory.deep_recall(DEEP),
    }


async def asked_softly(home: Path) -> dict[str, Any]:
    """The same through the asynchronous facade."""
    async with AsyncMemory.open(home, embedder="hashing") as memory:
        return {
            "recall": await memory.recall(MEMORY, filters=FILTER, min_score=0.5),
            "turns": await memory.recall_conversation("chat", TURN, top_k=2),
            "context": await memory.recall_context(FOCUS),
            "deep": await memory.deep_recall(DEEP),
        }


def commanding(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What a command did."""
    return subprocess.run(
        [*program(), "--home", home, *words, "--json"],
        capture_output=True,
        text=True,
        check=False,
        env={
            "ANAPHORA_EMBEDDER": "hashing",
            "ANAPHORA_READER": "off",
            "PATH": "",
            "HOME": str(home.parent),
        },
    )


def told(home: Path, *words: str) -> Any:
    """The JSON of a command."""
    done = commanding(home, *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def commanded(home: Path) -> dict[str, Any]:
    """The same from the command line."""
    return {
        "recall": told(
            home, "memory", "recall", MEMORY, "--filters", json.dumps(FILTER), "--min-score", "0.5"
        ),
        "turns": told(home, "conversation", "recall", TURN, "--in", "chat", "--top-k", "2"),
        "context": told(home, "project", "recall", FOCUS),
        "deep": told(home, "deep", DEEP),
    }


async def served(home: Path) -> dict[str, Any]:
    """The same by the Model Context Protocol."""
    async with connected(home) as session:
        found = {
            "recall": await call(session, "recall_memory", question=MEMORY, filters=FILTER),
            "turns": await call(
                session, "recall_conversation", question=TURN, conversationId="chat", topK=2
            ),
            "context": await call(session, "recall_context", focus=FOCUS),
            "deep": await call(session, "deep_recall", question=DEEP),
        }
    for name in ("recall", "turns"):
        found[name] = {"hits": found[name]["data"], "degraded": found[name]["degraded"]}
    for name in ("context", "deep"):
        found[name] = found[name]["data"]
    return found


def comparable(value: Any) -> Any:
    """Without what depends on the moment of asking."""
    if isinstance(value, dict):
        return {k: comparable(v) for k, v in value.items() if k not in MOMENTARY}
    return [comparable(one) for one in value] if isinstance(value, list) else value


def requested(home: Path) -> dict[str, Any]:
    """The same over HTTP."""
    with Memory.open(home, embedder="hashing") as memory:
        app = server_app(memory, page=None)
        with TestClient(app, base_url="http://127.0.0.1:7411") as client:

            def post(path: str, **body: Any) -> Any:
                answer = client.post(f"/v1/{path}", json=body)
                assert answer.status_code == 200, answer.text
                return answer.json()

            return {
                "recall": post("recall", question=MEMORY, filters=FILTER, min_score=0.5),
                "turns": post(
                    "conversations/recall", question=TURN, conversation_id="chat", top_k=2
                ),
                "context": post("context/recall", focus=FOCUS),
                "deep": post("deep", question=DEEP),
            }


@pytest.mark.promise("surfaces.agree")
def test_every_surface_gives_the_same_json(home: Path) -> None:
    """SDK, AsyncMemory, command line, MCP and REST give the same JSON for the same questions.

    Over MCP hits come without empty fields.
    """
    with Memory.open(home, embedder="hashing") as memory:
        wanted = comparable(as_json(asked(memory)))
    assert [hit["path"] for hit in wanted["recall"]["hits"]] == ["user.preferences.testing"]
    assert len(wanted["turns"]["hits"]) == 2
    assert wanted["context"]["primary_targets"]
    assert wanted["context"]["memories"]
    assert wanted["deep"]["sources"]
    assert comparable(as_json(asyncio.run(asked_softly(home)))) == wanted
    assert comparable(commanded(home)) == wanted
    by_mcp = comparable(anyio.run(served, home))
    for name in ("recall", "turns"):
        hits = by_mcp[name]["hits"]
        for hit, whole in zip(hits, wanted[name]["hits"], strict=True):
            assert {n for n in whole.keys() - hit.keys() if whole[n]} <= UNSAID
            hit |= {n: whole[n] for n in whole.keys() - hit.keys()}
    assert by_mcp == wanted
    assert comparable(requested(home)) == wanted


@pytest.mark.promise("surfaces.agree")
def test_one_search_finds_the_same_everywhere(home: Path) -> None:
    """The list over everything has the same hits in the same order on every surface."""
    question = "which port, and who calls fly_kestrel?"
    with Memory.open(home, embedder="hashing") as memory:
        wanted = [(hit.kind, hit.id) for hit in memory.search(question)]
        app = server_app(memory, page=None)
        with TestClient(app, base_url="http://127.0.0.1:7411") as client:
            posted = client.post("/v1/search", json={"question": question}).json()["hits"]

    async def by_tool() -> Any:
        async with connected(home) as session:
            return await call(session, "recall", question=question, topK=8)

    async def softly() -> Any:
        async with AsyncMemory.open(home, embedder="hashing") as memory:
            return [(hit.kind, hit.id) for hit in await memory.search(question)]

    def pairs(hits: list[dict[str, Any]]) -> list[tuple[str, str]]:
        return [(hit["kind"], hit["id"]) for hit in hits]

    assert {kind for kind, _ in wanted} >= {"turn", "note", "file"}
    assert asyncio.run(softly()) == wanted
    assert pairs(posted) == wanted
    assert pairs(told(home, "recall", question, "--top-k", "8")["hits"]) == wanted
    assert pairs(anyio.run(by_tool)["data"]) == wanted


def _refused_by_command(home: Path, *words: str) -> bool:
    done = subprocess.run(
        [*program(), "--home", home, *words, "--json"],
        capture_output=True,
        text=True,
        check=False,
        env={
            "ANAPHORA_EMBEDDER": "hashing",
            "ANAPHORA_READER": "off",
            "PATH": "",
            "HOME": str(home.parent),
        },
    )
    assert done.returncode == 0 or "budget" in done.stderr, done.stderr
    return done.returncode != 0


@pytest.mark.promise("surfaces.agree")
def test_the_least_budget_is_one(home: Path) -> None:
    """Every surface takes the same least budget for a package, and refuses one token less."""
    refused: dict[str, list[bool]] = {}
    budgets = (LEAST_BUDGET - 1, LEAST_BUDGET)
    with Memory.open(home, embedder="hashing") as memory:

        def asked_with(budget: int, ask: Callable[..., object]) -> bool:
            try:
                ask(FOCUS, budget=budget)
            except InvalidInput as error:
                return error.what == "budget"
            return False

        refused["package"] = [asked_with(budget, memory.recall_context) for budget in budgets]
        refused["warm-up"] = [asked_with(budget, memory.warm_up) for budget in budgets]
        app = server_app(memory, page=None)
        with TestClient(app, base_url="http://127.0.0.1:7411") as client:
            posted = [
                client.post("/v1/context/recall", json={"focus": FOCUS, "budget": budget})
                for budget in budgets
            ]
            got = [client.get("/v1/warm-up", params={"budget": budget}) for budget in budgets]
            refused["POST"] = [one.status_code == 422 for one in posted]
            refused["GET"] = [one.status_code == 422 for one in got]
    for name, words in (("command", ("recall", FOCUS)), ("command warm-up", ("warm-up",))):
        refused[name] = [
            _refused_by_command(home, "project", *words, "--budget", str(budget))
            for budget in budgets
        ]

    async def scenario() -> None:
        async with connected(home) as session:
            refused["tool"] = [
                bool(
                    (
                        await session.call_tool("recall_context", {"focus": FOCUS, "budget": one})
                    ).is_error
                )
                for one in budgets
            ]

    anyio.run(scenario)
    page = resources.files("anaphora.surfaces.web").joinpath("views/project.js").read_text()
    assert f'name: "budget", min: {LEAST_BUDGET},' in page
    assert refused == {name: [True, False] for name in refused}


@pytest.mark.promise("surfaces.agree")
@pytest.mark.promise("calls.not_found")
def test_writing_and_forgetting_agree(tmp_path: Path) -> None:
    """A restatement is told alike by every surface, and forgetting what is not there refused."""
    home = tmp_path / "user" / "home"
    home.parent.mkdir()
    text = "The user drinks tea."
    with Memory.open(home, embedder="hashing") as memory:
        memory.remember(text)
        remembered = [as_json(memory.remember(text))]
        with pytest.raises(NotFound) as missing:
            memory.forget("none")
        forgotten = [as_json(memory.forget(filters=NOBODY))]
        with TestClient(server_app(memory, page=None), base_url="http://127.0.0.1:7411") as client:
            remembered.append(client.post("/v1/memories", json={"text": text}).json())
            forgotten.append(client.post("/v1/forget", json={"filters": NOBODY}).json())
            refused = [
                client.post("/v1/forget", json={"id": "none"}),
                client.delete("/v1/memories/none"),
            ]
    assert [answer.status_code for answer in refused] == [404, 404]
    said = [answer.json()["detail"] for answer in refused]
    remembered.append(told(home, "remember", text))
    forgotten.append(told(home, "forget", "--filters", json.dumps(NOBODY)))
    done = commanding(home, "forget", "none")
    assert done.returncode == 3
    message, _, step = done.stderr.removeprefix("anaphora: ").partition("\n  next: ")
    assert "anaphora list" in step
    said.append(message)

    async def scenario() -> None:
        async with connected(home, "--tools", "all") as session:
            remembered.append((await call(session, "store_memory", content=text))["data"])
            forgotten.append((await call(session, "forget", filters=NOBODY))["data"])
            said.append(await refusal(session, "forget", id="none"))

    anyio.run(scenario)
    assert remembered[0]["action"] == "reinforced"
    assert all(one == remembered[0] for one in remembered)
    assert forgotten == [{"count": 0, "surviving": [], "ids": [], "more": 0}] * 4
    assert set(said) == {str(missing.value)} == {"no memory with id 'none'"}
