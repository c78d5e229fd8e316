"""How sure is the shortcut, how often right? `python -m bench.deep_shortcut ../shared/data`

In: REALTALK and BEAM, read by their importers. Out: the weights of `rank.confidence`, fitted on
chats 1 to 5, and how they do on chats 6 to 10, which had no part in it: how often the shortcut
fires, how often the evidence is then in what it gives back, and whether hits of a probability are
right as often as it says. In bench/results/deep_shortcut.json and .md. Only questions that a
shortcut may take count; how many it may not take is reported beside them.
"""

from __future__ import annotations

import itertools
import json
import pickle
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from anaphora import Memory
from anaphora.core.analyser import STOP_WORDS, analyse, query_terms
from anaphora.deep.evidence.questions import asks_about_the_whole
from anaphora.deep.evidence.sources import MEMORY, TURNS, hit_to_source
from anaphora.deep.recall import NEEDED, SURE, best_evidence
from anaphora.rank.confidence import (
    MEMORY_WEIGHTS,
    REACH,
    TURN_WEIGHTS,
    MemoryMatch,
    TurnMatch,
    memory_confidence,
    memory_features,
    turn_confidence,
    turn_features,
)
from anaphora.values.memories import NewMemory
from bench.datasets import Haystack, haystacks
from bench.figures import Figure, machine_and_day, show, write
from bench.homes import home_of, tell_once

