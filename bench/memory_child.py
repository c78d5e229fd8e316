"""A process that does nothing but open a home and recall: `python -m bench.memory_child FOLDER`.

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
from bench.measuring import memory_of


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
    print(json.dumps({"resident": memory_of("VmRSS"), "most": memory_of("VmHWM"), "first": first}))
    index.close()
    truth.close()
    service.close()


if __name__ == "__main__":
    main()
