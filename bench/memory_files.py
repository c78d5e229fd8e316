"""Whether a line in a long file of Claude's memory tool is recalled, by the size of its sections.

    python -m bench.memory_files               sections as shipped
    python -m bench.memory_files --section 600
    python -m bench.memory_files --section 0   a file is one memory

Five made-up facts stand at even distances in the prose of docs/, in files of four sizes, among 300
messages of examples/conversation.json about the same project. Prints the place of the file among
ten hits for each question. Nothing is fitted on this but the size of a section.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Final

from anaphora import Memory
from anaphora.adapters import memory_files
from anaphora.adapters.memory_files import MemoryFiles

ROOT: Final = Path(__file__).resolve().parents[1]
SIZES: Final = (2_000, 20_000, 49_000, 200_000)
FACTS: Final = {
    "which port does the staging database of Ferrywell listen on?": (
        "The staging database of Ferrywell listens on port 5433."
    ),
    "does Rafi want tabs or spaces in the Makefile?": (
        "Rafi prefers tabs over spaces in the Makefile of the parcel tracker."
    ),
    "when does the nightly export to the Hamburg warehouse start?": (
        "The nightly export to the Hamburg warehouse starts at 02:40."
    ),
    "what is Mara's badge number?": "Mara's badge number for the depot door is 7718.",
    "from whom do we rent the delivery van?": "We rent the blue delivery van from Autohaus Lindt.",
}


def main() -> None:
    """Print a line for each size, then how many questions find their file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--section", type=int, default=None, help="characters; 0: never cut")
    section = parser.parse_args().section
    if section is not None:
        memory_files.SECTION = section or 1 << 40
    places = [place for size in SIZES for place in asked(size)]
    among = sum(place is not None and place <= 3 for place in places)
    print(f"first for {places.count(1)}, among the first three for {among} of {len(places)}")


def asked(size: int) -> list[int | None]:
    """The place of the file among ten hits, for each question; None where it is not there."""
    prose = "\n\n".join(page.read_text("utf-8") for page in sorted((ROOT / "docs").glob("*.md")))
    lines = prose[:size].split("\n")
    step = len(lines) // (len(FACTS) + 1)
    for n, fact in enumerate(FACTS.values(), 1):
        lines.insert(n * (step + 1), fact)
    chats = json.loads((ROOT / "examples" / "conversation.json").read_text("utf-8"))
    said = [message["text"] for chat in chats for message in chat["chat_messages"]][:300]
    found: list[int | None] = []
    with tempfile.TemporaryDirectory() as home, Memory.open(home) as memory:
        memory.ready()
        memory.remember_many(said)
        MemoryFiles(memory).create("/memories/notes.md", "\n".join(lines))
        memory.ready()
        for question in FACTS:
            hits = memory.recall(question, top_k=10).hits
            ours = [n for n, hit in enumerate(hits, 1) if (hit.path or "").startswith("/memories/")]
            found.append(ours[0] if ours else None)
    print(f"{size:>7} characters: {found}", flush=True)
    return found


if __name__ == "__main__":
    main()
