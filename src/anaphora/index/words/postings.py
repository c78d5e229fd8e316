"""Documents by term in memory, and BM25 over them.

BM25 has k1 1.2, b 0.75 and idf = ln(1 + (N - n + 0.5) / (n + 0.5)) (Robertson and Zaragoza, *The
Probabilistic Relevance Framework*, 2009). Most documents lie in columns; the last ones, by term,
beside them, until they are many enough to be joined. Terms are counted over both together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import chain, compress
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from anaphora.index.words.documents import SHIFT, IndexedDocument, TermNumbers, numbers_of
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

_LATE: Final = 500
"""So many documents lie beside the columns before they are joined."""

_LATE_SHARE: Final = 16
"""And at least this share of those in the columns: joining copies them all."""

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


class WordColumns:
    """N documents in columns, each with a key: where each term occurs, and how often.

    `read_forms` gives their words as written, when those are asked for.
    """

    def __init__(
        self,
        documents: Collection[IndexedDocument] = (),
        keys: Iterable[int] = (),
        fields: int = 1,
        read_forms: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        sizes = np.fromiter(
            (document.term_count for document in documents), np.int64, len(documents)
        )
        self.keys = np.fromiter(keys, np.int64, len(documents))
        self._read_forms = read_forms
        self._take(
            np.frombuffer(b"".join(document.numbers for document in documents), "<u8"),
            np.repeat(np.arange(len(documents), dtype=np.int32), sizes),
            np.frombuffer(b"".join(document.counts for document in documents), "<u2"),
            fields,
        )

    def _take(
        self,
        numbers: TermNumbers,
        places: NDArray[np.int32],
        counts: NDArray[np.uint16],
        fields: int,
    ) -> None:
        """Make the columns of all occurrences; these may come in any order."""
        of_fields = (numbers >> np.uint64(SHIFT)).astype(np.int64)
        cells = of_fields * len(self.keys) + places
        lengths = np.bincount(cells, counts, fields * len(self.keys)).astype(np.int32)
        self.lengths: NDArray[np.int32] = lengths.reshape(fields, len(self.keys))
        # Two sorted runs are merged quickly by the stable sort.
        order = np.argsort(numbers, kind="stable")
        numbers = numbers[order]
        self._places, self._counts = places[order], counts[order]
        firsts = np.flatnonzero(np.diff(numbers, prepend=~numbers[:1]))
        self._terms, self._starts = numbers[firsts], np.append(firsts, len(numbers))
        self._erased: NDArray[np.int64] = np.empty(0, np.int64)
        self._counting = self._starts
        self.count, self.tokens = len(self.keys), self.lengths.sum(axis=1, dtype=np.int64).tolist()

    def joined(
        self,
        documents: Sequence[IndexedDocument],
        keys: Sequence[int],
        only: NDArray[np.int64] | None = None,
    ) -> WordColumns:
        """These documents that count, or `only` those of some keys, and others after them."""
        fields, added = len(self.lengths), WordColumns(documents, keys, len(self.lengths))
        is_kept = self.keys >= 0 if only is None else np.isin(self.keys, only)
        occurrences = is_kept[self._places]
        new_places = (np.cumsum(is_kept) - 1).astype(np.int32)
        before, new = self._read_forms, [document.forms for document in documents if document.forms]
        read_forms = (lambda: chain(before(), new)) if new else before
        columns = WordColumns(fields=fields, read_forms=read_forms)
        columns.keys = np.concatenate((self.keys[is_kept], added.keys))
        columns._take(
            np.concatenate((self._numbers[occurrences], added._numbers)),
            np.concatenate(
                (
                    new_places[self._places[occurrences]],
                    added._places + np.int32(np.count_nonzero(is_kept)),
                )
            ),
            np.concatenate((self._counts[occurrences], added._counts)),
            fields,
        )
        return columns

    @property
    def _numbers(self) -> TermNumbers:
        return np.repeat(self._terms, np.diff(self._starts))

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The words of its documents as written; read once."""
        return vocabulary_of(self._read_forms())

    def drop(self, place: int) -> None:
        """Let one document count no more."""
        erased = np.flatnonzero(self._places == place)
        self._erased = np.sort(np.append(self._erased, erased))
        # How many occurrences that count come before those of each term.
        self._counting = self._starts - np.searchsorted(self._erased, self._starts)
        self.count -= 1
        for number, length in enumerate(self.lengths[:, place].tolist()):
            self.tokens[number] -= length
        self.keys[place] = -1

    def holding(self, numbers: TermNumbers) -> NDArray[np.int64]:
        """How many documents have the term of each of these numbers."""
        before, after = self._counting[self._find_terms(numbers)]
        counts: NDArray[np.int64] = after - before
        return counts

    def _find_terms(self, numbers: TermNumbers) -> NDArray[np.int64]:
        """Where the terms of these numbers begin and end, shape (2, N)."""
        return np.array([self._terms.searchsorted(numbers, side) for side in ("left", "right")])

    def occurrences(self, numbers: TermNumbers, field: int = 0) -> Occurrences:
        """Where the terms of these numbers occur, with the lengths of a field."""
        ranges = self._starts[self._find_terms(numbers)]
        of_terms = np.repeat(np.arange(len(numbers)), ranges[1] - ranges[0])
        pairs = ranges.T.tolist()
        places, counts = (
            np.concatenate([column[:0], *(column[first:end] for first, end in pairs)])
            for column in (self._places, self._counts)
        )
        occurrences = Occurrences(of_terms, self.keys[places], counts, self.lengths[field][places])
        if not len(self._erased):
            return occurrences
        is_counting = occurrences.keys >= 0
        return Occurrences(*(column[is_counting] for column in occurrences))


