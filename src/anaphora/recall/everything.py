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
from functools import partial
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
from anaphora.values.memories import MemoryHit, MemoryRecord
from anaphora.values.projects import NOTE_KINDS, Quality
from anaphora.values.search import DEFAULT_KINDS, KINDS, SearchHit, SearchKind

if TYPE_CHECKING:
    from anaphora.recall.context.lane import ContextRecall
    from anaphora.recall.conversation import ConversationRecall
    from anaphora.recall.memories import MemoryRecall
    from anaphora.recall.places import SessionPlaces
    from anaphora.recall.tool_calls import ToolCallRecall
    from anaphora.values.projects import RecallPackage

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
class _Found:
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

    def repeats(self, other: _Found) -> bool:
        """Whether another hit in the same words is the same statement."""
        if (self.hit.kind == "turn") == (other.hit.kind == "turn"):
            return self.by == other.by
        # Of a memory whose origin is not known, the same words tell the same.
        unknown = not (self.places and other.places)
        return unknown or not self.places.isdisjoint(other.places)

    def said_in(self, turn: _Found) -> _Found:
        """A memory with who said it; another one who said the same is another hit."""
        named = self.hit.speaker or (turn.hit.speaker if turn.by[-1] else "")
        hit = replace(self.hit, speaker=named)
        places = self.places & turn.places if self.places else turn.places
        return replace(self, hit=hit, places=places)


@dataclass(frozen=True, slots=True)
class _LaneAnswer:
    """What one lane found, best first; `nearest` where it stays silent.

    `silent_times` are notices that stay true beside the hits of other lanes.
    """

    hits: tuple[_Found, ...] = ()
    nearest: tuple[_Found, ...] = ()
    confidence: float | None = None
    degraded: tuple[Degraded, ...] = ()
    notices: tuple[str, ...] = ()
    silent_times: tuple[str, ...] = ()


@dataclass(slots=True)
class _TextReading:
    """One text as it is read for some terms: that takes longer than recalling it."""

    text: str
    terms: tuple[str, ...]
    _snippet: tuple[str, tuple[tuple[int, int], ...]] | None = None

    def snippet(self) -> tuple[str, tuple[tuple[int, int], ...]]:
        """What is shown of it, and where that matches."""
        if self._snippet is None:
            self._snippet = snippet(self.text, self.terms)
        return self._snippet


