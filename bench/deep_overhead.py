"""What deep recall costs beside its model: a whole loop over 20,000 real turns, sandbox included.

In: the folder of shared data (REALTALK twice, BEAM). Out: figures beside its target,
also in bench/results/deep_overhead.json and .md. The model is a script that answers at once, so
that what is left is our own time: scope, first searches, history, sandbox, host calls, checks.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from anaphora import Memory
from anaphora.deep.evidence.scope import NamespaceEvidence, ScopedEvidence
from anaphora.deep.loop import DeepLoop
from anaphora.deep.models.base import Message
from anaphora.deep.models.scripted import ScriptedModel
from anaphora.deep.sandbox.monty import MontyEngine
from anaphora.values.conversations import ImportedConversation
from anaphora.values.deep import Scope
from bench.datasets import haystacks
from bench.figures import Figure, at_most, keep, percentile

TURNS = 20_000
QUESTIONS = 60
WARM_UP = 5
LIMIT_MS = 50.0

# What a model does in most questions: look twice, read around the best hit, answer.
LOOK = """```python
hits = search(question, limit=20)
more = search(question, limit=10, speaker=hits[0]["speaker"])
best = [h for h in hits if h["kind"] == "turn"][0]
near = load_transcript(best["conversation"], max(0, best["index"] - 3), best["index"] + 4)
for t in near:
    print(t["id"], t["ts"], t["speaker"], t["text"][:200])
```"""
ANSWER = """```python
submit(best["text"][:200], [best["id"]])
```"""


def run(data: Path) -> list[Figure]:
    """Index the turns in a temporary home, ask in every scope; print and keep the figures."""
    conversations, questions = _material(data)
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="anaphora-bench-") as home, Memory.open(home) as memory:
        memory.import_(conversations)
        memory.ready()
        lane = evidence_of(memory)
        turns = sum(len(one.turns) for one in conversations)
        figures.append(Figure("turns", turns))
        scopes: tuple[Scope, ...] = ("all_sessions", "recent_sessions")
        for scope in scopes:
            figures += _asked(lane, questions, scope)
        figures += _parts(lane, questions)
    keep("deep_overhead", f"Deep recall without the model's time, {TURNS:,} turns", figures)
    return figures


def evidence_of(memory: Memory) -> NamespaceEvidence:
    """The evidence of an open memory."""
    return memory._services().recall_deep.lane


def _material(data: Path) -> tuple[list[ImportedConversation], list[str]]:
    chats: list[ImportedConversation] = []
    questions: list[str] = []
    for _, found in (*haystacks(data), *haystacks(data, "realtalk")):
        chats += found.conversations
        questions += [one.text for one in found.questions]
    known: set[str] = set()
    left, kept = TURNS, []
    for chat in chats:
        name = chat.conversation_id
        one = replace(chat, turns=chat.turns[:left])
        if name in known:
            one = replace(one, conversation_id=f"{name}-again", key=f"{chat.key}-again")
        known.add(name)
        left -= len(one.turns)
        kept.append(one)
    step = max(1, len(questions) // (QUESTIONS + WARM_UP))
    return [one for one in kept if one.turns], questions[::step][: QUESTIONS + WARM_UP]


def _asked(lane: NamespaceEvidence, questions: Sequence[str], scope: Scope) -> Iterator[Figure]:
    times, busy = [], []
    for question in questions:
        loop = DeepLoop(_scripted(), None, MontyEngine())
        began, worked = time.perf_counter(), time.process_time()
        result = loop.run(question, lane.within(scope))
        times.append((time.perf_counter() - began) * 1000)
        busy.append((time.process_time() - worked) * 1000)
        if not result.complete:
            raise SystemExit(f"no answer to {question!r}: {result.steps}")
    kept = times[WARM_UP:]
    yield at_most(f"{scope}: a whole question, p50", percentile(kept, 0.5), LIMIT_MS, "ms")
    yield Figure(f"{scope}: a whole question, p95", percentile(kept, 0.95), "ms")
    # On a machine that does other work too, this is what does not wait for it.
    yield Figure(f"{scope}: of it processor time, p50", percentile(busy[WARM_UP:], 0.5), "ms")


def _parts(lane: NamespaceEvidence, questions: Sequence[str]) -> Iterator[Figure]:
    """Where the time goes, p50 of each part in the scope of all sessions."""
    spent: dict[str, list[float]] = {}
    with _timing(spent):
        for question in questions:
            DeepLoop(_scripted(), None, MontyEngine()).run(question, lane.within("all_sessions"))
    for name, values in spent.items():
        calls = len(values) // len(questions)
        each = [sum(values[at : at + calls]) for at in range(0, len(values), max(1, calls))]
        yield Figure(f"of it {name} ({calls} calls), p50", percentile(each, 0.5) * 1000, "ms")


@contextmanager
def _timing(spent: dict[str, list[float]]) -> Iterator[None]:
    """Time the parts of a loop while the block runs."""
    from anaphora.deep.sandbox.monty import MontySession

    places: list[tuple[type, str, str]] = [
        (NamespaceEvidence, "within", "scope"),
        (ScopedEvidence, "search", "search"),
        (ScopedEvidence, "history", "history"),
        (ScopedEvidence, "sessions", "list of sessions"),
        (MontyEngine, "open", "sandbox start"),
        (MontySession, "run", "runs, host calls included"),
        (MontySession, "close", "sandbox end"),
    ]
    originals = [(owner, name, getattr(owner, name)) for owner, name, _ in places]
    for owner, name, label in places:
        setattr(owner, name, _timed(getattr(owner, name), spent.setdefault(label, [])))
    try:
        yield
    finally:
        for owner, name, original in originals:
            setattr(owner, name, original)


def _timed(function: Callable[..., object], into: list[float]) -> Callable[..., object]:
    def timed(*args: object, **kwargs: object) -> object:
        began = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            into.append(time.perf_counter() - began)

    return timed


def _scripted() -> ScriptedModel:
    replies = iter((LOOK, ANSWER))

    def following(messages: Sequence[Message]) -> str:
        del messages
        return next(replies)

    return ScriptedModel(following)
