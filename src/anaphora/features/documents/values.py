"""The frozen values of documents: files that are stored as text, in sections."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, get_args

from anaphora.values.conversations import ImportProblem
from anaphora.values.files import place_of

__all__ = ["FORMATS", "AddedDocument", "Document", "DocumentFormat", "DocumentSection"]

DocumentFormat = Literal["pdf", "docx", "html", "mail", "markdown", "text"]
FORMATS: Final[tuple[DocumentFormat, ...]] = get_args(DocumentFormat)
"""The formats whose text can be had."""


@dataclass(frozen=True, slots=True)
class Document:
    """A version of a document that is kept.

    `name` is what it is known by: another file under the same name is its next version. `title`,
    `author` and `date` are those that the file tells, or that were given; `source` says where it
    comes from. `size` counts the bytes of the file, `content_hash` is their SHA-256 in hex, and
    `file_kept` says whether they are kept as well. `pages` is None for what has none. `supersedes`
    and `superseded_by` are the ids of the version before and after it, `replaced_at` is when the
    latter came. `forgotten` is one that can be had back.
    """

    id: str
    name: str
    title: str
    format: DocumentFormat
    size: int
    content_hash: str
    added_at: datetime
    sections: int
    characters: int
    pages: int | None = None
    author: str | None = None
    date: datetime | None = None
    source: str | None = None
    tags: tuple[str, ...] = ()
    file_kept: bool = True
    supersedes: str | None = None
    superseded_by: str | None = None
    replaced_at: datetime | None = None
    forgotten: bool = False


@dataclass(frozen=True, slots=True)
class DocumentSection:
    """A part of a document: the characters `start` to before `end` of its text, verbatim.

    `id` is "document#number", `number` counts from 1. `heading` are the titles that it stands
    under, the outermost first; of an attachment of a mail the first one is the name of the file.
    `page` counts from 1, and is None where there are no pages.
    """

    id: str
    document: str
    number: int
    text: str
    start: int
    end: int
    heading: tuple[str, ...] = ()
    page: int | None = None

    @property
    def place(self) -> str:
        """Where it stands, for people: "page 3, Duties > Notice"; "" where nothing is known."""
        return place_of(self.page, self.heading)


@dataclass(frozen=True, slots=True)
class AddedDocument:
    """What `add_document` did.

    `action` is "added", "replaced" for a new version of what had this name, or "known" where these
    bytes are kept already: then nothing was written. `problems` are parts that could not be read,
    with their places; `redacted` the kinds of secrets that were taken out of the text; `pending`
    the sections whose vectors still come.
    """

    document: Document
    action: Literal["added", "replaced", "known"]
    problems: tuple[ImportProblem, ...] = ()
    redacted: tuple[str, ...] = ()
    pending: int = 0
