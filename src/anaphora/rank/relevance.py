"""Says which hits are worth putting into a prompt that did not ask for any.

    odds = constant + answers · log odds of its score + first · (is it the first)
           + lead · (its words, meaning and context less the best of the others)
           + covers · (the share of the prompt's words that it has, less the best of the others)
           + reading · log odds that it answers, where a reader has read it

Where nobody asked, a wrong hit costs more than a missed one: what is worth it stands out among the
hits. Fifteen signals were tried; the whole score of the lane is a little better on these data,
whose questions name who speaks, and worse on prompts that do not. The weights are fitted on chats 1
to 5 of two data sets; `python -m bench.injection --data DIR` fits them anew and reports what they
do on the others, in bench/results/injection.md. What was read has weights of its own, those named
`READ_…`. Memories are few and say what they mean: of them the best count that are likely to answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from anaphora.rank.odds import log_odds_of, probability_of
from anaphora.values.fitted import fitted

_NUMBERS: Final = fitted("unasked")

CONSTANT: Final[float] = _NUMBERS["CONSTANT"]
ANSWERS: Final[float] = _NUMBERS["ANSWERS"]
FIRST: Final[float] = _NUMBERS["FIRST"]
LEAD: Final[float] = _NUMBERS["LEAD"]
COVERS: Final[float] = _NUMBERS["COVERS"]

READ_CONSTANT: Final[float] = _NUMBERS["READ_CONSTANT"]
READ_ANSWERS: Final[float] = _NUMBERS["READ_ANSWERS"]
READ_FIRST: Final[float] = _NUMBERS["READ_FIRST"]
READ_LEAD: Final[float] = _NUMBERS["READ_LEAD"]
READ_COVERS: Final[float] = _NUMBERS["READ_COVERS"]
READ_ODDS: Final[float] = _NUMBERS["READ_ODDS"]

THRESHOLD: Final[float] = _NUMBERS["THRESHOLD"]
"""The probability from which a turn is worth it."""

READ_THRESHOLD: Final[float] = _NUMBERS["READ_THRESHOLD"]
"""The same for a turn that was read: on chats 1 to 5, six of ten are evidence from there on."""

MEMORY_THRESHOLD: Final[float] = _NUMBERS["MEMORY_THRESHOLD"]
"""The probability to answer from which a memory is worth it."""
MOST_MEMORIES: Final = 2

MEMORY_EVIDENCE: Final[float] = _NUMBERS["MEMORY_EVIDENCE"]
"""The cosine of a memory and half of its share of the prompt's words, in sum, from which on it is
worth it. It keeps as many as were put in before hits came in groups."""

WORD_COVERAGE: Final[float] = _NUMBERS["WORD_COVERAGE"]
"""The share of the prompt's words from which a hit is worth it where there are no vectors."""
FEWEST_WORDS: Final = 2
"""And that so many words are."""

EVIDENCE: Final = ("words", "meaning", "context")
"""The factors of a turn that say how much it is about the prompt."""

_LEAST: Final = 1e-4


@dataclass(frozen=True, slots=True)
class TurnEvidence:
    """Of one turn: how likely it is to answer, its `EVIDENCE` in sum, the share of words it has.

    `answers` is the reader's probability that it answers, None where it was not read.
    """

    score: float
    evidence: float
    coverage: float
    answers: float | None = None


def relevance_features(turns: Sequence[TurnEvidence], place: int) -> tuple[float, ...]:
    """Of the turn at `place`, in the order of its lane, the features of the module's formula.

    Four of them, and a fifth where it was read.
    """
    turn, other_turns = turns[place], [*turns[:place], *turns[place + 1 :]]
    features = (
        log_odds_of(turn.score, _LEAST),
        float(place == 0),
        turn.evidence - max((another.evidence for another in other_turns), default=0.0),
        turn.coverage - max((another.coverage for another in other_turns), default=0.0),
    )
    if turn.answers is None:
        return features
    return (*features, log_odds_of(turn.answers, _LEAST))


def turn_relevance(turns: Sequence[TurnEvidence], place: int) -> float:
    """The probability, 0 to 1, that a turn is relevant to a prompt, by the module's formula."""
    features = relevance_features(turns, place)
    weights: tuple[float, ...] = (CONSTANT, ANSWERS, FIRST, LEAD, COVERS)
    if len(features) == len(weights):
        weights = READ_CONSTANT, READ_ANSWERS, READ_FIRST, READ_LEAD, READ_COVERS, READ_ODDS
    return probability_of(sum(w * x for w, x in zip(weights, (1.0, *features), strict=True)))


def is_worth_it(turns: Sequence[TurnEvidence], place: int) -> bool:
    """Whether a turn is worth putting into a prompt."""
    least_probability = THRESHOLD if turns[place].answers is None else READ_THRESHOLD
    return turn_relevance(turns, place) >= least_probability
