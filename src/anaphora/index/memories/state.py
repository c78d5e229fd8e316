"""The state of an index of memories, and the search for candidates in it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from anaphora.index.memories.filters import MemoryFilters
from anaphora.index.memories.links import MemoryLinks
from anaphora.index.memories.rows import NEVER, MemoryRows, Moment
from anaphora.index.memories.vectors import MemoryVectors
from anaphora.index.memories.words import EXACT_WORTH, Matches, MemoryWords
from anaphora.index.rows import GONE
from anaphora.index.vectors.matrix import Nearest
from anaphora.index.words.lookup import Lookup, Word
from anaphora.language.times.told import ELSEWHEN
from anaphora.rank.memories import MemoryCandidates
from anaphora.store.filters import Filter
from anaphora.store.records.store import Records
from anaphora.values.conversations import Degraded

Rows = NDArray[np.int64]
Shares = NDArray[np.float64]

_HALF_A_YEAR: Final = 183 * 86_400_000_000
"""A day without a year is the one nearest to the time of the memory, in microseconds."""

_MOST_MATCHES: Final = 4_096
_CACHED: Final = 512

ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True)
class AskedTime:
    """A time that is asked about, from `start` to before `end` in microseconds, with the tokens
    that name one of its days, with a year and without."""

    start: int
    end: int
    dated: tuple[str, ...] = ()
    yearless: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MemoryQuery:
    """A query: a unit vector, terms, or both; which memories may be shown; how many of each kind.

    `every` fills up to `limit` with the newest memories, even without a match. `past` asks for
    memories valid at `moment`. `all_words` brings every memory that matches a word, however many
    tie: for queries without a vector. `times` are the times that are asked about; `within` limits
    the search to memories noted in these times or mentioning them.
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
    """M candidates as columns, why each may not be shown ("" if it may), and missing parts.

    `pending` counts visible memories without a vector; `notices` report words that were read as
    others. `version` is the number of the database at which they were found, `searched` the number
    of memories they were chosen from.
    """

    columns: MemoryCandidates
    excluded: tuple[str, ...] = ()
    degraded: tuple[Degraded, ...] = ()
    pending: int = 0
    notices: tuple[str, ...] = ()
    version: int = -1
    searched: int = 0


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
        timely=none,
    )
    return Candidates(columns, version=seq)


