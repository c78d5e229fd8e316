"""The memory lane: from a question to the memories that answer it.

It never changes a record, and a failing embedder never makes it raise: words answer alone, and the
answer says so.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from anaphora.calls.moments import checked_moment
from anaphora.errors import EmbeddingError, StoreError, TimedOut
from anaphora.rank.embedders import embedder_reads
from anaphora.rank.memories import UNREAD, MemoryScores, rank_memories
from anaphora.rank.silence import CALIBRATED_FOR, FACT_FLOOR
from anaphora.rank.statements import words_of
from anaphora.reading.inputs import statement_text
from anaphora.recall.candidates import Candidate, Placed
from anaphora.recall.former import REASON, PastAsked, read_chains, with_chain
from anaphora.recall.likelihood import with_floor
from anaphora.recall.narrowing import days_of, tell_coming, tell_meant
from anaphora.recall.ordering import COMPARABLE, order_candidates
from anaphora.recall.query import BLANK, check_count, check_share, query_vector
from anaphora.recall.question import Question, prepare
from anaphora.recall.reading import (
    PART,
    Window,
    begin_reading,
    day_of,
    titled_text,
)
from anaphora.recall.record_reads import record_cache
from anaphora.recall.successions import KnownLinks, LinkedCandidates, NoLinks, ToldStatement
from anaphora.recall.view_cache import ViewCache
from anaphora.store.codecs import to_micros
from anaphora.store.filters import parse
from anaphora.store.records.rows import as_mapping
from anaphora.store.records.titles import record_title
from anaphora.text.shown_times import tell_days
from anaphora.values.conversations import FINISH_VECTORS, Degraded, Recall, RecallMode
from anaphora.values.memories import HalfLives, MemoryHit, MemoryRecord, Rejected, RelatedMemory

if TYPE_CHECKING:
    from anaphora.embed.service import EmbedderService
    from anaphora.index.memories.index import MemoryIndex
    from anaphora.index.memories.state import AskedTime, Candidates, MemoryQuery
    from anaphora.reading.service import ReaderService
    from anaphora.store.records.store import Records

Fill: TypeAlias = Callable[[int], object]
"""Embeds some of so many memories that have no vector yet, within the call."""

OVERFETCH: Final = 8
"""Candidates by vector (and as many by words) for each hit that is wanted, as the seed has it."""

OVERREAD: Final = 2
"""The same for each candidate that is read with the question: what is read must not depend on how
many hits are wanted, and the best by meaning and words together are among so many by either."""

_READ_FIRST: Final = 9
_MOST_WANTED: Final = 10
"""Texts of candidates that are read at once, first: so many, and one for each hit that is wanted,
of the first ten; then twice as many."""

_ARRAYS: Final = ("words", "type", "created", "reinforced_at", "count", "titles", "timely")

_ANSWERS_KEPT: Final = 64
_AT_ONCE: Final = timedelta(seconds=1)

_SAME = "same"
_SHARED = sorted(
    {part.name for part in fields(MemoryRecord)} & {part.name for part in fields(MemoryHit)}
)
"""What a hit says as its memory does."""
_shared_of = attrgetter(*_SHARED)


@dataclass(frozen=True, slots=True)
class KeptNotes:
    """Notes about projects, which are memories to a reader."""

    records: Records
    index: MemoryIndex


@dataclass(frozen=True, slots=True)
class _RankedHits:
    """The hits that candidates gave at a moment, and how probably anything answers.

    `unread` says why they were not read with the question, where they should have been.
    """

    parts: tuple[Candidates, ...]
    moment: datetime
    hits: tuple[MemoryHit, ...]
    answered: float | None
    unread: tuple[Degraded, ...] = ()

    def holds(self, parts: tuple[Candidates, ...], moment: datetime) -> bool:
        """Whether the same candidates were found within a second, in which no score fades."""
        if self.unread:
            # The reader may be there now.
            return False
        is_same = len(parts) == len(self.parts) and all(map(operator.is_, parts, self.parts))
        return is_same and timedelta(0) <= moment - self.moment < _AT_ONCE


@dataclass(frozen=True, slots=True)
class MemoryRecall:
    """Answers questions from the memories of one namespace, and from its notes, if given.

    `by_currency` puts what holds now before what it replaced; where each stands for itself, it is
    False. `fill` makes a few vectors that are lacking, `later` begins to make the others.
    `title_of` gives what a record is called. `reader` says how probably each answers, `links` what
    replaced what.
    """

    records: Records
    index: MemoryIndex
    embedder: EmbedderService
    clock: Callable[[], datetime]
    half_lives: HalfLives = field(default_factory=HalfLives)
    fill: Fill | None = None
    later: Callable[[], object] | None = None
    notes: KeptNotes | None = None
    by_currency: bool = True
    title_of: Callable[[MemoryRecord], str] = record_title
    reader: ReaderService | None = None
    links: KnownLinks = field(default_factory=NoLinks)
    reads: ViewCache[MemoryRecord] = field(default_factory=record_cache)
    answers: ViewCache[_RankedHits] = field(default_factory=lambda: ViewCache(_ANSWERS_KEPT))

    @property
    def calibrated(self) -> bool:
        """Whether the embedder's cosines tell if anything answers."""
        return self.embedder.name.startswith(CALIBRATED_FOR)

    def recall(
        self,
        query: str | Question,
        *,
        top_k: int = 3,
        min_score: float | None = None,
        filters: Mapping[str, Any] | None = None,
        mode: RecallMode = "hybrid",
        as_of: datetime | None = None,
        explain: bool = False,
        min_confidence: float | None = None,
        read: int | None = None,
    ) -> Recall[MemoryHit]:
        """The `top_k` best memories for `query`, in descending order of score.

        `min_score` leaves out hits of a lower score; without one, and without filters, what has
        nothing in common with the question is left out. `filters` are applied before anything is
        cut, and what they let through comes, in the order of scores. Where the probability that a
        hit answers is below `min_confidence` (None: the calibrated floor), there are no hits.
        The first `read` candidates are read with the question (None: as many as by default).
        `as_of` (aware) asks what was true then. `explain` fills `Recall.rejected`. Raises
        `InvalidInput` for bad arguments and `FilterError` for a bad filter.
        """
        from anaphora.index.memories.state import MemoryQuery

        check_count("top_k", top_k, 1)
        floor = FACT_FLOOR if min_confidence is None else min_confidence
        check_share("min_confidence", floor)
        question = prepare(query, self.clock)
        window = begin_reading(read, mode, self.reader, question)
        if as_of is not None:
            checked_moment("as_of", as_of)
            question = replace(question, now=as_of)
        keep = self.records.resolved(parse(filters))
        # Naming what counts, or a least score of 0, does not ask whether there is anything.
        every = bool(keep.fields) or (min_score is not None and min_score <= 0.0)
        if question.is_blank:
            return Recall((), (BLANK,))
        degradations = list(question.notices)
        if mode != "words" and not self.embedder.ready(0):
            # Opened while the model is loaded beside it.
            self.index.sync()
        moment, alone = as_of or self.clock(), question.asks_time_alone
        vector = (
            None if mode == "words" else query_vector(self.embedder, question.text, degradations)
        )
        bare = mode == "vector" and vector is not None
        lookup = MemoryQuery(
            moment=moment,
            past=as_of is not None,
            keep=keep,
            limit=max(OVERFETCH * top_k, OVERREAD * window),
            vector=vector,
            terms=() if bare else question.asked_words,
            all_words=vector is None,
            every=every or alone,
            times=_look_up_times(question) if question.times else (),
            within=alone,
        )
        lookup, parts, candidates = self._search(lookup, every, degradations)
        # What was read for earlier questions is of the home as it was sealed then.
        self.records.sealer.check()
        least_score = -math.inf if min_score is None else min_score
        lowest = 0.0 if every or alone else floor
        key = (question.text, mode, top_k, least_score, keep, as_of, window, lowest)
        # Links are made behind the writes: an answer stands until there are others.
        links = self.links.version()
        answer = None if explain else self.answers.get(links, key)
        rejected_hits: tuple[Rejected, ...] = ()
        if answer is None or not answer.holds(parts, lookup.moment):
            work = _AnswerBuilder(self, question, lookup, not bare, explain, window, candidates)
            hits = work.hits(top_k, least_score, lowest)
            unread = tuple(work.unread)
            answer = _RankedHits(parts, lookup.moment, hits, work.answered, unread)
            self.answers.put(links, key, answer)
            rejected_hits = work.rejected() if explain else ()
        degradations += (*answer.unread, *self._report_damaged())
        recall = Recall(answer.hits, tuple(degradations), rejected_hits, notices=candidates.notices)
        if alone and not lookup.within and candidates.columns.ids:
            recall = _tell_unmet(question, recall, shown=every or floor == 0)
        elif vector is not None and not candidates.pending and mode == "hybrid":
            recall = with_floor(recall, answer.answered, lowest)
        return _add_times(question, recall, moment)

    def told(self, record_ids: Collection[str]) -> list[ToldStatement]:
        """What memories and notes of these say, those that were told by now."""
        now = self.clock()
        return [
            ToldStatement(record.id, record.text, record.created_at)
            for record in self.many(record_ids).values()
            if not record.forgotten and record.created_at <= now
        ]

    def _search(
        self, lookup: MemoryQuery, every: bool, degraded: list[Degraded]
    ) -> tuple[MemoryQuery, tuple[Candidates, ...], Candidates]:
        """What was looked for in the end, and what each index found, and both; `degraded` gets what
        lacked.

        Where nothing is of the times alone that a question asks for, all is looked for: what speaks
        of them in its words is told.
        """
        parts = self._find_candidates(lookup)
        if lookup.within and not any(part.columns.ids for part in parts):
            lookup = replace(lookup, within=False, every=every)
            parts = self._find_candidates(lookup)
        pending = _count_pending(parts)
        if pending and lookup.vector is not None and self.fill is not None:
            # A full or read-only disk hinders no answer: what has a vector is found by it, the rest
            # by words. A text that cannot be embedded is still counted as pending.
            try:
                self.fill(pending)
            except (EmbeddingError, TimedOut):
                pass
            except StoreError as error:
                degraded.append(Degraded("embeddings", f"new vectors were not kept: {error}"))
            parts = self._find_candidates(lookup)
            if _count_pending(parts) and self.later is not None:
                self.later()
        candidates = _join(*parts)
        degraded.extend(candidates.degraded)
        if pending := _count_pending(parts):
            reason = f"{pending} memories have no vector yet and are found by words only"
            degraded.append(Degraded("embeddings", f"{reason}; {FINISH_VECTORS}"))
        return lookup, parts, candidates

    def _report_damaged(self) -> tuple[Degraded, ...]:
        damaged_records = self.records.unreadable()
        if not damaged_records:
            return ()
        names = ", ".join(damaged_records[:5]) + (", …" if len(damaged_records) > 5 else "")
        reason = f"{len(damaged_records)} cannot be read ({names}): `doctor --repair` repairs them"
        return (Degraded("memories", reason),)

    def many(self, record_ids: Iterable[str]) -> dict[str, MemoryRecord]:
        """The memories and notes of these ids that exist, by id."""
        self.records.sealer.check()
        return self.reads.many(self.records.version(), record_ids, self.read_records)

    def read_records(self, ids: list[str]) -> dict[str, MemoryRecord]:
        """The same, from the database."""
        records = self.records.many(ids)
        if self.notes is not None and len(records) < len(ids):
            records |= self.notes.records.many(
                record_id for record_id in ids if record_id not in records
            )
        return records

    def readings_of(self, record_ids: Sequence[str]) -> list[str]:
        """What was read of each of these memories and notes that is on disk, "" for none."""
        lines = self.index.readings_of(record_ids)
        if self.notes is not None and not all(lines):
            note_lines = self.notes.index.readings_of(record_ids)
            lines = [line or note for line, note in zip(lines, note_lines, strict=True)]
        return lines

    def excluded(self, lookup: MemoryQuery) -> Candidates:
        """The candidates there would be if all might be shown, each with why it may not."""
        candidates = self.index.excluded(lookup)
        return (
            candidates
            if self.notes is None
            else _join(candidates, self.notes.index.excluded(lookup))
        )

    def fetch(self, lookup: MemoryQuery, record_ids: Collection[str]) -> Candidates:
        """Those of these memories and notes that may be shown, scored for a question."""
        parts = [index.fetch(lookup, record_ids) for index in self._indexes_in_use()]
        return _join(*parts)

    def closeness(self, record_id: str, others: Sequence[str]) -> list[float]:
        """The cosine of a memory to each of others, NaN where it is not known."""
        parts = [index.closeness(record_id, others) for index in self._indexes_in_use()]
        cosines: list[float] = np.fmax.reduce(np.array(parts)).tolist()
        return cosines

    def _indexes_in_use(self) -> tuple[MemoryIndex, ...]:
        notes = () if self.notes is None or not len(self.notes.index) else (self.notes.index,)
        return self.index, *notes

    def _find_candidates(self, lookup: MemoryQuery) -> tuple[Candidates, ...]:
        """Those of each index: the very same ones while nothing changed and nothing expired."""
        memories = self.index.candidates(lookup)
        if self.notes is None:
            return (memories,)
        return memories, self.notes.index.candidates(lookup, memories.version)