def _size_of(reading: _TextReading) -> int:
    return _OVERHEAD + len(reading.text)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question, its terms, what was chosen, and the sessions of the project that was named."""

    text: str
    terms: tuple[str, ...]
    choice: SearchChoice
    top_k: int
    floor: float | None
    sessions: frozenset[str] | None
    shown: ViewCache[_TextReading]
    own: frozenset[str] = frozenset()
    placed: Collection[str] = field(default=())
    read: int | None = None

    @property
    def fact_floor(self) -> float:
        """Below which what is kept as facts is silent; None chosen: each lane has its own."""
        return FACT_FLOOR if self.floor is None else self.floor

    def reading(self, text: str) -> _TextReading:
        """A text as it is read for this question."""
        key = (text, self.terms)
        return self.shown.of(None, key, lambda: _TextReading(text, self.terms))

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
    shown: ViewCache[_TextReading] = field(default_factory=lambda: ViewCache(_KEPT, _size_of))
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
        """The best `top_k` hits, whose snippets cost at most `budget` tokens.

        Of turns and of memories the first `read` candidates are read with the question.

        Raises `InvalidInput` for bad arguments, `NotFound` for a project that nothing is about.
        """
        check_count("top_k", top_k, 1)
        check_count("budget", budget, 0)
        if min_confidence is not None:
            check_share("min_confidence", min_confidence)
        checked_read(read)
        _check_kinds(choice.kinds)
        if not question.strip():
            return Recall((), (BLANK,))
        question, cut = truncated_question(typed_question(question))
        asked = replace(self._asked(question, choice, top_k, min_confidence), read=read)
        lanes = [_LaneAnswer(degraded=cut)]
        parts: tuple[tuple[str, tuple[SearchKind, ...], Callable[[_Asked], _LaneAnswer]], ...] = (
            ("memories", ("memory", "note"), self._memories),
            ("conversations", ("turn",), self._turns),
            ("project", ("file",), self._files),
            ("documents", ("document",), self._documents),
            ("tool calls", ("tool_call",), self._calls),
        )
        for part, kinds, ask in parts:
            if any(map(choice.has, kinds)):
                check_cancelled()
                lanes.append(_in_time(part, partial(ask, asked)))
        near = (one.hit for lane in lanes for one in (*lane.hits, *lane.nearest))
        found = _merged(asked, self._with_origins(lanes), budget)
        return mark_opposed(found, near, self.memories.records, self.opposed)

    def _asked(
        self, question: str, choice: SearchChoice, top_k: int, floor: float | None
    ) -> _Asked:
        sessions = None
        if choice.project is not None:
            sessions = self.places.of_project(choice.project)
            if not sessions and not self._project_ids(choice.project):
                raise NotFound("project", choice.project)
        own = self.places.around(choice.directory) if choice.directory else frozenset()
        placed = self.places.all() if own else ()
        terms = query_terms(question)
        return _Asked(question, terms, choice, top_k, floor, sessions, self.shown, own, placed)

    def _project_ids(self, project: str) -> set[str]:
        """The id of an indexed project, if there is one of this name, folder or id."""
        lane = self.context()
        try:
            return {lane.projects.find(project).id} if lane is not None else set()
        except NotFound:
            return set()

    def _turns(self, asked: _Asked) -> _LaneAnswer:
        choice = asked.choice
        silent_times: list[str] = []
        found = self.turns.recall(
            None,
            asked.text,
            top_k=_WIDER * asked.top_k if asked.own else asked.top_k,
            budget=1 << 40,
            exclude=choice.exclude,
            choice=TurnChoice(
                choice.since, choice.until, choice.speaker, conversations=asked.sessions
            ),
            min_confidence=asked.floor,
            read=asked.read,
            silent_times=silent_times,
        )
        places = self.places.all()

        def convert(hit: TurnHit) -> SearchHit:
            place = places.get(hit.conversation_id)
            project = "" if place is None else place.repository or place.directory
            return _of_turn(hit, asked, self._title_of(hit), project)

        return replace(_answer(found, convert), silent_times=tuple(silent_times))

    def _title_of(self, hit: TurnHit) -> str:
        """What the conversation is called that a turn was found by."""
        return self.turns.title_of(hit.conversation_id) if "title" in hit.factors else ""

    def _memories(self, asked: _Asked) -> _LaneAnswer:
        choice = asked.choice
        found = self._records(self.memories, asked)
        answer = _answer(found, lambda hit: _of_memory(hit, asked))
        coming = tuple(notice for notice in found.notices if notice.startswith(COMING))
        answer = replace(answer, silent_times=coming)
        kept = replace(
            answer,
            hits=tuple(one for one in answer.hits if choice.has(one.hit.kind)),
            nearest=tuple(one for one in answer.nearest if choice.has(one.hit.kind)),
        )
        return kept if asked.sessions is None else self._within(kept, asked)

    def _with_origins(self, lanes: Sequence[_LaneAnswer]) -> list[_LaneAnswer]:
        """The same, each memory whose words another hit has with where it was said."""
        every = [one for lane in lanes for one in (*lane.hits, *lane.nearest)]
        count = Counter(_said(one.hit.text) for one in every if one.hit.kind in _SAID)
        told = {
            one.hit.id
            for one in every
            if one.hit.kind in _KEPT_WORDS and count[_said(one.hit.text)] > 1
        }
        records = self.memories.many(told) if told else {}

        def with_origin(one: _Found) -> _Found:
            record = records.get(one.hit.id)
            return one if record is None else self._with_origin(one, record)

        return [
            replace(
                lane,
                hits=tuple(map(with_origin, lane.hits)),
                nearest=tuple(map(with_origin, lane.nearest)),
            )
            for lane in lanes
        ]

    def _with_origin(self, found: _Found, record: MemoryRecord) -> _Found:
        events = self.memories.records.events(record.id)
        said_at = [(record.conversation_id, record.turn_index)]
        said_at += [(one.conversation_id, one.turn_index) for one in events]
        # Where the turn is not known, any turn of the conversation in these words may be it.
        places = {chat if at is None else f"{chat}#{at}" for chat, at in said_at if chat}
        project = str((record.payload or {}).get("project", ""))
        by = (record.path or "", record.conversation_id or "", project, *record.sources)
        return replace(found, by=by, places=frozenset(places))

    def _within(self, answer: _LaneAnswer, asked: _Asked) -> _LaneAnswer:
        """What of memories and notes is about the project that was named."""
        sessions, name = asked.sessions or frozenset(), asked.choice.project or ""
        everywhere = self.places.all()
        named = {place.repository for i in sessions if (place := everywhere.get(i))} | {name}
        named |= self._project_ids(name)
        ids = [one.hit.id for one in (*answer.hits, *answer.nearest)]
        records = self.memories.many(ids)

        def about(found: _Found) -> bool:
            record = records.get(found.hit.id)
            if record is None:
                return False
            origins = {record.conversation_id or ""} & sessions
            payload = record.payload or {}
            return bool(origins or named & {*record.sources, str(payload.get("project", ""))})

        return replace(
            answer,
            hits=tuple(filter(about, answer.hits)),
            nearest=tuple(filter(about, answer.nearest)),
        )

    def _files(self, asked: _Asked) -> _LaneAnswer:
        lane = self.context()
        if lane is None:
            return _LaneAnswer()
        try:
            package = lane.recall(asked.text, project=asked.choice.project, budget=_FILES_BUDGET)
        except NotFound:
            # Sessions are known of it, files are not.
            return _LaneAnswer()
        sure = FILES[package.quality]
        hits = tuple(_Found(hit, hit.score) for hit in _of_files(package, asked, sure))
        if sure < asked.fact_floor:
            return _LaneAnswer((), hits, None, package.degraded)
        return _LaneAnswer(hits, (), sure, package.degraded)

    def _documents(self, asked: _Asked) -> _LaneAnswer:
        lane = self.documents()
        if lane is None or asked.choice.project is not None:
            # A document belongs to no project.
            return _LaneAnswer()
        found = self._records(lane, asked)
        records = lane.many(hit.id for hit in (*found.hits, *found.nearest))
        return _answer(found, lambda hit: _of_document(hit, records.get(hit.id), asked))

    def _records(self, lane: MemoryRecall, asked: _Asked) -> Recall[MemoryHit]:
        """What a lane of records answers, as silent as the others."""
        found = lane.recall(
            asked.text,
            top_k=asked.top_k,
            filters=_filters(asked.choice),
            min_score=None,
            min_confidence=asked.floor,
            read=asked.read,
        )
        if found.confidence is not None and found.confidence < asked.fact_floor:
            # With filters the lane gives all that they let through, however far.
            return replace(found, hits=(), nearest=found.hits or found.nearest)
        return found

    def _calls(self, asked: _Asked) -> _LaneAnswer:
        choice = TurnChoice(asked.choice.since, asked.choice.until)
        found = self.calls.recall(
            asked.text, top_k=asked.top_k, choice=choice, conversations=asked.sessions
        )
        hits = []
        for hit in found:
            shown, matches = asked.snippet(hit.text)
            hits.append(
                SearchHit(
                    "tool_call",
                    hit.id,
                    hit.text,
                    shown,
                    CALLS * hit.score,
                    matches,
                    hit.ts,
                    conversation_id=hit.conversation_id,
                    index=hit.index,
                )
            )
        return _LaneAnswer(tuple(_Found(hit, hit.score) for hit in hits))


def _in_time(part: str, ask: Callable[[], _LaneAnswer]) -> _LaneAnswer:
    """What a lane answers; nothing, and a word of it, where it had no time to read anything."""
    try:
        return ask()
    except TimedOut as error:
        return _LaneAnswer(degraded=(Degraded(part, str(error)),))


def _check_kinds(kinds: Iterable[str]) -> None:
    for kind in kinds:
        if kind not in KINDS:
            raise InvalidInput("kind", kind, f"expected one of {', '.join(KINDS)}")


def _filters(choice: SearchChoice) -> dict[str, Any] | None:
    asked: list[dict[str, Any]] = [{"tags": {"contains": tag}} for tag in choice.tags]
    if choice.since is not None:
        asked.append({"created_at": {"gte": choice.since.isoformat()}})
    if choice.until is not None:
        asked.append({"created_at": {"lt": choice.until.isoformat()}})
    return {"AND": asked} if asked else None


def _answer(found: Recall[Any], convert: Callable[[Any], SearchHit]) -> _LaneAnswer:
    """A lane's hits in its order."""

    def each(hits: Sequence[Any]) -> Iterator[_Found]:
        best = max((hit.score for hit in hits), default=0.0) or 1.0
        for hit in hits:
            score = UNKNOWN * max(hit.score, 0.0) / best
            yield _Found(convert(hit), score, *_origin_of(hit))

    return _LaneAnswer(
        tuple(each(found.hits)),
        tuple(each(found.nearest)),
        found.confidence,
        found.degraded,
        found.notices,
    )


