"""One secret in a turn, its title, its id and what it asks: no way out of the home tells it."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest
from tests.deep.asking import Script
from tests.mcp_client import connected
from tests.surfaces.rest_desk import served

from anaphora import Memory, render_recall
from anaphora.testing import run_cli

SECRET = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
MARK = "[redacted:github-token]"
CONVERSATION = f"chat.{SECRET}"
SAID = f"The deploy token of the ferry shop is {SECRET}, keep it."
ASKED = "what is the deploy token of the ferry shop?"
FORMS = (SECRET, SECRET[:14], SECRET[-14:])


def told(texts: list[str]) -> list[str]:
    """Those texts that tell a part of the secret."""
    return [text for text in texts if any(form in text for form in FORMS)]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home in which the secret is said, is a title, and is a part of an id."""
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        for turn in (SAID, "And the ferry leaves at nine."):
            memory.conversations.append_user(CONVERSATION, turn)
        memory.conversations.set_title(CONVERSATION, f"Token {SECRET}")
        memory.remember(f"The token {SECRET} is kept.", path=f"ferry.{SECRET}", tags=(SECRET,))
        memory.add_document(f"# Key {SECRET}\n\nThe ferry.".encode(), name=f"{SECRET}.md")
        memory.ready()
    return tmp_path / "home"


@pytest.mark.enable_socket
@pytest.mark.promise("secrets.masked")
def test_no_mcp_answer_tells_it(home: Path) -> None:
    """Of no tool and no resource: the mark stands there; the id that is told finds the turn."""

    async def scenario() -> list[str]:
        answers = []
        async with connected(home, "--tools", "all") as session:
            for tool, arguments in (
                ("recall", {"question": ASKED}),
                ("recall_conversation", {"question": ASKED}),
                ("search", {"query": ASKED}),
                ("warm_up", {}),
                ("deep_recall", {"question": ASKED}),
                ("recall_context", {"focus": ASKED}),
            ):
                result = await session.call_tool(tool, arguments)
                assert not result.is_error, (tool, result)
                answers.append(result.model_dump_json())
                if tool == "search":
                    structured = result.structured_content or {}
                    found = structured.get("results", [])
                    turn = next(one["id"] for one in found if one["id"].startswith("turn:"))
                    fetched = await session.call_tool("fetch", {"id": turn})
                    assert not fetched.is_error, fetched
                    assert MARK in fetched.model_dump_json()
                    answers.append(fetched.model_dump_json())
            uris = [one.uri for one in (await session.list_resources()).resources]
            answers += [(await session.read_resource(uri)).model_dump_json() for uri in uris]
            recent = await session.read_resource("anaphora://turns/recent")
            answers.append(recent.model_dump_json())
        return answers

    answers = anyio.run(scenario)
    assert len(answers) > 7
    leaks = [text[max(0, text.find(FORMS[1]) - 200) :][:260] for text in told(answers)]
    assert not leaks
    for answer in (*answers[:2], answers[-1]):
        assert MARK in answer


@pytest.mark.promise("secrets.masked")
def test_no_answer_over_http_tells_it(home: Path) -> None:
    """Of no route, unless the words are asked for; the id that is told opens the thread."""
    own = "the-token-of-the-user"
    with served(home, {"page": None, "own": own, "require_token": True}) as (client, _):
        headers = {"Authorization": f"Bearer {own}"}
        listed = client.get("/v1/conversations", params={"limit": 1}, headers=headers)
        (thread,) = listed.json()["items"]
        name = thread["conversation_id"]
        answers = [
            listed,
            client.get(f"/v1/conversations/{name}", headers=headers),
            client.get(f"/conversations/{name}", headers=headers),
            client.get(f"/v1/conversations/{name}/tool-calls", headers=headers),
            client.get("/v1/memories", headers=headers),
            client.get("/v1/documents", headers=headers),
            client.get("/v1/export", headers=headers),
            client.get("/v1/stats", headers=headers),
            client.post("/v1/search", json={"query": ASKED}, headers=headers),
            client.post("/v1/recall", json={"query": ASKED}, headers=headers),
            client.post(
                "/v1/conversations/recall",
                json={"query": ASKED, "conversation_id": name},
                headers=headers,
            ),
        ]
        assert [a.text[:200] for a in answers if not a.is_success] == []
        assert MARK in answers[1].text
        assert MARK in answers[-1].text
        texts = [answer.text for answer in answers]
        assert not told(texts), told(texts)[0][:600]


@pytest.mark.promise("secrets.masked")
def test_no_error_tells_it(home: Path, tmp_path: Path) -> None:
    """Neither a refusal on any surface, nor what an importer says of what it cannot read."""
    message = {"role": "user", "content": "hi"}
    transcript = {"type": "user", "uuid": "u", "sessionId": "s", "message": message}
    (tmp_path / "s.jsonl").write_text(json.dumps({**transcript, "timestamp": SECRET}))
    answers = [
        run_cli("get", f"{SECRET}/1", home=home).output,
        run_cli("import", str(tmp_path / "s.jsonl"), home=home).output,
        run_cli("import", str(tmp_path / "s.jsonl"), "--json", home=tmp_path / "other").output,
    ]

    async def scenario() -> None:
        async with connected(home) as session:
            for tool, arguments in (
                ("fetch", {"id": SECRET}),
                ("recall", {"question": 1, SECRET: 2}),
            ):
                result = await session.call_tool(tool, arguments)
                assert result.is_error
                answers.append(result.model_dump_json())

    anyio.run(scenario)
    with served(home, {"page": None}) as (client, _):
        answers.append(client.get(f"/v1/memories/{SECRET}").text)
    assert not told(answers), told(answers)[0][:600]
    assert all(MARK in answer for answer in answers), answers


@pytest.mark.promise("secrets.masked")
def test_no_block_export_or_prompt_tells_it(home: Path, tmp_path: Path) -> None:
    """Nor a masked value, nor what `doctor` says; the command that it names works."""
    script = Script(json.dumps([]))
    with Memory.open(home, embedder="hashing", model=script.model) as memory:
        hits = memory.recall_conversation(None, ASKED).hits
        memory.export(tmp_path / "theirs.jsonl", masked=True)
        memory.extract(CONVERSATION)
        texts = [
            render_recall(hits),
            (tmp_path / "theirs.jsonl").read_text(),
            *(message.text for call in script.model.asked for message in call),
            *(check.detail for check in memory.doctor()),
        ]
        (check,) = [one for one in memory.doctor() if one.name == "secrets"]
    assert not told(texts), told(texts)[0][:600]
    name = check.detail.partition("conversation redact ")[2].split()[0]
    done = run_cli("conversation", "redact", name, "0", home=home)
    assert done.exit_code == 0, done.output
    with Memory.open(home, embedder="hashing") as memory:
        thread = memory.conversations.get(CONVERSATION)
        assert thread is not None
        assert SECRET not in thread.turns[0].text
