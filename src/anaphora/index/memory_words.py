"""The words of memories: how much of a question's weight does each text hold?

In: texts by row, a question's terms. Out: for rows, the share (0 … 1) of the question's IDF mass
that they match (BM25 over the sum of IDFs): absolute, never relative to the best match. The bulk
lies in tantivy on disk, what is newer in a tail in memory; one IDF counts over both. A folder that
is torn, foreign or gone is made again from truth. It never reads truth itself.

Beside each generation of the bulk lies a manifest: which memory each document is, a digest of its
tokens, and up to which number of truth it speaks.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from anaphora.index.words import (
    WORD_INDEX_ERRORS,
    MainWords,
    Tail,
    WordsMeta,
    extend_main,
    idf,
    tail_scores,
)
from anaphora.index.words import signature as words_signature
from anaphora.text import ANALYSER, analyse

if TYPE_CHECKING:
    import tantivy

__all__ = [
    "Bulk",
    "Document",
    "MemoryWords",
    "document_of",
    "read_bulk",
    "remove",
    "remove_foreign",
    "write_bulk",
]

LEAST_DOCUMENTS: Final = 1000
"""A term's rarity is judged as in at least so many memories: among three, every word is rare."""

_MANIFEST: Final = "memories.json"
_DIGITS: Final = 16


@dataclass(frozen=True, slots=True)
class Document:
    """A memory's text as the word index has it: tokens joined by spaces, and their digest."""

    record_id: str
    tokens: str
    digest: str

    @property
    def length(self) -> int:
        """How many tokens it has."""
        return self.tokens.count(" ") + 1 if self.tokens else 0


@dataclass(frozen=True, slots=True)
class Bulk:
    """What is on disk: document n (from 1) is memory `ids[n - 1]` with tokens of that digest.

    `upto` is the number of truth that it was written at: what changed later may differ.
    """

    meta: WordsMeta = field(default_factory=WordsMeta)
    upto: int = -1
    ids: tuple[str, ...] = ()
    digests: tuple[str, ...] = ()


