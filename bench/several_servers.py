"""Several servers on one PostgreSQL, under a mixed load, with servers killed in the middle.

In: how long, how many clients, an embedder, optionally the folder of shared data for real texts.
Out: throughput, times by operation, how soon a write on one server is recalled on another, how soon
a killed server answers again (with its indexes and without), and, of everything acknowledged, what
is missing, doubled, out of order or back from the dead on any server: all of that must be nothing.
With real texts also what they take on the database's disk and on a server's.

    python -m bench.several_servers --seconds 300 [--data DIR] [--embedder minilm] [--calm 40]
"""

from __future__ import annotations

import argparse
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.figures import Figure, exactly, keep, percentile
from bench.postgresql import database
from bench.several.asking import Client, Lost, NoServer, Tally
from bench.several.checking import Found, check
from bench.several.ledger import Ledger, Words
from bench.several.load import SHARES, Watcher, Worker
from bench.several.room import room
from bench.several.servers import Server, cpu_seconds, fleet, megabytes

__all__ = ["Load", "Outcome", "main", "measure"]

ROOM = 3_000
WRONG = (
    ("acknowledged writes lost", "lost"),
    ("acknowledged writes not recalled by their own words", "not_recalled"),
    ("things that are there twice", "twice"),
    ("forgotten, replaced or unheard-of things that are there", "revived"),
    ("conversations out of order", "disordered"),
)


@dataclass(frozen=True, slots=True)
class Load:
    """How hard, and how long in seconds; `calm` is the time of each measurement without kills."""

    seconds: float
    clients: int = 6
    servers: int = 3
    namespaces: int = 6
    embedder: str = "minilm"
    texts: Sequence[str] = ()
    kills: int = 2
    calm: float = 0.0
    seed: int = 7


@dataclass(frozen=True, slots=True)
class Back:
    """Seconds from the start of a killed server's process until it answers.

    `live` is its first answer at all, `recalls` the first right answer to a question about
    memories, `turns` the first answer about turns that lacks nothing, vectors included.
    """

    server: int
    empty: bool
    live: float
    recalls: float
    turns: float


@dataclass(slots=True)
class Outcome:
    """What was seen."""

    load: Load
    started: float = 0.0
    took: float = 0.0
    tally: Tally = field(default_factory=Tally)
    ledger: Ledger = field(default_factory=Ledger)
    backs: list[Back] = field(default_factory=list)
    found: list[Found] = field(default_factory=list)
    staleness: list[float] = field(default_factory=list)
    looks: int = 0
    late: int = 0
    told: list[str] = field(default_factory=list)
    stray: int = 0
    tracebacks: int = 0
    exits: list[int] = field(default_factory=list)
    calm: list[Figure] = field(default_factory=list)

    @property
    def agree(self) -> bool:
        """Whether all servers list the same memories and turns."""
        return all(one.state == self.found[0].state for one in self.found)

    def count(self, kind: str) -> int:
        """How many things of a kind are wrong, on all servers together."""
        return sum(len(getattr(one, kind)) for one in self.found)


def measure(load: Load, url: str, folder: Path) -> Outcome:
    """Start, load, kill and restart, then look everything over; prints what is wrong."""
    seen = Outcome(load)
    begun = time.monotonic()
    with fleet(folder, url, load.embedder, load.servers) as servers:
        seen.started = time.monotonic() - begun
        names = tuple(f"team-{number}" for number in range(load.namespaces))
        words = Words(load.texts, random.Random(load.seed))
        _run(seen, servers, names, words)
        with ThreadPoolExecutor(load.servers) as pool:
            clients = [Client(servers, Tally()) for _ in servers]
            seen.found = list(
                pool.map(lambda n: check(clients[n], n, seen.ledger, names), range(len(servers)))
            )
            for client in clients:
                client.close()
        for sticky in (False, True) if load.calm else ():
            seen.calm += _calm(load, servers, names, words, sticky=sticky)
        if load.calm:
            seen.calm += [
                Figure(f"server {s.number}: resident memory at the end", megabytes(s), "MB")
                for s in servers
            ]
        seen.exits = [server.stop() for server in servers]
        seen.tracebacks = sum(server.tracebacks() for server in servers)
    for one in _complaints(seen):
        print(f"  {one}")
    return seen


