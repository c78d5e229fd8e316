"""How fast projects are taken in: this repository's own checkout, a snapshot of flask, 3,000 files.

In: the folder of shared data; `bench.large_project` makes the 3,000 files of it. Out: figures
beside their targets, also in bench/results/index_speed.json and .md. Each project is indexed in a
process of its own, into truth and into the index of words, first without vectors; then some of its
texts get theirs, one after the other as in a home. The process that only indexed words tells its
memory before the model is there. In the projects that are written for it one file is changed again
and again, and asked for.

    python -m bench.index_speed --data DIR [--texts 1000] [--only flask]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median

from anaphora.embed.service import EmbedderService, spec_for
from anaphora.index.sections.index import SectionIndex
from anaphora.ingest.projects.indexing import ProjectIndexer
from anaphora.recall.context.lane import ContextRecall
from anaphora.store.db.engine import open_database
from anaphora.store.projects.graph import Graph
from anaphora.store.projects.notes import Notes
from anaphora.store.projects.source import SectionSource
from anaphora.store.projects.store import Projects
from anaphora.store.records.ids import RecordIds
from anaphora.values.conversations import Degraded
from bench.context_speed import written
from bench.figures import Figure, below, keep, show
from bench.large_project import large_project
from bench.measuring import memory_of

TEXTS = 1_000
AGAIN = 5
CHANGES = 11
LARGE = 3_000
WORDS = {"flask": 2.0, "3,000 files": 15.0}
"""Seconds after which words, symbols and relations should answer."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What one process tells: seconds by the clock and of the processor, megabytes at the most."""

    files: int
    sections: int
    relations: int
    commits: int
    seconds: float
    processor: float
    words: float
    again: float
    again_processor: float
    memory: float
    texts: int
    embedding: float
    changed: float
    changed_processor: float
    asked: float
    asked_processor: float


def run(data: Path, texts: int = TEXTS, only: str = "") -> list[Figure]:
    """Index them all, or print the one whose name is `only`; `texts` of each are embedded."""
    history = data / "projects" / "history" / "pallets__flask.json"
    with tempfile.TemporaryDirectory(prefix="anaphora-bench-") as folder:
        flask, large = Path(folder) / "flask", Path(folder) / "large"
        written(flask, json.loads(history.read_text(encoding="utf-8"))["files"])
        written(large, large_project(data, LARGE))
        projects = (
            ("this repository", Path(__file__).resolve().parents[1]),
            ("flask", flask),
            ("3,000 files", large),
        )
        figures = [
            figure
            for name, root in projects
            if only in ("", name)
            for figure in _figures(
                name, _in_a_process(root, Path(folder) / f"home of {name}", texts)
            )
        ]
    # A part would take the place of all that is on record.
    (show if only else partial(keep, "index_speed"))("Indexing projects", figures)
    return figures


def _figures(name: str, taken: Taken) -> list[Figure]:
    whole = taken.seconds + taken.words
    found = [
        Figure(f"{name}: files", taken.files),
        Figure(f"{name}: sections", taken.sections),
        Figure(f"{name}: relations", taken.relations),
        Figure(f"{name}: commits and renames", taken.commits),
        Figure(f"{name}: into truth", taken.seconds, "s"),
        Figure(f"{name}: into the index of words", taken.words, "s"),
        _words(name, whole),
        Figure(f"{name}: both, processor time", taken.processor, "s"),
        Figure(f"{name}: files a second, without vectors", taken.files / whole),
        Figure(f"{name}: sections a second, without vectors", taken.sections / whole),
        Figure(f"{name}: sections a second of the processor", taken.sections / taken.processor),
        below(f"{name}: again with nothing changed", taken.again, 1.0, "s"),
        Figure(f"{name}: again, processor time", taken.again_processor, "s"),
        Figure(f"{name}: memory at the most, without a model", taken.memory, "MB"),
    ]
    if taken.changed:
        found += [
            below(f"{name}: one changed file, until it is found", taken.changed * 1e3, 50, "ms"),
            Figure(f"{name}: the same, processor time", taken.changed_processor * 1e3, "ms"),
            Figure(f"{name}: a question after a change", taken.asked * 1e3, "ms"),
            Figure(f"{name}: the same, processor time", taken.asked_processor * 1e3, "ms"),
        ]
    if taken.texts:
        rate = taken.texts / taken.embedding
        # A section's share of the work before its vector, and its vector.
        each = whole / taken.sections + 1 / rate
        found += [
            Figure(f"{name}: vectors made", taken.texts),
            Figure(f"{name}: vectors a second", rate),
            Figure(f"{name}: sections a second, with vectors", 1 / each),
        ]
    return found


def _words(name: str, seconds: float) -> Figure:
    said = f"{name}: both"
    if name in WORDS:
        return below(said, seconds, WORDS[name], "s")
    return Figure(said, seconds, "s")


