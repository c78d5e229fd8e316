"""What the index of memories writes grows with what came, not with what is there."""

from __future__ import annotations

import shutil
import threading
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from anaphora import Memory
from anaphora.index import maintenance
from anaphora.index.memories import index as memories
from anaphora.index.words.manifest import SegmentFolder
from anaphora.values.memories import NewMemory

pytestmark = pytest.mark.internal

WORDS = ("tea", "cat", "lock", "train", "invoice", "vienna", "budget", "violin")


def _texts(count: int, first: int = 0) -> list[NewMemory]:
    return [NewMemory(f"number {n} about {WORDS[n % 8]}") for n in range(first, first + count)]


def _manifest(home: Path) -> Path:
    return home / "index" / "default" / "memories" / "words" / "memories.json"


def test_ever_more_comes_between_two_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words of a large index are not written again for every few that come."""
    monkeypatch.setattr(memories, "TAIL_LIMIT", 4)
    monkeypatch.setattr(memories, "TAIL_SHARE", 4)
    seen: list[bytes] = []
    with Memory.open(tmp_path, embedder="hashing") as memory:
        for start in range(0, 300, 3):
            memory.remember_many(_texts(3, start))
            # The question starts the writing of what is due, and this waits for it.
            assert memory.recall(f"number {start + 2}", mode="words").hits
            assert memory.ready(60)
            if _manifest(tmp_path).is_file():
                at = _manifest(tmp_path).read_bytes()
                seen += [at] if not seen or seen[-1] != at else []
        # Each write is a quarter of what is there: 4, 5, 7 … 300; every five would be 60 of them.
        assert 5 <= len(seen) <= 24
        assert memory.recall("number 299", mode="words", top_k=1)[0].text.startswith("number 299")


def test_a_lost_index_of_many_is_written_before_the_first_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing of many memories is on the disk, the first question leaves all of it there."""
    with Memory.open(tmp_path, embedder="hashing") as memory:
        memory.remember_many(_texts(130))
    shutil.rmtree(tmp_path / "index")
    monkeypatch.setattr(memories, "MUCH", 40)
    with Memory.open(tmp_path, embedder="hashing") as memory:
        found = memory.recall("number 77", mode="words", top_k=1)
        assert found[0].text == "number 77 about vienna"
        written = _manifest(tmp_path).read_bytes()
        assert all(one.id.encode() in written for one in memory.list(limit=130))
    with Memory.open(tmp_path, embedder="hashing") as memory:
        assert memory.recall("violin", mode="words", top_k=20)
        assert _manifest(tmp_path).read_bytes() == written


def test_what_is_forgotten_leaves_the_disk_before_the_index_is_made_again(tmp_path: Path) -> None:
    """A forgotten word is in no file when the call returns; the rest is written behind it."""
    with Memory.open(tmp_path, embedder="hashing") as memory:
        gone = memory.remember("the password of the safe is xylograph").id
        memory.remember_many(_texts(120))
    assert gone.encode() in _manifest(tmp_path).read_bytes()
    with Memory.open(tmp_path, embedder="hashing") as memory:
        assert memory.recall("xylograph", mode="words").hits
        assert memory.forget(gone).count == 1
        for one in (tmp_path / "index").rglob("*"):
            # What is written behind the call may be renamed meanwhile.
            with suppress(FileNotFoundError, IsADirectoryError):
                assert b"xylograph" not in one.read_bytes()
        assert not memory.recall("xylograph", mode="words").hits
        assert memory.recall("number 99", mode="words", top_k=1)[0].text.startswith("number 99")
    written = _manifest(tmp_path).read_bytes()
    assert gone.encode() not in written
    assert written.count(b'", "') >= 100


def test_a_rewrite_that_began_before_brings_no_forgotten_word_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words that are being written behind one forgetting are not on the disk after another one,
    which took some of them, has returned."""
    begun, go, returned = threading.Event(), threading.Event(), threading.Event()
    written_after: list[bytes] = []
    whole = SegmentFolder.write

    def held(*given: Any) -> Any:
        begun.set()
        go.wait(30)
        done = whole(*given)
        if returned.is_set():
            written_after.append(_manifest(tmp_path).read_bytes())
        return done

    with Memory.open(tmp_path, embedder="hashing") as memory:
        memory.remember_many(_texts(200))
        first = memory.remember("the safe opens with xylograph").id
        second = memory.remember("the vault opens with quincunx").id
    with Memory.open(tmp_path, embedder="hashing") as memory:
        assert memory.recall("quincunx", mode="words").hits
        monkeypatch.setattr(SegmentFolder, "write", held)

        def forget_second() -> None:
            memory.forget(second)
            returned.set()

        memory.forget(first)
        assert begun.wait(30)
        other = threading.Thread(target=forget_second)
        other.start()
        # It has to wait for the rewrite, or to end without it: both are given the time.
        other.join(0.5)
        go.set()
        other.join(30)
        assert memory.ready(30)
    assert not [one for one in written_after if second.encode() in one]
    assert second.encode() not in _manifest(tmp_path).read_bytes()


def test_forgetting_beside_a_rewrite_that_is_just_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call that has to wait for the background never meets a thread that has not begun."""
    monkeypatch.setattr(memories, "TAIL_LIMIT", 1)
    begun, failed = threading.Event(), []

    class Slow(threading.Thread):
        def start(self) -> None:
            begun.set()
            threading.Event().wait(0.3)
            super().start()

    with Memory.open(tmp_path, embedder="hashing") as memory:
        memory.remember_many(_texts(20))
        gone = memory.remember("the safe opens with xylograph").id
        assert memory.ready(60)

        def ask() -> None:
            memory.remember_many(_texts(5, 50))
            memory.recall("number 3")

        asking = threading.Thread(target=ask)

        def forget() -> None:
            try:
                memory.forget(gone)
            except RuntimeError as error:
                failed.append(error)

        forgetting = threading.Thread(target=forget)
        monkeypatch.setattr(maintenance, "threading", SimpleNamespace(Thread=Slow))
        asking.start()
        assert begun.wait(30)
        forgetting.start()
        forgetting.join(30)
        asking.join(30)
        assert not failed
        assert not memory.recall("xylograph", mode="words").hits
