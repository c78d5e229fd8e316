"""Seconds that each reader of documents takes for 1, 2, 4 and 8 MB: twice as much, twice as long.

`python -m bench.hostile_documents`; of each format one ordinary file, and those that closed, nested
or declared without end.
"""

from __future__ import annotations

import io
import time
import zipfile
from collections.abc import Callable, Mapping
from typing import Final

from anaphora.errors import UnreadableDocument
from anaphora.ingest.documents.base import DocumentLimits
from anaphora.ingest.documents.working import read_in_worker

SIZES: Final = (1, 2, 4, 8)
_SAID: Final = b"The harbour opens at six in the morning. "
_MAIL: Final = b"From: a@b\r\nMIME-Version: 1.0\r\nMessage-ID: <1@x>\r\n"
_WORD: Final = (
    b'<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>'
)
_PARAGRAPH: Final = b"<w:p><w:r><w:t>" + _SAID * 10 + b"</w:t></w:r></w:p>"
_TYPES: Final = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="xml" ContentType="application/xml"/><Default Extension="rels" '
    'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-'
    'officedocument.wordprocessingml.document.main+xml"/></Types>'
)
_RELATIONS: Final = (
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/'
    'relationships/officeDocument" Target="word/document.xml"/></Relationships>'
)


def word(size: int) -> bytes:
    """A DOCX whose document has so many bytes, stored as they are."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("_rels/.rels", _RELATIONS)
        archive.writestr("[Content_Types].xml", _TYPES)
        body = _PARAGRAPH * (size // len(_PARAGRAPH))
        archive.writestr("word/document.xml", _WORD + body + b"</w:body></w:document>")
    return file.getvalue()


def pdf(size: int) -> bytes:
    """A PDF of pages that have 40 lines each."""
    line = b"(" + _SAID + b") Tj T* "
    stream = b"BT /F1 12 Tf 14 TL 72 720 Td " + line * 40 + b"ET"
    count = max(1, size // (len(stream) + 200))
    pages = b" ".join(b"%d 0 R" % (3 + 2 * number) for number in range(count))
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
    parts = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>" % (pages, count),
    ]
    for number in range(count):
        parts += [
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R "
            b"/Resources << /Font << /F1 %s >> >> >>" % (4 + 2 * number, font),
            b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        ]
    file, places = io.BytesIO(), []
    file.write(b"%PDF-1.7\n")
    for number, part in enumerate(parts, start=1):
        places.append(file.tell())
        file.write(b"%d 0 obj\n%s\nendobj\n" % (number, part))
    start = file.tell()
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    file.write(b"xref\n0 %d\n0000000000 65535 f \n%s" % (len(parts) + 1, table))
    trailer = b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n"
    file.write(trailer % (len(parts) + 1, start))
    return file.getvalue()


def _of(part: bytes, head: bytes = b"") -> Callable[[int], bytes]:
    return lambda size: head + part * (size // len(part))


FILES: Final[Mapping[str, tuple[str, Callable[[int], bytes]]]] = {
    "text": ("a.txt", _of(_SAID)),
    "Markdown": ("a.md", _of(b"# Harbour\n\n" + _SAID * 20 + b"\n\n")),
    "HTML": ("a.html", _of(b"<h2>Harbour</h2><p>" + _SAID * 20 + b"</p>", b"<html>")),
    "HTML, <!--": ("a.html", _of(b"<!--", b"<html>a")),
    "HTML, <a href='": ("a.html", _of(b"<a href='", b"<html>a")),
    "HTML, </": ("a.html", _of(b"</", b"<html>a")),
    "HTML, <svg>": ("a.html", _of(b"<svg></x>", b"<html>a")),
    "mail": ("a.eml", _of(_SAID + b"\r\n", _MAIL + b"\r\n")),
    "mail, one subject": ("a.eml", _of(b"=?utf-8?q?a?= ", _MAIL + b"Subject: ")),
    "mail, addresses": ("a.eml", _of(b"a@b, ", _MAIL + b"To: ")),
    "DOCX": ("a.docx", word),
    "PDF": ("a.pdf", pdf),
}


def main() -> None:
    """Print one line for each kind of file."""
    limits = DocumentLimits()
    read_in_worker("a.txt", b"The first one starts the worker.", limits)
    print(f"{'':20}" + "".join(f"{size:>6} MB" for size in SIZES))
    for label, (name, make) in FILES.items():
        shown = []
        for size in SIZES:
            data = make(size * 1_000_000)
            began = time.perf_counter()
            try:
                read_in_worker(name, data, limits)
                mark = " "
            except UnreadableDocument:
                mark = "*"
            shown.append(f"{time.perf_counter() - began:>8.2f}{mark}")
        print(f"{label:20}" + "".join(shown))
    print("seconds; * refused")


if __name__ == "__main__":
    main()
