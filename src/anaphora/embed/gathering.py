"""Embeds questions that wait at the same time in one run of the model.

A run for eight short questions takes little more than half the processor time of eight runs. One
thread at a time runs the model, for all questions that wait when its run begins; then the thread of
a question that came meanwhile takes over. A run only waits for more questions while other threads
keep the processors busy; a single question is run at once. Questions with the same key of the
embedder are computed once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from anaphora.embed.base import Vector
from anaphora.system.permits import defer

MOST = 16
"""Questions in one run."""
ENOUGH = 4
"""Questions that a run waits for: each costs 0.6 of a single one; in larger runs hardly less."""


@dataclass(slots=True, eq=False)
class _PendingQuery:
    """A question that runs or waits. `turn` wakes its own thread, `done` those that share it."""

    key: Hashable
    text: str
    vector: Vector | None = None
    turn: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)


class GatheredQuestions:
    """Runs the model for the questions of several threads. Safe to share between them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._coming: dict[Hashable, _PendingQuery] = {}
        self._waiting: list[_PendingQuery] = []
        self._running = False
        self._process = os.getpid()

    def vector(
        self, key: Hashable, text: str, run: Callable[[Sequence[str]], Sequence[Vector]]
    ) -> tuple[Vector | None, bool]:
        """The vector of a question, by a `run` of one or more; whether another call computed it.

        None if its run failed: only running each question alone can show which one caused that.
        """
        with self._lock:
            if self._process != os.getpid():
                # After a fork: the thread that ran the model is not in this process.
                self._process, self._running = os.getpid(), False
                self._coming.clear()
                self._waiting.clear()
            coming = self._coming.get(key)
            if coming is None:
                question = self._coming[key] = _PendingQuery(key, text)
                self._waiting.append(question)
                leads, self._running = not self._running, True
        if coming is not None:
            coming.done.wait()
            return coming.vector, True
        if not leads:
            question.turn.wait()
        if not question.done.is_set():
            self._lead(run)
        return question.vector, False

    def _lead(self, run: Callable[[Sequence[str]], Sequence[Vector]]) -> None:
        """Run the model for the questions waiting now; the first of them is of this thread."""
        defer(lambda: len(self._waiting) >= ENOUGH)
        with self._lock:
            questions, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
        try:
            for question, vector in zip(
                questions, run([question.text for question in questions]), strict=True
            ):
                question.vector = vector
        finally:
            with self._lock:
                for question in questions:
                    del self._coming[question.key]
                following = next(iter(self._waiting), None)
                self._running = following is not None
            # The next run is started first: it can begin while the answered threads wake up.
            if following is not None:
                following.turn.set()
            for question in questions:
                question.done.set()
                question.turn.set()
