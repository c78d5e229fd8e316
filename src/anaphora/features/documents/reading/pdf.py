"""The text of a PDF by its pages, each under the bookmark that it belongs to. Imports pypdf.

Pages that are pictures have no text, which is noted: nothing here reads letters off a picture. What
was filled into a form stands behind the text of its page.
"""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from anaphora.calls.moments import has_utc
from anaphora.errors import MissingExtra
from anaphora.features.documents.reading.base import (
    BROKEN,
    ExtractedDocument,
    Reading,
    TextBlock,
    meant_title,
    one_line,
)
from anaphora.features.documents.reading.hyphens import mended
from anaphora.features.documents.reading.pdf_forms import FormReader

if TYPE_CHECKING:
    from pypdf import PdfReader

# pypdf logs oddities of a file; without a handler they would reach the terminal.
logging.getLogger("pypdf").addHandler(logging.NullHandler())

_BOOKMARKS: Final = 10_000
_STRING: Final = re.compile(rb"\([^()]*+\)|<[^<>]*+>")
_MARKS: Final = (b"T", b"(", b"<", b"'", b'"')
_MOST_WORK: Final = 10**11
"""Operators of text in a page times the characters that it shows: some 25,000 lines on one page."""
_DEEPEST: Final = 20
_PICTURE: Final = "no text: a picture, which an OCR must read first"
_LARGE_PICTURE: Final = "hardly any text, and a picture, which an OCR must read first"
_HARDLY_ANY: Final = 120
"""Characters of a page, such as its number or the stamp of a scanner."""
_LARGE: Final = 400_000
"""Pixels of a picture that a page of text may be: A4 in some 70 dots an inch."""
_SHOWS: Final = re.compile(
    rb"(?<![^\s\])>])(?:Do|BI|sh|f\*?|F|S|s|[Bb]\*?|Tj|TJ|'|\")(?![^\s\[(</])"
)
_SHOWN_OBJECT: Final = re.compile(rb"(/[^\s/<>\[\]()]{1,127})\s+Do\b")
_DEEPEST_FORM: Final = 3
_LONG_RUN: Final = 6
_MOST_OBJECTS: Final = 1_000


def read_pdf(data: bytes, reading: Reading) -> ExtractedDocument:
    """Every page that has text. `UnreadableDocument`, or `MissingExtra` for an encrypted one."""
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, PyPdfError

    broken_errors = (*BROKEN, PyPdfError)
    try:
        reader = PdfReader(io.BytesIO(data))
        # Most that are encrypted open without a password, and only forbid printing or changing.
        is_locked = reader.is_encrypted and not reader.decrypt("")
    except DependencyError as error:
        raise MissingExtra("encryption", "cryptography, which this encrypted PDF needs,") from error
    except broken_errors as error:
        raise reading.refuse(f"it is damaged: {error}") from error
    if is_locked:
        raise reading.refuse("it is encrypted, and needs a password: save a copy without one")
    try:
        count = len(reader.pages)
    except broken_errors as error:
        raise reading.refuse(f"it is damaged: {error}") from error
    if count > reading.limits.pages:
        raise reading.refuse(f"it has {count:,} pages; at most {reading.limits.pages:,} are read")
    headings: dict[int, tuple[str, ...]] = {}
    with suppress(*broken_errors):
        headings = _find_headings(reader, count)
    pages = _Pages(reading, broken_errors)
    pages.read(reader, count)
    blocks = [
        TextBlock(text, headings.get(number, ()) if number else (), number)
        for number, text in pages.texts()
    ]
    if not blocks:
        raise reading.refuse("it has no text: its pages are pictures, which an OCR must read first")
    pages.tell_pictures()
    properties: dict[str, Any] = {}
    with suppress(*broken_errors):
        properties = _read_properties(reader)
    return ExtractedDocument("pdf", tuple(blocks), pages=count, **properties)


def _read_properties(reader: PdfReader) -> dict[str, Any]:
    metadata = reader.metadata
    if metadata is None:
        return {}
    properties: dict[str, Any] = {
        "title": meant_title(metadata.title),
        "author": one_line(metadata.author),
    }
    date: datetime | None = None
    with suppress(*BROKEN):
        date = metadata.modification_date or metadata.creation_date
    if date is not None and date.tzinfo is not None and has_utc(date):
        properties["date"] = date
    return properties


