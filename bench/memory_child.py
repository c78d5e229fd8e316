"""A process that does nothing but open a home and recall: `python memory_child.py FOLDER`.

In: FOLDER with a truth, an index and asked.json (questions). Out: one line of JSON with megabytes
resident after the questions and at the most, and milliseconds until the first answer.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from anaphora.embed.service import EmbedderService, spec_for
from anaphora.index.memories.index import MemoryIndex
from anaphora.recall.memories import MemoryRecall
from anaphora.store.db.engine import open_database
from anaphora.store.records.store import Records
from anaphora.store.records.vectors import RecordVectors


def main() -> None:
    """Open, ask everything, tell."""
    folder = Path(sys.argv[1])
    asked = json.loads((folder / "asked.json").read_text("utf-8"))
    began = time.perf_counter()
    service = EmbedderService(spec_for("minilm"))
    truth = open_database(folder / "anaphora.db")
    records, vectors = Records(truth, "default"), RecordVectors(truth, "default")
    named = (service.name, service.dimensions)
    index = MemoryIndex(folder / "index", records, vectors, named)
    lane = MemoryRecall(records, index, service, lambda: datetime.now(UTC))
    first = 0.0
    for question in asked:
        lane.recall(question)
        first = first or 1000 * (time.perf_counter() - began)
    print(json.dumps({"resident": _status("VmRSS"), "most": _status("VmHWM"), "first": first}))
    index.close()
    truth.close()
    service.close()


def _status(name: str) -> float:
    """A line of the kernel's in MB; 0 where there is none."""
    place = Path("/proc/self/status")
    lines = place.read_text().splitlines() if place.is_file() else []
    return next((int(line.split()[1]) / 1000 for line in lines if line.startswith(name)), 0.0)


if __name__ == "__main__":
    main()
