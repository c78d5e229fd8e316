"""Documents on the command line, over HTTP and over MCP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.client.serving import served as listening_to
from tests.document_files import docx, pdf
from tests.mcp_client import call, connected
from tests.surfaces.rest_desk import served

from anaphora import Memory, RemoteMemory
from anaphora.errors import NotFound, UnreadableDocument
from anaphora.testing import CliResult, run_cli

LEASE = pdf(
    [["The monthly rent is 1200 euros."], ["Three months of notice end the lease."]],
    title="Lease of Harbour Street 4",
    bookmarks=[("Rent", 1), ("Notice", 2)],
)
HANDBOOK = docx([("Holidays", 1), ("Thirty days off each year.", 0)], title="Handbook")

Run = Callable[..., CliResult]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    environment = {"ANAPHORA_EMBEDDER": "hashing", "COLUMNS": "200"}

    def anaphora(*words: str | Path) -> CliResult:
        given = ["--home", str(tmp_path / "home"), *map(str, words)]
        return run_cli(*given, env=environment)

    return anaphora


@pytest.mark.promise("documents.surfaces")
def test_on_the_command_line(run: Run, tmp_path: Path) -> None:
    """Add, list, recall, show, write out, replace, forget and undo, as a person does it."""
    lease, handbook = tmp_path / "lease.pdf", tmp_path / "handbook.docx"
    lease.write_bytes(LEASE)
    handbook.write_bytes(HANDBOOK)
    broken = tmp_path / "broken.pdf"
    broken.write_bytes(LEASE[:300])
    done = run("document", "add", lease, broken, handbook, "--tag", "home")
    assert done.exit_code == 5, done.output
    assert "added Lease of Harbour Street 4" in done.stdout
    assert "added Handbook" in done.stdout
    assert "broken.pdf" in done.stderr
    assert "damaged" in done.stderr
    assert "known Lease" in run("document", "add", lease).stdout
    listed = json.loads(run("document", "list", "--json").stdout)
    assert [one["title"] for one in listed] == ["Handbook", "Lease of Harbour Street 4"]
    told = run("recall", "months of notice", "--kind", "document", "--min-confidence", "0").stdout
    assert "document Lease of Harbour Street 4, page 2, Notice" in told
    short = f"{listed[1]['id'][-8:]}#2"
    assert short in told
    for words in (("document", "show", short), ("get", short)):
        shown = run(*words).stdout
        assert "page 2, Notice" in shown
        assert "Three months of notice" in shown
        assert "1200" not in shown
    whole = json.loads(run("document", "show", lease, "--json").stdout)
    assert [one["page"] for one in whole["sections"]] == [1, 2]
    assert run("document", "file", short, tmp_path / "copy.pdf").exit_code == 0
    assert (tmp_path / "copy.pdf").read_bytes() == LEASE
    assert run("document", "file", short, tmp_path / "copy.pdf").exit_code != 0
    lease.write_bytes(pdf([["The monthly rent is 1350 euros."]], title="Lease"))
    assert "replaced Lease" in run("document", "add", lease).stdout
    assert len(json.loads(run("document", "list", "--history", "--json").stdout)) == 3
    assert "would forget 2" in run("document", "forget", lease, "--dry-run").stdout
    assert "forgot 2 versions" in run("document", "forget", lease, "--yes").stdout
    assert len(json.loads(run("document", "list", "--json").stdout)) == 1
    assert run("document", "show", lease).exit_code != 0
    forgotten = run("forget", listed[0]["id"][-8:], "--now", "--yes")
    assert "forgot 1" in forgotten.stdout, forgotten.output
    assert "no documents" in run("document", "list").stdout


@pytest.mark.promise("documents.surfaces")
def test_over_http(tmp_path: Path) -> None:
    """A broken file is 422 by name, one above the limit 413, and neither is kept."""
    options = {"page": None, "document_limit": 1_000}
    with served(tmp_path / "home", options) as (client, memory):
        broken = client.post("/v1/documents", params={"name": "b.pdf"}, content=LEASE[:300])
        assert broken.status_code == 422
        assert "damaged" in broken.text
        large = client.post("/v1/documents", params={"name": "lease.pdf"}, content=LEASE)
        assert large.status_code == 413
        assert memory.documents() == ()


@pytest.mark.promise("documents.surfaces")
@pytest.mark.parametrize("named", [{}, {"kinds": None}])
def test_a_search_over_http_without_kinds_finds_documents(
    tmp_path: Path, named: dict[str, None]
) -> None:
    """It searches what the facade searches: all but tool calls."""
    with served(tmp_path / "home") as (client, memory):
        memory.add_document(LEASE, name="lease.pdf")
        question = {"query": "months of notice", "min_confidence": 0}
        answer = client.post("/v1/search", json=question | named).json()
        hits = memory.search("months of notice", min_confidence=0).hits
        assert [hit["id"] for hit in answer["hits"]] == [hit.id for hit in hits]
        assert "document" in {hit["kind"] for hit in answer["hits"]}


@pytest.mark.promise("documents.surfaces")
def test_over_mcp(tmp_path: Path) -> None:
    """`recall` finds sections, `search` lists them, `fetch` gives one, or all of the document."""
    home = tmp_path / "home"
    with Memory.open(home, embedder="hashing") as memory:
        kept = memory.add_document(LEASE, name="lease.pdf").document

    async def scenario() -> None:
        async with connected(home, "--tools", "all") as session:

            async def do(tool: str, **arguments: Any) -> Any:
                found = await call(session, tool, **arguments)
                return found.get("data", found)

            hits = await do("recall", question="months of notice", minConfidence=0)
            assert f"{kept.id}#2" in json.dumps(hits)
            found = (await do("search", query="months of notice"))["results"]
            assert f"document:{kept.id}#2" in {one["id"] for one in found}
            one = await do("fetch", id=f"document:{kept.id}#2")
            assert one["text"] == "Three months of notice end the lease."
            assert one["metadata"]["place"] == "page 2, Notice"
            whole = await do("fetch", id=f"document:{kept.id}")
            assert "1200" in whole["text"]
            assert (await do("forget", id=kept.id))["count"] == 1

    asyncio.run(scenario())


@pytest.mark.promise("documents.surfaces")
@pytest.mark.allow_hosts(["127.0.0.1"])
def test_over_the_client_of_a_server(tmp_path: Path) -> None:
    """The same calls give the same values; the file that is added lies on the client's machine."""
    (tmp_path / "lease.pdf").write_bytes(LEASE)
    with (
        listening_to(tmp_path / "home") as (url, memory),
        RemoteMemory.connect(url) as remote,
    ):
        done = remote.add_document(tmp_path / "lease.pdf", tags=["home"], origin="Ode")
        kept = memory.document(done.document.id)
        assert (done.action, done.document, kept.tags) == ("added", kept, ("home",))
        assert remote.add_document(LEASE, name="lease.pdf").action == "known"
        assert remote.documents() == memory.documents() == (kept,)
        assert remote.document(f"{kept.id}#2") == kept
        assert remote.document_sections(kept.id) == memory.document_sections(kept.id)
        assert remote.document_file(kept.id) == LEASE
        assert remote.document_history(kept.name) == (kept,)
        with pytest.raises(UnreadableDocument, match="damaged"):
            remote.add_document(LEASE[:300], name="torn.pdf")
        assert remote.forget(kept.id).count == 1
        with pytest.raises(NotFound):
            remote.document_file(kept.id)
