"""One process that opens a home and asks it: `python -m bench.scale.asking HOME QUESTIONS`.

In: a home that `filling` made; a JSON file of questions. Out: one line of JSON: milliseconds of
opening, of first and later recalls without the question's embedding, megabytes resident, and the
ids that were found, for comparison. `--write N` remembers N memories one by one instead and forgets
some of them: it changes the home.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from anaphora import Memory
from anaphora.embed.service import spec_for
from bench.figures import percentile
from bench.measuring import memory_of
from bench.scale.material import PoolEmbedder, pool

NARROW: Final = {"AND": [{"category": "c3"}, {"tags": {"contains": "t2"}}]}
"""A filter that leaves one memory of 140."""
_WIDE: Final = {"category": "c3"}
_TOP: Final = 10


class _Asked:
    """Calls, timed, with the time inside the embedder taken off."""

    def __init__(self, embedder: PoolEmbedder) -> None:
        self._embedder = embedder

    def ms(self, call: Callable[[], object]) -> float:
        """Milliseconds of one call less its embedding."""
        before, began = self._embedder.query_seconds, time.perf_counter()
        call()
        spent = time.perf_counter() - began
        return 1000 * (spent - (self._embedder.query_seconds - before))


def asked(home: Path, questions: Sequence[str]) -> dict[str, Any]:
    """Everything that a process which only recalls can tell."""
    embedder = PoolEmbedder(spec_for("minilm").load())
    embedder.embed_query("the model's first question takes longer")
    timed, found = _Asked(embedder), dict[str, Any]()
    empty = memory_of("VmRSS")
    memory = Memory.open(home, embedder=embedder)
    found["first_ms"] = timed.ms(lambda: memory.recall("what was said first?"))
    found["second_ms"] = timed.ms(lambda: memory.recall("what was said second?"))
    found["resident_mb"], found["without_home_mb"] = memory_of("VmRSS"), empty
    times = [timed.ms(lambda q=q: memory.recall(q)) for q in questions]  # type: ignore[misc]
    found |= _spread("recall", times)
    found |= _spread("again", [timed.ms(lambda q=q: memory.recall(q)) for q in questions[-100:]])  # type: ignore[misc]
    found["first_filtered_ms"] = timed.ms(lambda: memory.recall(questions[0], filters=NARROW))
    for name, filters in (("narrow", NARROW), ("wide", _WIDE)):
        some = [timed.ms(lambda q=q, f=filters: memory.recall(q, filters=f)) for q in questions[1:]]  # type: ignore[misc]
        found |= _spread(name, some)
    found["vector_ids"] = [_ids(memory, q, "vector") for q in questions]
    found["hybrid_ids"] = [_ids(memory, q, "hybrid") for q in questions]
    found["degraded"] = sorted({d.part for q in questions[:3] for d in memory.recall(q).degraded})
    found["resident_after_mb"], found["most_mb"] = memory_of("VmRSS"), memory_of("VmHWM")
    memory.close()
    return found


def written(home: Path, count: int, vectors: Path) -> dict[str, Any]:
    """Single writes into a home of this size, a recall after each, and hard forgets."""
    embedder = PoolEmbedder(spec_for("minilm").load(), pool(Path(), vectors))
    timed, found = _Asked(embedder), dict[str, Any]()
    memory = Memory.open(home, embedder=embedder)
    memory.recall("what was said first?")
    writes, asks, ids = [], [], []
    for number in range(count):
        text = f"Note {number}: the parcel for number {number * 7 % 991} was left with a neighbour."
        began = time.perf_counter()
        ids.append(memory.remember(text).id)
        writes.append(1000 * (time.perf_counter() - began))
        asks.append(timed.ms(lambda n=number: memory.recall(f"where is the parcel for {n}?")))  # type: ignore[misc]
    found |= _spread("remember", writes) | _spread("recall_after_write", asks)
    # What is new has its words in memory alone: forgotten are two that were there before.
    some = memory.recall("what was said first?", top_k=_TOP).hits
    old = [hit.id for hit in some if hit.id not in set(ids)]
    began = time.perf_counter()
    memory.forget(old[0])
    found["forget_ms"] = 1000 * (time.perf_counter() - began)
    found["recall_after_forget_ms"] = timed.ms(lambda: memory.recall("who has the parcel?"))
    began = time.perf_counter()
    memory.forget(old[1])
    found["second_forget_ms"] = 1000 * (time.perf_counter() - began)
    began = time.perf_counter()
    memory.close()
    found["close_ms"] = 1000 * (time.perf_counter() - began)
    found["most_writing_mb"] = memory_of("VmHWM")
    return found


def _ids(memory: Memory, question: str, mode: Any) -> list[str]:
    return [hit.id for hit in memory.recall(question, top_k=_TOP, mode=mode)]


def _spread(name: str, times: Sequence[float]) -> dict[str, float]:
    return {f"{name}_p50_ms": percentile(times, 0.5), f"{name}_p99_ms": percentile(times, 0.99)}


def main() -> None:
    """Read the arguments, measure, tell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("home", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--write", type=int, default=0)
    parser.add_argument("--pool", type=Path, default=None, help="the folder of the pool's vectors")
    chosen = parser.parse_args()
    if chosen.write:
        print(json.dumps(written(chosen.home, chosen.write, chosen.pool)))
        return
    print(json.dumps(asked(chosen.home, json.loads(chosen.questions.read_text("utf-8")))))


if __name__ == "__main__":
    main()
