"""Ids of records: unique without coordination, and in the order of their making.

They are UUIDs of version 7 (RFC 9562) as texts of 36 characters; as texts they sort by time.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_RANDOM_BITS = 74
# Within one millisecond ids go up by a random step, so that two processes still do not meet.
_STEP_BITS = 32


class RecordIds:
    """Calling it gives the next id. Safe to share between threads.

    `clock` gives an aware time; one that stands still or goes back still gives rising ids.
    `random_bits(n)` gives n random bits, by default from the operating system.
    """

    def __init__(
        self,
        clock: Callable[[], datetime],
        random_bits: Callable[[int], int] = secrets.randbits,
    ) -> None:
        self._clock = clock
        self._random_bits = random_bits
        self._lock = threading.Lock()
        self._last = -1

    def __call__(self) -> str:
        """The next id."""
        milliseconds = max(0, (self._clock() - _EPOCH) // _MILLISECOND)
        with self._lock:
            if self._last >= 0 and milliseconds <= self._last >> _RANDOM_BITS:
                number = self._last + 1 + self._random_bits(_STEP_BITS)
            else:
                number = milliseconds << _RANDOM_BITS | self._random_bits(_RANDOM_BITS)
            self._last = number
        # 48 bits of time, then 74 random ones around the version and the variant.
        high, low = number >> 62, number & (1 << 62) - 1
        uuid = (high >> 12) << 80 | 7 << 76 | (high & 0xFFF) << 64 | 2 << 62 | low
        digits = f"{uuid & (1 << 128) - 1:032x}"
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
