"""The facade over a server is the facade: the same calls, values and errors."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient
from tests.as_json import as_json
from tests.client.serving import listening, served
from tests.conftest import NOW, Clock

from anaphora import (
    AsyncMemory,
    Budget,
    Cancellation,
    Memory,
    NewMemory,
    NewTurn,
    RemoteMemory,
    errors,
)
from anaphora.adapters.langgraph import AnaphoraStore
from anaphora.adapters.memory_files import MemoryFiles
from anaphora.client.memory import NOT_OFFERED, REQUESTS
from anaphora.testing import open_memory, server_app

pytestmark = pytest.mark.enable_socket

# How long something took, how large a disk is, where it is: not of what was asked.
ELSEWHERE = {"seconds", "bytes", "home", "path", "root", "indexed_at", "project", "projects"}
PYTHON = "def fly_kestrel():\n    return 5433\n"
FILTER = {"tags": {"contains": "bird"}}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "kestrel"
    folder.mkdir()
    (folder / "README.md").write_text("# Kestrel\n\nIt hovers over `fly.py`.\n")
    (folder / "fly.py").write_text(PYTHON)
    return folder


def memories(memory: Memory) -> Iterator[tuple[str, Any]]:
    """Facts: kept, changed, recalled, forgotten."""
    tea = memory.remember("The user drinks tea.", path="user.drink", tags=["drink"])
    yield "remember", tea
    yield "again", memory.remember("The user drinks tea.", path="user.drink")
    yield "a new value", memory.remember("The user drinks coffee.", path="user.drink")
    many: list[Any] = [
        "Herons wade.",
        NewMemory("Kestrels hover.", tags=("bird",), payload={"wings": 2}),
        {"text": "Owls see at night.", "tags": ["bird"], "created_at": NOW - timedelta(days=3)},
    ]
    told: list[Any] = []
    done = memory.remember_many(many, lambda *said: told.append(said))
    yield "remember_many", (done, told[-1])
    owl = done[2].id
    yield "get", memory.get(owl)
    yield "update", memory.update(owl, tags=["bird", "night"], category="birds")
    yield "update text", memory.update(owl, text="Owls see in the dark.")
    yield "history", memory.history("user.drink")
    yield "linked memories", memory.ready(30)
    yield "recall", memory.recall("what do kestrels do?", top_k=2, filters=FILTER)
    yield "rejected", memory.recall("kestrels", top_k=1, explain=True, min_confidence=0)
    yield "nothing", memory.recall("quarks?", min_confidence=0.99)
    first = memory.list(limit=2)
    yield "list", (first, memory.list(limit=2, cursor=first.cursor), memory.list(FILTER))
    yield "contradictions", memory.contradictions()
    yield "short id", memory.resolve_id(tea.id[-8:], "memory")
    yield "dry run", memory.forget(tea.id, dry_run=True)
    yield "undoable", memory.forget(done[0].id, undoable=True)
    yield "undo", memory.undo_forget(done[0].id)
    yield "forget", memory.forget(filters=FILTER)


def threads(memory: Memory) -> Iterator[tuple[str, Any]]:
    """Conversations: kept, read, recalled, deleted."""
    kept = memory.conversations
    yield "append", kept.append("chat", "user", "Who has the deploy key?", speaker="Mara")
    turn = NewTurn("assistant", "Rafi has it.", ts=NOW - timedelta(minutes=5))
    yield "extend", kept.extend("other", [turn, NewTurn("user", " ")], title="Keys")
    yield "append_user", kept.append_user("chat", "And the \u65e5\u672c one?")
    yield "blank", kept.append("chat", "user", "  ")
    yield "thread", (kept.get("chat"), kept.get("none"))
    yield "recent", (kept.recent("chat", 1), kept.recent("none"))
    yield "threads", kept.list()
    yield "title", (kept.set_title("chat", "Deploying"), kept.set_title("none", "x"))
    # What is linked meanwhile is ordered otherwise.
    yield "linked", memory.ready(30)
    yield "turns", memory.recall_conversation("chat", "who deploys?", top_k=1, exclude="nothing")
    yield "all turns", memory.recall_conversation(None, "who has the key?", role="assistant")
    yield "no turns", memory.recall_conversation("none", "who?").hits
    yield "redact", (kept.redact("chat", 0), kept.redact("chat", 99), kept.redact("n", 0))
    yield "delete", (kept.delete("other"), kept.delete("other"))
    yield "tool calls", memory.tool_calls("chat")


def projects(memory: Memory, project: Path) -> Iterator[tuple[str, Any]]:
    """A project: indexed, noted, recalled."""
    indexed = memory.index_project(project, name="kestrel", embed=False)
    yield "index", indexed
    yield "projects", memory.projects()
    yield "map", memory.project_map("kestrel", within=".").nodes
    yield "map by folder", memory.project_map(str(project)).nodes
    note = memory.observe("fly_kestrel gives the port.", importance=4, project="kestrel")
    yield "observe", note
    # What is embedded meanwhile is found otherwise.
    yield "embedded", memory.ready(30)
    yield "notes", memory.notes("kestrel", limit=5)
    yield "write_diary", memory.write_diary("Wrote fly.py.", subject="kestrel")
    yield "diary", memory.diary()
    yield "embedded too", memory.ready(30)
    yield "context", memory.recall_context(["which port?", "fly_kestrel"], include_sources=True)
    yield "warm_up", memory.warm_up("ports", shape=False)
    yield "search", memory.search("which port?", kinds=["note", "file"], exclude=("x",))
    yield "remove", memory.remove_project(str(project))


def documents(memory: Memory, files: Path) -> Iterator[tuple[str, Any]]:
    """Files whose text is kept, and what every session is told."""
    letter = files / "letter.md"
    letter.write_text("# A letter\n\nThe heron came back.\n")
    yield "add", memory.add_document(letter, name="letter", tags=["bird"]).action
    yield "again", memory.add_document(letter, name="letter").action
    letter.write_text("# A letter\n\nThe heron left again.\n")
    kept = memory.add_document(letter, date=NOW, title="A bird", name="post/letter")
    yield "documents", [one.name for one in memory.documents()]
    yield "by name", memory.document("post/letter").id == kept.document.id
    yield "document", memory.document(kept.document.id)
    yield "sections", memory.document_sections("post/letter")
    yield "versions", [one.size for one in memory.document_history("letter")]
    yield "file", memory.document_file("post/letter").decode()
    yield "forget document", memory.forget(kept.document.id).count
    short = memory.remember("Answers are short.", type="procedural")
    yield "pin", memory.pin(short.id) == short.id
    yield "core", memory.core_block()
    yield "unpin", memory.unpin(short.id) == short.id
    yield "core after", memory.core_block()


def questions(memory: Memory) -> Iterator[tuple[str, Any]]:
    """Questions over everything, and what is left to do."""
    steps: list[Any] = []
    asked = memory.deep_recall("Which port?", budget=Budget(iterations=2), on_step=steps.append)
    yield "deep", (asked, [step.kind for step in steps])
    yield "deep, silently", memory.deep_recall("Which port?", scope="all_sessions").sources
    yield "gaps", (memory.gaps(), memory.gaps(None), memory.gaps("closed"))
    yield "extract", memory.extract("chat")
    yield "end_session", memory.end_session("chat")
    yield "run_jobs", memory.run_jobs().with_model
    yield "dream", memory.dream(model=False).closed
    yield "traces", memory.traces()


def home(memory: Memory, files: Path) -> Iterator[tuple[str, Any]]:
    """The home as a whole."""
    yield "ready", memory.ready(30)
    yield "namespaces", memory.namespaces()
    work = memory.scoped("work")
    yield "scoped", (work.namespace, work.remember("At work.").action, len(work.list()))
    yield "stats", memory.stats()
    yield "health", [(check.name, check.ok) for check in memory.health().checks]
    out = files / "out.jsonl"
    yield "export", memory.export(out)
    kinds = [json.loads(line).get("kind", "head") for line in out.read_text().splitlines()]
    yield "exported", kinds
    yield "import", memory.scoped("copy").import_(out)
    (files / "notes.md").write_text("# Otters\n\nOtters hold hands.\n")
    yield "import notes", memory.scoped("copy").import_([files / "notes.md"], format="markdown")


def story(memory: Memory, project: Path, files: Path) -> Iterator[tuple[str, Any]]:
    """What an agent does in a week, with what each call gives."""
    files.mkdir()
    yield from memories(memory)
    yield from threads(memory)
    yield from projects(memory, project)
    yield from documents(memory, files)
    yield from questions(memory)
    yield from home(memory, files)


def comparable(value: Any, names: dict[str, str]) -> Any:
    """A value in JSON's types, its ids by the order in which they came up."""
    if isinstance(value, dict):
        return {k: comparable(v, names) for k, v in value.items() if k not in ELSEWHERE}
    if isinstance(value, list):
        return [comparable(one, names) for one in value]
    if isinstance(value, str):
        return re.sub(
            r"\b[0-9a-f]{32}\b|\b[0-9a-z]{26}\b|\b[0-9a-f-]{36}\b",
            lambda found: names.setdefault(found[0], f"id {len(names)}"),
            value,
        )
    return value


