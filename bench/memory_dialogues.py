"""Does memory recall bring what a companion should remember? `python -m bench.memory_dialogues`.

In: MADial-Bench (English): 160 events of two users, and dialogues with the events that an assistant
should recall in them; asked with what the user says just before. Out: for each mode of recall how
much of what is wanted is among the first hits, in bench/results/memory_dialogues.json and .md. No
weight is chosen by it. Events are of the third person, as extracted memories are, and what is
wanted is fitting rather than asked for, so that words alone say little.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from anaphora.embed.service import EmbedderService, spec_for
from anaphora.index.memories.index import MemoryIndex
from anaphora.recall.memories import MemoryRecall
from anaphora.store.db.engine import open_database
from anaphora.store.records.store import Records
from anaphora.store.records.vectors import RecordVectors
from anaphora.values.conversations import RecallMode
from bench.figures import machine, write
from bench.memories import NOW, keep_texts
from bench.metrics import recall_at_k, reciprocal_rank

MODES: Final[tuple[RecallMode, ...]] = ("words", "vector", "hybrid")
EMBEDDERS: Final = ("minilm",)
FIRST, MANY = 5, 10
_SPEAKER: Final = re.compile(r'^<[^>]+>:\s*"?|"?\s*$')


@dataclass(frozen=True, slots=True)
class Measured:
    """Means over dialogues of one embedder and mode."""

    embedder: str
    mode: str
    few: float
    many: float
    first: float


def run(data: Path, embedders: Sequence[str] = EMBEDDERS) -> list[Measured]:
    """Remember the events, ask every dialogue in every mode, keep the figures."""
    folder = data / "multilingual" / "madial" / "en"
    events = dict(_events(folder / "MADial-Bench-en-memory.json"))
    asked = list(_asked(folder / "MADial-Bench-en-dialogue.json", events))
    found = [one for name in embedders for one in _measured(name, events, asked)]
    _keep(found, len(events), len(asked))
    return found


def _events(file: Path) -> Iterator[tuple[str, str]]:
    """(id, what happened); the date is a part of it, as somebody would note it."""
    for one in _lines(file):
        for name, event in one.items():
            yield name, f"{event['time']}: {event['event']}"


def _asked(file: Path, events: dict[str, str]) -> Iterator[tuple[str, frozenset[str]]]:
    """What the user says before the assistant should remember, and the events that are wanted."""
    for one in _lines(file):
        at = min(one["test-turn"])
        said = _SPEAKER.sub("", one["dialogue"][at - 1].strip())
        wanted = frozenset(events[str(i)] for i in one["relevant-id"] if str(i) in events)
        if said and wanted:
            yield said, wanted


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.strip():
            yield json.loads(line)


def _measured(
    name: str, events: dict[str, str], asked: Sequence[tuple[str, frozenset[str]]]
) -> Iterator[Measured]:
    embedder = EmbedderService(spec_for(name), cache_size=4096)
    with tempfile.TemporaryDirectory(prefix="anaphora-dialogues-") as home:
        truth = open_database(Path(home) / "anaphora.db")
        records, vectors = Records(truth, "default"), RecordVectors(truth, "default")
        keep_texts(records, vectors, embedder, list(events.values()))
        held = (embedder.name, embedder.dimensions)
        index = MemoryIndex(Path(home) / "index", records, vectors, held, background=False)
        lane = MemoryRecall(records, index, embedder, lambda: NOW)
        for mode in MODES:
            few, many, first = [], [], []
            for said, wanted in asked:
                ranked = [hit.text for hit in lane.recall(said, top_k=MANY, mode=mode)]
                few.append(recall_at_k(ranked, wanted, FIRST))
                many.append(recall_at_k(ranked, wanted, MANY))
                first.append(reciprocal_rank(ranked, wanted))
            yield Measured(name, mode, fmean(few), fmean(many), fmean(first))
        index.close()
        truth.close()


def _keep(found: Sequence[Measured], events: int, asked: int) -> None:
    lines = [
        "# What a companion should remember (MADial-Bench, English)",
        "",
        f"{machine()}, {datetime.now(UTC).date().isoformat()}.",
        f"{events} events of two users in one namespace, all of now; {asked} dialogues, each asked",
        "with what the user says just before an event should come to mind. No weight is chosen by",
        "it. Made by `python -m bench.memory_dialogues`.",
        "",
        f"| embedder | mode | recall@{FIRST} | recall@{MANY} | MRR |",
        "|---|---|---:|---:|---:|",
    ]
    lines += [
        f"| {one.embedder} | {one.mode} | {one.few:.3f} | {one.many:.3f} | {one.first:.3f} |"
        for one in found
    ]
    print("\n".join(lines))
    write(
        "memory_dialogues", json.dumps({"rows": [asdict(one) for one in found]}), "\n".join(lines)
    )


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--embedder", nargs="*", default=list(EMBEDDERS), help="which to ask with")
    chosen = parser.parse_args()
    run(chosen.data, chosen.embedder)


if __name__ == "__main__":
    main()
