"""A secret that was said stays in its turn, and leaves the home masked, whichever way it leaves."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.client.serving import served as serving
from tests.deep.asking import Script
from tests.hooks.hook_desk import Agent, environment, write_transcript
from tests.surfaces.rest_desk import served

from anaphora import Memory, RemoteMemory, render_recall
from anaphora.testing import run_cli

SECRET = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
MARK = "[redacted:github-token]"
SAID = f"The deploy token of the ferry shop is {SECRET}, keep it."
ASKED = "what is the deploy token of the ferry shop?"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home in which somebody said a secret."""
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        memory.conversations.append_user("chat", SAID)
        memory.conversations.append_user("chat", "And the ferry leaves at nine.")
        memory.ready()
    return tmp_path / "home"


@pytest.mark.promise("secrets.masked")
def test_a_program_of_ones_own_reads_what_was_said(home: Path) -> None:
    """In Python and on the command line every word of a turn is there."""
    with Memory.open(home, embedder="hashing") as memory:
        thread = memory.conversations.get("chat")
        assert thread is not None
        assert thread.turns[0].text == SAID
        hits = memory.recall_conversation(None, ASKED).hits
        assert hits[0].text == SAID
        assert SECRET not in render_recall(hits)
        assert MARK in render_recall(hits)
    shown = run_cli("conversation", "show", "chat", home=home)
    assert SECRET in shown.output.replace("\n", "")