def _in_a_process(root: Path, home: Path, texts: int) -> Taken:
    command = [sys.executable, "-m", "bench.index_speed", "--child", root, home, texts]
    done = subprocess.run(
        [str(part) for part in command], check=True, capture_output=True, text=True
    )
    return Taken(**json.loads(done.stdout.splitlines()[-1]))


def taken_in(root: Path, home: Path, texts: int) -> Taken:
    """Index `root` into a new home, twice, then embed `texts` of its sections."""
    home.mkdir(parents=True)
    truth = open_database(home / "truth.db")
    service = EmbedderService(spec_for("minilm"))
    projects, graph = Projects(truth, "default"), Graph(truth, "default")

    def now() -> datetime:
        return datetime.now(UTC)

    notes = Notes(truth, "default")
    indexing = ProjectIndexer(projects, graph, notes, service, clock=now, ids=RecordIds(now))
    index = SectionIndex(
        home / "index", SectionSource(truth, "default"), (service.name, service.dimensions)
    )
    try:
        began, used = time.perf_counter(), _processor()
        report = indexing.index(root, embed=False)
        seconds = time.perf_counter() - began
        began = time.perf_counter()
        index.sync()
        index.settle()
        words, processor = time.perf_counter() - began, _processor() - used
        again = [_again(indexing, root) for _ in range(AGAIN)]
        memory = memory_of("VmHWM")
        lane = ContextRecall(projects, graph, notes, index, service, now, _refresh_by(indexing))
        # A checkout of somebody's is not written to.
        changes = (0.0, 0.0, 0.0, 0.0)
        if not (root / ".git").exists():
            changes = _changes(indexing, index, lane, root)
        made, embedding = 0, 0.0
        if texts:
            service.ready()
            began = time.perf_counter()
            made = indexing.fill_vectors(limit=texts)
            embedding = time.perf_counter() - began
    finally:
        index.close()
        service.close()
        truth.close()
    return Taken(
        files=report.files,
        sections=report.sections,
        relations=report.relations,
        commits=report.commits,
        seconds=seconds,
        processor=processor,
        words=words,
        again=sorted(wall for wall, _ in again)[AGAIN // 2],
        again_processor=sorted(cpu for _, cpu in again)[AGAIN // 2],
        memory=memory,
        texts=made,
        embedding=embedding,
        changed=changes[0],
        changed_processor=changes[1],
        asked=changes[2],
        asked_processor=changes[3],
    )


def _processor() -> float:
    """Seconds of the processor, of this process and of helpers that have ended."""
    return sum(os.times()[:4])


def _refresh_by(indexing: ProjectIndexer) -> Callable[[str], tuple[Degraded, ...]]:
    def refresh(project: str) -> tuple[Degraded, ...]:
        indexing.refresh(project)
        return ()

    return refresh


def _changes(
    indexing: ProjectIndexer, index: SectionIndex, lane: ContextRecall, root: Path
) -> tuple[float, float, float, float]:
    """Of one file that gets a function more: seconds until truth and index have it, and of a
    question that looks for it before anything else did; medians, by the clock and of the processor.
    """
    place = sorted(root.rglob("sessions.py"))[0]
    project = lane.projects.find(str(root.resolve())).id
    found: list[tuple[float, float, float, float]] = []
    # The first question makes what all of them need.
    lane.recall("what is a session?")
    for number in range(2 * CHANGES):
        name = f"wanted{number}"
        with place.open("a", encoding="utf-8") as opened:
            opened.write(f"\n\ndef {name}():\n    return {number}\n")
        # As if it had been saved a while ago, at another time than before.
        os.utime(place, (1_700_000_000 + number, 1_700_000_000 + number))
        began, used = time.perf_counter(), time.process_time()
        if number % 2:
            indexing.refresh(project)
            index.sync()
            seen, seen_used = time.perf_counter() - began, time.process_time() - used
            package = lane.recall(f"where is `{name}`?")
            found[-1] = (seen, seen_used, *found[-1][2:])
        else:
            package = lane.recall(f"where is `{name}`?")
            found.append((0.0, 0.0, time.perf_counter() - began, time.process_time() - used))
        assert package.primary_targets[0].path.endswith("sessions.py"), "the change is found"
    return (
        median(one[0] for one in found),
        median(one[1] for one in found),
        median(one[2] for one in found),
        median(one[3] for one in found),
    )


def _again(indexing: ProjectIndexer, root: Path) -> tuple[float, float]:
    """Seconds by the clock and of the processor of a pass over what is known."""
    began, used = time.perf_counter(), time.process_time()
    indexing.index(root, embed=False)
    return time.perf_counter() - began, time.process_time() - used


def main() -> None:
    """Measure and keep; or be the process that is measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="the folder of shared data")
    parser.add_argument("--texts", type=int, default=TEXTS, help="texts that are embedded")
    parser.add_argument("--only", default="", help="flask, 3,000 files, this repository")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        root, home, texts = given.child
        print(json.dumps(asdict(taken_in(Path(root), Path(home), int(texts)))))
    elif given.data is None:
        parser.error("--data is needed")
    else:
        run(given.data, given.texts, given.only)


if __name__ == "__main__":
    main()