def _look_up_times(question: Question) -> tuple[AskedTime, ...]:
    """The times of a question as an index is asked for them."""
    from anaphora.index.memories.state import AskedTime

    return tuple(
        AskedTime(to_micros(span.start), to_micros(span.end), names.dated, names.yearless)
        for span, names in zip(question.times, question.time_names, strict=True)
    )


def _tell_unmet(question: Question, recall: Recall[MemoryHit], *, shown: bool) -> Recall[MemoryHit]:
    """An answer where nothing is of the question's times: hits that speak of one of them in its
    words and mean no other, or where they are `shown` all."""
    times = question.times
    notices = tuple(f"nothing is noted {days_of(span)} ({span.text})" for span in times)
    hits = tuple(
        hit
        for hit in recall.hits
        if shown
        or (
            any(words_of(span.text) <= words_of(hit.text) for span in times)
            and not tell_days(hit.text, hit.created_at)
        )
    )
    return replace(recall, hits=hits, notices=(*recall.notices, *notices))


def _add_times(question: Question, recall: Recall[MemoryHit], now: datetime) -> Recall[MemoryHit]:
    """An answer that tells which of its hits are dated in the future, or mean a day asked about."""
    dated_texts = ((hit.text, hit.created_at) for hit in (*recall.hits, *recall.nearest))
    coming = tell_coming(dated_texts, question.times, now)
    meant_notices = tell_meant(((hit.text, hit.created_at) for hit in recall.hits), question.times)
    notices = (*recall.notices, *coming, *meant_notices)
    return replace(recall, notices=notices) if coming or meant_notices else recall


