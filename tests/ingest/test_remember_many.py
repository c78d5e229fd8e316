"""Many memories at once: as if one after the other, and nothing acknowledged is ever lost."""

from __future__ import annotations

import random
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pysqlite3 import dbapi2

from anaphora.ingest.memories import BATCH
from anaphora.store.db.engine import open_database
from anaphora.values.memories import NewMemory

from .memory_desk import Desk

# Says each thing that it acknowledged on its output, so that who kills it knows what must be there.
WRITER = """
import sys
from datetime import UTC, datetime
from anaphora.embed.service import EmbedderService, spec_for
from anaphora.ingest.memories import Remember
from anaphora.values.memories import NewMemory
from anaphora.store.records.ids import RecordIds
from anaphora.store.records.store import Records
from anaphora.store.db.engine import open_database
from anaphora.store.records.vectors import RecordVectors

place, way, name = sys.argv[1:]
clock = lambda: datetime.now(UTC)
truth = open_database(place)
service = EmbedderService(spec_for("hashing"))
service.ready()
remember = Remember(
    Records(truth, "default"), RecordVectors(truth, "default"), service,
    lambda rows: [[] for _ in rows], clock=clock, ids=RecordIds(clock),
)
print("ready", flush=True)
items = [NewMemory(f"{name} keeps {n}", path=f"p.{n % 7}", tags=(name,)) for n in range(3000)]
if way == "one":
    for n, item in enumerate(items):
        remember.remember(item)
        print(n + 1, flush=True)
else:
    remember.remember_many(items, lambda done, total: print(done, flush=True))
"""


@pytest.mark.promise("remember.many")
def test_many_are_as_one_by_one(desk: Desk) -> None:
    """Results are in order; the same item twice reinforces; paths and numbers are as one by one."""
    items = [NewMemory(f"fact {n % 300}") for n in range(600)]
    items += [NewMemory(text, path="p") for text in ("a", "b", "b", "a")]
    told: list[tuple[int, int]] = []
    done = desk.remembering.remember_many(items, lambda *at: told.append(at))
    assert [one.id for one in done[:300]] == [one.id for one in done[300:600]]
    assert {one.action for one in done[:300]} == {"added"}
    assert {one.action for one in done[300:600]} == {"reinforced"}
    assert [one.action for one in done[600:]] == ["added", "superseded", "reinforced", "superseded"]
    assert told == [(BATCH, 604), (2 * BATCH, 604), (604, 604)]
    assert [r.text for r in desk.records.history("p")] == ["a", "b", "a"]
    assert desk.vectors.counts() == {desk.service.name: (303, 303)}
    assert {desk.get(one.id).reinforce_count for one in done[:300]} == {1}


def test_none_at_all(desk: Desk) -> None:
    """Nothing to remember writes nothing."""
    assert desk.remembering.remember_many([]) == []
    assert desk.records.version() == 0


@pytest.mark.slow
@pytest.mark.promise("remember.durable")
@pytest.mark.parametrize("way", ["one", "many"])
def test_what_was_acknowledged_survives_a_kill(tmp_path: Path, clock: Any, way: str) -> None:
    """Killed at random moments: every acknowledged memory is there, and nothing is half-written."""
    chance = random.Random(7)
    place = tmp_path / "home" / "truth.db"
    for number in range(4):
        name = f"writer{number}"
        process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", WRITER, str(place), way, name],
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
        desk = Desk(open_database(place), clock).warm()
        kept = [r for r in desk.records.list(limit=99_999, history=True) if r.tags == (name,)]
        texts = {record.text for record in kept}
        assert {f"{name} keeps {n}" for n in range(acknowledged)} <= texts
        # A batch is there whole or not at all.
        assert way == "one" or len(kept) % BATCH == 0 or len(kept) == 3000
        assert all(len(desk.records.events(record.id)) == 1 for record in kept[:50])
        for path in range(7):
            assert all(
                a.valid_to == b.valid_from for a, b in pairwise(desk.records.history(f"p.{path}"))
            )
        desk.remembering.fill_vectors()
        assert desk.vectors.owners_without(desk.service.name) == ()
        desk.truth.close()
        connection = dbapi2.connect(str(place))
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        connection.close()
