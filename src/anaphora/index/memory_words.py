"""The words of memories: how much of a question's weight does each text hold?

In: texts by row, a question's terms. Out: for rows, the share (0 … 1) of the question's IDF mass
that they match: absolute, never relative to the best match. The bulk lies in tantivy on disk, what
is newer in a tail in memory; one IDF counts over both. A folder that is torn, foreign or gone is
made again from truth. It never reads truth itself.

Beside each generation of the bulk lies a manifest: which memory each document is, a digest of its
tokens, and up to which number of truth it speaks.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from anaphora.index.words import WORD_INDEX_ERRORS, MainWords, Tail, WordsMeta, extend_main, idf
from anaphora.index.words import signature as words_signature
from anaphora.text import ANALYSER, analyse

if TYPE_CHECKING:
    import tantivy

__all__ = ["Bulk", "Document", "MemoryWords", "document_of", "read_bulk", "write_bulk"]

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


def read_bulk(folder: Path) -> Bulk:
    """What the manifest in `folder` says; an empty bulk where there is none that can be read."""
    try:
        found = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        if found["analyser"] != ANALYSER:
            return Bulk()
        digests = found["digests"]
        cut = [digests[at : at + _DIGITS] for at in range(0, len(digests), _DIGITS)]
        bulk = Bulk(WordsMeta(*found["meta"]), found["upto"], tuple(found["ids"]), tuple(cut))
        return bulk if bulk.meta.count == len(bulk.ids) == len(cut) else Bulk()
    except (OSError, ValueError, KeyError, TypeError):
        return Bulk()


def write_bulk(folder: Path, seen: Bulk, upto: int, documents: Sequence[Document]) -> Bulk | None:
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
        tokens = sum(d.tokens.count(" ") + 1 for d in documents if d.tokens)
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
        _write_manifest(folder, bulk)
    except WORD_INDEX_ERRORS:
        shutil.rmtree(place, ignore_errors=True)
        return None
    remove_all_but(folder, generation)
    return bulk


def remove_all_but(folder: Path, generation: str) -> None:
    """Remove other generations (they can hold words that were forgotten); all of them for ""."""
    with suppress(OSError):
        if not generation:
            (folder / _MANIFEST).unlink(missing_ok=True)
        for place in list(folder.iterdir()):
            if place.is_dir() and place.name != generation:
                shutil.rmtree(place, ignore_errors=True)


def _write_manifest(folder: Path, bulk: Bulk) -> None:
    meta = bulk.meta
    value = {
        "analyser": ANALYSER,
        "meta": [meta.generation, meta.upto, meta.count, meta.tokens, meta.signature],
        "upto": bulk.upto,
        "ids": bulk.ids,
        "digests": "".join(bulk.digests),
    }
    fresh = folder / f"{_MANIFEST}.new"
    fresh.write_text(json.dumps(value), encoding="utf-8")
    os.replace(fresh, folder / _MANIFEST)


def _signature(folder: Path) -> int:
    try:
        return words_signature(folder)
    except OSError:
        return -1


class _Shares(MainWords):
    """The bulk, asked for matched mass in place of BM25."""

    def mass(self, weights: Mapping[str, float], limit: int) -> tuple[list[int], list[float]]:
        """The `limit` documents that match most of `weights`, and how much they match."""
        return self._found(self._matching(weights), limit)

    def mass_of(
        self, weights: Mapping[str, float], documents: Sequence[int]
    ) -> tuple[list[int], list[float]]:
        """Those of `documents` that match anything, and how much."""
        import tantivy

        inside = tantivy.Query.term_set_query(self._schema, "conversation", list(documents))
        only = tantivy.Query.const_score_query(inside, 0.0)
        both = [
            (tantivy.Occur.Must, self._matching(weights)),
            (tantivy.Occur.Must, only),
        ]
        return self._found(tantivy.Query.boolean_query(both), len(documents))

    def _matching(self, weights: Mapping[str, float]) -> tantivy.Query:
        import tantivy

        def has(term: str) -> tantivy.Query:
            return tantivy.Query.term_query(self._schema, "words", term, "basic")

        return tantivy.Query.boolean_query(
            [
                (tantivy.Occur.Should, tantivy.Query.const_score_query(has(term), weight))
                for term, weight in weights.items()
            ]
        )

    def _found(self, query: tantivy.Query, limit: int) -> tuple[list[int], list[float]]:
        hits = self._searcher.search(query, limit=limit, count=False).hits
        ids = self._searcher.fast_field_values("id", [address for _, address in hits])
        return [int(i) for i in ids if i is not None], [float(score) for score, _ in hits]


class MemoryWords:
    """The words of one namespace's memories, by row. One thread at a time."""

    def __init__(self, folder: Path, term: Callable[[str], str] | None = None) -> None:
        self.folder = folder
        self.bulk = Bulk()
        self.stale = False
        self._term = term
        self._main: _Shares | None = None
        self._row_of = np.full(1, -1, np.int64)
        self._doc_of: dict[int, int] = {}
        self._waiting: dict[int, Document] = {}
        self._tail: Tail | None = Tail()

    def open(self, bulk: Bulk, row_of: Callable[[str], int], known_upto: int) -> bool:
        """Answer from `bulk`, whose files lie in the folder; False where they do not fit it.

        What waits in the tail stays there unless the bulk has it. `stale` is set where the bulk
        holds memories that are gone as of `known_upto`.
        """
        try:
            main = _Shares(self.folder / bulk.meta.generation, bulk.meta)
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
            if self._tail is not None:
                self._tail.add([(row, document.tokens)])

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
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], bool]:
        """Rows that match, with their shares, and whether these are all that match.

        Where they are not, the bulk's `limit` best are among them.
        """
        if not weights:
            return np.empty(0, np.int64), np.empty(0), True
        total = sum(weights.values())
        rows, mass = self._tail_mass(weights)
        if self._main is None:
            return rows, _share(mass, total), True
        docs, scores = self._main.mass(weights, max(1, min(limit, self._main.meta.count)))
        found = self._row_of[np.array(docs, np.int64)]
        alive = found >= 0
        rows = np.concatenate((found[alive], rows))
        mass = np.concatenate((np.array(scores, np.float64)[alive], mass))
        everything = len(docs) < limit or len(docs) == self._main.meta.count
        return rows, _share(mass, total), everything

    def of_rows(
        self, weights: Mapping[str, float], rows: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """The share that each of these rows matches, shape of `rows`."""
        found = dict.fromkeys(rows.tolist(), 0.0)
        if weights and found:
            total = sum(weights.values())
            in_tail, mass = self._tail_mass(weights)
            found.update((r, m) for r, m in zip(in_tail.tolist(), mass, strict=True) if r in found)
            docs = [self._doc_of[row] for row in found if row in self._doc_of]
            if docs and self._main is not None:
                some, scores = self._main.mass_of(weights, docs)
                found.update(zip(self._row_of[some].tolist(), scores, strict=True))
            return _share(np.array([found[row] for row in rows.tolist()], np.float64), total)
        return np.zeros(len(rows), np.float64)

    def _tail_mass(
        self, weights: Mapping[str, float]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        found: dict[int, float] = {}
        postings = self._in_tail().postings
        for term, weight in weights.items():
            for row, _ in postings.get(term, ()):
                found[row] = found.get(row, 0.0) + weight
        n = len(found)
        return np.fromiter(found, np.int64, n), np.fromiter(found.values(), np.float64, n)

    def _in_tail(self) -> Tail:
        if self._tail is None:
            self._tail = Tail()
            self._tail.add((row, d.tokens) for row, d in self._waiting.items())
        return self._tail


def _share(mass: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    # The bulk adds in single precision: rounded, a share does not depend on where a text lies.
    return np.minimum(np.round(mass / total, 5), 1.0)


def documents_of(
    texts: Iterable[tuple[str, str]], term: Callable[[str], str] | None
) -> list[Document]:
    """Analyse (record id, text) pairs."""
    return [document_of(record_id, text, term) for record_id, text in texts]
