"""How fast memories are recalled and remembered: the table of DESIGN.md, section 7.

In: the folder of shared data (REALTALK and BEAM turns as memories, beyond those their sentences).
Out: figures beside their targets, also in bench/results/memory_speed_SIZE.json and .md. Embedding
is timed inside the same calls, so that it can be taken off.

    python -m bench.memory_speed --data DIR [--size 100000] [--chroma PYTHON]

PYTHON is an interpreter with chromadb installed. Its own model cannot be had everywhere: it gets
our vectors, and is compared with our recall less the question's embedding.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from anaphora.embed.service import EmbedderService, spec_for
from anaphora.errors import EmbeddingError
from anaphora.index.memories import MemoryIndex
from anaphora.intake.importers.datasets import Haystack, read_dataset
from anaphora.intake.remember import Remember
from anaphora.memory_values import NewMemory
from anaphora.recall.memories import MemoryRecall
from anaphora.store.record_ids import RecordIds
from anaphora.store.records import Records
from anaphora.store.sql.engine import Truth, open_truth
from anaphora.store.vectors import RecordVectors
from anaphora.surfaces.benchmark.timed import TimedEmbedder
from bench.figures import Figure, at_least, at_most, below, keep, percentile
from bench.memories import NOW, keep_with

SIZE = 10_000
QUESTIONS = 300
REMEMBERED = 60
BULK = 1_000
SINGLE_ADDS = 5_000
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


def run(data: Path, size: int = SIZE, chroma: str = "") -> list[Figure]:
    """Fill a home, open it, ask, remember; print and keep the figures."""
    texts, questions = _texts(data, size), _questions(data)
    timed = TimedEmbedder(spec_for("minilm").load())
    service = EmbedderService(spec_for(timed), cache_size=4 * QUESTIONS)
    service.ready()
    parts = []
    for one in service.embed(texts):
        if isinstance(one, EmbeddingError):
            raise one
        parts.append(one)
    throughput = timed.texts / timed.seconds
    figures = [Figure("texts", len(texts)), Figure("embedding", throughput, "texts/s")]
    with tempfile.TemporaryDirectory(prefix="anaphora-bench-") as folder:
        home = _Home(Path(folder), service, timed)
        keep_with(home.records, home.vectors, service.name, texts, parts, spread_days=365.0)
        figures += home.opening(size)
        figures += home.asking(questions, size)
        figures += home.remembering(texts, throughput)
        figures.append(_memory(size))
        if size <= SIZE:
            figures += home.single_adds(parts, questions)
        home.close()
        if chroma:
            figures += _chroma(Path(folder), chroma, parts, questions, service, figures)
    keep(f"memory_speed_{size}", f"Speed of memories, {size:,} texts", figures)
    return figures


class _Home:
    def __init__(self, folder: Path, service: EmbedderService, timed: TimedEmbedder) -> None:
        self.folder, self.service, self.timed = folder, service, timed
        self.truth, self.records, self.vectors = self._truth()
        self.index = self._index()

    def _truth(self) -> tuple[Truth, Records, RecordVectors]:
        truth = open_truth(self.folder / "anaphora.db")
        return truth, Records(truth, "default"), RecordVectors(truth, "default")

    def _index(self) -> MemoryIndex:
        name = (self.service.name, self.service.dimensions)
        return MemoryIndex(self.folder / "index", self.records, self.vectors, name)

    def lane(self) -> MemoryRecall:
        return MemoryRecall(self.records, self.index, self.service, lambda: NOW)

    def opening(self, size: int) -> list[Figure]:
        """The first opening makes the words; the second is what every later start costs."""
        began = time.perf_counter()
        self.index.follow()
        self.index.settle()
        made = time.perf_counter() - began
        self.index.close()
        self.truth.close()
        self.truth, self.records, self.vectors = self._truth()
        self.index = self._index()
        began = time.perf_counter()
        self.index.follow()
        opened = 1000 * (time.perf_counter() - began)
        idle = _times(self.index.follow, 200)
        return [
            Figure("index made from truth", made, "s"),
            below("index opened", opened, 150 if size <= SIZE else 1500, "ms"),
            Figure("follow when nothing changed, p50", 1000 * percentile(idle, 0.5), "us"),
            Figure("truth on disk", _size(self.folder, "anaphora.db*"), "MB"),
            Figure("index on disk", _size(self.folder / "index", "**/*"), "MB"),
        ]

    def asking(self, questions: Sequence[str], size: int) -> list[Figure]:
        """Every question once, then again from the cache of query vectors."""
        lane, whole, bare = self.lane(), [], []
        for number in range(10):
            lane.recall(f"what was said about number {number}?")
        for question in questions:
            before, began = self.timed.query_seconds, time.perf_counter()
            lane.recall(question)
            spent = time.perf_counter() - began
            whole.append(1000 * spent)
            bare.append(1000 * (spent - (self.timed.query_seconds - before)))
        again = [t for q in questions for t in _times(lambda q=q: lane.recall(q), 1)]  # type: ignore[misc]
        filters = {"AND": [{"category": "c3"}, {"tags": {"contains": "t2"}}]}
        first = _times(lambda: lane.recall(questions[0], filters=filters), 1)
        kept = [
            t
            for q in questions[:100]
            for t in _times(lambda q=q: lane.recall(q, filters=filters), 1)  # type: ignore[misc]
        ]
        return [
            at_most("recall less E, p50", percentile(bare, 0.5), 2 if size <= SIZE else 6, "ms"),
            Figure("recall less E, p99", percentile(bare, 0.99), "ms"),
            Figure("whole recall, p50", percentile(whole, 0.5), "ms"),
            below("whole recall, p99", percentile(whole, 0.99), 25, "ms"),
            below("repeated, p50", percentile(again, 0.5), 1 if size <= SIZE else 5, "ms"),
            Figure("repeated, p99", percentile(again, 0.99), "ms"),
            Figure("first filtered recall (metadata is read)", first[0], "ms"),
            Figure("filtered recall, repeated question, p50", percentile(kept, 0.5), "ms"),
        ]

    def remembering(self, texts: Sequence[str], throughput: float) -> list[Figure]:
        """Single memories with their embedding taken off, then many at once."""
        remember = Remember(
            self.records,
            self.vectors,
            self.service,
            self.index.neighbours,
            clock=lambda: NOW,
            ids=RecordIds(lambda: NOW),
        )
        over = []
        for number, text in enumerate(texts[:REMEMBERED]):
            before, began = self.timed.seconds, time.perf_counter()
            remember.remember(NewMemory(f"{number} was told that {text[:200]}"))
            spent = time.perf_counter() - began
            over.append(1000 * (spent - (self.timed.seconds - before)))
        many = [NewMemory(f"again: {text[:300]}") for text in texts[:BULK]]
        before, began = self.timed.seconds, time.perf_counter()
        remember.remember_many(many)
        remember.fill_vectors()
        spent, inside = time.perf_counter() - began, self.timed.seconds - before
        return [
            at_most("remember over its embedding, p50", percentile(over, 0.5), 4, "ms"),
            Figure("remember over its embedding, p99", percentile(over, 0.99), "ms"),
            at_least("bulk ingest, share of embedding throughput", inside / spent, 0.8),
        ]

    def single_adds(
        self, parts: Sequence[NDArray[np.floating]], questions: Sequence[str]
    ) -> list[Figure]:
        """What 5,000 single writes cost on disk, and questions after them."""
        before = _size(self.folder, "**/*")
        began = time.perf_counter()
        for number in range(SINGLE_ADDS):
            vectors = [parts[number % len(parts)]]
            keep_with(self.records, self.vectors, self.service.name, [f"note {number}"], vectors)
            if number % 100 == 0:
                self.index.follow()
        spent = 1000 * (time.perf_counter() - began) / SINGLE_ADDS
        lane = self.lane()
        after = [t for q in questions[:100] for t in _times(lambda q=q: lane.recall(q), 1)]  # type: ignore[misc]
        self.index.wait()
        return [
            Figure("single write to truth, mean of 5,000", spent, "ms"),
            Figure(
                "disk after 5,000 single writes, more", _size(self.folder, "**/*") - before, "MB"
            ),
            Figure("repeated question after them, p50", percentile(after, 0.5), "ms"),
        ]

    def close(self) -> None:
        self.index.close()
        self.truth.close()


def _chroma(
    folder: Path,
    python: str,
    parts: Sequence[NDArray[np.floating]],
    questions: Sequence[str],
    service: EmbedderService,
    ours: Sequence[Figure],
) -> list[Figure]:
    np.save(folder / "vectors.npy", np.array([p[0] for p in parts], np.float32))
    np.save(folder / "queries.npy", np.array([service.query(q) for q in questions], np.float32))
    child = Path(__file__).with_name("chroma_child.py")
    done = subprocess.run(
        [python, str(child), str(folder)], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout.strip().splitlines()[-1])
    query = percentile(found["query_ms"], 0.5)
    mine = next(f.value for f in ours if f.name == "recall less E, p50")
    return [
        Figure("Chroma, query by vector, p50", query, "ms"),
        Figure("Chroma, query by vector, p99", percentile(found["query_ms"], 0.99), "ms"),
        Figure("Chroma, one add, p50", percentile(found["add_ms"], 0.5), "ms"),
        at_most("recall less E against Chroma's query, p50", mine / query, 0.6, "x"),
    ]


def _texts(data: Path, size: int) -> list[str]:
    turns = [t.text for h in _haystacks(data) for c in h.conversations for t in c.turns]
    texts = list(dict.fromkeys(turns))
    if len(texts) < size:
        sentences = (s.strip() for turn in turns for s in _SENTENCE.split(turn))
        texts = list(dict.fromkeys([*texts, *(s for s in sentences if len(s) > 20)]))
    if len(texts) < size:
        print(f"only {len(texts):,} different texts; asked for {size:,}", file=sys.stderr)
    return texts[:size]


def _questions(data: Path) -> list[str]:
    texts = list(dict.fromkeys(q.text for h in _haystacks(data) for q in h.questions))
    return texts[:: max(1, len(texts) // QUESTIONS)][:QUESTIONS]


def _haystacks(data: Path) -> Iterator[Haystack]:
    for form, folder in (("realtalk", "realtalk"), ("beam", "beam-100k")):
        for found in read_dataset(data / "conversations" / folder, form):
            if isinstance(found, Haystack):
                yield found


def _times(action: Callable[[], object], count: int) -> list[float]:
    found = []
    for _ in range(count):
        began = time.perf_counter()
        action()
        found.append(1000 * (time.perf_counter() - began))
    return found


def _size(folder: Path, pattern: str) -> float:
    return sum(p.stat().st_size for p in folder.glob(pattern) if p.is_file()) / 1e6


def _memory(size: int) -> Figure:
    """Resident now, the texts and vectors that this program holds itself included."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.is_file() else []
    kilobytes = next((int(x.split()[1]) for x in lines if x.startswith("VmRSS")), 0)
    limit = 350 if size <= SIZE else 700
    return below("resident memory, the measurement's own included", kilobytes / 1000, limit, "MB")


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--size", type=int, default=SIZE)
    parser.add_argument("--chroma", default="", help="an interpreter with chromadb")
    chosen = parser.parse_args()
    run(chosen.data, chosen.size, chosen.chroma)


if __name__ == "__main__":
    main()
