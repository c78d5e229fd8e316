"""How fast a package is recalled from 20,000 sections, and how fast their index opens.

In: the folder of shared data (the projects of the history sets, as often as it takes). Out:
figures beside their targets, also in bench/results/context_speed.json and .md. A recall is asked
of all projects, and looks at the state of each of their files, as a home's does. Questions and
sections have random vectors, since none is read for its meaning here: what a model takes to embed a
question is not in the figures.

    python -m bench.context_speed --data DIR [--size 20000] [--home DIR]

With `--home` what was made is kept in that folder, and used again by the next run of that size.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from anaphora.embed.base import Vector, Vectors
from anaphora.embed.service import EmbedderService, spec_for
from anaphora.index.sections.index import SectionIndex
from anaphora.ingest.projects.indexing import ProjectIndexer, RefreshReport
from anaphora.recall.context.lane import ContextRecall
from anaphora.store.db.engine import Database, open_database
from anaphora.store.projects.graph import Graph
from anaphora.store.projects.notes import Notes
from anaphora.store.projects.source import SectionSource
from anaphora.store.projects.store import Projects
from anaphora.store.records.ids import RecordIds
from anaphora.values.conversations import Degraded
from bench.figures import Figure, at_most, keep, percentile

SIZE = 20_000
QUESTIONS = 120
LOOKS = 25
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


def run(data: Path, size: int = SIZE, home: Path | None = None) -> list[Figure]:
    """Build the index, or take the one that is in `home`; open it again, ask."""
    if home is not None:
        return _measured(home, data, size)
    with tempfile.TemporaryDirectory(prefix="anaphora-bench-") as folder:
        return _measured(Path(folder), data, size)


@dataclass(frozen=True, slots=True)
class Lane:
    """What a recall is made of, over one home."""

    truth: Database
    service: EmbedderService
    projects: Projects
    graph: Graph
    notes: Notes
    folder: Path

    def index(self) -> SectionIndex:
        """The index over the home, not yet brought up to date."""
        source = SectionSource(self.truth, "default")
        return SectionIndex(self.folder / "index", source, (RandomEmbedder.name, DIMENSIONS))

    def indexing(self) -> ProjectIndexer:
        """What takes in projects, and looks whether their files changed."""
        return ProjectIndexer(
            self.projects, self.graph, self.notes, self.service,
            clock=lambda: NOW, ids=RecordIds(lambda: NOW),
        )  # fmt: skip

    def recall(self, index: SectionIndex) -> ContextRecall:
        """The lane over an index."""
        indexing = self.indexing()

        def refresh(project: str) -> tuple[Degraded, ...]:
            done = indexing.refresh(project)
            assert done == RefreshReport(), "nothing changes while it is measured"
            return ()

        return ContextRecall(
            self.projects, self.graph, self.notes, index, self.service, lambda: NOW, refresh
        )


@contextmanager
def opened(home: Path) -> Iterator[Lane]:
    """The lane over a home of this measurement."""
    home.mkdir(parents=True, exist_ok=True)
    truth = open_database(home / "truth.db")
    service = EmbedderService(spec_for(RandomEmbedder()), cache_size=0)
    service.ready()
    try:
        yield Lane(
            truth, service, Projects(truth, "default"), Graph(truth, "default"),
            Notes(truth, "default"), home,
        )  # fmt: skip
    finally:
        service.close()
        truth.close()


def asked(data: Path) -> list[str]:
    """The questions, some of every repository."""
    found = [one for _, _, questions in _copies(data, 1) for one in questions]
    return found[:: max(1, len(found) // QUESTIONS)][:QUESTIONS]


def filled(lane: Lane, data: Path, size: int) -> tuple[int, int, float]:
    """Index copies of the projects until there are `size` sections: those, copies, seconds.

    The seconds are 0 where the home had them already.
    """
    marked = lane.folder / f"made-{size}.json"
    if marked.exists():
        count, copies = json.loads(marked.read_text(encoding="utf-8"))
        return count, copies, 0.0
    indexing = lane.indexing()
    count = copies = 0
    started = time.perf_counter()
    for name, files, _ in _copies(data):
        if count >= size:
            break
        root = lane.folder / "projects" / name
        written(root, files)
        count += indexing.index(root, name=name).sections
        copies += 1
    took = time.perf_counter() - started
    marked.write_text(json.dumps([count, copies]), encoding="utf-8")
    return count, copies, took


def written(root: Path, files: Mapping[str, str]) -> None:
    """Write the files of a project, as old as those of a checkout are."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8", errors="surrogatepass")
    # What changed within the last two seconds is looked at again.
    for place in (root, *root.rglob("*")):
        os.utime(place, (NOW.timestamp(), NOW.timestamp()))


