"""What is read out of a file, whatever its format, and how far a file is trusted.

A file may be made to harm: it says one size and is another, unpacks to more than memory holds, or
nests without end. What is over a limit, encrypted or damaged is `UnreadableDocument`, which names
the file and the reason; nothing is fetched, executed or opened beside the file itself.
"""

from __future__ import annotations

import binascii
import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from anaphora.errors import UnreadableDocument
from anaphora.ingest.problems import Problems, shortened
from anaphora.values.conversations import ImportProblem
from anaphora.values.documents import DocumentFormat

MOST_PROBLEMS: Final = 100

BROKEN: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    NotImplementedError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
    binascii.Error,
    struct.error,
    zlib.error,
)
"""What a library for a format may raise about a file that is not as the format says."""


@dataclass(frozen=True, slots=True)
class DocumentLimits:
    """How much of a document is read: bytes of the file and of what it unpacks to, pages,
    characters of text, and parts within one another (mails in mails, elements in elements)."""

    size: int = 100_000_000
    unpacked: int = 400_000_000
    pages: int = 5_000
    characters: int = 20_000_000
    parts: int = 2_000
    depth: int = 5


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A run of text that stands on one page and under one heading, its own last."""

    text: str
    heading: tuple[str, ...] = ()
    page: int | None = None


@dataclass(frozen=True, slots=True)
class ExtractedDocument:
    """What a file says: its text in blocks, and what it tells of itself."""

    format: DocumentFormat
    blocks: tuple[TextBlock, ...]
    title: str | None = None
    author: str | None = None
    date: datetime | None = None
    pages: int | None = None
    problems: tuple[ImportProblem, ...] = ()


@dataclass(slots=True)
class Reading:
    """A file that is being read: its name, how much may be read of it, and what could not be.

    All parts of one file share `left`, so that a mail of many attachments is no way around a limit.
    """

    name: str
    limits: DocumentLimits = field(default_factory=DocumentLimits)
    depth: int = 0
    problems: Problems = field(default_factory=lambda: Problems(MOST_PROBLEMS))
    _read: list[int] = field(default_factory=lambda: [0])

    def refuse(self, reason: str) -> UnreadableDocument:
        """The error that says why this file cannot be read."""
        return UnreadableDocument("document", self.name, reason)

    def part(self, name: str) -> Reading:
        """A file within this one. `UnreadableDocument` where it is too deep within others."""
        if self.depth >= self.limits.depth:
            raise self.refuse(f"it is nested more than {self.limits.depth} deep")
        return Reading(name, self.limits, self.depth + 1, self.problems, self._read)

    def problem(self, place: str, reason: object) -> None:
        """Note a part that could not be read."""
        told = shortened(str(reason)) or type(reason).__name__
        self.problems.add(ImportProblem(self.name, place, told))

    def count(self, text: str) -> str:
        """The same text. `UnreadableDocument` where all that was read is too much."""
        self._read[0] += len(text)
        if self._read[0] > self.limits.characters:
            raise self.refuse(f"it has more than {self.limits.characters:,} characters of text")
        return text

    def counted(self, blocks: Iterable[TextBlock]) -> tuple[TextBlock, ...]:
        """The blocks that say anything, each counted."""
        return tuple(block for block in blocks if self.count(block.text).strip())


def one_line(text: object) -> str | None:
    """What a file says of itself, in one line of at most 300 characters; None where it is blank."""
    line = shortened(" ".join(str(text).split())) if text is not None else ""
    return line or None
