"""What survives: `kill -9` at random moments of appending, and many processes on one thread.

In: the number of rounds and a seed. Out: counts beside their targets, also in
bench/results/durability.json and .md. The processes use the public API only; a turn counts as
acknowledged when `append` has returned and its number has reached the parent.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from anaphora import Memory
from bench.figures import Figure, exactly, keep
from bench.measuring import plain_environment

ROUNDS = 25
TURNS = 200
PROCESSES = 8
APPENDS = 50
SEED = 20

# Recalling now and then keeps the index writing too while the process is killed.
WRITER = """
import sys
from anaphora import Memory
home, thread, name, count, every = sys.argv[1:4] + [int(a) for a in sys.argv[4:6]]
with Memory.open(home, conversations_dir=home + "/conversations", embedder="hashing") as memory:
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(count):
        memory.conversations.append(thread, "user", f"{name} keeps token{name}x{number} for later")
        print(number, flush=True)
        if every and number % every == every - 1:
            memory.recall_conversation(thread, f"token{name}x{number}")
"""


@dataclass(slots=True)
class _Tally:
    """Counts over the rounds."""

    acknowledged: int = 0
    lost: int = 0
    out_of_order: int = 0
    unacknowledged_kept: int = 0
    unreadable_files: int = 0
    not_recalled: int = 0


def run(data: Path | None = None, *, rounds: int = ROUNDS, seed: int = SEED) -> list[Figure]:
    """Both experiments; `data` is not needed. Prints and keeps the figures."""
    del data
    figures = _killed(rounds, random.Random(seed)) + _together()
    keep("durability", "Durability: kill -9 and eight writers", figures)
    return figures


def _start(home: Path, thread: str, name: str, count: int, every: int) -> subprocess.Popen[str]:
    arguments = [str(home), thread, name, str(count), str(every)]
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=plain_environment(),
    )
    assert process.stdout is not None
    if process.stdout.readline().strip() != "ready":
        raise SystemExit("the writing process did not start")
    return process


def _go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def _killed(rounds: int, chance: random.Random) -> list[Figure]:
    tally = _Tally()
    acknowledged: list[str] = []
    with tempfile.TemporaryDirectory(prefix="anaphora-bench-") as folder:
        home = Path(folder)
        for number in range(rounds):
            acknowledged += _kill_once(home, f"r{number}", chance)
            _inspect(home, acknowledged, tally)
    tally.acknowledged = len(acknowledged)
    return [
        Figure("rounds of 200 appends, killed at a random moment", rounds),
        Figure("turns acknowledged", tally.acknowledged),
        exactly("acknowledged turns lost", tally.lost, 0),
        exactly("turns out of order", tally.out_of_order, 0),
        exactly("thread files that do not parse", tally.unreadable_files, 0),
        exactly("last acknowledged turns not recalled", tally.not_recalled, 0),
        Figure("turns kept though not acknowledged", tally.unacknowledged_kept),
    ]


def _kill_once(home: Path, name: str, chance: random.Random) -> list[str]:
    """Let a process append, kill it at some moment, give the texts that it had acknowledged."""
    process = _start(home, "thread", name, TURNS, 10)
    assert process.stdout is not None
    _go(process)
    last = chance.randrange(TURNS - 1)
    done = -1
    while done < last:
        done = int(process.stdout.readline())
    # Anywhere within the next append or two, not only just after an acknowledgement.
    time.sleep(chance.uniform(0, 0.01))
    process.kill()
    rest = process.stdout.read().split("\n")[:-1]
    process.wait()
    done = int(rest[-1]) if rest else done
    return [f"{name} keeps token{name}x{number} for later" for number in range(done + 1)]


def _inspect(home: Path, acknowledged: list[str], tally: _Tally) -> None:
    for file in (home / "conversations").glob("*.json"):
        try:
            json.loads(file.read_bytes())
        except ValueError:
            tally.unreadable_files += 1
    with Memory.open(home, conversations_dir=home / "conversations", embedder="hashing") as memory:
        thread = memory.conversations.get("thread")
        texts = [turn.text for turn in thread.turns] if thread else []
        kept = set(texts)
        tally.lost += sum(text not in kept for text in acknowledged)
        wanted = set(acknowledged)
        tally.out_of_order += [t for t in texts if t in wanted] != [
            t for t in acknowledged if t in kept
        ]
        tally.unacknowledged_kept = len(texts) - len(wanted & kept)
        token = acknowledged[-1].split()[2]
        found = memory.recall_conversation("thread", token)
        tally.not_recalled += acknowledged[-1] not in [hit.text for hit in found]


def _together() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="anaphora-bench-") as folder:
        home = Path(folder)
        writers = [_start(home, "shared", f"p{n}", APPENDS, 0) for n in range(PROCESSES)]
        began = time.perf_counter()
        for writer in writers:
            _go(writer)
        failed = sum(_finish(writer) for writer in writers)
        spent = time.perf_counter() - began
        with Memory.open(
            home, conversations_dir=home / "conversations", embedder="hashing"
        ) as memory:
            thread = memory.conversations.get("shared")
            texts = [turn.text for turn in thread.turns] if thread else []
    expected = [
        [f"p{p} keeps tokenp{p}x{n} for later" for n in range(APPENDS)] for p in range(PROCESSES)
    ]
    lost = sum(text not in set(texts) for own in expected for text in own)
    ordered = sum([t for t in texts if t.startswith(own[0][:3])] == own for own in expected)
    return [
        Figure("processes appending to one thread", PROCESSES),
        exactly("processes that failed", failed, 0),
        exactly("turns lost", lost, 0),
        exactly("turns kept twice", len(texts) - len(set(texts)), 0),
        exactly("processes whose own order is kept", ordered, PROCESSES),
        Figure("appends a second, all together", PROCESSES * APPENDS / spent),
    ]


def _finish(process: subprocess.Popen[str]) -> int:
    process.communicate()
    return int(process.returncode != 0)
