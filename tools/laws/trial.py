"""One home in one lane under trial: what was tried, and what broke a law."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Final

from tools.laws.asking import ALL, Asker, Hits, Told, show_hits
from tools.laws.homes import Home, Kind, Lane, Question, Statement

from anaphora import RecallMode

SAME_SCORE: Final = 1e-3
"""Scores nearer than this may come in any order."""

MIXED: Final = 30
"""Spare statements of a mixed home."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A case in which a law did not hold, in full: whoever mends it needs nothing else."""

    law: str
    home: Home
    lane: Lane
    question: str
    reason: str
    orders: tuple[tuple[str, Hits], ...]
    added: tuple[Statement, ...] = ()

    def lines(self) -> Iterator[str]:
        """For a reader."""
        yield f"{self.law}: home {self.home.name}, {self.lane}"
        yield f"  question: {self.question}"
        yield f"  reason: {self.reason}"
        yield "  told (place, day, text):"
        yield from self.home.lines()
        if self.added:
            yield f"  added: {len(self.added)}, of which some are shown below"
        named = frozenset(int(place) for place in re.findall(r"\((\d+)\)", self.reason))
        for title, hits in self.orders:
            yield f"  {title}:"
            yield from show_hits(hits, named)


@dataclass(slots=True)
class Tally:
    """How many cases of each law were tried, and those in which it did not hold."""

    tried: Counter[str] = field(default_factory=Counter)
    broken: Counter[str] = field(default_factory=Counter)
    violations: dict[str, list[Violation]] = field(default_factory=dict)
    kept: int = 40

    def add(self, law: str, violation: Violation | None) -> None:
        """Count a case; of the violations the first ones are kept."""
        self.tried[law] += 1
        if violation is not None:
            self.broken[law] += 1
            listed = self.violations.setdefault(law, [])
            if len(listed) < self.kept:
                listed.append(violation)


class Trial:
    """A home that is kept in one lane, and asked."""

    def __init__(self, asker: Asker, home: Home, lane: Lane, random: Random, tally: Tally) -> None:
        self.asker = asker
        self.home = home
        self.lane: Lane = lane
        self.random = random
        self.tally = tally
        self._answers: dict[tuple[str, RecallMode], Hits] = {}

    @cached_property
    def told(self) -> Told:
        """The home as it was generated."""
        return self.asker.tell(self.lane, self.home.statements)

    @cached_property
    def mixed(self) -> Told:
        """The home with some of the spare statements behind its own."""
        spare = self.home.spare
        chosen = self.random.sample(spare, min(MIXED, len(spare)))
        return self.asker.tell(self.lane, (*self.home.statements, *chosen))

    def hits(self, question: str, mode: RecallMode = "hybrid") -> Hits:
        """All hits of the home itself."""
        known = self._answers.get((question, mode))
        if known is None:
            known = self._answers[question, mode] = self.told.ask(question, top_k=ALL, mode=mode)
        return known

    def questions(self, most: int = 2) -> Sequence[Question]:
        """Some questions of the home."""
        asked = self.home.questions
        return self.random.sample(asked, min(most, len(asked)))

    def judge(
        self,
        law: str,
        question: str,
        reason: str,
        *orders: tuple[str, Hits],
        added: Sequence[Statement] = (),
    ) -> None:
        """Count a case of a law; `reason` says how it was broken, "" where it held."""
        violation = None
        if reason:
            violation = Violation(law, self.home, self.lane, question, reason, orders, tuple(added))
        self.tally.add(law, violation)


Check = Callable[[Trial], None]


@dataclass(frozen=True, slots=True)
class Law:
    """A law: its names in a tally, what must hold, and the kinds of homes that it is tried on."""

    names: tuple[str, ...]
    holds: str
    kinds: frozenset[Kind]
    check: Check


LAWS: list[Law] = []


def law(
    holds: str,
    *names: str,
    kinds: Sequence[Kind] = ("plain", "changes", "metamorphic"),
) -> Callable[[Check], Check]:
    """Register a check that tallies cases under these names."""

    def register(check: Check) -> Check:
        LAWS.append(Law(names, holds, frozenset(kinds), check))
        return check

    return register


def order_of(hits: Hits) -> list[int]:
    """The places in their order."""
    return [hit.place for hit in hits]


def swaps(first: Hits, second: Hits, within: float) -> list[tuple[int, int]]:
    """Pairs whose order differs though their scores in `first` lie further apart than `within`."""
    rank = {hit.place: at for at, hit in enumerate(second)}
    common = [hit for hit in first if hit.place in rank]
    return [
        (one.place, other.place)
        for at, one in enumerate(common)
        for other in common[at + 1 :]
        if rank[one.place] > rank[other.place] and abs(one.score - other.score) > within
    ]