def _count_pending(parts: Sequence[Candidates]) -> int:
    """How many memories that could be shown have no vector yet."""
    return sum(part.pending for part in parts)


def _join(first: Candidates, second: Candidates | None = None) -> Candidates:
    """The candidates of one or two indexes. Where one has no cosines, both are judged by words."""
    if second is None:
        return first
    first_columns, second_columns = first.columns, second.columns
    if len(first_columns.ids) and len(second_columns.ids):
        arrays = {
            name: np.concatenate((getattr(first_columns, name), getattr(second_columns, name)))
            for name in _ARRAYS
        }
        cosine = None
        if first_columns.cosine is not None and second_columns.cosine is not None:
            cosine = np.concatenate((first_columns.cosine, second_columns.cosine))
        columns = replace(
            first_columns, ids=(*first_columns.ids, *second_columns.ids), cosine=cosine, **arrays
        )
    else:
        columns = first_columns if len(first_columns.ids) else second_columns
    return replace(
        first,
        columns=columns,
        # What is read after this is at least as new as either.
        version=max(first.version, second.version),
        excluded=first.excluded + second.excluded,
        degraded=tuple(dict.fromkeys(first.degraded + second.degraded)),
        pending=first.pending + second.pending,
        searched=first.searched + second.searched,
        # A word that the other index holds was not read as another one.
        notices=tuple(
            notice for notice in first.notices if notice in second.notices or not second.columns.ids
        ),
    )


