"""How fast turns and memories are recalled, kept and forgotten.

In: the folder of shared data (REALTALK and BEAM). Out: figures beside their targets, for turns in
bench/results/speed.json and .md, for memories in memory_speed_SIZE. Everything goes through
`Memory` with its defaults; embedding is timed inside the same calls, so that it can be taken off.

    python -m bench.speed --data DIR [--size 1000] [--only turns memories] [--cache DIR] [--profile]

`--cache` keeps the texts' vectors, which take minutes, from one run to the next. With `--profile` a
question is taken apart instead: which package needs how much of its time.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final

from anaphora import Memory
from anaphora.values.conversations import ImportedConversation
from bench.datasets import haystacks
from bench.embedder import KeptEmbedder
from bench.figures import Figure, at_most, below, keep, percentile
from bench.measuring import plain_environment, size_of
from bench.profiling import profile

SIZE: Final = 10_000
QUESTIONS: Final = 300
SINGLE: Final = 60
ROUNDS: Final = 9
PARTS: Final = ("turns", "memories")
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|\n+")
_SHORTEST: Final = 20
# Memory of a process that does nothing but open a home and recall.
_ALONE: Final = """
import json, sys
from anaphora import Memory
from bench.measuring import memory_of
with Memory.open(sys.argv[1]) as memory:
    for question in json.loads(sys.stdin.read()):
        memory.recall(question)
    print(memory_of("VmRSS"))
