"""What damage to each file of a home does, and does not do."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.durability.work import make_world, memory_of
from tests.memory_child import flaws
from tests.sqlite_driver import wal

from anaphora import NewMemory
from anaphora.errors import AnaphoraError, CorruptThread, StoreError

pytestmark = pytest.mark.internal


def _cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def _zeros(data: bytes) -> bytes:
    return bytes(len(data))


def _noise(data: bytes) -> bytes:
    return random.Random(len(data)).randbytes(len(data))


def _flipped(data: bytes) -> bytes:
    """One sector in the middle is another one's."""
    start = len(data) // 2 // 512 * 512
    return data[:start] + _noise(data[start : start + 512]) + data[start + 512 :]


def _gone(_: bytes) -> bytes:
    return b""


WAYS: dict[str, Callable[[bytes], bytes]] = {
    "cut": _cut,
    "zeros": _zeros,
    "noise": _noise,
    "a sector": _flipped,
    "empty": _gone,
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    make_world(tmp_path, sealed=False)
    return tmp_path / "home"


def _spoil(path: Path, way: str) -> None:
    path.write_bytes(WAYS[way](path.read_bytes()))


@pytest.mark.promise("durable.damage")
@pytest.mark.parametrize("way", ["cut", "zeros", "noise", "empty"])
def test_a_damaged_thread(home: Path, way: str) -> None:
    """It is set aside with its bytes and told; every other thread and memory is as it was."""
    path = home / "conversations/talk.json"
    _spoil(path, way)
    damaged = path.read_bytes()
    with memory_of(home) as memory:
        with pytest.raises(CorruptThread) as told:
            memory.conversations.append("talk", "user", "one more")
        assert told.value.set_aside is not None
        assert told.value.set_aside.read_bytes() == damaged
        assert [one.conversation_id for one in memory.conversations.list()] == ["other"]
        assert len(memory.list(limit=100)) == 7
        assert not all(check.ok for check in memory.doctor() if check.name == "threads")


@pytest.mark.promise("durable.damage")
@pytest.mark.parametrize("way", WAYS)
def test_a_damaged_index(home: Path, way: str) -> None:
    """Whatever is in its files, the answers are those of an index made anew."""
    with memory_of(home) as memory:
        wanted = [hit.text for hit in memory.recall_conversation("talk", "xylophone")]
        known = [hit.text for hit in memory.recall("token3")]
    files = [path for path in sorted((home / "index").rglob("*")) if path.is_file()]
    assert files
    for path in files:
        _spoil(path, way)
    with memory_of(home) as memory:
        assert [hit.text for hit in memory.recall_conversation("talk", "xylophone")] == wanted
        assert [hit.text for hit in memory.recall("token3")] == known


@pytest.mark.promise("durable.damage")
def test_an_index_that_is_gone(home: Path) -> None:
    """Nothing is lost with the folder of the index."""
    shutil.rmtree(home / "index")
    with memory_of(home) as memory:
        found = memory.recall_conversation("talk", "xylophone")
        assert found[0].text == "the code is xylophone-7"
        assert "memory 3 keeps token3 for later" in [hit.text for hit in memory.recall("token3")]


@pytest.mark.promise("durable.damage")
@pytest.mark.parametrize("way", ["noise", "zeros"])
@pytest.mark.parametrize("page", [0, 1, 7])
def test_a_damaged_page_of_the_database(home: Path, way: str, page: int) -> None:
    """Doctor tells, a backup is refused, errors are ours, and no thread file is touched."""
    path = home / "anaphora.db"
    data = bytearray(path.read_bytes())
    data[page * 4096 : page * 4096 + 4096] = WAYS[way](bytes(data[page * 4096 :][:4096]))
    path.write_bytes(data)
    before = (home / "conversations/talk.json").read_bytes()
    with memory_of(home) as memory:
        for call in (
            lambda: memory.remember("one more"),
            lambda: memory.list(limit=100),
            lambda: memory.recall("token3"),
        ):
            try:
                call()
            except AnaphoraError as error:
                assert isinstance(error, StoreError)  # noqa: PT017 - it may also be well
        with pytest.raises(StoreError):
            memory.backup(home.parent / "new.backup")
    assert not (home.parent / "new.backup").exists()
    assert (home / "conversations/talk.json").read_bytes() == before


@wal
@pytest.mark.promise("durable.damage")
@pytest.mark.parametrize("way", ["zeros", "noise", "cut"])
def test_a_damaged_log_of_the_database(home: Path, tmp_path: Path, way: str) -> None:
    """What was merged before it is there and whole; SQLite leaves out the log from there on."""
    crashed = tmp_path / "crashed"
    with memory_of(home) as memory:
        memory.remember("this is in the log alone")
        shutil.copytree(home, crashed)
    log = crashed / "anaphora.db-wal"
    assert log.stat().st_size > 0
    (crashed / "anaphora.db-shm").unlink()
    _spoil(log, way)
    with memory_of(crashed) as memory:
        assert flaws(memory) == []
        texts = [one.text for one in memory.list(limit=100)]
        assert "memory 3 keeps token3 for later" in texts
        memory.remember("written after the damage")
    with memory_of(crashed) as memory:
        assert "written after the damage" in [one.text for one in memory.list(limit=100)]


@pytest.mark.promise("durable.damage")
def test_a_database_that_is_gone(home: Path) -> None:
    """Without it the threads are read word for word; speakers, memories and notes went with it."""
    for path in home.glob("anaphora.db*"):
        path.unlink()
    with memory_of(home) as memory:
        thread = memory.conversations.get("talk")
        assert thread is not None
        assert thread.turns[-1].text == "the code is xylophone-7"
        assert thread.turns[-1].speaker is None
        assert len(memory.list(limit=100)) == 0
        memory.conversations.append("talk", "user", "and on it goes", speaker="Ann")
        assert memory.conversations.recent("talk")[-1].speaker == "Ann"


@pytest.mark.promise("durable.damage")
@pytest.mark.parametrize("way", ["deleted", "replaced", pytest.param("log", marks=wal), "home"])
def test_a_database_that_goes_while_it_is_open(home: Path, way: str) -> None:
    """Nothing is acknowledged that goes into a file which nobody can open again; turns are kept."""
    database = home / "anaphora.db"
    with memory_of(home) as memory:
        memory.remember("the last that was acknowledged")
        if way == "home":
            shutil.rmtree(home)
        elif way == "replaced":
            shutil.copy(database, home / "copy")
            (home / "copy").replace(database)
        else:
            Path(f"{database}-wal" if way == "log" else database).unlink()
        for ask in (
            lambda: memory.remember("goes nowhere"),
            lambda: memory.remember_many([NewMemory("goes nowhere")]),
            lambda: memory.observe("goes nowhere"),
            lambda: memory.tokens.create("nobody"),
            lambda: memory.conversations.append("talk", "user", "said", speaker="Ada"),
        ):
            with pytest.raises(StoreError):
                ask()
        memory.conversations.append_user("other", "a turn has a file of its own")
    with memory_of(home) as memory:
        assert memory.conversations.recent("other")[-1].text == "a turn has a file of its own"
        memory.remember("and on it goes")
