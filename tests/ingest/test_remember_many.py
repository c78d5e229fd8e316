"""Many memories at once: as if one after the other, and nothing acknowledged is ever lost."""

from __future__ import annotations

import random
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.commands import python
from tests.exported import exported
from tests.sqlite_driver import dbapi2

from anaphora import Memory, NewMemory

from .memory_desk import Desk

BATCH = 256
"""How many are kept together."""

# Says each thing that it acknowledged on its output, so that who kills it knows what must be there.
WRITER = """
import sys, warnings
from anaphora import Memory, NewMemory

warnings.simplefilter("error")
home, way, name = sys.argv[1:]
memory = Memory.open(home, embedder="hashing")
memory.ready()
print("ready", flush=True)
items = [NewMemory(f"{name} keeps {n}", path=f"p.{n % 7}", tags=(name,)) for n in range(3000)]
if way == "one":
    for n, item in enumerate(items):
        memory.remember_many([item])
        print(n + 1, flush=True)
else:
    memory.remember_many(items, lambda label, done, total: print(done, flush=True))
"""


@pytest.mark.promise("remember.many")
def test_many_are_as_one_by_one(desk: Desk) -> None:
    """Results are in order; the same item twice reinforces; paths and numbers are as one by one."""
    items = [NewMemory(f"fact {n % 300}") for n in range(600)]
    items += [NewMemory(text, path="p") for text in ("a", "b", "b", "a")]
    told: list[tuple[str, int, int]] = []
    done = desk.memory.remember_many(items, lambda *at: told.append(at))
    assert [one.id for one in done[:300]] == [one.id for one in done[300:600]]
    assert {one.action for one in done[:300]} == {"added"}
    assert {one.action for one in done[300:600]} == {"reinforced"}
    assert [one.action for one in done[600:]] == ["added", "superseded", "reinforced", "superseded"]
    assert told == [("remembering", done, 604) for done in (BATCH, 2 * BATCH, 604)]
    assert [r.text for r in desk.memory.history("p")] == ["a", "b", "a"]
    assert desk.memory.stats().memories == 301
    assert desk.memory.reindex().memories == 0
    assert {desk.get(one.id).reinforce_count for one in done[:300]} == {1}


def test_none_at_all(desk: Desk) -> None:
    """Nothing to remember writes nothing."""
    assert desk.memory.scoped("fresh").remember_many([]) == []
    assert "fresh" not in desk.memory.namespaces()


@pytest.mark.slow
@pytest.mark.promise("remember.durable")
@pytest.mark.parametrize("way", ["one", "many"])
def test_what_was_acknowledged_survives_a_kill(tmp_path: Path, clock: Any, way: str) -> None:
    """Killed at random moments: every acknowledged memory is there, and nothing is half-written."""
    chance = random.Random(7)
    home = tmp_path / "home"
    for number in range(4):
        name = f"writer{number}"
        process = subprocess.Popen(
            [*python(), "-c", WRITER, str(home), way, name],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        enough = chance.randrange(1, 60) if way == "one" else BATCH * chance.randrange(1, 4)
        while int(process.stdout.readline()) < enough:
            pass
        process.kill()
        rest = process.stdout.read().split("\n")[:-1]
        process.stdout.close()
        process.wait()
        acknowledged = int(rest[-1]) if rest else enough
        with Memory.open(home, embedder="hashing", clock=clock) as memory:
            lines = exported(memory, "memory")
            kept = [line for line in lines if line["tags"] == [name]]
            texts = {line["text"] for line in kept}
            assert {f"{name} keeps {n}" for n in range(acknowledged)} <= texts
            # A batch is there whole or not at all.
            assert way == "one" or len(kept) % BATCH == 0 or len(kept) == 3000
            assert all(len(line["events"]) == 1 for line in kept[:50])
            for path in range(7):
                assert all(
                    a.valid_to == b.valid_from for a, b in pairwise(memory.history(f"p.{path}"))
                )
            assert memory.reindex().left == 0
            assert memory.reindex().memories == 0
        connection = dbapi2.connect(str(home / "anaphora.db"))
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        connection.close()
