"""Questions that wait at the same moment, embedded in one run of the model.

A run for eight short questions takes little more than half the processor time of eight runs. One
thread at a time runs the model, for all who wait when its run begins; then one of those who came
meanwhile does. Nobody who could have gone on waits for others to come: only while other threads
have more to compute than they get done, a run waits for some more questions. Who is alone is run
alone, at once. Those that ask the same, by the embedder's key, are computed once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from anaphora.core.permits import defer
from anaphora.embed.base import Vector

MOST = 16
"""Questions in one run."""
ENOUGH = 4
"""Questions that a run waits for. Each of so many costs 0.6 of one alone; of more hardly less."""


@dataclass(slots=True, eq=False)
class _Question:
    """One that is computed or waits to be. `turn` wakes who brought it, `done` those who share."""

    key: Hashable
    text: str
    vector: Vector | None = None
    turn: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)


class GatheredQuestions:
    """Runs the model for the questions of several threads. Safe to share between them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._coming: dict[Hashable, _Question] = {}
        self._waiting: list[_Question] = []
        self._running = False
        self._process = os.getpid()

    def vector(
        self, key: Hashable, text: str, run: Callable[[Sequence[str]], Sequence[Vector]]
    ) -> tuple[Vector | None, bool]:
        """The vector of a question, by `run` of one or more, and whether another one computed it.

        None where the run failed that it was in: which of its questions was to blame is not known
        but to who runs each alone.
        """
        own, leads, shared = self._join(key, text)
        if shared:
            own.done.wait()
            return own.vector, True
        if not leads:
            own.turn.wait()
        if not own.done.is_set():
            self._lead(run)
        return own.vector, False

    def _join(self, key: Hashable, text: str) -> tuple[_Question, bool, bool]:
        with self._lock:
            if self._process != os.getpid():
                # Who ran the model in the process that this one was forked from is not here.
                self._process, self._running = os.getpid(), False
                self._coming.clear()
                self._waiting.clear()
            coming = self._coming.get(key)
            if coming is not None:
                return coming, False, True
            own = self._coming[key] = _Question(key, text)
            self._waiting.append(own)
            leads, self._running = not self._running, True
            return own, leads, False

    def _lead(self, run: Callable[[Sequence[str]], Sequence[Vector]]) -> None:
        """One run, for who waits now. The first of them is the one whose thread this is."""
        defer(lambda: len(self._waiting) >= ENOUGH)
        with self._lock:
            some, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
        try:
            for one, vector in zip(some, run([one.text for one in some]), strict=True):
                one.vector = vector
        finally:
            with self._lock:
                for one in some:
                    del self._coming[one.key]
                following = next(iter(self._waiting), None)
                self._running = following is not None
            # The model goes on first: it needs another processor than those who have their answer.
            if following is not None:
                following.turn.set()
            for one in some:
                one.done.set()
                one.turn.set()
