"""A consistent view of an index of turns at one moment: rows, vectors and words.

A view stays valid while the index changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anaphora.index.turns.titles import title_shares
from anaphora.index.turns.vectors import AnnView
from anaphora.index.vectors.matrix import MatrixView
from anaphora.index.words.documents import numbers_of
from anaphora.index.words.index import best_of
from anaphora.index.words.lookup import Lookup, Word, look_up
from anaphora.index.words.postings import WordStatistics, full_score, score, sum_by_row
from anaphora.rank.turn_table import TurnTable

LONG: Final = 1_000
"""Tokens from which a turn is also scored by its passages."""

TITLED: Final = 8
"""With up to so many turns in a conversation, its title counts in full for each."""

RAREST: Final = 12
"""Words of a statement that count in how near turns are to it."""

RARE: Final = 200
"""A term is scored in passages if no more turns than this have it: a more common term occurs
somewhere in every long text."""


_TERMS: Final = 2_048
"""The most terms whose rows are kept for the next question."""


@dataclass(frozen=True, slots=True)
class TurnWords:
    """The words at one moment: of the rows of the file, most in columns, and of the overlay.

    `rows_of` gives the row of each key (-1: none) for each of these parts of `statistics`, `codes`
    the code in the index file of each thread; `term_of` gives the term of a token (in a sealed home
    a keyed form). `titles` has the titles of threads, by their codes.
    """

    statistics: WordStatistics
    rows_of: tuple[NDArray[np.int32], ...]
    codes: NDArray[np.int32]
    term_of: Callable[[str], str]
    titles: Mapping[int, str]


@dataclass(frozen=True, eq=False)
class TurnView:
    """N turns at one moment. `table` has their columns, `embedded` (N,) whether they have vectors.

    All dense results have one entry per row of `table`. What does not change from question to
    question is worked out once: at a million turns every pass over them takes time.
    """

    table: TurnTable
    hashes: Sequence[bytes]
    embedded: NDArray[np.bool_]
    _entries: NDArray[np.int32]
    _matrix: MatrixView
    _ann: AnnView | None
    _words: TurnWords

    def __len__(self) -> int:
        return len(self.table)

    @cached_property
    def all_rows(self) -> NDArray[np.intp]:
        """The rows of all turns."""
        return np.arange(len(self), dtype=np.intp)

    @cached_property
    def is_embedded(self) -> bool:
        """Whether all turns have vectors."""
        return bool(self.embedded.all())

    @cached_property
    def _holders(self) -> dict[tuple[str, int | None], NDArray[np.int64]]:
        """The rows of terms that were looked for one by one."""
        return {}

    @cached_property
    def latest(self) -> float:
        """The last time of a turn, in seconds since 1970."""
        return float(np.fmax.reduce(self.table.ts, initial=-np.inf))

    def rows(self, conversation_id: str) -> NDArray[np.int64]:
        """Rows of a conversation's turns in their order; none for an unknown one."""
        try:
            code = self.table.conversations.index(conversation_id)
        except ValueError:
            return np.empty(0, np.int64)
        rows = np.flatnonzero(self.table.conversation == code)
        return rows[np.argsort(self.table.position[rows], kind="stable")]

    def cosine(
        self,
        vector: NDArray[np.float32],
        rows: NDArray[np.int64] | None = None,
        also: NDArray[np.int64] | None = None,
    ) -> NDArray[np.float32]:
        """Cosine of each turn's best part with a unit vector, shape (N,).

        A turn without a vector (see `embedded`) has 0: no evidence either way. So has a turn with a
        vector in the ANN index that is not among the nearest few hundred there. `rows` limits the
        query to these rows, which are found although others are nearer. `also` are rows to score
        beside the nearest ones (those that match words of the query).
        """
        scores = np.zeros(len(self), np.float32)
        best_cosines = self._cosines_of_texts(vector, rows, also)
        if not len(best_cosines):
            return scores
        if self.is_embedded:
            return best_cosines[self._entries]
        scores[self.embedded] = best_cosines[self._entries[self.embedded]]
        return scores

    def _cosines_of_texts(
        self,
        vector: NDArray[np.float32],
        rows: NDArray[np.int64] | None,
        also: NDArray[np.int64] | None,
    ) -> NDArray[np.float32]:
        """The cosine of each text: first those of the ANN index, then those in memory."""
        ann = self._ann
        near_cosines = self._matrix.best(vector)
        if ann is None:
            return near_cosines
        asked_rows = also if rows is None else rows
        ann_entries = (
            np.empty(0, np.int64)
            if asked_rows is None
            else self._entries[asked_rows].astype(np.int64)
        )
        ann_entries = ann_entries[(ann_entries >= 0) & (ann_entries < len(ann.ids))]
        far_cosines = ann.cosines_at(vector, ann_entries)
        if rows is None:
            nearest = ann.best(vector)
            far_cosines = np.where(nearest == 0, far_cosines, nearest)
        return np.concatenate((far_cosines, near_cosines))

    def chunks(self, vector: NDArray[np.float32], row: int) -> NDArray[np.float32]:
        """The cosine of each chunk of one turn with a unit vector, in the order of its text.

        Empty if its vectors are not in memory: there are none yet, or the ANN index has them.
        """
        text = int(self._entries[row]) - (0 if self._ann is None else len(self._ann.ids))
        if text < 0 or not self.embedded[row]:
            return np.empty(0, np.float32)
        return self._matrix.each(vector, text)

    def first_part(self, row: int) -> NDArray[np.float32] | None:
        """The vector of a turn, of a long one that of its beginning; None where it has none."""
        if not self.embedded[row]:
            return None
        text, ann_count = int(self._entries[row]), 0 if self._ann is None else len(self._ann.ids)
        if self._ann is not None and text < ann_count:
            return self._ann.first_part(text)
        return self._matrix.first_part(text - ann_count)

    def nearness(
        self, vector: NDArray[np.float32], terms: Sequence[Word], worth: float
    ) -> NDArray[np.float32]:
        """How near each turn is to a statement, shape (N,): cosine, and `worth` × words in common.

        Those are the share of its `RAREST` words, by their weights, 0 … 1.
        """
        weights = self.look_up(terms).weights
        weights = dict(sorted(weights.items(), key=lambda pair: (-pair[1], pair[0]))[:RAREST])
        rows, sums = self._find_turns(weights, None, len(self))
        nearness = self.cosine(vector, also=rows)
        nearness[rows] += worth * np.minimum(sums / max(sum(weights.values()), 1e-9), 1.0)
        return nearness

    def closeness(self, row: int, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The cosine of each of these few rows to another one; NaN if either has no vector."""
        cosines = np.full(len(rows), np.nan, np.float32)
        vector = self.first_part(row)
        if vector is None:
            return cosines
        ann_count = 0 if self._ann is None else len(self._ann.ids)
        entries = self._entries[rows].astype(np.int64)
        in_memory = self.embedded[rows] & (entries >= ann_count)
        cosines[in_memory] = self._matrix.some(vector, entries[in_memory] - ann_count)
        if self._ann is not None:
            on_disk = self.embedded[rows] & (entries < ann_count)
            cosines[on_disk] = self._ann.cosines_at(vector, entries[on_disk])[entries[on_disk]]
        return cosines

    def words(
        self, terms: Sequence[Word] | Lookup, conversation: int | None = None, limit: int = 1000
    ) -> NDArray[np.float32]:
        """BM25 of each turn for `terms`, shape (N,), 0 for turns that have none of them.

        A term is a token, or a word of a question, which may stand for several tokens. With
        `conversation` (a code of `table`), turns of other threads have 0. Of the turns in columns
        only the best `limit` are scored, of the last ones all.
        """
        scores = np.zeros(len(self), np.float32)
        weights = self._looked_up(terms).weights if len(self) else {}
        if weights:
            rows, rows_scores = self._find_turns(weights, conversation, limit)
            scores[rows] = rows_scores
            self._raise_long(scores, weights, conversation)
        return scores

    def exact(self, looked_up: Lookup, conversation: int | None = None) -> NDArray[np.float32]:
        """The share of the exact names of a question that each turn has, shape (N,)."""
        shares = np.zeros(len(self), np.float32)
        for terms in looked_up.exact:
            rows = self.holding(terms, conversation)
            shares[rows] += np.float32(1.0 / len(looked_up.exact))
        return shares

    def holding(self, terms: Sequence[str], conversation: int | None = None) -> NDArray[np.int64]:
        """The rows that have any of the rare ones of these terms of the index, each once."""
        counts = self._words.statistics.holding(numbers_of(terms))
        rare = compress(terms, (counts > 0) & (counts <= RARE))
        rows = [self._rows_holding(term, conversation) for term in rare]
        return np.unique(np.concatenate(rows)) if rows else np.empty(0, np.int64)

    def naming(self, tokens: Sequence[str]) -> NDArray[np.bool_]:
        """The turns that have any of these tokens, shape (N,)."""
        mask = np.zeros(len(self), np.bool_)
        for term in map(self._words.term_of, tokens):
            mask[self._rows_holding(term, None)] = True
        return mask

    def _find_turns(
        self, weights: Mapping[str, float], conversation: int | None, limit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Rows and BM25 of the turns with any of some terms, each once: see `words`."""
        statistics = self._words.statistics
        hits = [(np.empty(0, np.int64), np.empty(0, np.float32))]
        for postings, row_of in zip(statistics.parts, self._words.rows_of, strict=True):
            if not postings.count:
                continue
            keys, parts = score(postings, weights, statistics.average())
            # Documents added to memory since this view was made are beyond its rows.
            in_view = keys < len(row_of)
            rows, parts = row_of[keys[in_view]].astype(np.int64), parts[in_view]
            matching = rows >= 0
            if conversation is not None:
                matching &= self.table.conversation[rows] == conversation
            rows, totals = sum_by_row(rows[matching], parts[matching])
            sums = totals.astype(np.float32)
            if postings is statistics.parts[0]:
                rows, sums = best_of(rows, sums, limit)
            hits.append((rows, sums))
        return np.concatenate([rows for rows, _ in hits]), np.concatenate([s for _, s in hits])

    def _raise_long(
        self,
        scores: NDArray[np.float32],
        weights: Mapping[str, float],
        conversation: int | None,
    ) -> None:
        """Score a long turn by its best passage if that gives more than the whole turn.

        BM25 divides by length, so that a unique word counts next to nothing in a turn of an hour.
        Instead, the turn is taken as n turns of average length and scored as one of them, less the
        gain from n tries: that one of n turns has the term is ln(n) less surprising. A turn of
        average length that has a term once has the term's idf as its BM25.
        """
        lengths, statistics = self.table.length, self._words.statistics
        if int(lengths.max(initial=0)) <= LONG:
            return
        average = statistics.average()
        raised_scores: dict[int, np.float32] = {}
        is_rare = statistics.holding(numbers_of(weights)) <= RARE
        for term, weight in compress(weights.items(), is_rare):
            rows = self._rows_holding(term, conversation)
            rows = rows[lengths[rows] > LONG]
            tries = np.log(lengths[rows] / average)
            gains = np.clip(weight - tries, 0.0, weight)
            for row, gain in zip(rows.tolist(), gains, strict=True):
                raised_scores[row] = np.float32(raised_scores.get(row, 0.0) + gain)
        for row, raised_score in raised_scores.items():
            scores[row] = max(scores[row], raised_score)

    def _rows_holding(self, term: str, conversation: int | None) -> NDArray[np.int64]:
        """The rows with a term of the index, each once."""
        rows = self._holders.get((term, conversation))
        if rows is None:
            rows = np.sort(self._find_turns({term: 1.0}, conversation, len(self))[0])
            if len(rows) <= RARE:
                if len(self._holders) >= _TERMS:
                    self._holders.clear()
                self._holders[term, conversation] = rows
        return rows

    def title(self, conversation: int) -> str:
        """The title of a conversation (a code of `table`), "" if it has none."""
        return self._words.titles.get(int(self._words.codes[conversation]), "")

    def titles(self, lookup: Lookup) -> NDArray[np.float32] | None:
        """How much of a question the title of each turn's conversation matches, 0 … 1, shape (N,).

        A title describes the conversation, not a turn: with more than `TITLED` turns, each gets
        less. None if no title matches.
        """
        words = self._words
        if not lookup.titles or not words.titles:
            return None
        shares = title_shares(words.statistics.beside[0], words.statistics, lookup)
        shares_by_code = np.array(
            [shares.get(code, 0.0) for code in words.codes.tolist()], np.float32
        )
        if not shares_by_code.any():
            return None
        counts = np.bincount(self.table.conversation, minlength=len(shares_by_code))
        shares_by_code *= np.sqrt(np.minimum(1.0, TITLED / np.maximum(counts, 1))).astype(
            np.float32
        )
        shares_by_row: NDArray[np.float32] = shares_by_code[self.table.conversation]
        return shares_by_row

    def alike(
        self, terms: Sequence[Word] | Lookup, words: NDArray[np.float32], length: int
    ) -> NDArray[np.float32]:
        """The similarity of each turn to a question by its words, 0 … 1, shape (N,).

        Like the cosine of two bags of words: the share of the question's IDF mass that the turn
        matches, times the root of the shorter text's length over the longer one's. `words` are the
        scores of `terms`, `length` the number of the question's tokens. The share is the score over
        that of a turn of the same length that has every term once.
        """
        similarity = np.zeros(len(self), np.float32)
        mass = self._looked_up(terms).mass
        rows = np.flatnonzero(words)
        if not mass or not len(rows):
            return similarity
        lengths = np.maximum(self.table.length[rows], 1)
        shares = words[rows] / full_score(mass, lengths, self._words.statistics.average())
        shorter = np.minimum(lengths, length) / np.maximum(lengths, length)
        similarity[rows] = np.minimum(shares, 1.0) * np.sqrt(shorter)
        return similarity

    def idf(self, terms: Sequence[Word]) -> NDArray[np.float32]:
        """Inverse document frequency of each term, 0 for a term that no turn has."""
        return np.array(self.look_up(terms).of_words, np.float32)

    def look_up(self, terms: Sequence[Word]) -> Lookup:
        """Look up terms in the words of this view."""
        if not len(self):
            return Lookup(of_words=(0.0,) * len(terms))
        return look_up(terms, self._words.statistics, self._words.term_of)

    def _looked_up(self, terms: Sequence[Word] | Lookup) -> Lookup:
        return terms if isinstance(terms, Lookup) else self.look_up(terms)
