"""An embedder behind HTTP: what it is asked, what its failures mean, and who answers without it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from tests.embed.endpoint_server import MODEL, EmbeddingServer

from anaphora import Memory
from anaphora.errors import (
    EmbedderChanged,
    EndpointDenied,
    EndpointError,
    EndpointModelUnknown,
    EndpointUnreachable,
    InvalidInput,
)
from anaphora.features.embedders.endpoint import parse_endpoint
from anaphora.settings import load_settings

pytestmark = pytest.mark.enable_socket

ErrorT = TypeVar("ErrorT", bound=EndpointError)

KEY = "sk-very-secret-0123456789"
FACTS = ("Nadia sells milk on Mondays.", "The harbour closes at ten.", "Oskar feeds a greyhound.")


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer().running() as running:
        yield running


def fill(memory: Memory) -> None:
    for fact in FACTS:
        memory.remember(fact)
    memory.conversations.append_user("talk", "We moved the piano to the second floor.")
    memory.ready()


@pytest.mark.promise("embed.endpoint")
@pytest.mark.parametrize("api", ["openai", "ollama"])
def test_remembers_and_recalls_through_an_endpoint(
    tmp_path: Path, server: EmbeddingServer, api: str
) -> None:
    """Both forms of asking work, in batches, and a question that was asked is not sent again."""
    setting = server.openai if api == "openai" else server.ollama
    with Memory.open(tmp_path, embedder=setting) as memory:
        memory.remember_many([f"Box {number} is in room {number * 7}." for number in range(70)])
        fill(memory)
        assert memory.stats().embedder == f"{api}:1:{MODEL}:64"
        assert memory.stats().pending == 0
        found = memory.recall("when does the harbour close?", mode="vector")
        assert (found[0].text, found.degraded) == (FACTS[1], ())
        asked = len(server.requests)
        again = memory.recall("when does the harbour close?", mode="vector")
        assert [hit.id for hit in again] == [hit.id for hit in found]
        assert len(server.requests) == asked
        talk = memory.recall_conversation(None, "where is the piano?")
        assert (len(talk), talk.degraded) == (1, ())
    assert max(len(body["input"]) for _, _, body in server.requests) == 32
    assert all(
        body.get("truncate") is (None if api == "openai" else False) for *_, body in server.requests
    )
    with Memory.open(tmp_path, embedder=setting) as memory:
        began = len(server.requests)
        assert memory.recall(FACTS[2], mode="vector")[0].text == FACTS[2]
        # The vectors of before are compared with a first answer, and nothing is measured again.
        assert len(server.requests) - began <= 3


@pytest.mark.promise("embed.endpoint")
def test_a_busy_endpoint_is_asked_again(tmp_path: Path, server: EmbeddingServer) -> None:
    """Answers that say "later" cost time, not vectors."""
    server.failures = [429, 503]
    with Memory.open(tmp_path, embedder=server.openai) as memory:
        fill(memory)
        server.failures = [500]
        memory.remember("The piano tuner comes on Friday.")
        server.failures = [500, 429, 502]
        memory.remember_many(["The tuner wants cash.", "The cat hides from the tuner."])
        found = memory.recall("who comes on Friday?", mode="vector")
        assert (found[0].text, found.degraded) == ("The piano tuner comes on Friday.", ())
        assert server.failures == []


@pytest.mark.promise("embed.endpoint")
def test_prefixes_and_dimensions_are_part_of_the_setting(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    """`?query=…&document=…` stand before texts; other ones make another embedder."""
    special = f"{server.openai}?query=ask%20&document=tell%20&dimensions=64"
    with Memory.open(tmp_path, embedder=special) as memory:
        fill(memory)
        memory.recall("milk?", mode="vector")
        named = memory.stats().embedder
    assert "ask milk" in server.texts
    assert f"tell {FACTS[0]}" in server.texts
    assert {body["dimensions"] for *_, body in server.requests} == {64}
    with Memory.open(tmp_path, embedder=server.openai) as memory:
        assert memory.stats().embedder != named


@pytest.mark.promise("embed.endpoint")
def test_a_text_that_is_too_long_is_halved_not_cut(tmp_path: Path, server: EmbeddingServer) -> None:
    """What a server refuses for its length comes in parts, and every word of it was sent."""
    with Memory.open(tmp_path, embedder=f"{server.ollama}?document=tell%20") as memory:
        fill(memory)
        server.longest = 40
        words = [f"word{number}" for number in range(300)]
        memory.remember(" ".join(words))
        found = memory.recall("word299 word298", mode="vector", top_k=1)
        assert found.degraded == ()
        assert found[0].text.endswith("word299")
    accepted = [text for text in server.texts if len(text.split()) <= 40]
    assert all(text.startswith("tell ") for text in accepted if "word7" in text)
    assert set(words) <= {word for text in accepted for word in text.split()}


@pytest.mark.promise("embed.endpoint_errors")
def test_what_is_wrong_at_first_use_is_told_by_kind(
    tmp_path: Path, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Key, model, URL and a server that is not there are four errors; none has the key in it."""
    monkeypatch.setenv("ANAPHORA_EMBEDDER_KEY", KEY)
    server.key = "another"
    denied = _failure(EndpointDenied, tmp_path, server.openai)
    assert (denied.model, denied.url) == (MODEL, f"{server.url}/v1")
    server.key = ""
    unknown = _failure(EndpointModelUnknown, tmp_path, server.openai.replace(MODEL, "nobody"))
    assert "not found" in str(unknown)
    wrong_path = _failure(EndpointModelUnknown, tmp_path, server.openai.replace("/v1#", "/v2#"))
    assert "/v1" in str(wrong_path)
    _failure(EmbedderChanged, tmp_path, f"{server.openai}?dimensions=32")
    server.failures = [503] * 4
    assert "503" in str(_failure(EndpointUnreachable, tmp_path, server.openai))
    _failure(EndpointUnreachable, tmp_path, "ollama:http://127.0.0.1:9#tiny")
    assert not (tmp_path / "home").exists()


