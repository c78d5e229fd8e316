"""The evidence of a deep question: the turns and memories of one namespace, within a scope.

Queries, ids and times come as a model wrote them; results are bounded, with ids that exist. It
never writes and never reaches beyond its scope: another thread does not exist for a program. The
shown sources are recorded (`ShownSources`), so that forgetting finds every trace that may repeat
them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, get_args

import numpy as np
from numpy.typing import NDArray

from anaphora.calls.moments import has_utc
from anaphora.errors import InvalidInput, NotFound
from anaphora.features.deep.evidence.sources import (
    HISTORY_TURN_CHARS,
    MEMORIES,
    MEMORY_SHARE,
    REST,
    TURNS,
    Rows,
    count_turns,
    epoch_to_time,
    format_turn,
    is_called,
    merge_sources,
    rank_newest,
    record_to_source,
    score_memories,
    score_turns,
    select_rows,
    sort_by_time,
    turn_id,
)
from anaphora.features.deep.values import DeepSource, Scope
from anaphora.language.analyser import QueryWord, analyse, fold
from anaphora.language.times.reading import read_times
from anaphora.rank.turn_table import ROLE_ASSISTANT, ROLE_USER
from anaphora.recall.question import Question
from anaphora.store.facts import MEMORY
from anaphora.store.threads.ids import check_id
from anaphora.values.conversations import Degraded

if TYPE_CHECKING:
    from anaphora.index.turns.index import TurnIndex
    from anaphora.index.turns.view import TurnView
    from anaphora.recall.conversation import ConversationRecall
    from anaphora.recall.memories import MemoryRecall
    from anaphora.store.records.store import Records
    from anaphora.store.threads.conversations import Conversations
    from anaphora.values.conversations import TurnHit
    from anaphora.values.memories import MemoryRecord

NEAR: Final = 0.4
"""The least similarity of a memory that is evidence; the others only calibrate the chances."""

HISTORY_CHARS: Final = 200_000
CHARS_A_TOKEN: Final = 5
CHARS_A_LINE: Final = 60
"""Characters of an English token, and of the prefix of a line: estimates of how much to read at
once; an error costs only time."""

SCOPES: tuple[str, ...] = get_args(Scope)
_ROLES: Final[Mapping[int, str]] = {ROLE_USER: "user", ROLE_ASSISTANT: "assistant"}
_ROLE_CODES: Final[Mapping[str, int]] = {name: code for code, name in _ROLES.items()}


@dataclass(frozen=True, slots=True)
class ScopeSession:
    """A conversation of the scope. `first` and `last` are times of turns, None where not known.

    `sittings` are the times at which it was continued after hours: (index of the first turn of
    that sitting, its time).
    """

    id: str
    title: str
    turns: int
    first: datetime | None
    last: datetime | None
    sittings: tuple[tuple[int, datetime | None], ...]


@dataclass(frozen=True, slots=True)
class NamespaceEvidence:
    """The evidence of a namespace. The services are those of `NamespaceServices`."""

    conversations: Conversations
    turns: TurnIndex
    recall_turns: ConversationRecall
    records: Records
    recall_memories: MemoryRecall
    clock: Callable[[], datetime]
    others: Callable[[], Mapping[str, MemoryRecall]] = dict

    def find_records(self, record_ids: Iterable[str]) -> dict[str, MemoryRecord]:
        """The memories and sections of documents of these ids that exist, by id."""
        ids = list(record_ids)
        records = self.records.many(ids)
        for lane in self.others().values():
            if len(records) < len(ids):
                records |= lane.source.many(
                    record_id for record_id in ids if record_id not in records
                )
        return records

    def within(
        self,
        scope: Scope = "recent_sessions",
        conversation_id: str | None = None,
        *,
        include_memory: bool = True,
        seen: ShownSources | None = None,
    ) -> ScopedEvidence:
        """The evidence of a question in this scope, as of now, all earlier writes included.

        "recent_sessions" are the 10 conversations with the newest turns, "current_session" is
        `conversation_id`, "all_sessions" every one. `seen` records the shown sources. Raises
        `InvalidInput` for another scope and for a current session without an id, `NotFound` for
        one that does not exist.
        """
        if scope not in SCOPES:
            raise InvalidInput("scope", scope, f"expected one of {', '.join(SCOPES)}")
        if conversation_id is not None:
            check_id(conversation_id)
        only = conversation_id if scope == "current_session" else None
        if scope == "current_session" and only is None:
            reason = "the scope current_session needs a conversation id"
            raise InvalidInput("conversation_id", conversation_id, reason)
        sync_report, view = self.turns.synced_view(only)
        if only is None:
            rows = select_rows(view, scope)
        else:
            rows = view.rows(only).astype(np.intp)
            if not len(rows):
                raise NotFound("conversation", only)
        degradations = tuple(sync_report.degraded)
        return ScopedEvidence(
            self, view, rows, include_memory, degradations, seen or ShownSources()
        )


class ScopedEvidence:
    """One question's evidence: one moment of the index, seen through one scope.

    `degraded` grows as parts turn out to be unavailable, `seen` as turns and memories are shown.
    """

    def __init__(
        self,
        lane: NamespaceEvidence,
        view: TurnView,
        rows: Rows,
        include_memory: bool,
        degraded: tuple[Degraded, ...],
        seen: ShownSources,
    ) -> None:
        self.seen = seen
        self.clock = lane.clock
        self._lane = lane
        self._view = view
        # In chronological order, so that slices of them are history.
        self._rows = sort_by_time(view, rows)
        self._whole = len(rows) == len(view)
        self._include_memory = include_memory
        self._known: dict[str, DeepSource | None] = {}
        self._reported = dict.fromkeys(degraded)

    def __len__(self) -> int:
        """How many turns there are in scope."""
        return len(self._rows)

    @property
    def degraded(self) -> tuple[Degraded, ...]:
        """The parts that were unavailable so far."""
        return tuple(self._reported)

    def search(
        self,
        query: str,
        limit: int = 20,
        *,
        since: str | None = None,
        until: str | None = None,
        speaker: str | None = None,
    ) -> tuple[DeepSource, ...]:
        """The `limit` best turns and memories for `query`, best first, with their whole texts.

        The score of each is the chance that it contains the answer, so that turns and memories can
        be compared.
        `since` and `until` are ISO 8601 or words ("last Tuesday"); a day as `until` is included.
        `speaker` is a name, or "user" or "assistant"; with it, no memory is found, since memories
        have no speaker. Raises `InvalidInput` for a time that cannot be parsed.
        """
        now = self.clock()
        start = parse_moment("since", since, now)
        end = parse_moment("until", until, now, end=True)
        rows = self._filter_rows(start, end, speaker)
        question = Question.read(query, now)
        turns = score_turns(self.turn_hits(question, limit, rows), count_turns(self._view))
        memories = [] if speaker is not None else self._find_memories(question, limit, (start, end))
        best_sources = merge_sources(turns, memories[: max(3, limit // MEMORY_SHARE)], limit)
        self.seen.add(best_sources)
        return tuple(self._remember(source) for source in best_sources)

    def weigh(self, query: str) -> tuple[DeepSource, ...]:
        """The 20 best turns and the best memories, by their chances alone, erring low."""
        question = Question.read(query, self.clock())
        hits = self.turn_hits(question, TURNS)[:TURNS]
        turns = score_turns(hits, count_turns(self._view), rest=None)
        sources = [*turns, *self._find_memories(question, TURNS, rest=None)]
        best_sources = sorted(sources, key=lambda source: (-(source.score or 0.0), source.id))
        return tuple(self._remember(source) for source in best_sources)

    def turn_hits(
        self, query: str | Question, limit: int, rows: Rows | None = None
    ) -> Sequence[TurnHit]:
        """The best turns for `query` as their lane scores them, those of `rows` or of the scope.

        There may be more than `limit`: at least `TURNS`, to compare them with each other.
        """
        chosen_rows = self._filter_rows(None, None, None) if rows is None else rows
        top_k = max(limit, TURNS)
        turn_recall = self._lane.recall_turns.recall_among(
            self._view, chosen_rows, query, top_k=top_k
        )
        self._report(turn_recall.degraded)
        return turn_recall.hits

    def find_turns_with(self, words: Sequence[QueryWord]) -> tuple[DeepSource, ...]:
        """The turns in scope that contain every one of these words, in their order."""
        tokens = {word.tokens[0] for word in words}
        counts = self._view.words(words, limit=len(self._view))
        rows = self._rows[counts[self._rows] > 0]
        turns = (turn for turn in self._turns(rows) if tokens <= set(analyse(turn.text)))
        sources = tuple(self._remember(turn) for turn in turns)
        self.seen.add(sources)
        return sources

    def session_count(self) -> int:
        """How many conversations are in scope."""
        return len(np.unique(self._view.table.conversation[self._rows]))

    def sessions(self, limit: int, offset: int = 0) -> tuple[ScopeSession, ...]:
        """`limit` conversations in scope, the one with the newest turn first."""
        table, rows = self._view.table, self._rows
        titles = {
            conversation.conversation_id: conversation.title
            for conversation in self._lane.conversations.list()
        }
        codes = table.conversation[rows]
        sessions = []
        for code in rank_newest(self._view, rows)[offset : offset + limit]:
            turn_rows = rows[codes == code]
            turn_rows = turn_rows[np.argsort(table.position[turn_rows], kind="stable")]
            name = table.conversations[code]
            times = table.ts[turn_rows]
            starts = np.flatnonzero(np.diff(table.session[turn_rows], prepend=-1))
            finite = times[np.isfinite(times)]
            sessions.append(
                ScopeSession(
                    id=name,
                    title=titles.get(name, ""),
                    turns=len(turn_rows),
                    first=epoch_to_time(float(finite.min())) if len(finite) else None,
                    last=epoch_to_time(float(finite.max())) if len(finite) else None,
                    sittings=tuple(
                        (int(table.position[turn_rows[at]]), epoch_to_time(float(times[at])))
                        for at in starts
                    ),
                )
            )
        return tuple(sessions)

    def transcript(self, conversation_id: str, start: int, end: int) -> tuple[DeepSource, ...]:
        """The turns `start` to before `end` of a conversation, in order. Raises `NotFound`."""
        table, rows = self._view.table, self._rows
        try:
            code = table.conversations.index(conversation_id)
        except ValueError:
            raise NotFound("session", conversation_id) from None
        turn_rows = rows[table.conversation[rows] == code]
        if not len(turn_rows):
            raise NotFound("session", conversation_id)
        positions = table.position[turn_rows]
        turn_rows = turn_rows[(positions >= start) & (positions < end)]
        turns = self._turns(turn_rows[np.argsort(table.position[turn_rows], kind="stable")])
        self.seen.add(turns)
        return turns

    def history(self, chars: int = HISTORY_CHARS) -> str:
        """The newest turns that fit into `chars` characters, oldest first, one line each.

        A line is "conversation#index [time] speaker: text"; line breaks of the text are " ⏎ ", so
        that no text can pass for a turn of its own.
        """
        lines: list[str] = []
        written_sources: list[DeepSource] = []
        room, upto = chars, len(self._rows)
        while upto > 0 and room > 0:
            # About as many turns as fit, by their tokens.
            lengths = self._view.table.length[self._rows[:upto]][::-1]
            sizes = np.minimum(lengths * CHARS_A_TOKEN, HISTORY_TURN_CHARS) + CHARS_A_LINE
            count = int(np.searchsorted(np.cumsum(sizes, dtype=np.int64), room))
            piece = self._rows[max(0, upto - max(count, 16)) : upto]
            upto -= len(piece)
            for turn in reversed(self._turns(piece)):
                line = format_turn(turn)
                if len(line) + 1 > room:
                    room = 0
                    break
                room -= len(line) + 1
                lines.append(line)
                written_sources.append(turn)
        self.seen.add(reversed(written_sources))
        return "\n".join(reversed(lines))

    def source(self, source_id: str) -> DeepSource | None:
        """The turn or memory that an id names; None if there is none in this scope."""
        if source_id not in self._known:
            self._known[source_id] = self._look_up(source_id)
        return self._known[source_id]

    def exists(self, source_id: str) -> bool:
        """Whether an id names a turn or memory of this scope."""
        return self.source(source_id) is not None

    # Rows.

    def _filter_rows(
        self, start: datetime | None, end: datetime | None, speaker: str | None
    ) -> Rows:
        table, rows = self._view.table, self._rows
        if start is None and end is None and speaker is None:
            # Ranking is fastest over all rows in their own order.
            return np.arange(len(self._view), dtype=np.intp) if self._whole else rows
        keep = np.ones(len(rows), dtype=np.bool_)
        # A turn of unknown time (NaN) is in no span: every comparison with it is false.
        if start is not None:
            keep &= table.ts[rows] >= start.timestamp()
        if end is not None:
            keep &= table.ts[rows] < end.timestamp()
        if speaker is not None:
            name = fold(speaker)
            codes = [
                code
                for code, speaker_name in enumerate(table.speakers)
                if is_called(speaker_name, name)
            ]
            is_spoken: NDArray[np.bool_] = np.isin(table.speaker[rows], codes)
            if name in _ROLE_CODES:
                is_spoken |= table.role[rows] == _ROLE_CODES[name]
            keep &= is_spoken
        return rows[keep]

    def _turns(self, rows: Rows) -> tuple[DeepSource, ...]:
        """The turns of these rows, without those forgotten since."""
        table = self._view.table
        texts = self._lane.turns.texts_of(self._view, rows)
        columns = (
            table.conversation[rows].tolist(),
            table.position[rows].tolist(),
            table.role[rows].tolist(),
            table.speaker[rows].tolist(),
            table.ts[rows].tolist(),
        )
        return tuple(
            DeepSource(
                kind="turn",
                id=turn_id(table.conversations[code], index),
                text=text,
                conversation_id=table.conversations[code],
                index=index,
                role=table.speakers[speaker] if speaker >= 0 else _ROLES.get(role, "other"),
                ts=epoch_to_time(ts),
            )
            for text, code, index, role, speaker, ts in zip(texts, *columns, strict=True)
            if text
        )

    def _look_up(self, source_id: str) -> DeepSource | None:
        if source_id.startswith(MEMORY):
            name = source_id.removeprefix(MEMORY)
            record = self._lane.find_records([name]).get(name) if self._include_memory else None
            return None if record is None or record.forgotten else record_to_source(record)
        conversation_id, _, index = source_id.rpartition("#")
        if not (conversation_id and index.isascii() and index.isdecimal()) or len(index) > 9:
            return None
        try:
            turns = self.transcript(conversation_id, int(index), int(index) + 1)
        except NotFound:
            return None
        # "7" and "007" are the same number, but only one of them is the id.
        return turns[0] if turns and turns[0].id == source_id else None

    # Memories.

    def _find_memories(
        self,
        question: Question,
        limit: int,
        times: tuple[datetime | None, datetime | None] = (None, None),
        rest: float | None = REST,
    ) -> list[DeepSource]:
        if not self._include_memory:
            return []
        ends = zip(("gte", "lt"), times, strict=True)
        bounds = {name: time.isoformat() for name, time in ends if time is not None}
        weighed_sources: list[DeepSource] = []
        for lane in (self._lane.recall_memories, *self._lane.others().values()):
            hits = lane.recall(
                question,
                top_k=max(MEMORIES, limit // MEMORY_SHARE),
                min_score=None,
                filters={"created_at": bounds} if bounds else None,
                min_confidence=0.0,
            )
            self._report(hits.degraded)
            # All hits of a kind are scored together; those below the floor only for comparison.
            near_ids = {MEMORY + hit.id for hit in hits if hit.similarity >= NEAR}
            records = lane.source.many(hit.id for hit in hits)
            weighed_sources += [
                replace(record_to_source(record), score=source.score)
                for source in score_memories(hits, question.typed, rest)
                if source.id in near_ids and (record := records.get(source.id.removeprefix(MEMORY)))
            ]
        return sorted(weighed_sources, key=lambda source: -(source.score or 0.0))

    def _remember(self, source: DeepSource) -> DeepSource:
        self._known[source.id] = replace(source, score=None)
        return source

    def _report(self, degraded: Iterable[Degraded]) -> None:
        self._reported.update(dict.fromkeys(degraded))


@dataclass(slots=True)
class ShownSources:
    """The turns and memories that were shown. `turns` has the indexes by conversation."""

    turns: dict[str, set[int]] = field(default_factory=dict)
    memories: set[str] = field(default_factory=set)

    def add(self, sources: Iterable[DeepSource]) -> None:
        """Record these sources."""
        for source in sources:
            if source.conversation_id is not None and source.index is not None:
                self.turns.setdefault(source.conversation_id, set()).add(source.index)
            elif source.id.startswith(MEMORY):
                self.memories.add(source.id.removeprefix(MEMORY))

    def to_plain(self) -> dict[str, Any]:
        """For JSON: indexes as ranges [first, last], since many are neighbours."""
        turns: dict[str, list[list[int]]] = {}
        for conversation_id, indexes in self.turns.items():
            ranges = turns[conversation_id] = []
            for index in sorted(indexes):
                if ranges and index == ranges[-1][1] + 1:
                    ranges[-1][1] = index
                else:
                    ranges.append([index, index])
        return {"turns": turns, "memories": sorted(self.memories)}

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> ShownSources:
        """The inverse of `to_plain`."""
        turns = {
            conversation_id: {
                index
                for first_index, last_index in ranges
                for index in range(first_index, last_index + 1)
            }
            for conversation_id, ranges in record.get("turns", {}).items()
        }
        return cls(turns, set(record.get("memories", ())))


def parse_moment(
    what: str, text: str | None, now: datetime, *, end: bool = False
) -> datetime | None:
    """The moment that `text` names: the start of a day or span, or with `end` its end.

    A time without a zone is in that of `now`. None for None and "". Raises `InvalidInput`.
    """
    if text is None or not text.strip():
        return None
    stripped_text = text.strip()
    try:
        time = datetime.fromisoformat(stripped_text)
    except ValueError:
        spans = read_times(stripped_text, now)
        if len(spans) != 1:
            reason = 'expected a time such as "2026-03-12" or "2026-03-12T09:30"'
            raise InvalidInput(what, stripped_text, reason) from None
        time = spans[0].end if end else spans[0].start
        if not has_utc(time):
            raise InvalidInput(what, stripped_text, _YEARS) from None
        return time
    try:
        if time.utcoffset() is None:
            time = time.replace(tzinfo=now.tzinfo)
        if end and _DAY.match(stripped_text):
            time += timedelta(days=1)
    except OverflowError:
        raise InvalidInput(what, text, _YEARS) from None
    if not has_utc(time):
        raise InvalidInput(what, text, _YEARS)
    return time


_YEARS = "expected a time between the years 1 and 9999"


_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\Z")
