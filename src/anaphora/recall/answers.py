"""How probably each candidate answers, in the order in which it is shown.

What `rank/silence` needs is read from the first candidates of a question, and from the text, time
and speaker of each one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from anaphora.language.analyser import analyse
from anaphora.rank.holding import COMPARED, answer_loss
from anaphora.rank.silence import (
    FIRST,
    LEAST,
    SOUGHT,
    TAIL,
    TITLE_MEANING,
    HitEvidence,
    Lane,
    abundance,
    hit_probability,
    probability,
    word_share,
)
from anaphora.rank.sought import (
    QuestionTerms,
    bearing_parts,
    find_held_terms,
    find_terms_in_title,
    read_question_terms,
)
from anaphora.rank.statements import read_cues

if TYPE_CHECKING:
    from anaphora.recall.candidates import Candidate
    from anaphora.values.conversations import Recall

Spans: TypeAlias = Sequence[tuple[float, float]]


class Rated(Protocol):
    """A hit that may say how probably it answers."""

    @property
    def answers(self) -> float | None:
        """The probability, None where it is not known."""


HitT = TypeVar("HitT", bound=Rated)


@dataclass(frozen=True, slots=True)
class Likelihood:
    """What the probabilities of one question's candidates have in common.

    `subject` is the question without the words that name its times, which are `spans`.
    `answered` is the probability that any of them answers, `best` is the index of the candidate
    with the best cosine, `cosines` are the two best ones. `few` and `many` are the scarcity and the
    abundance of statements, `calibrated` says whether the embedder's cosines were measured.
    """

    subject: str
    lane: Lane
    spans: Spans
    calibrated: bool
    answered: float
    best: int
    cosines: tuple[float, float]
    few: float
    many: float

    @classmethod
    def of(
        cls,
        head: Sequence[Candidate],
        question: str,
        subject: str,
        lane: Lane,
        spans: Spans = (),
        *,
        few: float,
        statements: int,
        calibrated: bool = True,
    ) -> Likelihood | None:
        """Read the first candidates of a question, best first, of so many `statements`; None where
        nothing is known. `few` is the `scarcity` of candidates."""
        head = head[:COMPARED]
        odds = [candidate.read for candidate in head if not math.isnan(candidate.read)]
        # Without measured cosines all that is known of a candidate is what a reader made of it.
        if not calibrated and (not odds or math.isnan(head[0].read)):
            return None
        sought, cues = read_question_terms(subject), read_cues(question)
        present = frozenset().union(*(_terms_in(candidate, subject) for candidate in head))
        unseen = word_share(len(sought.terms - present), len(sought.terms))
        # What only asks, or does not know, is no answer however near it is.
        telling = [
            candidate
            for candidate in head
            if not answer_loss(candidate.statement.reading, 1.0, cues)
        ]
        meaning = max(map(_meaning, telling or head), default=0.0)
        ranked_hits = sorted(head, key=_meaning, reverse=True)
        first_meaning, second = (*map(_meaning, ranked_hits[:2]), 0.0, 0.0)[:2]
        answer_probability = 0.0
        if head:
            # What was read of others says nothing where the nearest one cannot be read.
            is_read = bool(odds) and not (calibrated and math.isnan(ranked_hits[0].read))
            read = max(odds) if is_read else None
            answer_probability = probability(meaning if calibrated else None, unseen, read, few)
        best_index = ranked_hits[0].index if ranked_hits else -1
        cosines = first_meaning, second
        return cls(
            subject,
            lane,
            spans,
            calibrated,
            answer_probability,
            best_index,
            cosines,
            few,
            abundance(statements),
        )

    def probability(self, candidate: Candidate, index: int) -> float:
        """The probability, 0 to 1, that a candidate at `place`, from 0, answers."""
        evidence = self.evidence(candidate, index)
        return hit_probability(self.answered, evidence, self.lane, calibrated=self.calibrated)

    def evidence(self, candidate: Candidate, place: int) -> HitEvidence:
        """What tells whether a candidate at `place`, from 0, answers."""
        sought, present = read_question_terms(self.subject), _terms_in(candidate, self.subject)
        missing = len(sought.terms) - len(present)
        best_other = self.cosines[1 if candidate.index == self.best else 0]
        return HitEvidence(
            meaning=_meaning(candidate) if self.calibrated else 0.0,
            missing=word_share(missing, len(sought.terms)),
            place=place,
            asks=candidate.statement.reading.asks,
            lead=_meaning(candidate) - best_other if self.calibrated else 0.0,
            few=self.few,
            many=self.many,
            named=self.many > 0.0 and self._is_named(candidate),
            read=None if math.isnan(candidate.read) else candidate.read,
            sought=self._is_sought(candidate, sought, present),
        )

    def _is_sought(
        self, candidate: Candidate, sought: QuestionTerms, present: frozenset[str]
    ) -> bool:
        """Whether a candidate is all that was asked for by a name, a time or an identifier."""
        within = candidate.timely or any(start <= candidate.at < end for start, end in self.spans)
        if sought.bare:
            # "What did we say yesterday?" has nothing but a time.
            return within
        if self.spans and not within:
            return False
        if sought.identifiers and sought.identifiers <= present:
            return True
        if not sought.framed or present != sought.terms:
            return False
        if not self.many:
            return len(present) == 1 or candidate.asked_for
        # Among many statements neither a single word nor "I" singles anything out, but a name does.
        # A name: a word that is written as one, within the sentence.
        names = (word for word in self.subject.split()[1:] if word[:1].isupper())
        tokens = (token for name in names for token in analyse(name))
        return self._is_named(candidate) or (
            len(present) == 1 and not sought.terms.isdisjoint(tokens)
        )

    def _is_named(self, candidate: Candidate) -> bool:
        """Whether a candidate is by a speaker that the question names."""
        return candidate.asked_for and bool(find_held_terms(self.subject, candidate.speaker))


def _terms_in(candidate: Candidate, question: str) -> frozenset[str]:
    """The words of a question that a candidate holds: its text, its speaker's name or its title."""
    terms = find_held_terms(question, bearing_parts(question, candidate.text), candidate.line)
    if candidate.asked_for:
        terms |= find_held_terms(question, candidate.speaker)
    if candidate.title:
        terms |= find_terms_in_title(candidate.title, read_question_terms(question).terms)
    return terms


