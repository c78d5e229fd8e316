"""What a lane of `search` is: which kinds it has, which filters it understands, how it is asked.

A lane answers in its own order, best first, or stays silent. `everything` merges lanes and knows no
single one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal, Protocol, TypeAlias, TypeVar

from anaphora.rank.holding import COMING
from anaphora.rank.silence import FACT_FLOOR
from anaphora.recall.question import Question
from anaphora.recall.snippets import snippet
from anaphora.recall.view_cache import ViewCache
from anaphora.values.conversations import Degraded, Recall
from anaphora.values.fitted import fitted
from anaphora.values.search import SearchHit
from anaphora.values.search_kinds import TURN, HitKind

UNKNOWN: Final[float] = fitted("search")["UNKNOWN"]
"""How likely a lane is to answer that cannot tell."""

SearchFilter: TypeAlias = Literal["tags", "speaker", "times", "project"]
"""What a search may be narrowed by."""


@dataclass(frozen=True, slots=True)
class SearchChoice:
    """What is searched: kinds, times, one speaker, one project, memories with all these tags.

    `directory` is where the question is asked: hits of its project come first.
    """

    kinds: tuple[str, ...]
    since: datetime | None = None
    until: datetime | None = None
    speaker: str | None = None
    project: str | None = None
    tags: tuple[str, ...] = ()
    directory: str | None = None
    exclude: frozenset[str] = frozenset()

    @property
    def filters(self) -> frozenset[SearchFilter]:
        """The filters that a lane must understand to be asked."""
        is_used: dict[SearchFilter, bool] = {
            "tags": bool(self.tags),
            "speaker": self.speaker is not None,
            "times": self.since is not None or self.until is not None,
            "project": self.project is not None,
        }
        return frozenset(name for name, used in is_used.items() if used)


@dataclass(frozen=True, slots=True)
class NamedProject:
    """What a project that a search names stands for: its sessions, and names of it in memories."""

    sessions: frozenset[str]
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class ShownText:
    """The part of a text that is shown for a question, and where it matches (start, end)."""

    whole_length: int
    snippet: str
    matches: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A question, what was chosen, and what the chosen project and folder stand for.

    `own` are the sessions of the project around the chosen folder, `placed` those with a known
    place. Of turns and of memories the first `read` candidates are read with the question.
    """

    question: Question
    choice: SearchChoice
    top_k: int
    floor: float | None
    read: int | None
    project: NamedProject | None
    own: frozenset[str]
    placed: Collection[str]
    shown: ViewCache[ShownText]

    @property
    def sessions(self) -> frozenset[str] | None:
        """The sessions of the named project, None without one."""
        return None if self.project is None else self.project.sessions

    @property
    def fact_floor(self) -> float:
        """Below which what is kept as facts is silent; None chosen: each lane has its own."""
        return FACT_FLOOR if self.floor is None else self.floor

    def show(self, text: str) -> tuple[str, tuple[tuple[int, int], ...]]:
        """What is shown of a text, and where that matches."""
        terms = self.question.terms
        key = (text, terms)
        excerpt = self.shown.of(None, key, lambda: ShownText(len(text), *snippet(text, terms)))
        return excerpt.snippet, excerpt.matches


@dataclass(frozen=True, slots=True)
class LaneHit:
    """A hit, and what it counts where it does not say how probably it answers.

    `by` is whose words they are, and `places` are the turns that say them: of a memory those that
    it came from.
    """

    hit: SearchHit
    score: float
    by: tuple[str, ...] = ()
    places: frozenset[str] = frozenset()

    @property
    def value(self) -> float:
        """How probably it answers, 0 to 1."""
        return self.score if self.hit.answers is None else self.hit.answers

    def repeats(self, other: LaneHit) -> bool:
        """Whether another hit in the same words is the same statement."""
        if (self.hit.kind == TURN.name) == (other.hit.kind == TURN.name):
            return self.by == other.by
        # For a memory of unknown origin, equal texts are the same statement.
        unknown = not (self.places and other.places)
        return unknown or not self.places.isdisjoint(other.places)

    def said_in(self, turn: LaneHit) -> LaneHit:
        """A memory with its speaker; the same statement of another speaker is another hit."""
        speaker_name = self.hit.speaker or (turn.hit.speaker if turn.by[-1] else "")
        hit = replace(self.hit, speaker=speaker_name)
        common = self.places & turn.places if self.places else turn.places
        return replace(self, hit=hit, places=common)


@dataclass(frozen=True, slots=True)
class LaneAnswer:
    """What one lane found, best first; `nearest` where it stays silent.

    `silent_times` are notices that stay true beside the hits of other lanes.
    """

    hits: tuple[LaneHit, ...] = ()
    nearest: tuple[LaneHit, ...] = ()
    confidence: float | None = None
    degraded: tuple[Degraded, ...] = ()
    notices: tuple[str, ...] = ()
    silent_times: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Lane:
    """A lane of `search`: what it is called where it was unavailable, what it has, how to ask it.

    It is asked only for `kinds` of its own, and only where it understands all `filters` of a
    search: what cannot be filtered is left out. `project_ids` gives the ids by which memories name
    a project that the lane knows under this name.
    """

    name: str
    kinds: tuple[HitKind, ...]
    filters: frozenset[SearchFilter]
    search: Callable[[SearchRequest], LaneAnswer]
    project_ids: Callable[[str], Collection[str]] = lambda _: ()

    def serves(self, choice: SearchChoice) -> bool:
        """Whether hits of this lane can be among what was chosen."""
        return choice.filters <= self.filters and any(
            kind.name in choice.kinds for kind in self.kinds
        )


class Scored(Protocol):
    """A hit with the score of its own lane."""

    @property
    def score(self) -> float:
        """How it compares with the other hits of its lane."""


ScoredT = TypeVar("ScoredT", bound=Scored)


def make_answer(
    recall: Recall[ScoredT],
    make_hit: Callable[[ScoredT, float], LaneHit],
    silent_times: tuple[str, ...] = (),
) -> LaneAnswer:
    """A lane's hits in its order, each made of one and of what it counts."""

    def convert(hits: Sequence[ScoredT]) -> tuple[LaneHit, ...]:
        best_score = max((hit.score for hit in hits), default=0.0) or 1.0
        return tuple(make_hit(hit, UNKNOWN * max(hit.score, 0.0) / best_score) for hit in hits)

    coming = tuple(notice for notice in recall.notices if notice.startswith(COMING))
    return LaneAnswer(
        convert(recall.hits),
        convert(recall.nearest),
        recall.confidence,
        recall.degraded,
        recall.notices,
        (*silent_times, *coming),
    )
