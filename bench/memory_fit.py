"""What each part of the memory ranking is worth: `python -m bench.memory_fit --data DIR`.

In: REALTALK and BEAM; every turn is a memory, asked by its data set's questions. Out:
bench/results/memory_ablation.json and .md. Weights are chosen on chats 1 to 5 of both; chats 6 to
10 are reported. Each half is one namespace: the other chats are in the way, as in a user's memory.
Candidates come from the index as recall gets them; only ages and counts are made up, by chance.

How weights are chosen, by the fitting half's figures alone:
- trust in words: the best recall@10 where all memories are of now, in steps of 0.05; what is
  shipped stays where nothing is better by more than 0.01, which is within chance;
- the floor of decay: time must count, and costs recall where ages say nothing of what is asked, as
  here. The lowest floor (in steps of 0.1) that keeps 0.95 of the recall@3 without any decay;
- relevance that restating needs: it begins to count at the lowest similarity (in steps of 0.1) at
  which 0.97 of the recall without restating can be kept, and counts fully (in steps of 0.05) where
  recall is best, by the same rule as for words.

These rules are not blind: the shipped weights were set on all questions before there was this
split, and the rules were changed twice after figures of both halves had been seen (decision 0012
has what the earlier ones chose). The report half is no clean test of them.

What restating does is also shown where it says something: only what is asked for was restated, or
only the rest was, or one memory is exact, was said once, and all others were restated.

`--cache DIR` keeps the vectors, which take a minute, from one run to the next.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Final, Literal

import numpy as np

from anaphora.core.analyser import query_terms
from anaphora.embed.service import EmbedderService, spec_for
from anaphora.index.memories.index import MemoryIndex
from anaphora.index.memories.state import MemoryQuery
from anaphora.rank.memories import (
    DAY_MICROS,
    MemoryCandidates,
    Rule,
    rank_memories,
    similarity,
)
from anaphora.recall.memories import OVERFETCH
from anaphora.store.codecs import to_micros
from anaphora.store.db.engine import Database, open_database
from anaphora.store.records.store import Records
from anaphora.store.records.vectors import RecordVectors
from anaphora.values.memories import HalfLives
from bench.datasets import haystacks
from bench.figures import machine_and_day, write
from bench.memories import NOW, keep_with
from bench.memory_texts import embedded
from bench.metrics import recall_at_k, reciprocal_rank

FIT: Final = range(1, 6)
K: Final = 10
SEEDS: Final = 3
"""Drawings of ages and counts that a figure is the mean of."""
OLDEST_DAYS: Final = 365.0
RESTATED: Final = 0.4
OFTEN: Final = (0.01, 30)
"""The share of memories that were restated very often, and how often."""

KEEPS_WITH_DECAY: Final = 0.95
KEEPS_WITH_RESTATING: Final = 0.97
CHANCE: Final = 0.01
OFTEN_ENOUGH: Final = 3
"""How often a memory was restated where chance has no part in it."""
RESEMBLES: Final = 0.9
"""The similarity that memories beside an exact one have at most."""
TRUSTS: Final = tuple(step / 20 for step in range(21))
FLOORS: Final = tuple(step / 10 for step in range(11))
UNSURE: Final = (0.4, 0.5, 0.6, 0.7, 0.8)
SURE: Final = (0.8, 0.85, 0.9, 0.95, 1.0)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, its evidence as memory ids, and the candidates that the index gives."""

    form: str
    evidence: frozenset[str]
    found: MemoryCandidates


@dataclass(frozen=True, slots=True)
class Variant:
    """A ranking to measure. `mode` is that of recall; `aged` and `counted` say whether what was
    drawn by chance plays a part at all. `told` are the memories that were restated, and no others:
    the evidence, or the rest; in "exact" the most similar one becomes the evidence."""

    name: str
    rule: Rule | None = None
    mode: str = "hybrid"
    aged: bool = True
    counted: bool = True
    told: Literal["evidence", "others", "exact"] | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """Means over questions: recall@3 and @10, reciprocal rank, days of age of the first three."""

    few: float
    many: float
    first: float
    age: float


def run(data: Path, cache: Path | None = None) -> None:
    """Ask both halves, choose weights on the first, report on the second."""
    fit, report = ask_halves(data, cache)
    chosen, tried = choose(fit)
    _keep(chosen, tried, fit, report)


