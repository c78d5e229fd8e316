"""Postings in memory, and BM25 over them and a segment on disk together.

BM25 has k1 1.2, b 0.75 and idf = ln(1 + (N - n + 0.5) / (n + 0.5)) (Robertson and Zaragoza, *The
Probabilistic Relevance Framework*, 2009). Terms are counted over disk and memory together, so that
a score hardly depends on where a document is stored; the average length is that of the segment.
Texts are analysed in `language/analyser.py`, not here.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, compress
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from anaphora.index.words.vocabulary import Vocabulary
from anaphora.language.analyser import QueryWord, language_token
from anaphora.language.languages.language import languages

TermNumbers = NDArray[np.uint64]

K1: Final = 1.2
B: Final = 0.75


def _length_table() -> NDArray[np.float64]:
    """The length that stands for each: of long texts not every one is distinguished, as in Lucene.

    Those of more than 65,535 tokens count as of so many.
    """
    lengths, step = list(range(41)), 2
    while lengths[-1] < 1 << 16:
        lengths += [lengths[-1] + step * number for number in range(1, 9)]
        step *= 2
    starts = np.array(lengths, np.float64)
    return starts[np.searchsorted(starts, np.arange(1 << 16), side="right") - 1]


_LENGTHS = _length_table()

MOST: Final = 65_535
"""The most occurrences of a term in a document that are counted."""

SHIFT: Final = 61
_SPARSE: Final = 16
"""From so many rows for each match on, matches are sorted instead of added to all rows."""


def idf(documents: int, holding: int) -> float:
    """Inverse document frequency of a term that `holding` of `documents` texts contain."""
    return math.log(1.0 + (documents - holding + 0.5) / (holding + 0.5))


@lru_cache(maxsize=16_384)
def _hash(term: str) -> int:
    digest = hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> (64 - SHIFT)


def term_number(term: str, field: int) -> int:
    """The number of a term: those of one field lie together, words as written at the end."""
    return (field << SHIFT) | _hash(term)


def numbers_of(terms: Iterable[str], field: int = 0) -> TermNumbers:
    """The numbers of terms in a field, in order."""
    return np.fromiter((term_number(term, field) for term in terms), np.uint64)


def full_score(mass: float, lengths: NDArray[np.int32], average: float) -> NDArray[np.float64]:
    """BM25 of texts of these lengths that have each term once; `mass` is the sum of their idf."""
    norm = 1.0 - B + B * lengths.astype(np.float64) / average
    full_scores: NDArray[np.float64] = mass * (K1 + 1.0) / (1.0 + K1 * norm)
    return full_scores


class Occurrences(NamedTuple):
    """Where terms occur: which of them, the key of the document, how often there, and how many
    tokens the field of the document has."""

    of_terms: NDArray[np.int64]
    keys: NDArray[np.int64]
    counts: NDArray[Any]
    lengths: NDArray[Any]


class Postings(Protocol):
    """Documents by term, in memory or on disk."""

    @property
    def count(self) -> int:
        """How many documents there are."""

    @property
    def tokens(self) -> Sequence[int]:
        """How many tokens each field has in all documents."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The words of its documents as written."""

    def holding(self, numbers: TermNumbers) -> NDArray[np.int64]:
        """How many documents have the term of each of these numbers."""

    def occurrences(self, numbers: TermNumbers, field: int = 0) -> Occurrences:
        """Where the terms of these numbers occur, with the lengths of a field."""