class MemoryPostings:
    """The last documents: number of a term → (key, how often it occurs there)."""

    def __init__(self, fields: int = 1) -> None:
        self._postings: dict[int, list[tuple[int, int]]] = {}
        self._lengths: list[dict[int, int]] = [{} for _ in range(fields)]
        self.count = 0
        self.tokens = [0] * fields
        self._forms: list[str] = []
        self._vocabulary: Vocabulary | None = None

    @property
    def vocabulary(self) -> Vocabulary:
        """The words of its documents as written."""
        if self._vocabulary is None:
            self._vocabulary = vocabulary_of(self._forms)
        return self._vocabulary

    def add(self, key: int, document: IndexedDocument) -> None:
        """Add a document."""
        if document.forms:
            self._forms.append(document.forms)
            self._vocabulary = None
        lengths = [0] * len(self.tokens)
        counts = np.frombuffer(document.counts, "<u2").tolist()
        for number, count in zip(document.terms.tolist(), counts, strict=True):
            self._postings.setdefault(number, []).append((key, count))
            lengths[number >> SHIFT] += count
        for of_field, length in enumerate(lengths):
            self._lengths[of_field][key] = length
            self.tokens[of_field] += length
        self.count += 1

    def remove(self, key: int, document: IndexedDocument) -> None:
        """Remove a document that was added. Not for postings that others read."""
        if document.forms:
            self._forms.remove(document.forms)
            self._vocabulary = None
        for number in document.terms.tolist():
            entries = [entry for entry in self._postings.pop(number) if entry[0] != key]
            if entries:
                self._postings[number] = entries
        for of_field, lengths in enumerate(self._lengths):
            self.tokens[of_field] -= lengths.pop(key)
        self.count -= 1

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
        # Of the same kind as in columns, for scores that are the same to the last digit.
        return Occurrences(of_terms, keys, counts.astype(np.uint16), np.array(lengths, np.int32))


def vocabulary_of(forms: Iterable[str]) -> Vocabulary:
    """The vocabulary of words as written, each text's joined by spaces."""
    words = dict.fromkeys(chain.from_iterable(line.split(" ") for line in forms))
    words.pop("", None)
    return Vocabulary(words)


