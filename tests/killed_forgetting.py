"""Forgetting for good under `kill -9`.

A process remembers, mirrors, exchanges with a remote, forgets for good and says so; it is killed at
a random moment. The next one opens the same home, mirrors and exchanges, and so does another
device: nothing whose forgetting was acknowledged may be in a memory, a conversation, a mirrored
file or a file of the homes.
"""

from __future__ import annotations

import random
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.commands import python

from anaphora import Memory
from anaphora.errors import AnaphoraError, RemoteError

_CHILD = """
import sys
from contextlib import suppress
from pathlib import Path
from anaphora import Memory
from anaphora.errors import AnaphoraError
home, start = sys.argv[1], int(sys.argv[2])
memory = Memory.open(home, embedder="hashing", warm=False)
print("ready", flush=True)
for n in range(start, start + 100_000):
    word = f"zq{n:06d}x"
    record = memory.remember(f"The code of door {n} is {word}.", path=f"door.{n}").id
    memory.conversations.append(f"c{n}", "user", f"Door {n} has {word}.")
    if n % 3 == 0:
        memory.mirror.now(accept_deletions=True)
    if n % 4 == 0:
        with suppress(AnaphoraError):
            memory.sync.now()
    memory.conversations.delete(f"c{n}")
    memory.forget(record)
    print(word, flush=True)
"""


@dataclass(slots=True)
class ForgottenTally:
    """What came of it: `back` names each acknowledged word that was found, and where."""

    kills: int = 0
    acknowledged: int = 0
    back: list[str] = field(default_factory=list)


def killed_forgets(place: Path, *, acknowledged: int, chance: random.Random) -> ForgottenTally:
    """Kill processes that forget, until so many forgettings were acknowledged."""
    remote = place / "remote"
    remote.mkdir(parents=True)
    homes = [place / "a", place / "b"]
    with Memory.open(homes[0], embedder="hashing", warm=False) as memory:
        memory.sync.init(str(remote))
        key = memory.sync.export_key()
        memory.mirror.init(str(place / "vault"))
    with Memory.open(homes[1], embedder="hashing", warm=False) as memory:
        memory.sync.init(str(remote), key=key)
    tally, words, start = ForgottenTally(), list[str](), 0
    while tally.acknowledged < acknowledged:
        said = _killed(homes[0], start, chance)
        start += len(said) + 100
        words += said
        tally.kills += 1
        tally.acknowledged = len(words)
        for home in homes:
            _settle(home, mirrored=home is homes[0])
        tally.back += _found(words, [*homes, place / "vault"])
    return tally


def _killed(home: Path, start: int, chance: random.Random) -> list[str]:
    """What a process acknowledged until it was killed."""
    words = [*python(), "-c", _CHILD, str(home), str(start)]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    child.stdout.readline()
    # From its first word on, at any point of its work.
    time.sleep(chance.uniform(0.05, 3.0))
    child.kill()
    lines, _ = child.communicate()
    return [line for line in lines.splitlines() if line.endswith("x")]


def _settle(home: Path, *, mirrored: bool) -> None:
    with Memory.open(home, embedder="hashing", warm=False) as memory:
        for _ in range(2):
            if mirrored:
                with suppress(AnaphoraError):
                    memory.mirror.now(accept_deletions=True)
            with suppress(RemoteError):
                memory.sync.now()


def _found(words: list[str], places: list[Path]) -> list[str]:
    """Each word that is in a file, with the file."""
    wanted = {word.encode() for word in words}
    found = []
    for place in places:
        for file in (file for file in place.rglob("*") if file.is_file()):
            data = file.read_bytes()
            found += [f"{word.decode()} in {file}" for word in wanted if word in data]
    return found
