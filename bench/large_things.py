"""What one large thing costs: `python -m bench.large_things [--sizes 1000,1000000]`.

In: nothing but words. Out: for a memory, a turn, a note, a document and a file of a project of
1 kB to 10 MB, each in a home of a few hundred others, the seconds until it is kept, until words
find the code at its end, of the question after that, and of forgetting it; how many characters
became vectors in the caller's time, and the seconds that its vectors take behind the calls (up to
`--filled` characters). Printed, and in bench/results/large_things.json and .md.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final, TypeVar

from anaphora import Memory
from anaphora.embed.base import Embedder, Vector, Vectors
from anaphora.embed.minilm import MiniLM
from bench.figures import Figure, at_most, machine, write

KINDS: Final = ("memory", "turn", "note", "document", "file")
SIZES: Final = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
FILLED: Final = 1_000_000
OTHERS: Final = 300
WITHIN: Final = 1_000_000
"""Characters up to which every step is to take a second at most."""
CODE: Final = "ZQX-77183"
QUESTION: Final = f"which code is {CODE}?"
_WORDS: Final = (
    *("tram", "bread", "salt", "garden", "harbour", "invoice", "ladder", "piano", "winter"),
    *("kettle", "boots", "paint", "roof", "meeting", "Tuesday", "colour", "window", "answer"),
    *("the", "of", "and", "in", "to", "is", "was", "for", "with", "that", "it", "on", "not"),
)

ResultT = TypeVar("ResultT")


@dataclass
class CountingEmbedder:
    """The bundled model, and how many characters this thread had embedded."""

    inner: Embedder = field(default_factory=MiniLM)
    thread: threading.Thread = field(default_factory=threading.current_thread)
    in_call: int = 0

    @property
    def name(self) -> str:
        """The model's own."""
        return self.inner.name

    @property
    def dimensions(self) -> int:
        """The model's own."""
        return self.inner.dimensions

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        """Vectors of texts; those of the caller are counted."""
        if threading.current_thread() is self.thread:
            self.in_call += sum(map(len, texts))
        return self.inner.embed(texts)

    def embed_query(self, text: str) -> Vector:
        """The vector of a question."""
        return self.inner.embed_query(text)

    def query_key(self, text: str) -> Hashable:
        """The model's own."""
        return self.inner.query_key(text)


@dataclass(frozen=True, slots=True)
class Row:
    """Seconds of each step for one thing of so many characters; None for what was not done."""

    kind: str
    size: int
    kept: float
    words: float
    again: float
    forgotten: float
    in_call: int
    vectors: float | None = None
    unfound: bool = False


@dataclass(frozen=True, slots=True)
class Desk:
    """One home, and how a kind of thing is kept, found and forgotten there."""

    memory: Memory
    folder: Path
    embedder: CountingEmbedder

    def keep(self, kind: str, text: str) -> Callable[[], object]:
        """Keep the text; what forgets it."""
        memory = self.memory
        if kind == "memory":
            record = memory.remember(text)
            return lambda: memory.forget(record.id)
        if kind == "turn":
            memory.conversations.append_user("large", text)
            return lambda: memory.conversations.delete("large")
        if kind == "note":
            note = memory.observe(text)
            return lambda: memory.forget(note.id)
        if kind == "document":
            document = memory.add_document(text.encode(), name="large.txt").document
            return lambda: memory.forget(document.id)
        (self.folder / "large.md").write_text(text)
        memory.index_project(self.folder, name="large")
        return lambda: memory.remove_project("large")

    def find(self, kind: str) -> bool:
        """Whether the code at the end is among what a question gives."""
        memory = self.memory
        if kind == "memory":
            return any(CODE in hit.text for hit in memory.recall(QUESTION))
        if kind == "turn":
            return any(CODE in hit.text for hit in memory.recall_conversation(None, QUESTION))
        if kind == "file":
            package = memory.recall_context(QUESTION)
            return any(target.path == "large.md" for target in package.primary_targets)
        return any(CODE in hit.text for hit in memory.search(QUESTION))


