"""One question to everything that is kept: memories, notes, turns, files, documents, tool calls.

Each lane answers for itself, in its own order (what holds now comes first), or stays silent; here
its hits become one list. A hit counts as much as the likeliest one of its group answers, and never
more than the group before it in its lane.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from anaphora.calls.limits import check_cancelled
from anaphora.errors import InvalidInput, NotFound, TimedOut
from anaphora.rank.budget import token_cost
from anaphora.recall.answers import without_tail
from anaphora.recall.lanes import (
    Lane,
    LaneAnswer,
    LaneHit,
    NamedProject,
    SearchChoice,
    SearchRequest,
    ShownText,
)
from anaphora.recall.narrowing import drop_unmet, tell_meant
from anaphora.recall.opposed import OpposedPairs, mark_opposed, mark_replaced
from anaphora.recall.query import BLANK, check_count, check_share, is_empty
from anaphora.recall.question import Question
from anaphora.recall.reading import checked_read
from anaphora.recall.view_cache import ViewCache
from anaphora.values.conversations import Degraded, Recall
from anaphora.values.fitted import fitted
from anaphora.values.search import SearchHit
from anaphora.values.search_kinds import MEMORY, NOTE, TURN, HitKind

if TYPE_CHECKING:
    from anaphora.recall.memories import MemoryRecall
    from anaphora.recall.places import SessionPlaces

ELSEWHERE: Final[float] = fitted("search")["ELSEWHERE"]
"""What a hit of another project than the one that is asked from counts."""

_KEPT_WORDS: Final = frozenset((MEMORY.name, NOTE.name))
_SAID: Final = _KEPT_WORDS | {TURN.name}
"""Kinds of hits that may be one statement; a part of a file or a document is one by itself."""

_QUESTIONS: Final = 64
_KEPT: Final = 2_000_000
"""Characters of texts whose snippets are held for the next question: finding what to show of a text
takes longer than recalling it."""
_OVERHEAD: Final = 500


@dataclass(frozen=True, slots=True)
class EverythingRecall:
    """Asks the lanes of one namespace, in their order.

    `memories` tells the origins of memories and what speaks against them.
    """

    lanes: tuple[Lane, ...]
    memories: MemoryRecall
    places: SessionPlaces
    shown: ViewCache[ShownText] = field(
        default_factory=lambda: ViewCache(_KEPT, lambda shown: _OVERHEAD + shown.whole_length)
    )
    opposed: ViewCache[OpposedPairs] = field(default_factory=lambda: ViewCache(_QUESTIONS))

    def recall(
        self,
        question: str,
        choice: SearchChoice,
        *,
        top_k: int = 8,
        budget: int = 2000,
        min_confidence: float | None = None,
        read: int | None = None,
    ) -> Recall[SearchHit]:
        """The best `top_k` hits, with snippets of at most `budget` tokens.

        Of turns and of memories the first `read` candidates are read with the question.

        Raises `InvalidInput` for bad arguments, `NotFound` for a project that nothing is about.
        """
        check_count("top_k", top_k, 1)
        check_count("budget", budget, 0)
        if min_confidence is not None:
            check_share("min_confidence", min_confidence)
        checked_read(read)
        self._check_kinds(choice)
        if is_empty(question):
            return Recall((), (BLANK,))
        asked = Question.read(question, self.memories.clock())
        # Of a question with a text pasted into it the words that ask decide whether it suits the
        # reader.
        asked = replace(asked, typed=asked.text)
        own_sessions = self.places.around(choice.directory) if choice.directory else frozenset()
        request = SearchRequest(
            asked,
            choice,
            top_k,
            min_confidence,
            read,
            project=None if choice.project is None else self._find_project(choice.project),
            own=own_sessions,
            placed=self.places.all() if own_sessions else (),
            shown=self.shown,
        )
        answers = [LaneAnswer(degraded=asked.notices), *self._ask_lanes(request)]
        near_hits = (
            lane_hit.hit for answer in answers for lane_hit in (*answer.hits, *answer.nearest)
        )
        merged_recall = _merge(request, self._add_origins(answers), budget)
        records = self.memories.source.records
        marked_recall = mark_opposed(merged_recall, near_hits, records, self.opposed)
        return mark_replaced(marked_recall, self.memories.links, records, asked)

    @property
    def default_kinds(self) -> tuple[str, ...]:
        """The kinds that a search looks for if it names none."""
        return tuple(kind.name for kind in self._kinds if kind.by_default)

    @property
    def _kinds(self) -> tuple[HitKind, ...]:
        return tuple(kind for lane in self.lanes for kind in lane.kinds)

    def _check_kinds(self, choice: SearchChoice) -> None:
        names = [kind.name for kind in self._kinds]
        for number, name in enumerate(choice.kinds):
            if name not in names:
                raise InvalidInput(f"kinds[{number}]", name, f"expected one of {', '.join(names)}")

    def _find_project(self, name: str) -> NamedProject:
        """What a project stands for, by its name, its folder or its repository."""
        sessions = self.places.of_project(name)
        ids = {project_id for lane in self.lanes for project_id in lane.project_ids(name)}
        if not sessions and not ids:
            raise NotFound("project", name)
        places = self.places.all()
        repositories = {place.repository for i in sessions if (place := places.get(i))}
        return NamedProject(sessions, frozenset((name, *ids, *repositories)))

    def _ask_lanes(self, request: SearchRequest) -> Iterator[LaneAnswer]:
        for lane in self.lanes:
            if lane.serves(request.choice):
                check_cancelled()
                try:
                    yield lane.search(request)
                except TimedOut as error:
                    yield LaneAnswer(degraded=(Degraded(lane.name, str(error)),))

    def _add_origins(self, lanes: Sequence[LaneAnswer]) -> list[LaneAnswer]:
        """The lanes, with its origin for each memory that says the same as another hit."""
        every = [lane_hit for lane in lanes for lane_hit in (*lane.hits, *lane.nearest)]
        count = Counter(
            _normalise(lane_hit.hit.text) for lane_hit in every if lane_hit.hit.kind in _SAID
        )
        repeated_ids = {
            lane_hit.hit.id
            for lane_hit in every
            if lane_hit.hit.kind in _KEPT_WORDS and count[_normalise(lane_hit.hit.text)] > 1
        }
        records = self.memories.source.many(repeated_ids) if repeated_ids else {}

        def with_origin(lane_hit: LaneHit) -> LaneHit:
            record = records.get(lane_hit.hit.id)
            if record is None:
                return lane_hit
            events = self.memories.source.records.events(record.id)
            said_at = [(record.conversation_id, record.turn_index)]
            said_at += [(event.conversation_id, event.turn_index) for event in events]
            # If the turn is not known, any turn of the conversation with this text may be it.
            turns = {chat if at is None else f"{chat}#{at}" for chat, at in said_at if chat}
            project = str((record.payload or {}).get("project", ""))
            by = (record.path or "", record.conversation_id or "", project, *record.sources)
            return replace(lane_hit, by=by, places=frozenset(turns))

        return [
            replace(
                lane,
                hits=tuple(map(with_origin, lane.hits)),
                nearest=tuple(map(with_origin, lane.nearest)),
            )
            for lane in lanes
        ]


def _set_scores(lane_hits: Sequence[LaneHit], request: SearchRequest) -> Iterator[LaneHit]:
    """A lane's hits with the scores by which they are put among those of other lanes.

    All of a group have the value of its likeliest, and never more than the group before: a lane
    knows more of its own order than a probability says.
    """
    groups, remaining = [], list(lane_hits)
    while remaining:
        end = max(range(len(remaining)), key=lambda at: (remaining[at].hit.score, -at))
        groups.append(remaining[: end + 1])
        remaining = remaining[end + 1 :]
    likelihoods = [max(lane_hit.value for lane_hit in group) for group in groups]
    if any(lane_hit.hit.read is not None for lane_hit in lane_hits):
        # A reader may put groups in another order than their probabilities: these go to the places.
        likelihoods.sort(reverse=True)
    last_likelihood = 1.0
    for group, likelihood in zip(groups, likelihoods, strict=True):
        last_likelihood = min(last_likelihood, likelihood)
        for lane_hit in group:
            elsewhere = (
                request.own
                and lane_hit.hit.conversation_id not in request.own
                and lane_hit.hit.conversation_id in request.placed
            )
            score = round(last_likelihood * (ELSEWHERE if elsewhere else 1.0), 6)
            yield replace(lane_hit, hit=replace(lane_hit.hit, score=score))


def _merge(request: SearchRequest, lanes: Sequence[LaneAnswer], budget: int) -> Recall[SearchHit]:
    """One list of what the lanes found; where all are silent, what came nearest."""
    confidences = [lane.confidence for lane in lanes if lane.confidence is not None]
    hits = _order(hit for lane in lanes for hit in _set_scores(lane.hits, request))
    if request.floor != 0:
        hits = tuple(without_tail(hits))
    nearest = _order(hit for lane in lanes for hit in _set_scores(lane.nearest, request))
    lane_notices = ((lane.silent_times if hits else lane.notices) for lane in lanes)
    dated_texts = [(hit.text or hit.snippet, hit.ts) for hit in hits if hit.ts is not None]
    said_notices = dict.fromkeys(notice for lane in lane_notices for notice in lane)
    notices = (
        *drop_unmet(said_notices, dated_texts, request.question),
        *tell_meant(dated_texts[: request.top_k], request.question.times),
    )
    return Recall(
        tuple(_fit_budget(hits, request.top_k, budget)),
        tuple(dict.fromkeys(part for lane in lanes for part in lane.degraded)),
        confidence=max(confidences) if confidences else None,
        nearest=() if hits else tuple(_fit_budget(nearest, request.top_k, budget)),
        notices=notices,
    )


def _order(hits: Iterable[LaneHit]) -> tuple[SearchHit, ...]:
    """Best first; a memory and the turn that it came from come once, as do repetitions by one
    speaker. The same text of several people is several hits."""
    ordered_hits: list[LaneHit] = []
    by_text: dict[str, list[int]] = {}
    # Equal ones stay as their lane has them: what holds now before what it replaced.
    for lane_hit in sorted(hits, key=lambda lane_hit: -lane_hit.hit.score):
        indexes = (
            by_text.setdefault(_normalise(lane_hit.hit.text), [])
            if lane_hit.hit.kind in _SAID
            else []
        )
        repeated_index = next((at for at in indexes if lane_hit.repeats(ordered_hits[at])), None)
        if repeated_index is None:
            indexes.append(len(ordered_hits))
            ordered_hits.append(lane_hit)
        elif lane_hit.hit.kind == "turn" and ordered_hits[repeated_index].hit.kind != "turn":
            ordered_hits[repeated_index] = ordered_hits[repeated_index].said_in(lane_hit)
    return tuple(lane_hit.hit for lane_hit in ordered_hits)


def _normalise(text: str) -> str:
    return " ".join(text.casefold().split())


def _fit_budget(hits: Iterable[SearchHit], top_k: int, budget: int) -> Iterator[SearchHit]:
    """At most `top_k` hits with snippets that fit; the first one in any case."""
    remaining, count = budget, 0
    for hit in hits:
        cost = token_cost(hit.snippet)
        if count < top_k and (cost <= remaining or not count):
            yield hit
            remaining, count = remaining - cost, count + 1