def _run(seen: Outcome, servers: list[Server], names: tuple[str, ...], words: Words) -> None:
    """The load, with kills spread over it; every other victim loses its home, too."""
    load, stop, begun = seen.load, threading.Event(), time.monotonic()
    victims: set[int] = set()
    workers = _workers(load, servers, names, words, seen.tally, seen.ledger)
    watcher = Watcher(
        Client(servers, seen.tally),
        seen.tally,
        seen.ledger,
        words,
        names,
        len(servers),
        random.Random(load.seed),
        pause=min(0.5, load.seconds / 40),
    )
    with ThreadPoolExecutor(len(workers) + 1) as pool:
        jobs = [pool.submit(worker.run, stop.is_set) for worker in workers]
        jobs.append(pool.submit(watcher.run, stop))
        try:
            for turn in range(1, load.kills + 1):
                moment = begun + load.seconds * turn / (load.kills + 1)
                stop.wait(max(0.0, moment - time.monotonic()))
                victim = servers[turn % len(servers)]
                victim.kill()
                victims.add(victim.number)
                stop.wait(min(5.0, load.seconds / 15))
                seen.backs.append(_back(seen, servers, victim, names[0], empty=turn % 2 == 0))
            stop.wait(max(0.0, begun + load.seconds - time.monotonic()))
        finally:
            stop.set()
        for job in jobs:
            job.result()
    seen.stray = sum(n for number, n in seen.tally.lost.items() if number not in victims)
    seen.took = time.monotonic() - begun
    seen.staleness, seen.looks, seen.late = watcher.seconds, watcher.looks, watcher.late
    seen.told = watcher.told


def _workers(
    load: Load,
    servers: Sequence[Server],
    names: tuple[str, ...],
    words: Words,
    tally: Tally,
    ledger: Ledger,
    *,
    sticky: bool = False,
) -> list[Worker]:
    return [
        Worker(
            number,
            Client(servers, tally, number, sticky=sticky),
            tally,
            ledger,
            words,
            names,
            random.Random(f"{load.seed} {number}"),
        )
        for number in range(load.clients)
    ]


def _back(
    seen: Outcome, servers: list[Server], victim: Server, namespace: str, *, empty: bool
) -> Back:
    """Start a killed server again, on its port, and ask it until it answers everything."""
    while (fact := seen.ledger.stable_in(namespace)) is None:
        time.sleep(0.05)
    victim.homes += empty
    client, begun = Client(servers, Tally()), time.monotonic()
    victim.launch()
    victim.wait()

    def asked(path: str, body: Any, good: Callable[[Any], bool]) -> float:
        method = "GET" if body is None else "POST"
        while True:
            try:
                given = client.ask("back", namespace, method, path, body, server=victim.number)
            except (Lost, NoServer):
                continue
            if given.status == 200 and good(given.body):
                return given.done - begun

    question = {"query": fact.text, "top_k": 3}
    back = Back(
        victim.number,
        empty,
        asked("/health/live", None, lambda body: bool(body["ok"])),
        asked("/v1/recall", question, lambda body: fact.id in [h["id"] for h in body["hits"]]),
        asked("/v1/conversations/recall", {"query": fact.text}, lambda b: not b["degraded"]),
    )
    client.close()
    return back


def _calm(
    load: Load, servers: list[Server], names: tuple[str, ...], words: Words, *, sticky: bool
) -> list[Figure]:
    """The same load without kills, in turn or each namespace at its server: what it costs."""
    tally, ledger, stop = Tally(), Ledger(), threading.Event()
    workers = _workers(load, servers, names, words, tally, ledger, sticky=sticky)
    for worker in workers:
        # Other conversations than those that were looked over.
        worker.number += 100 * (2 if sticky else 1)
    before, begun = cpu_seconds(servers), time.monotonic()
    with ThreadPoolExecutor(len(workers)) as pool:
        jobs = [pool.submit(worker.run, stop.is_set) for worker in workers]
        stop.wait(load.calm)
        stop.set()
        for job in jobs:
            job.result()
    took, spent = time.monotonic() - begun, cpu_seconds(servers) - before
    how = "sticky by namespace" if sticky else "round robin"
    figures = [
        Figure(f"{how}, no kills: requests a second", tally.requests / took),
        Figure(f"{how}: requests a second of the servers' processor time",
               tally.requests / spent if spent else 0.0),
    ]  # fmt: skip
    for name in ("remember", "append", "recall", "recall_conversation"):
        for words_, share in (("p50", 0.5), ("p99", 0.99)):
            taken = percentile(tally.seconds[name], share) * 1e3
            figures.append(Figure(f"{how}: {name}, {words_}", taken, "ms"))
    return figures


