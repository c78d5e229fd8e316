"""Says of each hit how probably it answers the question: a calibrated probability.

    odds = constant + meaning · its cosine + missing · m / (n + 2) + unseen · w / (n + 2)
           + first · (is it the first) + place · log(its place) + asks · (does it only ask)
           + reading · its log-odds by a reader

where the hit holds m of the question's n words nowhere, and w of them no first candidate holds: of
a question of two words both may be other words for the same. Words that only frame a question
("tell me about …") are no words of it. Where a reader has read the hit, all weights are those named
`READ_…`, and its log-odds are bounded. Those named `ALONE_…` are for an embedder whose cosines were
not measured; without a reader nothing is known there. Facts and turns have weights of their own.

Who asks by a name, a time or an identifier alone is answered by whatever is by, of or about it: its
words are no other words for anything (`SOUGHT`).

The weights are fitted on the hits of questions that are answered in what is searched, of questions
that were never answered there, and of questions that were asked of others (`make fit`).
`python -m bench.silence --data DIR` reports reliability and the curve on what had no part in it, in
bench/results/silence.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from anaphora.rank.odds import probability_of

Lane: TypeAlias = Literal["turns", "facts"]
Weights: TypeAlias = tuple[float, ...]

LANES: Final[tuple[Lane, ...]] = get_args(Lane)

# The constant, then a weight for each feature in the order of `HitEvidence.features`.
COSINE_TURNS: Final[Weights] = (-2.5, 4.9, -0.8, -2.1, 0.3, -1.0, -0.6)
COSINE_FACTS: Final[Weights] = (-4.8, 6.9, -1.0, -3.5, 1.4, -1.0, -2.0)
READ_TURNS: Final[Weights] = (-2.0, 4.0, -0.8, -2.1, 0.3, -1.0, -0.6, 0.4)
READ_FACTS: Final[Weights] = (-1.7, 2.9, -1.0, -2.9, 1.9, -1.0, -1.0, 0.6)
ALONE_TURNS: Final[Weights] = (-1.0, -0.8, -2.1, 0.3, -1.0, -0.6, 0.5)
ALONE_FACTS: Final[Weights] = (-1.0, -1.0, -2.9, 1.9, -1.0, -1.0, 0.7)

COSINE: Final[Mapping[Lane, Weights]] = {"turns": COSINE_TURNS, "facts": COSINE_FACTS}
READ: Final[Mapping[Lane, Weights]] = {"turns": READ_TURNS, "facts": READ_FACTS}
ALONE: Final[Mapping[Lane, Weights]] = {"turns": ALONE_TURNS, "facts": ALONE_FACTS}

FACT_FLOOR: Final = 0.15
"""A memory, a note or a document that answers less probably is not shown unless the caller says
otherwise."""

TURN_FLOOR: Final = 0.05
"""The same of a turn."""

CALIBRATED_FOR: Final = "anaphora-l6:"
"""The family of embedders whose cosines were measured; others' mean something else."""

MOST: Final = 8.0
"""Log-odds beyond which a reader is not surer."""

SOUGHT: Final = 0.6
"""The least probability of a hit that is all that was asked for by a name, a time or an
identifier."""


@dataclass(frozen=True, slots=True)
class HitEvidence:
    """What tells whether one hit answers.

    `meaning` is its cosine to the question (None: not measured), `missing` and `unseen` are shares
    of the question's words as the module's formula has them, `place` is its place from 0, `asks`
    says that it only asks itself, `read` are the log-odds of a reader (None: not read). `sought`:
    it is what the question asks for by a name, a time or an identifier alone.
    """

    meaning: float | None
    missing: float
    unseen: float
    place: int
    asks: bool = False
    read: float | None = None
    sought: bool = False

    def features(self) -> tuple[float, ...]:
        """The module's features in their order, without what is not known."""
        cosine = () if self.meaning is None else (self.meaning,)
        read = () if self.read is None else (min(max(self.read, -MOST), MOST),)
        words = self.missing, self.unseen
        places = float(self.place == 0), math.log1p(self.place)
        return (*cosine, *words, *places, float(self.asks), *read)


def hit_probability(evidence: HitEvidence, lane: Lane) -> float | None:
    """The probability, 0 to 1, that a hit answers; None where neither cosine nor reader tell."""
    if evidence.meaning is None and evidence.read is None:
        return None
    weights = weights_of(evidence, lane)
    features = (1.0, *evidence.features())
    chance = probability_of(sum(w * x for w, x in zip(weights, features, strict=True)))
    return max(chance, SOUGHT) if evidence.sought else chance


def weights_of(evidence: HitEvidence, lane: Lane) -> Weights:
    """The weights that are fitted for what is known of a hit."""
    if evidence.meaning is None:
        return ALONE[lane]
    return (COSINE if evidence.read is None else READ)[lane]


def missing_share(missing: int, words: int) -> float:
    """m / (n + 2) of the module's formula."""
    return missing / (words + 2)
