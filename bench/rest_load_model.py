"""How a server does on so many cores, by simulation: it is no measurement.

In: processor seconds of the parts of one answer, as measured on one core each. Out: answers a
second and times. Discrete events: each connection asks again as soon as it is answered; a process
does one thing at a time under the interpreter's lock, in the order in which it was asked, and one
run of the model beside it, for the questions that wait, by the server's own rule; a core does one
thing at a time. It knows nothing of caches and of memory that cores share, nor of the one database,
and counts the parts of a recall that leave the lock (some of SQLite, numpy, tantivy) as under it.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from anaphora.core.permits import FEW
from anaphora.embed.gathering import ENOUGH, MOST
from bench.figures import percentile

__all__ = ["Costs", "Simulated", "simulate"]

Then: TypeAlias = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Costs:
    """Processor seconds of an answer.

    Under the lock: `around` it (HTTP, tokens, JSON), and one of `recalls` by chance. Outside: a
    `run` of the model, and `each` question in it. Of the `client`, where it has no cores of its
    own.
    """

    around: float
    recalls: tuple[float, ...]
    run: float
    each: float
    client: float = 0.0


@dataclass(frozen=True, slots=True)
class Simulated:
    """Answers a second, and milliseconds of an answer."""

    rate: float
    p50: float
    p99: float


@dataclass(slots=True)
class _Cores:
    free: int
    now: float = 0.0
    _queue: deque[tuple[float, Then]] = field(default_factory=deque)
    _events: list[tuple[float, int, Then]] = field(default_factory=list)
    _count: int = 0

    def work(self, seconds: float, then: Then) -> None:
        """Let a core do this as soon as one is free."""
        self._queue.append((seconds, then))
        self._begin()

    def step(self) -> None:
        """Go on to the end of the next piece of work."""
        self.now, _, then = heapq.heappop(self._events)
        self.free += 1
        then()
        self._begin()

    def _begin(self) -> None:
        while self.free and self._queue:
            seconds, then = self._queue.popleft()
            self.free -= 1
            self._count += 1
            heapq.heappush(self._events, (self.now + seconds, self._count, then))


@dataclass(slots=True)
class _Process:
    cores: _Cores
    costs: Costs
    _locked: bool = False
    _queue: deque[tuple[float, Then]] = field(default_factory=deque)
    _running: bool = False
    _waiting: list[Then] = field(default_factory=list)

    def compute(self, seconds: float, then: Then) -> None:
        """Do this under the lock, when what was asked before is done."""
        self._queue.append((seconds, then))
        self._next()

    def embed(self, then: Then) -> None:
        """Have a vector made in the next run of the model."""
        self._waiting.append(then)
        self._run()

    def _next(self) -> None:
        if self._locked or not self._queue:
            return
        self._locked = True
        seconds, then = self._queue.popleft()

        def done() -> None:
            self._locked = False
            self._next()
            self._run()
            then()

        self.cores.work(seconds, done)

    def _run(self) -> None:
        busy = len(self._queue) > FEW and len(self._waiting) < ENOUGH
        if self._running or not self._waiting or busy:
            return
        self._running = True
        some, self._waiting = self._waiting[:MOST], self._waiting[MOST:]

        def done() -> None:
            self._running = False
            self._run()
            for then in some:
                then()

        self.cores.work(self.costs.run + self.costs.each * len(some), done)


def simulate(
    costs: Costs,
    *,
    processes: int,
    cores: int,
    connections: int,
    answers: int = 4_000,
    seed: int = 0,
) -> Simulated:
    """So many answers to connections that processes share evenly; a tenth is for warming up."""
    chance = random.Random(seed)
    all_cores = _Cores(cores)
    served = [_Process(all_cores, costs) for _ in range(processes)]
    ended: list[tuple[float, float]] = []

    def ask(process: _Process) -> None:
        begun = all_cores.now

        def answered() -> None:
            ended.append((all_cores.now, all_cores.now - begun))
            ask(process)

        def recall() -> None:
            process.compute(chance.choice(costs.recalls) + costs.around / 2, answered)

        def take_in() -> None:
            process.compute(costs.around / 2, lambda: process.embed(recall))

        all_cores.work(costs.client, take_in)

    for number in range(connections):
        ask(served[number % processes])
    while len(ended) < answers:
        all_cores.step()
    warm = ended[answers // 10]
    counted = ended[answers // 10 + 1 :]
    times = [taken * 1e3 for _, taken in counted]
    rate = len(counted) / (counted[-1][0] - warm[0])
    return Simulated(rate, percentile(times, 0.5), percentile(times, 0.99))
