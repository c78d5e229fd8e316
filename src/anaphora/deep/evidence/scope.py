"""What a deep question may look at: the turns and memories of one namespace, within a scope.

Queries, ids and times come as a model wrote them; values go back bounded, with ids that exist. It
never writes and never reaches beyond its scope: a program that asks for another thread is told that
there is none. What was shown is noted (`ShownSources`), so that whoever forgets something finds
every trace that may repeat it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, get_args

import numpy as np
from numpy.typing import NDArray

from anaphora.core.analyser import QueryWord, analyse, fold
from anaphora.core.arguments import has_utc
from anaphora.deep.evidence.sources import (
    HISTORY_TURN_CHARS,
    MEMORIES,
    MEMORY,
    MEMORY_SHARE,
    REST,
    TURNS,
    Rows,
    by_time,
    is_called,
    lengths_of,
    line_of,
    newest_first,
    of_record,
    one_list,
    rows_in_scope,
    turn_id,
    weighed_memories,
    weighed_turns,
    when_of,
)
from anaphora.errors import InvalidInput, NotFound
from anaphora.rank.turn_table import ROLE_ASSISTANT, ROLE_USER
from anaphora.recall.times.reading import read_times
from anaphora.store.threads.ids import check_id
from anaphora.values.conversations import Degraded
from anaphora.values.deep import DeepSource, Scope

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
"""The similarity from which on a memory is evidence; what is below it is only weighed against."""

HISTORY_CHARS: Final = 200_000
CHARS_A_TOKEN: Final = 5
CHARS_A_LINE: Final = 60
"""Characters of a token of English, and of what stands before a text: guesses, for how much to
read at once; what is read too much or too little is only time."""

SCOPES: tuple[str, ...] = get_args(Scope)
_ROLES: Final[Mapping[int, str]] = {ROLE_USER: "user", ROLE_ASSISTANT: "assistant"}
_ROLE_CODES: Final[Mapping[str, int]] = {name: code for code, name in _ROLES.items()}


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation of the scope. `first` and `last` are times of turns, None where not known.

    `sittings` are the times at which somebody came back to it after hours: (index of the first
    turn of that sitting, its time).
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
    documents: Callable[[], MemoryRecall | None] = lambda: None

    def kept(self, record_ids: Iterable[str]) -> dict[str, MemoryRecord]:
        """The memories and sections of documents of these ids that exist, by id."""
        ids = list(record_ids)
        found, documents = self.records.many(ids), self.documents()
        if documents is not None and len(found) < len(ids):
            found |= documents.many(one for one in ids if one not in found)
        return found

    def within(
        self,
        scope: Scope = "recent_sessions",
        conversation_id: str | None = None,
        *,
        include_memory: bool = True,
        seen: ShownSources | None = None,
    ) -> ScopedEvidence:
        """What a question in this scope may see, as of now; what was written before is seen.

        "recent_sessions" are the 10 conversations with the newest turns, "current_session" the one
        that is given, "all_sessions" every one. `seen` is where to note what is shown. Raises
        `InvalidInput` for another scope and for a current session that is not given, `NotFound` for
        one that is not there.
        """
        if scope not in SCOPES:
            raise InvalidInput("scope", scope, f"expected one of {', '.join(SCOPES)}")
        if conversation_id is not None:
            check_id(conversation_id)
        only = conversation_id if scope == "current_session" else None
        if scope == "current_session" and only is None:
            reason = "the scope current_session needs a conversation id"
            raise InvalidInput("conversation_id", conversation_id, reason)
        followed, view = self.turns.synced_view(only)
        if only is None:
            rows = rows_in_scope(view, scope)
        else:
            rows = view.rows(only).astype(np.intp)
            if not len(rows):
                raise NotFound("conversation", only)
        degraded = tuple(followed.degraded)
        return ScopedEvidence(self, view, rows, include_memory, degraded, seen or ShownSources())


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
        # In the order in which things were said, so that slices of them are history.
        self._rows = by_time(view, rows)
        self._whole = len(rows) == len(view)
        self._include_memory = include_memory
        self._known: dict[str, DeepSource | None] = {}
        self._reported = dict.fromkeys(degraded)

    def __len__(self) -> int:
        """How many turns there are in scope."""
        return len(self._rows)

    @property
    def degraded(self) -> tuple[Degraded, ...]:
        """What was unavailable so far."""
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
        """The `limit` best turns and memories for `query`, best first, all of each text.

        The score of each is the chance that what is asked for stands there (`weighed`), so that
        turns and memories can be compared, and chosen by it.
        `since` and `until` are ISO 8601 or words ("last Tuesday"); a day as `until` is in.
        `speaker` is a name, or "user" or "assistant"; with it, no memory is found, since nobody
        says those. Raises `InvalidInput` for a time that cannot be read.
        """
        now = self.clock()
        start, end = moment("since", since, now), moment("until", until, now, end=True)
        rows = self._chosen(start, end, speaker)
        turns = weighed_turns(self.turn_hits(query, limit, rows), lengths_of(self._view))
        memories = [] if speaker is not None else self._memories(query, limit, (start, end))
        best = one_list(turns, memories[: max(3, limit // MEMORY_SHARE)], limit)
        self.seen.add(best)
        return tuple(self._keep(one) for one in best)

    def weighed(self, query: str) -> tuple[DeepSource, ...]:
        """The 20 best turns and what memories there are, by their chances alone, erring low."""
        hits = self.turn_hits(query, TURNS)[:TURNS]
        turns = weighed_turns(hits, lengths_of(self._view), rest=None)
        found = [*turns, *self._memories(query, TURNS, rest=None)]
        best = sorted(found, key=lambda one: (-(one.score or 0.0), one.id))
        return tuple(self._keep(one) for one in best)

    def turn_hits(self, query: str, limit: int, rows: Rows | None = None) -> Sequence[TurnHit]:
        """The best turns for `query` as their lane scores them, those of `rows` or of the scope.

        There are more than `limit` where so many are needed to weigh them against each other.
        """
        chosen = self._chosen(None, None, None) if rows is None else rows
        wanted = max(limit, TURNS)
        found = self._lane.recall_turns.recall_among(self._view, chosen, query, top_k=wanted)
        self._report(found.degraded)
        return found.hits

    def holding(self, words: Sequence[QueryWord]) -> tuple[DeepSource, ...]:
        """The turns in scope that hold every one of these words, in their order."""
        wanted = {word.tokens[0] for word in words}
        some = self._view.words(words, limit=len(self._view))
        rows = self._rows[some[self._rows] > 0]
        found = (one for one in self._turns(rows) if wanted <= set(analyse(one.text)))
        kept = tuple(self._keep(one) for one in found)
        self.seen.add(kept)
        return kept

    def session_count(self) -> int:
        """How many conversations are in scope."""
        return len(np.unique(self._view.table.conversation[self._rows]))

    def sessions(self, limit: int, offset: int = 0) -> tuple[Session, ...]:
        """`limit` conversations in scope, the one with the newest turn first."""
        table, rows = self._view.table, self._rows
        titles = {one.conversation_id: one.title for one in self._lane.conversations.list()}
        codes = table.conversation[rows]
        out = []
        for code in newest_first(self._view, rows)[offset : offset + limit]:
            own = rows[codes == code]
            own = own[np.argsort(table.position[own], kind="stable")]
            name = table.conversations[code]
            times = table.ts[own]
            starts = np.flatnonzero(np.diff(table.session[own], prepend=-1))
            known = times[np.isfinite(times)]
            out.append(
                Session(
                    id=name,
                    title=titles.get(name, ""),
                    turns=len(own),
                    first=when_of(float(known.min())) if len(known) else None,
                    last=when_of(float(known.max())) if len(known) else None,
                    sittings=tuple(
                        (int(table.position[own[at]]), when_of(float(times[at]))) for at in starts
                    ),
                )
            )
        return tuple(out)

    def transcript(self, conversation_id: str, start: int, end: int) -> tuple[DeepSource, ...]:
        """The turns `start` to before `end` of a conversation, in order. Raises `NotFound`."""
        table, rows = self._view.table, self._rows
        try:
            code = table.conversations.index(conversation_id)
        except ValueError:
            raise NotFound("session", conversation_id) from None
        own = rows[table.conversation[rows] == code]
        if not len(own):
            raise NotFound("session", conversation_id)
        places = table.position[own]
        own = own[(places >= start) & (places < end)]
        found = self._turns(own[np.argsort(table.position[own], kind="stable")])
        self.seen.add(found)
        return found

    def history(self, chars: int = HISTORY_CHARS) -> str:
        """The newest turns that fit into `chars` characters, oldest first, one line each.

        A line is "conversation#index [time] who: text"; line breaks of the text are " ⏎ ", so that
        no text can pass for a turn of its own.
        """
        lines: list[str] = []
        told: list[DeepSource] = []
        left, upto = chars, len(self._rows)
        while upto > 0 and left > 0:
            piece = self._rows[self._start_of(upto, left) : upto]
            upto -= len(piece)
            for turn in reversed(self._turns(piece)):
                line = line_of(turn)
                if len(line) + 1 > left:
                    left = 0
                    break
                left -= len(line) + 1
                lines.append(line)
                told.append(turn)
        self.seen.add(reversed(told))
        return "\n".join(reversed(lines))

    def _start_of(self, upto: int, chars: int) -> int:
        """Where about `chars` characters of turns begin that end before `upto`, by their tokens."""
        lengths = self._view.table.length[self._rows[:upto]][::-1]
        sizes = np.minimum(lengths * CHARS_A_TOKEN, HISTORY_TURN_CHARS) + CHARS_A_LINE
        many = int(np.searchsorted(np.cumsum(sizes, dtype=np.int64), chars))
        return max(0, upto - max(many, 16))

    def source(self, source_id: str) -> DeepSource | None:
        """The turn or memory that an id names; None where there is none in this scope."""
        if source_id not in self._known:
            self._known[source_id] = self._look_up(source_id)
        return self._known[source_id]

    def exists(self, source_id: str) -> bool:
        """Whether an id names a turn or memory of this scope."""
        return self.source(source_id) is not None

    # Rows.

    def _chosen(self, start: datetime | None, end: datetime | None, speaker: str | None) -> Rows:
        table, rows = self._view.table, self._rows
        if start is None and end is None and speaker is None:
            # All rows in their own order are what ranking answers fastest.
            return np.arange(len(self._view), dtype=np.intp) if self._whole else rows
        keep = np.ones(len(rows), dtype=np.bool_)
        # A turn without a known time (NaN) is in no span: every comparison with it is false.
        if start is not None:
            keep &= table.ts[rows] >= start.timestamp()
        if end is not None:
            keep &= table.ts[rows] < end.timestamp()
        if speaker is not None:
            keep &= self._spoken_by(speaker)
        return rows[keep]

    def _spoken_by(self, speaker: str) -> NDArray[np.bool_]:
        table, rows = self._view.table, self._rows
        name = fold(speaker)
        codes = [code for code, known in enumerate(table.speakers) if is_called(known, name)]
        keep: NDArray[np.bool_] = np.isin(table.speaker[rows], codes)
        if name in _ROLE_CODES:
            keep |= table.role[rows] == _ROLE_CODES[name]
        return keep

    def _turns(self, rows: Rows) -> tuple[DeepSource, ...]:
        """The turns of these rows; those that were forgotten since are left out."""
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
                ts=when_of(ts),
            )
            for text, code, index, role, speaker, ts in zip(texts, *columns, strict=True)
            if text
        )

    def _look_up(self, source_id: str) -> DeepSource | None:
        if source_id.startswith(MEMORY):
            name = source_id.removeprefix(MEMORY)
            record = self._lane.kept([name]).get(name) if self._include_memory else None
            if record is None or record.forgotten:
                return None
            return of_record(record)
        conversation_id, _, index = source_id.rpartition("#")
        if not (conversation_id and index.isascii() and index.isdecimal()) or len(index) > 9:
            return None
        try:
            found = self.transcript(conversation_id, int(index), int(index) + 1)
        except NotFound:
            return None
        # "7" and "007" are one number, but only one of them is the id.
        return found[0] if found and found[0].id == source_id else None

    # Memories.

    def _memories(
        self,
        query: str,
        limit: int,
        times: tuple[datetime | None, datetime | None] = (None, None),
        rest: float | None = REST,
    ) -> list[DeepSource]:
        if not self._include_memory:
            return []
        ends = zip(("gte", "lt"), times, strict=True)
        given = {name: value.isoformat() for name, value in ends if value is not None}
        weighed: list[DeepSource] = []
        for lane in (self._lane.recall_memories, self._lane.documents()):
            if lane is None:
                continue
            found = lane.recall(
                query,
                top_k=max(MEMORIES, limit // MEMORY_SHARE),
                min_score=None,
                filters={"created_at": given} if given else None,
                min_confidence=0.0,
            )
            self._report(found.degraded)
            # All of a kind are weighed against each other; what is below the floor only for that.
            near = {MEMORY + hit.id for hit in found if hit.similarity >= NEAR}
            records = lane.many(hit.id for hit in found)
            weighed += [
                replace(of_record(record), score=one.score)
                for one in weighed_memories(found, query, rest)
                if one.id in near and (record := records.get(one.id.removeprefix(MEMORY)))
            ]
        return sorted(weighed, key=lambda one: -(one.score or 0.0))

    def _keep(self, source: DeepSource) -> DeepSource:
        self._known[source.id] = replace(source, score=None)
        return source

    def _report(self, degraded: Iterable[Degraded]) -> None:
        self._reported.update(dict.fromkeys(degraded))


@dataclass(slots=True)
class ShownSources:
    """Which turns and memories were shown. `turns` has the indexes of each conversation."""

    turns: dict[str, set[int]] = field(default_factory=dict)
    memories: set[str] = field(default_factory=set)

    def add(self, sources: Iterable[DeepSource]) -> None:
        """Note these."""
        for one in sources:
            if one.conversation_id is not None and one.index is not None:
                self.turns.setdefault(one.conversation_id, set()).add(one.index)
            elif one.id.startswith(MEMORY):
                self.memories.add(one.id.removeprefix(MEMORY))

    def plain(self) -> dict[str, Any]:
        """For JSON: indexes as ranges [first, last], which are few where many are neighbours."""
        return {
            "turns": {one: _ranges(places) for one, places in self.turns.items()},
            "memories": sorted(self.memories),
        }

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> ShownSources:
        """The inverse of `plain`."""
        turns = {
            one: {place for first, last in ranges for place in range(first, last + 1)}
            for one, ranges in found.get("turns", {}).items()
        }
        return cls(turns, set(found.get("memories", ())))


def _ranges(places: Iterable[int]) -> list[list[int]]:
    found: list[list[int]] = []
    for place in sorted(places):
        if found and place == found[-1][1] + 1:
            found[-1][1] = place
        else:
            found.append([place, place])
    return found


def moment(what: str, text: str | None, now: datetime, *, end: bool = False) -> datetime | None:
    """The moment that `text` names: the start of a day or span, or with `end` its end.

    A time without a zone is in that of `now`. None for None and "". Raises `InvalidInput`.
    """
    if text is None or not text.strip():
        return None
    given = text.strip()
    try:
        found = datetime.fromisoformat(given)
    except ValueError:
        return _in_words(what, given, now, end)
    try:
        if found.utcoffset() is None:
            found = found.replace(tzinfo=now.tzinfo)
        if end and _DAY.match(given):
            found += timedelta(days=1)
    except OverflowError:
        raise InvalidInput(what, text, _YEARS) from None
    if not has_utc(found):
        raise InvalidInput(what, text, _YEARS)
    return found


def _in_words(what: str, text: str, now: datetime, end: bool) -> datetime:
    spans = read_times(text, now)
    if len(spans) != 1:
        reason = 'expected a time such as "2026-03-12" or "2026-03-12T09:30"'
        raise InvalidInput(what, text, reason)
    found = spans[0].end if end else spans[0].start
    if not has_utc(found):
        raise InvalidInput(what, text, _YEARS)
    return found


_YEARS = "expected a time between the years 1 and 9999"


_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\Z")
