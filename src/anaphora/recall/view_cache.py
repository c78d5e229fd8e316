"""A cache of what was worked out of one view of an index: one change, and all of it is stale."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Generic, TypeVar

ValueT = TypeVar("ValueT")


class ViewCache(Generic[ValueT]):
    """The values that were used last, of one view. Safe to share between threads.

    `weigh` says what a value takes up, 1 by default; together they take up at most `size`. A view
    is an object, or a number, a text or a tuple of such: equal ones of these are the same view.
    """

    def __init__(self, size: int, weigh: Callable[[ValueT], int] | None = None) -> None:
        self._size = size
        self._weigh = weigh or (lambda value: 1)
        self._view: object = None
        self._weight = 0
        self._values: OrderedDict[Hashable, tuple[ValueT, int]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, view: object, key: Hashable, make: Callable[[], ValueT]) -> ValueT:
        """The value that this view gave for `key`; made, and kept, where there is none."""
        cached_part = self.get(view, key)
        if cached_part is None:
            cached_part = make()
            self.put(view, key, cached_part)
        return cached_part

    def many(
        self,
        view: object,
        keys: Iterable[str],
        read: Callable[[list[str]], Mapping[str, ValueT]],
    ) -> dict[str, ValueT]:
        """The values of these keys by key; `read` gives those that are not kept, if there are."""
        parts = {key: self.get(view, key) for key in keys}
        missing = [key for key, part in parts.items() if part is None]
        for key, read_part in (read(missing) if missing else {}).items():
            self.put(view, key, read_part)
            parts[key] = read_part
        return {key: part for key, part in parts.items() if part is not None}

    def get(self, view: object, key: Hashable) -> ValueT | None:
        """The value that this view gave for `key`, None where it was not asked."""
        with self._lock:
            if not _is_same(view, self._view) or key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def put(self, view: object, key: Hashable, value: ValueT) -> None:
        """Keep a value that is not heavier than `size`; those of an earlier view go."""
        weight = self._weigh(value)
        with self._lock:
            if not _is_same(view, self._view):
                self._view = view
                self._values.clear()
                self._weight = 0
            self._drop(key)
            self._values[key] = (value, weight)
            self._weight += weight
            while self._weight > self._size:
                self._drop(key if weight > self._size else next(iter(self._values)))

    def _drop(self, key: Hashable) -> None:
        _, weight = self._values.pop(key, (None, 0))
        self._weight -= weight


def _is_same(view: object, other: object) -> bool:
    # Views of arrays have no equality of their own.
    return view is other or (isinstance(view, int | str | tuple) and view == other)
