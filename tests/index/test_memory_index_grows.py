"""What the index of memories writes grows with what came, not with what is there.

What is read of memories is kept beside their words: once, in the background, in clear alone.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
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
from anaphora.index.words.documents import term_number
from anaphora.index.words.table import DocumentTable
from anaphora.language.analyser import analyse
from anaphora.rank import statements
from anaphora.rank.statements import READING, keep_reading
from anaphora.testing import WordHashingEmbedder
from anaphora.text.recalled import enclose_recalled

pytestmark = pytest.mark.internal

WORDS = ("tea", "cat", "lock", "train", "invoice", "vienna", "budget", "violin")


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading in the background begins at once."""
    monkeypatch.setattr(memories, "_QUIET", 0)


def _texts(count: int, first: int = 0) -> list[NewMemory]:
    return [NewMemory(f"number {n} about {WORDS[n % 8]}") for n in range(first, first + count)]


def _stored(home: Path) -> Path:
    return home / "index" / "default" / "memories" / "words.sqlite"


def _stored_bytes(folder: Path) -> bytes:
    return b"".join(one.read_bytes() for one in folder.rglob("*") if one.is_file())


def test_a_lost_index_of_many_is_on_the_disk_with_the_first_answer(tmp_path: Path) -> None:
    """Where nothing of many memories is on the disk, the first question leaves all of it there."""
    with Memory.open(tmp_path, embedder="hashing") as memory:
        memory.remember_many(_texts(1_100))
        ids = [one.id for one in memory.list(limit=1_000)]
    shutil.rmtree(tmp_path / "index")
    with Memory.open(tmp_path, embedder="hashing") as memory:
        found = memory.recall("number 77", mode="words", top_k=1)
        assert found[0].text == "number 77 about vienna"
        stored = _stored_bytes(tmp_path / "index")
        assert all(one.encode() in stored for one in ids)


def test_what_is_forgotten_leaves_the_disk_and_nothing_else_does(tmp_path: Path) -> None:
    """A forgotten word is in no file when the call returns; the rest of the file stays."""
    with Memory.open(tmp_path, embedder="hashing") as memory:
        gone = memory.remember("the print on the safe is a xylograph").id
        memory.remember_many(_texts(120))
    assert gone.encode() in _stored(tmp_path).read_bytes()
    with Memory.open(tmp_path, embedder="hashing") as memory:
        assert memory.recall("xylograph", mode="words").hits
        at = _stored(tmp_path).stat().st_ino
        assert memory.forget(gone).count == 1
        stored = _stored_bytes(tmp_path / "index")
        assert b"xylograph" not in stored
        assert gone.encode() not in stored
        assert b"violin" in stored
        assert not memory.recall("xylograph", mode="words").hits
        assert memory.recall("number 99", mode="words", top_k=1)[0].text.startswith("number 99")
    assert _stored(tmp_path).stat().st_ino == at


def test_a_write_that_began_before_brings_no_forgotten_word_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words that one process is writing are not on the disk after another one, which forgot some
    of them, has returned."""
    begun, go = threading.Event(), threading.Event()
    whole = MemoryIndex._list_changed

    def held(index: MemoryIndex) -> list[str]:
        changed = [*whole(index)]
        begun.set()
        go.wait(30)
        return changed

    with Memory.open(tmp_path, embedder="hashing") as memory:
        memory.remember_many(_texts(20))
        gone = memory.remember("the vault opens with quincunx").id
    with Memory.open(tmp_path, embedder="hashing") as one, Memory.open(tmp_path) as other:
        assert one.recall("quincunx", mode="words").hits
        monkeypatch.setattr(MemoryIndex, "_list_changed", held)
        writing = threading.Thread(target=one._services().memory.index.settle)
        writing.start()
        assert begun.wait(30)
        monkeypatch.undo()
        forgetting = threading.Thread(target=other.forget, args=(gone,))
        forgetting.start()
        # It has to wait for the write: it is given the time.
        forgetting.join(0.5)
        go.set()
        forgetting.join(30)
        writing.join(30)
        stored = _stored_bytes(tmp_path / "index")
        assert b"violin" in stored
        assert b"quincunx" not in stored
        assert gone.encode() not in stored


def test_forgetting_beside_a_write_that_is_just_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call that meets the background never meets a thread that has not begun."""
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
        # What is read ahead is read, too: the next write begins a thread of its own.
        assert memory._services().memory.index._life.worker.wait(60)

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
        monkeypatch.setattr(
            maintenance, "threading", SimpleNamespace(**{**vars(threading), "Thread": Slow})
        )
        asking.start()
        assert begun.wait(30)
        forgetting.start()
        forgetting.join(30)
        asking.join(30)
        assert not failed
        assert not memory.recall("xylograph", mode="words").hits


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


