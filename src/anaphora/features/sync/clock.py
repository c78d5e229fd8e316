"""A hybrid logical clock: times of devices that respect causality.

After Kulkarni et al., 2014, "Logical Physical Clocks": a stamp is the wall clock's time unless that
is behind a stamp seen before, and then that stamp plus a count. Stamps of one device rise, and a
change made after another one was seen is later than it, however far the clocks of the two are
apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class Stamp(NamedTuple):
    """When a change was noticed: microseconds since 1970 UTC, a number among equals, the device."""

    time: int
    number: int
    device: str


@dataclass(slots=True)
class HybridClock:
    """Gives stamps for one device. Not safe to share between threads."""

    device: str
    wall: Callable[[], datetime]
    time: int = 0
    number: int = 0

    def next(self) -> Stamp:
        """A stamp later than every stamp issued or seen before."""
        microseconds = (self.wall() - _EPOCH) // _MICROSECOND
        self.time, self.number = (
            (microseconds, 0) if microseconds > self.time else (self.time, self.number + 1)
        )
        return Stamp(self.time, self.number, self.device)

    def state(self) -> list[int]:
        """Its state as JSON, to continue from."""
        return [self.time, self.number]

    def see(self, stamp: Stamp) -> None:
        """Make later stamps greater than this one."""
        self.time, self.number = max((self.time, self.number), (stamp.time, stamp.number))
