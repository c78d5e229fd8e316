"""What the index of memories writes grows with what came, not with what is there."""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.memory_home import MemoryHome, memory_home

from anaphora import Memory, NewMemory
from anaphora.index import maintenance
from anaphora.index.memories import index as memories
from anaphora.index.memories.index import MemoryIndex
from anaphora.index.memories.state import MemoryQuery
from anaphora.index.memories.words import memory_segments
from anaphora.index.words.manifest import SegmentFolder
from anaphora.index.words.parts import PartSizes
from anaphora.index.words.segment import SegmentPart

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


SMALL = PartSizes(least=8, share=100, most=5)
LIMITS = itertools.count(1)
QUESTIONS = ("tea", "cat lock", "number vienna budget", "train 3 7 12", "violin invoice tea cat")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[MemoryHome]:
    with memory_home(tmp_path) as home:
        yield home


def _put(home: MemoryHome, number: int, rng: random.Random) -> str:
    words = " ".join(rng.choices(WORDS, k=rng.randint(1, 5)))
    return home.put(f"number {number} {words} marked{number}x", embed=False)


def _found(index: MemoryIndex, home: MemoryHome, question: str) -> dict[str, float]:
    """The share of a question's words that each memory holds, to the last digit."""
    terms = tuple(question.split())
    # Of another limit each time: what was asked before is not looked up again.
    wanted = MemoryQuery(moment=home.now, limit=next(LIMITS), terms=terms, all_words=True)
    columns = index.candidates(wanted).columns
    return dict(zip(columns.ids, columns.words.tolist(), strict=True))


def _write(index: MemoryIndex) -> None:
    index.sync()
    assert index.settle()


def _assert_as_fresh(index: MemoryIndex, home: MemoryHome) -> None:
    """It finds what an index finds that was made at once; written down, with the same shares."""
    shutil.rmtree(home.root / "fresh", ignore_errors=True)
    fresh = home.open_index("fresh")
    _write(fresh)
    for question in QUESTIONS:
        assert _found(index, home, question).keys() == _found(fresh, home, question).keys()
    _write(index)
    for question in QUESTIONS:
        assert _found(index, home, question) == _found(fresh, home, question)
    fresh.close()


def _files(home: MemoryHome) -> dict[str, Path]:
    words = home.root / "index" / "words"
    return {one.name: one for one in words.rglob("*") if one.is_file()}


def _stored(home: MemoryHome) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_files(home)["memories.json"].read_text("utf-8"))
    return found


def _assert_forgotten(home: MemoryHome, numbers: list[int], ids: list[str]) -> None:
    """No file has the words or ids of what was forgotten; none lies there that nobody lists."""
    folder = memory_segments(home.root / "index" / "words")
    segment = folder.open(folder.read())
    assert not [number for number in numbers if segment.holding(f"marked{number}x")]
    files = _files(home)
    data = b"".join(one.read_bytes() for one in files.values())
    assert not [number for number in numbers if f"marked{number}x".encode() in data]
    assert not [one for one in ids if one.encode() in data]
    listed = {name for part in _stored(home)["parts"] for name in part[4]}
    others = ("json", "lock")
    assert {name for name in files if not name.endswith(others)} == listed


@pytest.mark.parametrize("seed", range(3))
def test_words_in_parts_answer_as_those_in_one(home: MemoryHome, seed: int) -> None:
    """Whatever came, was changed, forgotten and written, in whatever order: small parts answer as
    an index that was made at once, and what was forgotten is in no file after closing."""
    rng = random.Random(seed)
    index = home.open_index(sizes=SMALL)
    living: dict[int, str] = {}
    gone: dict[int, str] = {}
    for number in range(90):
        living[number] = _put(home, number, rng)
        act = rng.random()
        if act < 0.3:
            _write(index)
        elif act < 0.5:
            for one in rng.sample(sorted(living), k=min(len(living), rng.randint(1, 3))):
                gone[one] = living.pop(one)
                home.erase(gone[one])
            index.sync()
        elif act < 0.6:
            one = rng.choice(sorted(living))
            home.change(living[one], text=f"tea again, and marked{one}x")
        elif act < 0.7:
            index.close()
            index = home.open_index(sizes=SMALL)
        if number % 15 == 14:
            _assert_as_fresh(index, home)
    _write(index)
    _assert_as_fresh(index, home)
    index.close()
    _assert_forgotten(home, sorted(gone), list(gone.values()))
    stored = _stored(home)
    assert {one for one in stored["ids"] if one} == set(living.values())
    assert len(stored["parts"]) <= SMALL.most + len(living) // (SMALL.least // 2)
    _assert_as_fresh(home.open_index(), home)


