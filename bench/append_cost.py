"""What an append costs as its thread grows: the 100,001st against the 10th, and against one fsync.

Medians in milliseconds, also in bench/results/, for an append of the store, for one that has to
parse the thread first (another process wrote it last), and for reading and writing all of it with
Python's json, as a plain program would. All three end with the same fsyncs and rename, and with the
same turns in the file. Where the file system shares blocks between files (XFS, Btrfs), nothing is
copied: `TMPDIR` says where it is measured.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from anaphora.store.threads.file_store import ConversationStore
from anaphora.values.conversations import NewTurn
from bench.figures import Figure, at_most, keep

SIZES = (10, 1_000, 10_000, 100_000)
REPEATS = 25
# Of the longest: reading and writing it as JSON takes a second.
FEW = 5
_STEP = 10_000
_PAGE = b"\0" * 4_096
# About the length of a chat message; no two are alike.
WORDS = "the queue moved away from that broker because redelivery lost the order of jobs " * 2
# Copying some megabytes and their fsync remain; parsing them must not.
MOST_OF_PARSING = 0.35


def run(data: Path | None = None) -> list[Figure]:
    """The cost of one append by length of the thread, three ways. Prints and keeps the figures."""
    del data
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="anaphora-bench-") as folder:
        figures.append(_synced(Path(folder)))
        for size in SIZES:
            figures += _at(Path(folder) / str(size), size)
    by_name = {figure.name: figure.value for figure in figures}
    last, first = f"to {SIZES[-1]:,} turns", f"to {SIZES[0]:,} turns"
    ratio = by_name[f"append {last}, processor"] / by_name[f"append {first}, processor"]
    figures.append(Figure(f"processor time of an append {last}, times that {first}", ratio, "x"))
    share = by_name[f"append {last}"] / by_name[f"json append {last}"]
    figures.append(at_most(f"append {last}, share of a json append", share, MOST_OF_PARSING, ""))
    keep("append_cost", "The cost of an append as its thread grows", figures)
    return figures


def _at(folder: Path, size: int) -> list[Figure]:
    store = ConversationStore(folder, strict=True)
    for start in range(0, size - 1, _STEP):
        some = range(start, min(size - 1, start + _STEP))
        store.extend("ours", [NewTurn("user", f"{n} {WORDS}") for n in some])
    repeats = REPEATS if size < SIZES[-1] else FEW
    store.append_user("ours", "the last before measuring")
    path = folder / "json.json"
    path.write_bytes(store.path("ours").read_bytes())
    ways: dict[str, Callable[[], object]] = {
        "append": lambda: store.append_user("ours", WORDS),
        # A new store knows nothing of the file: the way of a process that did not write it last.
        "first append": lambda: ConversationStore(folder, strict=True).append_user("ours", WORDS),
        "json append": lambda: _json_append(path, WORDS),
    }
    figures: list[Figure] = []
    for name, way in ways.items():
        store.append_user("ours", "one to know the end of the file again")
        wall, processor = _time(way, repeats)
        figures.append(Figure(f"{name} to {size:,} turns", wall, "ms"))
        figures.append(Figure(f"{name} to {size:,} turns, processor", processor, "ms"))
    assert len(store.recent("ours", 2 * size + 200)) == size + 3 + 2 * repeats
    return figures


def _synced(folder: Path) -> Figure:
    """What the disk takes to keep a page."""
    with (folder / "page").open("wb", buffering=0) as file:

        def keep_page() -> None:
            file.write(_PAGE)
            os.fsync(file.fileno())

        return Figure("fsync of a page alone", _time(keep_page, REPEATS)[0], "ms")


def _time(action: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Median wall and processor time of one call, in milliseconds."""
    wall, processor = [], []
    for _ in range(repeats):
        began, worked = time.perf_counter(), time.process_time()
        action()
        wall.append(time.perf_counter() - began)
        processor.append(time.process_time() - worked)
    return statistics.median(wall) * 1000, statistics.median(processor) * 1000


def _json_append(path: Path, text: str) -> None:
    record = json.loads(path.read_bytes())
    turn = {"role": "user", "text": text, "ts": record["updated"]}
    record["turns"].append(turn)
    temporary = path.with_suffix(".tmp")
    with temporary.open("wb") as file:
        file.write(json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode())
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    handle = os.open(path.parent, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)


if __name__ == "__main__":
    run()
