"""How probably each candidate answers, in the order in which it is shown: what `rank/silence` needs
is read from the first candidates of a question and from each one's text, time and speaker."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from anaphora.core.folding import typed_text
from anaphora.core.recalled import strip_recalled
from anaphora.rank.currency import COMPARED
from anaphora.rank.silence import HitEvidence, Lane, hit_probability, missing_share
from anaphora.rank.sought import Sought, held_terms, read_sought
from anaphora.rank.statements import read_statement

if TYPE_CHECKING:
    from anaphora.recall.currency import Candidate
    from anaphora.values.conversations import Recall

Spans: TypeAlias = Sequence[tuple[float, float]]

_MOST_READ: Final = 100_000
"""Characters of a text in which words of the question are looked for."""


@dataclass(frozen=True, slots=True)
class Likelihood:
    """What the probabilities of one question's candidates have in common.

    `calibrated` says whether the embedder's cosines were measured, `unseen` is the number of the
    question's words that no first candidate holds.
    """

    question: str
    lane: Lane
    spans: Spans
    calibrated: bool
    unseen: int

    @classmethod
    def of(
        cls,
        head: Sequence[Candidate],
        question: str,
        lane: Lane,
        spans: Spans = (),
        *,
        calibrated: bool = True,
    ) -> Likelihood:
        """Read the first candidates of a question, best first."""
        held = frozenset().union(*(_held(candidate, question) for candidate in head[:COMPARED]))
        unseen = len(read_sought(question).terms - held)
        return cls(question, lane, spans, calibrated, unseen)

    def rated(self, candidates: Iterable[Candidate]) -> Iterator[Candidate]:
        """`candidates`, in the order in which they are shown, each with its probability."""
        for place, candidate in enumerate(candidates):
            chance = hit_probability(self.evidence(candidate, place), self.lane)
            yield replace(candidate, answers=chance)

    def evidence(self, candidate: Candidate, place: int) -> HitEvidence:
        """What tells whether the candidate at `place`, from 0, answers."""
        sought, held = read_sought(self.question), _held(candidate, self.question)
        words = len(sought.terms)
        return HitEvidence(
            meaning=candidate.meaning if self.calibrated else None,
            missing=missing_share(words - len(held), words),
            unseen=missing_share(self.unseen, words),
            place=place,
            asks=read_statement(typed_text(strip_recalled(candidate.text))).asks,
            read=None if math.isnan(candidate.read) else candidate.read,
            sought=self._is_sought(candidate, sought, held),
        )

    def _is_sought(self, candidate: Candidate, sought: Sought, held: frozenset[str]) -> bool:
        """Whether a candidate is all that was asked for by a name, a time or an identifier."""
        within = any(start <= candidate.at < end for start, end in self.spans)
        if sought.bare:
            # "What did we say yesterday?" has nothing but a time.
            return within
        if self.spans and not within:
            return False
        if sought.identifiers and sought.identifiers <= held:
            return True
        alone = sought.framed and held == sought.terms
        return alone and (len(held) == 1 or candidate.asked_for)


def _held(candidate: Candidate, question: str) -> frozenset[str]:
    """The words of a question that a candidate holds: in its text, or its speaker's name."""
    held = held_terms(question, candidate.text[:_MOST_READ])
    return held | held_terms(question, candidate.speaker) if candidate.asked_for else held


def confidence_of(hits: Iterable[Any]) -> float | None:
    """The probability of the likeliest hit; 0 for no hits, None where one is not known."""
    chances = [hit.answers for hit in hits]
    if any(chance is None for chance in chances):
        return None
    return max(chances, default=0.0)


def with_floor(recall: Recall[Any], floor: float) -> Recall[Any]:
    """`recall` with the hits that answer at least as probably as `floor`, and its confidence.

    Where none does, there are no hits, and `nearest` has them. Where nothing is known, all stay.
    """
    sure = confidence_of(recall.hits)
    if sure is None:
        return recall
    hits = tuple(hit for hit in recall.hits if hit.answers >= floor)
    return replace(
        recall, hits=hits, confidence=sure, nearest=() if hits else recall.hits
    )
