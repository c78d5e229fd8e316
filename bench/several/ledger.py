"""What clients know for certain, and what they do not: the book that servers are checked against.

In: acknowledgements and lost requests. Out: which memories and turns must be there, which must
not, and which may be there once. It asks no server.
"""

from __future__ import annotations

import random
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

__all__ = ["Fact", "Ledger", "Said", "Words"]

_SYLLABLES = tuple(c + v for c in "bdfgklmnprstvz" for v in "aeiou")
_LONGEST = 240


@dataclass(slots=True)
class Words:
    """Texts of which no two are the same: sentences of `base`, each with a name of its own.

    Without a base the sentences are of ours. Safe to share between threads.
    """

    base: Sequence[str]
    random: random.Random
    _made: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def text(self) -> str:
        """The next one."""
        with self._lock:
            self._made += 1
            made = self._made
            name = self._name()
            other = self._name()
        if not self.base:
            return f"The {name} at {other} opens with key {made}."
        return f"{self.base[made % len(self.base)][:_LONGEST]} (about {name} {other})"

    def _name(self) -> str:
        return "".join(self.random.choices(_SYLLABLES, k=4))


@dataclass(frozen=True, slots=True)
class Fact:
    """A memory that was acknowledged: its words and id, in its namespace."""

    namespace: str
    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Said:
    """A turn that was sent: `mark` is its intent_id, `client` and `serial` who sent it and when."""

    text: str
    mark: str
    client: int
    serial: int


Place = tuple[str, str]
"""Namespace and conversation."""


@dataclass(slots=True)
class Ledger:
    """The book. Safe to share between threads.

    `kept` must be recalled. `replaced` is an old id with its words, of what has new words now.
    `gone` must not come back. `maybe` are texts of a lost `remember`, `maybe_replaced` (fact, new
    words) of a lost change, `maybe_gone` facts of a lost `forget`. `turns` has every acknowledged
    turn by its index, `maybe_turns` those without an answer.
    """

    kept: dict[str, Fact] = field(default_factory=dict)
    replaced: list[Fact] = field(default_factory=list)
    gone: list[Fact] = field(default_factory=list)
    maybe: list[tuple[str, str]] = field(default_factory=list)
    maybe_replaced: list[tuple[Fact, str]] = field(default_factory=list)
    maybe_gone: list[Fact] = field(default_factory=list)
    turns: dict[Place, dict[int, Said]] = field(default_factory=lambda: defaultdict(dict))
    maybe_turns: list[tuple[Place, Said]] = field(default_factory=list)
    retried: int = 0
    twice: list[str] = field(default_factory=list)
    _stable: list[Fact] = field(default_factory=list)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def keep(self, fact: Fact, *, stable: bool) -> None:
        """A memory was acknowledged; a stable one will be neither changed nor forgotten."""
        with self._lock:
            self.kept[fact.id] = fact
            if stable:
                self._stable.append(fact)

    def replace(self, old: Fact, new: Fact) -> None:
        """A change was acknowledged."""
        with self._lock:
            del self.kept[old.id]
            self.replaced.append(old)
            self.kept[new.id] = new

    def forget(self, fact: Fact) -> None:
        """A deletion was acknowledged."""
        with self._lock:
            del self.kept[fact.id]
            self.gone.append(fact)

    def unknown(self, note: Callable[[Ledger], object]) -> None:
        """Note a request without an answer."""
        with self._lock:
            note(self)

    def said(self, place: Place, index: int, turn: Said) -> None:
        """A turn was acknowledged at an index."""
        with self._lock:
            if index in self.turns[place]:
                self.twice.append(f"{place} #{index} was given to two turns")
            self.turns[place][index] = turn

    def any_fact(self, choose: random.Random) -> Fact | None:
        """One of those that stay as they are."""
        with self._lock:
            return choose.choice(self._stable) if self._stable else None

    def stable_in(self, namespace: str) -> Fact | None:
        """The first of those that stay, in one namespace."""
        with self._lock:
            return next((fact for fact in self._stable if fact.namespace == namespace), None)

    def any_turn(self, choose: random.Random) -> tuple[Place, int, Said] | None:
        """One of the acknowledged turns."""
        with self._lock:
            if not self.turns:
                return None
            place = choose.choice(list(self.turns))
            index = choose.choice(list(self.turns[place]))
            return place, index, self.turns[place][index]