def score(
    postings: Postings, weights: Mapping[str, float], average: float, field: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Keys of the documents with a term, and their BM25 parts: one entry per key and term.

    `weights` gives each term's idf, `average` is the average length of the field.
    """
    occurrences = postings.occurrences(numbers_of(weights, field), field)
    return occurrences.keys, bm25(occurrences, weights.values(), average)


def bm25(occurrences: Occurrences, idfs: Collection[float], average: float) -> NDArray[np.float32]:
    """The BM25 part of each occurrence; `idfs` has that of each term in order."""
    of_terms, _, counts, lengths = occurrences
    saturation = counts + _saturation_of_lengths(average).take(lengths, mode="clip")
    factors = np.fromiter(idfs, np.float32, len(idfs)) * np.float32(K1 + 1.0)
    parts: NDArray[np.float32] = factors.take(of_terms) * counts / saturation
    return parts.astype(np.float32, copy=False)


@lru_cache(maxsize=8)
def _saturation_of_lengths(average: float) -> NDArray[np.float32]:
    """What is added to the count of a term in texts of each length."""
    return (K1 * (1.0 - B + B * _LENGTHS / average)).astype(np.float32)


def sum_by_row(
    rows: NDArray[np.int64], parts: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The distinct rows in ascending order, and the sum of the (positive) parts of each."""
    if _SPARSE * len(rows) < int(rows.max(initial=0)):
        distinct_rows, places = np.unique(rows, return_inverse=True)
        return distinct_rows, np.bincount(places, parts, len(distinct_rows)).astype(np.float64)
    sums: NDArray[np.float64] = np.bincount(rows, parts).astype(np.float64)
    matched_rows = np.flatnonzero(sums > 0)
    return matched_rows, sums[matched_rows]


class MemoryPostings:
    """Documents that are in no segment: number of a term → (key, how often it occurs there)."""

    def __init__(self, fields: int = 1) -> None:
        self._postings: dict[int, list[tuple[int, int]]] = {}
        self._lengths: list[dict[int, int]] = [{} for _ in range(fields)]
        self.count = 0
        self.tokens = [0] * fields
        self._forms: dict[str, None] = {}
        self._vocabulary: Vocabulary | None = None

    @property
    def vocabulary(self) -> Vocabulary:
        """The words of its documents as written."""
        if self._vocabulary is None:
            self._vocabulary = Vocabulary(tuple(self._forms))
        return self._vocabulary

    def add(self, key: int, texts: Sequence[str], forms: str = "") -> None:
        """Add a document: its key, each field's tokens and its words, joined by spaces."""
        if forms:
            self._forms.update(dict.fromkeys(forms.split(" ")))
            self._vocabulary = None
        for number, text in enumerate(texts):
            words = text.split(" ") if text else []
            self._lengths[number][key] = len(words)
            for term, count in Counter(words).items():
                self._postings.setdefault(term_number(term, number), []).append((key, count))
            self.tokens[number] += len(words)
        self.count += 1

    def holding(self, numbers: TermNumbers) -> NDArray[np.int64]:
        """How many documents have the term of each of these numbers."""
        return np.array([len(self._postings.get(n, ())) for n in numbers.tolist()], np.int64)

    def occurrences(self, numbers: TermNumbers, field: int = 0) -> Occurrences:
        """Where the terms of these numbers occur, with the lengths of a field."""
        # Copies, since they are walked twice: documents may be added while an older view reads.
        postings = [list(self._postings.get(number, ())) for number in numbers.tolist()]
        entries = np.array(list(chain.from_iterable(postings)), np.int64).reshape(-1, 2)
        of_terms = np.repeat(np.arange(len(postings)), list(map(len, postings)))
        lengths = [self._lengths[field][key] for key in entries[:, 0].tolist()]
        keys, counts = entries.T
        # Of the same kind as in a segment, for scores that are the same to the last digit.
        counts = counts.clip(max=MOST).astype(np.uint16)
        return Occurrences(of_terms, keys, counts, np.array(lengths, np.int32))


@dataclass(frozen=True, slots=True)
class WordStatistics:
    """How often terms occur in a segment and in the postings beside it, counted together.

    Terms in `beside` (titles) are counted and used for misspelt words, but are not documents.
    `holders` are the counts of the terms of words, as `lookup` found them, `title_terms` those
    terms that stand in titles, and `codes` the languages of the texts, once they are known.
    """

    segment: Postings | None
    memory: tuple[Postings, ...]
    beside: tuple[Postings, ...] = ()
    holders: dict[QueryWord, dict[str, int]] = field(default_factory=dict)
    title_terms: set[str] = field(default_factory=set)
    codes: list[tuple[str, ...]] = field(default_factory=list)

    @property
    def parts(self) -> tuple[Postings, ...]:
        """All that has documents."""
        return self.memory if self.segment is None else (self.segment, *self.memory)

    @property
    def documents(self) -> int:
        """How many documents there are."""
        return sum(postings.count for postings in self.parts)

    def languages(self, term_of: Callable[[str], str]) -> tuple[str, ...]:
        """The languages of the texts, as far as these have tokens of their own."""
        if not self.codes:
            codes = [language.code for language in languages().values() if language.stemmer]
            terms = (term_of(language_token(code)) for code in codes)
            self.codes.append(tuple(compress(codes, self.holding(numbers_of(terms)))))
        return self.codes[0]

    def vocabularies(self) -> Iterator[Vocabulary]:
        """The words as written, of the segment and of all postings."""
        yield from (postings.vocabulary for postings in (*self.parts, *self.beside))

    def tokens(self, field: int = 0) -> int:
        """How many tokens a field has in all documents."""
        return sum(postings.tokens[field] for postings in self.parts)

    def holding(self, numbers: TermNumbers) -> NDArray[np.int64]:
        """How many documents have the term of each of these numbers."""
        parts = [postings for postings in (*self.parts, *self.beside) if postings.count]
        return sum((part.holding(numbers) for part in parts), np.zeros(len(numbers), np.int64))

    def average(self, field: int = 0) -> float:
        """The average length of a field: in the segment, or in memory if there is no segment."""
        if self.segment is not None and self.segment.count:
            return max(1.0, self.segment.tokens[field] / self.segment.count)
        return max(1.0, self.tokens(field) / max(1, self.documents))