def ask_halves(
    data: Path, cache: Path | None = None, embedder: str = "minilm"
) -> tuple[list[Asked], list[Asked]]:
    """The questions of chats 1 to 5 and those of chats 6 to 10, with their candidates."""
    service = EmbedderService(spec_for(embedder), cache_size=0)
    with tempfile.TemporaryDirectory(prefix="anaphora-fit-") as home:
        truth = open_database(Path(home) / "anaphora.db")
        fit, report = (
            _asked(Path(home), truth, service, data, cache, first=first) for first in (True, False)
        )
        truth.close()
    return fit, report


def _asked(
    home: Path, truth: Database, embedder: EmbedderService, data: Path, cache: Path | None, *,
    first: bool,
) -> list[Asked]:  # fmt: skip
    """The questions of one half, with their candidates."""
    namespace = "fit" if first else "report"
    records, vectors = Records(truth, namespace), RecordVectors(truth, namespace)
    chats = [(form, chat) for form, chat in haystacks(data) if (chat.number in FIT) is first]
    turns = [
        (chat.namespace, c.conversation_id, turn.key, turn.text)
        for _, chat in chats
        for c in chat.conversations
        for turn in c.turns
    ]
    texts = [text for *_, text in turns]
    parts = embedded(embedder, texts, cache)
    keep_with(records, vectors, embedder.name, texts, parts)
    ids = [record.id for record in sorted(records.changed_since(-1, 2**30), key=lambda r: r.seq)]
    named = {(space, of, key): i for (space, of, key, _), i in zip(turns, ids, strict=True)}
    index = MemoryIndex(
        home / namespace, records, vectors, (embedder.name, embedder.dimensions), background=False
    )
    index.sync()
    index.settle()
    found = []
    for form, chat in chats:
        for q in chat.questions:
            evidence = frozenset(
                named[chat.namespace, *key] for key in q.evidence if (chat.namespace, *key) in named
            )
            if evidence and not q.left_out:
                found.append(Asked(form, evidence, _candidates(index, embedder, q.text)))
    index.close()
    print(f"{namespace}: {len(texts):,} memories, {len(found)} questions", flush=True)
    return found


def _candidates(index: MemoryIndex, embedder: EmbedderService, text: str) -> MemoryCandidates:
    wanted = MemoryQuery(NOW, OVERFETCH * K, embedder.query(text), query_terms(text))
    return index.candidates(wanted).columns


