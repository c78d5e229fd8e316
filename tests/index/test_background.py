"""What works behind the calls: one at a time, waited for from its very beginning, stopped."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from anaphora.index import maintenance
from anaphora.index.maintenance import Background

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

    monkeypatch.setattr(maintenance, "threading", SimpleNamespace(Thread=Slow))
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

    monkeypatch.setattr(maintenance, "threading", SimpleNamespace(Thread=Refused))
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