def _origin_of(hit: object) -> tuple[tuple[str, ...], frozenset[str]]:
    """By whom a turn was said, and where, with the conversations themselves."""
    if not isinstance(hit, TurnHit):
        return (), frozenset()
    said: tuple[TurnHit | RelatedTurn, ...] = (hit, *hit.occurrences)
    places = {f"{one.conversation_id}#{one.index}" for one in said}
    places |= {one.conversation_id for one in said}
    return (hit.role, hit.speaker or ""), frozenset(places)


def _valued(found: Sequence[_Found], asked: _Asked) -> Iterator[_Found]:
    """A lane's hits with the scores by which they are put among those of other lanes.

    All of a group have the value of its likeliest, and never more than the group before: a lane
    knows more of its own order than a probability says.
    """
    groups, rest = [], list(found)
    while rest:
        place = max(range(len(rest)), key=lambda at: (rest[at].hit.score, -at))
        groups.append(rest[: place + 1])
        rest = rest[place + 1 :]
    values = [max(one.value for one in group) for group in groups]
    if any(one.hit.read is not None for one in found):
        # A reader may put groups in another order than their probabilities: these go to the places.
        values.sort(reverse=True)
    last = 1.0
    for group, value in zip(groups, values, strict=True):
        last = min(last, value)
        for one in group:
            score = round(last * _nearness(one.hit.conversation_id, asked), 6)
            yield replace(one, hit=replace(one.hit, score=score))