@dataclass(frozen=True, slots=True)
class _Cached(Generic[ValueT]):
    """A value computed at number `seq` of the database, valid from `since` to before `until`."""

    seq: int
    since: int
    until: int
    value: ValueT

    def is_current(self, seq: int, now: int) -> bool:
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
    links: MemoryLinks = field(default_factory=MemoryLinks)
    _answers: OrderedDict[Hashable, _Cached[Candidates]] = field(default_factory=OrderedDict)
    _visible_rows: _Cached[NDArray[np.bool_]] | None = None

    def candidates(self, query: MemoryQuery, seq: int) -> Candidates:
        """Up to `limit` memories by meaning and as many by words, of those that may be shown.

        A repeated query is answered from a cache while the database is at the same number `seq`
        and nothing has expired.
        """
        if not len(self.rows):
            # Most homes have no notes: their words and vectors need not be searched.
            return _nothing(seq, cosines=query.vector is not None)
        key, cache, now = _answer_key(query), self._answers, Moment(query.moment).micros
        cached_answer = cache.get(key)
        if cached_answer is not None and cached_answer.is_current(seq, now):
            cache.move_to_end(key)
            return cached_answer.value
        visible = self._visible(query, seq)
        answer = replace(self._find_among(query, self._filter(query, visible.value)), version=seq)
        if not self.vectors.lost:
            # Lost vectors are rebuilt in the background without a new number.
            cache[key] = _Cached(seq, visible.since, visible.until, answer)
            cache.move_to_end(key)
            if len(cache) > _CACHED:
                cache.popitem(last=False)
        return answer

    def fetch(self, query: MemoryQuery, record_ids: Collection[str], seq: int) -> Candidates:
        """Those of these memories that may be shown, scored for `query`, however far they are."""
        visible = self._filter(query, self._visible(query, seq).value)
        rows = self.rows.rows(list(record_ids))
        rows = rows[rows >= 0]
        rows = rows[visible[rows]]
        near = None if query.vector is None else Nearest(np.empty(0, np.int64), np.empty(0))
        looked_up, matches = self.words.match_question(query.terms)
        columns = self._columns(rows, query, near, matches.of(rows), looked_up)
        return Candidates(columns, ("",) * len(rows), version=seq)

    def closeness(self, record_id: str, others: Sequence[str]) -> list[float]:
        """The cosine of a memory's first vector to that of each of others (NaN: unknown)."""
        row, rows = self.rows.row(record_id), self.rows.rows(list(others))
        near = np.full(len(rows), np.nan)
        is_here = (rows >= 0) & (row >= 0)
        if is_here.any():
            near[is_here] = self.vectors.closeness(
                np.full(np.count_nonzero(is_here), row), rows[is_here]
            )
        cosines: list[float] = near.tolist()
        return cosines

    def _filter(self, query: MemoryQuery, keep: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The rows of `keep` that the times and the filter of a query let through."""
        if query.within:
            keep = keep & (self._find_timely(query) > 0.0)
        if query.keep.fields:
            keep = keep & self.filters.mask(query.keep, self.rows, self.records)
        return keep

    def _find_timely(self, query: MemoryQuery) -> Shares:
        """How far each row is of the times of a query: noted in them, or naming a day in them.

        One that was noted then and names only other days is half of them.
        """
        noted = np.zeros(len(self.rows), np.bool_)
        for name in ("created", "reinforced_at"):
            noted_times = self.rows.column(name)
            for time in query.times:
                noted |= (noted_times >= time.start) & (noted_times < time.end)
        timely = noted * (1.0 - self.words.holding([ELSEWHEN], len(noted)) / 2)
        return np.maximum(timely, self._find_naming(query))

    def _find_naming(self, query: MemoryQuery) -> NDArray[np.bool_]:
        """The rows with a text that names a day of the query's times."""
        created_times = self.rows.column("created")
        naming = np.zeros(len(created_times), np.bool_)
        for time in query.times:
            naming |= self.words.holding(time.dated, len(created_times))
            is_near = np.abs(created_times - time.start) < _HALF_A_YEAR
            naming |= self.words.holding(time.yearless, len(created_times)) & is_near
        return naming

    def _visible(self, query: MemoryQuery, seq: int) -> _Cached[NDArray[np.bool_]]:
        """The rows that may be shown at the moment of a query, before its filter."""
        moment = Moment(query.moment, query.past)
        if query.past:
            # A moment in the past is part of the cache key.
            return _Cached(seq, -NEVER, NEVER, self.rows.visible(moment))
        # The rows that may be shown now: the same until the database changes or one expires.
        now, visible_rows = moment.micros, self._visible_rows
        if visible_rows is None or not visible_rows.is_current(seq, now):
            ends = self.rows.column("expires")
            until = int(ends[ends > now].min(initial=NEVER))
            visible_rows = self._visible_rows = _Cached(seq, now, until, self.rows.visible(moment))
        return visible_rows

    def excluded(self, query: MemoryQuery) -> Candidates:
        """The candidates if all rows could be shown, each with why it may not be."""
        candidates = self._find_among(query, np.array(self.rows.column("state") != GONE))
        moment = Moment(query.moment, query.past)
        is_allowed = self.filters.mask(query.keep, self.rows, self.records)
        rows = [self.rows.row(record_id) for record_id in candidates.columns.ids]
        reasons = tuple(
            self.rows.why_not(row, moment) or ("" if is_allowed[row] else "filtered")
            for row in rows
        )
        return Candidates(candidates.columns, reasons, candidates.degraded, candidates.pending)

    def _find_among(self, query: MemoryQuery, keep: NDArray[np.bool_]) -> Candidates:
        nearest, pending = None, 0
        if query.vector is not None:
            nearest = self.vectors.nearest(query.vector, keep, query.limit)
            pending = self.vectors.count_missing(keep)
        looked_up, matches = self.words.match_question(query.terms)
        rows = self._best_matches(matches, keep, query)
        if nearest is not None:
            is_new = np.isin(rows, nearest.rows, invert=True)
            rows = np.concatenate((nearest.rows, rows[is_new]))
        if query.every and len(rows) < query.limit:
            unmatched_rows = np.setdiff1d(np.flatnonzero(keep), rows)
            newest_first = np.argsort(-self.rows.column("created")[unmatched_rows], kind="stable")
            newest = unmatched_rows[newest_first[: query.limit - len(rows)]].astype(np.int64)
            rows = np.concatenate((rows, newest))
        columns = self._columns(rows, query, nearest, matches.of(rows), looked_up)
        none, notices = ("",) * len(rows), looked_up.notices("no memory")
        searched_count = int(np.count_nonzero(keep))
        return Candidates(
            columns, none, self._list_degraded(nearest), pending, notices, searched=searched_count
        )

    def _best_matches(self, matches: Matches, keep: NDArray[np.bool_], query: MemoryQuery) -> Rows:
        """Rows of `keep` that match words: the best `limit` and those that tie with the last, but
        not with ever so many of them; or all."""
        is_visible = keep[matches.rows]
        rows, shares = matches.rows[is_visible], matches.shares[is_visible]
        if not query.all_words and 0 < query.limit < len(rows):
            cut_index = len(rows) - query.limit
            least_share = np.partition(shares, cut_index)[cut_index]
            good = shares >= least_share
            if np.count_nonzero(good) > max(_MOST_MATCHES, query.limit):
                good = shares > least_share
            rows = rows[good]
        return rows

    def _columns(
        self,
        rows: Rows,
        query: MemoryQuery,
        near: Nearest | None,
        shares: Shares,
        looked_up: Lookup,
    ) -> MemoryCandidates:
        cosines, timely = None, np.zeros(len(rows))
        if query.times:
            timely = self._find_timely(query)[rows]
        if query.within:
            # Memories that mention the time rank before those that were noted in it, and last are
            # those that were noted in it and mention others.
            worth = np.where(self._find_naming(query)[rows], 1.0, timely - 0.5)
            shares = np.maximum(shares, EXACT_WORTH * worth)
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

    def _list_degraded(self, near: Nearest | None) -> tuple[Degraded, ...]:
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