def _measured(home: Path, data: Path, size: int) -> list[Figure]:
    with opened(home) as lane:
        count, copies, into_truth = filled(lane, data, size)
        first, making = _timed_opening(lane.index())
        first.settle()
        first.close()
        again, opening = _timed_opening(lane.index())
        recall = lane.recall(again)
        wall, used = _timed_recalls(recall, asked(data))
        files, looking = _timed_looks(lane)
        again.close()
    made = [
        Figure("into truth, vectors by chance", into_truth, "s"),
        Figure("index made from nothing", making, "s"),
    ]
    return [
        Figure("sections", count),
        Figure("projects", copies),
        *(made if into_truth else ()),
        at_most("index opened again", opening, 1.5, "s"),
        at_most("recall p50", percentile(wall, 0.5), 15.0, "ms"),
        Figure("recall p95", percentile(wall, 0.95), "ms"),
        at_most("recall p50, processor time", percentile(used, 0.5), 15.0, "ms"),
        Figure("recall p95, processor time", percentile(used, 0.95), "ms"),
        Figure("files that each recall looks at", files),
        Figure("looking at them p50, processor time", percentile(looking, 0.5), "ms"),
    ]


def _timed_looks(lane: Lane) -> tuple[int, list[float]]:
    """How many files there are, and milliseconds of the processor to see that none changed."""
    indexing, rows = lane.indexing(), lane.projects.rows()
    used = []
    for _ in range(LOOKS):
        cpu_0 = time.thread_time()
        for row in rows:
            indexing.refresh(row.id)
        used.append((time.thread_time() - cpu_0) * 1e3)
    return sum(len(lane.projects.files(row.id)) for row in rows), used


def _timed_recalls(recall: ContextRecall, focus: Sequence[str]) -> tuple[list[float], list[float]]:
    """Milliseconds of each recall: by the clock, and of the processor."""
    for one in focus[:5]:
        recall.recall(one)
    wall, used = [], []
    for one in focus:
        wall_0, cpu_0 = time.perf_counter(), time.thread_time()
        recall.recall(one)
        wall.append((time.perf_counter() - wall_0) * 1e3)
        used.append((time.thread_time() - cpu_0) * 1e3)
    return wall, used


def _timed_opening(index: SectionIndex) -> tuple[SectionIndex, float]:
    started = time.perf_counter()
    index.sync()
    return index, time.perf_counter() - started


def _copies(data: Path, most: int = 1_000) -> Iterator[tuple[str, dict[str, str], list[str]]]:
    """The projects of the history sets, over and over, each copy under a name of its own."""
    sets = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in sorted((data / "projects" / "history").glob("*.json"))
    ]
    for copy in range(most):
        for one in sets:
            name = f"{one['repo'].replace('/', '-')}-{copy}"
            yield name, one["files"], [q["query"] for q in one["queries"]] if not copy else []


def main() -> None:
    """Measure and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder of shared data")
    parser.add_argument("--size", type=int, default=SIZE, help="sections at least")
    parser.add_argument("--home", type=Path, help="keep what is made here, and use it again")
    given = parser.parse_args()
    figures = run(given.data, given.size, given.home)
    keep("context_speed", "Project packages from 20,000 sections", figures)


if __name__ == "__main__":
    main()