def _failure(kind: type[ErrorT], place: Path, setting: str) -> ErrorT:
    with pytest.raises(kind) as raised:
        Memory.open(place / "home", embedder=setting)
    assert KEY not in f"{raised.value} {vars(raised.value)}"
    return raised.value


@pytest.mark.promise("embed.endpoint_errors")
@pytest.mark.parametrize(
    "setting",
    [
        "openai:",
        "ollama:?dimensions=3",
        "openai:http://somewhere/v1",
        "openai:ftp://somewhere#model",
        "openai:model?dimensions=many",
        "openai:model?surprise=1",
        "openai:http://me:sk-very-secret-0123456789@somewhere/v1#model",
        "openai:http://somewhere/v1?key=sk-very-secret-0123456789#model",
        "nobody",
    ],
)
def test_settings_that_cannot_be_used_are_refused(tmp_path: Path, setting: str) -> None:
    """Nothing is asked and nothing is written; a key in the URL is not repeated."""
    with pytest.raises(InvalidInput) as raised:
        Memory.open(tmp_path / "home", embedder=setting)
    assert KEY not in str(raised.value)
    assert not (tmp_path / "home").exists()


def test_settings_say_where_to_ask() -> None:
    """Without a URL it is that of the provider; tags of a model are part of it."""
    one, other = (
        parse_endpoint("openai:text-embedding-3-small"),
        parse_endpoint("ollama:nomic:v1.5"),
    )
    assert one is not None
    assert other is not None
    assert (one.url, one.model) == ("https://api.openai.com/v1", "text-embedding-3-small")
    assert (other.url, other.model) == ("http://localhost:11434", "nomic:v1.5")
    assert parse_endpoint("minilm") is None


