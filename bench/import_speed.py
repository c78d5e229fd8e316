"""How soon an import answers: 1,218 turns of people, and 188 long ones of an assistant.

In: the folder of shared data; the turns are the first 1,218 of REALTALK and those of BEAM's first
chat. Out: figures beside their targets, also in bench/results/import_speed.json and .md. Each is
imported by a process of its own, as `Memory.import_` does it; then a question is asked, which words
answer, and the vectors that follow are waited for.

    python -m bench.import_speed --data DIR [--no-vectors]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

from anaphora import Memory
from anaphora.values.conversations import ImportedConversation
from bench.datasets import haystacks
from bench.figures import Figure, below, keep, show

SETS = (("1,218 turns", "realtalk", 1_218), ("188 long turns", "beam", 188))
WORDS = 3.0
"""Seconds within which words should answer."""


@dataclass(frozen=True, slots=True)
class Imported:
    """What one process tells: seconds by the clock and of the processor.

    `returned` is when the call did, `answered` when a question had its answer, both with nothing
    else under way; `behind` when a question had its answer beside the vectors that are made, and
    `whole` when these were there.
    """

    turns: int
    characters: int
    returned: float
    answered: float
    processor: float
    behind: float
    whole: float


def run(data: Path, *, vectors: bool = True) -> list[Figure]:
    """Both sets, each in a process of its own; with `vectors` again until these are there."""
    with tempfile.TemporaryDirectory(prefix="anaphora-bench-") as folder:
        figures = [
            figure
            for name, form, count in SETS
            for figure in _figures(
                name, _in_a_process(data, form, count, Path(folder) / form, vectors=vectors)
            )
        ]
    # A part would take the place of all that is on record.
    (partial(keep, "import_speed") if vectors else show)("Importing conversations", figures)
    return figures


def _figures(name: str, one: Imported) -> Iterator[Figure]:
    yield Figure(f"{name}: characters", one.characters)
    yield Figure(f"{name}: `import_` without vectors", one.returned, "s")
    yield below(f"{name}: until a question is answered by words", one.answered, WORDS, "s")
    yield Figure(f"{name}: of that, processor time", one.processor, "s")
    if one.whole:
        yield below(f"{name}: the same, vectors being made", one.behind, WORDS, "s")
        yield Figure(f"{name}: until all vectors are there", one.whole, "s")
        yield Figure(f"{name}: vectors a second", one.turns / one.whole)


def _in_a_process(data: Path, form: str, count: int, home: Path, *, vectors: bool) -> Imported:
    command = [sys.executable, "-m", "bench.import_speed", "--data", data]
    command += ["--child", form, count, home, *(() if vectors else ("--no-vectors",))]
    done = subprocess.run(
        [str(part) for part in command], check=True, capture_output=True, text=True
    )
    return Imported(**json.loads(done.stdout.splitlines()[-1]))


def imported(data: Path, form: str, count: int, home: Path, *, vectors: bool) -> Imported:
    """Import the first `count` turns of a data set into a new home, and into another."""
    given = list(_cut(data, form, count))
    texts = [turn.text for one in given for turn in one.turns]
    question = max(texts[len(texts) // 2].split(), key=len)
    began, used = time.perf_counter(), time.process_time()
    with Memory.open(home / "words") as memory:
        memory.import_(given, embed=False)
        returned = time.perf_counter() - began
        assert memory.recall_conversation(None, question, mode="words"), "words answer"
        answered, processor = time.perf_counter() - began, time.process_time() - used
    behind = whole = 0.0
    if vectors:
        with Memory.open(home / "vectors") as memory:
            began = time.perf_counter()
            memory.import_(given)
            assert memory.recall_conversation(None, question, mode="words"), "words answer"
            behind = time.perf_counter() - began
            memory.ready()
            whole = time.perf_counter() - began
    characters = sum(map(len, texts))
    return Imported(len(texts), characters, returned, answered, processor, behind, whole)


def _cut(data: Path, form: str, count: int) -> Iterator[ImportedConversation]:
    """Conversations of a data set with so many turns in all."""
    for _, chat in haystacks(data, form):
        for one in chat.conversations:
            yield replace(one, turns=tuple(islice(one.turns, count)))
            count -= len(one.turns)
            if count <= 0:
                return


def main() -> None:
    """Measure and keep; or be the process that is measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder of shared data")
    parser.add_argument("--no-vectors", action="store_true", help="only until words answer")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        form, count, home = given.child
        found = imported(given.data, form, int(count), Path(home), vectors=not given.no_vectors)
        print(json.dumps(asdict(found)))
    else:
        run(given.data, vectors=not given.no_vectors)


if __name__ == "__main__":
    main()
