"""A forward index: the words of each section, so that a few hundred can be scored at once.

An inverted index finds candidates; scoring each field of each candidate with it takes a search per
field. Here the terms of a candidate are stored side by side: scoring 400 takes a millisecond. BM25
is that of the word index.

A term is a number of 32 bits, so that two terms may share one: that makes one wrong match in some
thousand questions, among rows that were found by their actual words.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from anaphora.features.projects.ranking.scores import FieldScores
from anaphora.index.words.postings import K1, B

Floats = NDArray[np.float64]

FIELDS: Final = 3
_SHIFT: Final = 14
_MOST: Final = (1 << _SHIFT) - 1
_LOW: Final = 0xFFFF


class TermBlock(NamedTuple):
    """The terms of R documents one after the other, n in all.

    `terms` (n,) are their numbers, `counts` (n,) field and occurrences; `sizes` (R,) is the number
    of terms of each document, `lengths` (R, 3) the lengths of its fields.
    """

    terms: NDArray[np.uint32]
    counts: NDArray[np.uint16]
    sizes: NDArray[np.int64]
    lengths: NDArray[np.int32]


NOTHING: Final = TermBlock(
    np.zeros(0, np.uint32),
    np.zeros(0, np.uint16),
    np.zeros(1, np.int64),
    np.zeros((1, 3), np.int32),
)
"""One document without a word."""


def block_of(documents: Iterable[Sequence[str]]) -> TermBlock:
    """The block of documents with three fields each; a field is tokens join_blocks by spaces."""
    numbers: list[int] = []
    lengths: list[int] = []
    for texts in documents:
        for text in texts:
            words = text.split(" ") if text else []
            lengths.append(len(words))
            numbers += map(_number, words)
    # For all at once: document and field in the high bits, the term in the low ones.
    fields = np.arange(len(lengths), dtype=np.uint64)
    keys = np.repeat(fields << np.uint64(32), lengths) | np.array(numbers, np.uint64)
    keys, occurrences = np.unique(keys, return_counts=True)
    at = (keys >> np.uint64(32)).astype(np.int64)
    counts = (at % FIELDS) << _SHIFT | np.minimum(occurrences, _MOST)
    return TermBlock(
        (keys & np.uint64(0xFFFFFFFF)).astype(np.uint32),
        counts.astype(np.uint16),
        np.bincount(at // FIELDS, minlength=len(lengths) // FIELDS).astype(np.int64),
        np.array(lengths, np.int32).reshape(-1, FIELDS),
    )


def join_blocks(blocks: Iterable[TermBlock]) -> TermBlock:
    """The documents of all blocks, in order."""
    none = TermBlock(NOTHING.terms, NOTHING.counts, NOTHING.sizes[:0], NOTHING.lengths[:0])
    return TermBlock(*map(np.concatenate, zip(none, *blocks, strict=True)))


@lru_cache(maxsize=65_536)
def _number(term: str) -> int:
    digest = hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=4).digest()
    return int.from_bytes(digest, "little")


class Forward:
    """The terms of documents on disk, by their number from 0; immutable."""

    def __init__(self, blocks: Iterable[TermBlock] = ()) -> None:
        self._all = join_blocks(blocks)
        self._ends = np.concatenate(([0], np.cumsum(self._all.sizes, dtype=np.int64)))

    def __len__(self) -> int:
        return len(self._all.lengths)

    def block(self, numbers: NDArray[np.int64]) -> TermBlock:
        """The terms of these documents, in the order of `numbers`."""
        starts = self._ends[numbers]
        sizes = self._ends[numbers + 1] - starts
        # All at once: slicing some hundred documents one by one costs more than scoring them.
        first_offsets = np.cumsum(sizes) - sizes
        at = np.arange(sizes.sum()) + np.repeat(starts - first_offsets, sizes)
        terms, counts, _, lengths = self._all
        return TermBlock(terms[at], counts[at], sizes, lengths[numbers])


def save_block(folder: Path, first: int, block: TermBlock) -> None:
    """Write the terms of documents `first`, `first` + 1, …. Raises OSError."""
    columns = block._replace(sizes=block.sizes.astype(np.int32))._asdict()
    np.savez(folder / f"forward-{first:09d}.npz", **columns)


def load_lines(folder: Path) -> Forward:
    """The terms of all documents in `folder`. Raises OSError or ValueError if they are torn."""
    blocks = []
    try:
        for file in sorted(folder.glob("forward-*.npz")):
            with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
                blocks.append(TermBlock(*(arrays[name] for name in TermBlock._fields)))
    except (KeyError, EOFError, BadZipFile) as error:
        raise ValueError(f"the lines of the word index in {folder} are torn: {error}") from error
    return Forward(blocks)


def score_lines(block: TermBlock, weights: Mapping[str, float], averages: Floats) -> FieldScores:
    """Score R documents for terms with weights; `averages` (3,) are the fields' average lengths."""
    rows, useful = len(block.sizes), {t: w for t, w in weights.items() if w > 0.0}
    if not rows or not useful:
        return FieldScores(*np.zeros((4, rows)))
    numbers = np.array([_number(term) for term in useful], np.uint32)
    order = np.argsort(numbers, kind="stable")
    numbers, worth = numbers[order], np.array(list(useful.values()))[order]
    maybe = np.zeros(_LOW + 1, np.bool_)
    maybe[numbers & _LOW] = True
    # Most terms of the documents are not asked for: a table of low bits rules them out quickly.
    hit = np.flatnonzero(maybe[block.terms & _LOW])
    term_index = np.minimum(np.searchsorted(numbers, block.terms[hit]), len(numbers) - 1)
    is_same_term = numbers[term_index] == block.terms[hit]
    hit, term_index = hit[is_same_term], term_index[is_same_term]
    owner = np.searchsorted(np.cumsum(block.sizes), hit, side="right")
    counts = block.counts[hit]
    field, occurrences = (counts >> _SHIFT).astype(np.int64), (counts & _MOST).astype(np.float64)
    lengths = block.lengths[owner, field].astype(np.float64)
    saturation = occurrences + K1 * (1.0 - B + B * lengths / averages[field])
    parts = worth[term_index] * (K1 + 1.0) * occurrences / saturation
    sums = np.bincount(field * rows + owner, parts, FIELDS * rows).reshape(FIELDS, rows).round(4)
    once = np.unique(owner * len(numbers) + term_index)
    matched_worth = np.bincount(once // len(numbers), worth[once % len(numbers)], rows)
    total = sum(useful.values())
    return FieldScores(
        sums[0], sums[1], sums[2], np.minimum(np.round(matched_worth / total, 5), 1.0)
    )
