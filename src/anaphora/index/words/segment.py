"""The word index: tantivy for the bulk, a tail in memory for the newest turns, one BM25 for both.

In: analysed tokens by row id. Out: BM25 scores (k1 1.2, b 0.75, idf = ln(1 + (N - n + 0.5) /
(n + 0.5)); Robertson and Zaragoza, *The Probabilistic Relevance Framework*, 2009). How often a
term occurs is counted over bulk and tail together, so that a score hardly depends on where a turn
lies; the average length is the bulk's. Never analyses a text: that is `text.py`.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import tantivy

_K1, _B = 1.2, 0.75
_HEAP = 32_000_000
# What tantivy may raise for files that are torn, gone or locked.
WORD_INDEX_ERRORS = (ValueError, OSError, RuntimeError)


def _norm_table() -> NDArray[np.int64]:
    """Lengths that tantivy can tell apart: it keeps one byte of a text's length (as Lucene)."""
    lengths, step = list(range(41)), 2
    while len(lengths) < 256:
        for _ in range(8):
            lengths.append(lengths[-1] + step)
        step *= 2
    return np.array(lengths[:256], np.int64)


_NORMS = _norm_table()


@dataclass(frozen=True, slots=True)
class WordsMeta:
    """The bulk on disk: folder `generation`, `count` rows up to row id `upto`, `tokens` in all.

    `signature` is over the files: another one means that a write did not end.
    """

    generation: str = ""
    upto: int = 0
    count: int = 0
    tokens: int = 0
    signature: int = 0


def idf(documents: int, holding: int) -> float:
    """Inverse document frequency of a term that `holding` of `documents` texts hold."""
    return math.log(1.0 + (documents - holding + 0.5) / (holding + 0.5))


def full_score(mass: float, lengths: NDArray[np.int32], average: float) -> NDArray[np.float64]:
    """BM25 of texts with these lengths that hold each term once; `mass` is the sum of their idf."""
    norm = 1.0 - _B + _B * lengths.astype(np.float64) / average
    full: NDArray[np.float64] = mass * (_K1 + 1.0) / (1.0 + _K1 * norm)
    return full


class MemoryPostings:
    """Rows that are in no word index on disk: term → (key, occurrences)."""

    def __init__(self) -> None:
        self.postings: dict[str, list[tuple[int, int]]] = {}
        self.count = 0
        self.tokens = 0

    def add(self, rows: Iterable[tuple[int, str]]) -> None:
        """Add rows: a key (row id, or place in an overlay) and tokens joined by spaces."""
        for key, tokens in rows:
            words = tokens.split(" ") if tokens else []
            for term, occurrences in Counter(words).items():
                self.postings.setdefault(term, []).append((key, occurrences))
            self.count += 1
            self.tokens += len(words)

    def holding(self, term: str) -> int:
        """How many rows hold a term."""
        return len(self.postings.get(term, ()))


class DiskPostings:
    """One generation of the bulk on disk, opened for search; immutable once opened."""

    def __init__(self, folder: Path, meta: WordsMeta) -> None:
        """Open it. Raises ValueError or OSError where the files are not those of `meta`."""
        import tantivy

        if signature(folder) != meta.signature:
            raise ValueError("the word index on disk is not the one that was finished")
        index = tantivy.Index.open(str(folder))
        index.config_reader(reload_policy="manual", num_warmers=0)
        self._schema = index.schema
        self._searcher = index.searcher()
        if self._searcher.num_docs != meta.count:
            raise ValueError("the word index on disk has lost rows")
        self.meta = meta

    def holding(self, term: str) -> int:
        """How many rows hold a term."""
        return int(self._searcher.doc_freq("words", term))

    def search(
        self, boosts: Mapping[str, float], code: int | None, limit: int
    ) -> tuple[list[int], list[float]]:
        """Row ids and scores of the best `limit` rows, in the thread with this code if given."""
        import tantivy

        query = tantivy.Query.boolean_query(
            [(tantivy.Occur.Should, self._term(term, boost)) for term, boost in boosts.items()]
        )
        if code is not None:
            inside = tantivy.Query.term_query(self._schema, "conversation", code)
            only = tantivy.Query.const_score_query(inside, 0.0)
            both = [(tantivy.Occur.Must, query), (tantivy.Occur.Must, only)]
            query = tantivy.Query.boolean_query(both)
        hits = self._searcher.search(query, limit=limit, count=False).hits
        ids = self._searcher.fast_field_values("id", [address for _, address in hits])
        return [int(i) for i in ids if i is not None], [float(score) for score, _ in hits]

    def _term(self, term: str, boost: float) -> tantivy.Query:
        import tantivy

        query = tantivy.Query.term_query(self._schema, "words", term, "freq")
        # Of plain terms alone tantivy skips what cannot be among the best; boosted ones it reads.
        return query if boost == 1.0 else tantivy.Query.boost_query(query, boost)


def extend_main(folder: Path, rows: Iterable[tuple[int, int, str]]) -> None:
    """Add rows (id, thread's code, tokens) to the word index in `folder`, made if it is not there.

    Raises ValueError or OSError where it cannot be written, or another process writes it.
    """
    import tantivy

    folder.mkdir(parents=True, exist_ok=True)
    index = tantivy.Index(_schema(), path=str(folder))
    writer = index.writer(_HEAP, 1)
    for key, code, tokens in rows:
        document = tantivy.Document()
        document.add_unsigned("id", key)
        document.add_unsigned("conversation", code)
        document.add_text("words", tokens)
        writer.add_document(document)
    writer.commit()
    writer.wait_merging_threads()


def signature(folder: Path) -> int:
    """One number over the names and bytes of the index files in `folder`."""
    total = 0
    for path in sorted(folder.iterdir()):
        if path.name.endswith(".lock"):
            continue
        total = zlib.crc32(path.read_bytes(), zlib.crc32(path.name.encode(), total))
    return total


def tail_scores(
    tail: MemoryPostings, terms: Mapping[str, float], average: float, lengths: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Keys of the tail's rows that hold a term, with BM25 parts: one entry a row and term.

    `terms` gives each term's idf; `lengths` is indexed by key.
    """
    # Copies: the tail grows while an older view still reads it, and these are walked twice.
    found = [(term, list(tail.postings[term])) for term in terms if term in tail.postings]
    if not found:
        return np.empty(0, np.int64), np.empty(0, np.float32)
    pairs = np.array([pair for _, postings in found for pair in postings], np.int64)
    weights = np.repeat([terms[term] for term, _ in found], [len(p) for _, p in found])
    # What the tail got since the view was taken: that view's rows end where its lengths end.
    inside = pairs[:, 0] < len(lengths)
    pairs, weights = pairs[inside], weights[inside]
    known = _NORMS[np.searchsorted(_NORMS, lengths[pairs[:, 0]], side="right") - 1]
    occurrences = pairs[:, 1]
    saturation = occurrences + _K1 * (1.0 - _B + _B * known / average)
    scores = weights * (_K1 + 1.0) * occurrences / saturation
    return pairs[:, 0], scores.astype(np.float32)


def _schema() -> tantivy.Schema:
    import tantivy

    builder = tantivy.SchemaBuilder()
    # Our analyser is the only one: tokens never hold white space.
    builder.add_text_field("words", tokenizer_name="whitespace", index_option="freq")
    builder.add_unsigned_field("id", fast=True)
    builder.add_unsigned_field("conversation", indexed=True)
    return builder.build()


def unique_terms(terms: Sequence[str]) -> list[str]:
    """Terms once each, in order."""
    return list(dict.fromkeys(terms))