@pytest.mark.promise("client.facade")
def test_the_same_story_over_a_server(tmp_path: Path, project: Path) -> None:
    """A week of calls gives the same values from a server as from a memory opened here."""
    clock = Clock()
    options = {"page": None, "projects": (project,)}
    with Memory.open(tmp_path / "here", embedder="hashing", clock=clock) as memory:
        here = [(name, value) for name, value in story(memory, project, tmp_path / "a")]
    with (
        served(tmp_path / "there", options, clock=clock) as (url, _),
        RemoteMemory.connect(url) as remote,
    ):
        there = [(name, value) for name, value in story(remote, project, tmp_path / "b")]
    ids: tuple[dict[str, str], dict[str, str]] = {}, {}
    for (name, one), (_, other) in zip(here, there, strict=True):
        assert type(one) is type(other), name
        assert comparable(as_json(other), ids[1]) == comparable(as_json(one), ids[0]), name
    assert dict(there)["recall"][0].id == dict(there)["remember_many"][0][1].id


@pytest.mark.promise("client.facade")
def test_values_are_the_same_to_the_type(tmp_path: Path) -> None:
    """Of one home the embedded memory and the client give equal frozen values."""
    with served(tmp_path / "home") as (url, memory), RemoteMemory.connect(url) as remote:
        kept = memory.remember("Kestrels hover.", tags=["bird"], payload={"n": [1, None]})
        memory.conversations.append("chat", "user", "The port is 5433.", speaker="Mara")
        memory.observe("A note.")
        assert memory.ready(60)
        assert remote.get(kept.id) == memory.get(kept.id)
        assert remote.list() == memory.list()
        assert remote.conversations.get("chat") == memory.conversations.get("chat")
        assert remote.conversations.list() == memory.conversations.list()
        assert remote.notes() == memory.notes()
        assert remote.stats() == memory.stats()
        assert remote.namespaces() == memory.namespaces()
        one, other = (
            remote.recall("kestrels", explain=True),
            memory.recall("kestrels", explain=True),
        )
        assert type(one.hits[0]) is type(other.hits[0])
        assert as_json(one) == as_json(other)
        assert one[0].created_at == other[0].created_at
        turns = remote.recall_conversation("chat", "which port?")
        assert turns[0].ts == memory.recall_conversation("chat", "which port?")[0].ts


