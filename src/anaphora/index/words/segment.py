"""A segment: the words of documents in one file, by term, mapped into memory.

Columns lie one after the other. A term is the hash of a token in a field: the file has no tokens,
only the words as written (`forms`, for misspelt words) and what was read of memories (`readings`);
neither in a sealed home. A document is erased in place: its postings, its key, its reading, and
every term and word that no other one has, are overwritten. Nothing else in a file ever changes.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Collection
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from anaphora.index.words.postings import Occurrences, TermNumbers
from anaphora.index.words.vocabulary import Vocabulary

WORD_INDEX_ERRORS: Final = (ValueError, OSError, KeyError, TypeError, IndexError)
"""Errors of a file that is torn, gone or of another form."""


class OtherForm(ValueError):
    """A whole file as another build writes it, or that is sealed in another way."""


FORM: Final = "10"
WORD: Final = 8
LINES_OF_DOCUMENTS: Final = ("keys", "readings")
"""Columns of text with a line for each document."""

ENDS: Final = "_ends"
"""Follows the name of a column of text in that of where its lines end."""

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
            raise OtherForm("the word index on disk is of another form")
        self.generation, self.upto = str(header["generation"]), int(header["upto"])
        self.columns: Columns = {}
        for name, dtype, shape in header["columns"]:
            column = np.ndarray(shape, dtype, self._bytes.data, at)
            self.columns[name] = column
            at += column.nbytes + -column.nbytes % WORD
        if mode == "r":
            self.refresh()

    def refresh(self) -> None:
        """Count again, since documents were erased in the file."""
        self._counting: Places | None = None
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
        return self._read_lines("keys", np.array([place]))[0]

    def readings(self, places: Places) -> list[str]:
        """What was read of each document (place 0: none); "" if nothing was."""
        return self._read_lines("readings", places)

    def _read_lines(self, name: str, places: Places) -> list[str]:
        ends, stored = self.columns[name + ENDS], self.columns[name].data
        pairs = zip(ends[places - 1].tolist(), ends[places].tolist(), strict=True)
        return [_decode_line(stored[before + 1 : end]) for before, end in pairs]

    @property
    def unread(self) -> NDArray[np.bool_]:
        """Which documents were not read, in the order of their places."""
        is_unread: NDArray[np.bool_] = np.diff(self.columns["readings" + ENDS]) == 1
        return is_unread

    def digest(self, place: int) -> int:
        """The digest of one document's tokens."""
        return int(self.columns["digests"][place - 1])

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The words of its documents as written; read once."""
        return Vocabulary(filter(None, lines_of(self.columns["forms"])))

    def holding(self, numbers: TermNumbers) -> NDArray[np.int64]:
        """How many documents have the term of each of these numbers."""
        if self._counting is None:
            # How many postings that count come before those of each term.
            erased, starts = np.flatnonzero(self.columns["places"] == 0), self.columns["starts"]
            self._counting = starts - np.searchsorted(erased, starts) if len(erased) else starts
        before, after = self._counting[self._find_terms(numbers)]
        counts: NDArray[np.int64] = after - before
        return counts

    def _find_terms(self, numbers: TermNumbers) -> Places:
        """Where the terms of these numbers begin and end, shape (2, N)."""
        terms = self.columns["terms"]
        return np.array([terms.searchsorted(numbers), terms.searchsorted(numbers, "right")])

    def occurrences(self, numbers: TermNumbers, field: int = 0) -> Occurrences:
        """Where the terms of these numbers occur, with the lengths of a field; keys are places."""
        ranges = self.columns["starts"][self._find_terms(numbers)]
        of_terms = np.repeat(np.arange(len(numbers)), ranges[1] - ranges[0])
        pairs = ranges.T.tolist()
        places, counts = (
            np.concatenate([column[:0], *(column[first:end] for first, end in pairs)])
            for column in (self.columns["places"], self.columns["counts"])
        )
        if not places.all():
            counting = np.flatnonzero(places)
            of_terms, places, counts = of_terms[counting], places[counting], counts[counting]
        places = places.astype(np.int64)
        return Occurrences(of_terms, places, counts, self.columns["lengths"][field][places - 1])

    # Erasing.

    def find(self, keys: Collection[str]) -> Places:
        """The places of the documents with these keys, each named once."""
        if len(keys) > _FEW:
            return np.array([at for at, key in enumerate(self.keys, 1) if key in keys], np.int64)
        stored = self.columns["keys"].tobytes()
        starts = (stored.find(f"\n{key}\n".encode("utf-8", "surrogatepass")) for key in keys)
        return self.columns["keys" + ENDS].searchsorted([at for at in starts if at >= 0]) + 1

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
        for name in LINES_OF_DOCUMENTS:
            self._wipe(name, places - 1)
        terms = np.unique(np.searchsorted(starts, postings, side="right") - 1)
        pairs = zip(starts[terms].tolist(), starts[terms + 1].tolist(), strict=True)
        unused = terms[[not columns["places"][first:end].any() for first, end in pairs]]
        first_form = len(columns["terms"]) - len(self.columns["forms" + ENDS]) + 1
        self._wipe("forms", unused[unused >= first_form] - first_form)
        for at in unused.tolist():
            # In order still: a search finds the first of several that are equal, which has them.
            end = np.searchsorted(columns["terms"], columns["terms"][at], side="right")
            self._overwrite("terms", np.arange(at, end), columns["terms"][at - 1] if at else 0)
        self._change_check(-1)

    def _wipe(self, name: str, lines: Places) -> None:
        """Overwrite these lines of a column of text, numbered from 0."""
        ends = self.columns[name + ENDS]
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


def _decode_line(line: memoryview) -> str:
    try:
        return line.tobytes().replace(b"\0", b"").decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return ""
