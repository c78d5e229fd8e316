"""Limits: how much, how often, how long.

In: an ASGI receive, a key, a clock. Out: the same, or a `Problem` that says which limit. A body is
counted as it comes, whatever its header says.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from anyio import move_on_after
from starlette.types import Message, Receive

from anaphora.surfaces.rest.problems import Problem

_MOST_KEYS: Final = 10_000
_DIGITS: Final = 18


@dataclass(slots=True)
class Buckets:
    """A token bucket for each key: `rate` a second on average, `burst` at once. Rate 0: no limit.

    Keys that were not used for longest are forgotten first; theirs are full by then.
    """

    rate: float
    burst: int
    clock: Callable[[], float]
    _kept: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)

    def take(self, key: str) -> None:
        """Take one from the key's bucket. Raises the problem 429, with when to come again."""
        if not self.rate:
            return
        now = self.clock()
        left, then = self._kept.pop(key, (float(self.burst), now))
        left = min(float(self.burst), left + (now - then) * self.rate)
        allowed = left >= 1.0
        self._kept[key] = (left - 1.0 if allowed else left, now)
        while len(self._kept) > _MOST_KEYS:
            self._kept.popitem(last=False)
        if not allowed:
            seconds = max(1, math.ceil((1.0 - left) / self.rate))
            raise Problem(
                429,
                "rate",
                f"at most {self.rate:g} requests a second; come again in {seconds} s",
                {"Retry-After": str(seconds)},
            )


@dataclass(slots=True)
class Coming:
    """A body as it comes. `ended` says that nothing more of it will."""

    _receive: Receive
    ended: bool = False

    async def receive(self) -> Message:
        """The next piece, or that the caller has gone."""
        message = await self._receive()
        if message["type"] != "http.request" or not message.get("more_body", False):
            self.ended = True
        return message

    async def take(self, most: int, seconds: float) -> None:
        """Throw away what comes: at most so many bytes, for at most so long."""
        taken = 0
        with move_on_after(seconds):
            while not self.ended and taken < most:
                taken += len((await self.receive()).get("body", b""))


def counted(receive: Receive, limit: int, declared: str | None, *, wanted: bool) -> Receive:
    """`receive`, but a body of more than `limit` bytes raises the problem 413.

    One that is not `wanted` is thrown away: nobody reads it but to see whether the caller is still
    there, and by then the answer has begun and nothing can be refused any more.
    """
    if declared is not None and declared.isdecimal():
        # So many digits that Python refuses to read them are too many in any case.
        digits = declared.lstrip("0")
        if len(digits) > _DIGITS or int(digits or "0") > limit:
            raise _too_large(limit)
    seen = 0

    async def receive_counted() -> Message:
        nonlocal seen
        message = await receive()
        if message["type"] == "http.request":
            seen += len(message.get("body", b""))
            if not wanted:
                return {**message, "body": b""}
            if seen > limit:
                raise _too_large(limit)
        return message

    return receive_counted


def _too_large(limit: int) -> Problem:
    return Problem(413, "too_large", f"a body has at most {limit:,} bytes here")