@pytest.mark.promise("client.complete")
def test_every_method_of_the_facade_is_offered_or_listed() -> None:
    """No public name of `Memory` is forgotten: it asks the server, or says why it cannot."""
    names = {name for name in dir(Memory) if not name.startswith("_")}
    inherited = {
        name
        for name in names
        if inspect.getattr_static(RemoteMemory, name) is inspect.getattr_static(Memory, name)
    }
    assert inherited == set()
    assert not REQUESTS.keys() & NOT_OFFERED.keys()
    for name in names - NOT_OFFERED.keys():
        one, other = (inspect.getattr_static(kind, name) for kind in (Memory, RemoteMemory))
        if not isinstance(one, property):
            function = getattr(Memory, name)
            mine = inspect.signature(getattr(RemoteMemory, name)).parameters
            assert list(mine) == list(inspect.signature(function).parameters), name
        assert inspect.getdoc(other), name
    for name, http in REQUESTS.items():
        parameters = inspect.signature(getattr(Memory, name)).parameters
        assert parameters.keys() >= {*http.renamed, *http.folders}, name


@pytest.mark.promise("client.complete")
def test_what_is_not_offered_says_so_by_name(tmp_path: Path) -> None:
    """It is named with the reason, before anything is asked."""
    memory = RemoteMemory.connect("http://127.0.0.1:9")
    for name, reason in NOT_OFFERED.items():
        with pytest.raises(errors.NotOffered) as caught:
            _ = getattr(memory, name) if name in PROPERTIES else getattr(memory, name)()
        assert caught.value.what == name
        assert caught.value.reason == reason
    refused: list[Callable[[], Any]] = [
        lambda: memory.search("x", directory="/tmp"),
        lambda: memory.warm_up(directory="/tmp"),
        lambda: memory.on("sync", print),
        lambda: memory.import_(tmp_path),
        lambda: memory.conversations.extend("c", [NewTurn("user", "x", source="s")]),
        memory.conversations.problems,
        lambda: memory.conversations.path("c"),
    ]
    for call in refused:
        with pytest.raises(errors.NotOffered):
            call()
    memory.close()


