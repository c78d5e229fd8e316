"""Which format a file is of, by its first bytes and then its name, and what reads it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import PurePosixPath
from typing import Final

from anaphora.errors import UnreadableDocument
from anaphora.ingest.documents.base import DocumentLimits, ExtractedDocument, Reading, TooMuch
from anaphora.ingest.documents.prose import read_markdown, read_text

_BY_SUFFIX: Final[Mapping[str, str]] = {
    ".htm": "html",
    ".html": "html",
    ".xhtml": "html",
    ".eml": "mail",
    ".md": "markdown",
    ".markdown": "markdown",
}
_PAGE: Final = re.compile(rb"\s*(?:<\?xml[^>]{0,200}>\s*)?<(?:!doctype\s+html|html)\b", re.I)
_MAIL: Final = re.compile(
    rb"(?:[!-9;-~]{1,76}:[^\n]*\n(?:[ \t][^\n]*\n)*){2,}\r?\n",
)
_OF_MAIL: Final = re.compile(
    rb"^(?:received|return-path|message-id|mime-version|delivered-to):", re.I | re.M
)
_OTHERS: Final[tuple[tuple[bytes, str], ...]] = (
    (b"\xd0\xcf\x11\xe0", "it is a file of Office 97 to 2003, or encrypted: save it as DOCX"),
    (b"{\\rtf", "it is RTF: save it as DOCX or PDF"),
    (b"\x89PNG", "it is a picture, whose text an OCR must read first"),
    (b"\xff\xd8\xff", "it is a picture, whose text an OCR must read first"),
    (b"GIF8", "it is a picture, whose text an OCR must read first"),
)
_HEAD: Final = 4_096

Read = Callable[[bytes, Reading], ExtractedDocument]


def read_document(name: str, data: bytes, limits: DocumentLimits) -> ExtractedDocument:
    """The text of a file, and what it tells of itself; `problems` are parts that have none.

    Raises `UnreadableDocument` for what is too large, encrypted, damaged, without text or of
    another format, `MissingExtra` for PDF and DOCX without the extra `documents`.
    """
    reading = Reading(name, limits)
    try:
        extracted = _read_any(data, reading)
    except TooMuch as error:
        raise UnreadableDocument("document", name, error.reason) from error
    return replace(extracted, problems=reading.problems.all())


def _read_any(data: bytes, reading: Reading) -> ExtractedDocument:
    if len(data) > reading.limits.size:
        size, most = len(data), reading.limits.size
        raise reading.refuse(f"it has {size:,} bytes; at most {most:,} are read")
    if not data.strip():
        raise reading.refuse("it is empty")
    return _reader_of(data, reading)(data, reading)


def _reader_of(data: bytes, reading: Reading) -> Read:
    # Each is imported for what it reads: a worker is there the sooner.
    head = data[:_HEAD]
    if b"%PDF-" in head[:1_024]:
        from anaphora.ingest.documents.pdf import read_pdf

        return read_pdf
    if head.startswith(b"PK\x03\x04"):
        return _zipped(data, reading)
    for mark, reason in _OTHERS:
        if head.startswith(mark):
            raise reading.refuse(reason)
    if head.startswith(b"From ") or head[:8].lstrip(b"\xef\xbb\xbf\r\n").startswith(b"From "):
        from anaphora.ingest.documents.mbox import is_mbox, read_mbox

        if is_mbox(head):
            return partial(read_mbox, read_part=_read_any)
    by_suffix = _BY_SUFFIX.get(PurePosixPath(reading.name.replace("\\", "/")).suffix.lower())
    if by_suffix == "html" or (by_suffix is None and _PAGE.match(head)):
        from anaphora.ingest.documents.html import read_html

        return read_html
    if by_suffix == "mail" or (by_suffix is None and _is_mail(head)):
        from anaphora.ingest.documents.mail import read_mail

        return partial(read_mail, read_part=_read_any)
    return read_markdown if by_suffix == "markdown" else read_text


def _zipped(data: bytes, reading: Reading) -> Read:
    from anaphora.ingest.documents.docx import DOCUMENT, names_in, read_docx

    names = names_in(data)
    if DOCUMENT in names:
        return read_docx
    if not names:
        raise reading.refuse("it begins as a DOCX does, and is damaged")
    kinds = {"xl/workbook.xml": "a spreadsheet", "ppt/presentation.xml": "a presentation"}
    kind = next((told for name, told in kinds.items() if name in names), "an archive")
    raise UnreadableDocument("document", reading.name, f"it is {kind}: save it as PDF")


def _is_mail(head: bytes) -> bool:
    return _MAIL.match(head + b"\n\n") is not None and _OF_MAIL.search(head) is not None
