"""The life of an index, and what works behind its calls: one at a time, waited for, stopped."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from anaphora.errors import Closed
from anaphora.index import maintenance
from anaphora.index.life_cycle import ROUNDS, IndexLife
from anaphora.index.maintenance import Background, IndexLost

pytestmark = pytest.mark.internal


def test_one_work_at_a_time() -> None:
    """While one work is under way no other is begun; after its end the next one is."""
    go, done = threading.Event(), []
    behind = Background("test")

    def first() -> None:
        go.wait(30)
        done.append("first")

    behind.begin(first)
    behind.begin(lambda: done.append("beside it"))
    assert not behind.wait(0)
    go.set()
    assert behind.wait(30)
    assert not behind.running
    behind.begin(lambda: done.append("after it"))
    assert behind.wait(30)
    assert done == ["first", "after it"]


class Watched:
    """A lock that tells when somebody asks for it while a thread is being started."""

    def __init__(self) -> None:
        self.starting, self.asked = threading.Event(), threading.Event()
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        if self.starting.is_set():
            self.asked.set()
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()


def test_waiting_for_a_work_that_is_just_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits while a thread is being started waits for its work, too."""
    lock, done = Watched(), []
    behind = Background("test", lock)

    class Slow(threading.Thread):
        def start(self) -> None:
            lock.starting.set()
            lock.asked.wait(30)
            super().start()

    monkeypatch.setattr(
        maintenance, "threading", SimpleNamespace(**{**vars(threading), "Thread": Slow})
    )
    beginning = threading.Thread(target=lambda: behind.begin(lambda: done.append("it")))
    beginning.start()
    try:
        assert lock.starting.wait(30)
        assert behind.wait(30)
        assert done == ["it"]
    finally:
        lock.asked.set()
        beginning.join(30)


def test_a_thread_that_could_not_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system gives no thread, the caller is told, and nobody waits for one."""
    behind = Background("test")

    class Refused(threading.Thread):
        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(
        maintenance, "threading", SimpleNamespace(**{**vars(threading), "Thread": Refused})
    )
    with pytest.raises(RuntimeError, match="can't start"):
        behind.begin(lambda: None)
    assert not behind.running
    assert behind.wait(0)
    behind.stop()


def test_what_was_stopped_begins_nothing() -> None:
    """`stop` waits for the work, which is told to end, and nothing begins until that is cleared."""
    begun, done = threading.Event(), []
    behind = Background("test")

    def work() -> None:
        begun.set()
        behind.stopping.wait(30)
        done.append("ended")

    behind.begin(work)
    assert begun.wait(30)
    behind.stop()
    assert done == ["ended"]
    behind.begin(lambda: done.append("too late"))
    assert behind.wait(0)
    behind.stopping.clear()
    behind.begin(lambda: done.append("again"))
    assert behind.wait(30)
    assert done == ["ended", "again"]


def test_a_damaged_index_is_mended_and_asked_again(tmp_path: Path) -> None:
    """What is lost is mended a few times; then the index does without its files, or says so."""
    mended: list[Exception] = []
    answers: list[str | None] = [None, None, "found"]

    def ask() -> str:
        answer = answers.pop(0)
        if answer is None:
            raise IndexLost("torn")
        return answer

    assert IndexLife("test", tmp_path, mend=mended.append).use(ask) == "found"
    assert len(mended) == 2
    answers[:] = [None] * ROUNDS
    with pytest.raises(IndexLost, match="torn"):
        IndexLife("test", tmp_path, mend=mended.append).use(ask)
    answers[:] = [*[None] * ROUNDS, "from memory"]
    without: list[Exception] = []
    life = IndexLife("test", tmp_path, mend=mended.append, do_without=without.append)
    assert life.use(ask) == "from memory"
    assert len(without) == 1


def test_the_index_is_free_while_its_files_are_written(tmp_path: Path) -> None:
    """Planning and opening hold the lock, writing does not; a second writer does not wait."""
    life = IndexLife("test", tmp_path, mend=lambda _: None)
    steps: list[str] = []

    def write(plan: str) -> str:
        def ask() -> None:
            steps.append(life.use(lambda: "asked"))
            assert not life.write("words", lambda: "again", write, lambda *_: True)

        asking = threading.Thread(target=ask)
        asking.start()
        asking.join(30)
        return plan + " written"

    def end(_: str, written: str) -> bool:
        steps.append(written)
        return True

    assert life.write("words", lambda: "words", write, end)
    assert steps == ["asked", "words written"]
    assert life.write("words", lambda: True, write, end)
    assert not life.write("words", lambda: "words", lambda _: None, end)
    assert steps == ["asked", "words written"]


def test_an_index_is_closed_after_its_work_and_only_once(tmp_path: Path) -> None:
    """Closing waits for the background and writes what is worth it; nothing is asked after it."""
    done: list[str] = []
    life = IndexLife(
        "test",
        tmp_path,
        mend=lambda _: None,
        finish=lambda: done.append("finish"),
        let_go=lambda: done.append("let go"),
    )

    def work() -> None:
        life.worker.stopping.wait(30)
        done.append("work")

    assert life.begin(work)
    life.release()
    assert done == ["work", "finish", "let go"]
    assert life.use(lambda: True)
    assert life.begin(work)
    life.close()
    life.close()
    assert done == ["work", "finish", "let go"] * 2
    assert not life.begin(work)
    with pytest.raises(Closed):
        life.use(lambda: True)