PROPERTIES = {"home", "local_time", "tokens", "sync", "mirror", "hosted_logs", "audit"}


@pytest.mark.promise("client.errors")
def test_errors_are_those_of_the_facade(tmp_path: Path) -> None:
    """What raises here raises the same there, with the same data on it."""

    def many(memory: Memory) -> Any:
        return memory.remember_many(["fine", " "])

    calls: list[Callable[[Memory], Any]] = [
        lambda m: m.get("none"),
        lambda m: m.get("a/b"),
        lambda m: m.get(".."),
        lambda m: m.forget("none"),
        lambda m: m.forget(),
        lambda m: m.remember(" "),
        lambda m: m.remember("x", type="nonsense"),  # type: ignore[arg-type]
        lambda m: m.remember(5),  # type: ignore[arg-type]
        lambda m: m.remember("x", supersedes="none"),
        lambda m: m.recall("x", filters={"tags": {"has": "x"}}),
        lambda m: m.list({"nope": 1}),
        lambda m: m.list(cursor="nonsense"),
        lambda m: m.update("none", text="x"),
        lambda m: m.undo_forget("none"),
        lambda m: m.resolve_id("none"),
        lambda m: m.settle_contradiction("a", "b", "wrong"),
        many,
        lambda m: m.conversations.append("a/b", "user", "x"),
        lambda m: m.conversations.append("c", "", "x"),
        lambda m: m.recall_conversation("..", "x"),
        lambda m: m.project_map("none"),
        lambda m: m.remove_project("/no/such/folder"),
        lambda m: m.recall_context("x", project="none"),
        lambda m: m.recall_context("x", budget=1),
        lambda m: m.search("x", project="none"),
        lambda m: m.trace("none"),
        lambda m: m.extract("none"),
        lambda m: m.delete_namespace("none"),
        lambda m: m.delete_namespace(".."),
        lambda m: m.scoped("a/b"),
        lambda m: m.on("x", 5),  # type: ignore[arg-type]
        lambda m: m.import_(tmp_path / "none"),
        lambda m: m.export(tmp_path),
    ]
    with served(tmp_path / "home") as (url, memory), RemoteMemory.connect(url) as remote:
        for number, call in enumerate(calls):
            with pytest.raises(errors.AnaphoraError) as here:
                assert call(memory) is NotImplemented, number
            with pytest.raises(errors.AnaphoraError) as there:
                call(remote)
            one, other = here.value, there.value
            assert type(one) is type(other), (number, one, other)
            if isinstance(one, errors.NotFound):
                assert (one.kind, one.id) == (other.kind, other.id), number  # type: ignore[attr-defined]
            if call is many:
                assert other.what.startswith("items[1]")  # type: ignore[attr-defined]
            if isinstance(one, errors.FilterError):
                assert one.what == other.what  # type: ignore[attr-defined]


