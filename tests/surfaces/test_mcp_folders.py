"""The folders that a client has open: indexed in the background, and what calls are about."""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from tests.mcp_client import call, connected

from anaphora import Memory
from anaphora.surfaces.mcp_server import folders as rooms
from anaphora.surfaces.mcp_server.folders import Folders, OpenFolders, folder_of, started_in
from anaphora.surfaces.mcp_server.session import ServerSession
from anaphora.surfaces.mcp_server.stdio import StdioServer


def run(scenario: Callable[[], Awaitable[Any]]) -> Any:
    return anyio.run(scenario)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "user").mkdir()
    return tmp_path / "user" / "home"


def project(place: Path, subject: str) -> Path:
    """A tiny project about something."""
    place.mkdir(parents=True)
    (place / "pyproject.toml").write_text(f'[project]\nname = "{place.name}"\n')
    (place / f"{subject}.py").write_text(
        f'"""All about {subject}."""\n\n\ndef fly_{subject}(speed: int) -> int:\n    return speed\n'
    )
    return place


@pytest.mark.promise("mcp.folders")
def test_the_first_question_indexes_the_open_folder(home: Path) -> None:
    """A root of the client is known at its first question, and later changes are seen."""
    place = project(home.parent / "aviary", "kestrel")

    async def scenario() -> None:
        async with connected(home, roots=[place]) as session:
            focus = "how does fly_kestrel work?"
            for _ in range(100):
                found = await call(session, "recall_context", focus=focus)
                # A slow machine says what is not there yet, and goes on indexing.
                if not found["data"]["degraded"]:
                    break
            paths = [target["path"] for target in found["data"]["primary_targets"]]
            assert "kestrel.py" in paths
            assert found["data"]["degraded"] == []
            (place / "heron.py").write_text(
                "def wade_heron(depth: int) -> int:\n    return depth\n"
            )
            found = await call(session, "recall_context", focus="where is wade_heron?")
            assert "heron.py" in [one["path"] for one in found["data"]["primary_targets"]]

    run(scenario)
    with Memory.open(home, embedder="hashing") as memory:
        assert [Path(one.root) for one in memory.projects()] == [place.resolve()]


@pytest.mark.promise("mcp.folders")
@pytest.mark.parametrize("answers", [None, "an error"])
def test_what_no_client_named_is_not_indexed(home: Path, answers: str | None) -> None:
    """A client without roots, or whose roots do not come, has nothing read; it is told how."""
    place = project(home.parent / "aviary", "kestrel")

    async def scenario() -> None:
        async with connected(home, cwd=place, broken_roots=answers is not None) as session:
            for tool, given in (("recall_context", {"focus": "fly_kestrel"}), ("warm_up", {})):
                found = await call(session, tool, **given)
                (told,) = found["data"]["degraded"]
                assert told["part"] == "indexing"
                assert f"anaphora project index {place.resolve()}" in told["reason"]
            noted = await call(session, "save_diary", summary="Watched kestrels.")
            assert noted["data"]["project"] is None

    run(scenario)
    with Memory.open(home, embedder="hashing") as memory:
        assert memory.projects() == ()


@pytest.mark.promise("mcp.folders")
def test_without_roots_the_working_folder_counts(home: Path) -> None:
    """A client that names no folders has the known project around the server's folder."""
    place = project(home.parent / "aviary", "kestrel")
    (place / "nest").mkdir()
    with Memory.open(home, embedder="hashing") as memory:
        memory.index_project(place)

    async def scenario() -> None:
        async with connected(home, cwd=place / "nest") as session:
            warm = await call(session, "warm_up")
            assert any("aviary" in line for line in warm["data"]["shape"])
            diary = await call(session, "save_diary", summary="Flew the kestrel.")
            assert diary["data"]["project"] is not None

    run(scenario)


