"""How sure is the shortcut of deep recall, how often right? `python -m bench.deep_shortcut --data
DIR`.

In: REALTALK and BEAM, read by their importers. Out: the weights of `rank.confidence`, fitted on
chats 1 to 5, and on chats 6 to 10 how often the shortcut fires, and how often the evidence is then
in what it gives back. In bench/results/deep_shortcut.json and .md. Only questions that a shortcut
may take count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from anaphora import Memory
from anaphora.features.deep.evidence.questions import asks_about_the_whole
from anaphora.features.deep.evidence.sources import TURNS, hit_to_source
from anaphora.features.deep.recall import NEEDED, SURE, best_evidence
from anaphora.features.deep.services import DeepServices
from anaphora.language.analyser import STOP_WORDS, analyse, query_terms
from anaphora.rank.confidence import (
    REACH,
    MemoryMatch,
    TurnMatch,
    memory_features,
    turn_confidence,
    turn_features,
)
from anaphora.store.facts import MEMORY
from anaphora.values.memories import NewMemory
from bench.datasets import Haystack, haystacks
from bench.figures import Figure, keep, run_alone
from bench.fitting import fit_logistic
from bench.homes import home_of, tell_once
from bench.told import Clock

FIT = range(1, 6)
TOP = 10
RIDGE = {"turn": 1e-3, "memory": 1e-4}

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


def run(data: Path) -> list[Figure]:
    """Ask everything, report what was held out."""
    asked = [one for one in ask_all(data) if one.number not in FIT]
    figures = list(_figures(asked))
    keep("deep_shortcut", "The shortcut of deep recall, chats 6 to 10", figures)
    return figures


def fit(asked: Sequence[Asked]) -> dict[str, Floats]:
    """The weights of turns and of memories, the constant first, by chats 1 to 5."""
    chosen = [one for one in asked if one.number in FIT and not one.whole]
    weights: dict[str, Floats] = {}
    for kind, ridge in RIDGE.items():
        values, right = _rows(chosen, kind)
        found, constant = fit_logistic(values, right, np.ones(len(right)), ridge * len(right))
        weights[kind] = np.array([constant, *found])
    return weights


def ask_all(data: Path, homes: Path | None = None) -> Iterator[Asked]:
    """Every question of every chat; with `homes` the homes of the chats are kept there."""
    for form, found in haystacks(data):
        print(form, found.number, flush=True)
        clock = Clock()
        with (
            home_of(homes, f"shortcut-{form}-{found.number}") as home,
            Memory.open(home, clock=clock) as memory,
        ):
            yield from _ask(memory, clock, form, found, home)


def _ask(
    memory: Memory, clock: Clock, form: str, haystack: Haystack, home: Path
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
    lane = threads._services().feature(DeepServices).recall.lane
    for question in haystack.questions:
        gold = {row[key] for _, key in question.evidence if key in row}
        if not gold:
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


if __name__ == "__main__":
    run_alone("bench.deep_shortcut", __doc__, run)
