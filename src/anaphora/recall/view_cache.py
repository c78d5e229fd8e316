"""A cache of what was worked out of one view of an index: one change, and all of it is stale."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

ValueT = TypeVar("ValueT")


class ViewCache(Generic[ValueT]):
    """The `size` values that were used last, of one view. Safe to share between threads."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._view: object = None
        self._values: OrderedDict[Hashable, ValueT] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, view: object, key: Hashable, make: Callable[[], ValueT]) -> ValueT:
        """The value that this view gave for `key`; made, and kept, where there is none."""
        found = self.get(view, key)
        if found is None:
            found = make()
            self.put(view, key, found)
        return found

    def get(self, view: object, key: Hashable) -> ValueT | None:
        """The value that this view gave for `key`, None where it was not asked."""
        with self._lock:
            if view is not self._view or key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key]

    def put(self, view: object, key: Hashable, value: ValueT) -> None:
        """Keep a value; those of an earlier view go."""
        with self._lock:
            if view is not self._view:
                self._view = view
                self._values.clear()
            self._values[key] = value
            while len(self._values) > self._size:
                self._values.popitem(last=False)
