"""Says how probably anything that was found answers a question, and how probably each hit does.

That anything does (n words in the question, w of them held by none of the first candidates):

    odds = constant + meaning · best cosine + unseen · w / (n + 2)
           + few · scarcity + reading · best log-odds

That a hit does, if anything does (it holds m of the question's words nowhere):

    odds = constant + meaning · its cosine + missing · m / (n + 2) + first · (is it the first)
           + place · log(its place) + asks · (does it only ask)
           + lead · (its cosine less the best of the others) + few · scarcity
           + reading · its log-odds
           + min(0, abundance · (many + of_meaning · its cosine
                                 + of_named · (is it by a speaker whom the question names)))

A hit's own probability is the product. Of a question of two words both may be other words for the
same, so a share has n + 2; words that only frame a question ("tell me about …") are none of it. The
log-odds are those of a reader; where one has read the candidates, the weights are those named
`READ_…`, and they are bounded. `scarcity` is 1 where there is one statement and 0 from `ENOUGH` on,
by the logarithm of their number: among few the best is less near, and fewer words are held by
chance. Without a reader it says nothing of whether anything answers (`few` is 0), and with one no
more than that strange questions get silence in a home of one statement, though the fit asks for
three times as much. `abundance` is 0 up to `USUAL` statements and 1 more for each ten times as
many: the best of so many is near by chance, so a hit's own cosine counts more, and all else less
unless it is by a speaker that the question names. Those named `ALONE_…` are for an embedder whose
cosines were not measured: without a reader nothing is known there.

Of a question by a name, a time or an identifier alone ("what did Mara say on Tuesday?") no cosine
tells anything: what is by, of or about it answers it with `SOUGHT` at least.

All weights are fitted (`make fit`) on questions that are answered in what is searched, on questions
that were never answered there, and on questions that were asked of others.
`python -m bench.silence --data DIR` reports reliability and silence on what had no part in it, in
bench/results/silence.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from anaphora.rank.odds import probability_of
from anaphora.values.fitted import fitted

Lane: TypeAlias = Literal["turns", "facts"]
Weights: TypeAlias = tuple[float, ...]
LANES: Final[tuple[Lane, ...]] = get_args(Lane)

_NUMBERS: Final = fitted("silence")

CONSTANT: Final[float] = _NUMBERS["CONSTANT"]
MEANING: Final[float] = _NUMBERS["MEANING"]
UNSEEN: Final[float] = _NUMBERS["UNSEEN"]

READ_CONSTANT: Final[float] = _NUMBERS["READ_CONSTANT"]
READ_MEANING: Final[float] = _NUMBERS["READ_MEANING"]
READ_UNSEEN: Final[float] = _NUMBERS["READ_UNSEEN"]
READ_FEW: Final[float] = _NUMBERS["READ_FEW"]
READ_ODDS: Final[float] = _NUMBERS["READ_ODDS"]

ALONE_CONSTANT: Final[float] = _NUMBERS["ALONE_CONSTANT"]
ALONE_UNSEEN: Final[float] = _NUMBERS["ALONE_UNSEEN"]
ALONE_FEW: Final[float] = _NUMBERS["ALONE_FEW"]
ALONE_ODDS: Final[float] = _NUMBERS["ALONE_ODDS"]

# Of a hit: the constant, meaning, missing, first, place, asks, lead, few and, where one read, the
# reader's.
HIT_TURNS: Final[Weights] = _NUMBERS["HIT_TURNS"]
HIT_FACTS: Final[Weights] = _NUMBERS["HIT_FACTS"]
READ_HIT_TURNS: Final[Weights] = _NUMBERS["READ_HIT_TURNS"]
READ_HIT_FACTS: Final[Weights] = _NUMBERS["READ_HIT_FACTS"]
ALONE_HIT_TURNS: Final[Weights] = _NUMBERS["ALONE_HIT_TURNS"]
ALONE_HIT_FACTS: Final[Weights] = _NUMBERS["ALONE_HIT_FACTS"]

CROWD: Final[Weights] = _NUMBERS["CROWD"]
"""What each tenfold of statements adds to a hit's odds, where it takes off: the constant, meaning
and whether the hit is by a named speaker. The same for both lanes, read or not."""

TURN_FLOOR: Final[float] = _NUMBERS["TURN_FLOOR"]
"""Below this probability an answer from turns is silent unless the caller says otherwise: at most 3
of a hundred questions that can be answered are lost, in the mean over the sets it is fitted on."""

FACT_FLOOR: Final[float] = _NUMBERS["FACT_FLOOR"]
"""The same of memories, notes and documents; what it costs is in bench/results/silence.md."""

FLOOR_OF: Final[Mapping[Lane, float]] = {"turns": TURN_FLOOR, "facts": FACT_FLOOR}

LEAST: Final[float] = _NUMBERS["LEAST"]
"""A hit that answers less probably is not shown, though others are."""

FIRST: Final[float] = _NUMBERS["FIRST"]
"""Nor is any where the likeliest answers less probably: something may answer, but none of these."""

TAIL: Final[float] = _NUMBERS["TAIL"]
"""Nor is a hit that answers less probably than this share of the likeliest: there the list has
fallen away."""

TITLE_MEANING: Final[float] = _NUMBERS["TITLE_MEANING"]
"""What a title that holds all words of the question counts as a cosine at least. It stands for a
short answer below it ("6432"), whose own cosine is that of anything."""

SOUGHT: Final[float] = _NUMBERS["SOUGHT"]
"""The least probability of a hit that is all that was asked for by a name, a time or an
identifier."""

MOST: Final = 8.0
"""Log-odds beyond which a reader is not surer."""

ENOUGH: Final = 18
"""Statements from which on there are not few; so many are looked at."""

USUAL: Final = 1_500
"""Statements up to which there are not many; the largest home that most weights are fitted in."""

CALIBRATED_FOR: Final = "anaphora-l6:"
"""The family of embedders whose cosines were measured; others' mean something else."""


