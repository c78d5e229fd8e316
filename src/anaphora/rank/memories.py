"""Ranks memories: how close one is to the question, how fresh it is, how often it was restated.

    score = similarity × decay × reinforcement

`mode="vector"` is the seed's formula to the letter:

    similarity    = max(0, 1 - d / 2), d the squared L2 distance of unit vectors: the cosine
    decay         = exp(-ln 2 / half-life of the type · days since it was last reinforced)
    reinforcement = 1 + ln(1 + times it was restated)

`mode="hybrid"` keeps the product and changes two things (docs/decisions/0012 has the
ablation). Words raise similarity: 1 - (1 - cosine)(1 - share · (0.5 + 0.4 · share⁴)), the share of
the question's IDF mass that the text matches. And relevance comes before time and count, so that
neither can make an unrelated memory pass for an answer nor hide an exact one: age takes at most
a tenth of a score, and restating takes it nearer to 1, which is what an exact answer of today
scores:

    score = 1 - (1 - x) ^ (1 + relevance · ln(1 + n)) + exact · x · ln(1 + n)

with x = similarity × decay, n the times it was restated, relevance rising from 0 at similarity 0.6
to 1 at 0.95, exact from 0 at 0.95 to 1 at 1. What the hit shows as reinforcement is score / x.
`mode="words"` is hybrid without vectors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anaphora.values.fitted import fitted
from anaphora.values.memories import HalfLives

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DAY_MICROS: Final = 86_400_000_000

_NUMBERS: Final = fitted("memories")

WORDS_TRUST: Final[float] = _NUMBERS["WORDS_TRUST"]
"""What a full match of words alone is worth. 0 (plain cosine) 0.286 recall@10 on the fitting half
of bench/memory_fit.py, 0.5: 0.435, 0.75: 0.456, this 0.452, 1: 0.451: a plateau."""

PARTIAL_TRUST: Final[float] = _NUMBERS["PARTIAL_TRUST"]
"""What each part of the words is worth where the rest is missing: people ask in other words than
the answer's, and what is shared then says little. With 0.9 the first hit is right for 0.52 of the
everyday questions of the shared stories, with 0.5 for 0.59, by the cosine alone for 0.59."""

UNREAD: Final[float] = _NUMBERS["UNREAD"]
"""What a cosine counts in a script that the embedder does not read: there all texts are close."""

DECAY_FLOOR: Final[float] = _NUMBERS["DECAY_FLOOR"]
"""What age leaves of a score at least: 0 is the seed's formula. Recall@3 over memories of random
ages up to a year is 0.305 with 0.7, 0.335 with 0.8, 0.349 with this, 0.360 without decay (the
fitting half of bench/memory_fit.py). The lowest that keeps 0.95 of the last: what holds now is put
before what it replaced by its group, so that age has only to part what is alike."""

TIMELY: Final[float] = _NUMBERS["TIMELY"]
"""What a time that the question names is worth, as a chance of its own that a memory of that time
is meant: about what it is worth to a turn."""

UNTIMELY: Final[float] = _NUMBERS["UNTIMELY"]
"""The similarity below which a time counts nothing; it counts in full from twice that on."""

UNSURE: Final[float] = _NUMBERS["UNSURE"]
SURE: Final[float] = _NUMBERS["SURE"]
"""Below the first similarity restating counts nothing, at the second all: unrelated memories reach
0.6 easily. Beyond the second a memory is an answer by itself, and restating raises it past 1.
Recall@10 on the fitting half with counts by chance: 0.436, from 0.5 on 0.430, without relevance
0.341, without any restating 0.437; without the bound 0.429, and an exact memory that was said once
then stands behind restated ones that resemble it (reciprocal rank 0.71 instead of 1)."""


@dataclass(frozen=True, slots=True)
class MemoryCandidates:
    """M candidates. Times are microseconds; `type` is a place in the half-lives' order.

    `cosine` is None where vectors cannot be had; `words` is the share (0 … 1) of the question's
    IDF mass that each text matches with its title, `titles` what the title alone matches (None: it
    is not told). `timely`: how far it is of a time that the question names (0 … 1); None
    where it names none.
    """

    ids: Sequence[str]
    cosine: Floats | None
    words: Floats
    type: Ints
    created: Ints
    reinforced_at: Ints
    count: Ints
    titles: Floats | None = None
    timely: Floats | None = None


@dataclass(frozen=True, slots=True)
class MemoryScores:
    """Scores of M candidates, each (M,), and `order`: their places, best first.

    `factors` says where the three came from: meaning (cosine), words, age (the bare decay). "title"
    is the part of the words that stands in what a memory is called.
    """

    order: NDArray[np.intp]
    score: Floats
    similarity: Floats
    decay: Floats
    reinforcement: Floats
    factors: Mapping[str, Floats]

    def explain(self, index: int) -> dict[str, float]:
        """The factors of one candidate."""
        factors = {name: float(scores[index]) for name, scores in self.factors.items()}
        return {name: factor for name, factor in factors.items() if factor or name != "title"}


@dataclass(frozen=True, slots=True)
class Rule:
    """How words, time and restating count: by the bare formula, or behind relevance.

    `trust` is what a full match of words is worth, `floor` what age leaves at least; restating
    counts from similarity `unsure` on and fully from `sure` on. `bounded` says that it takes a
    score nearer to 1 instead of multiplying it, but for what is exact.
    """

    trust: float = WORDS_TRUST
    floor: float = DECAY_FLOOR
    unsure: float = UNSURE
    sure: float = SURE
    bounded: bool = True

    @classmethod
    def bare(cls) -> Rule:
        """The seed's formula."""
        return cls(trust=0.0, floor=0.0, unsure=-math.inf, sure=-math.inf, bounded=False)

    def decay(self, bare: Floats) -> Floats:
        """What age leaves: from `floor` to 1, in the order of the bare decay."""
        return self.floor + (1.0 - self.floor) * bare

    def reinforcement(self, bare: Floats, similar: Floats, faded: Floats) -> Floats:
        """Restating, as far as the memory is relevant: a factor of `similar` · `faded`.

        Bounded, n restatements count like as many more chances to show the match; a memory that
        is not exact comes nearer to 1 by them and never past it.
        """
        if self.sure == -math.inf:
            return bare
        gain = bare - 1.0
        if not gain.any():
            return bare
        relevance = np.clip((similar - self.unsure) / (self.sure - self.unsure), 0.0, 1.0)
        if not self.bounded:
            return 1.0 + relevance * gain
        once = np.clip(similar * faded, 0.0, 1.0)
        exact = np.clip((similar - self.sure) / max(1.0 - self.sure, 1e-9), 0.0, 1.0)
        raised_chances = 1.0 - (1.0 - once) ** (1.0 + relevance * gain) + exact * once * gain
        counts = (relevance > 0.0) & (gain > 0.0)
        factor: Floats = np.divide(raised_chances, once, out=np.ones_like(once), where=counts)
        # Rounding must not make what was restated count for less.
        return np.maximum(factor, 1.0)