class _KilledError(BaseException):
    """The process ends here: nothing is cleaned up."""


def _kill_at(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """End the process before the given one of the steps that change what is on the disk."""
    steps = itertools.count()

    def killing(act: Any) -> Any:
        def instead(*given: Any, **named: Any) -> Any:
            if next(steps) == step:
                raise _KilledError
            return act(*given, **named)

        return instead

    monkeypatch.setattr(os, "link", killing(os.link))
    monkeypatch.setattr(shutil, "rmtree", killing(shutil.rmtree))
    monkeypatch.setattr(shutil, "copyfile", killing(shutil.copyfile))
    for name in ("replace", "unlink", "write_text"):
        monkeypatch.setattr(Path, name, killing(getattr(Path, name)))


@pytest.mark.parametrize("while_writing", [True, False])
def test_a_kill_between_any_two_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, while_writing: bool
) -> None:
    """Killed while words are dropped, or written anew, at any step: what is there is the old or
    the new, the next process answers right, and leaves nothing of what was forgotten."""
    for step in itertools.count():
        root = tmp_path / str(step)
        root.mkdir()
        with memory_home(root) as home:
            rng = random.Random(step)
            ids = [_put(home, number, rng) for number in range(20)]
            index = home.open_index(sizes=SMALL)
            _write(index)
            home.erase(ids[3])
            _put(home, 20, rng)
            if while_writing:
                index.sync()
            _kill_at(step, monkeypatch)
            try:
                (index.settle if while_writing else index.sync)()
                killed = False
            except _KilledError:
                killed = True
            monkeypatch.undo()
            folder = memory_segments(root / "index" / "words")
            assert folder.read().meta.generation
            assert folder.problem() is None
            again = home.open_index(sizes=SMALL)
            assert len(_found(again, home, "number")) == 20
            assert len(list((root / "index" / "words").glob("*/meta.json"))) == 1
            _assert_as_fresh(again, home)
            again.close()
            _assert_forgotten(home, [3], [ids[3]])
        if not killed:
            assert step > 5
            return


def test_a_part_goes_from_what_another_process_wrote(home: MemoryHome) -> None:
    """Who has an older generation open takes what was forgotten off the newer one too."""
    rng = random.Random(2)
    ids = [_put(home, number, rng) for number in range(30)]
    one = home.open_index(sizes=SMALL)
    _write(one)
    other = home.open_index(sizes=SMALL)
    _put(home, 30, rng)
    _write(other)
    home.erase(ids[4])
    part = next(part for part in _stored(home)["parts"] if part[0] <= 5 < part[0] + part[1])
    assert set(part[4]) <= set(_files(home))
    one.sync()
    assert not set(part[4]) & set(_files(home))
    for index in (home.open_index(sizes=SMALL), one, other):
        _assert_as_fresh(index, home)
    _assert_forgotten(home, [4], [ids[4]])


def test_however_many_there_are_parts_stay_few() -> None:
    """Up to a million that come by and by lie in few parts, each written a few times."""
    sizes, parts, total, written = PartSizes(), list[SegmentPart](), 0, 0
    rng = random.Random(4)
    while total < 1_000_000:
        fresh = rng.randint(100, max(500, total // memories.TAIL_SHARE))
        total += fresh
        kept = sizes.choose_staying(parts, fresh)
        again = total - sum(part.count for part in kept)
        written += again
        first = max((part.upto for part in parts), default=0) + 1
        parts = list(kept)
        for count in sizes.split(again, total):
            parts.append(SegmentPart(first, count, (), (), (), 0))
            first += count
        assert sum(part.count for part in parts) == total
        assert len(parts) <= sizes.most
        assert max(part.count for part in parts) <= 1.5 * sizes.usual_size(total)
    assert written < 3.5 * total