FIT = range(1, 6)
TOP = 10
RIDGE = {"turn": 1e-3, "memory": 1e-4}
BINS = (0.0, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, what it hit, which hits are right, and whether a shortcut gave the evidence."""

    form: str
    number: int
    whole: bool
    turns: tuple[TurnMatch, ...]
    turns_right: tuple[bool, ...]
    told: tuple[MemoryMatch, ...]
    told_right: tuple[bool, ...]
    given: bool


class _Clock:
    now = datetime(2024, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def run(data: Path, cache: Path | None = None) -> list[Figure]:
    """Ask everything, fit, report. `cache` keeps what was asked: a fit can be looked at again."""
    if cache is not None and cache.is_file():
        asked = pickle.loads(cache.read_bytes())
    else:
        asked = list(ask_all(data))
    if cache is not None:
        cache.write_bytes(pickle.dumps(asked))
    weights = fit(asked)
    figures = list(_figures([one for one in asked if one.number not in FIT]))
    show("The shortcut on chats 6 to 10", figures)
    for kind, now in (("turn", TURN_WEIGHTS), ("memory", MEMORY_WEIGHTS)):
        print(kind, [round(float(w), 2) for w in weights[kind]], "in use:", now)
    _keep(asked, weights, figures)
    return figures


def fit(asked: Sequence[Asked]) -> dict[str, Floats]:
    """The weights of turns and of memories, the constant first, by chats 1 to 5."""
    chosen = [one for one in asked if one.number in FIT and not one.whole]
    return {kind: _fitted(_rows(chosen, kind), ridge) for kind, ridge in RIDGE.items()}


def ask_all(data: Path, homes: Path | None = None) -> Iterator[Asked]:
    """Every question of every chat; with `homes` the homes of the chats are kept there."""
    for form, found in haystacks(data):
        print(form, found.number, flush=True)
        clock = _Clock()
        with (
            home_of(homes, f"shortcut-{form}-{found.number}") as home,
            Memory.open(home, clock=clock) as memory,
        ):
            yield from _ask(memory, clock, form, found, home)


def _ask(
    memory: Memory, clock: _Clock, form: str, haystack: Haystack, home: Path
) -> Iterator[Asked]:
    threads, facts = (memory.scoped(f"{form}-{haystack.number}-{k}") for k in ("t", "m"))
    (conversation,) = haystack.conversations
    row = {turn.key: place for place, turn in enumerate(conversation.turns)}
    texts = [f"{turn.speaker or turn.role}: {turn.text}" for turn in conversation.turns]

    def tell() -> None:
        threads.import_(list(haystack.conversations))
        facts.remember_many([NewMemory(text, redact=False) for text in texts if text.strip()])
        for one in (threads, facts):
            one.ready(600)

    tell_once(home, tell)
    lane = threads._services().recall_deep.lane
    for question in haystack.questions:
        gold = {row[key] for _, key in question.evidence if key in row}
        if question.left_out or not gold:
            continue
        clock.now = question.now or conversation.turns[-1].ts or clock.now
        scoped = lane.within("all_sessions")
        hits = sorted(scoped.turn_hits(question.text, TURNS), key=lambda hit: -hit.score)[:TURNS]
        name = conversation.conversation_id
        placed = tuple(TurnMatch(h.score, name, h.index, len(texts)) for h in hits)
        right = tuple(any(abs(p.index - at) <= REACH for at in gold) for p in placed)
        chances = zip(hits, turn_confidence(placed), strict=True)
        sure = [hit_to_source(hit) for hit, chance in chances if chance >= SURE]
        given = best_evidence(scoped, sure, question.text) if len(sure) >= NEEDED else ()
        told, told_right = _told(facts, question.text, {texts[at] for at in gold})
        yield Asked(
            form,
            haystack.number,
            asks_about_the_whole(question.text) is not None,
            placed,
            right,
            told,
            told_right,
            any(one.index in gold for one in given if not one.id.startswith(MEMORY)),
        )


def _told(
    facts: Memory, question: str, gold: set[str]
) -> tuple[tuple[MemoryMatch, ...], tuple[bool, ...]]:
    terms = {*query_terms(question), *STOP_WORDS}
    hits = sorted(facts.recall(question, top_k=TOP), key=lambda hit: -hit.similarity)
    told = (
        MemoryMatch(hit.similarity, len(set(analyse(hit.text)) - terms), "?" in hit.text)
        for hit in hits
    )
    return tuple(told), tuple(hit.text in gold for hit in hits)


def _rows(asked: Sequence[Asked], kind: str) -> tuple[Floats, Floats]:
    values: list[tuple[float, ...]] = []
    right: list[bool] = []
    for one in asked:
        if kind == "turn":
            values += turn_features(one.turns)[:TOP]
            right += one.turns_right[:TOP]
        else:
            values += memory_features(one.told)
            right += one.told_right
    return np.array(values), np.array(right, float)


def _fitted(rows: tuple[Floats, Floats], ridge: float) -> Floats:
    """Weights of a logistic regression by Newton's method, the constant first."""
    values, right = rows
    mean, spread = values.mean(0), values.std(0) + 1e-9
    design = np.c_[np.ones(len(values)), (values - mean) / spread]
    penalty = ridge * len(right) * np.r_[0.0, np.ones(values.shape[1])]
    weights = np.zeros(design.shape[1])
    for _ in range(100):
        p = 1 / (1 + np.exp(-design @ weights))
        slope = design.T @ (p - right) + penalty * weights
        curve = (design * (p * (1 - p))[:, None]).T @ design + np.diag(penalty)
        weights -= np.linalg.solve(curve, slope)
    plain = weights[1:] / spread
    whole: Floats = np.r_[weights[0] - plain @ mean, plain]
    return whole


def _figures(asked: Sequence[Asked]) -> Iterator[Figure]:
    for form in (*dict.fromkeys(one.form for one in asked), "both"):
        some = [one for one in asked if form in {one.form, "both"}]
        may = [one for one in some if not one.whole]
        fired = [one for one in may if _fires(one)]
        hits = [
            (p, right)
            for one in may
            for p, right in zip(turn_confidence(one.turns)[:TOP], one.turns_right, strict=False)
        ]
        sure = [right for p, right in hits if p >= SURE]
        yield Figure(f"{form}: questions", len(some))
        yield Figure(f"{form}: about the whole, never taken", len(some) - len(may))
        yield Figure(f"{form}: fired", len(fired))
        yield Figure(f"{form}: fired, evidence given back", sum(one.given for one in fired))
        yield Figure(f"{form}: hits at or above {SURE}", len(sure))
        if sure:
            yield Figure(f"{form}: share of those that are right", sum(sure) / len(sure))


def _fires(one: Asked) -> bool:
    return sum(p >= SURE for p in turn_confidence(one.turns)) >= NEEDED


def _calibration(asked: Sequence[Asked], kind: str) -> Iterator[str]:
    pairs: list[tuple[float, bool]] = []
    for one in asked:
        if kind == "turn":
            pairs += zip(turn_confidence(one.turns)[:TOP], one.turns_right[:TOP], strict=True)
        else:
            pairs += zip(memory_confidence(one.told), one.told_right, strict=True)
    for low, high in itertools.pairwise(BINS):
        inside = [(p, right) for p, right in pairs if low <= p < high]
        if inside:
            said = sum(p for p, _ in inside) / len(inside)
            was = sum(right for _, right in inside) / len(inside)
            yield f"| {kind} | {low:.1f} to {high:.1f} | {len(inside)} | {said:.2f} | {was:.2f} |"


def _keep(asked: Sequence[Asked], weights: dict[str, Floats], figures: Sequence[Figure]) -> None:
    held = [one for one in asked if one.number not in FIT and not one.whole]
    lines = [
        "# The shortcut of deep recall",
        "",
        f"{machine_and_day()}. Weights fitted on chats 1 to 5 of",
        "REALTALK and BEAM-100K; all figures are from chats 6 to 10. A hit is right if labelled",
        f"evidence is at most {REACH} turns away. The shortcut needs {NEEDED} hits at {SURE}.",
        "",
        "| what | value |",
        "|---|---:|",
        *(f"| {f.name} | {f.value:.2f} |".replace(".00 |", " |") for f in figures),
        "",
        "| hits | said to be | n | said on average | were right |",
        "|---|---|---:|---:|---:|",
        *_calibration(held, "turn"),
        *_calibration(held, "memory"),
    ]
    value = {
        "weights": {kind: [round(float(w), 2) for w in some] for kind, some in weights.items()},
        "figures": {f.name: f.value for f in figures},
    }
    write("deep_shortcut", json.dumps(value), "\n".join(lines))


if __name__ == "__main__":
    run(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None)
