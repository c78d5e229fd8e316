"""Which score separates memories that answer a question from those that merely resemble it?

In: the folder of shared data (REALTALK and BEAM; every turn is a memory). Out: distributions of
the best score of related questions (asked of the memories of their own chat) and of unrelated ones
(asked of another chat of the same kind, and of another data set), and a floor: fitted on every
other chat, reported on the rest. In bench/results/memory_floor.json and .md. Ages play no part:
every memory is of now, since a floor on the composite must hold for the freshest noise.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from anaphora.embed.service import EmbedderService, spec_for
from anaphora.index.memories.index import MemoryIndex
from anaphora.recall.memories import FLOOR, MemoryRecall
from anaphora.store.db.engine import Database, open_database
from anaphora.store.records.store import Records
from anaphora.store.records.vectors import RecordVectors
from bench.datasets import SETS, Haystack, haystacks
from bench.figures import Figure, machine_and_day, percentile, show, write
from bench.memories import NOW, keep_texts

QUESTIONS = 30
"""Questions of each chat, evenly spread."""
UNRELATED_PASS = 0.12
"""Of unrelated questions of another data set, at most this share may pass the floor."""
SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, slots=True)
class Chat:
    """One chat in a namespace of its own, and its questions."""

    form: str
    half: int
    questions: tuple[str, ...]
    lane: MemoryRecall
    index: MemoryIndex


def run(data: Path) -> list[Figure]:
    """Remember every chat, ask, fit, report."""
    embedder = EmbedderService(spec_for("minilm"), cache_size=4096)
    with tempfile.TemporaryDirectory(prefix="anaphora-floor-") as home:
        truth = open_database(Path(home) / "anaphora.db")
        chats = [
            _chat(Path(home), truth, embedder, form, number, haystack)
            for form, _ in SETS
            for number, (_, haystack) in enumerate(haystacks(data, form))
        ]
        scores = {half: _scores([c for c in chats if c.half == half]) for half in (0, 1)}
        for chat in chats:
            chat.index.close()
        truth.close()
    floor = _fit(scores[0])
    figures = [Figure("floor that fits the first half", floor), Figure("published floor", FLOOR)]
    for kind, values in scores[1].items():
        passed = sum(value >= FLOOR for value in values) / len(values)
        figures.append(Figure(f"{kind}: share at or above the floor", passed))
    show("Floor of hybrid recall (second half of the chats)", figures)
    _keep(scores, figures)
    return figures


def _chat(
    home: Path, truth: Database, embedder: EmbedderService, form: str, number: int, found: Haystack
) -> Chat:
    namespace = f"{form}-{number}"
    records, vectors = Records(truth, namespace), RecordVectors(truth, namespace)
    texts = [turn.text for c in found.conversations for turn in c.turns]
    keep_texts(records, vectors, embedder, texts)
    index = MemoryIndex(
        home / namespace, records, vectors, (embedder.name, embedder.dimensions), background=False
    )
    asked = [q.text for q in found.questions if q.evidence and not q.left_out]
    step = max(1, len(asked) // QUESTIONS)
    lane = MemoryRecall(records, index, embedder, lambda: NOW)
    return Chat(form, number % 2, tuple(asked[::step][:QUESTIONS]), lane, index)


def _scores(chats: Sequence[Chat]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {"related": [], "unrelated, same kind": [], "unrelated": []}
    for number, chat in enumerate(chats):
        kin = [c for c in chats if c.form == chat.form and c is not chat]
        strangers = [c for c in chats if c.form != chat.form]
        for at, question in enumerate(chat.questions):
            found["related"].append(_best(chat, question))
            other = kin[(at + number) % len(kin)]
            found["unrelated, same kind"].append(_best(other, question))
            stranger = strangers[(at + number) % len(strangers)]
            found["unrelated"].append(_best(stranger, question))
    return found


def _best(chat: Chat, question: str) -> float:
    hits = chat.lane.recall(question, top_k=1)
    return hits[0].score if hits else 0.0


def _fit(scores: dict[str, list[float]]) -> float:
    """The lowest floor, in steps of 0.01, that lets so few unrelated questions pass."""
    values = scores["unrelated"]
    steps = (step / 100 for step in range(101))
    return next(
        floor for floor in steps if sum(v >= floor for v in values) <= UNRELATED_PASS * len(values)
    )


def _keep(scores: dict[int, dict[str, list[float]]], figures: Sequence[Figure]) -> None:
    lines = [
        "# Floor of hybrid recall",
        "",
        f"{machine_and_day()}.",
        "The best score of a question over the memories of one chat, all new.",
        "Related: its own chat. Unrelated, same kind: another chat of the same data set (people",
        "talk about the same things). Unrelated: a chat of the other data set.",
        "",
        "| chats | questions | n | " + " | ".join(f"{s:.0%}" for s in SHARES) + " |",
        "|---|---|---:|" + "---:|" * len(SHARES),
    ]
    for half, name in ((0, "first half (fit)"), (1, "second half (report)")):
        for kind, values in scores[half].items():
            cells = " | ".join(f"{percentile(values, share):.2f}" for share in SHARES)
            lines.append(f"| {name} | {kind} | {len(values)} | {cells} |")
    lines += ["", "| what | value |", "|---|---:|"]
    lines += [f"| {f.name} | {f.value:.2f} |" for f in figures]
    value = {
        "figures": {f.name: f.value for f in figures},
        "scores": {
            str(half): {kind: [round(v, 4) for v in values] for kind, values in found.items()}
            for half, found in scores.items()
        },
    }
    write("memory_floor", json.dumps(value), "\n".join(lines))
