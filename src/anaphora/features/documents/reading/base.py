"""The result of reading a file of any format, and the limits on reading it.

A file may be hostile: it declares a wrong size, unpacks to more than memory holds, or nests without
end. A file that is over a limit, encrypted or damaged raises `UnreadableDocument`, which names the
file and the reason; nothing is fetched, executed or opened beside the file itself.
"""

from __future__ import annotations

import binascii
import re
import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

from anaphora.errors import UnreadableDocument
from anaphora.features.documents.values import DocumentFormat
from anaphora.ingest.problems import Problems, shortened
from anaphora.values.conversations import ImportProblem

MOST_PROBLEMS: Final = 100

BROKEN: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    NotImplementedError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
    binascii.Error,
    struct.error,
    zlib.error,
)
"""The errors that a library for a format may raise about a malformed file. MemoryError is not one
of them: it ends the reading."""


@dataclass(frozen=True, slots=True)
class DocumentLimits:
    """How much of a document is read: bytes of the file and of what it unpacks to, pages, elements
    of XML, sections, characters of text, parts, parts within one another (mails in mails), and
    mails of a file that has many, each of which may have so many parts.

    `memory` is how many bytes reading it may take, `seconds` how long, and `seconds_each` how much
    longer for each megabyte of the file.
    """

    size: int = 100_000_000
    unpacked: int = 400_000_000
    pages: int = 5_000
    elements: int = 400_000
    sections: int = 100_000
    characters: int = 20_000_000
    parts: int = 2_000
    depth: int = 5
    mails: int = 5_000
    memory: int = 1 << 30
    seconds: float = 60.0
    seconds_each: float = 10.0


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A run of text that stands on one page and under one heading, its own last."""

    text: str
    heading: tuple[str, ...] = ()
    page: int | None = None


@dataclass(frozen=True, slots=True)
class ExtractedDocument:
    """The content of a file: its text in blocks, and its metadata."""

    format: DocumentFormat
    blocks: tuple[TextBlock, ...]
    title: str | None = None
    author: str | None = None
    date: datetime | None = None
    pages: int | None = None
    problems: tuple[ImportProblem, ...] = ()


class TooMuch(UnreadableDocument):
    """A limit that all parts of a file share is exceeded: reading on is useless."""


class OtherKind(UnreadableDocument):
    """A file of a kind that has no text to be had here, such as a picture."""


BudgetName = Literal["characters", "elements", "parts", "unpacked"]
_BUDGETS: Final[Mapping[BudgetName, str]] = {
    "characters": "characters of text",
    "elements": "elements",
    "parts": "parts",
    "unpacked": "bytes when it is unpacked",
}


@dataclass(slots=True)
class Reading:
    """A file that is being read: its name, its limits, and its problems.

    All parts of one file share what was read, so that a mail of many attachments is no way around a
    limit.
    """

    name: str
    limits: DocumentLimits = field(default_factory=DocumentLimits)
    depth: int = 0
    problems: Problems = field(default_factory=lambda: Problems(MOST_PROBLEMS))
    _read: Counter[str] = field(default_factory=Counter)

    def refuse(self, reason: str) -> UnreadableDocument:
        """The error that says why this file cannot be read."""
        return UnreadableDocument("document", self.name, reason)

    def other(self, reason: str) -> OtherKind:
        """The error that says what this file is instead of a document."""
        return OtherKind("document", self.name, reason)

    def part(self, name: str) -> Reading:
        """A file within this one. `UnreadableDocument` if it is too deep within others."""
        if self.depth >= self.limits.depth:
            reason = f"it is nested more than {self.limits.depth} deep"
            raise TooMuch("document", self.name, reason)
        return Reading(name, self.limits, self.depth + 1, self.problems, self._read)

    def problem(self, place: str, reason: object) -> None:
        """Note a part that could not be read."""
        summary = shortened(str(reason)) or type(reason).__name__
        self.problems.add(ImportProblem(self.name, place, summary))

    def count(self, text: str) -> str:
        """The same text. `UnreadableDocument` if all that was read is too much."""
        self.spend("characters", len(text))
        return text

    def spend(self, name: BudgetName, count: int = 1) -> None:
        """Count so many of something. `TooMuch` if the file and all in it have too many."""
        self._read[name] += count
        limit = getattr(self.limits, name)
        if self._read[name] > limit:
            reason = f"it has more than {limit:,} {_BUDGETS[name]}"
            raise TooMuch("document", self.name, reason)

    def renew(self, name: BudgetName) -> None:
        """Count something anew, for the next of the mails in one file."""
        self._read[name] = 0

    def counted(self, blocks: Iterable[TextBlock]) -> tuple[TextBlock, ...]:
        """The blocks that say anything, each counted."""
        return tuple(block for block in blocks if self.count(block.text).strip())


def one_line(text: object) -> str | None:
    """What a file says of itself, in one line of at most 300 characters; None if it is blank."""
    line = shortened(" ".join(str(text).split())) if text is not None else ""
    return line or None


_NO_TITLE: Final = re.compile(
    r"""
    (?: untitled | unbenannt | ohne\ titel | sans\ titre | sin\ t[ií]tulo | senza\ titolo
      | sem\ t[ií]tulo | naamloos | bez\ tytu[łl]u | no\ title | none | null | unknown | anonymous
      | title | default | blank | empty | new | (?:scanned\ )? (?: document | image ) | doc | scan
      | dokument | document[eo] | powerpoint[ -]pr[aä]sentation | powerpoint | presentation
      | slide | folie | about:blank | full\ page
      | document[eo]? \ (?: sans\ titre | sin\ t[ií]tulo | senza\ titolo | without\ title )
    )
    (?: \ (?: document | page | file | title | presentation | dokument | documento ) )?
    [\s._-]* \(?\d{0,14}\)?
    | [\W\d_]*
    | microsoft\ (?: word | excel | powerpoint | publisher | visio ) \s* (?: -.* )?
    """,
    re.I | re.X,
)
_FILE_AS_TITLE: Final = re.compile(
    r"""
    (?: [a-z]: \\ | file: | \\\\ ) .*
    | (?: https?:// | / | ~/ ) \S*
    | .{0,200} \. (?: docx? | dotx? | rtf | odt | txt | tex | dvi | ps | eps | pdf | xlsx? | csv
      | pptx? | pps | odp | ods | indd | qxd | qxp | pmd | p65 | fm | cdr | psd | wpd | wps | pub
      | vsdx? | exe | dll | tmp | html? | xml | xhtml | php | aspx? | jsp | md | lwp | jpe?g | png
      | tiff? | gif | bmp | dwg | mif | prn | spl )
    """,
    re.I | re.X,
)


def meant_title(text: object, *, of_page: bool = False) -> str | None:
    """The title in a file's metadata, in one line; None if it is meaningless.

    Programs put their own names there, that of a file they read, or "untitled". A page may well be
    called after a file that it is about.
    """
    line = one_line(text)
    if line is None:
        return None
    bare = line.strip("'\"()[]<> ")
    is_file = not of_page and _FILE_AS_TITLE.fullmatch(bare)
    return None if is_file or _NO_TITLE.fullmatch(bare) else line
