"""Ten thousand namespaces of a hundred memories each, in one home.

In: the folder of shared data; a folder that keeps what is made from one run to the next. Out:
bench/results/scale_namespaces.json and .md, for truth in files and on a PostgreSQL server: filling,
opening, the first recall in a namespace, recalls of namespaces one after another with what the
process holds meanwhile (memory, files, threads), disk and inodes.

    python -m bench.scale.namespaces --data DIR --home DIR [--count 10000] [--on files postgresql]
        [--copied-after 1000]

An interrupted run goes on where it stopped. Vectors come from the pool of `bench.scale.material`.
The first thousand namespaces are filled by `remember_many`; past `--copied-after` the database
copies the rows of one of them under another name, and that is marked.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from anaphora import Memory
from anaphora.embed.base import Embedder
from anaphora.embed.service import spec_for
from bench.figures import RESULTS, machine, percentile
from bench.figures import write as write_files
from bench.measuring import memory_of
from bench.memory_texts import questions
from bench.postgresql import database
from bench.scale.filling import memories
from bench.scale.material import PoolEmbedder, filling_texts, pool
from bench.scale.report import table

COUNT: Final = 10_000
EACH: Final = 100
_TOUR: Final = 3_000
_LOOK: Final = 100
_STEP: Final = 100
_FILLED: Final = 1_000
_WAYS: Final = ("files", "postgresql")

Row = dict[str, Any]


def run(data: Path, folder: Path, count: int, ways: Sequence[str], filled: int) -> None:
    """Fill and ask, on files and on a server; keep what was found as soon as it is known."""
    place = RESULTS / "scale_namespaces.json"
    kept: Row = json.loads(place.read_text("utf-8")) if place.is_file() else {}
    kept |= {"title": "Many namespaces in one home", "machine": machine()}
    kept.setdefault("ways", {})
    texts = filling_texts(data, min(count, filled) * EACH)
    embedder = PoolEmbedder(spec_for("minilm").load(), pool(data, folder / "pool"))
    (folder / "asked.json").write_text(json.dumps(questions(data, _LOOK)), encoding="utf-8")
    for way in ways:
        with _server(folder, way) as server:
            home = folder / f"namespaces-{way}"
            curve = _fill(home, server, texts, embedder)
            kept["ways"][way] = {"filling": curve}
            copied = _copied(home, server, curve[-1]["namespaces"], count)
            taken = _taken(home, folder, way)
            asked = _child(home, folder / "asked.json", count, server)
            more = {
                "copied": copied,
                "before": taken,
                "after": _taken(home, folder, way),
                "load": os.getloadavg()[0],
            }
            kept["ways"][way] |= {"count": count, **asked, **more}
            _write(kept)


def name_of(number: int) -> str:
    """The name of a namespace."""
    return f"user-{number:05d}"


def _fill(home: Path, database: str | None, texts: Sequence[str], embedder: Embedder) -> list[Row]:
    """Namespace after namespace; what every hundred took."""
    home.mkdir(parents=True, exist_ok=True)
    curve = home.with_suffix(".json")
    done: list[Row] = json.loads(curve.read_text("utf-8")) if curve.is_file() else []
    count = len(texts) // EACH
    with Memory.open(home, database=database, embedder=embedder) as memory:
        memory.ready()
        for start in range(done[-1]["namespaces"] if done else 0, count, _STEP):
            began, busy = time.perf_counter(), time.process_time()
            for number in range(start, min(start + _STEP, count)):
                own = texts[number * EACH : (number + 1) * EACH]
                memory.scoped(name_of(number)).remember_many(memories(own))
            held = {**_held(), "namespaces": min(start + _STEP, count)}
            spent = {"seconds": time.perf_counter() - began, "cpu": time.process_time() - busy}
            done.append(held | spent)
            curve.write_text(json.dumps(done), encoding="utf-8")
            print(f"{held['namespaces']:>7,} namespaces  {spent['seconds']:.1f} s", flush=True)
    return done


def _copied(home: Path, database: str | None, filled: int, count: int) -> Row:
    """Namespaces past `filled`, each with the rows of one that was filled, made by the database."""
    from sqlalchemy import Connection, create_engine, insert, literal, select

    from anaphora.store.db.schema import metadata

    tables = [one for one in metadata.sorted_tables if "namespace" in one.c]

    def copy(connection: Connection, number: int) -> None:
        source = name_of(number % filled)
        for one in tables:
            others = [column for column in one.c if column.name != "namespace"]
            rows = select(literal(name_of(number)), *others).where(one.c.namespace == source)
            names = ["namespace", *(column.name for column in others)]
            connection.execute(insert(one).from_select(names, rows))

    began = time.perf_counter()
    if database is None:
        from anaphora.store.db.driver import dbapi2

        engine = create_engine(f"sqlite:///{home / 'anaphora.db'}", module=dbapi2)
    else:
        engine = create_engine(database.replace("postgresql://", "postgresql+psycopg://", 1))
    with engine.connect() as connection:
        head = metadata.tables["head"]
        there = set(connection.execute(select(head.c.namespace)).scalars())
        missing = [number for number in range(count) if name_of(number) not in there]
        for start in range(0, len(missing), _STEP):
            for number in missing[start : start + _STEP]:
                copy(connection, number)
            connection.commit()
    engine.dispose()
    return {"namespaces": count - filled, "seconds": time.perf_counter() - began}


def asked(home: Path, wanted: Sequence[str], count: int, database: str | None) -> Row:
    """What one process finds that opens the home and goes from namespace to namespace."""
    embedder = PoolEmbedder(spec_for("minilm").load())
    for question in wanted:
        embedder.embed_query(question)
    began = time.perf_counter()
    memory = Memory.open(home, database=database, embedder=embedder, cache_size=2 * len(wanted))
    found: Row = {"open_ms": 1000 * (time.perf_counter() - began)}
    rng = random.Random(3)
    tour = [rng.randrange(count) for _ in range(_TOUR)]

    def ask(number: int, question: str) -> float:
        before, start = embedder.query_seconds, time.perf_counter()
        assert memory.scoped(name_of(number)).recall(question).hits
        return 1000 * (time.perf_counter() - start - (embedder.query_seconds - before))

    found["first_ms"] = ask(tour[0], wanted[0])
    found["again_ms"] = percentile([ask(tour[0], one) for one in wanted[1:]], 0.5)
    cold, held = [], [{"recalled": 1, **_held()}]
    for at, number in enumerate(tour[1:], 2):
        cold.append(ask(number, wanted[at % len(wanted)]))
        if at % 100 == 0:
            held.append({"recalled": at, **_held()})
    few = tour[:16]
    for number in few:
        ask(number, wanted[0])
    warm = [ask(few[at % len(few)], wanted[at % len(wanted)]) for at in range(400)]
    began = time.perf_counter()
    found["namespaces_seen"] = len(memory.namespaces())
    found["list_ms"] = 1000 * (time.perf_counter() - began)
    for name, times in (("cold", cold), ("warm", warm)):
        found |= {
            f"{name}_p50_ms": percentile(times, 0.5),
            f"{name}_p99_ms": percentile(times, 0.99),
        }
    began = time.perf_counter()
    memory.close()
    return found | {"close_ms": 1000 * (time.perf_counter() - began), "held": held}


def _held() -> Row:
    """What this process holds: megabytes, open files, threads."""
    files = Path("/proc/self/fd")
    return {
        "resident_mb": memory_of("VmRSS"),
        "files": len(list(files.iterdir())) if files.is_dir() else 0,
        "threads": threading.active_count(),
    }


@contextmanager
def _server(folder: Path, way: str) -> Iterator[str | None]:
    if way == "files":
        yield None
        return
    with database(folder / "postgresql") as url:
        yield url


def _taken(home: Path, folder: Path, way: str) -> Row:
    """Megabytes and inodes of the home, and megabytes of the server's own folder."""
    every = list(home.rglob("*"))
    size = sum(one.stat().st_size for one in every if one.is_file()) / 1e6
    found = {"home_mb": size, "inodes": float(len(every))}
    if way == "postgresql":
        server = [p.stat() for p in (folder / "postgresql").rglob("*") if p.is_file()]
        found["server_mb"] = sum(one.st_size for one in server) / 1e6
    return found


