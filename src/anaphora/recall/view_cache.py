"""Answers to questions that are asked again while nothing has changed.

In: a question with all that its answer depends on, and the view that answered it. Out: the hits of
the last time. It never outlives its view: one new turn, and nothing here is valid any more.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

AnswerT = TypeVar("AnswerT")


class Repeated(Generic[AnswerT]):
    """The `size` answers that were used last, of one view. Safe to share between threads."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._view: object = None
        self._answers: OrderedDict[Hashable, AnswerT] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, view: object, key: Hashable) -> AnswerT | None:
        """The answer that this view gave to this question, None if it was not asked."""
        with self._lock:
            if view is not self._view or key not in self._answers:
                return None
            self._answers.move_to_end(key)
            return self._answers[key]

    def put(self, view: object, key: Hashable, answer: AnswerT) -> None:
        """Keep an answer; those of an earlier view go."""
        with self._lock:
            if view is not self._view:
                self._view = view
                self._answers.clear()
            self._answers[key] = answer
            while len(self._answers) > self._size:
                self._answers.popitem(last=False)
