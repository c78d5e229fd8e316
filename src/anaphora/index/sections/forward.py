"""What words each section holds, by section: so that a few hundred can be scored at once.

An inverted index finds candidates; scoring each field of each candidate by it takes a search a
field. Here a candidate's own terms lie side by side: 400 of them take a millisecond. BM25 is that
of the word index.

A term is a number of 32 bits: two terms of one number are told apart by nothing here, which makes
one wrong match in some thousand questions, among rows that were found by their true words.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from anaphora.index.words.postings import K1, B

Floats = NDArray[np.float64]

FIELDS: Final = 3
_SHIFT: Final = 14
_MOST: Final = (1 << _SHIFT) - 1
_LOW: Final = 0xFFFF


@dataclass(frozen=True, slots=True)
class FieldScores:
    """What R rows match, each (R,): BM25 of each field, and the share of the terms' mass (0 … 1).

    BM25 has the terms' weights in it (idf × the weight that was given); `held` counts each term
    once, whichever field holds it, however often.
    """

    path: Floats
    title: Floats
    body: Floats
    held: Floats


class Lines(NamedTuple):
    """A document's terms: numbers (n,), field and occurrences (n,), length of each field (3,)."""

    terms: NDArray[np.uint32]
    counts: NDArray[np.uint16]
    lengths: NDArray[np.int32]


class Block(NamedTuple):
    """The terms of R documents one after the other, n in all.

    `terms` and `counts` (n,) as in `Lines`; `sizes` (R,): how many of them each document has;
    `lengths` (R, 3).
    """

    terms: NDArray[np.uint32]
    counts: NDArray[np.uint16]
    sizes: NDArray[np.int64]
    lengths: NDArray[np.int32]


NOTHING: Final = Lines(np.zeros(0, np.uint32), np.zeros(0, np.uint16), np.zeros(FIELDS, np.int32))


def lines_of(texts: Sequence[str]) -> Lines:
    """The lines of a document of three fields, each tokens joined by spaces."""
    terms, counts, lengths = [], [], []
    for field, text in enumerate(texts):
        words = text.split(" ") if text else []
        lengths.append(len(words))
        for term, occurrences in Counter(words).items():
            terms.append(_number(term))
            counts.append(field << _SHIFT | min(occurrences, _MOST))
    return Lines(
        np.array(terms, np.uint32), np.array(counts, np.uint16), np.array(lengths, np.int32)
    )


@lru_cache(maxsize=65_536)
def _number(term: str) -> int:
    digest = hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=4).digest()
    return int.from_bytes(digest, "little")


class Forward:
    """Lines of documents that are on disk, by their number from 0; immutable."""

    def __init__(self, parts: Iterable[tuple[NDArray[np.int32], Lines]] = ()) -> None:
        """`parts` are sizes (how many lines each document has) and the documents' lines."""
        found = [*parts]
        sizes = [size for size, _ in found] or [np.zeros(0, np.int32)]
        self._ends = np.concatenate(([0], np.cumsum(np.concatenate(sizes), dtype=np.int64)))
        self._terms = np.concatenate([np.zeros(0, np.uint32), *(p.terms for _, p in found)])
        self._counts = np.concatenate([np.zeros(0, np.uint16), *(p.counts for _, p in found)])
        lengths = [p.lengths for _, p in found]
        self._lengths = np.concatenate([np.zeros((0, FIELDS), np.int32), *lengths])

    def __len__(self) -> int:
        return len(self._lengths)

    def block(self, numbers: NDArray[np.int64]) -> Block:
        """The lines of these documents, in the order of `numbers`."""
        starts = self._ends[numbers]
        sizes = self._ends[numbers + 1] - starts
        # Taken together: a slice for each of some hundred documents costs more than their scores.
        first = np.cumsum(sizes) - sizes
        at = np.arange(sizes.sum()) + np.repeat(starts - first, sizes)
        return Block(self._terms[at], self._counts[at], sizes, self._lengths[numbers])


def block_of(documents: Sequence[Lines]) -> Block:
    """The lines of these documents."""
    return Block(
        np.concatenate([NOTHING.terms, *(one.terms for one in documents)]),
        np.concatenate([NOTHING.counts, *(one.counts for one in documents)]),
        np.array([len(one.terms) for one in documents], np.int64),
        np.array([one.lengths for one in documents], np.int32).reshape(-1, FIELDS),
    )


def save_lines(folder: Path, first: int, documents: Sequence[Lines]) -> None:
    """Write the lines of documents `first`, `first` + 1, …. Raises OSError."""
    block = block_of(documents)
    np.savez(
        folder / f"forward-{first:09d}.npz",
        sizes=block.sizes.astype(np.int32),
        terms=block.terms,
        counts=block.counts,
        lengths=block.lengths,
    )


def load_lines(folder: Path) -> Forward:
    """All lines in `folder`. Raises OSError or ValueError where they are torn."""
    parts = []
    try:
        for file in sorted(folder.glob("forward-*.npz")):
            with file.open("rb") as stream, np.load(stream, allow_pickle=False) as found:
                lines = Lines(found["terms"], found["counts"], found["lengths"])
                parts.append((found["sizes"], lines))
    except (KeyError, EOFError, BadZipFile) as error:
        raise ValueError(f"the lines of the word index in {folder} are torn: {error}") from error
    return Forward(parts)


def score_lines(block: Block, weights: Mapping[str, float], averages: Floats) -> FieldScores:
    """Score R documents for terms with their weights; `averages` (3,) are the fields' lengths."""
    rows, useful = len(block.sizes), {t: w for t, w in weights.items() if w > 0.0}
    if not rows or not useful:
        none = np.zeros(rows)
        return FieldScores(none, none, none, none)
    numbers = np.array([_number(term) for term in useful], np.uint32)
    order = np.argsort(numbers, kind="stable")
    numbers, worth = numbers[order], np.array(list(useful.values()))[order]
    maybe = np.zeros(_LOW + 1, np.bool_)
    maybe[numbers & _LOW] = True
    # Nearly all terms of the documents are none of these: one look each tells most of them.
    hit = np.flatnonzero(maybe[block.terms & _LOW])
    at = np.minimum(np.searchsorted(numbers, block.terms[hit]), len(numbers) - 1)
    same = numbers[at] == block.terms[hit]
    hit, at = hit[same], at[same]
    owner = np.searchsorted(np.cumsum(block.sizes), hit, side="right")
    counts = block.counts[hit]
    field, occurrences = (counts >> _SHIFT).astype(np.int64), (counts & _MOST).astype(np.float64)
    lengths = block.lengths[owner, field].astype(np.float64)
    saturation = occurrences + K1 * (1.0 - B + B * lengths / averages[field])
    parts = worth[at] * (K1 + 1.0) * occurrences / saturation
    sums = np.bincount(field * rows + owner, parts, FIELDS * rows).reshape(FIELDS, rows).round(4)
    once = np.unique(owner * len(numbers) + at)
    held = np.bincount(once // len(numbers), worth[once % len(numbers)], rows)
    total = sum(useful.values())
    return FieldScores(sums[0], sums[1], sums[2], np.minimum(np.round(held / total, 5), 1.0))