def _keys(home: MemoryHome) -> set[str]:
    """The memories with words on the disk."""
    table = DocumentTable(home.root / "index", form=READING)
    keys = {stored.key for stored in table.read()}
    assert table.problem is None
    table.close()
    return keys


def _assert_forgotten(home: MemoryHome, numbers: list[int], ids: list[str]) -> None:
    """No file has the words or ids of what was forgotten."""
    data = _stored_bytes(home.root / "index")
    assert not [number for number in numbers if f"marked{number}x".encode() in data]
    assert not [one for one in ids if one.encode() in data]
    terms = [term_number(f"marked{number}x") for number in numbers]
    assert not [one for one in terms if one.to_bytes(8, "little") in data]


@pytest.mark.parametrize("seed", range(3))
def test_words_that_came_by_and_by_answer_as_those_at_once(home: MemoryHome, seed: int) -> None:
    """Whatever came, was changed, forgotten, written and read, in whatever order: it answers as an
    index that was made at once, and what was forgotten is in no file."""
    rng = random.Random(seed)
    index = home.open_index()
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
            index = home.open_index()
        elif act < 0.8:
            assert index.read_ahead()
        if number % 15 == 14:
            _assert_as_fresh(index, home)
    _write(index)
    _assert_as_fresh(index, home)
    index.close()
    _assert_forgotten(home, sorted(gone), list(gone.values()))
    assert _keys(home) == set(living.values())
    _assert_as_fresh(home.open_index(), home)


KILLED = """
import os, signal, sys
from pathlib import Path
from anaphora import Memory
from anaphora.index.file import IndexFile
home, gone, at = sys.argv[1:]
steps = iter(range(int(at), -2, -1))

def step(statement):
    if next(steps) == 0:
        os.kill(os.getpid(), signal.SIGKILL)

prepare = IndexFile._prepare
def watched(file, *given):
    file.db.set_trace_callback(step)
    prepare(file, *given)
IndexFile._prepare = watched

memory = Memory.open(Path(home), embedder="hashing", warm=False)
memory.remember("later tea")
memory.forget(gone)
memory._services().memory.index.settle()
memory.close()
"""


@pytest.mark.skipif(os.name == "nt", reason="no SIGKILL there")
def test_a_kill_between_any_two_statements(tmp_path: Path) -> None:
    """Killed while words are written or erased, before any statement of the index: the next process
    answers right, and leaves nothing of what was forgotten."""
    with Memory.open(tmp_path / "whole", embedder="hashing", warm=False) as memory:
        gone = memory.remember("the safe opens with xylograph").id
        memory.remember_many(_texts(60))
    for step in itertools.count(0, 3):
        home = tmp_path / str(step)
        shutil.copytree(tmp_path / "whole", home)
        killed = subprocess.run(
            [sys.executable, "-c", KILLED, str(home), gone, str(step)], check=False
        ).returncode
        with Memory.open(home, embedder="hashing", warm=False) as memory:
            assert len(memory.recall("violin", mode="words", top_k=20).hits) == 7
            if gone in {one.id for one in memory.list(limit=100)}:
                memory.forget(gone)
            assert not memory.recall("xylograph", mode="words").hits
        stored = _stored_bytes(home / "index")
        assert b"xylograph" not in stored
        assert gone.encode() not in stored
        if killed == 0:
            assert step > 12
            return


def test_what_is_forgotten_goes_from_what_another_process_wrote(home: MemoryHome) -> None:
    """Who reads of what was forgotten erases it, also where another process has written it."""
    rng = random.Random(2)
    ids = [_put(home, number, rng) for number in range(30)]
    one = home.open_index()
    _write(one)
    other = home.open_index()
    _put(home, 30, rng)
    _write(other)
    home.erase(ids[4])
    assert ids[4] in _keys(home)
    one.sync()
    _assert_forgotten(home, [4], [ids[4]])
    for index in (home.open_index(), one, other):
        _assert_as_fresh(index, home)
    _assert_forgotten(home, [4], [ids[4]])


READ = ("Mara lives in Ghent.", "¿Dónde vive Ana?", "The rent is 1,040 euros now.", "東京に住む")


def _read_all(index: MemoryIndex) -> None:
    index.sync()
    assert index.settle()
    assert index.read_ahead()


def _readings(index: MemoryIndex, ids: Iterable[str]) -> list[str]:
    return index.readings_of([*ids])


def test_what_is_read_is_kept_with_the_words(home: MemoryHome) -> None:
    texts = {home.put(text): text for text in READ}
    home.index.sync()
    assert _readings(home.index, [*texts, "no-id"]) == ["", "", "", "", ""]
    _read_all(home.index)
    kept = list(map(keep_reading, READ))
    assert _readings(home.index, texts) == kept
    home.put("A later one.")
    home.index.sync()
    assert home.index.settle()
    assert _readings(home.index, texts) == kept
    again = home.open_index()
    again.sync()
    assert _readings(again, texts) == kept


