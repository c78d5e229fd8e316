"""The weights of the memory ranking, chosen on chats 1 to 5 of REALTALK and BEAM (`make fit`).

Every turn is a memory, asked by its data set's questions; chats 6 to 10 are reported. Each half is
one namespace: the other chats are in the way, as in a user's memory. Candidates come from the index
as recall gets them; only ages and counts are made up, by chance.

How weights are chosen, by the fitting half's figures alone:
- trust in words: the best recall@10 where all memories are of now, in steps of 0.05; what is
  shipped stays where nothing is better by more than 0.01, which is within chance;
- the floor of decay: time must count, and costs recall where ages say nothing of what is asked, as
  here. The lowest floor (in steps of 0.1) that keeps 0.95 of the recall@3 without any decay;
- relevance that restating needs: it begins to count at the lowest similarity (in steps of 0.1) at
  which 0.97 of the recall without restating can be kept, and counts fully (in steps of 0.05) where
  recall is best, by the same rule as for words.

These rules are not blind: the shipped weights were set on all questions before there was this
split, and the rules were changed twice after figures of both halves had been seen.
"""

from __future__ import annotations

import itertools
import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Final

import numpy as np

from anaphora.embed.base import Vectors
from anaphora.embed.service import EmbedderService, spec_for
from anaphora.errors import EmbeddingError
from anaphora.index.memories.index import MemoryIndex
from anaphora.index.memories.state import MemoryQuery
from anaphora.language.analyser import query_terms
from anaphora.rank.memories import DAY_MICROS, MemoryCandidates, Rule, rank_memories
from anaphora.recall.memories import OVERFETCH
from anaphora.store.codecs import to_micros
from anaphora.store.db.engine import Database, open_database
from anaphora.store.records.store import Records
from anaphora.store.records.vectors import RecordVectors
from anaphora.values.memories import HalfLives
from bench.datasets import haystacks
from bench.embedder import KeptEmbedder
from bench.fitting import unless_better
from bench.memories import NOW, keep_with
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
TRUSTS: Final = tuple(step / 20 for step in range(21))
FLOORS: Final = tuple(step / 10 for step in range(11))
UNSURE: Final = (0.4, 0.5, 0.6, 0.7, 0.8)
SURE: Final = (0.8, 0.85, 0.9, 0.95, 1.0)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, its evidence as memory ids, and the candidates that the index gives."""

    evidence: frozenset[str]
    found: MemoryCandidates


@dataclass(frozen=True, slots=True)
class Variant:
    """A ranking to measure: `aged` and `counted` say whether ages and counts play a part at all."""

    rule: Rule
    aged: bool = True
    counted: bool = True


@dataclass(frozen=True, slots=True)
class Measured:
    """Means over questions: recall@3 and @10, reciprocal rank."""

    few: float
    many: float
    first: float


def ask_halves(
    data: Path, cache: Path | None = None, embedder: str = "minilm"
) -> tuple[list[Asked], list[Asked]]:
    """The questions of chats 1 to 5 and those of chats 6 to 10, with their candidates."""
    # As the product asks it: texts without the marks that end them.
    service = EmbedderService(spec_for(KeptEmbedder(embedder, cache)), cache_size=0)
    with tempfile.TemporaryDirectory(prefix="anaphora-fit-") as home:
        truth = open_database(Path(home) / "anaphora.db")
        fit, report = (
            _asked(Path(home), truth, service, data, first=first) for first in (True, False)
        )
        truth.close()
    return fit, report


def _asked(
    home: Path, truth: Database, embedder: EmbedderService, data: Path, *, first: bool
) -> list[Asked]:
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
    keep_with(records, vectors, embedder.name, texts, _vectors(embedder, texts))
    ids = [record.id for record in sorted(records.changed_since(-1, 2**30), key=lambda r: r.seq)]
    named = {(space, of, key): i for (space, of, key, _), i in zip(turns, ids, strict=True)}
    index = MemoryIndex(
        home / namespace, records, vectors, (embedder.name, embedder.dimensions), background=False
    )
    index.sync()
    index.settle()
    found = []
    for _, chat in chats:
        for q in chat.questions:
            evidence = frozenset(
                named[chat.namespace, *key] for key in q.evidence if (chat.namespace, *key) in named
            )
            if evidence:
                found.append(Asked(evidence, _candidates(index, embedder, q.text)))
    index.close()
    print(f"{namespace}: {len(texts):,} memories, {len(found)} questions", flush=True)
    return found


def _vectors(embedder: EmbedderService, texts: Sequence[str]) -> list[Vectors]:
    """The vectors of each text's parts. Raises `EmbeddingError`."""
    rows = []
    for vectors in embedder.embed(texts):
        if isinstance(vectors, EmbeddingError):
            raise vectors
        rows.append(vectors)
    return rows


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
    few, many, first = [], [], []
    for seed in range(SEEDS if variant.aged or variant.counted else 1):
        chance = _Chance(seed)
        for one in asked:
            ranked = _ranked(variant, one.found, chance)
            few.append(recall_at_k(ranked, one.evidence, 3))
            many.append(recall_at_k(ranked, one.evidence, K))
            first.append(reciprocal_rank(ranked, one.evidence))
    return Measured(fmean(few), fmean(many), fmean(first))


def _ranked(variant: Variant, found: MemoryCandidates, chance: _Chance) -> list[str]:
    drawn = [chance.of(record) for record in found.ids]
    days = np.array([age if variant.aged else 0.0 for age, _ in drawn])
    counts = np.array([count if variant.counted else 0 for _, count in drawn], np.int64)
    now = to_micros(NOW)
    assert now is not None
    when = (now - days * DAY_MICROS).astype(np.int64)
    columns = replace(found, created=when, reinforced_at=when, count=counts)
    scores = rank_memories(columns, now, HalfLives(), rule=variant.rule)
    return [found.ids[at] for at in scores.order.tolist()]


# -- choosing


def choose(fit: Sequence[Asked]) -> Rule:
    """The weights that the fitting half asks for."""
    bare = Rule(floor=1.0, unsure=2.0, sure=3.0)
    trusts = {
        trust: measure(Variant(replace(bare, trust=trust), aged=False, counted=False), fit).many
        for trust in TRUSTS
    }
    bare = replace(bare, trust=unless_better(trusts, Rule().trust, CHANCE))
    floors = {
        floor: measure(Variant(replace(bare, floor=floor), counted=False), fit).few
        for floor in FLOORS
    }
    floor = min(each for each in FLOORS if floors[each] >= KEEPS_WITH_DECAY * floors[1.0])
    bare = replace(bare, floor=floor)
    pairs = [(low, high) for low, high in itertools.product(UNSURE, SURE) if low < high]
    raised = {
        (low, high): measure(Variant(replace(bare, unsure=low, sure=high)), fit).many
        for low, high in pairs
    }
    enough = KEEPS_WITH_RESTATING * measure(Variant(bare, counted=False), fit).many
    unsure = min((low for low, high in pairs if raised[low, high] >= enough), default=max(UNSURE))
    highest = {high: raised[low, high] for low, high in pairs if low == unsure}
    return replace(bare, unsure=unsure, sure=unless_better(highest, Rule().sure, CHANCE))