@dataclass(slots=True)
class _AnswerBuilder:
    """One answer in the making."""

    _lane: MemoryRecall
    _question: Question
    _lookup: MemoryQuery
    _hybrid: bool
    _explain: bool
    _window: int
    _found: Candidates
    answered: float | None = 0.0
    unread: list[Degraded] = field(default_factory=list)
    _rejected: list[tuple[int, str]] = field(default_factory=list)
    _scores: MemoryScores = field(init=False)
    _indexes: dict[str, int] = field(init=False)
    _read: dict[str, MemoryRecord] = field(default_factory=dict)
    _candidates: dict[int, Candidate] = field(default_factory=dict)
    _top_k: int = 0

    def __post_init__(self) -> None:
        self._scores = self._rank(self._found)
        self._indexes = {
            record_id: index for index, record_id in enumerate(self._found.columns.ids)
        }

    def hits(self, top_k: int, least: float, floor: float) -> tuple[MemoryHit, ...]:
        """The best `top_k` of at least this score, restatements shown once.

        Where anything answers as probably as `floor`, without those that hardly do (0: with them).
        """
        picks: list[Placed] = []
        self._top_k = top_k
        links: list[list[tuple[str, str]]] = []
        same_ids: dict[str, list[str]] = {}
        for candidate in self._order(0.0 if self._explain else floor):
            record_id = self._get_id(candidate.index)
            linked = self._lane.index.links(record_id)
            shown_ids = (self._get_id(pick.index) for pick in picks)
            if candidate.standing < least or len(picks) == top_k:
                if not self._explain:
                    break
                reason = "below_min_score" if candidate.standing < least else "beyond_top_k"
                self._rejected.append((candidate.index, reason))
            elif self._hybrid and (
                twin := next((hit_id for hit_id in shown_ids if (hit_id, _SAME) in linked), "")
            ):
                same_ids.setdefault(twin, []).append(record_id)
                self._rejected.append((candidate.index, f"same_as {twin}"))
            else:
                picks.append(candidate)
                links.append(linked)
        versions = self._read_versions(picks)
        records, ids, scores = self._read, self._found.columns.ids, self._scores
        # Of the linked memories those that are past stay out of sight.
        linked_ids = [linked_id for linked in links for linked_id, _ in linked]
        lookup = self._lookup
        # Most have none.
        visible_ids = (
            self._lane.index.visible(linked_ids, lookup.moment, past=lookup.past)
            if linked_ids
            else set()
        )
        hits = []
        for candidate, linked in zip(picks, links, strict=True):
            record = records.get(ids[candidate.index])
            # Forgotten between the search and now: it must not come back.
            if record is not None and not record.forgotten:
                ends = [end for end in linked if end[0] in visible_ids]
                related_ids = tuple(linked_id for linked_id, kind in ends if kind != _SAME)
                twins = (linked_id for linked_id, kind in ends if kind == _SAME)
                shown_once = tuple(dict.fromkeys((*same_ids.get(record.id, ()), *twins)))
                context = _HitContext(candidate, versions, related_ids, shown_once)
                hits.append(_make_hit(record, scores, candidate.index, context))
        return self._add_former(hits, top_k, least)

    def _add_former(self, hits: list[MemoryHit], top_k: int, least: float) -> tuple[MemoryHit, ...]:
        """The hits with the former values of their paths; first the one that is asked for."""
        if not self._lane.by_currency or all(hit.path is None for hit in hits):
            return tuple(hits)
        past = PastAsked.read(self._question)
        records = [self._read[hit.id] for hit in hits]
        chains = read_chains(records, self._records, past.depth)
        updated_hits = [
            replace(hit, previous=with_chain(hit.previous, chains[hit.id])) for hit in hits
        ]
        best_score = max(hit.score for hit in updated_hits)
        # Where several are as good, the first.
        for hit in sorted(updated_hits, key=lambda hit: -hit.score):
            version = past.version(self._read[hit.id], chains[hit.id])
            if version is None or not self._hybrid or hit.score < COMPARABLE * best_score:
                continue
            former = None if version.id == hit.id else self._make_former_hit(version, hit)
            front = [hit] if former is None or former.score < least else [former, hit]
            remaining = [other_hit for other_hit in updated_hits if other_hit not in front]
            index = 0 if hit.score == best_score else updated_hits.index(hit)
            return (*remaining[:index], *front, *remaining[index:])[:top_k]
        return tuple(updated_hits)

    def _make_former_hit(self, version: MemoryRecord, newer: MemoryHit) -> MemoryHit | None:
        """A value that a newer one of its path replaced, with its own score; None without one."""
        every = self._lane.excluded(self._lookup)
        is_allowed = self._lookup.keep.matches(as_mapping(version))
        if version.id not in every.columns.ids or not is_allowed:
            return None
        hit = _make_hit(version, self._rank(every), every.columns.ids.index(version.id))
        by = RelatedMemory(newer.id, newer.text, newer.created_at)
        return replace(hit, current=False, older_than=by, reason=REASON, answers=newer.answers)

    def _get_id(self, index: int) -> str:
        return self._found.columns.ids[index]

    def _order(self, floor: float) -> Iterator[Placed]:
        """What has anything in common with the question, what holds now before what it replaced."""
        scores = self._scores
        indexes: list[int] = scores.order.tolist()
        if self._hybrid and not self._lookup.every:
            silent = set(np.flatnonzero(scores.similarity <= 0.0).tolist())
            self._rejected += [(index, "nothing_in_common") for index in indexes if index in silent]
            indexes = [index for index in indexes if index not in silent]
        if not self._hybrid:
            ranked = ((index, float(scores.score[index])) for index in indexes)
            return (Placed(Candidate(i, "", score, 0.0, math.nan), score) for i, score in ranked)
        lane = self._lane

        def reader_texts(candidates: Sequence[Candidate]) -> list[str]:
            return [
                statement_text(
                    titled_text(candidate, question=self._question.text), day=day_of(candidate.at)
                )
                for candidate in candidates
            ]

        window = Window(
            self._question.text, self._window, "facts", lane.reader, reader_texts, self.unread
        )
        ordering = order_candidates(
            window.ordered(self._find_candidates(indexes)),
            self._question.text,
            LinkedCandidates(
                lane.links if lane.by_currency else NoLinks(),
                lambda candidate: self._get_id(candidate.index),
                self._fetch,
                lambda candidate, others: lane.closeness(
                    self._get_id(candidate.index), [self._get_id(member.index) for member in others]
                ),
            ),
            self._question.spans,
            statements=self._found.searched,
            count=len(indexes),
            # What says the same was linked when it was kept.
            repetitions=True,
            # Whether all memories that may be shown have a cosine.
            calibrated=lane.calibrated
            and self._lookup.vector is not None
            and not self._found.pending,
            lane="facts",
            subject=self._question.subject,
        )
        self.answered = ordering.confidence
        return ordering.without_tail(floor)

    def _find_candidates(self, indexes: Sequence[int]) -> Iterator[Candidate]:
        """Candidates with their texts, some at a time; without those that were forgotten since."""
        read_count, size = 0, max(self._window + 1, _READ_FIRST + min(self._top_k, _MOST_WANTED))
        while chunk := indexes[read_count : read_count + size]:
            self._make_candidates(chunk)
            yield from (self._candidates[index] for index in chunk if index in self._candidates)
            read_count, size = read_count + size, 2 * size

    def _make_candidates(self, indexes: Collection[int]) -> None:
        """Read the texts of candidates; those that were forgotten since become none."""
        columns, factors, places = self._found.columns, self._scores.factors, list(indexes)
        ids = [columns.ids[index] for index in places]
        records = self._records(ids)
        now, nothing = to_micros(self._lookup.moment), np.zeros(len(self._indexes))
        noted_at = columns.reinforced_at[places]
        # Said again at a time to come: what was noted first is sure.
        noted_at = np.where(noted_at > now, columns.created[places], noted_at)
        table = (
            self._scores.score[places],
            factors.get("meaning", nothing)[places],
            # What was said again holds from then on.
            noted_at / 1e6 if self._lane.by_currency else nothing[places],
            columns.count[places],
            factors.get("title", nothing)[places],
            noted_at > now,
            (nothing if columns.timely is None else columns.timely)[places] > 0,
        )
        rows = zip(*(column.tolist() for column in table), strict=True)
        lines = self._lane.readings_of(ids)
        for index, record_id, line, facts in zip(places, ids, lines, rows, strict=True):
            if (record := records.get(record_id)) is not None:
                score, meaning, at, count, titled, coming, timely = facts
                self._candidates[index] = Candidate(
                    index,
                    record.text,
                    score,
                    meaning,
                    at,
                    line=line,
                    restated=count,
                    title=self._lane.title_of(record),
                    titled=titled,
                    coming=coming,
                    timely=timely,
                )

    def _fetch(self, record_ids: Collection[str]) -> list[Candidate]:
        """The candidates of these ids that may be shown: those that were none become ones."""
        new_ids = [record_id for record_id in record_ids if record_id not in self._indexes]
        fetched = self._lane.fetch(self._lookup, new_ids) if new_ids else None
        if fetched is not None and fetched.columns.ids:
            self._found = _join(self._found, fetched)
            self._scores = self._rank(self._found)
            for record_id in fetched.columns.ids:
                self._indexes[record_id] = len(self._indexes)
        indexes = [self._indexes[name] for name in record_ids if name in self._indexes]
        self._make_candidates(set(indexes) - self._candidates.keys())
        return [self._candidates[index] for index in indexes if index in self._candidates]

    def _records(self, ids: Iterable[str]) -> Mapping[str, MemoryRecord]:
        """What is known of these ids, and of others: each is read once, after the search."""
        unread = [record_id for record_id in ids if record_id not in self._read]
        if unread:
            lane = self._lane
            self._read |= lane.reads.many(self._found.version, unread, lane.read_records)
        return self._read

    def _read_versions(self, picks: Sequence[Placed]) -> dict[int, RelatedMemory]:
        """Read the hits with what they replace or are replaced by, and return the latter.

        By their places; none that was forgotten since.
        """
        ids = self._found.columns.ids
        indexes = {index for pick in picks for index in pick.previous}
        indexes |= {pick.older_than for pick in picks if pick.older_than is not None}
        records = self._records({ids[index] for index in (*indexes, *(p.index for p in picks))})
        indexed_records = ((index, records.get(ids[index])) for index in sorted(indexes))
        return {
            index: RelatedMemory(record.id, record.text, record.created_at)
            for index, record in indexed_records
            if record is not None and not record.forgotten
        }

    def rejected(self) -> tuple[Rejected, ...]:
        """Candidates that were not shown, best first: of what could be shown, then of the rest."""
        candidates = self._found
        rank = {index: at for at, index in enumerate(self._scores.order.tolist())}
        self._rejected.sort(key=lambda pair: rank[pair[0]])
        rejections = self._describe(candidates, self._scores, self._rejected)
        every = self._lane.excluded(self._lookup)
        found_ids = set(candidates.columns.ids)
        scores = self._rank(every)
        excluded_rows = [
            (index, every.excluded[index])
            for index in scores.order.tolist()
            if every.excluded[index] and every.columns.ids[index] not in found_ids
        ]
        return (*rejections, *self._describe(every, scores, excluded_rows))

    def _describe(
        self, candidates: Candidates, scores: MemoryScores, reasons: Sequence[tuple[int, str]]
    ) -> Iterator[Rejected]:
        records = self._lane.many(candidates.columns.ids[index] for index, _ in reasons)
        for index, reason in reasons:
            record = records.get(candidates.columns.ids[index])
            if record is not None:
                yield Rejected(_make_hit(record, scores, index), reason)

    def _rank(self, candidates: Candidates) -> MemoryScores:
        now, columns = to_micros(self._lookup.moment), candidates.columns
        if self._hybrid and columns.cosine is not None:
            cosine = self._lane.embedder.calibration.asked.apply(columns.cosine)
            if not embedder_reads(self._lane.embedder.name, self._question.text):
                cosine = cosine * UNREAD
            columns = replace(columns, cosine=cosine)
        return rank_memories(columns, now, self._lane.half_lives, hybrid=self._hybrid)


