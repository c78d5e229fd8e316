"""One question to everything that is kept: memories, notes, turns, files, documents, tool calls.

Each lane answers for itself, in its own order (what holds now comes first), or stays silent; here
its hits become one list. A hit counts as much as the likeliest one of its group answers, and never
more than the group before it in its lane.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from anaphora.core.analyser import query_terms
from anaphora.core.limits import check_cancelled
from anaphora.errors import InvalidInput, NotFound, TimedOut
from anaphora.rank.budget import token_cost
from anaphora.rank.currency import COMING
from anaphora.rank.silence import FACT_FLOOR
from anaphora.recall.likelihood import without_tail
from anaphora.recall.opposed import OpposedPairs, mark_opposed
from anaphora.recall.query import (
    BLANK,
    check_count,
    check_share,
    truncated_question,
    typed_question,
)
from anaphora.recall.reading import checked_read
from anaphora.recall.render import version_lines
from anaphora.recall.snippets import snippet
from anaphora.recall.view_cache import ViewCache
from anaphora.store.documents import section_title
from anaphora.values.conversations import Degraded, Recall, RelatedTurn, TurnChoice, TurnHit
from anaphora.values.memories import MemoryHit
from anaphora.values.projects import NOTE_KINDS, Quality
from anaphora.values.search import DEFAULT_KINDS, KINDS, SearchHit, SearchKind

if TYPE_CHECKING:
    from anaphora.recall.context.lane import ContextRecall
    from anaphora.recall.conversation import ConversationRecall
    from anaphora.recall.memories import MemoryRecall
    from anaphora.recall.places import SessionPlaces
    from anaphora.recall.tool_calls import ToolCallRecall

UNKNOWN: Final = 0.5
"""How likely a lane is to answer that cannot tell."""
ELSEWHERE: Final = 0.75
"""What a hit of another project than the one that is asked from counts."""
CALLS: Final = 0.5
"""How likely a tool call is to answer whose line holds all words of a question."""
FILES: Final[Mapping[Quality, float]] = {"strong": 0.6, "partial": 0.3, "weak": 0.02}
"""How likely files are to answer, by how far a package may be trusted."""

_KEPT_WORDS: Final = frozenset(("memory", "note"))
_SAID: Final = _KEPT_WORDS | {"turn"}
"""Kinds of hits that may be one statement; a part of a file or a document is one by itself."""

_KEPT: Final = 2_000_000
"""Characters of texts whose snippets are held for the next question."""
_QUESTIONS: Final = 64
_OVERHEAD: Final = 500
_WIDER: Final = 3
_FILES_BUDGET: Final = 4_000


@dataclass(frozen=True, slots=True)
class SearchChoice:
    """What is searched: kinds, times, one speaker, one project, memories with all these tags.

    `directory` is where the question is asked: hits of its project come first.
    """

    kinds: tuple[SearchKind, ...] = DEFAULT_KINDS
    since: datetime | None = None
    until: datetime | None = None
    speaker: str | None = None
    project: str | None = None
    tags: tuple[str, ...] = ()
    directory: str | None = None
    exclude: frozenset[str] = frozenset()

    def has(self, kind: SearchKind) -> bool:
        """Whether hits of this kind can be among what was chosen."""
        if kind not in self.kinds:
            return False
        if self.tags and kind not in {"memory", "note", "document"}:
            return False
        if self.speaker is not None and kind != "turn":
            return False
        return kind != "file" or (self.since is None and self.until is None)


@dataclass(frozen=True, slots=True)
class _LaneHit:
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

    def repeats(self, other: _LaneHit) -> bool:
        """Whether another hit in the same words is the same statement."""
        if (self.hit.kind == "turn") == (other.hit.kind == "turn"):
            return self.by == other.by
        # For a memory of unknown origin, equal texts are the same statement.
        unknown = not (self.places and other.places)
        return unknown or not self.places.isdisjoint(other.places)

    def said_in(self, turn: _LaneHit) -> _LaneHit:
        """A memory with its speaker; the same statement of another speaker is another hit."""
        speaker_name = self.hit.speaker or (turn.hit.speaker if turn.by[-1] else "")
        hit = replace(self.hit, speaker=speaker_name)
        common = self.places & turn.places if self.places else turn.places
        return replace(self, hit=hit, places=common)


@dataclass(frozen=True, slots=True)
class _LaneAnswer:
    """What one lane found, best first; `nearest` where it stays silent.

    `silent_times` are notices that stay true beside the hits of other lanes.
    """

    hits: tuple[_LaneHit, ...] = ()
    nearest: tuple[_LaneHit, ...] = ()
    confidence: float | None = None
    degraded: tuple[Degraded, ...] = ()
    notices: tuple[str, ...] = ()
    silent_times: tuple[str, ...] = ()


@dataclass(slots=True)
class _TermReading:
    """One text as it is read for some terms: that takes longer than recalling it."""

    text: str
    terms: tuple[str, ...]
    _snippet: tuple[str, tuple[tuple[int, int], ...]] | None = None

    def snippet(self) -> tuple[str, tuple[tuple[int, int], ...]]:
        """What is shown of it, and where that matches."""
        if self._snippet is None:
            self._snippet = snippet(self.text, self.terms)
        return self._snippet


@dataclass(frozen=True, slots=True)
class _Search:
    """A question, its terms, what was chosen, and the sessions of the project that was named."""

    text: str
    terms: tuple[str, ...]
    choice: SearchChoice
    top_k: int
    floor: float | None
    sessions: frozenset[str] | None
    shown: ViewCache[_TermReading]
    own: frozenset[str] = frozenset()
    placed: Collection[str] = field(default=())
    read: int | None = None

    @property
    def fact_floor(self) -> float:
        """Below which what is kept as facts is silent; None chosen: each lane has its own."""
        return FACT_FLOOR if self.floor is None else self.floor

    def reading(self, text: str) -> _TermReading:
        """A text as it is read for this question."""
        key = (text, self.terms)
        return self.shown.of(None, key, lambda: _TermReading(text, self.terms))

    def snippet(self, text: str) -> tuple[str, tuple[tuple[int, int], ...]]:
        """What is shown of a text, and where that matches."""
        return self.reading(text).snippet()


@dataclass(frozen=True, slots=True)
class EverythingRecall:
    """Asks the lanes of one namespace.

    `context` and `documents` give None where no project was indexed, and no document was added.
    """

    turns: ConversationRecall
    memories: MemoryRecall
    calls: ToolCallRecall
    places: SessionPlaces
    context: Callable[[], ContextRecall | None]
    documents: Callable[[], MemoryRecall | None] = lambda: None
    shown: ViewCache[_TermReading] = field(
        default_factory=lambda: ViewCache(_KEPT, lambda reading: _OVERHEAD + len(reading.text))
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
        for kind in choice.kinds:
            if kind not in KINDS:
                raise InvalidInput("kind", kind, f"expected one of {', '.join(KINDS)}")
        if not question.strip():
            return Recall((), (BLANK,))
        question, cut_notices = truncated_question(typed_question(question))
        search = replace(self._prepare(question, choice, top_k, min_confidence), read=read)
        lanes = [_LaneAnswer(degraded=cut_notices)]
        parts: tuple[tuple[str, tuple[SearchKind, ...], Callable[[_Search], _LaneAnswer]], ...] = (
            ("memories", ("memory", "note"), self._search_memories),
            ("conversations", ("turn",), self._search_turns),
            ("project", ("file",), self._search_files),
            ("documents", ("document",), self._search_documents),
            ("tool calls", ("tool_call",), self._search_calls),
        )
        for part, kinds, ask in parts:
            if any(map(choice.has, kinds)):
                check_cancelled()
                try:
                    lanes.append(ask(search))
                except TimedOut as error:
                    lanes.append(_LaneAnswer(degraded=(Degraded(part, str(error)),)))
        near_hits = (lane_hit.hit for lane in lanes for lane_hit in (*lane.hits, *lane.nearest))
        merged_recall = _merge(search, self._add_origins(lanes), budget)
        return mark_opposed(merged_recall, near_hits, self.memories.records, self.opposed)

    def _prepare(
        self, question: str, choice: SearchChoice, top_k: int, floor: float | None
    ) -> _Search:
        sessions = None
        if choice.project is not None:
            sessions = self.places.of_project(choice.project)
            if not sessions and not self._project_ids(choice.project):
                raise NotFound("project", choice.project)
        own_sessions = self.places.around(choice.directory) if choice.directory else frozenset()
        placed_sessions = self.places.all() if own_sessions else ()
        terms = query_terms(question)
        return _Search(
            question,
            terms,
            choice,
            top_k,
            floor,
            sessions,
            self.shown,
            own_sessions,
            placed_sessions,
        )

    def _project_ids(self, project: str) -> set[str]:
        """The id of an indexed project, if there is one of this name, folder or id."""
        lane = self.context()
        try:
            return {lane.projects.find(project).id} if lane is not None else set()
        except NotFound:
            return set()

    def _search_turns(self, search: _Search) -> _LaneAnswer:
        choice = search.choice
        silent_times: list[str] = []
        turn_recall = self.turns.recall(
            None,
            search.text,
            top_k=_WIDER * search.top_k if search.own else search.top_k,
            budget=1 << 40,
            exclude=choice.exclude,
            choice=TurnChoice(
                choice.since, choice.until, choice.speaker, conversations=search.sessions
            ),
            min_confidence=search.floor,
            read=search.read,
            silent_times=silent_times,
        )
        folders = self.places.all()

        def convert(hit: TurnHit) -> SearchHit:
            folder = folders.get(hit.conversation_id)
            project = "" if folder is None else folder.repository or folder.directory
            # The title of its conversation, if that is among what the turn was found by.
            has_title_match = "title" in hit.factors
            title = self.turns.title_of(hit.conversation_id) if has_title_match else ""
            excerpt, matches = search.snippet(hit.text)
            return SearchHit(
                "turn",
                _turn_id(hit),
                hit.text,
                excerpt,
                hit.score,
                matches,
                hit.ts,
                speaker=hit.speaker or hit.role,
                title=title,
                project=project,
                conversation_id=hit.conversation_id,
                index=hit.index,
                current=hit.current,
                versions=tuple(version_lines(hit)),
                factors=hit.factors,
                answers=hit.answers,
                read=hit.read,
                older_than="" if (newer := hit.older_than) is None else _turn_id(newer),
            )

        return replace(_convert_answer(turn_recall, convert), silent_times=tuple(silent_times))

    def _search_memories(self, search: _Search) -> _LaneAnswer:
        choice = search.choice
        memory_recall = self._search_records(self.memories, search)

        def convert(hit: MemoryHit) -> SearchHit:
            return _make_record_hit(
                "note" if hit.type in NOTE_KINDS else "memory",
                hit,
                hit.path or next(iter(hit.sources), hit.type),
                search,
                current=hit.current,
                versions=tuple(version_lines(hit)),
                older_than="" if hit.older_than is None else hit.older_than.id,
            )

        answer = _convert_answer(memory_recall, convert)
        coming = tuple(notice for notice in memory_recall.notices if notice.startswith(COMING))
        answer = replace(answer, silent_times=coming)
        chosen_search = replace(
            answer,
            hits=tuple(lane_hit for lane_hit in answer.hits if choice.has(lane_hit.hit.kind)),
            nearest=tuple(lane_hit for lane_hit in answer.nearest if choice.has(lane_hit.hit.kind)),
        )
        return (
            chosen_search if search.sessions is None else self._keep_project(chosen_search, search)
        )

    def _add_origins(self, lanes: Sequence[_LaneAnswer]) -> list[_LaneAnswer]:
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
        records = self.memories.many(repeated_ids) if repeated_ids else {}

        def with_origin(lane_hit: _LaneHit) -> _LaneHit:
            record = records.get(lane_hit.hit.id)
            if record is None:
                return lane_hit
            events = self.memories.records.events(record.id)
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

    def _keep_project(self, answer: _LaneAnswer, search: _Search) -> _LaneAnswer:
        """What of memories and notes is about the project that was named."""
        sessions, name = search.sessions or frozenset(), search.choice.project or ""
        everywhere = self.places.all()
        project_names = {folder.repository for i in sessions if (folder := everywhere.get(i))} | {
            name
        }
        project_names |= self._project_ids(name)
        ids = [lane_hit.hit.id for lane_hit in (*answer.hits, *answer.nearest)]
        records = self.memories.many(ids)

        def about(lane_hit: _LaneHit) -> bool:
            record = records.get(lane_hit.hit.id)
            if record is None:
                return False
            origins = {record.conversation_id or ""} & sessions
            payload = record.payload or {}
            return bool(
                origins or project_names & {*record.sources, str(payload.get("project", ""))}
            )

        return replace(
            answer,
            hits=tuple(filter(about, answer.hits)),
            nearest=tuple(filter(about, answer.nearest)),
        )

    def _search_files(self, search: _Search) -> _LaneAnswer:
        lane = self.context()
        if lane is None:
            return _LaneAnswer()
        try:
            package = lane.recall(search.text, project=search.choice.project, budget=_FILES_BUDGET)
        except NotFound:
            # Sessions are known of it, files are not.
            return _LaneAnswer()
        sure = FILES[package.quality]
        texts = {
            (memory.project, memory.path): memory.text
            for memory in reversed(package.memories)
            if memory.path
        }
        best_score = max((target.score for target in package.primary_targets), default=0.0) or 1.0
        hits = []
        for target in package.primary_targets[: search.top_k]:
            if not target.path:
                # A note: the lane of memories has it.
                continue
            text = texts.get((target.project, target.path), "")
            excerpt, matches = search.snippet(text or target.title)
            score = round(sure * max(target.score, 0.0) / best_score, 6)
            hit = SearchHit(
                "file",
                target.path,
                text,
                excerpt,
                score,
                matches,
                title=target.reason or target.title,
                project=target.project or "",
                factors=target.signals,
            )
            hits.append(_LaneHit(hit, score))
        if sure < search.fact_floor:
            return _LaneAnswer((), tuple(hits), None, package.degraded)
        return _LaneAnswer(tuple(hits), (), sure, package.degraded)

    def _search_documents(self, search: _Search) -> _LaneAnswer:
        lane = self.documents()
        if lane is None or search.choice.project is not None:
            # A document belongs to no project.
            return _LaneAnswer()
        document_recall = self._search_records(lane, search)
        records = lane.many(hit.id for hit in (*document_recall.hits, *document_recall.nearest))

        def convert(hit: MemoryHit) -> SearchHit:
            record = records.get(hit.id)
            title = "" if record is None else section_title(record)
            return _make_record_hit("document", hit, title, search)

        return _convert_answer(document_recall, convert)

    def _search_records(self, lane: MemoryRecall, search: _Search) -> Recall[MemoryHit]:
        """What a lane of records answers, as silent as the others."""
        conditions: list[dict[str, Any]] = [
            {"tags": {"contains": tag}} for tag in search.choice.tags
        ]
        if search.choice.since is not None:
            conditions.append({"created_at": {"gte": search.choice.since.isoformat()}})
        if search.choice.until is not None:
            conditions.append({"created_at": {"lt": search.choice.until.isoformat()}})
        record_recall = lane.recall(
            search.text,
            top_k=search.top_k,
            filters={"AND": conditions} if conditions else None,
            min_score=None,
            min_confidence=search.floor,
            read=search.read,
        )
        if record_recall.confidence is not None and record_recall.confidence < search.fact_floor:
            # With filters the lane gives all that they let through, however far.
            return replace(
                record_recall, hits=(), nearest=record_recall.hits or record_recall.nearest
            )
        return record_recall

    def _search_calls(self, search: _Search) -> _LaneAnswer:
        choice = TurnChoice(search.choice.since, search.choice.until)
        calls = self.calls.recall(
            search.text, top_k=search.top_k, choice=choice, conversations=search.sessions
        )
        hits = []
        for hit in calls:
            excerpt, matches = search.snippet(hit.text)
            hits.append(
                SearchHit(
                    "tool_call",
                    hit.id,
                    hit.text,
                    excerpt,
                    CALLS * hit.score,
                    matches,
                    hit.ts,
                    conversation_id=hit.conversation_id,
                    index=hit.index,
                )
            )
        return _LaneAnswer(tuple(_LaneHit(hit, hit.score) for hit in hits))


def _convert_answer(recalled: Recall[Any], convert: Callable[[Any], SearchHit]) -> _LaneAnswer:
    """A lane's hits in its order."""

    def each(hits: Sequence[Any]) -> Iterator[_LaneHit]:
        best_score = max((hit.score for hit in hits), default=0.0) or 1.0
        for hit in hits:
            score = UNKNOWN * max(hit.score, 0.0) / best_score
            by: tuple[str, ...] = ()
            keys: set[str] = set()
            if isinstance(hit, TurnHit):
                # The turns and conversations that it was said in.
                by = (hit.role, hit.speaker or "")
                turns: tuple[TurnHit | RelatedTurn, ...] = (hit, *hit.occurrences)
                for turn in turns:
                    keys |= {f"{turn.conversation_id}#{turn.index}", turn.conversation_id}
            yield _LaneHit(convert(hit), score, by, frozenset(keys))

    return _LaneAnswer(
        tuple(each(recalled.hits)),
        tuple(each(recalled.nearest)),
        recalled.confidence,
        recalled.degraded,
        recalled.notices,
    )