@pytest.mark.promise("embed.endpoint_key")
def test_the_key_is_sent_and_never_kept(
    tmp_path: Path, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes from the environment and is in no file, no repr and no message; nor is OpenAI's."""
    server.key = KEY
    monkeypatch.setenv("ANAPHORA_EMBEDDER_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai-alone")
    with Memory.open(tmp_path, embedder="hashing") as memory:
        memory.remember(FACTS[0])
        memory.reindex(server.openai)
    with Memory.open(tmp_path) as memory:
        fill(memory)
        assert memory.recall(FACTS[1], mode="vector").degraded == ()
        server.key = "another"
        told = str(memory.recall("a new question", mode="vector").degraded)
        assert "key" in told
        seen = f"{memory.doctor()} {memory.health()} {told} {load_settings(tmp_path)!r}"
    assert KEY not in seen
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or KEY.encode() not in file.read_bytes()
    monkeypatch.delenv("ANAPHORA_EMBEDDER_KEY")
    server.requests.clear()
    with Memory.open(tmp_path) as memory:
        memory.recall("yet another question")
    assert server.requests
    assert not any("authorization" in headers for _, headers, _ in server.requests)


@pytest.mark.promise("embed.stand_in")
@pytest.mark.parametrize("encrypt", [None, "file"], ids=["clear", "sealed"])
def test_the_local_model_answers_while_the_endpoint_is_away(tmp_path: Path, encrypt: None) -> None:
    """Its own vectors find what only meaning finds, the answer says so, and nothing is lost."""
    server = EmbeddingServer()
    with server.running():
        with Memory.open(tmp_path, embedder="hashing", encrypt=encrypt) as memory:
            memory.remember(FACTS[0])
            memory.reindex(server.ollama)
        with Memory.open(tmp_path) as memory:
            fill(memory)
            assert memory.recall("dairy").hits == ()
    with Memory.open(tmp_path) as memory:
        # In the first question to a server that is gone, too.
        found = memory.recall("Who trades in dairy products?")
        assert found[0].text == FACTS[0]
        assert [one.part for one in found.degraded] == ["embeddings"]
        assert "anaphora-l6" in found.degraded[0].reason
        assert server.url in found.degraded[0].reason
        memory.remember("The bakery is shut for the summer.")
        memory.conversations.append_user("talk", "My sister plays the cello.")
        later = memory.recall_conversation(None, "Which instrument does she practise?")
        assert later[0].text == "My sister plays the cello."
        assert [one.part for one in later.degraded] == ["embeddings"]
        assert memory.search("string music").degraded
        deep = memory.deep_recall("Who trades in dairy products?", scope="all_sessions")
        assert any("anaphora-l6" in one.reason for one in deep.degraded)
        check = next(one for one in memory.doctor() if one.name == "embedder")
        assert (check.ok, "bundled model answers" in check.detail) == (False, True)
        with pytest.raises(EndpointUnreachable):
            memory.reindex()
        with server.running():
            done = memory.reindex()
            assert (done.turns, done.memories, done.left) == (1, 1, 0)
            back = memory.recall("the bakery is shut", mode="vector")
            assert (back[0].text, back.degraded) == ("The bakery is shut for the summer.", ())
            assert memory.recall_conversation(None, "sister cello").degraded == ()


@pytest.mark.promise("embed.changed")
def test_another_model_behind_the_same_name_is_found_out(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    """Its vectors are not mixed with the old ones; `reindex` with the setting takes it on."""
    with Memory.open(tmp_path, embedder="hashing") as memory:
        memory.remember(FACTS[0])
        first = memory.reindex(server.openai).embedder
    server.turned = True
    with Memory.open(tmp_path) as memory:
        found = memory.recall(FACTS[0], mode="vector")
        assert "has changed" in found.degraded[0].reason
        assert found[0].text == FACTS[0]
        done = memory.reindex(server.openai)
        assert (done.embedder, done.memories) == (f"{first}:2", 1)
    with Memory.open(tmp_path) as memory:
        found = memory.recall(FACTS[0], mode="vector")
        assert (found.degraded, memory.stats().embedder) == ((), done.embedder)
    server.dimensions = 32
    with Memory.open(tmp_path) as memory:
        assert "32 dimensions, expected 64" in memory.recall("milk").degraded[0].reason
