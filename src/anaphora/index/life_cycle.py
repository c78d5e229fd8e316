"""The life of an index: opened at first use, kept up to date, written behind the calls, closed.

Every index has one, with a reader of changes and a state of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, TypeVar

from anaphora.calls.limits import acquire_within
from anaphora.errors import Closed
from anaphora.index.maintenance import Background, IndexBusy, IndexLost, try_lock

ROUNDS: Final = 5
"""How often an index that is damaged or gone is opened anew within one call."""

ResultT = TypeVar("ResultT")
PlanT = TypeVar("PlanT")
WrittenT = TypeVar("WrittenT")


def _do_nothing() -> None:
    """The default for what an index has no need of."""


def _ignore(_: Exception) -> None:
    """The same, for an index that raises neither."""


class _Hold:
    """Holds the lock of an index. A question enters it a dozen times, so it is no generator."""

    __slots__ = ("_life",)

    def __init__(self, life: IndexLife) -> None:
        self._life = life

    def __enter__(self) -> None:
        acquire_within(self._life.lock)
        if self._life.closed:
            self._life.lock.release()
            raise Closed

    def __exit__(self, *_: object) -> None:
        self._life.lock.release()


class IndexLife:
    """The life of one index. Thread-safe; any number of processes may share `directory`.

    `lock` guards the index; all callbacks but `finish` are called with it. `ensure_open` opens
    closed files, before each use; `mend` recovers from an `IndexLost` or `IndexBusy`, and
    `do_without` (or the error is raised) makes the index answer without its files if that did not
    help. `finish` writes what is worth writing in the end, `let_go` frees files and memory. With
    `background` False nothing is done behind the calls.
    """

    def __init__(
        self,
        name: str,
        directory: Path,
        *,
        mend: Callable[[Exception], object] = _ignore,
        ensure_open: Callable[[], object] = _do_nothing,
        do_without: Callable[[Exception], None] | None = None,
        finish: Callable[[], object] = _do_nothing,
        let_go: Callable[[], object] = _do_nothing,
        background: bool = True,
    ) -> None:
        self.directory = directory
        self.lock = threading.RLock()
        self.worker = Background(name, self.lock)
        self.seq = -1
        """The number of the database that was read last; -1: none, or it is to be read again."""
        self.upto = -1
        """The number up to which all that is being read, or was read, is known."""
        self.closed = False
        self._ending = threading.Lock()
        self._ensure_open, self._mend, self._do_without = ensure_open, mend, do_without
        self._finish, self._let_go = finish, let_go
        self.background = background
        self._hold = _Hold(self)

    # Use.

    def held(self) -> AbstractContextManager[None]:
        """Hold the lock, within the time of this call. Raises Closed."""
        return self._hold

    def use(self, action: Callable[[], ResultT]) -> ResultT:
        """Run `action` with the open index; if that is damaged or gone, mend it and try again."""
        lost: Exception = IndexLost()
        with self.held():
            for _ in range(ROUNDS):
                try:
                    self._ensure_open()
                    return action()
                except (IndexLost, IndexBusy) as error:
                    lost = error
                    self._mend(error)
            if self._do_without is None:
                raise lost
            self._do_without(lost)
            return action()

    def catch_up(
        self,
        version_of: Callable[[], int],
        read: Callable[[int], int],
        caught_up: Callable[[int], object] = lambda _: None,
    ) -> int:
        """Catch up with the database, which has numbers of changes; how many there were.

        `read` takes in the changes after a number (-1: everything, on the first call or if the
        database was restored from a backup); `caught_up` is called with the same number once the
        index counts as up to date.
        """
        with self.held():
            version = version_of()
            if version == self.seq:
                return 0
            since = self.seq if 0 <= self.seq < version else -1
            self.upto = version
            changed_count = read(since)
            # Changes committed after `version` was read are read again next time.
            self.seq = version
            caught_up(since)
            return changed_count

    # The disk.

    def writing(self, part: str) -> AbstractContextManager[bool]:
        """Lock a part for writing; the context's value is False if another process has the lock."""
        return try_lock(self.directory, f"{part}.lock")

    def write(
        self,
        part: str,
        begin: Callable[[], PlanT | bool],
        write: Callable[[PlanT], WrittenT | None],
        end: Callable[[PlanT, WrittenT], bool],
    ) -> bool:
        """Write a part; False if another process is writing it or the disk refuses.

        `begin` gives a plan, or the result if there is nothing to write, and `end` uses what was
        written, if it was. Between them the index is not locked: queries go on during `write`.
        """
        with self.writing(part) as is_locked:
            if not is_locked:
                return False
            plan = self.use(begin)
            if isinstance(plan, bool):
                return plan
            written = write(plan)
            return self.use(lambda: end(plan, written)) if written else False

    # The background.

    def begin(self, work: Callable[[], None]) -> bool:
        """Run `work` in the background; False if other work is running or it must not."""
        return self.background and self.worker.begin(work)

    def work_in_steps(self, step: Callable[[], bool]) -> None:
        """Do `step` under the lock while it tells that there is more, and let calls go on between
        two; it ends early when the background is to."""
        while not self.worker.stopping.is_set():
            with self.held():
                if not step():
                    return

    # The end.

    def release(self) -> None:
        """Write what is worth writing, and free files and memory until the next use."""
        with self._ending:
            self._end()
            self.worker.stopping.clear()

    def close(self) -> None:
        """The same for good: later calls raise Closed. Safe to call twice."""
        with self._ending:
            if not self.closed:
                self._end()
                self.closed = True

    def _end(self) -> None:
        self.worker.stop()
        self._finish()
        with self.lock:
            self._let_go()
