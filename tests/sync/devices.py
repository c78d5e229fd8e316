"""Devices of one user: homes with clocks of their own, one remote, and what must hold of them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from anaphora import Memory, SyncReport
from anaphora.errors import RemoteError

SHARED = ("I like tea", "The build is green", "Use tabs")
"""What is said on any device, again and again."""


class Clock:
    """A clock that goes on with every look, some seconds apart from others."""

    def __init__(self, apart: float = 0.0) -> None:
        self._now = datetime(2026, 3, 1, tzinfo=UTC) + timedelta(seconds=apart)

    def __call__(self) -> datetime:
        """The next moment."""
        self._now += timedelta(milliseconds=250)
        return self._now


@contextmanager
def devices(
    place: Path,
    count: int,
    apart: Callable[[int], float],
    remote: str | None = None,
    token: str | None = None,
    model: Any = None,
    databases: Sequence[str | None] = (),
) -> Iterator[list[Memory]]:
    """So many homes that sync through a remote, by default a folder."""
    if remote is None:
        (place / "remote").mkdir(parents=True)
        remote = str(place / "remote")
    with ExitStack() as stack:
        made = [
            stack.enter_context(
                Memory.open(
                    place / f"d{n}",
                    embedder="hashing",
                    clock=Clock(apart(n)),
                    warm=False,
                    model=model,
                    database=databases[n] if databases else None,
                )
            )
            for n in range(count)
        ]
        made[0].sync.init(remote, token=token)
        for other in made[1:]:
            other.sync.init(remote, token=token, key=made[0].sync.export_key())
        yield made


def exchange(memory: Memory) -> SyncReport:
    """Sync; a remote that does not answer in time, as on a busy machine, is asked once more."""
    try:
        return memory.sync.now()
    except RemoteError as error:
        if error.lasting:
            raise
        return memory.sync.now()


def settle(made: list[Memory]) -> None:
    """Sync until nobody has anything to send."""
    for _ in range(8):
        reports = [exchange(one) for one in made]
        if not any(report.sent or report.received or report.waiting for report in reports):
            return
    raise AssertionError("the devices never agree")


def state_of(memory: Memory, place: Path) -> list[str]:
    """Everything that a home says of itself, as sorted lines."""
    file = place / f"{random.getrandbits(64):x}.jsonl"
    memory.export(file)
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    file.unlink()
    return sorted(json.dumps(_plain(line), sort_keys=True) for line in lines if _counts(line))


def _counts(line: dict[str, Any]) -> bool:
    # A place whose turn was forgotten is noted on the device that forgot it.
    unnamed = line.get("kind") == "forgotten_turn" and "source" not in line
    # Which memories are close is what each device's own vectors say.
    close = line.get("relation") in {"same", "related"}
    return "anaphora" not in line and line.get("kind") != "end" and not unnamed and not close


def _plain(line: dict[str, Any]) -> dict[str, Any]:
    if "events" in line:
        line["events"] = sorted(line["events"], key=lambda one: json.dumps(one, sort_keys=True))
    return line


def words_of(memory: Memory, place: Path) -> set[str]:
    """Every text that a home still has."""
    lines = map(json.loads, state_of(memory, place))
    return {line["text"] for line in lines if "text" in line}


class History:
    """A random history of a few devices. `forgotten` are texts that somebody took away."""

    def __init__(self, made: list[Memory], chance: random.Random, place: Path) -> None:
        self.made = made
        self._place = place
        self.forgotten: set[str] = set()
        self.said: set[str] = set()
        self._chance = chance
        self._number = 0

    def run(self, steps: int) -> None:
        """Do so many things, each on some device."""
        for _ in range(steps):
            memory = self._chance.choice(self.made)
            act = self._chance.choice(_ACTS)
            before = words_of(memory, self._place) if act in _TAKING else set()
            act(self, memory)
            if act in _TAKING:
                self.forgotten |= before - words_of(memory, self._place)

    def _fresh(self) -> str:
        self._number += 1
        text = f"fact number {self._number} of this history"
        self.said.add(text)
        return text

    def _ids(self, memory: Memory) -> list[str]:
        return [record.id for record in memory.list(limit=100)]

    def remember(self, memory: Memory) -> None:
        """A value of a path, or a fact, new or said before."""
        shared = self._chance.random() < 0.5
        text = self._chance.choice(SHARED) if shared else self._fresh()
        path = self._chance.choice([None, None, "user.drink", "project.tabs"])
        tags = [self._chance.choice("xyz")] if self._chance.random() < 0.3 else []
        memory.remember(text, path=path, tags=tags)

    def update(self, memory: Memory) -> None:
        """Another value, or another label."""
        ids = self._ids(memory)
        if ids and self._chance.random() < 0.5:
            memory.update(self._chance.choice(ids), text=self._fresh())
        elif ids:
            label = self._chance.choice(["work", "home", None])
            memory.update(
                self._chance.choice(ids), tags=[self._chance.choice("uvw")], category=label
            )

    def forget(self, memory: Memory) -> None:
        """A memory, with its history."""
        ids = self._ids(memory)
        if ids:
            memory.forget(self._chance.choice(ids))

    def hide(self, memory: Memory) -> None:
        """A memory, softly."""
        ids = self._ids(memory)
        if ids:
            memory.forget(self._chance.choice(ids), soft=True)

    def append(self, memory: Memory) -> None:
        """A turn of one of two conversations."""
        name, speaker = self._chance.choice(["one", "two"]), self._chance.choice(["Ann", None])
        memory.conversations.append(name, "user", self._fresh(), speaker=speaker)

    def redact(self, memory: Memory) -> None:
        """A turn loses its words."""
        thread = memory.conversations.get("one")
        if thread is not None:
            memory.conversations.redact("one", self._chance.randrange(len(thread.turns)))

    def delete(self, memory: Memory) -> None:
        """A conversation goes."""
        memory.conversations.delete(self._chance.choice(["one", "two"]))

    def name(self, memory: Memory) -> None:
        """A conversation gets a title."""
        memory.conversations.set_title("one", self._chance.choice(["Tea", "Tabs"]))

    def settle_contradiction(self, memory: Memory) -> None:
        """Somebody says what holds."""
        for one in memory.contradictions()[:1]:
            if self._chance.random() < 0.5:
                memory.settle_contradiction(one.older.id, one.newer.id, "both_hold")
            else:
                memory.settle_contradiction(one.older.id, one.newer.id, "replaces")

    def sync(self, memory: Memory) -> None:
        """A device is online for a moment."""
        exchange(memory)


_ACTS: list[Callable[[History, Memory], None]] = [
    History.remember, History.remember, History.remember, History.update, History.forget,
    History.hide, History.append, History.append, History.append, History.redact, History.delete,
    History.name, History.settle_contradiction, History.sync, History.sync, History.sync,
]  # fmt: skip
_TAKING = (History.forget, History.redact, History.delete)