def _complaints(seen: Outcome) -> list[str]:
    told = [*seen.tally.failed, *seen.tally.wrong, *seen.ledger.twice, *seen.told[:20]]
    for number, one in enumerate(seen.found):
        for _, kind in WRONG:
            told += [f"server {number}, {kind}: {words}" for words in getattr(one, kind)[:20]]
        told += one.failed
    return told[:200]


def figures_of(seen: Outcome) -> list[Figure]:
    """The figures, those with a target last of each kind."""
    load, tally, book = seen.load, seen.tally, seen.ledger
    turns = sum(len(one) for one in book.turns.values())
    broken = len(tally.failed) + seen.count("failed")
    figures = [
        Figure("servers", load.servers),
        Figure("clients", load.clients + 1),
        Figure("namespaces", load.namespaces),
        Figure("all servers started at once on an empty database", seen.started, "s"),
        Figure("seconds of load", seen.took, "s"),
        Figure("requests answered", tally.requests),
        Figure("requests a second", tally.requests / seen.took),
    ]
    for name in SHARES:
        taken = tally.seconds[name]
        figures += [
            Figure(f"{name}: answers", len(taken)),
            Figure(f"{name}: p50", percentile(taken, 0.5) * 1e3, "ms"),
            Figure(f"{name}: p99", percentile(taken, 0.99) * 1e3, "ms"),
        ]
    stale = [one * 1e3 for one in seen.staleness]
    figures += [
        Figure("written here, looked for there: answers", seen.looks),
        exactly("answers of another server without what was acknowledged", seen.late, 0),
        Figure("acknowledged here, in an answer there: p50", percentile(stale, 0.5), "ms"),
        Figure("acknowledged here, in an answer there: p99", percentile(stale, 0.99), "ms"),
    ]
    for empty, what in ((False, "its home"), (True, "an empty home")):
        backs = [back for back in seen.backs if back.empty == empty]
        for name, part in (
            ("answers", "live"),
            ("recalls memories", "recalls"),
            ("recalls turns by all signals", "turns"),
        ):
            taken = [getattr(back, part) for back in backs]
            label = f"killed, started with {what}: {name}, the slowest"
            figures.append(Figure(label, max(taken), "s"))
    figures.insert(5, Figure("servers killed", len(seen.backs)))
    figures += [
        Figure("memories acknowledged and kept", len(book.kept)),
        Figure("memories replaced", len(book.replaced)),
        Figure("memories forgotten", len(book.gone)),
        Figure("turns acknowledged", turns),
        Figure("connections refused by a dead server", sum(tally.refused.values())),
        Figure("requests without an answer", sum(tally.lost.values())),
        Figure("of these asked again", book.retried),
        Figure("of the others carried out all the same", seen.found[0].unknown),
        exactly("requests without an answer of a living server", seen.stray, 0),
        exactly("answers with a status of 500 or more", broken, 0),
        exactly("wrong answers under load", len(tally.wrong) + len(book.twice), 0),
        *(exactly(words, seen.count(kind), 0) for words, kind in WRONG),
        exactly("servers that list something else than the first", 0 if seen.agree else 1, 0),
        exactly("tracebacks in the servers' logs", seen.tracebacks, 0),
        exactly("servers that did not end in peace", sum(map(bool, seen.exits)), 0),
    ]
    return figures + seen.calm


def main() -> None:
    """Measure and keep the figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.several_servers", description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--servers", type=int, default=3)
    parser.add_argument("--namespaces", type=int, default=6)
    parser.add_argument("--embedder", default="minilm")
    parser.add_argument("--kills", type=int, default=8)
    parser.add_argument("--calm", type=float, default=40.0, help="seconds for each, without kills")
    parser.add_argument("--data", type=Path, help="the folder of shared data, for real texts")
    given = parser.parse_args()
    base: list[str] = []
    if given.data is not None:
        from bench.memory_texts import texts

        base = [" ".join(text.split()) for text in texts(given.data, 5_000)]
    load = Load(
        given.seconds,
        clients=given.clients,
        servers=given.servers,
        namespaces=given.namespaces,
        embedder=given.embedder,
        texts=base,
        kills=given.kills,
        calm=given.calm,
    )
    with _place() as (url, folder):
        figures = figures_of(measure(load, url, folder))
    if base:
        with _place() as (url, folder):
            figures += room(url, folder, base[:ROOM], given.embedder)
    keep("several_servers", f"{given.servers} servers on one PostgreSQL", figures)


@contextmanager
def _place() -> Iterator[tuple[str, Path]]:
    """An empty database and an empty folder."""
    with database() as url, tempfile.TemporaryDirectory(prefix="anaphora-several-") as folder:
        yield url, Path(folder)


if __name__ == "__main__":
    main()
