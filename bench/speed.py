"""How fast recall answers over 10,000 real turns.

In: the folder of shared data (REALTALK and BEAM). Out: figures beside their targets,
also in bench/results/speed.json and .md. Everything goes through `Memory` with its defaults
(6 hits, 2,500 tokens), asked of all threads; embedding is timed inside the same calls, so that it
can be taken off.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path

from anaphora import Memory
from anaphora.embed.service import spec_for
from anaphora.values.conversations import ImportedConversation
from bench import imports_cost
from bench.datasets import haystacks
from bench.figures import Figure, at_most, below, keep, percentile
from bench.timed import TimedEmbedder

TURNS = 10_000
QUESTIONS = 300
WARM_UP = 10


def run(data: Path) -> list[Figure]:
    """Index the turns in a temporary home, ask, start processes; print and keep the figures."""
    chats = [chat for _, chat in haystacks(data)]
    conversations = _cut([c for chat in chats for c in chat.conversations], TURNS)
    texts = [q.text for chat in chats for q in chat.questions]
    questions = list(dict.fromkeys(texts[:: max(1, len(texts) // QUESTIONS)]))[:QUESTIONS]
    with tempfile.TemporaryDirectory(prefix="anaphora-bench-") as home:
        figures = _indexing(Path(home), conversations)
        figures += _asking(Path(home), questions)
        figures.append(imports_cost.one_shot(Path(home), questions[0], TURNS))
    figures += imports_cost.run()
    keep("speed", f"Speed of recall over {TURNS:,} turns", figures)
    return figures


def _cut(conversations: list[ImportedConversation], turns: int) -> list[ImportedConversation]:
    """The first `turns` turns of the conversations."""
    kept = []
    for conversation in conversations:
        kept.append(replace(conversation, turns=conversation.turns[:turns]))
        turns -= len(kept[-1].turns)
    if turns > 0:
        raise SystemExit(f"the shared data is {turns:,} turns short of {TURNS:,}")
    return [conversation for conversation in kept if conversation.turns]


def _indexing(home: Path, conversations: list[ImportedConversation]) -> list[Figure]:
    timed = TimedEmbedder(spec_for("minilm").load())
    began = time.perf_counter()
    with Memory.open(home, conversations_dir=home / "conversations", embedder=timed) as memory:
        memory.import_(conversations)
        memory.ready()
        spent = time.perf_counter() - began
    return [
        Figure("import, embed and index", spent, "s"),
        Figure("of that in the embedder", timed.seconds, "s"),
        Figure("embedding", timed.texts / timed.seconds, "texts/s"),
    ]


def _asking(home: Path, questions: list[str]) -> list[Figure]:
    timed = TimedEmbedder(spec_for("minilm").load())
    cache = 2 * len(questions)
    whole, bare, repeated = [], [], []
    with Memory.open(
        home, conversations_dir=home / "conversations", embedder=timed, cache_size=cache
    ) as memory:
        memory.ready()
        for number in range(WARM_UP):
            memory.recall_conversation(None, f"what was said about number {number}?")
        for question in questions:
            before, began = timed.query_seconds, time.perf_counter()
            memory.recall_conversation(None, question)
            spent = time.perf_counter() - began
            whole.append(1000 * spent)
            bare.append(1000 * (spent - (timed.query_seconds - before)))
        for question in questions:
            began = time.perf_counter()
            memory.recall_conversation(None, question)
            repeated.append(1000 * (time.perf_counter() - began))
    return [
        Figure("questions", len(questions)),
        Figure("embedding a question, p50", percentile(_less(whole, bare), 0.5), "ms"),
        at_most("recall less the question's embedding, p50", percentile(bare, 0.5), 2, "ms"),
        Figure("recall less the question's embedding, p99", percentile(bare, 0.99), "ms"),
        Figure("whole recall, p50", percentile(whole, 0.5), "ms"),
        below("whole recall, p99", percentile(whole, 0.99), 25, "ms"),
        below("repeated question, p50", percentile(repeated, 0.5), 1, "ms"),
        Figure("repeated question, p99", percentile(repeated, 0.99), "ms"),
    ]


def _less(whole: list[float], bare: list[float]) -> list[float]:
    return [a - b for a, b in zip(whole, bare, strict=True)]