@pytest.fixture
def root() -> Iterator[Path]:
    """A folder with a short path: a socket's must be."""
    folder = Path(tempfile.mkdtemp(prefix="anm"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.promise("secrets.masked")
def test_hooks_put_the_mark_into_a_prompt(root: Path) -> None:
    """At the start, with a prompt, and after a compaction."""
    (root / "shop").mkdir()
    blocks = []
    for number in (1, 2):
        session = f"{number}1111111-aaaa-4bbb-8ccc-000000000001"
        transcript = root / "transcripts" / f"{session}.jsonl"
        agent = Agent("claude-code", session, root / "shop", transcript, environment(root))
        write_transcript(agent.client, transcript, session, agent.directory, [SAID])
        blocks += [agent.start(), agent.prompt(ASKED)]
        agent.tell("end", {})
    assert MARK in "".join(blocks)
    assert SECRET not in "".join(blocks)
    with Memory.open(root / "memory", warm=False) as memory:
        thread = memory.conversations.get(memory.conversations.list()[0].conversation_id)
        assert thread is not None
        assert thread.turns[0].text == SAID


@pytest.mark.promise("secrets.masked")
def test_over_http_only_a_program_of_ones_own_may_ask_for_the_words(home: Path) -> None:
    """The page and other tokens read the mark; the own token asks for the words in a header."""
    own = "the-token-of-the-user"
    with served(home, {"page": None, "own": own, "require_token": True}) as (client, memory):
        other = memory.tokens.create("agent", namespaces=("*",)).secret
        for token, wanted, whole in (
            (own, "", False),
            (own, "true", True),
            (other, "", False),
            (other, "true", False),
        ):
            headers = {"Authorization": f"Bearer {token}", "Anaphora-Verbatim": wanted}
            answers = [
                client.post("/v1/search", json={"query": ASKED}, headers=headers),
                client.post("/v1/conversations/recall", json={"query": ASKED}, headers=headers),
                client.get("/v1/conversations/chat", headers=headers),
                client.get("/conversations/chat", headers=headers),
                client.get("/v1/export", headers=headers),
            ]
            assert all(answer.is_success for answer in answers), [a.text for a in answers]
            assert [SECRET in answer.text for answer in answers] == [whole] * len(answers)
            assert [MARK in answer.text for answer in answers] == [not whole] * len(answers)
            # Titles and previews are cut, here within the secret.
            listed = client.get("/v1/conversations", headers=headers)
            assert listed.is_success
            assert (SECRET[:10] in listed.text) is whole


@pytest.mark.enable_socket
@pytest.mark.promise("secrets.masked")
def test_a_remote_memory_reads_as_its_token_may(home: Path) -> None:
    """With the own token the facade over a server is the facade; another token reads the mark."""
    own = "the-token-of-the-user"
    with serving(home, {"page": None, "own": own, "require_token": True}) as (url, memory):
        other = memory.tokens.create("agent", namespaces=("default",)).secret
        for token, text in ((own, SAID), (other, SAID.replace(SECRET, MARK))):
            with RemoteMemory.connect(url, token=token) as remote:
                thread = remote.conversations.get("chat")
                assert thread is not None
                assert thread.turns[0].text == text


@pytest.mark.promise("secrets.masked")
def test_an_export_for_somebody_else_is_masked(home: Path, tmp_path: Path) -> None:
    """One for oneself has every word; a masked one comes in again elsewhere."""
    with Memory.open(home, embedder="hashing") as memory:
        memory.export(tmp_path / "mine.jsonl")
        memory.export(tmp_path / "theirs.jsonl", masked=True)
        assert SECRET in (tmp_path / "mine.jsonl").read_text()
        theirs = (tmp_path / "theirs.jsonl").read_text()
        assert SECRET not in theirs
        assert MARK in theirs
        other = memory.scoped("other")
        other.import_(tmp_path / "theirs.jsonl")
        thread = other.conversations.get("chat")
        assert thread is not None
        assert [turn.text for turn in thread.turns][1] == "And the ferry leaves at nine."


@pytest.mark.promise("secrets.masked")
def test_no_model_is_told_a_secret(tmp_path: Path) -> None:
    """Facts are taken out of turns by a model, which reads the mark."""
    script = Script(json.dumps([]))
    with Memory.open(tmp_path / "home", embedder="hashing", model=script.model) as memory:
        memory.conversations.append_user("chat", SAID + " It is renewed in May." * 20)
        memory.extract("chat")
    asked = "".join(message.text for call in script.model.asked for message in call)
    assert MARK in asked
    assert SECRET not in asked


@pytest.mark.promise("secrets.counted")
def test_doctor_counts_turns_that_hold_a_secret(home: Path) -> None:
    """It names the command, shows nothing, and counts none once the turn was redacted."""
    with Memory.open(home, embedder="hashing") as memory:
        (check,) = [one for one in memory.doctor() if one.name == "secrets"]
        assert check.ok
        assert check.detail.startswith("1 turn seems to hold a secret")
        assert "anaphora conversation redact chat 0" in check.detail
        assert SECRET not in check.detail
    done = run_cli("conversation", "redact", "chat", "0", home=home)
    assert done.exit_code == 0, done.output
    with Memory.open(home, embedder="hashing") as memory:
        (check,) = [one for one in memory.doctor() if one.name == "secrets"]
        assert check.detail.startswith("no turn seems to hold a secret")


@pytest.mark.promise("remember.every_way")
def test_tags_of_a_document_and_ids_of_a_chat_keep_no_secret(tmp_path: Path) -> None:
    """Also as one part of an id."""
    with Memory.open(tmp_path / "home", embedder="hashing") as memory:
        memory.add_document(b"# A page\n\nWith words.", name="a.md", tags=(f"key {SECRET}", "b"))
        memory.remember("a fact", conversation_id=f"chat.{SECRET}")
        memory.ready()
        assert memory.documents()[0].tags == (f"key {MARK}", "b")
    for path in (tmp_path / "home").rglob("*"):
        assert not (path.is_file() and SECRET.encode() in path.read_bytes()), path.name


@pytest.mark.parametrize(
    "host", ["[::1].evil.com", "[::1]evil:80", "localhost:80:evil", "127.0.0.1:80.evil.com"]
)
def test_a_name_that_begins_like_ours_is_another(home: Path, host: str) -> None:
    """A Host header is a name with a port, or it names nothing here."""
    with served(home) as (client, _):
        assert client.get("/v1/stats", headers={"Host": host}).status_code == 421
        for ours in ("localhost:80", "127.0.0.1", "[::1]:7411"):
            assert client.get("/v1/stats", headers={"Host": ours}).status_code == 200


def test_a_token_of_one_namespace_neither_sees_the_remote_nor_removes_devices(
    home: Path, tmp_path: Path
) -> None:
    """Where the remote lies and who may sync concern the whole home."""
    (tmp_path / "remote").mkdir()
    with served(home) as (client, memory):
        memory.sync.init(str(tmp_path / "remote"))
        device = memory.sync.status().device
        for namespaces, whole in ((("default",), False), (("*",), True)):
            token = memory.tokens.create(f"t{whole}", namespaces=namespaces).secret
            headers = {"Authorization": f"Bearer {token}"}
            told = client.get("/v1/sync", headers=headers)
            assert told.status_code == 200
            assert (str(tmp_path) in told.text) is whole
            assert told.json()["status"]["device"] == device
            body = {"device": "0" * len(device)}
            removed = client.post("/v1/sync/remove", json=body, headers=headers)
            assert (removed.status_code == 403) is not whole