class GrowingWords:
    """The words of documents that come and go. One thread at a time (the caller holds a lock).

    Views of earlier statistics stay valid while documents are added.
    """

    def __init__(self, columns: WordColumns | None = None, fields: int = 1) -> None:
        self.columns = WordColumns(fields=fields) if columns is None else columns
        self._fields = len(self.columns.lengths)
        self.postings = MemoryPostings(self._fields)
        self._late: dict[int, IndexedDocument] = {}
        # By key, -1 for one that is not in the columns, and at the end: newer keys lie beyond it.
        self._place_of = _places_by_key(self.columns.keys)
        self._statistics: WordStatistics | None = None

    def __len__(self) -> int:
        return self.columns.count + len(self._late)

    def __contains__(self, key: int) -> bool:
        return key in self._late or self._place(key) >= 0

    def add(self, documents: Mapping[int, IndexedDocument]) -> None:
        """Add documents with new keys."""
        self._statistics = None
        self._late.update(documents)
        if len(self._late) > max(_LATE, self.columns.count // _LATE_SHARE):
            self.columns = self.columns.joined([*self._late.values()], [*self._late])
            self._place_of = _places_by_key(self.columns.keys)
            self._late, self.postings = {}, MemoryPostings(self._fields)
            return
        for key, document in documents.items():
            self.postings.add(key, document)

    def drop(self, key: int) -> None:
        """Let a document count no more."""
        self._statistics = None
        if (document := self._late.pop(key, None)) is not None:
            self.postings.remove(key, document)
        elif (position := self._place(key)) >= 0:
            self.columns.drop(position)
            self._place_of[key] = -1

    def only(self, keys: NDArray[np.int64]) -> GrowingWords:
        """The words of some of the documents; views of the others stay valid."""
        key_set = set(keys.tolist())
        late = {key: document for key, document in self._late.items() if key in key_set}
        return GrowingWords(self.columns.joined([*late.values()], [*late], only=keys))

    def _place(self, key: int) -> int:
        return int(self._place_of[key]) if key < len(self._place_of) else -1

    @property
    def statistics(self) -> WordStatistics:
        """How often terms occur, until a document changes."""
        if self._statistics is None:
            self._statistics = WordStatistics((self.columns, self.postings))
        return self._statistics


def _places_by_key(keys: NDArray[np.int64]) -> NDArray[np.int32]:
    places = np.full(int(keys.max(initial=-1)) + 2, -1, np.int32)
    places[keys] = np.arange(len(keys), dtype=np.int32)
    return places


@dataclass(frozen=True, slots=True)
class WordStatistics:
    """How often terms occur in all parts together.

    Terms in `beside` (titles) are counted and used for misspelt words, but are not documents.
    `holders` are the counts of the terms of words, as `lookup` found them, `title_terms` those
    terms that stand in titles, and `codes` the languages of the texts, once they are known.
    """

    parts: tuple[Postings, ...]
    beside: tuple[Postings, ...] = ()
    holders: dict[QueryWord, dict[str, int]] = field(default_factory=dict)
    title_terms: set[str] = field(default_factory=set)
    codes: list[tuple[str, ...]] = field(default_factory=list)

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
        """The words as written, of each part."""
        yield from (postings.vocabulary for postings in (*self.parts, *self.beside))

    def holding(self, numbers: TermNumbers) -> NDArray[np.int64]:
        """How many documents have the term of each of these numbers."""
        parts = [postings for postings in (*self.parts, *self.beside) if postings.count]
        return sum((part.holding(numbers) for part in parts), np.zeros(len(numbers), np.int64))

    def average(self, field: int = 0) -> float:
        """The average length of a field."""
        tokens = sum(postings.tokens[field] for postings in self.parts)
        return max(1.0, tokens / max(1, self.documents))

    def occurrences(self, numbers: TermNumbers, field: int = 0) -> Occurrences:
        """Where the terms of these numbers occur, with the lengths of a field."""
        parts = [
            postings.occurrences(numbers, field) for postings in self.parts if postings.count
        ] or [self.parts[0].occurrences(numbers, field)]
        return (
            parts[0]
            if len(parts) == 1
            else Occurrences(*map(np.concatenate, zip(*parts, strict=True)))
        )
