"""The words of memories on disk: one field in tantivy, a generation at a time.

In: a folder, documents in order. Out: what lies there, or that it cannot be used. It never reads
truth; only one process may write at a time.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from anaphora.core.text import ANALYSER
from anaphora.index.words.manifest import WordBulk, WordFiles, digest_of, length_of, tokens_of
from anaphora.index.words.rows import WordRows
from anaphora.index.words.segment import (
    DiskPostings,
    MemoryPostings,
    WordsMeta,
    extend_main,
    idf,
    signature,
    tail_scores,
)

if TYPE_CHECKING:
    import tantivy


class CutShort(Exception):
    """A rewrite of the words ended before it was whole: what it began with has been forgotten."""


@dataclass(frozen=True, slots=True)
class Document:
    """A memory's text as the word index has it: tokens joined by spaces, and their digest."""

    key: str
    tokens: str
    digest: str

    @property
    def length(self) -> int:
        """How many tokens it has."""
        return length_of(self.tokens)


@dataclass(frozen=True, slots=True)
class Bulk(WordBulk[WordsMeta]):
    """What is on disk: document n (from 1) is memory `ids[n - 1]`."""

    meta: WordsMeta = field(default_factory=WordsMeta)


FILES: Final = WordFiles("memories.json", ("analyser", ANALYSER), Bulk, WordsMeta)
read_bulk = FILES.read
remove = FILES.remove
remove_foreign = FILES.remove_foreign


def document_of(record_id: str, text: str, term: Callable[[str], str] | None = None) -> Document:
    """Analyse a text; `term` replaces each token (a sealed home keeps keyed hashes of them)."""
    tokens = tokens_of(text, term)
    return Document(record_id, tokens, digest_of(tokens))


def write_bulk(
    folder: Path,
    seen: Bulk,
    upto: int,
    documents: Sequence[Document],
    key_tag: str = "",
    stop: threading.Event | None = None,
) -> Bulk | None:
    """Write documents behind those of `seen`, or a new generation where `seen` is empty.

    None where the disk refuses. Only one process may be in here at a time. Raises `CutShort`, and
    leaves nothing of a new generation, when `stop` is set before it is whole.
    """

    def extend(place: Path) -> WordsMeta:
        count = seen.meta.count + len(documents)
        try:
            # Ours are the only documents: the code by which turns are found by thread is the id.
            going = enumerate(_until(stop, documents), seen.meta.count + 1)
            extend_main(place, ((n, n, d.tokens) for n, d in going))
            tokens = seen.meta.tokens + sum(d.length for d in documents)
            meta = WordsMeta(place.name, count, count, tokens, signature(place))
            _check(stop)
        except CutShort:
            shutil.rmtree(place, ignore_errors=True)
            raise
        return meta

    return FILES.write(folder, seen, upto, documents, key_tag, extend)


def _until(stop: threading.Event | None, documents: Sequence[Document]) -> Iterator[Document]:
    for document in documents:
        _check(stop)
        yield document


def _check(stop: threading.Event | None) -> None:
    if stop is not None and stop.is_set():
        raise CutShort


LEAST_DOCUMENTS: Final = 1000
"""A term's rarity is judged as in at least so many memories: among three, every word is rare."""

# Documents that are named one by one in a query: 24 take 0.1 ms, as a set 0.5 to 1.
_NAMED: Final = 400


class _Found(DiskPostings):
    """The bulk, which can also be asked about given documents."""

    def search_in(
        self, boosts: Mapping[str, float], documents: Sequence[int]
    ) -> tuple[list[int], list[float]]:
        """Those of `documents` that match anything, with their scores."""
        from tantivy import Occur, Query

        words = Query.boolean_query([(Occur.Should, self._term(*one)) for one in boosts.items()])
        query = Query.boolean_query([(Occur.Must, words), (Occur.Must, self._any_of(documents))])
        hits = self._searcher.search(query, limit=len(documents), count=False).hits
        ids = self._searcher.fast_field_values("id", [address for _, address in hits])
        return [int(i) for i in ids if i is not None], [float(score) for score, _ in hits]

    def _any_of(self, documents: Sequence[int]) -> tantivy.Query:
        """Matches these documents, and adds nothing to their scores."""
        from tantivy import Occur, Query

        if len(documents) > _NAMED:
            inside = Query.term_set_query(self._schema, "conversation", list(documents))
            return Query.const_score_query(inside, 0.0)
        # A set is looked up by an automaton over every document there is: docs/decisions/0022.
        named = (Query.term_query(self._schema, "conversation", one) for one in documents)
        return Query.boolean_query([(Occur.Should, Query.const_score_query(n, 0.0)) for n in named])