def test_a_changed_text_is_read_again(home: MemoryHome) -> None:
    key = home.put("Mara lives in Ghent.")
    _read_all(home.index)
    home.change(key, text="Mara lives in Turin.")
    home.index.sync()
    assert home.index.readings_of([key]) == [""]
    _read_all(home.index)
    assert home.index.readings_of([key]) == [keep_reading("Mara lives in Turin.")]


def test_what_quotes_a_recall_is_read_as_it_is_asked_for(home: MemoryHome) -> None:
    key = home.put(f"I know.\n{enclose_recalled('Mara lives in Ghent.')}\n")
    _read_all(home.index)
    assert home.index.readings_of([key]) == [""]


def test_another_way_to_read_reads_all_again(
    home: MemoryHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = home.put("Mara lives in Ghent.")
    _read_all(home.index)
    monkeypatch.setattr(memories, "READING", "another")
    index = home.open_index()
    index.sync()
    assert index.readings_of([key]) == [""]


def test_what_is_forgotten_while_it_is_read_is_not_written(
    home: MemoryHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By another process, or so that this one knows it already when it writes."""
    ids = [home.put(f"Locker {number} is red.") for number in range(3)]
    _read_all(home.index)
    for key in ids[:2]:
        home.change(key, text=f"Locker marked{ids.index(key)}x is red.")
    home.index.sync()
    assert home.index.settle()

    def forget(text: str) -> str:
        if "marked1x" in text:
            home.erase(ids[1])
            home.index.sync()
            home.erase(ids[0])
        return keep_reading(text)

    monkeypatch.setattr(memories, "keep_reading", forget)
    assert home.index.read_ahead()
    home.index.sync()
    data = _stored_bytes(home.root / "index")
    assert not [number for number in (0, 1) if f"marked{number}x".encode() in data]
    assert _readings(home.index, ids) == ["", "", keep_reading("Locker 2 is red.")]


def test_very_many_are_read_in_parts(home: MemoryHome, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [home.put(f"Locker {number} is red.") for number in range(5)]
    home.index.sync()
    assert home.index.settle()
    monkeypatch.setattr(memories, "MUCH", 2)
    assert [home.index.read_ahead() for _ in range(3)] == [False, False, True]
    assert all(_readings(home.index, ids))


def test_a_change_ends_reading(home: MemoryHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """An import is not slowed down: it is read when nothing changes any more."""
    home.put("Mara lives in Ghent.")
    home.index.sync()
    assert home.index.settle()
    stopping = home.index._life.worker.stopping
    wait = stopping.wait

    def store(timeout: float | None = None) -> bool:
        home.put("And Ana in Turin.")
        home.index.sync()
        return wait(0)

    monkeypatch.setattr(stopping, "wait", store)
    assert not home.index.read_ahead()


def test_memories_are_read_in_the_background(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And then no question reads one: its answer is the same."""
    monkeypatch.setattr(memories, "TAIL_LIMIT", 3)
    texts = [f"The key of locker {number} is with Paula." for number in range(8)]
    seen: list[str] = []

    def listening(text: str, **named: Any) -> list[str]:
        seen.append(text)
        return analyse(text, **named)

    def ask(memory: Memory) -> list[tuple[str, float, float | None]]:
        statements._read_statement.cache_clear()
        statements._tokenise.cache_clear()
        seen.clear()
        hits = memory.recall("Who has the key of locker 3?", top_k=5).hits
        return [(hit.text, round(hit.score, 6), hit.answers) for hit in hits]

    monkeypatch.setattr(statements, "analyse", listening)
    # Not before the first question, however long that takes.
    monkeypatch.setattr(memories, "_QUIET", 1_000_000)
    with Memory.open(tmp_path, embedder=WordHashingEmbedder(64)) as memory:
        memory.remember_many([NewMemory(text) for text in texts])
        before = ask(memory)
        assert any(text.lower() in seen for text in texts)
        monkeypatch.setattr(memories, "_QUIET", 0)
        assert memory._services().memory.index._life.worker.wait(60)
        after = ask(memory)
        assert not any(text.lower() in seen for text in texts)
    assert after == before


def test_a_sealed_home_keeps_no_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memories, "TAIL_LIMIT", 3)
    with Memory.open(tmp_path, embedder=WordHashingEmbedder(64), encrypt="file") as memory:
        ids = memory.remember_many([NewMemory(f"Locker {n} is red") for n in range(8)])
        assert memory.ready(60)
        index = memory._services().memory.index
        assert index.settle()
        assert index.read_ahead()
        assert not any(index.readings_of([record.id for record in ids]))
