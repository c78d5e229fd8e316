"""The text of a PDF by its pages, each under the bookmark that it belongs to. Imports pypdf.

Pages that are pictures have no text: nothing here reads letters off a picture.
"""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from anaphora.core.arguments import has_utc
from anaphora.errors import MissingExtra
from anaphora.ingest.documents.base import BROKEN, ExtractedDocument, Reading, TextBlock, one_line

if TYPE_CHECKING:
    from pypdf import PageObject, PdfReader

# What is odd in a file it tells its log, which would reach the terminal for want of a handler.
logging.getLogger("pypdf").addHandler(logging.NullHandler())

_BOOKMARKS: Final = 10_000
_STRING: Final = re.compile(rb"\([^()]*+\)|<[^<>]*+>")
_MARKS: Final = (b"T", b"(", b"<", b"'", b'"')
_MOST_WORK: Final = 10**11
"""Operators of text in a page times the characters that it shows: some 25,000 lines on one page."""
_DEEPEST: Final = 20


def read_pdf(data: bytes, reading: Reading) -> ExtractedDocument:
    """Every page that has text. `UnreadableDocument`, or `MissingExtra`."""
    reader = _opened(data, reading)
    from pypdf.errors import PyPdfError

    broken = (*BROKEN, PyPdfError)
    try:
        count = len(reader.pages)
    except broken as error:
        raise reading.refuse(f"it is damaged: {error}") from error
    if count > reading.limits.pages:
        raise reading.refuse(f"it has {count:,} pages; at most {reading.limits.pages:,} are read")
    headings: dict[int, tuple[str, ...]] = {}
    with suppress(*broken):
        headings = _headings(reader, count)
    blocks: list[TextBlock] = []
    failed = 0
    why: object = ""
    for number in range(1, count + 1):
        try:
            text = _text_of(reader.pages[number - 1])
        except broken as error:
            failed, why = failed + 1, error
            reading.problem(f"page {number}", error)
            continue
        blocks += reading.counted([TextBlock(text, headings.get(number, ()), number)])
    if failed and failed == count:
        raise reading.refuse(f"none of its pages can be read: {why or 'it is damaged'}")
    if not blocks:
        raise reading.refuse("it has no text: its pages are pictures, which an OCR must read first")
    told: dict[str, Any] = {}
    with suppress(*broken):
        told = _told(reader)
    return ExtractedDocument("pdf", tuple(blocks), pages=count, **told)


def _opened(data: bytes, reading: Reading) -> PdfReader:
    try:
        from pypdf import PdfReader
        from pypdf.errors import DependencyError, PyPdfError
    except ImportError as error:
        raise MissingExtra("documents", "pypdf") from error
    try:
        reader = PdfReader(io.BytesIO(data))
        # Most that are encrypted open without a password, and only forbid printing or changing.
        locked = reader.is_encrypted and not reader.decrypt("")
    except DependencyError as error:
        raise MissingExtra("encryption", "cryptography, which this encrypted PDF needs,") from error
    except (*BROKEN, PyPdfError) as error:
        raise reading.refuse(f"it is damaged: {error}") from error
    if locked:
        raise reading.refuse("it is encrypted, and needs a password: save a copy without one")
    return reader


def _text_of(page: PageObject) -> str:
    _refuse_crowded(page)
    text = page.extract_text()
    # Characters that a font does not tell come as lone surrogates or NUL.
    clean = text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "")
    return "\n".join(line.rstrip() for line in clean.splitlines()).strip("\n")


def _refuse_crowded(page: PageObject) -> None:
    """ValueError for a page with more text than a page has room for.

    pypdf copies what it has of a page at each operator that shows or moves text: twice as much on
    one page takes four times as long.
    """
    contents = page.get_contents()
    if contents is None:
        return
    data = contents.get_data()
    shown = sum(map(len, _STRING.findall(data)))
    if sum(map(data.count, _MARKS)) * shown > _MOST_WORK:
        raise ValueError(f"more text than a page has room for: {shown:,} characters")


def _headings(reader: PdfReader, count: int) -> dict[int, tuple[str, ...]]:
    """The bookmark that each page stands under: the first that begins on it, or the last before."""
    begins: dict[int, tuple[str, ...]] = {}
    last: dict[int, tuple[str, ...]] = {}
    for page, path in _bookmarks(reader):
        begins.setdefault(page, path)
        last[page] = path
    found: dict[int, tuple[str, ...]] = {}
    current: tuple[str, ...] = ()
    for number in range(1, count + 1):
        found[number] = begins.get(number, current)
        current = last.get(number, current)
    return found


def _bookmarks(reader: PdfReader) -> Iterator[tuple[int, tuple[str, ...]]]:
    """(page from 1, titles from the outermost) of each bookmark, in their order."""
    waiting: list[tuple[Any, int]] = [(one, 0) for one in reversed(reader.outline)]
    titles: list[str] = []
    seen = 0
    while waiting and seen < _BOOKMARKS:
        one, depth = waiting.pop()
        if isinstance(one, list):
            if depth < _DEEPEST:
                waiting += [(child, depth + 1) for child in reversed(one)]
            continue
        seen += 1
        del titles[depth:]
        titles.append(one_line(one.title) or "")
        page = reader.get_destination_page_number(one)
        if page is not None and page >= 0:
            yield page + 1, tuple(title for title in titles if title)


def _told(reader: PdfReader) -> dict[str, Any]:
    told = reader.metadata
    if told is None:
        return {}
    found: dict[str, Any] = {"title": one_line(told.title), "author": one_line(told.author)}
    date: datetime | None = None
    with suppress(*BROKEN):
        date = told.modification_date or told.creation_date
    if date is not None and date.tzinfo is not None and has_utc(date):
        found["date"] = date
    return found
