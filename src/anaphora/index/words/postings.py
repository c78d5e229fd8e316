"""Postings in memory, and BM25 over them and a segment on disk together.

BM25 has k1 1.2, b 0.75 and idf = ln(1 + (N - n + 0.5) / (n + 0.5)) (Robertson and Zaragoza, *The
Probabilistic Relevance Framework*, 2009). Terms are counted over disk and memory together, so that
a score hardly depends on where a document is stored; the average length is that of the segment.
Texts are analysed in `language/analyser.py`, not here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from anaphora.index.words.vocabulary import Vocabulary
from anaphora.language.analyser import QueryWord, language_token
from anaphora.language.languages.language import languages

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

_SPARSE: Final = 16
"""From so many rows for each match on, matches are sorted instead of added to all rows."""


def idf(documents: int, holding: int) -> float:
    """Inverse document frequency of a term that `holding` of `documents` texts contain."""
    return math.log(1.0 + (documents - holding + 0.5) / (holding + 0.5))


def full_score(mass: float, lengths: NDArray[np.int32], average: float) -> NDArray[np.float64]:
    """BM25 of texts of these lengths that have each term once; `mass` is the sum of their idf."""
    norm = 1.0 - B + B * lengths.astype(np.float64) / average
    full_scores: NDArray[np.float64] = mass * (K1 + 1.0) / (1.0 + K1 * norm)
    return full_scores


class Occurrences(NamedTuple):
    """Where terms occur: the number of the term, the key of the document, how often there, and how
    many tokens the field of the document has."""

    term_numbers: NDArray[np.int64]
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

    def holding(self, term: str, field: int = 0) -> int:
        """How many documents have a term in a field."""

    def occurrences(self, terms: Iterable[str], field: int = 0) -> Occurrences:
        """Where these terms occur in a field."""


def score(
    postings: Postings, weights: Mapping[str, float], average: float, field: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Keys of the documents with a term, and their BM25 parts: one entry per key and term.

    `weights` gives each term's idf, `average` is the average length of the field.
    """
    occurrences = postings.occurrences(weights, field)
    return occurrences.keys, bm25(occurrences, weights.values(), average)


def bm25(occurrences: Occurrences, idfs: Collection[float], average: float) -> NDArray[np.float32]:
    """The BM25 part of each occurrence; `idfs` has that of each term in order."""
    numbers, _, counts, lengths = occurrences
    saturation = counts + _saturation_of_lengths(average).take(lengths, mode="clip")
    factors = np.fromiter(idfs, np.float32, len(idfs)) * np.float32(K1 + 1.0)
    parts: NDArray[np.float32] = factors.take(numbers) * counts / saturation
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
    sums = np.bincount(rows, parts).astype(np.float64)
    matched_rows = np.flatnonzero(sums)
    return matched_rows, sums[matched_rows]


class MemoryPostings:
    """Documents that are in no segment: by field, term → (key, occurrences, length)."""

    def __init__(self, fields: int = 1) -> None:
        self._postings: list[dict[str, list[tuple[int, int, int]]]] = [{} for _ in range(fields)]
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
            postings = self._postings[number]
            for term, occurrences in Counter(words).items():
                postings.setdefault(term, []).append((key, occurrences, len(words)))
            self.tokens[number] += len(words)
        self.count += 1

    def holding(self, term: str, field: int = 0) -> int:
        """How many documents have a term in a field."""
        return len(self._postings[field].get(term, ()))

    def occurrences(self, terms: Iterable[str], field: int = 0) -> Occurrences:
        """Where these terms occur in a field."""
        # Copies, since they are walked twice: documents may be added while an older view reads.
        postings = [list(self._postings[field].get(term, ())) for term in terms]
        entries = np.array(list(chain.from_iterable(postings)), np.int64).reshape(-1, 3)
        term_numbers = np.repeat(np.arange(len(postings)), list(map(len, postings)))
        return Occurrences(term_numbers, *entries.T)


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
            codes = (language.code for language in languages().values() if language.stemmer)
            self.codes.append(
                tuple(code for code in codes if self.holding(term_of(language_token(code))))
            )
        return self.codes[0]

    def vocabularies(self) -> Iterator[Vocabulary]:
        """The words as written, of the segment and of all postings."""
        yield from (postings.vocabulary for postings in (*self.parts, *self.beside))

    def tokens(self, field: int = 0) -> int:
        """How many tokens a field has in all documents."""
        return sum(postings.tokens[field] for postings in self.parts)

    def holding(self, term: str, field: int = 0) -> int:
        """How many documents have a term in a field."""
        return sum(postings.holding(term, field) for postings in (*self.parts, *self.beside))

    def average(self, field: int = 0) -> float:
        """The average length of a field: in the segment, or in memory if there is no segment."""
        if self.segment is not None and self.segment.count:
            return max(1.0, self.segment.tokens[field] / self.segment.count)
        return max(1.0, self.tokens(field) / max(1, self.documents))