@pytest.mark.promise("client.errors")
def test_every_error_of_the_server_arrives_as_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kind of error comes back as its own class, with its words and data, and no path."""
    raised: list[errors.AnaphoraError] = [
        errors.InvalidTurn("role", "x", "must be a role"),
        errors.Conflict("path", "x", "changed"),
        errors.UnknownFormat("source", "x", "nobody reads it"),
        errors.NotFound("memory", "x"),
        errors.DiskFull("write", "/secret", "no space"),
        errors.Unreadable("records", "7", "bad"),
        errors.EmbedderNotReady(3.0),
        errors.EndpointDenied("http://embedder", "model", "no key"),
        errors.ModelTimeout("model", 5.0),
        errors.NoModel("set one", "model"),
        errors.SandboxError("no sandbox"),
        errors.MissingExtra("deep", "monty"),
        errors.Closed("this memory"),
        errors.EncryptionError("key", "gone"),
    ]
    for error in raised:
        answer = refused_with(error, monkeypatch)

        def respond(_: httpx.Request, answer: httpx.Response = answer) -> httpx.Response:
            return httpx.Response(answer.status_code, content=answer.content)

        with pytest.raises(errors.AnaphoraError) as caught, remote_over(respond) as memory:
            memory.get("x")
        found = caught.value
        assert type(found) is type(error)
        assert b"/secret" not in answer.content
        for name in ("what", "reason", "kind", "id", "operation", "model", "waited", "extra"):
            if not isinstance(error, errors.EncryptionError):
                assert getattr(found, name, None) == getattr(error, name, None)
        if isinstance(error, errors.StoreError):
            assert found.path == "http://server"  # type: ignore[attr-defined]
        elif isinstance(error, errors.MissingExtra):
            # The command that installs it names a place on the server's disk.
            assert str(found) == error.summary
        elif not isinstance(error, errors.InvalidInput | errors.EncryptionError):
            assert str(found) == str(error)


def refused_with(error: Exception, monkeypatch: pytest.MonkeyPatch) -> httpx.Response:
    """What a server answers when its memory raises an error."""

    def fail(*_: object, **__: object) -> None:
        raise error

    with monkeypatch.context() as broken, open_memory(warm=False) as memory:
        broken.setattr(Memory, "list", fail)
        with TestClient(server_app(memory, page=None), base_url="http://127.0.0.1:7411") as client:
            answer = client.get("/v1/memories")
    return httpx.Response(answer.status_code, content=answer.content)


def remote_over(respond: Callable[[httpx.Request], httpx.Response], **given: Any) -> RemoteMemory:
    client = httpx.Client(transport=httpx.MockTransport(respond))
    return RemoteMemory.connect("http://server", http_client=client, **given)


@pytest.mark.promise("client.retries")
def test_only_what_may_be_done_twice_is_asked_again() -> None:
    """Reading is tried again; a change only where it was never begun, and never beyond a limit."""
    seen: list[str] = []
    paused: list[float] = []
    busy = json.dumps({"type": "urn:anaphora:problem:busy", "detail": "busy"})
    good = json.dumps({"ids": [], "items": [], "cursor": None, "id": "1", "action": "added"})

    def over(*answers: Any) -> RemoteMemory:
        waiting = iter(answers)
        seen.clear()
        paused.clear()

        def respond(request: httpx.Request) -> httpx.Response:
            seen.append(request.method)
            answer = next(waiting)
            if isinstance(answer, Exception):
                raise answer
            status, headers, body = answer
            return httpx.Response(status, headers=headers, text=body)

        return remote_over(respond, retries=2, sleep=paused.append)

    ok: Any = (200, {}, good)
    gateway: Any = (502, {}, "gateway")
    lost, refused = httpx.ReadTimeout("slow"), httpx.ConnectError("refused")
    assert over(gateway, lost, ok).list().items == ()
    assert over((503, {"Retry-After": "3"}, busy), ok).remember("x").id == "1"
    assert paused == [3.0]
    assert over((429, {"Retry-After": "9999"}, "{}"), ok).remember("x").id == "1"
    assert paused == [10.0]
    assert over(refused, refused, ok).remember("x").id == "1"
    for failure, sent in ((lost, True), (httpx.ReadError("cut"), True)):
        with pytest.raises(errors.ServerUnreachable) as caught:
            over(failure, ok).remember("x")
        assert caught.value.sent is sent
        assert seen == ["POST"]
    with pytest.raises(errors.ServerError) as answered:
        over(gateway, ok).remember("x")
    assert answered.value.status == 502
    with pytest.raises(errors.ServerUnreachable) as away:
        over(refused, refused, refused, ok).list()
    assert away.value.sent is False
    assert len(seen) == 3
    # One that has answered is being started again: it is given half a minute.
    restarted = over(ok, *[refused] * 12, ok)
    assert restarted.list().items == ()
    assert restarted.remember("x").id == "1"
    assert paused == [1.0] * 12
    gone = over(ok, *[refused] * 40)
    gone.list()
    with pytest.raises(errors.ServerUnreachable):
        gone.remember("x")
    assert len(paused) == 32


@pytest.mark.promise("client.facade")
def test_a_cancellation_abandons_only_recalls() -> None:
    """A question that was cancelled is not waited for; any other call is made."""
    answer = {"id": "1", "action": "added", "hits": [], "items": [], "text": ""}
    with (
        remote_over(lambda _: httpx.Response(200, json=answer)) as memory,
        Cancellation() as cancellation,
    ):
        cancellation.cancel()
        recalls: list[Callable[[], Any]] = [
            lambda: memory.recall("x"),
            lambda: memory.search("x"),
            lambda: memory.recall_conversation(None, "x"),
            lambda: memory.recall_context("x"),
        ]
        for call in recalls:
            with pytest.raises(errors.Cancelled):
                call()
        assert memory.remember("x").id == "1"
        assert memory.list().items == ()


@pytest.mark.promise("client.errors")
def test_an_answer_of_something_else_is_told(tmp_path: Path) -> None:
    """A page, a redirect or another program's JSON is no answer, and no token follows."""
    for answer, reason in (
        (httpx.Response(200, text="<html>"), "none of an Anaphora server"),
        (httpx.Response(200, json={"hits": 5}), "none of an Anaphora server"),
        (httpx.Response(301, headers={"Location": "https://elsewhere"}), "redirects to"),
        (httpx.Response(500, text="oops"), "it answered 500"),
        (httpx.Response(404, text="no"), "it answered 404"),
    ):
        asked = remote_over(lambda _, answer=answer: answer)  # type: ignore[misc]
        with pytest.raises(errors.ServerError, match=reason):
            asked.recall("x")
    health = RemoteMemory.connect("http://127.0.0.1:9", retries=0).health()
    assert not health.ok
    assert health.checks[0].name == "server"
    for url in ("", "memory.example.org", "ftp://x", "http://", "http://x/#token=1", "http://u@x"):
        with pytest.raises(errors.InvalidInput):
            RemoteMemory.connect(url)
    with pytest.raises(errors.InvalidInput) as hidden:
        RemoteMemory.connect("http://x", token="secret\n")
    assert "secret" not in str(hidden.value)