class _Chance:
    """Ages and counts of memories, drawn once each: the same for every ranking."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._drawn: dict[str, tuple[float, int]] = {}

    def of(self, record_id: str) -> tuple[float, int]:
        """Days since it was last said, and how often it was restated."""
        if record_id not in self._drawn:
            rng, (seldom, often) = random.Random(f"{self._rng.random()}"), OFTEN
            count = rng.choice((1, 1, 1, 2, 3)) if rng.random() < RESTATED else 0
            count = often if rng.random() < seldom else count
            self._drawn[record_id] = (rng.uniform(0.0, OLDEST_DAYS), count)
        return self._drawn[record_id]


def measure(variant: Variant, asked: Sequence[Asked]) -> Measured:
    """The means of one ranking."""
    few, many, first, age = [], [], [], []
    for seed in range(SEEDS if variant.aged or variant.counted else 1):
        chance = _Chance(seed)
        for one in map(_made_exact, asked) if variant.told == "exact" else asked:
            ranked, days = _ranked(variant, one, chance)
            few.append(recall_at_k(ranked, one.evidence, 3))
            many.append(recall_at_k(ranked, one.evidence, K))
            first.append(reciprocal_rank(ranked, one.evidence))
            age += days[:3]
    return Measured(fmean(few), fmean(many), fmean(first), fmean(age))


def _ranked(variant: Variant, asked: Asked, chance: _Chance) -> tuple[list[str], list[float]]:
    found = asked.found
    drawn = [chance.of(one) for one in found.ids]
    days = np.array([d if variant.aged else 0.0 for d, _ in drawn])
    counts = np.array([n if variant.counted else 0 for _, n in drawn], np.int64)
    if variant.told is not None:
        wanted = np.isin(found.ids, list(asked.evidence))
        counts = OFTEN_ENOUGH * (wanted == (variant.told == "evidence")).astype(np.int64)
    now = to_micros(NOW)
    assert now is not None
    when = (now - days * DAY_MICROS).astype(np.int64)
    columns = replace(found, created=when, reinforced_at=when, count=counts)
    if variant.mode == "words":
        columns = replace(columns, cosine=None)
    elif variant.mode == "meaning":
        columns = replace(columns, words=np.zeros(len(drawn)))
    scores = rank_memories(
        columns, now, HalfLives(), hybrid=variant.mode != "vector", rule=variant.rule
    )
    order = scores.order.tolist()
    return [found.ids[at] for at in order], [drawn[at][0] for at in order]


def _made_exact(asked: Asked) -> Asked:
    """The same question, where the most similar memory is all that was asked."""
    similar = similarity(asked.found.cosine, asked.found.words)
    best = int(similar.argmax())
    cosine = np.minimum(similar, RESEMBLES)
    cosine[best] = 1.0
    found = replace(asked.found, cosine=cosine, words=np.zeros(len(cosine)))
    return Asked(asked.form, frozenset((found.ids[best],)), found)


# -- choosing


def choose(fit: Sequence[Asked]) -> tuple[Rule, dict[str, list[tuple[str, float]]]]:
    """The weights that the fitting half asks for, and all that was tried."""
    tried: dict[str, list[tuple[str, float]]] = {"trust": [], "floor": [], "relevance": []}

    def recall(kind: str, name: str, variant: Variant, *, few: bool = False) -> float:
        measured = measure(variant, fit)
        value = measured.few if few else measured.many
        tried[kind].append((name, value))
        return value

    bare = Rule(floor=1.0, unsure=2.0, sure=3.0)
    trusts = {
        t: recall(
            "trust", f"{t:.2f}", Variant("", replace(bare, trust=t), aged=False, counted=False)
        )
        for t in TRUSTS
    }
    trust = _unless_better(trusts, Rule().trust)
    bare = replace(bare, trust=trust)
    floors = {
        f: recall("floor", f"{f:.1f}", Variant("", replace(bare, floor=f), counted=False), few=True)
        for f in FLOORS
    }
    floor = min(f for f in FLOORS if floors[f] >= KEEPS_WITH_DECAY * floors[1.0])
    bare = replace(bare, floor=floor)
    pairs = [(a, b) for a, b in itertools.product(UNSURE, SURE) if a < b]
    raised = {
        (a, b): recall(
            "relevance", f"{a:.2f} to {b:.2f}", Variant("", replace(bare, unsure=a, sure=b))
        )
        for a, b in pairs
    }
    enough = KEEPS_WITH_RESTATING * measure(Variant("", bare, counted=False), fit).many
    unsure = min((a for a, b in pairs if raised[a, b] >= enough), default=max(UNSURE))
    sure = _unless_better({b: raised[a, b] for a, b in pairs if a == unsure}, Rule().sure)
    return Rule(trust=trust, floor=floor, unsure=unsure, sure=sure), tried


def _unless_better(recalls: Mapping[float, float], shipped: float) -> float:
    """The value of the best recall; the shipped one where none is better by more than chance."""
    best = max(recalls, key=lambda value: recalls[value])
    return shipped if recalls[best] <= recalls.get(shipped, 0.0) + CHANCE else best


def _variants(rule: Rule) -> list[Variant]:
    return [
        Variant("cosine alone, no time (none)", Rule.bare(), "vector", aged=False, counted=False),
        Variant("words alone, no time", replace(rule), "words", aged=False, counted=False),
        Variant("cosine and words, no time", rule, aged=False, counted=False),
        Variant("the seed's formula (mode=vector)", None, "vector"),
        Variant("the seed's formula with words", replace(Rule.bare(), trust=rule.trust)),
        Variant("all (mode=hybrid)", rule),
        Variant("all, without words", rule, "meaning"),
        Variant("all, without meaning (mode=words)", rule, "words"),
        Variant("all, without decay", rule, aged=False),
        Variant("all, without restating", rule, counted=False),
        Variant("all, decay without its floor", replace(rule, floor=0.0)),
        Variant("all, restating without relevance", replace(rule, unsure=-1e6)),
        Variant("all, restating without its bound", replace(rule, bounded=False)),
    ]


def _restated(rule: Rule, asked: Sequence[Asked]) -> list[str]:
    """What restating does, as Markdown: recall@10, and how often what is exact is first."""
    without = replace(rule, unsure=2.0, sure=3.0)
    lines = ["| restating | evidence restated | the rest restated | exact first |"]
    lines.append("|---|---:|---:|---:|")
    for name, one in (
        ("none", without),
        ("shipped", rule),
        ("without its bound", replace(rule, bounded=False)),
        ("without relevance", replace(rule, unsure=-1e6)),
        ("the seed's factor", replace(rule, unsure=-math.inf, sure=-math.inf)),
    ):
        of = Variant(name, one, aged=False, counted=False)
        good = measure(replace(of, told="evidence"), asked).many
        bad = measure(replace(of, told="others"), asked).many
        exact = measure(replace(of, told="exact"), asked).first
        lines.append(f"| {name} | {good:.3f} | {bad:.3f} | {exact:.3f} |")
    return lines


def _keep(
    chosen: Rule,
    tried: dict[str, list[tuple[str, float]]],
    fit: Sequence[Asked],
    report: Sequence[Asked],
) -> None:
    shipped = Rule()
    rankings = _variants(shipped)
    if chosen != shipped:
        rankings.append(Variant("all, with what the fitting half chooses now", chosen))
    rows = [(v.name, measure(v, fit), measure(v, report)) for v in rankings]
    sets = {
        form: [(v.name, measure(v, [a for a in report if a.form == form]).many) for v in rankings]
        for form in ("realtalk", "beam")
    }
    lines = [
        "# Ablation of the memory ranking",
        "",
        f"{machine_and_day()}.",
        "Evidence recall@3 and @10, mean over questions of REALTALK and BEAM:",
        f"{len(fit)} of chats 1 to 5 (fit), {len(report)} of chats 6 to 10 (report), each half in",
        "one namespace. Ages up to a year and counts (two in five restated, one in a hundred",
        "30 times) are random and unrelated to the questions, so both only lower the scores;",
        f"means of {SEEDS} draws. With so few questions, differences under 0.03 are within",
        "noise. Generated by `python -m bench.memory_fit`.",
        "",
        "The report half is not a clean test: the shipped weights were set on all questions before",
        "this split existed, and the rules for choosing them were changed after both halves had",
        "been seen (decision 0012).",
        "",
        _of(shipped, "Shipped")
        + (" The fitting half chooses the same." if chosen == shipped else ""),
    ]
    if chosen != shipped:
        lines.append(_of(chosen, "The fitting half chooses"))
    lines += [
        "",
        "| ranking | fit @10 | report @10 | report @3 | report MRR | REALTALK @10 | BEAM @10 "
        "| age of the first 3, days |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for at, (name, first, second) in enumerate(rows):
        own = " | ".join(f"{sets[form][at][1]:.3f}" for form in sets)
        lines.append(
            f"| {name} | {first.many:.3f} | {second.many:.3f} | {second.few:.3f} "
            f"| {second.first:.3f} | {own} | {second.age:.0f} |"
        )
    lines += [
        "",
        "## The effect of restating, on the report half",
        "",
        f"All new. The evidence or the rest alone was restated {OFTEN_ENOUGH} times (recall@10),",
        f"or one memory is exact and was stated once while the rest is at most {RESEMBLES}",
        "similar and was restated (reciprocal rank of the exact one).",
        "",
        *_restated(shipped, report),
    ]
    for kind, values in tried.items():
        lines += ["", f"## Tried on the fitting half: {kind}", "", "| value | recall@10 |"]
        lines += ["|---|---:|", *(f"| {name} | {value:.3f} |" for name, value in values)]
    value = {
        "rows": {n: [vars_of(a), vars_of(b)] for n, a, b in rows},
        "tried": tried,
        "chosen": vars_of(chosen),
        "shipped": vars_of(shipped),
    }
    print("\n".join(lines))
    write("memory_ablation", json.dumps(value), "\n".join(lines))


def vars_of(value: Measured | Rule) -> dict[str, float]:
    """The fields of a value, rounded."""
    return {name: round(getattr(value, name), 4) for name in value.__dataclass_fields__}


def _of(rule: Rule, who: str) -> str:
    return (
        f"{who}: trust in words {rule.trust:g}, floor of decay {rule.floor:g}, "
        f"relevance for restating {rule.unsure:g} to {rule.sure:g}."
    )


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--cache", type=Path, default=None, help="a folder for vectors")
    chosen = parser.parse_args()
    run(chosen.data, chosen.cache)


if __name__ == "__main__":
    main()