class _Pages:
    """Reads page by page: the text, what was filled in, and which pages are pictures."""

    def __init__(self, reading: Reading, broken: tuple[type[Exception], ...]) -> None:
        self._reading = reading
        self._broken = broken
        self._texts: dict[int, str] = {}
        self._filled: dict[int | None, str] = {}
        self._pictures: dict[str, list[int]] = {}

    def read(self, reader: PdfReader, count: int) -> None:
        """Read all; `UnreadableDocument` if no page can be read."""
        form = FormReader()
        why: object = ""
        for number in range(1, count + 1):
            try:
                page = reader.pages[number - 1]
                contents = page.get_contents()
                content = contents.get_data() if contents is not None else b""
                # pypdf copies what it has of a page at each operator that shows or moves text:
                # twice as much on one page takes four times as long.
                characters = sum(map(len, _STRING.findall(content)))
                if sum(map(content.count, _MARKS)) * characters > _MOST_WORK:
                    raise ValueError(
                        f"more text than a page has room for: {characters:,} characters"
                    )
                text = self._texts[number] = self._reading.count(
                    "\n".join(
                        line.rstrip() for line in _clean(page.extract_text()).splitlines()
                    ).strip("\n")
                )
            except self._broken as error:
                why = error
                self._reading.problem(f"page {number}", error)
                continue
            with suppress(*self._broken):
                self._fill(number, form.lines_of(page))
            with suppress(*self._broken):
                # A page that shows something, and has no text, or hardly any.
                words = len(text.strip())
                if not words and _SHOWS.search(content):
                    self._pictures.setdefault(_PICTURE, []).append(number)
                elif 0 < words < _HARDLY_ANY and _has_large_picture(page, content):
                    self._pictures.setdefault(_LARGE_PICTURE, []).append(number)
        if count and not self._texts:
            raise self._reading.refuse(f"none of its pages can be read: {why or 'it is damaged'}")
        with suppress(*self._broken):
            self._fill(None, form.lines_beside(reader))
        with suppress(*self._broken):
            if reader.xfa and not self._filled:
                reason = "it is filled in for Adobe's programs alone (XFA): print it as PDF"
                self._reading.problem("its form", reason)

    def _fill(self, number: int | None, lines: Iterator[str]) -> None:
        if text := _clean("\n".join(lines)):
            self._filled[number] = self._reading.count(text)

    def texts(self) -> Iterator[tuple[int | None, str]]:
        """Each page that says anything, by its number, and what stands on none."""
        mended_texts = dict(zip(self._texts, mended(self._texts.values()), strict=True))
        for number in (*mended_texts, None):
            parts = (mended_texts.get(number or 0, ""), self._filled.get(number, ""))
            if text := "\n\n".join(part for part in parts if part.strip()):
                yield number, text

    def tell_pictures(self) -> None:
        """Note the pages that show what was not read: "page 2", "pages 2, 3, 10-40"."""
        for reason, numbers in self._pictures.items():
            runs: list[list[int]] = []
            for number in numbers:
                if runs and number == runs[-1][-1] + 1:
                    runs[-1].append(number)
                else:
                    runs.append([number])
            page_numbers = ", ".join(
                f"{run[0]}-{run[-1]}" if len(run) > _LONG_RUN else ", ".join(map(str, run))
                for run in runs
            )
            page_count = len(numbers)
            pages = f"page {page_numbers}" if page_count == 1 else f"pages {page_numbers}"
            self._reading.problem(
                pages, reason if page_count == 1 else f"on {page_count:,} pages {reason}"
            )


def _has_large_picture(holder: Any, data: bytes, depth: int = 0) -> bool:
    """Whether a page, or a form that it shows, shows a picture that may be of a page."""
    resources = holder.get("/Resources")
    objects = resources.get_object().get("/XObject") if resources is not None else None
    if objects is None or depth > _DEEPEST_FORM:
        return False
    names = set(_SHOWN_OBJECT.findall(data))
    for name, reference in list(objects.get_object().items())[:_MOST_OBJECTS]:
        if name.encode("utf-8", "replace") not in names:
            continue
        shown_object = reference.get_object()
        if shown_object.get("/Subtype") == "/Image":
            if int(shown_object.get("/Width", 0)) * int(shown_object.get("/Height", 0)) >= _LARGE:
                return True
        elif shown_object.get("/Subtype") == "/Form" and _has_large_picture(
            shown_object, shown_object.get_data(), depth + 1
        ):
            return True
    return False


def _clean(text: str) -> str:
    # Characters that a font does not tell come as lone surrogates or NUL.
    return text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "")


def _find_headings(reader: PdfReader, count: int) -> dict[int, tuple[str, ...]]:
    """The bookmark that each page stands under: the first that begins on it, or the last before."""
    begins: dict[int, tuple[str, ...]] = {}
    last_path_by_page: dict[int, tuple[str, ...]] = {}
    waiting: list[tuple[Any, int]] = [(bookmark, 0) for bookmark in reversed(reader.outline)]
    titles: list[str] = []
    bookmarks = 0
    while waiting and bookmarks < _BOOKMARKS:
        bookmark, depth = waiting.pop()
        if isinstance(bookmark, list):
            if depth < _DEEPEST:
                waiting += [(child, depth + 1) for child in reversed(bookmark)]
            continue
        bookmarks += 1
        del titles[depth:]
        titles.append(one_line(bookmark.title) or "")
        page = reader.get_destination_page_number(bookmark)
        if page is not None and page >= 0:
            path = tuple(title for title in titles if title)
            begins.setdefault(page + 1, path)
            last_path_by_page[page + 1] = path
    by_page: dict[int, tuple[str, ...]] = {}
    current: tuple[str, ...] = ()
    for number in range(1, count + 1):
        by_page[number] = begins.get(number, current)
        current = last_path_by_page.get(number, current)
    return by_page
