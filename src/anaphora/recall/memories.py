"""The memory lane: from a question to the memories that answer it.

It never changes truth, and a failing embedder never makes it raise: words answer alone, and the
result says so.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from functools import lru_cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from anaphora.core.analyser import QueryWord, query_words
from anaphora.core.arguments import checked_moment
from anaphora.errors import EmbeddingError, StoreError, TimedOut
from anaphora.rank.currency import LEAST_SHARE
from anaphora.rank.embedders import traits_of
from anaphora.rank.memories import UNREAD, MemoryCandidates, MemoryScores, rank_memories
from anaphora.rank.replacement import PairJudge, judge_pairs
from anaphora.rank.silence import CALIBRATED_FOR, FACT_FLOOR
from anaphora.rank.statements import asked_words, words_of
from anaphora.reading.inputs import statement_text
from anaphora.recall.currency import COMPARABLE, RELATED, Candidate, order_memories
from anaphora.recall.former import REASON, PastAsked, read_chains, with_chain
from anaphora.recall.likelihood import with_floor
from anaphora.recall.narrowing import (
    asks_for_a_time_alone,
    days_of,
    names_of,
    tell_coming,
    without_times,
)
from anaphora.recall.passages import FAR
from anaphora.recall.query import (
    BLANK,
    check_count,
    check_share,
    query_vector,
    truncated_question,
    typed_question,
)
from anaphora.recall.reading import (
    PART,
    Window,
    begin_reading,
    day_of,
    pair_judge,
    titled_text,
)
from anaphora.recall.record_reads import Neighbours, RecordReads
from anaphora.recall.times.reading import read_times
from anaphora.recall.view_cache import ViewCache
from anaphora.store.codecs import to_micros
from anaphora.store.filters import parse
from anaphora.store.records.rows import as_mapping
from anaphora.store.records.titles import record_title
from anaphora.values.conversations import FINISH_VECTORS, Degraded, Recall, RecallMode, TimeSpan
from anaphora.values.memories import HalfLives, MemoryHit, MemoryRecord, Rejected, RelatedMemory

if TYPE_CHECKING:
    from anaphora.embed.service import EmbedderService
    from anaphora.index.memories.index import MemoryIndex
    from anaphora.index.memories.state import AskedTime, Candidates, MemoryQuery, Related
    from anaphora.reading.service import ReaderService
    from anaphora.store.records.store import Records

Fill: TypeAlias = Callable[[int], object]
"""Embeds at most so many memories that were kept before the model was there."""

OVERFETCH: Final = 8
"""Candidates by vector (and as many by words) for each hit that is wanted, as the seed has it."""

FEW: Final = 32
"""Memories without a vector that a question embeds first. A backlog of short texts this long takes
some 60 ms; a longer one is brought in by `reindex` or `ready`, or question by question."""

OVERREAD: Final = 2
"""The same for each candidate that is read with the question: what is read must not depend on how
many hits are wanted, and the best by meaning and words together are among so many by either."""

_READ_FIRST: Final = 12
"""Texts of candidates that are read at once, first; then twice as many."""

_ARRAYS: Final = ("words", "type", "created", "reinforced_at", "count", "titles", "timely")

_ANSWERS_KEPT: Final = 64
_AT_ONCE: Final = timedelta(seconds=1)
_ONE_VIEW: Final = 0

_SAME = "same"
_SHARED = sorted(
    {one.name for one in fields(MemoryRecord)} & {one.name for one in fields(MemoryHit)}
)
"""What a hit says as its memory does."""
_shared_of = attrgetter(*_SHARED)


@dataclass(frozen=True, slots=True)
class KeptNotes:
    """Notes about projects, which are memories to a reader."""

    records: Records
    index: MemoryIndex


@dataclass(frozen=True, slots=True)
class _Answer:
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
        same = len(parts) == len(self.parts) and all(map(operator.is_, parts, self.parts))
        return same and timedelta(0) <= moment - self.moment < _AT_ONCE


@dataclass(frozen=True, slots=True)
class MemoryRecall:
    """Answers questions from the memories of one namespace, and from its notes, if given.

    `by_currency` puts what holds now before what it replaced; where each stands for itself, it is
    False. `fill` makes a few vectors that are lacking, `later` begins to make the others.
    `title_of` gives what a record is called. `judge` says of two memories whether the newer
    replaces the older, `reader` how probably each answers.
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
    judge: PairJudge = judge_pairs
    reader: ReaderService | None = None
    reads: RecordReads = field(default_factory=RecordReads)
    answers: ViewCache[_Answer] = field(default_factory=lambda: ViewCache(_ANSWERS_KEPT))

    @property
    def calibrated(self) -> bool:
        """Whether the embedder's cosines tell if anything answers."""
        return self.embedder.name.startswith(CALIBRATED_FOR)

    def recall(
        self,
        query: str,
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
        window = begin_reading(read, mode, self.reader, query)
        if as_of is not None:
            checked_moment("as_of", as_of)
        keep = self.records.resolved(parse(filters))
        # Who names what counts, or a score of nothing, is not asking whether there is anything.
        every = bool(keep.fields) or (min_score is not None and min_score <= 0.0)
        if not query.strip():
            return Recall((), (BLANK,))
        query, cut = truncated_question(typed_question(query))
        degraded = list(cut)
        if mode != "words" and not self.embedder.ready(0):
            # Opened while the model is loaded beside it.
            self.index.sync()
        times = _TimesAsked.of(query, as_of or self.clock())
        vector = None if mode == "words" else query_vector(self.embedder, query, degraded)
        bare = mode == "vector" and vector is not None
        wanted = MemoryQuery(
            moment=times.now,
            past=as_of is not None,
            keep=keep,
            limit=max(OVERFETCH * top_k, OVERREAD * window),
            vector=vector,
            terms=() if bare else asked_words(query),
            all_words=vector is None,
            every=every or times.alone,
            times=times.looked_up,
            within=times.alone,
        )
        wanted, parts = self._searched(wanted, every, degraded)
        found = _joined(*parts)
        # What was read for earlier questions is of the home as it was sealed then.
        self.records.check()
        least = -math.inf if min_score is None else min_score
        lowest = 0.0 if every or times.alone else floor
        key = (query, mode, top_k, least, keep, as_of, window, lowest)
        answer = None if explain else self.answers.get(_ONE_VIEW, key)
        rejected: tuple[Rejected, ...] = ()
        if answer is None or not answer.holds(parts, wanted.moment):
            work = _AnswerBuilder(
                self,
                query,
                wanted,
                not bare,
                explain,
                window,
                found,
                times.seconds,
                without_times(query, times.spans),
            )
            hits = work.hits(top_k, least, lowest)
            unread = tuple(work.unread)
            answer = _Answer(parts, wanted.moment, hits, work.answered, unread)
            self.answers.put(_ONE_VIEW, key, answer)
            rejected = work.rejected() if explain else ()
        degraded += (*answer.unread, *self._damaged())
        told = Recall(answer.hits, tuple(degraded), rejected, notices=found.notices)
        if times.alone and not wanted.within and found.columns.ids:
            told = times.unmet(told, shown=every or floor == 0)
        elif vector is not None and not found.pending and mode == "hybrid":
            told = with_floor(told, answer.answered, lowest)
        return times.with_coming(told)

    def _searched(
        self, wanted: MemoryQuery, every: bool, degraded: list[Degraded]
    ) -> tuple[MemoryQuery, tuple[Candidates, ...]]:
        """What was looked for in the end, and what each index found; `degraded` gets what lacked.

        Where nothing is of the times alone that a question asks for, all is looked for: what comes
        closest is told.
        """
        parts = self._candidates(wanted)
        if wanted.within and not any(part.columns.ids for part in parts):
            wanted = replace(wanted, within=False, every=every)
            parts = self._candidates(wanted)
        if _pending(parts) and wanted.vector is not None and self.fill is not None:
            degraded.extend(_filled(self.fill))
            parts = self._candidates(wanted)
            if _pending(parts) and self.later is not None:
                self.later()
        degraded.extend(_joined(*parts).degraded)
        if pending := _pending(parts):
            reason = f"{pending} memories have no vector yet and are found by words only"
            degraded.append(Degraded("embeddings", f"{reason}; {FINISH_VECTORS}"))
        return wanted, parts

    def _damaged(self) -> tuple[Degraded, ...]:
        damaged = self.records.unreadable()
        if not damaged:
            return ()
        names = ", ".join(damaged[:5]) + (", …" if len(damaged) > 5 else "")
        reason = f"{len(damaged)} cannot be read ({names}): `doctor --repair` repairs them"
        return (Degraded("memories", reason),)

    def many(self, record_ids: Iterable[str]) -> dict[str, MemoryRecord]:
        """The memories and notes of these ids that exist, by id."""
        self.records.check()
        return self.reads.many(self.records.version(), record_ids, self.read_records)

    def read_records(self, ids: list[str]) -> dict[str, MemoryRecord]:
        """The same, from truth."""
        found = self.records.many(ids)
        if self.notes is not None and len(found) < len(ids):
            found |= self.notes.records.many(one for one in ids if one not in found)
        return found

    def excluded(self, wanted: MemoryQuery) -> Candidates:
        """The candidates there would be if all might be shown, each with why it may not."""
        found = self.index.excluded(wanted)
        return found if self.notes is None else _joined(found, self.notes.index.excluded(wanted))

    def related(self, wanted: MemoryQuery, text: str, to: str) -> Related:
        """What the indexes hold in the words of `text`, which is of the memory `to`."""
        from anaphora.index.memories.state import Related

        wanted, words = replace(wanted, limit=RELATED), _words_of(text)
        found = self.index.related(wanted, words, to)
        if self.notes is None or not len(self.notes.index):
            return found
        notes = self.notes.index.related(wanted, words, to)
        return Related(
            _joined(found.candidates, notes.candidates),
            np.concatenate((found.closeness, notes.closeness)),
        )

    def _candidates(self, wanted: MemoryQuery) -> tuple[Candidates, ...]:
        """Those of each index: the very same ones while nothing changed and nothing expired."""
        found = self.index.candidates(wanted)
        return (found,) if self.notes is None else (found, self.notes.index.candidates(wanted))


@dataclass(frozen=True, slots=True)
class _TimesAsked:
    """The times that a question asked at `now` names; `alone`: it asks for nothing else."""

    spans: tuple[TimeSpan, ...]
    alone: bool
    now: datetime

    @classmethod
    def of(cls, question: str, now: datetime) -> _TimesAsked:
        """Those of a question."""
        spans = read_times(question, now)
        return cls(spans, asks_for_a_time_alone(question, spans), now)

    @property
    def seconds(self) -> tuple[tuple[float, float], ...]:
        """Their ends in seconds since 1970."""
        return tuple((span.start.timestamp(), span.end.timestamp()) for span in self.spans)

    @property
    def looked_up(self) -> tuple[AskedTime, ...]:
        """The times as an index is asked for them."""
        from anaphora.index.memories.state import AskedTime

        named = ((span, names_of(span)) for span in self.spans)
        return tuple(
            AskedTime(to_micros(span.start), to_micros(span.end), names.dated, names.yearless)
            for span, names in named
        )

    def unmet(self, told: Recall[MemoryHit], *, shown: bool) -> Recall[MemoryHit]:
        """An answer where nothing is of these times: hits that speak of one of them in the words of
        the question, or where they are `shown` all."""
        notices = tuple(f"nothing is noted {days_of(span)} ({span.text})" for span in self.spans)
        hits = tuple(hit for hit in told.hits if shown or self._named_by(hit.text))
        nearest = () if hits else told.hits
        return replace(told, hits=hits, nearest=nearest, notices=(*told.notices, *notices))

    def _named_by(self, text: str) -> bool:
        return any(words_of(span.text) <= words_of(text) for span in self.spans)

    def with_coming(self, told: Recall[MemoryHit]) -> Recall[MemoryHit]:
        """An answer that tells which of its hits are dated in the future."""
        dated = ((hit.text, hit.created_at) for hit in (*told.hits, *told.nearest))
        coming = tell_coming(dated, self.spans, self.now)
        return replace(told, notices=(*told.notices, *coming)) if coming else told


def _told(question: str, candidates: Sequence[Candidate]) -> list[str]:
    """Memories as the reader reads them with a question."""
    return [
        statement_text(titled_text(one, question=question), day=day_of(one.at))
        for one in candidates
    ]


@lru_cache(maxsize=1024)
def _words_of(text: str) -> tuple[QueryWord, ...]:
    """What a memory is looked up by: for a question asked again, the same ones."""
    return query_words(text)


def _taken(found: Candidates, rows: Sequence[int]) -> MemoryCandidates:
    """The columns of some rows."""
    columns = found.columns
    arrays = {name: getattr(columns, name)[rows] for name in _ARRAYS}
    cosine = None if columns.cosine is None else columns.cosine[rows]
    return replace(columns, ids=tuple(columns.ids[row] for row in rows), cosine=cosine, **arrays)


def _filled(fill: Fill) -> tuple[Degraded, ...]:
    """Make a few of the vectors that are lacking; why they could not be kept, if they could not.

    A full or read-only disk hinders no answer: what has a vector is found by it, the rest by words.
    """
    try:
        fill(FEW)
    except (EmbeddingError, TimedOut):
        # A text that cannot be embedded stays behind, and is counted as pending.
        pass
    except StoreError as error:
        return (Degraded("embeddings", f"new vectors were not kept: {error}"),)
    return ()


def _pending(parts: Sequence[Candidates]) -> int:
    """How many memories that could be shown have no vector yet."""
    return sum(part.pending for part in parts)


def _joined(one: Candidates, other: Candidates | None = None) -> Candidates:
    """The candidates of one or two indexes. Where one has no cosines, both are judged by words."""
    if other is None:
        return one
    first, second = one.columns, other.columns
    if len(first.ids) and len(second.ids):
        arrays = {
            name: np.concatenate((getattr(first, name), getattr(second, name))) for name in _ARRAYS
        }
        cosine = None
        if first.cosine is not None and second.cosine is not None:
            cosine = np.concatenate((first.cosine, second.cosine))
        columns = replace(first, ids=(*first.ids, *second.ids), cosine=cosine, **arrays)
    else:
        columns = first if len(first.ids) else second
    return replace(
        one,
        columns=columns,
        # What is read after this is at least as new as either.
        version=max(one.version, other.version),
        excluded=one.excluded + other.excluded,
        degraded=tuple(dict.fromkeys(one.degraded + other.degraded)),
        pending=one.pending + other.pending,
        searched=one.searched + other.searched,
        # A word that the other index holds was not read as another one.
        notices=tuple(
            told for told in one.notices if told in other.notices or not other.columns.ids
        ),
    )


@dataclass(slots=True)
class _AnswerBuilder:
    """One answer in the making."""

    _lane: MemoryRecall
    _question: str
    _wanted: MemoryQuery
    _hybrid: bool
    _explain: bool
    _window: int
    _found: Candidates
    _spans: tuple[tuple[float, float], ...] = ()
    _subject: str = ""
    answered: float | None = 0.0
    unread: list[Degraded] = field(default_factory=list)
    _rejected: list[tuple[int, str]] = field(default_factory=list)
    _scores: MemoryScores = field(init=False)
    _places: dict[str, int] = field(init=False)
    _read: dict[str, MemoryRecord] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._scores = self._rank(self._found)
        self._places = {one: place for place, one in enumerate(self._found.columns.ids)}

    def hits(self, top_k: int, least: float, floor: float) -> tuple[MemoryHit, ...]:
        """The best `top_k` of at least this score, restatements shown once.

        Where anything answers as probably as `floor`, without those that hardly do (0: with them).
        """
        taken: list[Candidate] = []
        found_ids = self._found.columns.ids
        best_first = [found_ids[p] for p in self._scores.order.tolist()]
        version = self._found.version
        links = _Links(self._lane.records, best_first, self._lane.reads.neighbours, version)
        same: dict[str, list[str]] = {}
        for candidate in self._ordered(0.0 if self._explain else floor):
            own = self._id_of(candidate.place)
            shown = (self._id_of(other.place) for other in taken)
            if candidate.standing < least or len(taken) == top_k:
                if not self._explain:
                    break
                reason = "below_min_score" if candidate.standing < least else "beyond_top_k"
                self._rejected.append((candidate.place, reason))
            elif twin := self._hybrid and links.shown_twin(own, shown):
                same.setdefault(twin, []).append(own)
                self._rejected.append((candidate.place, f"same_as {twin}"))
            else:
                taken.append(candidate)
        records = self._records(self._mentioned(taken))
        ids, scores = self._found.columns.ids, self._scores
        related = self._standing(links, [ids[candidate.place] for candidate in taken])
        versions = _versions(records, ids, taken)
        hits = []
        for candidate in taken:
            record = records.get(ids[candidate.place])
            # Forgotten between the search and now: it must not come back.
            if record is not None and not record.forgotten:
                others = tuple(i for i in links.others(record.id, "related") if i in related)
                twins = [i for i in links.others(record.id, _SAME) if i in related]
                shown_once = tuple(dict.fromkeys((*same.get(record.id, ()), *twins)))
                standing = _Standing(candidate, versions, others, shown_once)
                hits.append(_hit(record, scores, candidate.place, standing))
        return self._with_former(hits, top_k, least)

    def _with_former(
        self, hits: list[MemoryHit], top_k: int, least: float
    ) -> tuple[MemoryHit, ...]:
        """The hits with the former values of their paths; first the one that is asked for."""
        if not self._lane.by_currency or all(hit.path is None for hit in hits):
            return tuple(hits)
        asked = PastAsked.read(self._question, self._wanted.moment)
        records = [self._read[hit.id] for hit in hits]
        chains = read_chains(records, self._records, asked.depth)
        told = [replace(hit, previous=with_chain(hit.previous, chains[hit.id])) for hit in hits]
        best = max(hit.score for hit in told)
        # Where several are as good, the first.
        for hit in sorted(told, key=lambda hit: -hit.score):
            version = asked.version(self._read[hit.id], chains[hit.id])
            if version is None or not self._hybrid or hit.score < COMPARABLE * best:
                continue
            former = None if version.id == hit.id else self._former_hit(version, hit)
            shown = [hit] if former is None or former.score < least else [former, hit]
            others = [one for one in told if one not in shown]
            place = 0 if hit.score == best else told.index(hit)
            return (*others[:place], *shown, *others[place:])[:top_k]
        return tuple(told)

    def _former_hit(self, version: MemoryRecord, newer: MemoryHit) -> MemoryHit | None:
        """A value that a newer one of its path replaced, with its own score; None without one."""
        every = self._lane.excluded(self._wanted)
        allowed = self._wanted.keep.matches(as_mapping(version))
        if version.id not in every.columns.ids or not allowed:
            return None
        hit = _hit(version, self._rank(every), every.columns.ids.index(version.id))
        by = RelatedMemory(newer.id, newer.text, newer.created_at)
        return replace(hit, current=False, older_than=by, reason=REASON, answers=newer.answers)

    @property
    def _is_rated(self) -> bool:
        """Whether all memories that may be shown have a cosine."""
        return self._wanted.vector is not None and not self._found.pending

    def _id_of(self, place: int) -> str:
        return self._found.columns.ids[place]

    def _ordered(self, floor: float) -> Iterator[Candidate]:
        """What has anything in common with the question, what holds now before what it replaced."""
        scores = self._scores
        places: list[int] = scores.order.tolist()
        if self._hybrid and not self._wanted.every:
            silent = set(np.flatnonzero(scores.similarity <= 0.0).tolist())
            self._rejected += [(place, "nothing_in_common") for place in places if place in silent]
            places = [place for place in places if place not in silent]
        if not self._hybrid:
            return (self._candidate(place) for place in places)
        lane, told = self._lane, partial(_told, self._question)
        window = Window(self._question, self._window, "facts", lane.reader, told, self.unread)
        ordered = order_memories(
            window.ordered(self._candidates(places)),
            self._question,
            lambda candidate: map(window.as_read, self._related(candidate)),
            self._spans,
            statements=self._found.searched,
            judge=pair_judge(lane.reader, lane.judge, window.lane),
            calibrated=lane.calibrated and self._is_rated,
            subject=self._subject,
        )
        self.answered = ordered.confidence
        return ordered.without_tail(floor)

    def _candidates(self, places: Sequence[int]) -> Iterator[Candidate]:
        """Candidates with their texts, some at a time; without those that were forgotten since."""
        ids = self._found.columns.ids
        done, size = 0, max(_READ_FIRST, self._window + 1)
        while some := places[done : done + size]:
            read = self._records(ids[place] for place in some)
            for place in some:
                if (record := read.get(ids[place])) is not None:
                    yield self._candidate(place, record)
            done, size = done + size, 2 * size

    def _candidate(
        self, place: int, record: MemoryRecord | None = None, closeness: float = math.nan
    ) -> Candidate:
        columns, scores = self._found.columns, self._scores
        meaning = scores.factors.get("meaning")
        now, said = to_micros(self._wanted.moment), int(columns.reinforced_at[place])
        if said > now:
            # Said again at a time to come: what was noted first is sure.
            said = int(columns.created[place])
        return Candidate(
            place,
            "" if record is None else record.text,
            float(scores.score[place]),
            0.0 if meaning is None else float(meaning[place]),
            # What was said again holds from then on.
            said / 1e6 if self._lane.by_currency else 0.0,
            restated=int(columns.count[place]),
            closeness=closeness,
            title="" if record is None else self._lane.title_of(record),
            titled=scores.explain(place).get("title", 0.0),
            coming=said > now,
            timely=columns.timely is not None and bool(columns.timely[place]),
        )

    def _related(self, candidate: Candidate) -> Iterator[Candidate]:
        """The memories in the words of a candidate; those that were no candidates become ones."""
        of = self._id_of(candidate.place)
        related = self._lane.related(self._wanted, candidate.text[:FAR], of)
        found, ids = related.candidates, related.candidates.columns.ids
        new = [at for at, one in enumerate(ids) if one not in self._places]
        if new:
            self._found = _joined(self._found, replace(found, columns=_taken(found, new)))
            self._scores = self._rank(self._found)
            for at in new:
                self._places[ids[at]] = len(self._places)
        records = self._records(ids)
        alike = self._lane.embedder.calibration.alike
        least, scores = LEAST_SHARE * candidate.score, self._scores.score
        for one, close in zip(ids, related.closeness.tolist(), strict=True):
            place, record = self._places[one], records.get(one)
            if record is not None and scores[place] >= least:
                yield self._candidate(place, record, alike.applied_to(close))

    def _records(self, ids: Iterable[str]) -> Mapping[str, MemoryRecord]:
        """What is known of these ids, and of others: each is read once, after the search."""
        unread = [one for one in ids if one not in self._read]
        if unread:
            lane = self._lane
            self._read |= lane.reads.many(self._found.version, unread, lane.read_records)
        return self._read

    def _mentioned(self, taken: Sequence[Candidate]) -> set[str]:
        """The ids of the hits, and of what they replace or are replaced by."""
        ids = self._found.columns.ids
        places = {place for one in taken for place in (one.place, *one.previous)}
        places |= {one.older_than for one in taken if one.older_than is not None}
        return {ids[place] for place in places}

    def rejected(self) -> tuple[Rejected, ...]:
        """Candidates that were not shown, best first: of what could be shown, then of the rest."""
        found = self._found
        rank = {place: at for at, place in enumerate(self._scores.order.tolist())}
        self._rejected.sort(key=lambda one: rank[one[0]])
        out = self._described(found, self._scores, self._rejected)
        every = self._lane.excluded(self._wanted)
        known = set(found.columns.ids)
        scores = self._rank(every)
        others = [
            (place, every.excluded[place])
            for place in scores.order.tolist()
            if every.excluded[place] and every.columns.ids[place] not in known
        ]
        return (*out, *self._described(every, scores, others))

    def _described(
        self, found: Candidates, scores: MemoryScores, places: Sequence[tuple[int, str]]
    ) -> Iterator[Rejected]:
        records = self._lane.many(found.columns.ids[place] for place, _ in places)
        for place, reason in places:
            record = records.get(found.columns.ids[place])
            if record is not None:
                yield Rejected(_hit(record, scores, place), reason)

    def _rank(self, found: Candidates) -> MemoryScores:
        now, columns = to_micros(self._wanted.moment), found.columns
        if self._hybrid and columns.cosine is not None:
            cosine = self._lane.embedder.calibration.asked.applied(columns.cosine)
            if not traits_of(self._lane.embedder.name).understands(self._question):
                cosine = cosine * UNREAD
            columns = replace(columns, cosine=cosine)
        return rank_memories(columns, now, self._lane.half_lives, hybrid=self._hybrid)

    def _standing(self, links: _Links, taken: list[str]) -> set[str]:
        """Which of the linked memories may be shown: those that are past stay out of sight."""
        linked = [other for one in taken for other in links.others(one)]
        if not linked:
            return set()
        return self._lane.index.visible(linked, self._wanted.moment, past=self._wanted.past)


class _Links:
    """The links of candidates, read when they are first asked for, some candidates at a time.

    Those that were read at this `version` before are taken from `cache`.
    """

    _STEP = 16

    def __init__(
        self, records: Records, ids: list[str], cache: ViewCache[Neighbours], version: int
    ) -> None:
        self._records = records
        self._waiting = ids
        self._cache = cache
        self._version = version
        self._known: dict[str, Neighbours] = {}

    def others(self, record_id: str, kind: str = "") -> list[str]:
        """Ids that are linked with this one, the closest first; of one kind, or of any."""
        ends = self._neighbours(record_id)
        return [other for other, of_kind in ends if kind in ("", of_kind)]

    def shown_twin(self, record_id: str, shown: Iterable[str]) -> str:
        """The hit that says the same as this candidate, "" where there is none."""
        same = set(self.others(record_id, _SAME))
        return next((one for one in shown if one in same), "")

    def _neighbours(self, record_id: str) -> Neighbours:
        ends = self._known.get(record_id)
        if ends is None:
            ends = self._cache.get(self._version, record_id)
        if ends is None:
            self._read(record_id)
            ends = self._known.get(record_id, ())
        self._known[record_id] = ends
        return ends

    def _read(self, record_id: str) -> None:
        while record_id not in self._known and self._waiting:
            some, self._waiting = self._waiting[: self._STEP], self._waiting[self._STEP :]
            ends: dict[str, dict[tuple[str, str], None]] = {one: {} for one in some}
            for link in self._records.links(some):
                kind = _SAME if link.kind == _SAME else "related"
                for one, other in (
                    (link.record_id, link.other_id),
                    (link.other_id, link.record_id),
                ):
                    if one in ends:
                        ends[one][other, kind] = None
            for one, own in ends.items():
                self._known[one] = tuple(own)
                self._cache.put(self._version, one, self._known[one])


@dataclass(frozen=True, slots=True)
class _Standing:
    """Where a hit stands among the others: what it was ordered by, and what it is linked with."""

    candidate: Candidate
    versions: Mapping[int, RelatedMemory]
    related: tuple[str, ...]
    same_as: tuple[str, ...]

    def fields(self, score: float) -> dict[str, Any]:
        """Those of a hit whose own score is `score`."""
        one, versions = self.candidate, self.versions
        replacing = None if one.older_than is None else versions.get(one.older_than)
        return {
            "related": self.related,
            "same_as": self.same_as,
            "current": replacing is None,
            "older_than": replacing,
            "reason": one.reason if replacing is not None else "",
            "previous": tuple(versions[at] for at in one.previous if at in versions),
            "score": one.score,
            "factors": self._factors(score),
            "answers": one.answers,
            "read": one.read_probability,
        }

    def _factors(self, score: float) -> dict[str, float]:
        """What the candidate's changes did to that score: of the reader a part, else a factor."""
        changes = self.candidate.changes
        read = changes.get(PART, 0.0)
        factors = {PART: read} if PART in changes else {}
        if "unanswered" in changes and score + read:
            factors["unanswered"] = self.candidate.score / (score + read)
        return factors


def _hit(
    record: MemoryRecord, scores: MemoryScores, place: int, standing: _Standing | None = None
) -> MemoryHit:
    score, factors = float(scores.score[place]), scores.explain(place)
    found = {} if standing is None else standing.fields(score)
    return MemoryHit(
        **dict(zip(_SHARED, _shared_of(record), strict=True)),
        similarity=float(scores.similarity[place]),
        decay=float(scores.decay[place]),
        reinforcement=float(scores.reinforcement[place]),
        **{"score": score, **found, "factors": factors | found.get("factors", {})},
    )


def _versions(
    records: Mapping[str, MemoryRecord], ids: Sequence[str], taken: Sequence[Candidate]
) -> dict[int, RelatedMemory]:
    """The memories that hits replace or are replaced by, by their places; none forgotten since."""
    places = {place for one in taken for place in one.previous}
    places |= {one.older_than for one in taken if one.older_than is not None}
    found = ((place, records.get(ids[place])) for place in sorted(places))
    return {
        place: RelatedMemory(record.id, record.text, record.created_at)
        for place, record in found
        if record is not None and not record.forgotten
    }