def measure(kind: str, size: int, embedder: CountingEmbedder, filled: int) -> Row:
    """One thing of a kind and a size."""
    text = text_of(size)
    with tempfile.TemporaryDirectory(prefix="anaphora-large-") as aside:
        home, folder = Path(aside) / "home", Path(aside) / "project"
        folder.mkdir()
        (folder / "small.md").write_text("# Salt\n\nIt is in the cellar.\n")
        with Memory.open(home, embedder=embedder) as memory:
            desk = Desk(memory, folder, embedder)
            memory.remember_many([text_of(200, seed) for seed in range(OTHERS)])
            memory.conversations.append_user("talk", "Where is the salt?")
            memory.ready()
            for other in KINDS:
                desk.find(other)
            embedder.in_call = 0
            forget, kept = timed(lambda: desk.keep(kind, text))
            found, words = timed(lambda: desk.find(kind))
            again, second = timed(lambda: desk.find(kind))
            in_call = embedder.in_call
            vectors = None
            if size <= filled:
                _, vectors = timed(memory.ready)
                again, second = timed(lambda: desk.find(kind))
            _, forgotten = timed(forget)
            row = Row(kind, size, kept, words, second, forgotten, in_call, vectors)
            return replace(row, unfound=not (found and again))


def text_of(size: int, seed: int = 0) -> str:
    """Sentences of common words, with the code at the end of the large thing (seed 0)."""
    rng = random.Random(seed)
    parts: list[str] = []
    length = 0
    while length < size - 60:
        part = " ".join(rng.choices(_WORDS, k=rng.randint(6, 16))).capitalize() + "."
        parts.append(part if rng.random() < 0.9 else f"{part}\n")
        length += len(part) + 1
    return "\n".join(parts) + (f"\nThe code of the locker is {CODE}." if not seed else "")


def timed(call: Callable[[], ResultT]) -> tuple[ResultT, float]:
    """What a call gives, and the seconds that it took."""
    start = time.perf_counter()
    result = call()
    return result, time.perf_counter() - start


def figures(rows: Sequence[Row]) -> list[Figure]:
    """Each step of each thing up to `WITHIN` characters beside its second."""
    return [
        at_most(f"{row.kind} of {row.size:,}: {step}", getattr(row, step), 1.0, "s")
        for row in rows
        if row.size <= WITHIN
        for step in ("kept", "words", "again", "forgotten")
    ]


def markdown(rows: Sequence[Row], ran_on: str) -> str:
    """The results for people."""
    lines = ["# One large thing", "", ran_on, "", "Seconds.", ""]
    lines += [
        "| what | characters | kept | found by words | asked again | forgotten "
        "| characters embedded in the call | vectors behind |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        steps = " | ".join(
            f"{value:.2f}" for value in (row.kept, row.words, row.again, row.forgotten)
        )
        vectors = "" if row.vectors is None else f"{row.vectors:.1f}"
        name = f"{row.kind}, too large for a project" if row.unfound else row.kind
        lines.append(f"| {name} | {row.size:,} | {steps} | {row.in_call:,} | {vectors} |")
    return "\n".join(lines) + "\n"


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(prog="python -m bench.large_things", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="characters")
    parser.add_argument("--kinds", default=",".join(KINDS), help="what is measured")
    parser.add_argument("--filled", type=int, default=FILLED, help="up to which vectors are made")
    given = parser.parse_args(words)
    ran_on, embedder = machine(), CountingEmbedder()
    rows = [
        measure(kind, size, embedder, given.filled)
        for kind in given.kinds.split(",")
        for size in map(int, given.sizes.split(","))
    ]
    text = markdown(rows, ran_on)
    print(text)
    kept = {"machine": ran_on, "rows": [asdict(row) for row in rows]}
    kept["figures"] = [asdict(one) for one in figures(rows)]
    write("large_things", json.dumps(kept, indent=1), text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
