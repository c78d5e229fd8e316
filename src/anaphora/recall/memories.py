"""The memory lane: from a question to the memories that answer it.

It never changes a record, and a failing embedder never makes it raise: words answer alone, and the
answer says so.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from anaphora.calls.moments import checked_moment
from anaphora.errors import EmbeddingError, StoreError, TimedOut
from anaphora.rank.silence import CALIBRATED_FOR, FACT_FLOOR
from anaphora.rank.statements import words_of
from anaphora.recall.answers import with_floor
from anaphora.recall.links import KnownLinks, NoLinks, ToldStatement
from anaphora.recall.memory_candidates import FoundMemories
from anaphora.recall.memory_hits import MemoryHitMaker
from anaphora.recall.memory_source import MemorySource, join_candidates
from anaphora.recall.narrowing import add_times, days_of
from anaphora.recall.pipeline import Pipeline
from anaphora.recall.query import BLANK, check_count, check_share, query_vector
from anaphora.recall.question import Question, prepare
from anaphora.recall.reading import begin_reading
from anaphora.recall.view_cache import ViewCache
from anaphora.store.codecs import to_micros
from anaphora.store.filters import parse
from anaphora.text.shown_times import tell_days
from anaphora.values.conversations import FINISH_VECTORS, Degraded, Recall, RecallMode
from anaphora.values.memories import MemoryHit, Rejected

if TYPE_CHECKING:
    from anaphora.index.memories.state import AskedTime, Candidates, MemoryQuery
    from anaphora.reading.service import ReaderService

Fill: TypeAlias = Callable[[int], object]
"""Embeds some of so many memories that have no vector yet, within the call."""

OVERFETCH: Final = 8
"""Candidates by vector (and as many by words) for each hit that is wanted, as the seed has it."""

OVERREAD: Final = 2
"""The same for each candidate that is read with the question: what is read must not depend on how
many hits are wanted, and the best by meaning and words together are among so many by either."""

_ANSWERS_KEPT: Final = 64
_AT_ONCE: Final = timedelta(seconds=1)


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
    """Answers questions from the memories of a source.

    `fill` makes a few vectors that are lacking, `later` begins to make the others. `reader` says
    how probably each answers, `links` what replaced what.
    """

    source: MemorySource
    clock: Callable[[], datetime]
    fill: Fill | None = None
    later: Callable[[], object] | None = None
    reader: ReaderService | None = None
    links: KnownLinks = field(default_factory=NoLinks)
    answers: ViewCache[_RankedHits] = field(default_factory=lambda: ViewCache(_ANSWERS_KEPT))

    @property
    def pipeline(self) -> Pipeline:
        """What orders its candidates; where each stands for itself, nothing replaces another."""
        links = self.links if self.source.by_currency else NoLinks()
        return Pipeline(self.reader, links, self.source.embedder.name.startswith(CALIBRATED_FOR))

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
        keep = self.source.records.resolved(parse(filters))
        # Naming what counts, or a least score of 0, does not ask whether there is anything.
        every = bool(keep.fields) or (min_score is not None and min_score <= 0.0)
        if question.is_blank:
            return Recall((), (BLANK,))
        degradations = list(question.notices)
        if mode != "words" and not self.source.embedder.ready(0):
            # Opened while the model is loaded beside it.
            self.source.index.sync()
        moment, alone = as_of or self.clock(), question.asks_time_alone
        vector = (
            None
            if mode == "words"
            else query_vector(self.source.embedder, question.text, degradations)
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
        self.source.records.sealer.check()
        least_score = -math.inf if min_score is None else min_score
        lowest = 0.0 if every or alone else floor
        key = (question.text, mode, top_k, least_score, keep, as_of, window, lowest)
        # Links are made behind the writes: an answer stands until there are others.
        links = self.links.version()
        answer = None if explain else self.answers.get(links, key)
        rejected_hits: tuple[Rejected, ...] = ()
        if answer is None or not answer.holds(parts, lookup.moment):
            memories = FoundMemories(
                self.source, question, lookup, candidates, not bare, window, top_k
            )
            placed, answered = self.pipeline.place(memories, 0.0 if explain else lowest)
            work = MemoryHitMaker(memories, explain)
            hits = work.best(placed, least_score)
            answer = _RankedHits(parts, lookup.moment, hits, answered, tuple(memories.unread))
            self.answers.put(links, key, answer)
            rejected_hits = work.rejected() if explain else ()
        degradations += (*answer.unread, *self._report_damaged())
        recall = Recall(answer.hits, tuple(degradations), rejected_hits, notices=candidates.notices)
        if alone and not lookup.within and candidates.columns.ids:
            recall = _tell_unmet(question, recall, shown=every or floor == 0)
        else:
            recall = with_floor(recall, answer.answered, lowest)
        return add_times(recall, question.times, moment)

    def told(self, record_ids: Collection[str]) -> list[ToldStatement]:
        """What memories and notes of these say, those that were told by now."""
        now = self.clock()
        return [
            ToldStatement(record.id, record.text, record.created_at)
            for record in self.source.many(record_ids).values()
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
        parts = self.source.find(lookup)
        if lookup.within and not any(part.columns.ids for part in parts):
            lookup = replace(lookup, within=False, every=every)
            parts = self.source.find(lookup)
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
            parts = self.source.find(lookup)
            if _count_pending(parts) and self.later is not None:
                self.later()
        candidates = join_candidates(*parts)
        degraded.extend(candidates.degraded)
        if pending := _count_pending(parts):
            reason = f"{pending} memories have no vector yet and are found by words only"
            degraded.append(Degraded("embeddings", f"{reason}; {FINISH_VECTORS}"))
        return lookup, parts, candidates

    def _report_damaged(self) -> tuple[Degraded, ...]:
        damaged_records = self.source.records.unreadable()
        if not damaged_records:
            return ()
        names = ", ".join(damaged_records[:5]) + (", …" if len(damaged_records) > 5 else "")
        reason = f"{len(damaged_records)} cannot be read ({names}): `doctor --repair` repairs them"
        return (Degraded("memories", reason),)


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


def _count_pending(parts: Sequence[Candidates]) -> int:
    """How many memories that could be shown have no vector yet."""
    return sum(part.pending for part in parts)
