"""A home is filled by `remember_many`, and kept at several sizes.

In: texts, an embedder, a folder. Out: one home a size, which later runs use again, and how long
every ten thousand memories took. An interrupted run goes on where it stopped: what was half written
is said a second time, which adds nothing. Past a size that is given, memories are written to truth
as they are, in bulk (no dedupe, no links), by those who want a large home to ask and have no hour.
It measures no question.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from anaphora import Memory
from anaphora.embed.base import Embedder
from anaphora.store.db.engine import open_database
from anaphora.store.records.store import Records
from anaphora.store.records.vectors import RecordVectors
from anaphora.values.memories import NewMemory
from bench.memories import keep_with

__all__ = ["SIZES", "Step", "fill", "home_of", "memories", "steps"]

SIZES: Final = (1_000, 10_000, 100_000, 300_000, 1_000_000)
"""The sizes at which a home is kept."""

_STEP: Final = 10_000
_CURVE: Final = "filling.json"


@dataclass(frozen=True, slots=True)
class Step:
    """`added` memories in `seconds` up to `rows`; the processor's seconds; `settled` seconds until
    the index on disk was complete and the home closed, 0 where it stayed open. `bulk` ones went
    round `remember_many`."""

    rows: int
    added: int
    seconds: float
    processor: float
    settled: float = 0.0
    bulk: bool = False


def memories(texts: Sequence[str], first: int = 0) -> list[NewMemory]:
    """Texts as memories with a category (one of 20) and a tag (one of 7) to filter by."""
    return [
        NewMemory(text, category=f"c{at % 20}", tags=(f"t{at % 7}",))
        for at, text in enumerate(texts, first)
    ]


def home_of(folder: Path, size: int) -> Path:
    """Where the home of a size is kept."""
    return folder / f"size-{size}"


def steps(folder: Path) -> list[Step]:
    """What filling took so far."""
    place = folder / _CURVE
    return [Step(**one) for one in json.loads(place.read_text("utf-8"))] if place.is_file() else []


def fill(
    folder: Path, texts: Sequence[str], embedder: Embedder, bulk_after: int | None = None
) -> None:
    """Fill a home up to all of `texts`; keep a copy of it at every size of SIZES."""
    folder.mkdir(parents=True, exist_ok=True)
    done = steps(folder)
    growing = folder / "growing"
    if not done:
        shutil.rmtree(growing, ignore_errors=True)
    at = done[-1].rows if done else 0
    memory: Memory | None = None
    while at < len(texts):
        end = min([size for size in SIZES if size > at] + [at + _STEP - at % _STEP, len(texts)])
        bulk = bulk_after is not None and at >= bulk_after
        began, busy = time.perf_counter(), time.process_time()
        if bulk:
            _in_bulk(growing, texts[at:end], embedder)
        else:
            memory = memory or Memory.open(growing, embedder=embedder)
            memory.remember_many(memories(texts[at:end], at))
        spent, busy = time.perf_counter() - began, time.process_time() - busy
        settled = 0.0
        if end in SIZES or end == len(texts):
            settled = _settled(memory or Memory.open(growing, embedder=embedder))
            memory = None
            _copy(growing, home_of(folder, end))
        done.append(Step(end, end - at, spent, busy, settled, bulk))
        fresh = (folder / _CURVE).with_suffix(".new")
        fresh.write_text(json.dumps([asdict(one) for one in done]), encoding="utf-8")
        fresh.replace(folder / _CURVE)
        print(f"{end:>9,}  {(end - at) / spent:>7,.0f} memories/s", flush=True)
        at = end


def _in_bulk(home: Path, texts: Sequence[str], embedder: Embedder) -> None:
    truth = open_database(home / "anaphora.db")
    records, vectors = Records(truth, "default"), RecordVectors(truth, "default")
    keep_with(records, vectors, embedder.name, texts, embedder.embed(texts))
    truth.close()


def _settled(memory: Memory) -> float:
    began = time.perf_counter()
    # The index is written in the background: what is under way belongs to the price.
    memory.ready()
    memory.close()
    return time.perf_counter() - began


def _copy(home: Path, place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(home, place)
