"""One walk from a question to its hits, for every kind of text.

question → candidates → features → score → links → answers → hits. A kind brings what it found: its
columns, scored, and the source of its texts; and it makes its hits. What lies between is the same
for all of them, and stands here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from anaphora.recall.candidates import Candidate, Placed
from anaphora.recall.links import KnownLinks, LinkedCandidates
from anaphora.recall.ordering import order_candidates
from anaphora.recall.reading import Window

if TYPE_CHECKING:
    from anaphora.rank.silence import Lane
    from anaphora.reading.service import ReaderService
    from anaphora.recall.question import Question
    from anaphora.values.conversations import Degraded


class Found(Protocol):
    """What one kind of text has for a question: candidates with scores, read as they are needed."""

    @property
    def lane(self) -> Lane:
        """Its weights say how probably each answers."""

    @property
    def question(self) -> Question:
        """What was asked."""

    @property
    def window(self) -> int:
        """How many candidates a reader reads with the question."""

    @property
    def unread(self) -> list[Degraded]:
        """Gets why they could not be read."""

    @property
    def searched(self) -> int:
        """How many statements were searched."""

    @property
    def count(self) -> int | None:
        """How many candidates there are, None where that is not known."""

    @property
    def repetitions(self) -> bool:
        """Whether candidates that say the same are several hits."""

    @property
    def is_ranked(self) -> bool:
        """Whether more than one score orders them: what holds now, and what answers."""

    @property
    def is_rated(self) -> bool:
        """Whether all that may be shown has a cosine."""

    def best_first(self) -> Iterator[Candidate]:
        """The candidates, best first."""

    def reference_of(self, candidate: Candidate) -> str:
        """How a link names a candidate."""

    def fetch(self, references: Collection[str]) -> list[Candidate]:
        """The candidates of these names that may be shown."""

    def closeness(self, candidate: Candidate, others: Sequence[Candidate]) -> Sequence[float]:
        """The cosine of a candidate to each of others; NaN where one has no vector."""

    def reader_texts(self, candidates: Sequence[Candidate]) -> list[str]:
        """What a reader reads of candidates."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What orders the candidates of every kind.

    `reader` says how probably each answers, `links` what replaced what; `calibrated`: whether the
    embedder's cosines tell if anything answers.
    """

    reader: ReaderService | None
    links: KnownLinks
    calibrated: bool

    def place(self, found: Found, floor: float) -> tuple[Iterator[Placed], float | None]:
        """The candidates as they are shown, and the probability that any answers (None: unknown).

        Where anything answers as probably as `floor`, those that hardly do are left out (0: none).
        """
        candidates = found.best_first()
        if not found.is_ranked:
            return (Placed(candidate, candidate.score) for candidate in candidates), None
        question, lane = found.question, found.lane
        window = Window(
            question.text, found.window, lane, self.reader, found.reader_texts, found.unread
        )
        ordering = order_candidates(
            window.ordered(candidates),
            question.text,
            LinkedCandidates(self.links, found.reference_of, found.fetch, found.closeness),
            question.spans,
            statements=found.searched,
            count=found.count,
            repetitions=found.repetitions,
            calibrated=self.calibrated and found.is_rated,
            lane=lane,
            subject=question.subject,
        )
        confidence = ordering.confidence if found.is_rated else None
        return ordering.without_tail(floor), confidence
