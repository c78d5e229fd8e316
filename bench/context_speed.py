"""How fast a package is recalled from 20,000 sections, and how fast their index opens.

In: the folder of shared data (the projects of the history sets, as often as it takes). Out:
figures beside their targets, also in bench/results/context_speed.json and .md. A question's
embedding is timed apart and taken off; sections have random vectors, since none is read for its
meaning here.

    python -m bench.context_speed --data DIR [--size 20000]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from anaphora.embed.base import Vector, Vectors
from anaphora.embed.service import EmbedderService, spec_for
from anaphora.index.section_source import SectionSource
from anaphora.index.sections import SectionIndex
from anaphora.intake.project import IndexProject
from anaphora.recall.context import ContextRecall
from anaphora.store.graph import Graph
from anaphora.store.notes import Notes
from anaphora.store.projects import Projects
from anaphora.store.record_ids import RecordIds
from anaphora.store.sql.engine import Truth, open_truth
from bench.figures import Figure, at_most, keep, percentile

SIZE = 20_000
QUESTIONS = 120
DIMENSIONS = 384
NOW = datetime(2026, 4, 30, 12, 0, tzinfo=UTC)


class RandomEmbedder:
    """Unit vectors by chance: their arithmetic is real, their meaning is none."""

    name = "random-384"
    dimensions = DIMENSIONS

    def __init__(self) -> None:
        self._random = np.random.default_rng(4)

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        """One part for each text."""
        return [self._unit(1) for _ in texts]

    def embed_query(self, text: str) -> Vector:
        """A vector."""
        found: Vector = self._unit(1)[0]
        return found

    def query_key(self, text: str) -> str:
        """No two questions have the same."""
        return text

    def _unit(self, count: int) -> Vectors:
        rows = self._random.standard_normal((count, DIMENSIONS)).astype(np.float32)
        unit: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        return unit


def run(data: Path, size: int = SIZE) -> list[Figure]:
    """Build the index, open it again, ask."""
    with tempfile.TemporaryDirectory(prefix="anaphora-bench-") as folder:
        home = Path(folder)
        truth = open_truth(home / "truth.db")
        try:
            return _measured(truth, home, data, size)
        finally:
            truth.close()


def _measured(truth: Truth, home: Path, data: Path, size: int) -> list[Figure]:
    service = EmbedderService(spec_for(RandomEmbedder()), cache_size=0)
    service.ready()
    projects, graph = Projects(truth, "default"), Graph(truth, "default")
    notes = Notes(truth, "default")
    indexing = IndexProject(
        projects, graph, notes, service, clock=lambda: NOW, ids=RecordIds(lambda: NOW)
    )
    asked: list[str] = []
    count = copies = 0
    started = time.perf_counter()
    for name, files, questions in _copies(data):
        if count >= size:
            break
        root = home / "projects" / name
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8", errors="surrogatepass")
        count += indexing.index(root, name=name).sections
        asked += questions
        copies += 1
    into_truth = time.perf_counter() - started

    def index() -> SectionIndex:
        source = SectionSource(truth, "default")
        return SectionIndex(home / "index", source, (RandomEmbedder.name, DIMENSIONS))

    first, making = _timed_opening(index())
    first.settle()
    first.close()
    again, opening = _timed_opening(index())
    lane = ContextRecall(projects, graph, notes, again, service, lambda: NOW)
    focus = asked[:: max(1, len(asked) // QUESTIONS)][:QUESTIONS]
    for one in focus[:5]:
        lane.recall(one)
    wall, used = [], []
    for one in focus:
        wall_0, cpu_0 = time.perf_counter(), time.thread_time()
        lane.recall(one)
        wall.append((time.perf_counter() - wall_0) * 1e3)
        used.append((time.thread_time() - cpu_0) * 1e3)
    again.close()
    service.close()
    return [
        Figure("sections", count),
        Figure("projects", copies),
        Figure("into truth, vectors by chance", into_truth, "s"),
        Figure("index made from nothing", making, "s"),
        at_most("index opened again", opening, 1.5, "s"),
        at_most("recall p50", percentile(wall, 0.5), 15.0, "ms"),
        Figure("recall p95", percentile(wall, 0.95), "ms"),
        Figure("recall p50, processor time", percentile(used, 0.5), "ms"),
        Figure("recall p95, processor time", percentile(used, 0.95), "ms"),
    ]


def _timed_opening(index: SectionIndex) -> tuple[SectionIndex, float]:
    started = time.perf_counter()
    index.follow()
    return index, time.perf_counter() - started


def _copies(data: Path) -> Iterator[tuple[str, dict[str, str], list[str]]]:
    """The projects of the history sets, over and over, each copy under a name of its own."""
    sets = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in sorted((data / "projects" / "history").glob("*.json"))
    ]
    for copy in range(1_000):
        for one in sets:
            name = f"{one['repo'].replace('/', '-')}-{copy}"
            yield name, one["files"], [q["query"] for q in one["queries"]] if not copy else []


def main() -> None:
    """Measure and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder of shared data")
    parser.add_argument("--size", type=int, default=SIZE, help="sections at least")
    given = parser.parse_args()
    keep("context_speed", "Context: recall from 20,000 sections", run(given.data, given.size))


if __name__ == "__main__":
    main()