def _nearness(conversation_id: str, asked: _Asked) -> float:
    """Less for sessions of which it is known that they are of another project."""
    if not asked.own or conversation_id in asked.own or conversation_id not in asked.placed:
        return 1.0
    return ELSEWHERE


def _of_turn(hit: TurnHit, asked: _Asked, title: str, project: str) -> SearchHit:
    shown, matches = asked.snippet(hit.text)
    return SearchHit(
        "turn",
        _turn_id(hit),
        hit.text,
        shown,
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


def _turn_id(turn: TurnHit | RelatedTurn) -> str:
    return f"{turn.conversation_id}#{turn.index}"


def _of_memory(hit: MemoryHit, asked: _Asked) -> SearchHit:
    kind: SearchKind = "note" if hit.type in NOTE_KINDS else "memory"
    title = hit.path or next(iter(hit.sources), hit.type)
    return _of_record(
        kind,
        hit,
        title,
        asked,
        current=hit.current,
        versions=tuple(version_lines(hit)),
        older_than="" if hit.older_than is None else hit.older_than.id,
    )


def _of_document(hit: MemoryHit, record: MemoryRecord | None, asked: _Asked) -> SearchHit:
    return _of_record("document", hit, section_title(record) if record is not None else "", asked)


def _of_record(
    kind: SearchKind, hit: MemoryHit, title: str, asked: _Asked, **more: Any
) -> SearchHit:
    shown, matches = asked.snippet(hit.text)
    return SearchHit(
        kind,
        hit.id,
        hit.text,
        shown,
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


def _of_files(package: RecallPackage, asked: _Asked, sure: float) -> Iterator[SearchHit]:
    texts = {(one.project, one.path): one.text for one in reversed(package.memories) if one.path}
    best = max((target.score for target in package.primary_targets), default=0.0) or 1.0
    for target in package.primary_targets[: asked.top_k]:
        if not target.path:
            # A note: the lane of memories has it.
            continue
        text = texts.get((target.project, target.path), "")
        shown, matches = asked.snippet(text or target.title)
        yield SearchHit(
            "file",
            target.path,
            text,
            shown,
            round(sure * max(target.score, 0.0) / best, 6),
            matches,
            title=target.reason or target.title,
            project=target.project or "",
            factors=target.signals,
        )


def _merged(asked: _Asked, lanes: Sequence[_LaneAnswer], budget: int) -> Recall[SearchHit]:
    """One list of what the lanes found; where all are silent, what came nearest."""
    known = [lane.confidence for lane in lanes if lane.confidence is not None]
    hits = _ordered(hit for lane in lanes for hit in _valued(lane.hits, asked))
    if asked.floor != 0:
        hits = tuple(without_tail(hits))
    nearest = _ordered(hit for lane in lanes for hit in _valued(lane.nearest, asked))
    told = ((lane.silent_times if hits else lane.notices) for lane in lanes)
    notices = tuple(dict.fromkeys(notice for lane in told for notice in lane))
    return Recall(
        tuple(_within_budget(hits, asked.top_k, budget)),
        tuple(dict.fromkeys(part for lane in lanes for part in lane.degraded)),
        confidence=max(known) if known else None,
        nearest=() if hits else tuple(_within_budget(nearest, asked.top_k, budget)),
        notices=notices,
    )


def _ordered(hits: Iterable[_Found]) -> tuple[SearchHit, ...]:
    """Best first; a memory and the turn that it came from come once, as does what one speaker has
    said several times. The same words of several people are several hits."""
    ordered: list[_Found] = []
    alike: dict[str, list[int]] = {}
    # Equal ones stay as their lane has them: what holds now before what it replaced.
    for one in sorted(hits, key=lambda one: -one.hit.score):
        places = alike.setdefault(_said(one.hit.text), []) if one.hit.kind in _SAID else []
        first = next((at for at in places if one.repeats(ordered[at])), None)
        if first is None:
            places.append(len(ordered))
            ordered.append(one)
        elif one.hit.kind == "turn" and ordered[first].hit.kind != "turn":
            ordered[first] = ordered[first].said_in(one)
    return tuple(one.hit for one in ordered)


def _said(text: str) -> str:
    return " ".join(text.casefold().split())


def _within_budget(hits: Iterable[SearchHit], top_k: int, budget: int) -> Iterator[SearchHit]:
    """At most `top_k` hits whose snippets fit; the first one in any case."""
    left, count = budget, 0
    for hit in hits:
        cost = token_cost(hit.snippet)
        if count < top_k and (cost <= left or not count):
            yield hit
            left, count = left - cost, count + 1