@pytest.mark.promise("client.errors")
@pytest.mark.parametrize("said", [None, 5, "x", [], [5], {}, {"items": 5}, {"turns": [{}]}])
def test_json_of_another_form_is_told(said: Any) -> None:
    """No answer raises anything but an error of ours, whatever stands in it."""
    with remote_over(lambda _: httpx.Response(200, json=said)) as memory:
        calls: list[Callable[[], Any]] = [
            lambda: memory.remember("x"), lambda: memory.remember_many(["x"]), memory.list,
            lambda: memory.recall("x"), lambda: memory.get("x"), lambda: memory.undo_forget("x"),
            lambda: memory.recall_conversation(None, "x"), lambda: memory.end_session("c"),
            memory.namespaces, memory.stats, lambda: memory.ready(0), memory.health, memory.gaps,
            lambda: memory.conversations.get("c"), memory.conversations.list,
            lambda: memory.conversations.append("c", "user", "x"), lambda: memory.trace("x"),
        ]  # fmt: skip
        refused = 0
        for call in calls:
            try:
                call()
            except errors.ServerError:
                refused += 1
        # What has a default for everything can be made of nothing.
        assert refused >= len(calls) - 8, said


@pytest.mark.promise("client.facade")
def test_a_token_opens_its_namespaces(tmp_path: Path) -> None:
    """A wrong token, another namespace and a change without the right are `AccessDenied`."""
    with served(tmp_path / "home", {"page": None, "require_token": True}) as (url, memory):
        reads = memory.tokens.create("r", namespaces=["work"], read_only=True).secret
        with RemoteMemory.connect(url, token=reads, namespace="work") as remote:
            assert remote.list().items == ()
            assert remote.namespaces() == ("work",)
            for call in (lambda: remote.remember("x"), lambda: remote.scoped("default").list()):
                with pytest.raises(errors.AccessDenied) as caught:
                    call()
                assert caught.value.status == 403
        for token in (None, "anaphora_0"):
            with (
                pytest.raises(errors.AccessDenied) as unknown,
                RemoteMemory.connect(url, token=token) as remote,
            ):
                remote.list()
            assert unknown.value.status == 401


