"""How fast memories are recalled and remembered: the table of the targets.

In: the folder of shared data (REALTALK and BEAM turns as memories, beyond those their sentences).
Out: figures beside their targets, also in bench/results/memory_speed_SIZE.json and .md. Embedding
is timed inside the same calls, so that it can be taken off.

    python -m bench.memory_speed --data DIR [--size 100000] [--cache DIR]
        [--chroma PYTHON [--chroma-model FOLDER]]

`--cache` keeps the texts' vectors, which take minutes, from one run to the next. PYTHON is an
interpreter with chromadb installed, FOLDER holds the 32-bit model.onnx and the tokenizer.json that
its default embedding function runs (`python -m tools.build_model --fp32 FOLDER` makes them):
Chroma is asked in words then, by that model. Always it is also asked by our vectors, and compared
with our recall less the question's embedding.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from anaphora import Memory
from anaphora.embed.service import EmbedderService, spec_for
from anaphora.index.memories.index import MemoryIndex
from anaphora.ingest.memories import MemoryWriter
from anaphora.recall.memories import MemoryRecall
from anaphora.store.db.engine import Database, open_database
from anaphora.store.records.ids import RecordIds
from anaphora.store.records.store import Records
from anaphora.store.records.vectors import RecordVectors
from anaphora.values.memories import NewMemory
from bench.figures import Figure, at_most, below, exactly, keep, percentile
from bench.measuring import size_of
from bench.memories import NOW, keep_with
from bench.memory_texts import embedded, questions, texts
from bench.timed import TimedEmbedder

SIZE = 10_000
QUESTIONS = 300
REMEMBERED = 60
BULK = 1_500
ROUNDS = 3
SINGLE_ADDS = 5_000


def run(
    data: Path,
    size: int = SIZE,
    *,
    cache: Path | None = None,
    chroma: str = "",
    chroma_model: Path | None = None,
) -> list[Figure]:
    """Fill a home, open it, ask, remember; print and keep the figures."""
    wanted, asked = texts(data, size), questions(data, QUESTIONS)
    timed = TimedEmbedder(spec_for("minilm").load())
    service = EmbedderService(spec_for(timed), cache_size=4 * QUESTIONS)
    service.ready()
    parts = embedded(service, wanted, cache)
    figures = [
        Figure("texts", len(wanted)),
        Figure("parts (long texts have several)", sum(map(len, parts))),
    ]
    with tempfile.TemporaryDirectory(prefix="anaphora-bench-") as folder:
        home = _Home(Path(folder), service, timed)
        keep_with(home.records, home.vectors, service.name, wanted, parts, spread_days=365.0)
        figures += home.opening(size)
        figures += _alone(Path(folder), asked, size)
        figures += home.asking(asked, size)
        figures += _repeated(Path(folder) / "similar")
        figures += home.remembering(wanted)
        if size <= SIZE:
            figures += home.single_adds(parts, asked)
        home.close()
        if chroma:
            known = {figure.name: figure.value for figure in figures}
            side = _Chroma(Path(folder), chroma, chroma_model)
            figures += side.figures(wanted, parts, asked, service, known)
    keep(f"memory_speed_{size}", f"Speed of memories, {size:,} texts", figures)
    return figures


def _repeated(folder: Path, count: int = 10_000) -> list[Figure]:
    """The same question again, through the facade, among facts that differ by a word or two."""
    things = ("turbine", "kettle", "harbour", "violin", "zebra", "lantern", "copper", "meadow")
    with Memory.open(folder, embedder="hashing") as memory:
        memory.remember_many(
            f"Fact {n}: the {things[n % 8]} is kept near the {things[n // 8 % 8]} {n % 97}."
            for n in range(count)
        )
        memory.ready()
        figures = []
        for name, ask in (("recall", memory.recall), ("search", memory.search)):
            spellings = ("where is the zebra", "Where is the zebra?")
            for spelling in spellings:
                ask(spelling)
            again = [t for q in spellings for t in _times(partial(ask, q), 100)]
            figures.append(
                below(f"repeated {name} among similar facts, p50", percentile(again, 0.5), 1, "ms")
            )
    return figures


class _Home:
    def __init__(self, folder: Path, service: EmbedderService, timed: TimedEmbedder) -> None:
        self.folder, self.service, self.timed = folder, service, timed
        self.truth, self.records, self.vectors = self._truth()
        self.index = self._index()

    def _truth(self) -> tuple[Database, Records, RecordVectors]:
        truth = open_database(self.folder / "anaphora.db")
        return truth, Records(truth, "default"), RecordVectors(truth, "default")

    def _index(self) -> MemoryIndex:
        name = (self.service.name, self.service.dimensions)
        return MemoryIndex(self.folder / "index", self.records, self.vectors, name)

    def lane(self) -> MemoryRecall:
        return MemoryRecall(self.records, self.index, self.service, lambda: NOW)

    def opening(self, size: int) -> list[Figure]:
        """The first opening makes the words; the second is what every later start costs."""
        began = time.perf_counter()
        self.index.sync()
        self.index.settle()
        made = time.perf_counter() - began
        self.index.close()
        self.truth.close()
        self.truth, self.records, self.vectors = self._truth()
        self.index = self._index()
        began = time.perf_counter()
        self.index.sync()
        opened = 1000 * (time.perf_counter() - began)
        idle = _times(self.index.sync, 200)
        return [
            Figure("index made from truth", made, "s"),
            below("index opened", opened, 150 if size <= SIZE else 1500, "ms"),
            Figure("follow when nothing changed, p50", 1000 * percentile(idle, 0.5), "us"),
            Figure("truth on disk", size_of(self.folder, "anaphora.db*") / 1e6, "MB"),
            Figure("index on disk", size_of(self.folder / "index") / 1e6, "MB"),
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
            below("repeated, p50", percentile(again, 0.5), 1, "ms"),
            Figure("repeated, p99", percentile(again, 0.99), "ms"),
            Figure("first filtered recall (metadata is read)", first[0], "ms"),
            Figure("filtered recall, repeated question, p50", percentile(kept, 0.5), "ms"),
        ]

    def remembering(self, texts: Sequence[str]) -> list[Figure]:
        """Single memories with their embedding taken off, then many at once."""
        remember = MemoryWriter(
            self.records,
            self.vectors,
            self.service,
            self.index.neighbours,
            clock=lambda: NOW,
            ids=RecordIds(lambda: NOW),
            follow=self.index.take,
        )
        over = []
        for number, text in enumerate(texts[:REMEMBERED]):
            before, began = self.timed.seconds, time.perf_counter()
            remember.remember(NewMemory(f"{number} was told that {text[:200]}"))
            spent = time.perf_counter() - began
            over.append(1000 * (spent - (self.timed.seconds - before)))
        for turn in range(ROUNDS):
            # What it takes beside the bare embedder is measured in `remembering`, by itself.
            remember.remember_many(
                [NewMemory(f"again, {turn}: {text[:300]}") for text in texts[:BULK]]
            )
        left = remember.fill_vectors().embedded
        return [
            at_most("remember over its embedding, p50", percentile(over, 0.5), 4, "ms"),
            Figure("remember over its embedding, p99", percentile(over, 0.99), "ms"),
            exactly("left without a vector by it", left, 0),
        ]

    def single_adds(
        self, parts: Sequence[NDArray[np.floating]], questions: Sequence[str]
    ) -> list[Figure]:
        """What 5,000 single writes cost on disk, and questions after them."""
        before = size_of(self.folder) / 1e6
        began = time.perf_counter()
        for number in range(SINGLE_ADDS):
            vectors = [parts[number % len(parts)]]
            keep_with(self.records, self.vectors, self.service.name, [f"note {number}"], vectors)
            if number % 100 == 0:
                self.index.sync()
        spent = 1000 * (time.perf_counter() - began) / SINGLE_ADDS
        lane = self.lane()
        after = [t for q in questions[:100] for t in _times(lambda q=q: lane.recall(q), 1)]  # type: ignore[misc]
        self.index.wait()
        return [
            Figure("single write to truth, mean of 5,000", spent, "ms"),
            Figure(
                "disk after 5,000 single writes, more", size_of(self.folder) / 1e6 - before, "MB"
            ),
            Figure("repeated question after them, p50", percentile(after, 0.5), "ms"),
        ]

    def close(self) -> None:
        self.index.close()
        self.truth.close()


class _Chroma:
    """Chroma over the same texts, in a process of its own."""

    def __init__(self, folder: Path, python: str, model: Path | None) -> None:
        self._folder, self._python, self._model = folder, python, model

    def figures(
        self,
        texts: Sequence[str],
        parts: Sequence[NDArray[np.floating]],
        asked: Sequence[str],
        service: EmbedderService,
        ours: Mapping[str, float],
    ) -> list[Figure]:
        """What it takes, beside ours."""
        vectors = np.array([p[0] for p in parts], np.float32)
        np.save(self._folder / "vectors.npy", vectors)
        queries = np.array([service.query(q) for q in asked], np.float32)
        np.save(self._folder / "queries.npy", queries)
        given = {"texts": list(texts), "questions": list(asked)}
        (self._folder / "texts.json").write_text(json.dumps(given), encoding="utf-8")
        found = self._run()
        query = percentile(found["query_ms"], 0.5)
        figures = [
            Figure("Chroma, query by vector, p50", query, "ms"),
            Figure("Chroma, query by vector, p99", percentile(found["query_ms"], 0.99), "ms"),
            Figure("Chroma, one add by vector, p50", percentile(found["add_ms"], 0.5), "ms"),
            Figure(
                "recall less E against Chroma by vector, p50",
                ours["recall less E, p50"] / query,
                "x",
            ),
        ]
        if "whole_ms" not in found:
            return figures
        whole = percentile(found["whole_ms"], 0.5)
        return [
            *figures,
            Figure("Chroma with its default model, query, p50", whole, "ms"),
            Figure("Chroma with its default model, p99", percentile(found["whole_ms"], 0.99), "ms"),
            Figure("of that embedding the question, p50", percentile(found["embed_ms"], 0.5), "ms"),
            Figure("Chroma, one add with its model, p50", percentile(found["keep_ms"], 0.5), "ms"),
            at_most(
                "whole recall against Chroma with its default model, p50",
                ours["whole recall, p50"] / whole,
                0.6,
                "x",
            ),
        ]

    def _run(self) -> dict[str, list[float]]:
        child = Path(__file__).with_name("chroma_child.py")
        command = [self._python, str(child), str(self._folder)]
        if self._model is not None:
            command.append(str(self._model))
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"the process with Chroma failed: {done.stderr}")
        found: dict[str, list[float]] = json.loads(done.stdout.strip().splitlines()[-1])
        return found


def _alone(folder: Path, asked: Sequence[str], size: int) -> list[Figure]:
    """Memory of a process that does nothing but open the home and recall."""
    (folder / "asked.json").write_text(json.dumps(list(asked[:100])), encoding="utf-8")
    child = [sys.executable, "-m", "bench.memory_child", str(folder)]
    done = subprocess.run(child, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the process that recalls failed: {done.stderr}")
    found = json.loads(done.stdout.strip().splitlines()[-1])
    return [
        below("resident memory", found["resident"], 350 if size <= SIZE else 700, "MB"),
        Figure("resident memory, the most there was", found["most"], "MB"),
        Figure("first recall of a process, its opening included", found["first"], "ms"),
    ]


def _times(action: Callable[[], object], count: int) -> list[float]:
    found = []
    for _ in range(count):
        began = time.perf_counter()
        action()
        found.append(1000 * (time.perf_counter() - began))
    return found


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--size", type=int, default=SIZE)
    parser.add_argument("--cache", type=Path, default=None, help="a folder for vectors")
    parser.add_argument("--chroma", default="", help="an interpreter with chromadb")
    parser.add_argument("--chroma-model", type=Path, default=None, help="a folder with its model")
    chosen = parser.parse_args()
    run(
        chosen.data,
        chosen.size,
        cache=chosen.cache,
        chroma=chosen.chroma,
        chroma_model=chosen.chroma_model,
    )


if __name__ == "__main__":
    main()