def _set_scores(lane_hits: Sequence[_LaneHit], search: _Search) -> Iterator[_LaneHit]:
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
                search.own
                and lane_hit.hit.conversation_id not in search.own
                and lane_hit.hit.conversation_id in search.placed
            )
            score = round(last_likelihood * (ELSEWHERE if elsewhere else 1.0), 6)
            yield replace(lane_hit, hit=replace(lane_hit.hit, score=score))


def _turn_id(turn: TurnHit | RelatedTurn) -> str:
    return f"{turn.conversation_id}#{turn.index}"


def _make_record_hit(
    kind: SearchKind, hit: MemoryHit, title: str, search: _Search, **more: Any
) -> SearchHit:
    excerpt, matches = search.snippet(hit.text)
    return SearchHit(
        kind,
        hit.id,
        hit.text,
        excerpt,
        hit.score,
        matches,
        hit.created_at,
        title=title,
        tags=hit.tags,
        factors=hit.factors,
        answers=hit.answers,
        read=hit.read,
        **more,
    )


def _merge(search: _Search, lanes: Sequence[_LaneAnswer], budget: int) -> Recall[SearchHit]:
    """One list of what the lanes found; where all are silent, what came nearest."""
    confidences = [lane.confidence for lane in lanes if lane.confidence is not None]
    hits = _order(hit for lane in lanes for hit in _set_scores(lane.hits, search))
    if search.floor != 0:
        hits = tuple(without_tail(hits))
    nearest = _order(hit for lane in lanes for hit in _set_scores(lane.nearest, search))
    lane_notices = ((lane.silent_times if hits else lane.notices) for lane in lanes)
    notices = tuple(dict.fromkeys(notice for lane in lane_notices for notice in lane))
    return Recall(
        tuple(_fit_budget(hits, search.top_k, budget)),
        tuple(dict.fromkeys(part for lane in lanes for part in lane.degraded)),
        confidence=max(confidences) if confidences else None,
        nearest=() if hits else tuple(_fit_budget(nearest, search.top_k, budget)),
        notices=notices,
    )


def _order(hits: Iterable[_LaneHit]) -> tuple[SearchHit, ...]:
    """Best first; a memory and the turn that it came from come once, as do repetitions by one
    speaker. The same text of several people is several hits."""
    ordered_hits: list[_LaneHit] = []
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