@dataclass(frozen=True, slots=True)
class HitEvidence:
    """What tells whether one hit answers, if anything does.

    `meaning` is its cosine to the question and `lead` how far it lies above the best of the others
    (both 0 where cosines were not measured), `missing` the share of the question's words that it
    holds nowhere, `place` its place from 0, `few` the `scarcity` of its home. `asks`: it only
    asks itself. `read` are the log-odds of a reader (None: not read). `sought`: it is all that was
    asked for by a name, a time or an identifier. `many` is the `abundance` of what was searched,
    `named`, among many: it is by a speaker whose name stands in the question.
    """

    meaning: float
    missing: float
    place: int
    asks: bool = False
    lead: float = 0.0
    few: float = 0.0
    many: float = 0.0
    named: bool = False
    read: float | None = None
    sought: bool = False

    def features(self) -> Weights:
        """The values of the module's formula in the order of its weights, without the constant."""
        values = (
            self.meaning,
            self.missing,
            float(self.place == 0),
            math.log1p(self.place),
            float(self.asks),
            self.lead,
            self.few,
        )
        return values if self.read is None else (*values, bounded(self.read))

    def crowd_features(self) -> Weights:
        """The values of what many statements take off, in the order of its weights."""
        return self.many, self.many * self.meaning, self.many * self.named


def hit_probability(
    answered: float, evidence: HitEvidence, lane: Lane, *, calibrated: bool = True
) -> float:
    """The probability, 0 to 1, that a hit answers, where anything does with that of `answered`.

    `calibrated` says whether the cosines were measured (`CALIBRATED_FOR`).
    """
    weights = HIT_WEIGHTS[calibrated, evidence.read is not None][lane]
    features = (1.0, *evidence.features())
    odds = sum(w * x for w, x in zip(weights, features, strict=True))
    if calibrated:
        features = evidence.crowd_features()
        odds += min(0.0, sum(w * x for w, x in zip(CROWD, features, strict=True)))
    share = probability_of(odds)
    return max(answered * share, SOUGHT if evidence.sought else 0.0)


HIT_WEIGHTS: Final[Mapping[tuple[bool, bool], Mapping[Lane, Weights]]] = {
    (True, False): {"turns": HIT_TURNS, "facts": HIT_FACTS},
    (True, True): {"turns": READ_HIT_TURNS, "facts": READ_HIT_FACTS},
    (False, True): {"turns": ALONE_HIT_TURNS, "facts": ALONE_HIT_FACTS},
    # What was not read among hits that were: as the reader's constant has it.
    (False, False): {"turns": ALONE_HIT_TURNS[:-1], "facts": ALONE_HIT_FACTS[:-1]},
}
"""By whether cosines were measured and whether the hit was read."""


def word_share(words: int, of: int) -> float:
    """w / (n + 2) of the module's formulas."""
    return words / (of + 2)


def bounded(read: float) -> float:
    """A reader's log-odds, no surer than `MOST`."""
    return min(max(read, -MOST), MOST)


def scarcity(statements: int) -> float:
    """How few so many statements are: from 1 (one) to 0 (`ENOUGH`)."""
    return max(0.0, 1.0 - math.log(max(statements, 1)) / math.log(ENOUGH))


def abundance(statements: int) -> float:
    """How many so many statements are: 0 up to `USUAL`, and 1 more for each ten times as many."""
    return max(0.0, math.log10(max(statements, 1) / USUAL))


def probability(
    meaning: float | None, unseen: float, read: float | None = None, few: float = 0.0
) -> float:
    """That anything answers, by the module's first formula: of the best cosine (None: not
    measured), the share of words that nothing holds, what a reader made of the best one (None:
    nothing was read), and the `scarcity` of statements.

    Raises ValueError where there is neither a cosine nor a reading.
    """
    if read is None:
        if meaning is None:
            raise ValueError("neither a cosine nor a reading")
        odds = CONSTANT + MEANING * meaning + UNSEEN * unseen
    elif meaning is None:
        odds = ALONE_CONSTANT + ALONE_UNSEEN * unseen + ALONE_FEW * few
        odds += ALONE_ODDS * bounded(read)
    else:
        odds = READ_CONSTANT + READ_MEANING * meaning + READ_UNSEEN * unseen
        odds += READ_FEW * few + READ_ODDS * bounded(read)
    return probability_of(odds)