def _child(home: Path, wanted: Path, count: int, database: str | None) -> Row:
    command = [sys.executable, "-m", "bench.scale.namespaces", "--ask", str(home)]
    command += ["--asked", str(wanted), "--count", str(count)]
    if database is not None:
        command += ["--database", database]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the process that asks failed: {done.stderr}")
    found: Row = json.loads(done.stdout.strip().splitlines()[-1])
    return found


_LINES: Final = (
    ("open, ms", "open_ms"),
    ("first recall of the process, ms", "first_ms"),
    ("recall in the same namespace less E, p50, ms", "again_ms"),
    ("recall in a namespace not open, p50, ms", "cold_p50_ms"),
    ("recall in a namespace not open, p99, ms", "cold_p99_ms"),
    ("recall among 16 namespaces in turn, p50, ms", "warm_p50_ms"),
    ("listing the namespaces, ms", "list_ms"),
    ("closing, ms", "close_ms"),
)


def _write(kept: Row) -> None:
    ways = kept["ways"]
    rows = [["namespaces", *(f"{w['count']:,}" for w in ways.values())]]
    rows.append(
        ["filling, namespaces/s, the first tenth", *(_rate(w, first=True) for w in ways.values())]
    )
    rows.append(
        ["filling, namespaces/s, the last tenth", *(_rate(w, first=False) for w in ways.values())]
    )
    rows.append(
        [
            "of them copied by the database",
            *(f"{w['copied']['namespaces']:,}" for w in ways.values()),
        ]
    )
    rows += [[name, *(f"{w[key]:,.1f}" for w in ways.values())] for name, key in _LINES]
    for name, key in (
        ("resident, MB", "resident_mb"),
        ("open files", "files"),
        ("threads", "threads"),
    ):
        for words, at in (("first recall", 0), ("recalls of others", -1)):
            rows.append(
                [
                    f"{name} after the {words}",
                    *(f"{w['held'][at][key]:,.0f}" for w in ways.values()),
                ]
            )
    for name, key in (
        ("home, MB", "home_mb"),
        ("files and folders", "inodes"),
        ("server, MB", "server_mb"),
    ):
        for words, when in (("filled", "before"), ("asked", "after")):
            cells = [f"{w[when][key]:,.0f}" if key in w[when] else "" for w in ways.values()]
            rows.append([f"{name}, {words}", *cells])
    lines = [f"# {kept['title']}", "", f"{kept['machine']}; {EACH} memories each", ""]
    lines += table(["", *ways], rows)
    findings = Path(__file__).with_name("findings_namespaces.md")
    if findings.is_file():
        lines += ["", findings.read_text("utf-8")]
    write_files("scale_namespaces", json.dumps(kept, indent=1), "\n".join(lines))


def _rate(way: Row, *, first: bool) -> str:
    done = way["filling"]
    tenth = max(1, len(done) // 10)
    some = done[:tenth] if first else done[-tenth:]
    before = 0 if first or len(done) == tenth else done[-tenth - 1]["namespaces"]
    made = some[-1]["namespaces"] - before
    return f"{made / sum(one['seconds'] for one in some):,.1f}"


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--home", type=Path, help="a folder to keep homes in")
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--on", nargs="+", choices=_WAYS, default=list(_WAYS))
    parser.add_argument("--copied-after", type=int, default=_FILLED)
    inside = parser.add_argument_group("the process that asks")
    inside.add_argument("--ask", type=Path)
    inside.add_argument("--asked", type=Path)
    inside.add_argument("--database", default=None)
    chosen = parser.parse_args()
    if chosen.ask is not None:
        wanted = json.loads(chosen.asked.read_text("utf-8"))
        print(json.dumps(asked(chosen.ask, wanted, chosen.count, chosen.database)))
        return
    if chosen.data is None or chosen.home is None:
        parser.error("--data and --home are needed")
    run(chosen.data, chosen.home, chosen.count, chosen.on, chosen.copied_after)


if __name__ == "__main__":
    main()
