"""What an index of memories knows at one moment, and how candidates are found in it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from anaphora.index.memories.filters import MemoryFilters
from anaphora.index.memories.rows import NEVER, MemoryRows, Moment
from anaphora.index.memories.vectors import MemoryVectors
from anaphora.index.memories.words import EXACT_WORTH, MemoryWords
from anaphora.index.rows import GONE
from anaphora.index.vectors.matrix import Nearest
from anaphora.index.words.lookup import Lookup, Word
from anaphora.rank.memories import MemoryCandidates
from anaphora.store.filters import Filter
from anaphora.store.records.store import Records
from anaphora.values.conversations import Degraded

Rows = NDArray[np.int64]
Shares = NDArray[np.float64]

FEW: Final = 1_000
"""Rows that are looked at one by one when a filter leaves no more."""

_HALF_A_YEAR: Final = 183 * 86_400_000_000
"""A day without a year is the one nearest to when it was noted, in microseconds."""

_MOST_MATCHES: Final = 4_096
_KEPT: Final = 512

ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True)
class AskedTime:
    """A time that is asked about: from `start` to before `end` in microseconds; the tokens of texts
    that name one of its days, and of those that do so without a year."""

    start: int
    end: int
    dated: tuple[str, ...] = ()
    yearless: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MemoryQuery:
    """What is looked for: a unit vector, terms, or both; what may be shown; how many of each.

    `every` brings what has nothing in common with it as well, the newest, where there is room.
    `past` asks for what was valid at `moment`. `all_words` brings every memory that matches a
    word, however many tie: where words answer alone. `times` are those that it asks about;
    `within`: only what was noted in them, or tells of them, is looked for.
    """

    moment: datetime
    limit: int
    vector: NDArray[np.float32] | None = None
    terms: Sequence[Word] = ()
    keep: Filter = field(default_factory=Filter)
    past: bool = False
    all_words: bool = False
    every: bool = False
    times: tuple[AskedTime, ...] = ()
    within: bool = False


@dataclass(frozen=True, slots=True)
class Candidates:
    """M candidates as columns, why each may not be shown ("" where it may), and what was lacking.

    `pending` counts memories that could be shown and have no vector yet; `notices` tell of words
    that were read as others. `version` is truth's number that they were found at, `searched` counts
    the memories that they were chosen from.
    """

    columns: MemoryCandidates
    excluded: tuple[str, ...] = ()
    degraded: tuple[Degraded, ...] = ()
    pending: int = 0
    notices: tuple[str, ...] = ()
    version: int = -1
    searched: int = 0


@dataclass(frozen=True, slots=True)
class Related:
    """Memories in the words of another one; `closeness` (M,) are their cosines to it (NaN: not
    known)."""

    candidates: Candidates
    closeness: NDArray[np.float64]


@lru_cache(maxsize=16)
def _nothing(seq: int, *, cosines: bool) -> Candidates:
    numbers, none = np.empty(0, np.int64), np.empty(0)
    columns = MemoryCandidates(
        (),
        cosine=none if cosines else None,
        words=none,
        type=numbers,
        created=numbers,
        reinforced_at=numbers,
        count=numbers,
        titles=none,
        timely=np.empty(0, np.bool_),
    )
    return Candidates(columns, version=seq)


@dataclass(frozen=True, slots=True)
class _Cached(Generic[ValueT]):
    """What was so at truth's number `seq`; right from `since` to before `until`."""

    seq: int
    since: int
    until: int
    value: ValueT

    def holds(self, seq: int, now: int) -> bool:
        return self.seq == seq and self.since <= now < self.until


def _answer_key(query: MemoryQuery) -> Hashable:
    vector = b"" if query.vector is None else query.vector.tobytes()
    moment = query.moment if query.past else None
    terms, every = tuple(query.terms), query.every
    times = (query.times, query.within)
    return (vector, terms, query.keep, query.limit, moment, query.all_words, every, times)


