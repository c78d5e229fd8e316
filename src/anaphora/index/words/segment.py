"""A segment: the words of documents in one file, by term, mapped into memory.

Columns lie one after the other. A term is the hash of a token in a field: the file has no tokens,
only the words as written (`forms`, for misspelt words; none in a sealed home). A document is erased
in place: its postings, its key, and every term and word that no other one has, are overwritten.
Nothing else in a file ever changes.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from anaphora.index.words.postings import Occurrences
from anaphora.index.words.vocabulary import Vocabulary

WORD_INDEX_ERRORS: Final = (ValueError, OSError, KeyError, TypeError, IndexError)
"""Errors of a file that is torn, gone or of another form."""

FORM: Final = "6"
WORD: Final = 8
SHIFT: Final = 61
_LINE_END: Final = 10
_TERMS: Final = 4_096
"""Of how many terms it is cached where they are."""
_FEW: Final = 16
"""More documents are looked for together."""

Columns = dict[str, NDArray[Any]]
Places = NDArray[np.int64]


class Segment:
    """The documents of a file, at places from 1. `upto` is the number of the database as of which
    it was written: later changes are missing.

    `check` is a checksum of the file. It sees what is erased in the file, in any process.
    """

    def __init__(self, path: Path, form: str, mode: str = "r") -> None:
        """Map the file. Raises one of WORD_INDEX_ERRORS if it is torn or of another form."""
        with path.open("rb" if mode == "r" else "r+b") as file:
            access = mmap.ACCESS_READ if mode == "r" else mmap.ACCESS_WRITE
            # Windows does not replace a file that is mapped.
            is_mapped = os.name == "posix" or mode != "r"
            stored = mmap.mmap(file.fileno(), 0, access=access) if is_mapped else file.read()
        self._bytes = np.frombuffer(stored, np.uint8)
        sum_and_size = self._bytes[: 2 * WORD].view(np.uint64)
        is_whole = len(sum_and_size) == 2 and not len(self._bytes) % WORD
        # What was torn before it is overwritten is torn after that, too.
        if not is_whole or (mode == "r" and sum_and_size[0] != checksum(self._words)):
            raise ValueError("the word index on disk is torn")
        at = 2 * WORD + int(sum_and_size[1])
        header = json.loads(self._bytes[2 * WORD : at].tobytes())
        if header["form"] != FORM + form:
            raise ValueError("the word index on disk is of another form")
        self.generation, self.upto = str(header["generation"]), int(header["upto"])
        self.columns: Columns = {}
        for name, dtype, shape in header["columns"]:
            column = np.ndarray(shape, dtype, self._bytes.data, at)
            self.columns[name] = column
            at += column.nbytes + -column.nbytes % WORD
        self._vocabulary: Vocabulary | None = None
        self.refresh()

    def refresh(self) -> None:
        """Count again, since documents were erased in the file."""
        self._ranges: dict[tuple[int, str], tuple[int, int, int]] = {}
        self.count = int(np.count_nonzero(self.columns["numbers"]))
        self.tokens = tuple(self.columns["lengths"].sum(axis=1, dtype=np.int64).tolist())

    @property
    def _words(self) -> NDArray[np.uint64]:
        return self._bytes[WORD:].view(np.uint64)

    @property
    def check(self) -> int:
        """A checksum of the file."""
        return int(self._bytes[:WORD].view(np.int64)[0])

    @property
    def keys(self) -> list[str]:
        """The key of each document; "" for one that was erased."""
        return lines_of(self.columns["keys"])

    def key(self, place: int) -> str:
        """The key of one document."""
        ends = np.flatnonzero(self.columns["keys"] == _LINE_END)
        return lines_of(self.columns["keys"][ends[place - 1] : ends[place] + 1])[0]

    def digest(self, place: int) -> int:
        """The digest of one document's tokens."""
        return int(self.columns["digests"][place - 1])

    @property
    def vocabulary(self) -> Vocabulary:
        """The words of its documents as written; read once."""
        if self._vocabulary is None:
            self._vocabulary = Vocabulary(filter(None, lines_of(self.columns["forms"])))
        return self._vocabulary

    def holding(self, term: str, field: int = 0) -> int:
        """How many documents have a term in a field."""
        return self._range(term, field)[2]

    def _range(self, term: str, field: int) -> tuple[int, int, int]:
        """Where the postings of a term begin and end, and how many count."""
        # Cached: a query needs a term several times, and those of all languages each time.
        known_range = self._ranges.get((field, term))
        if known_range is None:
            if len(self._ranges) >= _TERMS:
                self._ranges = {}
            terms, starts = self.columns["terms"], self.columns["starts"]
            number = np.uint64(term_number(term, field))
            at, known_range = int(np.searchsorted(terms, number)), (0, 0, 0)
            if at < len(terms) and terms[at] == number:
                first, end = starts[at : at + 2].tolist()
                count = int(np.count_nonzero(self.columns["places"][first:end]))
                known_range = first, end, count
            self._ranges[field, term] = known_range
        return known_range

    def occurrences(self, terms: Iterable[str], field: int = 0) -> Occurrences:
        """Where these terms occur in a field; the keys are places."""
        ranges = [self._range(term, field)[:2] for term in terms]
        term_numbers = np.repeat(np.arange(len(ranges)), [end - first for first, end in ranges])
        places, counts = (
            np.concatenate([column[:0], *(column[first:end] for first, end in ranges)])
            for column in (self.columns["places"], self.columns["counts"])
        )
        if not places.all():
            counting = np.flatnonzero(places)
            term_numbers, places, counts = (
                term_numbers[counting],
                places[counting],
                counts[counting],
            )
        places = places.astype(np.int64)
        return Occurrences(term_numbers, places, counts, self.columns["lengths"][field][places - 1])

    # Erasing.

    def find(self, keys: Collection[str]) -> Places:
        """The places of the documents with these keys, each named once."""
        if len(keys) > _FEW:
            return np.array([at for at, key in enumerate(self.keys, 1) if key in keys], np.int64)
        stored = self.columns["keys"].tobytes()
        starts = (stored.find(f"\n{key}\n".encode("utf-8", "surrogatepass")) for key in keys)
        return np.array([stored.count(b"\n", 0, at) + 1 for at in starts if at >= 0], np.int64)

    def erase(self, places: Places) -> None:
        """Overwrite all that the file has of the documents at these places (mode "r+")."""
        columns, starts = self.columns, self.columns["starts"]
        # Torn until the end: what a process leaves that is killed before is removed.
        self._change_check(1)
        if len(places) > _FEW:
            postings = np.flatnonzero(np.isin(columns["places"], places))
        else:
            matches = [np.flatnonzero(columns["places"] == number) for number in places.tolist()]
            postings = np.concatenate([places[:0], *matches])
        for name in ("places", "counts"):
            self._overwrite(name, postings)
        for name in ("numbers", "digests"):
            self._overwrite(name, places - 1)
        for field in range(len(columns["lengths"])):
            self._overwrite("lengths", places - 1 + field * len(columns["numbers"]))
        self._wipe("keys", places - 1)
        terms = np.unique(np.searchsorted(starts, postings, side="right") - 1)
        pairs = zip(starts[terms].tolist(), starts[terms + 1].tolist(), strict=True)
        unused = terms[[not columns["places"][first:end].any() for first, end in pairs]]
        first_form = len(columns["terms"]) - np.count_nonzero(columns["forms"] == _LINE_END) + 1
        self._wipe("forms", unused[unused >= first_form] - first_form)
        for at in unused.tolist():
            # In order still: a search finds the first of several that are equal, which has them.
            end = np.searchsorted(columns["terms"], columns["terms"][at], side="right")
            self._overwrite("terms", np.arange(at, end), columns["terms"][at - 1] if at else 0)
        self._change_check(-1)

    def _wipe(self, name: str, lines: Places) -> None:
        """Overwrite these lines of a column of text, numbered from 0."""
        ends = np.flatnonzero(self.columns[name] == _LINE_END)
        for line in lines.tolist():
            self._overwrite(name, np.arange(ends[line] + 1, ends[line + 1]))

    def _overwrite(self, name: str, at: Places, new: int = 0) -> None:
        """Set cells of a column, and the checksum to that of the file then."""
        column = self.columns[name].reshape(-1)
        shifts = (at * column.itemsize % WORD * 8).astype(np.uint64)
        changes = (np.uint64(new) - column[at].astype(np.uint64)) << shifts
        self._change_check(checksum(changes).view(np.int64))
        column[at] = new

    def _change_check(self, change: int | np.int64) -> None:
        self._bytes[:WORD].view(np.int64)[:] += change


def checksum(words: NDArray[np.uint64]) -> np.uint64:
    """The checksum of a file, of all but itself; that of several parts is the sum of theirs."""
    total: np.uint64 = np.add.reduce(words)
    return total


def lines_of(column: NDArray[np.uint8]) -> list[str]:
    """The lines of a column of text, "" for those that were wiped."""
    text = column.tobytes().replace(b"\0", b"").decode("utf-8", "surrogatepass")
    return text.split("\n")[1:-1]


def term_number(term: str, field: int) -> int:
    """The number of a term: those of one field lie together, words as written at the end."""
    digest = hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return (field << SHIFT) | (int.from_bytes(digest, "little") >> (64 - SHIFT))