@pytest.mark.promise("client.facade")
def test_adapters_work_over_a_server(tmp_path: Path) -> None:
    """A store for LangGraph and Claude's memory tool keep to their contracts over a client."""
    with served(tmp_path / "home") as (url, _), RemoteMemory.connect(url) as remote:
        store = AnaphoraStore(remote)
        store.put(("users", "mara"), "tea", {"likes": "tea", "key": "AKIAIOSFODNN7EXAMPLE"})
        store.put(("users", "mara"), "tea", {"likes": "coffee", "key": "AKIAIOSFODNN7EXAMPLE"})
        item = store.get(("users", "mara"), "tea")
        assert item is not None
        assert item.value == {"likes": "coffee", "key": "AKIAIOSFODNN7EXAMPLE"}
        store.delete(("users", "mara"), "tea")
        assert store.get(("users", "mara"), "tea") is None
        files = MemoryFiles(remote)
        files.create("/memories/notes.txt", "Herons wade.")
        files.str_replace("/memories/notes.txt", "wade", "fly")
        assert "Herons fly." in files.view("/memories/notes.txt")


@pytest.mark.promise("client.facade")
def test_listeners_closing_and_the_async_facade(tmp_path: Path) -> None:
    """Listeners are told, a closed client says so, and `AsyncMemory` takes a client as it is."""
    told: list[Any] = []

    def broken(_: object) -> None:
        raise ValueError

    async def softly(url: str) -> Any:
        async with AsyncMemory(RemoteMemory.connect(url)) as memory:
            kept = await memory.remember("Herons wade.")
            await memory.conversations.append("chat", "user", "Hello.")
            steps: list[str] = []
            await memory.deep_recall("Who wades?", on_step=lambda step: steps.append(step.kind))
            work = memory.scoped("work")
            return kept, await memory.recall("herons"), await work.list(), steps

    with served(tmp_path / "home") as (url, memory):
        kept, found, other, _ = asyncio.run(softly(url))
        assert [hit.id for hit in found] == [kept.id]
        assert other.items == ()
        assert memory.conversations.get("chat") is not None
        remote = RemoteMemory.connect(url)
        remote.on("remember", broken)
        remote.on("remember", told.append)
        done = remote.scoped("work").remember("x")
        assert told == [done]
        remote.close()
        remote.close()
        with pytest.raises(errors.Closed):
            remote.list()
        with pytest.raises(errors.Closed):
            remote.conversations.list()


@pytest.mark.promise("client.facade")
def test_a_stream_that_breaks_off_is_told() -> None:
    """A deep question whose steps end before the answer is no answer."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b": a comment\n\n"})

    async def quiet(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await app(scope, receive, send)

    with (
        listening(quiet) as url,
        RemoteMemory.connect(url) as remote,
        pytest.raises(errors.ServerUnreachable, match="before its end"),
    ):
        remote.deep_recall("x", on_step=lambda _: None)
