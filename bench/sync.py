"""What syncing costs, and random histories of devices: `python -m bench.sync`.

First two devices with a folder between them and `--memories` and `--turns`: the first push, the
first pull, one write more (bytes in the remote, time until the other device has it), beside a copy
of the home's files; then the same again after compaction. Then `--histories` random histories of
three to five devices, as the tests have them, over a folder, a server and S3 storage in turn, and
`--kills` processes that are killed while they write and sync: devices, and the server between them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import repeat
from pathlib import Path
from typing import Final

import httpx
from tests.surfaces.page_desk import serving
from tests.sync.devices import SHARED, History, devices, settle, state_of, words_of
from tests.sync.test_remote import CHILD
from tests.sync.test_remotes import KEY, s3_server

from anaphora import Memory
from anaphora.surfaces.rest import ServerOptions
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
_BLOCK: Final = 50
"""Histories after which a worker takes new remotes."""


def run(memories: int, turns: int, histories: int, kills: int, workers: int) -> None:
    """Every figure, kept in bench/results/: what it costs, and what became of random histories."""
    if memories or turns:
        keep("sync", "What syncing costs", _sizes(memories, turns))
    if histories:
        agreed, ran = _histories(histories, workers)
        held = [
            Figure("random histories of 3 to 5 devices over three remotes", ran),
            at_least("of these: one state, nothing lost, nothing alive", agreed, ran),
        ]
        keep("sync-histories", "What random histories of devices come to", held)
    if kills:
        keep("sync-kills", "What kills leave of what devices said", _kill_figures(*_killed(kills)))


def _kill_figures(lost: int, twice: int, said: int, kills: int) -> list[Figure]:
    return [
        Figure("kills of devices and their server", kills),
        Figure("acknowledged writes before them", said),
        exactly("of these lost on a device", lost, 0),
        exactly("turns that are there twice", twice, 0),
    ]


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
            compacted = _seconds(one.sync.compact)
            least = _size(remote)
            with Memory.open(place / "new", embedder="hashing", warm=False) as new:
                new.sync.init(str(remote), key=one.sync.export_key())
                begun = _seconds(new.sync.now)
                assert len(new.sync.devices()) == 3
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
            Figure("compaction", compacted, "s"),
            Figure("in the remote after it", least / 1e6, "MB"),
            Figure("the first pull on a new device after it", begun, "s"),
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


@contextmanager
def _places(storage: str) -> Iterator[Callable[[Path, int], tuple[str, str | None]]]:
    """Gives the address and token of an empty remote, one kind after the other."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        memory = stack.enter_context(Memory.open(folder / "server", embedder="hashing", warm=False))
        options = ServerOptions(page=None, rate=1_000_000, burst=1_000_000)
        url = stack.enter_context(serving(memory, options))

        def place(at: Path, seed: int) -> tuple[str, str | None]:
            if seed % 3 == 0:
                (at / "shared").mkdir()
                return str(at / "shared"), None
            if seed % 3 == 1:
                return url, None
            return f"s3://memory/{seed}?endpoint={storage}&region=us-east-1", KEY

        yield place


def _histories(count: int, workers: int) -> tuple[int, int]:
    """How many random histories agreed, of how many; Ctrl-C ends it early."""
    agreed = ran = 0
    blocks = [range(at, min(at + _BLOCK, count)) for at in range(0, count, _BLOCK)]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        storage = stack.enter_context(s3_server(folder))
        spawning = multiprocessing.get_context("spawn")
        pool = stack.enter_context(ProcessPoolExecutor(workers, spawning))
        try:
            made = pool.map(_block, blocks, repeat(storage))
            for block, found in zip(blocks, made, strict=True):
                agreed, ran = agreed + found, ran + len(block)
                print(f"{agreed} of {ran} histories agree", file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            print(f"interrupted after {ran}", file=sys.stderr)
            pool.shutdown(wait=False, cancel_futures=True)
    return agreed, ran


def _block(numbers: range, storage: str) -> int:
    with _places(storage) as places:
        return sum(_history(1000 + number, places) for number in numbers)


def _history(seed: int, places: Callable[[Path, int], tuple[str, str | None]]) -> bool:
    """Whether devices agree after a random history, on all that nobody took away."""
    chance = random.Random(seed)
    offsets = [chance.choice([0.0, 0.1, 5.0, -30.0, 600.0]) for _ in range(5)]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        remote, token = places(place, seed)
        with devices(place, chance.randint(3, 5), lambda n: offsets[n], remote, token) as made:
            history = History(made, chance, place)
            history.run(chance.randint(8, 40))
            if chance.random() < 0.3:
                chance.choice(made).sync.compact()
                history.run(10)
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


@contextmanager
def _server(home: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """A server of its own process, that answers."""
    command = [sys.executable, "-m", "anaphora", "--home", str(home), "serve"]
    given = ["--port", str(port), "--rate", "1000000"]
    program = subprocess.Popen(
        [*command, *given], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(300):
            try:
                httpx.get(f"http://127.0.0.1:{port}/health", timeout=1)
                break
            except httpx.HTTPError:
                time.sleep(0.05)
        yield program
    finally:
        program.kill()
        program.wait()


def _killed(kills: int) -> tuple[int, int, int, int]:
    """Writes that are missing on a device, turns that are twice, all acknowledged writes, kills."""
    chance = random.Random(11)
    said: set[str] = set()
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        place = Path(folder)
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
        free.close()
        url = f"http://127.0.0.1:{port}"
        with Memory.open(place / "server", embedder="hashing", warm=False) as memory:
            token = memory.tokens.create("devices", namespaces=["default"]).secret
        with _server(place / "server", port), devices(place, 2, float, url, token):
            pass
        for kill in range(kills):
            after = 0.6 * chance.random()
            with _server(place / "server", port) as server:
                command = [sys.executable, "-c", CHILD, str(place / f"d{kill % 2}")]
                child = subprocess.Popen(
                    [*command, str(after), f"k{kill}"],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                )
                if kill % 3 == 0:
                    # The server goes first, in the middle of whatever it does.
                    time.sleep(max(0.0, after + 0.2 * chance.random()))
                    server.kill()
                said |= set(child.communicate()[0].splitlines())
        lost = twice = 0
        with (
            _server(place / "server", port),
            Memory.open(place / "d0", embedder="hashing") as one,
            Memory.open(place / "d1", embedder="hashing") as other,
        ):
            settle([one, other])
            one.sync.verify()
            for memory in (one, other):
                lost += len(said - words_of(memory, place))
                thread = memory.conversations.get("talk")
                texts = [turn.text for turn in thread.turns] if thread is not None else []
                twice += len(texts) - len(set(texts))
    return lost, twice, len(said), kills


def main(words: Sequence[str] | None = None) -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.sync", description=__doc__)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=50_000)
    parser.add_argument("--histories", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--workers", type=int, default=2, help="processes that run histories")
    given = parser.parse_args(words)
    run(given.memories, given.turns, given.histories, given.kills, given.workers)


if __name__ == "__main__":
    main()