@dataclass(frozen=True, slots=True)
class _HitContext:
    """Where a hit stands among the others: what it was ordered by, and what it is linked with."""

    placed: Placed
    versions: Mapping[int, RelatedMemory]
    related: tuple[str, ...]
    same_as: tuple[str, ...]

    def fields(self, score: float) -> dict[str, Any]:
        """The fields of a hit with `score` as its own score."""
        placed, candidate, versions = self.placed, self.placed.candidate, self.versions
        replacing = None if placed.older_than is None else versions.get(placed.older_than)
        # What the candidate's changes did to that score: of the reader a part, else a factor.
        changes = candidate.changes
        read = changes.get(PART, 0.0)
        factors = {PART: read} if PART in changes else {}
        if "unanswered" in changes and score + read:
            factors["unanswered"] = candidate.score / (score + read)
        return {
            "related": self.related,
            "same_as": self.same_as,
            "current": replacing is None,
            "older_than": replacing,
            "reason": placed.reason if replacing is not None else "",
            "previous": tuple(versions[at] for at in placed.previous if at in versions),
            "score": candidate.score,
            "factors": factors,
            "answers": placed.answers,
            "read": candidate.read_probability,
        }


def _make_hit(
    record: MemoryRecord, scores: MemoryScores, index: int, context: _HitContext | None = None
) -> MemoryHit:
    score, factors = float(scores.score[index]), scores.explain(index)
    details = {} if context is None else context.fields(score)
    return MemoryHit(
        **dict(zip(_SHARED, _shared_of(record), strict=True)),
        similarity=float(scores.similarity[index]),
        decay=float(scores.decay[index]),
        reinforcement=float(scores.reinforcement[index]),
        **{"score": score, **details, "factors": factors | details.get("factors", {})},
    )