@dataclass(slots=True)
class MemoryState:
    """The parts of one index. One thread at a time (the caller holds a lock)."""

    records: Records
    rows: MemoryRows
    filters: MemoryFilters
    words: MemoryWords
    vectors: MemoryVectors
    _answers: OrderedDict[Hashable, _Cached[Candidates]] = field(default_factory=OrderedDict)
    _relatives: OrderedDict[Hashable, _Cached[Related]] = field(default_factory=OrderedDict)
    _visible_rows: _Cached[NDArray[np.bool_]] | None = None

    def candidates(self, query: MemoryQuery, seq: int) -> Candidates:
        """Up to `limit` memories by meaning and as many by words, of those that may be shown.

        A question asked again is answered from what was found, while truth is at the same number
        `seq` and nothing has expired.
        """
        if not len(self.rows):
            # As most homes hold no notes: their words and vectors need not be looked through.
            return _nothing(seq, cosines=query.vector is not None)

        def find(keep: NDArray[np.bool_]) -> Candidates:
            return replace(self._among(query, keep), version=seq)

        return self._cached(self._answers, _answer_key(query), query, seq, find)

    def related(self, query: MemoryQuery, words: Sequence[Word], to: str, seq: int) -> Related:
        """The `limit` memories that share most of `words`, scored for the question of `wanted`.

        For what is about the same thing as the memory `to`, whatever else is near the question.
        """
        if not len(self.rows):
            return Related(_nothing(seq, cosines=query.vector is not None), np.empty(0))
        key = (_answer_key(query), tuple(words), to)

        def find(keep: NDArray[np.bool_]) -> Related:
            related = self._related(query, words, to, keep)
            return replace(related, candidates=replace(related.candidates, version=seq))

        return self._cached(self._relatives, key, query, seq, find)

    def _cached(
        self,
        cache: OrderedDict[Hashable, _Cached[ValueT]],
        key: Hashable,
        query: MemoryQuery,
        seq: int,
        find: Callable[[NDArray[np.bool_]], ValueT],
    ) -> ValueT:
        """What `kept` has of `key` while it holds, else what `find` gives of the rows to show."""
        cached = cache.get(key)
        if cached is not None and cached.holds(seq, Moment(query.moment).micros):
            cache.move_to_end(key)
            return cached.value
        visible = self._visible(query, seq)
        answer = find(self._kept(query, visible))
        if self.vectors.lost:
            # They are made again behind this, without a new number.
            return answer
        cache[key] = _Cached(seq, visible.since, visible.until, answer)
        cache.move_to_end(key)
        if len(cache) > _KEPT:
            cache.popitem(last=False)
        return answer

    def _related(
        self, query: MemoryQuery, words: Sequence[Word], to: str, keep: NDArray[np.bool_]
    ) -> Related:
        shared = self.words.look_up(words)
        rows, shares = self._matching(shared, keep, replace(query, all_words=False))
        rows = rows[np.lexsort((-rows, -shares))][: query.limit]
        near = None
        if query.vector is not None:
            near = Nearest(np.empty(0, np.int64), np.empty(0))
        looked_up = self.words.look_up(query.terms)
        scores = self._shares(looked_up, rows, {})
        columns = self._columns(rows, query, near, scores, looked_up)
        closeness = np.full(len(rows), np.nan)
        if query.vector is not None and (row := self.rows.row(to)) >= 0:
            closeness = self.vectors.closeness(row, rows)
        return Related(Candidates(columns, ("",) * len(rows)), closeness)

    def _kept(self, wanted: MemoryQuery, visible: _Cached[NDArray[np.bool_]]) -> NDArray[np.bool_]:
        keep = visible.value
        if wanted.within:
            keep = keep & self._timely(wanted)
        if not wanted.keep.fields:
            return keep
        return keep & self.filters.mask(wanted.keep, self.rows, self.records)

    def _timely(self, query: MemoryQuery) -> NDArray[np.bool_]:
        """The rows that were noted in the times of a question, or tell of them."""
        timely = self._naming(query)
        for name in ("created", "reinforced_at"):
            noted = self.rows.column(name)
            for time in query.times:
                timely |= (noted >= time.start) & (noted < time.end)
        return timely

    def _naming(self, query: MemoryQuery) -> NDArray[np.bool_]:
        """The rows whose text names a day of those times."""
        created = self.rows.column("created")
        naming = np.zeros(len(created), np.bool_)
        for time in query.times:
            naming |= self.words.holding(time.dated, len(created))
            near = np.abs(created - time.start) < _HALF_A_YEAR
            naming |= self.words.holding(time.yearless, len(created)) & near
        return naming

    def _visible(self, wanted: MemoryQuery, seq: int) -> _Cached[NDArray[np.bool_]]:
        """The rows that may be shown at the moment of a question, before its filter."""
        if not wanted.past:
            return self._visible_now(wanted, seq)
        # A moment in the past is part of the question.
        keep = self.rows.visible(Moment(wanted.moment, past=True))
        return _Cached(seq, -NEVER, NEVER, keep)

    def _visible_now(self, wanted: MemoryQuery, seq: int) -> _Cached[NDArray[np.bool_]]:
        """The rows that may be shown now: the same ones until truth changes or one expires."""
        moment = Moment(wanted.moment)
        now, known = moment.micros, self._visible_rows
        if known is None or not known.holds(seq, now):
            ends = self.rows.column("expires")
            until = int(ends[ends > now].min(initial=NEVER))
            known = self._visible_rows = _Cached(seq, now, until, self.rows.visible(moment))
        return known

    def excluded(self, query: MemoryQuery) -> Candidates:
        """The candidates there would be if all might be shown, each with why it may not."""
        candidates = self._among(query, np.array(self.rows.column("state") != GONE))
        moment = Moment(query.moment, query.past)
        allowed = self.filters.mask(query.keep, self.rows, self.records)
        rows = [self.rows.row(record_id) for record_id in candidates.columns.ids]
        reasons = tuple(
            self.rows.why_not(row, moment) or ("" if allowed[row] else "filtered") for row in rows
        )
        return Candidates(candidates.columns, reasons, candidates.degraded, candidates.pending)

    def _among(self, query: MemoryQuery, keep: NDArray[np.bool_]) -> Candidates:
        near, pending = None, 0
        if query.vector is not None:
            near = self.vectors.nearest(query.vector, keep, query.limit)
            pending = self.vectors.lacking(keep)
        looked_up = self.words.look_up(query.terms)
        rows, shares = self._matching(looked_up, keep, query)
        shares_by_row = dict(zip(rows.tolist(), shares.tolist(), strict=True))
        if near is not None:
            near_rows = set(near.rows.tolist())
            word_rows = [row for row in rows.tolist() if row not in near_rows]
            rows = np.concatenate((near.rows, np.array(word_rows, np.int64)))
        if query.every and len(rows) < query.limit:
            rows = np.concatenate((rows, self._newest(keep, rows, query.limit - len(rows))))
        shares = self._shares(looked_up, rows, shares_by_row)
        columns = self._columns(rows, query, near, shares, looked_up)
        none, notices = ("",) * len(rows), looked_up.notices("no memory")
        searched = int(np.count_nonzero(keep))
        return Candidates(columns, none, self._lacking(near), pending, notices, searched=searched)

    def _newest(self, keep: NDArray[np.bool_], but: Rows, count: int) -> Rows:
        """The newest rows of `keep` that are not among `but`."""
        rest = np.setdiff1d(np.flatnonzero(keep), but)
        order = np.argsort(-self.rows.column("created")[rest], kind="stable")
        return rest[order[:count]].astype(np.int64)

    def _matching(
        self, looked_up: Lookup, keep: NDArray[np.bool_], query: MemoryQuery
    ) -> tuple[Rows, Shares]:
        """Rows of `keep` that match words, the best `limit` of them, or all."""
        if not looked_up.weights and not looked_up.titles:
            return np.empty(0, np.int64), np.empty(0)
        limit = len(keep) if query.all_words else query.limit
        allowed = np.flatnonzero(keep)
        if len(allowed) <= min(FEW, len(keep) // 4):
            return _best_shares(allowed, self.words.of_rows(looked_up, allowed), limit, 0.0)
        ask_for = 2 * query.limit
        while True:
            rows, shares, least = self.words.best(looked_up, ask_for)
            good = keep[rows]
            # More may match as much as the last one that came: which of them did is chance.
            best = _best_shares(rows[good], shares[good], limit, least)
            sufficient = len(best[0]) >= limit or (ask_for >= _MOST_MATCHES and not query.all_words)
            if sufficient or not least:
                return best
            ask_for *= 8

    def _shares(self, looked_up: Lookup, rows: Rows, by_row: dict[int, float]) -> Shares:
        missing = np.array([row for row in rows.tolist() if row not in by_row], np.int64)
        shares = self.words.of_rows(looked_up, missing)
        by_row = {**by_row, **dict(zip(missing.tolist(), shares.tolist(), strict=True))}
        return np.array([by_row[row] for row in rows.tolist()], np.float64)

    def _columns(
        self,
        rows: Rows,
        query: MemoryQuery,
        near: Nearest | None,
        shares: Shares,
        looked_up: Lookup,
    ) -> MemoryCandidates:
        cosines, timely = None, np.zeros(len(rows), np.bool_)
        if query.times:
            timely = self._timely(query)[rows]
        if query.within:
            # Of what was noted then and what tells of it, the latter first.
            shares = np.maximum(shares, EXACT_WORTH * self._naming(query)[rows])
        if query.vector is not None and near is not None:
            word_cosines = self.vectors.cosines(query.vector, rows[len(near.rows) :])
            cosines = np.concatenate((near.cosines, word_cosines))
        return MemoryCandidates(
            ids=tuple(self.rows.ids[row] for row in rows.tolist()),
            cosine=cosines,
            words=shares,
            type=self.rows.column("type")[rows],
            created=self.rows.column("created")[rows],
            reinforced_at=self.rows.column("reinforced_at")[rows],
            count=self.rows.column("count")[rows],
            titles=self.words.of_titles(looked_up, rows),
            timely=timely,
        )

    def _lacking(self, near: Nearest | None) -> tuple[Degraded, ...]:
        if near is not None and self.vectors.lost:
            reason = f"it was lost and will be rebuilt: {self.vectors.lost}"
            return (Degraded("vector index", reason),)
        if near is not None and self.vectors.beyond():
            reason = (
                f"{self.vectors.parts:,} vectors are scanned exactly: "
                "the extra large searches them faster"
            )
            return (Degraded("vector index", reason),)
        return ()


def _best_shares(rows: Rows, shares: Shares, limit: int, least: float) -> tuple[Rows, Shares]:
    """The best `limit` of what matches more than `least`, and what ties with the last of them."""
    good = shares > least
    rows, shares = rows[good], shares[good]
    if 0 < limit < len(rows):
        cut = len(rows) - limit
        good = shares >= np.partition(shares, cut)[cut]
        rows, shares = rows[good], shares[good]
    return rows, shares
