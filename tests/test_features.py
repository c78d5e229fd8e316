"""The seam for features: one more is on every surface, and without one the others work."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.stickers.feature import FEATURE as STICKERS
from tests.stickers.surfaces import stickers_of

from anaphora import Memory, keys
from anaphora.container.feature import only, registered, search_kinds
from anaphora.errors import FeatureLeftOut, InvalidInput
from anaphora.surfaces.mcp_server.resources import all_resources
from anaphora.surfaces.mcp_server.tools import all_tools
from anaphora.testing import open_memory, run_cli, server_app

pytestmark = pytest.mark.internal

TEXT = "The heron on the lighthouse"
FEATURES = registered()
KINDS = ("memory", "note", "turn", "file", "document", "tool_call")


@pytest.fixture
def _stickers() -> Iterator[None]:
    with only(*FEATURES, STICKERS):
        yield


@pytest.mark.promise("package.features")
@pytest.mark.usefixtures("_stickers")
def test_a_new_feature_is_on_every_surface(tmp_path: Path) -> None:
    """A folder and its registration give it a table, a lane, commands, a check and an export."""
    home = tmp_path / "home"
    # A home that was made before the feature gets its table with the next write.
    with only(*FEATURES), open_memory(home) as before:
        before.remember("The ferry leaves at nine.")
    assert run_cli("sticker", "add", TEXT, home=home).exit_code == 0
    assert TEXT in run_cli("sticker", "list", home=home).stdout
    assert "sticker" in run_cli("--help").stdout
    found = json.loads(run_cli("recall", "where is the heron?", "--json", home=home).stdout)
    assert [hit["kind"] for hit in found["hits"]][:1] == ["sticker"]
    assert "sticker" in run_cli("doctor", home=home).stdout
    with open_memory(home) as memory:
        hits = memory.search("where is the heron?")
        assert [(hit.kind, hit.text) for hit in hits][:1] == [("sticker", TEXT)]
        assert memory.search("heron", kinds=("sticker",))
        assert not memory.search("heron", kinds=("memory",))
        assert search_kinds() == (*KINDS[:-1], "sticker", "tool_call")
        with pytest.raises(InvalidInput, match=", ".join(search_kinds())):
            memory.search("heron", kinds=("stamp",))
        assert {check.name: check.detail for check in memory.doctor()}["stickers"] == "1 stickers"
        with TestClient(server_app(memory, page=None), base_url="http://localhost") as client:
            assert client.get("/v1/stickers").json() == [TEXT]
            # What the description of the call says of its parameters holds for its route.
            assert client.get("/v1/stickers", params={"word": "gull"}).json() == []
            assert client.get("/v1/stickers", params={"limit": 0}).status_code == 422
            answer = client.post("/v1/search", json={"query": "heron", "kinds": ["sticker"]})
            assert answer.json()["hits"][0]["text"] == TEXT
            described = client.get("/openapi.json").json()
            assert "/v1/stickers" in described["paths"]
            kind = described["components"]["schemas"]["SearchHit"]["properties"]["kind"]
            assert kind["enum"] == list(search_kinds())
        recall = all_tools()["recall"]
        assert recall.parameters["kinds"]["items"]["enum"] == list(search_kinds())
        assert all_tools()["list_stickers"].call(memory, {"word": "heron", "limit": 2}, None).data  # type: ignore[arg-type]
        memory.export(tmp_path / "export.jsonl")
        backup = memory.backup(tmp_path / "home.backup")
    with open_memory(tmp_path / "other") as other:
        for _ in range(2):
            assert other.import_(tmp_path / "export.jsonl").problems == ()
            assert [row["text"] for row in stickers_of(other).rows()] == [TEXT]
    Memory.restore(backup.path, tmp_path / "restored")
    assert TEXT in run_cli("sticker", "list", home=tmp_path / "restored").stdout


@pytest.mark.promise("package.features")
@pytest.mark.usefixtures("_stickers")
def test_what_a_feature_keeps_is_sealed_and_deleted(tmp_path: Path) -> None:
    """Its columns are encrypted with the home, and its rows go with their namespace."""
    home = tmp_path / "home"
    with open_memory(home) as memory:
        stickers_of(memory).add(TEXT)
        other = memory.scoped("other")
        stickers_of(other).add("A gull")
        memory.delete_namespace("other")
        assert not stickers_of(memory.scoped("other")).rows()
    keys.encrypt(home, kept="file")
    assert all(b"heron" not in path.read_bytes() for path in home.rglob("*.db*"))
    with open_memory(home) as memory:
        assert [row["text"] for row in stickers_of(memory).rows()] == [TEXT]


@pytest.mark.promise("package.features")
@pytest.mark.parametrize("name", [feature.name for feature in FEATURES])
def test_without_a_feature_everything_else_works(tmp_path: Path, name: str) -> None:
    """A home made without it remembers, recalls, searches, forgets, checks and travels."""
    with only(*(feature for feature in FEATURES if feature.name != name)):
        with open_memory(tmp_path / "home") as memory:
            kept = memory.remember("The ferry leaves at nine.")
            memory.conversations.append("a", "user", "The harbour closes at ten.")
            assert memory.recall("when does the ferry leave?")[0].id == kept.id
            assert memory.recall_conversation(None, "when does the harbour close?")
            assert {hit.kind for hit in memory.search("ferry harbour")} == {"memory", "turn"}
            assert all(check.ok for check in memory.doctor()), memory.doctor()
            assert memory.stats().memories == 1
            memory.export(tmp_path / "export.jsonl")
            memory.conversations.redact("a", 0)
            assert memory.forget(kept.id, undoable=True).count == 1
            memory.undo_forget(kept.id)
            assert memory.forget(kept.id).count == 1
            assert memory.reindex() is not None
            assert not memory.recall("ferry")
            if name != "server":
                app = server_app(memory, page=None)
                with TestClient(app, base_url="http://localhost") as client:
                    assert client.get("/health").status_code == 200
        with open_memory(tmp_path / "other") as other:
            assert other.import_(tmp_path / "export.jsonl").problems == ()
            assert other.search("when does the ferry leave?")
        assert run_cli("--help").exit_code == 0
        done = run_cli("remember", "The gull sleeps.", home=tmp_path / "home")
        assert done.exit_code == 0, done.stderr
        assert "gull" in run_cli("recall", "what does the gull do?", home=tmp_path / "home").stdout


@pytest.mark.promise("package.features")
def test_a_call_of_a_feature_that_is_left_out_says_so(tmp_path: Path) -> None:
    """A typed error that names it, before anything is written."""
    with (
        only(*(one for one in FEATURES if one.name != "projects")),
        open_memory(tmp_path / "home") as memory,
        pytest.raises(FeatureLeftOut) as error,
    ):
        memory.observe("A note.")
    assert error.value.what == "projects"


@pytest.mark.promise("mcp.tools")
def test_without_features_the_tools_and_resources_of_the_kernel_are_left() -> None:
    """Tools and resources of a feature are listed with it, in the same places."""
    feature_tools = {"recall_context", "warm_up", "save_diary", "observe", "deep_recall", "gaps"}
    listed_tools = list(all_tools())
    assert feature_tools < set(listed_tools)
    with only():
        assert list(all_tools()) == [name for name in listed_tools if name not in feature_tools]
        assert [resource.name for resource in all_resources()] == [
            "recent_turns",
            "recent_memories",
        ]
    assert all_resources()[0].name == "core"