"""


def run(
    data: Path, size: int = SIZE, only: Sequence[str] = PARTS, cache: Path | None = None
) -> list[Figure]:
    """Fill a home of each kind, ask, write; print and keep the figures."""
    figures: list[Figure] = []
    if "turns" in only:
        figures += list(_turns(data, size, cache))
        keep("speed", f"Speed of recall over {size:,} turns", figures)
    if "memories" in only:
        of_memories = list(_memories(data, size, cache))
        keep(f"memory_speed_{size}", f"Speed of memories, {size:,} texts", of_memories)
        figures += of_memories
    return figures


def take_apart(data: Path, size: int, only: Sequence[str], cache: Path | None) -> None:
    """Print where the time of a question goes, beside its embedding, once a home is opened anew."""
    embedder, questions = KeptEmbedder(folder=cache), _questions(data)
    for question in questions:
        embedder.embed_query(question)
    for part in only:
        with tempfile.TemporaryDirectory(prefix="anaphora-bench-") as home:
            with Memory.open(home, embedder=embedder) as memory:
                if part == "turns":
                    memory.import_(_first_turns(data, size))
                else:
                    memory.remember_many(_texts(data, size))
                memory.ready()
            with Memory.open(home, embedder=embedder) as memory:
                recall = (
                    memory.recall
                    if part == "memories"
                    else partial(memory.recall_conversation, None)
                )
                recall(questions[0])
                print(f"\n## A question of {size:,} {part}\n\n{profile(recall, questions[1:])}")


def _turns(data: Path, size: int, cache: Path | None) -> Iterator[Figure]:
    conversations = _first_turns(data, size)
    questions = _questions(data)
    embedder = KeptEmbedder(folder=cache, ask_anew=True)
    with tempfile.TemporaryDirectory(prefix="anaphora-bench-") as folder:
        home = Path(folder)
        began = time.perf_counter()
        with Memory.open(home, embedder=embedder, cache_size=2 * QUESTIONS) as memory:
            memory.import_(conversations)
            memory.ready()
            yield Figure("import, embed and index", time.perf_counter() - began, "s")
            yield Figure("of that in the embedder", embedder.spent[0], "s")
            whole, bare = _asked(lambda q: memory.recall_conversation(None, q), questions, embedder)
            again, _ = _asked(lambda q: memory.recall_conversation(None, q), questions, embedder)
        yield Figure("questions", len(questions))
        name = "recall less the question's embedding, p50"
        yield at_most(name, percentile(bare, 0.5), 2, "ms")
        yield Figure("whole recall, p50", percentile(whole, 0.5), "ms")
        yield below("whole recall, p99", percentile(whole, 0.99), 25, "ms")
        yield below("repeated question, p50", percentile(again, 0.5), 1, "ms")
        words = ["conversation", "recall", questions[0], "--json"]
        arguments = ["--home", folder, *words]
        code = f"import sys; sys.argv[1:] = {arguments!r}; from anaphora.surfaces.cli import main"
        spent = _started(f"{code}; main()")
        yield below(f"one recall by the command line, {size:,} turns", spent, 1.5, "s")
    bare_start = _started("pass")
    for code in ("import anaphora", "from anaphora import Memory"):
        yield below(code, 1000 * (_started(code) - bare_start), 150, "ms")


def _memories(data: Path, size: int, cache: Path | None) -> Iterator[Figure]:
    texts, questions = _texts(data, size), _questions(data)
    embedder = KeptEmbedder(folder=cache, ask_anew=True)
    embedder.embed(texts)
    with tempfile.TemporaryDirectory(prefix="anaphora-bench-") as folder:
        home = Path(folder)
        with Memory.open(home, embedder=embedder) as memory:
            began = time.perf_counter()
            memory.remember_many(texts)
            told = len(texts) / (time.perf_counter() - began)
            yield Figure("remember_many, acknowledged", told, "texts/s")
            memory.reindex(links=False)
            known = len(texts) / (time.perf_counter() - began)
            yield Figure("remember_many, with words and vectors", known, "texts/s")
            memory.ready()
            linked = len(texts) / (time.perf_counter() - began)
            yield Figure("remember_many, with links", linked, "texts/s")
        yield Figure("on disk", size_of(home) / 1e6, "MB")
        began = time.perf_counter()
        with Memory.open(home, embedder=embedder, cache_size=2 * QUESTIONS) as memory:
            memory.recall(questions[0])
            opened = 1000 * (time.perf_counter() - began)
            yield Figure("opened, and the first recall", opened, "ms")
            whole, bare = _asked(memory.recall, questions[1:], embedder)
            again, _ = _asked(memory.recall, questions[1:], embedder)
            limit = 2 if size <= SIZE else 6
            yield at_most("recall less E, p50", percentile(bare, 0.5), limit, "ms")
            yield below("whole recall, p99", percentile(whole, 0.99), 25, "ms")
            yield below("repeated, p50", percentile(again, 0.5), 1, "ms")
            records: list[str] = []

            def remember(text: str) -> None:
                records.append(memory.remember(text).id)

            news = [f"{n} was told that {text[:200]}" for n, text in enumerate(texts[:SINGLE])]
            _, over = _asked(remember, news, embedder)
            yield at_most("remember over its embedding, p50", percentile(over, 0.5), 4, "ms")
            gone, _ = _asked(partial(memory.forget, clean=False), records[::2], embedder)
            yield Figure("forget, p50 until the rows are gone", percentile(gone, 0.5), "ms")
            memory.ready()
            clean, _ = _asked(memory.forget, records[1::2], embedder)
            yield Figure("forget, p50 until no byte is left", percentile(clean, 0.5), "ms")
            began = time.perf_counter()
        yield Figure("closed after that", time.perf_counter() - began, "s")
        alone = subprocess.run(
            [sys.executable, "-c", _ALONE, folder],
            input=json.dumps(questions[:100]),
            capture_output=True,
            text=True,
            check=True,
        )
        limit = 350 if size <= SIZE else 700
        yield below("resident memory", float(alone.stdout.split()[-1]), limit, "MB")


def _asked(
    ask: Callable[[str], object], texts: Sequence[str], embedder: KeptEmbedder
) -> tuple[list[float], list[float]]:
    """Milliseconds of each call, and the same without the time in the embedder."""
    whole, bare = [], []
    for text in texts:
        before, began = embedder.spent[0], time.perf_counter()
        ask(text)
        spent = time.perf_counter() - began
        whole.append(1000 * spent)
        bare.append(1000 * (spent - (embedder.spent[0] - before)))
    return whole, bare


def _started(code: str) -> float:
    """Seconds of a whole process that runs some code, the median of several."""
    command, spent = [sys.executable, "-c", code], []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True, env=plain_environment())
        spent.append(time.perf_counter() - began)
    return percentile(spent, 0.5)


def _first_turns(data: Path, turns: int) -> list[ImportedConversation]:
    """The first `turns` turns of the conversations of both data sets."""
    cut = []
    for _, chat in haystacks(data):
        for conversation in chat.conversations:
            cut.append(replace(conversation, turns=conversation.turns[:turns]))
            turns -= len(cut[-1].turns)
    return [conversation for conversation in cut if conversation.turns]


def _questions(data: Path) -> list[str]:
    """Different questions, evenly spread over the chats."""
    every = list(dict.fromkeys(q.text for _, chat in haystacks(data) for q in chat.questions))
    return every[:: max(1, len(every) // QUESTIONS)][:QUESTIONS]


def _texts(data: Path, size: int) -> list[str]:
    """`size` different texts: turns, then sentences of them, then two sentences on end."""
    turns = [t.text for _, chat in haystacks(data) for c in chat.conversations for t in c.turns]
    texts = dict.fromkeys(turn for turn in turns if turn.strip())
    if len(texts) < size:
        cut = [[sentence.strip() for sentence in _SENTENCE.split(turn)] for turn in turns]
        single = (each for own in cut for each in own if len(each) > _SHORTEST)
        double = (" ".join(two) for own in cut for two in pairwise(own) if all(two))
        texts = dict.fromkeys([*texts, *single, *double])
    return list(texts)[:size]


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(prog="python -m bench.speed", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder of shared data")
    parser.add_argument("--size", type=int, default=SIZE, help="turns and memories")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--cache", type=Path, help="a folder that keeps vectors")
    parser.add_argument("--profile", action="store_true", help="where a question's time goes")
    chosen = parser.parse_args()
    measure = take_apart if chosen.profile else run
    measure(chosen.data, chosen.size, chosen.only, chosen.cache)


if __name__ == "__main__":
    main()