class MemoryWords(WordRows[Bulk, Document, _Found, MemoryPostings]):
    """The words of one namespace's memories, by row. One thread at a time."""

    def __init__(
        self, folder: Path, term: Callable[[str], str] | None = None, key_tag: str = ""
    ) -> None:
        super().__init__(folder, FILES, term, key_tag)
        self._lengths = np.zeros(0, np.int32)

    def _opened(self, place: Path, bulk: Bulk) -> _Found:
        return _Found(place, bulk.meta)

    def weights(self, terms: Sequence[str]) -> dict[str, float]:
        """The IDF of each distinct term, of those too that no memory holds: they are the rarest."""
        tail, main = self._in_tail(), self._main
        documents = tail.count + (main.meta.count if main is not None else 0)
        found = {}
        for term in dict.fromkeys(terms):
            name = term if self._term is None else self._term(term)
            holding = tail.holding(name) + (main.holding(name) if main is not None else 0)
            found[name] = idf(max(documents, LEAST_DOCUMENTS), holding)
        return found

    def best(
        self, weights: Mapping[str, float], limit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], float]:
        """Rows that match, with their shares; others may match no more than the last value.

        That is 0 where these are all, else the share of the worst of the bulk's `limit` best.
        """
        rows, scores = self._tail_scores(weights)
        boosts = self._boosts(weights)
        if self._main is None or not boosts:
            return rows, _share(scores, weights), 0.0
        count = self._main.meta.count
        docs, found = self._main.search(boosts, None, max(1, min(limit, count)))
        at = self._row_of[np.array(docs, np.int64)]
        alive = at >= 0
        rows = np.concatenate((at[alive], rows))
        scores = np.concatenate((np.array(found, np.float64)[alive], scores))
        more = limit <= len(docs) < count
        least = float(_share(np.array(found[-1:], np.float64), weights)[0]) if more else 0.0
        return rows, _share(scores, weights), least

    def of_rows(self, weights: Mapping[str, float], rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """The share that each of these rows matches, shape of `rows`."""
        found = dict.fromkeys(rows.tolist(), 0.0)
        for row, score in zip(*(a.tolist() for a in self._tail_scores(weights)), strict=True):
            if row in found:
                found[row] = score
        docs = [self._doc_of[row] for row in found if row in self._doc_of]
        boosts = self._boosts(weights)
        if docs and boosts and self._main is not None:
            some, scores = self._main.search_in(boosts, docs)
            found.update(zip(self._row_of[some].tolist(), scores, strict=True))
        return _share(np.array([found[row] for row in rows.tolist()], np.float64), weights)

    def _boosts(self, weights: Mapping[str, float]) -> dict[str, float]:
        """What makes the bulk's own IDF that of bulk and tail together."""
        main = self._main
        if main is None:
            return {}
        count = main.meta.count
        held = {term: main.holding(term) for term in weights}
        return {term: weights[term] / idf(count, n) for term, n in held.items() if n}

    def _tail_scores(
        self, weights: Mapping[str, float]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Rows of the tail that match, once each, with their BM25."""
        tail, meta = self._in_tail(), self.bulk.meta
        if not tail.count:
            return np.empty(0, np.int64), np.empty(0)
        average = meta.tokens / meta.count if meta.count else tail.tokens / max(1, tail.count)
        keys, parts = tail_scores(tail, weights, max(1.0, average), self._lengths)
        rows, where = np.unique(keys, return_inverse=True)
        return rows, np.bincount(where, parts, len(rows)).astype(np.float64)

    def _in_tail(self) -> MemoryPostings:
        if self._tail is None:
            self._tail = MemoryPostings()
            self._lengths = np.zeros(0, np.int32)
            self._add(self._waiting.items())
        return self._tail

    def _add(self, documents: Iterable[tuple[int, Document]]) -> None:
        tail = self._tail
        if tail is None:
            return
        for row, document in documents:
            if row >= len(self._lengths):
                grown = np.zeros(row + row // 4 + 64, np.int32)
                grown[: len(self._lengths)] = self._lengths
                self._lengths = grown
            self._lengths[row] = document.length
            tail.add([(row, document.tokens)])


def _share(scores: NDArray[np.float64], weights: Mapping[str, float]) -> NDArray[np.float64]:
    """BM25 as a share of the question's IDF mass: a text of average length that has it all is 1.

    Rounded, because the bulk adds in single precision: a share does not depend on where a text is.
    """
    total = sum(weights.values())
    return np.minimum(np.round(scores / total, 5), 1.0) if total else np.zeros(len(scores))