def _meaning(candidate: Candidate) -> float:
    # What holds words in its title alone counts as one that says so much of them.
    return max(candidate.meaning, TITLE_MEANING * candidate.titled)


def with_floor(recall: Recall[Any], answered: float | None, floor: float) -> Recall[Any]:
    """`recall` with its confidence, and silent where that is below `floor`, or where no hit answers
    as probably as `FIRST`: `nearest` has its hits.

    `answered` is the probability that anything answers (None: not known, and nothing changes):
    from `floor` on, the tail was cut before. A hit that was sought by name counts as much itself.
    """
    if answered is None:
        return recall
    best_answer_probability = max(
        (hit.answers for hit in recall.hits if hit.answers is not None), default=0.0
    )
    sure = max(answered, best_answer_probability) if best_answer_probability >= SOUGHT else answered
    if sure < floor or best_answer_probability < min(floor, FIRST):
        return replace(recall, hits=(), confidence=sure, nearest=recall.hits)
    hits = tuple(without_tail(recall.hits)) if answered < floor else recall.hits
    return replace(recall, hits=hits, confidence=sure)


def without_tail(hits: Iterable[HitT]) -> Iterator[HitT]:
    """Hits, best first, without those that hardly answer beside the first one.

    Those of which nothing is known stay. After some in a row the list has fallen away.
    """
    least_odds, skipped_count = -math.inf, 0
    for hit in hits:
        if hit.answers is not None and hit.answers < least_odds:
            skipped_count += 1
            if skipped_count == COMPARED:
                return
            continue
        if least_odds == -math.inf and hit.answers is not None:
            least_odds = max(LEAST, TAIL * hit.answers)
        skipped_count = 0
        yield hit