def document_of(record_id: str, text: str, term: Callable[[str], str] | None = None) -> Document:
    """Analyse a text; `term` replaces each token (a sealed home keeps keyed hashes of them)."""
    tokens = analyse(text)
    joined = " ".join(tokens if term is None else [term(token) for token in tokens])
    digest = hashlib.blake2b(joined.encode("utf-8", "surrogatepass"), digest_size=_DIGITS // 2)
    return Document(record_id, joined, digest.hexdigest())


def read_bulk(folder: Path, mark: str = "") -> Bulk:
    """What the manifest in `folder` says; an empty bulk where there is none that can be read.

    `mark` tells words of one key from those of another, and from clear ones ("").
    """
    try:
        found = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        if found["analyser"] != ANALYSER + mark:
            return Bulk()
        digests = found["digests"]
        cut = [digests[at : at + _DIGITS] for at in range(0, len(digests), _DIGITS)]
        bulk = Bulk(WordsMeta(*found["meta"]), found["upto"], tuple(found["ids"]), tuple(cut))
        return bulk if bulk.meta.count == len(bulk.ids) == len(cut) else Bulk()
    except (OSError, ValueError, KeyError, TypeError):
        return Bulk()


def remove_foreign(folder: Path, mark: str) -> None:
    """Remove words that a home of another key, or a clear one, has left in a sealed home."""
    if mark and (folder / _MANIFEST).exists() and not read_bulk(folder, mark).meta.generation:
        shutil.rmtree(folder, ignore_errors=True)


def write_bulk(
    folder: Path, seen: Bulk, upto: int, documents: Sequence[Document], mark: str = ""
) -> Bulk | None:
    """Write documents behind those of `seen`, or a new generation where `seen` is empty.

    None where the disk refuses. Only one process may be in here at a time.
    """
    meta = seen.meta
    if meta.generation and _signature(folder / meta.generation) != meta.signature:
        return None
    generation = meta.generation or uuid.uuid4().hex
    place = folder / generation
    first = meta.count + 1
    try:
        # Ours are the only documents: the code by which turns are found by thread is the id.
        extend_main(place, ((n, n, d.tokens) for n, d in enumerate(documents, first)))
        tokens = sum(d.length for d in documents)
        meta = WordsMeta(
            generation,
            meta.count + len(documents),
            meta.count + len(documents),
            meta.tokens + tokens,
            words_signature(place),
        )
        bulk = Bulk(
            meta,
            upto,
            (*seen.ids, *(d.record_id for d in documents)),
            (*seen.digests, *(d.digest for d in documents)),
        )
        _write_manifest(folder, bulk, mark)
    except WORD_INDEX_ERRORS:
        shutil.rmtree(place, ignore_errors=True)
        return None
    remove_all_but(folder, generation)
    return bulk


def remove_all_but(folder: Path, generation: str) -> None:
    """Remove other generations: they can hold words that were forgotten."""
    with suppress(OSError):
        for place in list(folder.iterdir()):
            if place.is_dir() and place.name != generation:
                shutil.rmtree(place, ignore_errors=True)


def remove(folder: Path, generation: str, mark: str = "") -> None:
    """Remove one generation, and the manifest if it is about that one."""
    if read_bulk(folder, mark).meta.generation == generation:
        with suppress(OSError):
            (folder / _MANIFEST).unlink(missing_ok=True)
    shutil.rmtree(folder / generation, ignore_errors=True)


def _write_manifest(folder: Path, bulk: Bulk, mark: str) -> None:
    meta = bulk.meta
    value = {
        "analyser": ANALYSER + mark,
        "meta": [meta.generation, meta.upto, meta.count, meta.tokens, meta.signature],
        "upto": bulk.upto,
        "ids": bulk.ids,
        "digests": "".join(bulk.digests),
    }
    fresh = folder / f"{_MANIFEST}.new"
    fresh.write_text(json.dumps(value), encoding="utf-8")
    fresh.replace(folder / _MANIFEST)


def _signature(folder: Path) -> int:
    try:
        return words_signature(folder)
    except OSError:
        return -1


class _Found(MainWords):
    """The bulk, which can also be asked about given documents."""

    def _term(self, term: str, boost: float) -> tantivy.Query:
        import tantivy

        if boost != 1.0:
            return super()._term(term, boost)
        # Of plain terms alone tantivy skips what cannot be among the best; boosted ones it reads.
        return tantivy.Query.term_query(self._schema, "words", term, "freq")

    def search_in(
        self, boosts: Mapping[str, float], documents: Sequence[int]
    ) -> tuple[list[int], list[float]]:
        """Those of `documents` that match anything, with their scores."""
        import tantivy

        inside = tantivy.Query.term_set_query(self._schema, "conversation", list(documents))
        only = tantivy.Query.const_score_query(inside, 0.0)
        words = tantivy.Query.boolean_query(
            [(tantivy.Occur.Should, self._term(term, boost)) for term, boost in boosts.items()]
        )
        both = [(tantivy.Occur.Must, words), (tantivy.Occur.Must, only)]
        query = tantivy.Query.boolean_query(both)
        hits = self._searcher.search(query, limit=len(documents), count=False).hits
        ids = self._searcher.fast_field_values("id", [address for _, address in hits])
        return [int(i) for i in ids if i is not None], [float(score) for score, _ in hits]


class MemoryWords:
    """The words of one namespace's memories, by row. One thread at a time."""

    def __init__(
        self, folder: Path, term: Callable[[str], str] | None = None, mark: str = ""
    ) -> None:
        self.folder = folder
        self._mark = mark
        self.bulk = Bulk()
        self.stale = False
        self._term = term
        self._main: _Found | None = None
        self._row_of = np.full(1, -1, np.int64)
        self._doc_of: dict[int, int] = {}
        self._waiting: dict[int, Document] = {}
        self._tail: Tail | None = Tail()
        self._lengths = np.zeros(0, np.int32)

    def open(self, bulk: Bulk, row_of: Callable[[str], int], known_upto: int) -> bool:
        """Answer from `bulk`, whose files lie in the folder; False where they do not fit it.

        What waits in the tail stays there unless the bulk has it. `stale` is set where the bulk
        holds memories that are gone as of `known_upto`.
        """
        if not bulk.meta.generation:
            return False
        try:
            main = _Found(self.folder / bulk.meta.generation, bulk.meta)
        except WORD_INDEX_ERRORS:
            return False
        rows = np.fromiter((row_of(one) for one in bulk.ids), np.int64, len(bulk.ids))
        self.stale = bool((rows < 0).any()) and bulk.upto <= known_upto
        self._main, self.bulk = main, bulk
        self._row_of = np.concatenate((np.full(1, -1, np.int64), rows))
        self._doc_of = {row: doc for doc, row in enumerate(rows.tolist(), 1) if row >= 0}
        waiting, self._waiting, self._tail = self._waiting, {}, None
        for row, document in waiting.items():
            self._put(row, document)
        return True

    def purge(self) -> None:
        """Take what was forgotten off the disk at once; what is open here goes on answering."""
        if self.stale and self.bulk.meta.generation:
            remove(self.folder, self.bulk.meta.generation, self._mark)

    @property
    def waiting(self) -> int:
        """How many texts are in memory alone."""
        return len(self._waiting)

    def documents(self) -> list[Document]:
        """What waits to be written, oldest first."""
        return list(self._waiting.values())

    def put(self, row: int, record_id: str, text: str) -> None:
        """Take in the text of a memory, new or as it was."""
        self._put(row, document_of(record_id, text, self._term))

    def _put(self, row: int, document: Document) -> None:
        doc = self._doc_of.get(row, 0)
        if doc and self.bulk.digests[doc - 1] == document.digest:
            self._take_back(row)
            return
        self._drop_from_bulk(row)
        if self._waiting.get(row) != document:
            self._take_back(row)
            self._waiting[row] = document
            self._add([(row, document)])

    def drop(self, row: int) -> None:
        """A memory was deleted: its words count no more, and must leave the disk (`stale`)."""
        self._drop_from_bulk(row)
        self._take_back(row)

    def _drop_from_bulk(self, row: int) -> None:
        doc = self._doc_of.pop(row, 0)
        if doc:
            self._row_of[doc] = -1
            self.stale = True

    def _take_back(self, row: int) -> None:
        if self._waiting.pop(row, None) is not None:
            self._tail = None

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
        average = meta.tokens / meta.count if meta.count else tail.tokens / max(1, tail.count)
        keys, parts = tail_scores(tail, weights, max(1.0, average), self._lengths)
        rows, where = np.unique(keys, return_inverse=True)
        return rows, np.bincount(where, parts, len(rows)).astype(np.float64)

    def _in_tail(self) -> Tail:
        if self._tail is None:
            self._tail = Tail()
            self._lengths = np.zeros(0, np.int32)
            self._add(self._waiting.items())
        return self._tail

    def _add(self, documents: Iterable[tuple[int, Document]]) -> None:
        if self._tail is None:
            return
        for row, document in documents:
            if row >= len(self._lengths):
                grown = np.zeros(row + row // 4 + 64, np.int32)
                grown[: len(self._lengths)] = self._lengths
                self._lengths = grown
            self._lengths[row] = document.length
            self._tail.add([(row, document.tokens)])


def _share(scores: NDArray[np.float64], weights: Mapping[str, float]) -> NDArray[np.float64]:
    """BM25 as a share of the question's IDF mass: a text of average length that has it all is 1.

    Rounded, because the bulk adds in single precision: a share does not depend on where a text is.
    """
    total = sum(weights.values())
    return np.minimum(np.round(scores / total, 5), 1.0) if total else np.zeros(len(scores))