def decay(days: Floats, half_life: Floats) -> Floats:
    """exp(-ln 2 / half-life · days), both in days; 1 for a time that lies ahead."""
    decay_factors: Floats = np.exp(-math.log(2.0) / half_life * np.maximum(days, 0.0))
    return decay_factors


def reinforcement(count: Ints) -> Floats:
    """1 + ln(1 + count)."""
    raised_counts: Floats = 1.0 + np.log1p(np.maximum(count, 0).astype(np.float64))
    return raised_counts


def similarity(cosine: Floats | None, words: Floats | None, trust: float = WORDS_TRUST) -> Floats:
    """Similarity 0 … 1 from cosine and the share of matched words, either of which may lack.

    As if each were the chance that it alone shows the match: 1 - (1 - cosine)(1 - worth), the worth
    of all words `trust`, of some `PARTIAL_TRUST` for each part of their weight.
    """
    miss_chance: Floats | float = 1.0
    if cosine is not None:
        miss_chance = 1.0 - np.clip(cosine, 0.0, 1.0)
    if words is not None:
        # Words alone decide nothing but their own order.
        least_trust = trust if cosine is None else min(PARTIAL_TRUST, trust)
        miss_chance = miss_chance * (1.0 - words * (least_trust + (trust - least_trust) * words**4))
    # Six digits: what differs behind them is the order of additions, and would decide ties.
    similar: Floats = np.round(1.0 - np.asarray(miss_chance, np.float64), 6)
    return similar


def rank_memories(
    candidates: MemoryCandidates,
    now: int,
    half_lives: HalfLives,
    *,
    hybrid: bool = True,
    rule: Rule | None = None,
) -> MemoryScores:
    """Score candidates at `now` (microseconds) and order them; ties newest first, then by id.

    `hybrid=False` is the seed's formula over cosines. `rule` replaces the rule of the mode.
    """
    c = candidates
    rule = rule or (Rule() if hybrid else Rule.bare())
    similar = similarity(c.cosine, c.words if hybrid else None, rule.trust)
    if hybrid and c.timely is not None and c.timely.any():
        # As for turns: being noted then answers nothing by itself.
        evident = np.clip((similar - UNTIMELY) / UNTIMELY, 0.0, 1.0)
        similar = np.round(1.0 - (1.0 - similar) * (1.0 - TIMELY * evident * c.timely), 6)
    days = (now - c.reinforced_at) / DAY_MICROS
    # In the order of the type codes.
    days_by_type = [half_lives.episodic, half_lives.semantic, half_lives.procedural]
    age = decay(days, np.array(days_by_type, np.float64)[c.type])
    decay_factors = rule.decay(age)
    restated = reinforcement(c.count)
    reinforcements = rule.reinforcement(restated, similar, decay_factors)
    score = similar * decay_factors * reinforcements
    factors = {"age": age, "restated": restated}
    if c.cosine is not None:
        factors["meaning"] = np.clip(c.cosine, 0.0, 1.0)
    if hybrid:
        factors["words"] = c.words
        if c.titles is not None:
            factors["title"] = c.titles
    # What is dated in the future came no later than now.
    order = np.lexsort((np.array(c.ids, dtype=np.str_), -np.minimum(c.created, now), -score))
    return MemoryScores(order, score, similar, decay_factors, reinforcements, factors)
