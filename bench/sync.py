"""What syncing costs, and random histories of devices: `python -m bench.sync`.

First two devices with a folder between them and `--memories` and `--turns`: the first push, the
first pull, one write more (bytes in the remote, time until the other device has it), beside a copy
of the home's files. Then `--histories` random histories of two to four devices, as the tests have
them, and `--kills` processes that are killed while they write and sync.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tests.sync.devices import SHARED, History, devices, settle, state_of, words_of
from tests.sync.test_remote import CHILD

from anaphora import Memory
from anaphora.values.conversations import NewTurn
from anaphora.values.memories import NewMemory
from bench.figures import Figure, at_least, exactly, keep

SYLLABLES: Final = [
    "ka",
    "lo",
    "mi",
    "ter",
    "san",
    "bel",
    "dra",
    "fon",
    "gul",
    "hes",
    "pir",
    "vam",
    "zor",
    "ned",
    "qui",
    "rab",
    "sti",
    "wen",
]
THREAD: Final = 100


def run(memories: int, turns: int, histories: int, kills: int) -> list[Figure]:
    """Every figure, kept in bench/results/."""
    figures = [*_sizes(memories, turns)]
    if histories:
        agreed = sum(_history(seed) for seed in range(1000, 1000 + histories))
        name = "random histories of 2 to 4 devices"
        figures += [
            Figure(name, histories),
            at_least("of these: one state, nothing lost, nothing alive", agreed, histories),
        ]
    if kills:
        lost, twice, said = _killed(kills)
        figures += [
            Figure("kills while writing and syncing", kills),
            Figure("acknowledged writes before them", said),
            exactly("of these lost on a device", lost, 0),
            exactly("turns that are there twice", twice, 0),
        ]
    keep("sync", "What syncing costs", figures)
    return figures


def _sizes(memories: int, turns: int) -> list[Figure]:
    chance = random.Random(7)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with devices(place, 2, float) as (one, other):
            _fill(one, memories, turns, chance)
            home, remote = place / "d0", place / "remote"
            files = _size(home)
            copied = _seconds(lambda: shutil.copytree(home, place / "copy"))
            pushed = _seconds(one.sync.now)
            after = _size(home)
            sent = _size(remote)
            pulled = _seconds(other.sync.now)
            one.remember("The brass key hangs behind the pantry door", path="house.key")
            again = _seconds(one.sync.now)
            arrived = _seconds(other.sync.now)
            more = _size(remote) - sent
            idle = _seconds(one.sync.now)
            found = other.recall("where is the brass key?", min_confidence=0)[0].text
            assert "pantry" in found
        return [
            Figure("memories", memories),
            Figure("turns", turns),
            Figure("the home before", files / 1e6, "MB"),
            Figure("a copy of its files", copied, "s"),
            Figure("the first push", pushed, "s"),
            Figure("in the remote", sent / 1e6, "MB"),
            Figure("the home after", after / 1e6, "MB"),
            Figure("the first pull on a new device", pulled, "s"),
            Figure("one memory more: sending", again, "s"),
            Figure("one memory more: taking in", arrived, "s"),
            Figure("one memory more: in the remote", more / 1e3, "kB"),
            Figure("an exchange with nothing new", idle, "s"),
        ]


def _fill(memory: Memory, memories: int, turns: int, chance: random.Random) -> None:
    memory.remember_many(
        [
            NewMemory(
                f"{_said(chance)} {number}",
                path=f"place.{number}" if number % 4 == 0 else None,
                tags=(_word(chance),),
            )
            for number in range(memories)
        ]
    )
    for start in range(0, turns, THREAD):
        count = min(THREAD, turns - start)
        said = [NewTurn(chance.choice(["user", "assistant"]), _said(chance)) for _ in range(count)]
        memory.conversations.extend(f"talk-{start // THREAD}", said)


def _said(chance: random.Random) -> str:
    return " ".join(_word(chance) for _ in range(chance.randrange(8, 40)))


def _word(chance: random.Random) -> str:
    return "".join(chance.choice(SYLLABLES) for _ in range(chance.randrange(2, 5)))


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _seconds(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def _history(seed: int) -> bool:
    """Whether devices agree after a random history, on all that nobody took away."""
    chance = random.Random(seed)
    offsets = [chance.choice([0.0, 0.1, 5.0, -30.0, 600.0]) for _ in range(4)]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with devices(place, chance.randint(2, 4), lambda n: offsets[n]) as made:
            history = History(made, chance, place)
            history.run(40)
            settle(made)
            states = [state_of(memory, place) for memory in made]
            left = words_of(made[0], place)
        lost = history.said - history.forgotten - left
        alive = (history.forgotten - {*SHARED, "[redacted]"}) & left
        agreed = all(state == states[0] for state in states) and not lost and not alive
        if not agreed:
            print(
                f"seed {seed}: lost {sorted(lost)[:3]}, alive {sorted(alive)[:3]}", file=sys.stderr
            )
        return agreed


def _killed(kills: int) -> tuple[int, int, int]:
    """Acknowledged writes that are missing on a device, turns that are twice, and all writes."""
    chance = random.Random(11)
    said: set[str] = set()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with devices(place, 2, float):
            pass
        for kill in range(kills):
            after = str(0.25 + 0.8 * chance.random())
            command = [sys.executable, "-c", CHILD, str(place / f"d{kill % 2}"), after, f"k{kill}"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            said |= set(done.stdout.splitlines())
        lost = twice = 0
        with (
            Memory.open(place / "d0", embedder="hashing") as one,
            Memory.open(place / "d1", embedder="hashing") as other,
        ):
            settle([one, other])
            for memory in (one, other):
                lost += len(said - words_of(memory, place))
                thread = memory.conversations.get("talk")
                texts = [turn.text for turn in thread.turns] if thread is not None else []
                twice += len(texts) - len(set(texts))
    return lost, twice, len(said)


def main(words: Sequence[str] | None = None) -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.sync", description=__doc__)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=50_000)
    parser.add_argument("--histories", type=int, default=200)
    parser.add_argument("--kills", type=int, default=300)
    given = parser.parse_args(words)
    run(given.memories, given.turns, given.histories, given.kills)


if __name__ == "__main__":
    main()
