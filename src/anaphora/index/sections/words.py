"""The words of a project's sections and notes, field by field: path, title, body.

In: documents by row (tokens of our analyser), weighted terms. Out: for rows, the BM25 of each field
and the share of the terms' mass that a row holds anywhere. The bulk lies in tantivy on disk, what
is newer in a tail in memory; one IDF counts over both. A folder that is torn, foreign or gone is
made again from truth. It never reads truth itself, and never analyses a query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anaphora.index.sections.bulk import (
    FIELDS,
    FILES,
    FoundSections,
    SectionBulk,
    SectionDocument,
    document_of,
    look_at,
    read_bulk,
    remove,
    remove_foreign,
    write_bulk,
)
from anaphora.index.sections.forward import (
    NOTHING,
    FieldScores,
    Lines,
    block_of,
    lines_of,
    score_lines,
)
from anaphora.index.turns.words import Tail, idf, tail_scores
from anaphora.index.word_rows import WordRows

__all__ = [
    "FIELDS",
    "FieldScores",
    "SectionBulk",
    "SectionDocument",
    "SectionWords",
    "document_of",
    "look_at",
    "read_bulk",
    "remove",
    "remove_foreign",
    "write_bulk",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FIRST: Final = {"path": 2.0, "title": 2.0, "body": 1.0}
"""How fields weigh when candidates are looked for: a name says more than a mention."""


class SectionWords(WordRows[SectionBulk, SectionDocument, FoundSections, dict[str, Tail]]):
    """The words of one namespace's sections and notes, by row. One thread at a time."""

    def __init__(
        self, folder: Path, term: Callable[[str], str] | None = None, mark: str = ""
    ) -> None:
        super().__init__(folder, FILES, term, mark)
        self._tail_lines: dict[int, Lines] = {}
        self._lengths = np.zeros((len(FIELDS), 0), np.int32)

    def _opened(self, place: Path, bulk: SectionBulk) -> FoundSections:
        return FoundSections(place, bulk.meta)

    @property
    def gone(self) -> int:
        """How many documents of the bulk count no more: with many, it is worth writing anew."""
        return len(self.bulk.ids) - len(self._doc_of)

    def weights(self, terms: Mapping[str, float]) -> dict[str, float]:
        """Each term's weight times its IDF: of those too that no row holds, which are the rarest.

        A term is as rare as it is in bodies: each section of a file repeats the file's path, so
        that paths would make a large file's own name a common word. Keys are the terms as the index
        has them (keyed ones in a sealed home).
        """
        tail, main = self._in_tail(), self._main
        documents = len(self._waiting) + (main.meta.count if main is not None else 0)
        found = {}
        for term, weight in terms.items():
            name = term if self._term is None else self._term(term)
            path, title, body = (
                tail[field].holding(name) + (main.holding(field, name) if main else 0)
                for field in FIELDS
            )
            holding = body or max(path, title)
            found[name] = weight * idf(max(documents, holding), holding)
        return found

    def best(
        self, weights: Mapping[str, float], limit: int, fields: Mapping[str, float] = FIRST
    ) -> Ints:
        """Rows that match a term in any field, best first by the fields' weighted BM25.

        At most `limit` of the bulk and `limit` of the tail.
        """
        rows, scores = self._tail_best(weights, limit, fields)
        if self._main is not None:
            boosts = {f: self._boosts(f, weights, fields.get(f, 0.0)) for f in FIELDS}
            # What counts no more still takes places among the best.
            asked = min(limit + self.gone, self._main.meta.count)
            docs, found = self._main.search(boosts, asked)
            at = self._row_of[docs]
            rows = np.concatenate((at[at >= 0][:limit], rows))
            scores = np.concatenate((found[at >= 0][:limit], scores))
        return rows[np.lexsort((rows, -np.round(scores, 4)))]

    def scores(self, weights: Mapping[str, float], rows: Ints) -> FieldScores:
        """What each of `rows` matches, shapes of `rows`: the same wherever a document lies."""
        averages, main = self._averages(), self._main
        docs = np.array([self._doc_of.get(row, 0) for row in rows.tolist()], np.int64)
        stored = (docs > 0) & (main is not None)
        found = np.zeros((4, len(rows)))
        if main is not None and stored.any():
            block = main.forward.block(docs[stored] - 1)
            found[:, stored] = _columns(score_lines(block, weights, averages))
        if not stored.all():
            # The averages have made the tail.
            lines = [self._tail_lines.get(row, NOTHING) for row in rows[~stored].tolist()]
            found[:, ~stored] = _columns(score_lines(block_of(lines), weights, averages))
        return FieldScores(*found)

    def _averages(self) -> Floats:
        """How long each field is on average; what counts no more is among them."""
        tail, meta = self._in_tail(), self.bulk.meta
        count = len(self._waiting) + (meta.count if self._main is not None else 0)
        tokens = [tail[field].tokens + meta.tokens[n] for n, field in enumerate(FIELDS)]
        return np.maximum(np.array(tokens, np.float64) / max(1, count), 1.0)

    def _boosts(self, field: str, weights: Mapping[str, float], factor: float) -> dict[str, float]:
        """What makes the field's own IDF that of all fields, bulk and tail together."""
        main = self._main
        if main is None or factor <= 0.0:
            return {}
        count = main.meta.count
        held = {term: main.holding(field, term) for term, w in weights.items() if w > 0.0}
        return {t: factor * weights[t] / idf(count, n) for t, n in held.items() if n}

    def _tail_best(
        self, weights: Mapping[str, float], limit: int, fields: Mapping[str, float]
    ) -> tuple[Ints, Floats]:
        keys, parts = [np.empty(0, np.int64)], [np.empty(0)]
        for number, field in enumerate(FIELDS):
            factor = fields.get(field, 0.0)
            boosted = {t: factor * w for t, w in weights.items() if factor * w > 0.0}
            some, scores = self._tail_parts(number, field, boosted)
            keys.append(some)
            parts.append(scores.astype(np.float64))
        rows, where = np.unique(np.concatenate(keys), return_inverse=True)
        sums: Floats = np.bincount(where, np.concatenate(parts), len(rows)).astype(np.float64)
        order = np.lexsort((rows, -sums))[:limit]
        return rows[order], sums[order]

    def _tail_parts(
        self, number: int, field: str, weights: Mapping[str, float]
    ) -> tuple[Ints, NDArray[np.float32]]:
        tail, meta = self._in_tail()[field], self.bulk.meta
        if meta.count:
            average = meta.tokens[number] / meta.count
        else:
            average = tail.tokens / max(1, tail.count)
        return tail_scores(tail, weights, max(1.0, average), self._lengths[number])

    def _in_tail(self) -> dict[str, Tail]:
        if self._tail is None:
            self._tail = {field: Tail() for field in FIELDS}
            self._tail_lines = {}
            self._lengths = np.zeros((len(FIELDS), 0), np.int32)
            self._add(self._waiting.items())
        return self._tail

    def _add(self, documents: Iterable[tuple[int, SectionDocument]]) -> None:
        tail = self._tail
        if tail is None:
            return
        for row, document in documents:
            if row >= self._lengths.shape[1]:
                grown = np.zeros((len(FIELDS), row + row // 4 + 64), np.int32)
                grown[:, : self._lengths.shape[1]] = self._lengths
                self._lengths = grown
            self._lengths[:, row] = document.lengths
            self._tail_lines[row] = lines_of(document.texts)
            for field, tokens in zip(FIELDS, document.texts, strict=True):
                tail[field].add([(row, tokens)])


def _columns(scores: FieldScores) -> Floats:
    return np.array((scores.path, scores.title, scores.body, scores.held))
