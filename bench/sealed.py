"""What encryption at rest costs: recall quality, recall latency, opening, size; clear and sealed.

In: the folder of shared data. Out: figures in bench/results/sealed.json and .md. Quality is the
evidence recall of REALTALK's chats 6 to 10 through the same import and recall, with MiniLM; it must
not differ. Latency is that of 10,000 memories with the word-hashing embedder, whose share in it is
small; questions go to both homes in turn.

    python -m bench.sealed --data DIR
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from anaphora.embed.base import Embedder
from anaphora.embed.hashing import WordHashingEmbedder
from anaphora.embed.service import EmbedderService, spec_for
from anaphora.index.memories.index import MemoryIndex
from anaphora.recall.memories import MemoryRecall
from anaphora.store.db.engine import Database, open_database
from anaphora.store.home.opening import open_home
from anaphora.store.home.sealing import Home, Sealing
from anaphora.store.records.store import Records
from anaphora.store.records.vectors import RecordVectors
from bench.conversations import run_benchmark
from bench.datasets import Haystack, read_dataset
from bench.figures import Figure, at_most, keep, percentile
from bench.measuring import size_of
from bench.memories import NOW, keep_texts

SIZE = 10_000
QUESTIONS = 200
CHATS = "6-10"


def run(data: Path) -> list[Figure]:
    """Measure both kinds of home; print and keep the figures."""
    source = data / "conversations" / "realtalk"
    figures = [*_quality(source), *_speed(source)]
    keep("sealed", "The cost of encryption at rest", figures)
    return figures


def _quality(source: Path) -> Iterator[Figure]:
    found: dict[str, float] = {}
    for kind in ("clear", "sealed"):
        with tempfile.TemporaryDirectory(prefix="anaphora-bench-") as folder:
            place = Path(folder)
            if kind == "sealed":
                open_home(Home(place, place / "conversations"), "file")
            report = run_benchmark(source, "realtalk", home=place, chats=CHATS)
            assert (place / "sealed.json").exists() == (kind == "sealed")
        (row,) = [row for row in report.rows if row.mode == "hybrid"]
        found[kind] = row.overall.recall_at_10
        yield Figure(f"REALTALK {CHATS}, evidence recall@10, {kind}", found[kind])
        p50 = report.recall_without_embedding.p50_ms
        yield Figure(f"conversation recall less E, p50, {kind}", p50, "ms")
    lost = found["clear"] - found["sealed"]
    yield at_most("evidence recall@10 lost by sealing", lost, 0.0, "")


@dataclass
class _Home:
    folder: Path
    sealing: Sealing
    service: EmbedderService
    truth: Database
    records: Records
    vectors: RecordVectors
    index: MemoryIndex

    def ask(self, question: str) -> float:
        lane = MemoryRecall(self.records, self.index, self.service, lambda: NOW)
        began = time.perf_counter()
        lane.recall(question)
        return 1000 * (time.perf_counter() - began)

    def close(self) -> None:
        self.index.close()
        self.truth.close()


def _opened(folder: Path, service: EmbedderService, *, sealed: bool) -> _Home:
    sealing = open_home(Home(folder, folder / "conversations"), "file" if sealed else None)
    truth = open_database(folder / "anaphora.db")
    records = Records(truth, "default", sealing.rows)
    vectors = RecordVectors(truth, "default", sealing.rows)
    index = MemoryIndex(
        folder / "index", records, vectors, (service.name, service.dimensions),
        cap=None, sealer=sealing.index("default"),
    )  # fmt: skip
    return _Home(folder, sealing, service, truth, records, vectors, index)


def _speed(source: Path) -> Iterator[Figure]:
    texts, questions = _texts(source)
    embedder: Embedder = WordHashingEmbedder()
    service = EmbedderService(spec_for(embedder))
    service.ready()
    yield Figure("memories", len(texts))
    with tempfile.TemporaryDirectory(prefix="anaphora-bench-") as folder:
        homes: dict[str, _Home] = {}
        for kind in ("clear", "sealed"):
            place = Path(folder) / kind
            sealed = kind == "sealed"
            home = _opened(place, service, sealed=sealed)
            began = time.perf_counter()
            keep_texts(home.records, home.vectors, service, texts)
            yield Figure(f"written to truth, embedded, {kind}", time.perf_counter() - began, "s")
            home.index.sync()
            home.index.settle()
            home.close()
            began = time.perf_counter()
            homes[kind] = _opened(place, service, sealed=sealed)
            homes[kind].index.sync()
            opened = 1000 * (time.perf_counter() - began)
            yield Figure(f"home and index opened, {kind}", opened, "ms")
            yield Figure(f"on disk, {kind}", size_of(place) / 1e6, "MB")
        yield from _asked(homes, questions)
        for home in homes.values():
            home.close()
    service.close()


def _asked(homes: dict[str, _Home], questions: Sequence[str]) -> Iterator[Figure]:
    times: dict[str, list[float]] = {kind: [] for kind in homes}
    for question in questions[:10]:
        for home in homes.values():
            home.ask(f"{question} once more")
    for question in questions:
        for kind, home in homes.items():
            times[kind].append(home.ask(question))
    for kind, spent in times.items():
        yield Figure(f"memory recall, p50, {kind}", percentile(spent, 0.5), "ms")
        yield Figure(f"memory recall, p99, {kind}", percentile(spent, 0.99), "ms")


def _texts(source: Path) -> tuple[list[str], list[str]]:
    """So many texts, and questions about them."""
    texts: dict[str, None] = {}
    questions: list[str] = []
    for one in read_dataset(source, "realtalk"):
        if isinstance(one, Haystack):
            texts |= {turn.text: None for c in one.conversations for turn in c.turns}
            questions += [question.text for question in one.questions]
    many = list(texts)
    while len(many) < SIZE:
        many += [f"{text} ({len(many)})" for text in many[: SIZE - len(many)]]
    return many[:SIZE], questions[:QUESTIONS]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.sealed")
    parser.add_argument("--data", type=Path, required=True)
    run(parser.parse_args().data)
