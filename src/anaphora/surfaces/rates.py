"""Limits how much each caller of a server may ask for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class TokenBuckets:
    """A token bucket for each key: `rate` per second on average, `burst` at once. Rate 0: no limit.

    Of more than `most` keys the least recently used are dropped; their buckets are full by then.
    """

    rate: float
    burst: int
    clock: Callable[[], float]
    most: int
    _kept: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)

    def take(self, key: str) -> float:
        """Take one from the key's bucket: 0; if there is none, the seconds until there is."""
        if not self.rate:
            return 0.0
        now = self.clock()
        tokens, previous_time = self._kept.pop(key, (float(self.burst), now))
        tokens = min(float(self.burst), tokens + (now - previous_time) * self.rate)
        is_allowed = tokens >= 1.0
        self._kept[key] = (tokens - 1.0 if is_allowed else tokens, now)
        while len(self._kept) > self.most:
            self._kept.popitem(last=False)
        return 0.0 if is_allowed else (1.0 - tokens) / self.rate