@pytest.mark.promise("mcp.folders")
def test_the_project_that_is_open_is_what_a_question_is_about(home: Path) -> None:
    """Of two known projects, only the open one answers, unless another is named."""
    open_one = project(home.parent / "aviary", "kestrel")
    other = project(home.parent / "harbour", "kestrel")

    async def scenario() -> None:
        with Memory.open(home, embedder="hashing") as memory:
            memory.index_project(other)
        async with connected(home, roots=[open_one]) as session:
            found = await call(session, "recall_context", focus="fly_kestrel")
            assert found["data"]["projects"] == ["aviary"]
            found = await call(session, "recall_context", focus="fly_kestrel", project="harbour")
            assert found["data"]["projects"] == ["harbour"]

    run(scenario)


@pytest.mark.promise("mcp.folders")
def test_the_home_folder_is_never_indexed(home: Path, tmp_path: Path) -> None:
    """Neither the user's folder nor one above it, whether named or worked in."""
    user = home.parent
    (user / ".git").mkdir()

    async def scenario() -> None:
        async with connected(home, roots=[user, tmp_path, user / "gone"]) as session:
            found = await call(session, "recall_context", focus="anything")
            assert found["data"]["quality"] == "weak"
        async with connected(home, cwd=user) as session:
            await call(session, "warm_up")

    run(scenario)
    with Memory.open(home, embedder="hashing") as memory:
        assert memory.projects() == ()
    inside = user / "notes"
    inside.mkdir()
    assert started_in(inside, user) is None
    assert folder_of("https://example.org/notes", user) is None
    assert folder_of((inside / "a b").as_uri(), user) is None
    (inside / "a b").mkdir()
    assert folder_of((inside / "a b").as_uri(), user) == (inside / "a b").resolve()


@pytest.mark.promise("mcp.folders")
def test_a_long_indexing_is_said(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A question that comes amid the indexing answers from what is there, and says so."""
    monkeypatch.setattr(rooms, "PATIENCE", 0.01)
    place = project(home.parent / "aviary", "kestrel").resolve()
    free = threading.Event()
    desk = ServerSession(lambda: Memory.open(home, embedder="hashing"))
    index = rooms._index

    def slow(memory: Memory, folder: Path, worded: threading.Event) -> str | None:
        free.wait()
        return index(memory, folder, worded)

    monkeypatch.setattr(rooms, "_index", slow)
    folders = Folders(desk)
    opened = OpenFolders((place,), named=True)
    (told,) = folders.call_context(desk.memory(), opened, indexing=True).degraded
    assert told.part == "indexing"
    assert "aviary" in told.reason
    monkeypatch.setattr(rooms, "PATIENCE", 60.0)
    free.set()
    after = folders.call_context(desk.memory(), opened, indexing=True)
    assert after.degraded == ()
    assert after.project == str(place)
    assert desk.finish()


class _Answering(io.RawIOBase):
    """What a client does that answers before the server knows that its request was written."""

    def __init__(self) -> None:
        self._answer = threading.Event()
        self._taken = threading.Event()

    def __iter__(self) -> Iterator[bytes]:
        self._answer.wait(30)
        yield b'{"jsonrpc": "2.0", "id": 1, "result": {"roots": []}}\n'
        # Each line is taken after the one before: with these the answer has been.
        yield from [b"\n"] * 4
        self._taken.set()

    def write(self, data: Any) -> int:
        self._answer.set()
        self._taken.wait(30)
        return len(data)


@pytest.mark.promise("mcp.folders")
def test_an_answer_may_come_before_its_request_is_known_to_be_written() -> None:
    """The folders that a quick client tells are not lost."""

    async def scenario() -> Any:
        client: Any = _Answering()
        tools: Any = SimpleNamespace(handlers={}, changes=lambda _: False)
        server = StdioServer(tools, lambda: None, client, client)
        running = asyncio.create_task(server.run())
        found = await server.ask("roots/list")
        await running
        return found

    assert asyncio.run(scenario()) == {"roots": []}
