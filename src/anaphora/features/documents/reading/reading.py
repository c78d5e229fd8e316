"""The format of a file, by its first bytes and then its name, and the reader for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import PurePosixPath
from typing import Final

from anaphora.errors import UnreadableDocument
from anaphora.features.documents.reading.base import (
    DocumentLimits,
    ExtractedDocument,
    Reading,
    TooMuch,
)
from anaphora.features.documents.reading.calendars import read_calendar
from anaphora.features.documents.reading.prose import read_markdown, read_notebook, read_text

_BY_SUFFIX: Final[Mapping[str, str]] = {
    ".htm": "html",
    ".html": "html",
    ".xhtml": "html",
    ".eml": "mail",
    ".md": "markdown",
    ".markdown": "markdown",
    ".mdown": "markdown",
    ".ics": "calendar",
    ".ipynb": "notebook",
}
_FROM_LINE: Final = re.compile(rb"(?:\xef\xbb\xbf)?[\r\n]*From ")
_CALENDAR: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*BEGIN:VCALENDAR\b", re.I)
_PAGE: Final = re.compile(rb"\s*(?:<\?xml[^>]{0,200}>\s*)?<(?:!doctype\s+html|html)\b", re.I)
_MAIL: Final = re.compile(
    rb"(?:[!-9;-~]{1,76}:[^\n]*\n(?:[ \t][^\n]*\n)*){2,}\r?\n",
)
_OF_MAIL: Final = re.compile(
    rb"^(?:received|return-path|message-id|mime-version|delivered-to):", re.I | re.M
)
_OTHERS: Final[tuple[tuple[bytes, str], ...]] = (
    (b"{\\rtf", "it is RTF: save it as DOCX or PDF"),
    (b"\x89PNG", "it is a picture, whose text an OCR must read first"),
    (b"\xff\xd8\xff", "it is a picture, whose text an OCR must read first"),
    (b"GIF8", "it is a picture, whose text an OCR must read first"),
)
_OLE: Final = b"\xd0\xcf\x11\xe0"
# What such a file says of itself in its directory, in UTF-16.
_IN_OLE: Final[Mapping[str, str]] = {
    "EncryptedPackage": "it is encrypted: save a copy without a password",
    "__nameid_version1.0": "it is a mail of Outlook: save it as a mail (.eml), or as HTML",
    "WordDocument": "it is a document of Word 97 to 2003: save it as DOCX",
    "Workbook": "it is a spreadsheet of Excel 97 to 2003: save it as PDF",
    "PowerPoint Document": "it is a presentation of PowerPoint 97 to 2003: save it as PDF",
}
_IN_ZIP: Final[Mapping[str, str]] = {
    "xl/workbook.xml": "a spreadsheet: save it as PDF",
    "xl/workbook.bin": "a spreadsheet: save it as PDF",
    "ppt/presentation.xml": "a presentation: save it as PDF",
    "META-INF/container.xml": "an e-book: save it as PDF",
    "content.xml": "a document of OpenDocument: save it as PDF or DOCX",
}
_HEAD: Final = 4_096

Read = Callable[[bytes, Reading], ExtractedDocument]


def read_document(name: str, data: bytes, limits: DocumentLimits) -> ExtractedDocument:
    """The text of a file, and what it tells of itself; `problems` are parts that have none.

    Raises `UnreadableDocument` for what is too large, encrypted, damaged, without text or of
    another format, `MissingExtra` for an encrypted PDF without the extra `encryption`.
    """
    reading = Reading(name, limits)
    try:
        document = _read_any(data, reading)
    except TooMuch as error:
        raise UnreadableDocument("document", name, error.reason) from error
    return replace(document, problems=reading.problems.all())


def _read_any(data: bytes, reading: Reading) -> ExtractedDocument:
    if len(data) > reading.limits.size:
        size, max_size = len(data), reading.limits.size
        raise reading.refuse(f"it has {size:,} bytes; at most {max_size:,} are read")
    if not data.strip():
        raise reading.other("it is empty")
    return _choose_reader(data, reading)(data, reading)


def _choose_reader(data: bytes, reading: Reading) -> Read:
    # Readers are imported on demand: a worker starts faster.
    head = data[:_HEAD]
    if b"%PDF-" in head[:1_024]:
        from anaphora.features.documents.reading.pdf import read_pdf

        return read_pdf
    if head.startswith(b"PK\x03\x04"):
        return _choose_zip_reader(data, reading)
    if reason := next((reason for mark, reason in _OTHERS if head.startswith(mark)), ""):
        raise reading.other(reason)
    if _FROM_LINE.match(head):
        from anaphora.features.documents.reading.mbox import is_mbox, read_mbox

        if is_mbox(head):
            return partial(read_mbox, read_part=_read_any)
    suffix = PurePosixPath(reading.name.replace("\\", "/")).suffix.lower()
    if head.startswith(_OLE):
        office = "it is a file of Office 97 to 2003, or encrypted: save it as DOCX or PDF"
        reasons = (r for stream, r in _IN_OLE.items() if stream.encode("utf-16-le") in data)
        default = _IN_OLE["__nameid_version1.0"] if suffix == ".msg" else office
        raise reading.other(next(reasons, default))
    by_suffix = "calendar" if _CALENDAR.match(head) else _BY_SUFFIX.get(suffix)
    if by_suffix == "html" or (by_suffix is None and _PAGE.match(head)):
        from anaphora.features.documents.reading.html import read_html

        return read_html
    if by_suffix == "mail" or (
        by_suffix is None
        and (_MAIL.match(head + b"\n\n") is not None and _OF_MAIL.search(head) is not None)
    ):
        from anaphora.features.documents.reading.mail import read_mail

        return partial(read_mail, read_part=_read_any)
    return _PLAIN.get(by_suffix, read_text)


_PLAIN: Final[Mapping[str | None, Read]] = {
    "calendar": read_calendar,
    "markdown": read_markdown,
    "notebook": read_notebook,
}


def _choose_zip_reader(data: bytes, reading: Reading) -> Read:
    from anaphora.features.documents.reading.docx import is_body, names_in, read_docx

    names = names_in(data)
    if any(map(is_body, names)):
        return read_docx
    if not names:
        raise reading.refuse("it begins as a DOCX does, and is damaged")
    archive = "an archive: unpack it, and add the files that are in it"
    kind = next((kind for name, kind in _IN_ZIP.items() if name in names), archive)
    raise reading.other(f"it is {kind}")
