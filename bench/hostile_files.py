"""Documents of a size, of each format: ordinary ones, and those that are made to be slow to read.

In: a size in bytes. Out: the bytes of a file that has about as many; of a DOCX what it unpacks to.
"""

from __future__ import annotations

import base64
import io
import zipfile
import zlib
from collections.abc import Callable, Mapping
from typing import Final

Maker = Callable[[int], bytes]

SAID: Final = b"The harbour opens at six in the morning. "
_MAIL: Final = b"From: a@b\r\nMIME-Version: 1.0\r\nMessage-ID: <1@x>\r\n"
_WORD: Final = (
    b'<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>'
)
_PARAGRAPH: Final = b"<w:p><w:r><w:t>" + SAID * 10 + b"</w:t></w:r></w:p>"
_HEADING: Final = (
    b'<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>Harbour</w:t></w:r></w:p>'
)
_CELL: Final = b"<w:tc><w:p><w:r><w:t>six</w:t></w:r></w:p></w:tc>"
_BULLET: Final = (
    b'<w:p><w:pPr><w:numPr><w:ilvl w:val="%d"/><w:numId w:val="1"/></w:numPr></w:pPr>'
    b"<w:r><w:t>six</w:t></w:r></w:p>"
)
TYPES: Final = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="xml" ContentType="application/xml"/><Default Extension="rels" '
    'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-'
    'officedocument.wordprocessingml.document.main+xml"/></Types>'
)
RELATIONS: Final = (
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/'
    'relationships/officeDocument" Target="word/document.xml"/></Relationships>'
)
_STYLES: Final = (
    b'<w:styles xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">'
    b'<w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/></w:style>'
    b"</w:styles>"
)
_LINE: Final = b"(" + SAID + b") Tj T* "
_PAGE: Final = b"BT /F1 12 Tf 14 TL 72 720 Td " + _LINE * 40 + b"ET"
_FONT: Final = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"


def repeated(part: bytes, head: bytes = b"", tail: bytes = b"") -> Maker:
    """Files of a part again and again, between a head and a tail."""
    return lambda size: head + part * (size // len(part)) + tail


def nested(opening: bytes, closing: bytes, head: bytes = b"", tail: bytes = b"") -> Maker:
    """Files of one thing within another."""

    def make(size: int) -> bytes:
        count = size // (len(opening) + len(closing))
        return head + opening * count + closing * count + tail

    return make


def word(part: bytes, closing: bytes = b"") -> Maker:
    """A DOCX whose body is a part again and again, or within itself, stored as it is."""

    def make(size: int) -> bytes:
        count = size // (len(part) + len(closing))
        body = _WORD + part * count + closing * count + b"</w:body></w:document>"
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("_rels/.rels", RELATIONS)
            archive.writestr("[Content_Types].xml", TYPES)
            archive.writestr("word/styles.xml", _STYLES)
            archive.writestr("word/document.xml", body)
        return file.getvalue()

    return make


def pdf_of(parts: list[bytes]) -> bytes:
    """A PDF of these objects; the first is its catalogue."""
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


def _pages(streams: list[bytes], entries: bytes = b"") -> bytes:
    pages = b" ".join(b"%d 0 R" % (3 + 2 * number) for number in range(len(streams)))
    parts = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>" % (pages, len(streams)),
    ]
    for number, stream in enumerate(streams):
        parts += [
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R "
            b"/Resources << /Font << /F1 %s >> >> >>" % (4 + 2 * number, _FONT),
            b"<< %s/Length %d >>\nstream\n%s\nendstream" % (entries, len(stream), stream),
        ]
    return pdf_of(parts)


def _pdf(size: int) -> bytes:
    return _pages([_PAGE] * max(1, size // (len(_PAGE) + 200)))


def _long_page(part: bytes, head: bytes = b"BT /F1 12 Tf ", tail: bytes = b" ET") -> Maker:
    return lambda size: _pages([repeated(part, head, tail)(size)])


def _packed_pages(size: int) -> bytes:
    """Pages whose streams unpack to so many bytes together."""
    streams = [zlib.compress(_PAGE)] * max(1, size // len(_PAGE))
    return _pages(streams, b"/Filter /FlateDecode ")


def _bookmarked(size: int) -> bytes:
    """One page, and as many bookmarks as fit."""
    count = size // 100
    parts = [
        b"<< /Type /Catalog /Pages 2 0 R /Outlines 5 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R "
        b"/Resources << /Font << /F1 %s >> >> >>" % _FONT,
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(_PAGE), _PAGE),
        b"<< /Type /Outlines /First 6 0 R /Last %d 0 R /Count %d >>" % (5 + count, count),
    ]
    for number in range(6, 6 + count):
        after = b"/Next %d 0 R " % (number + 1) if number < 5 + count else b""
        parts.append(b"<< /Title (six) /Parent 5 0 R %s/Dest [3 0 R /Fit] >>" % after)
    return pdf_of(parts)


def _without_table(size: int) -> bytes:
    """Objects without a table of their places: a reader looks for them."""
    whole = _pdf(size)
    return whole[: whole.rindex(b"xref\n0")] + b"trailer\n<< /Root 1 0 R >>\nstartxref\n0\n%%EOF\n"


def _attached(size: int) -> bytes:
    """A mail with one text file that has most of it, in base64."""
    data = base64.encodebytes(SAID * (size * 3 // 4 // len(SAID)))
    head = _MAIL + b"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nSee it.\r\n--b\r\n"
    file = b"Content-Type: text/plain\r\nContent-Disposition: attachment; filename=a.txt\r\n"
    return head + file + b"Content-Transfer-Encoding: base64\r\n\r\n" + data + b"\r\n--b--\r\n"


DOCUMENTS: Final[Mapping[str, tuple[str, Maker]]] = {
    "text": ("a.txt", repeated(SAID)),
    "text, one word": ("a.txt", repeated(b"a")),
    "text, line feeds": ("a.txt", repeated(b"\n", b"a", b"a")),
    "text, keys": ("a.txt", repeated(b"password = sk-proj-a1B2c3D4e5F6g7H8 ")),
    "text, ---BEGIN": ("a.txt", repeated(b"-----BEGIN RSA PRIVATE KEY-----\n")),
    "text, eyJ": ("a.txt", repeated(b"eyJhbGciOiJIUzI1NiJ9.")),
    "text, ://a:": ("a.txt", repeated(b"http://a:b")),
    "Markdown": ("a.md", repeated(b"# Harbour\n\n" + SAID * 20 + b"\n\n")),
    "Markdown, #": ("a.md", repeated(b"# a\n")),
    "Markdown, ```": ("a.md", repeated(b"```\n")),
    "Markdown, blanks in a heading": ("a.md", repeated(b" ", b"# a", b"b")),
    "Markdown, [[": ("a.md", repeated(b"[[")),
    "Markdown, ---": ("a.md", repeated(b"---\na: b\n")),
    "Markdown, ===": ("a.md", repeated(b"a\n===\n")),
    "HTML": ("a.html", repeated(b"<h2>Harbour</h2><p>" + SAID * 20 + b"</p>", b"<html>")),
    "HTML, tables": ("a.html", repeated(b"<table><tr><td>a<td>b</table>", b"<html>")),
    "HTML, <!--": ("a.html", repeated(b"<!--", b"<html>a")),
    "HTML, <a href='": ("a.html", repeated(b"<a href='", b"<html>a")),
    "HTML, <a a=b": ("a.html", repeated(b" a=b", b"<html>a<a")),
    "HTML, <?": ("a.html", repeated(b"<?", b"<html>a")),
    "HTML, </": ("a.html", repeated(b"</", b"<html>a")),
    "HTML, <svg></x>": ("a.html", repeated(b"<svg></x>", b"<html>a")),
    "HTML, <div> within": ("a.html", nested(b"<div>", b"</div>", b"<html>a")),
    "HTML, <ul><li> within": ("a.html", nested(b"<ul><li>a", b"</li></ul>", b"<html>a")),
    "HTML, <h6>": ("a.html", repeated(b"<h1><h2><h3>a", b"<html>a")),
    "HTML, <script>": ("a.html", repeated(b"<script>", b"<html>a")),
    "HTML, &": ("a.html", repeated(b"&am", b"<html>a")),
    "HTML, <pre>": ("a.html", repeated(b"<pre>\n", b"<html>a")),
    "mail": ("a.eml", repeated(SAID + b"\r\n", _MAIL + b"\r\n")),
    "mail, one subject": ("a.eml", repeated(b"=?utf-8?q?a?= ", _MAIL + b"Subject: ")),
    "mail, addresses": ("a.eml", repeated(b"a@b, ", _MAIL + b"To: ")),
    "mail, headers": ("a.eml", repeated(b"a: b\r\n", _MAIL)),
    "mail, folded header": ("a.eml", repeated(b" a\r\n", _MAIL + b"Subject: a\r\n")),
    "mail, attachment": ("a.eml", _attached),
    "mail, parts": (
        "a.eml",
        repeated(
            b"--b\r\n\r\nx\r\n", _MAIL + b"Content-Type: multipart/mixed; boundary=b\r\n\r\n"
        ),
    ),
    "mail, long line": ("a.eml", repeated(b"a", _MAIL + b"\r\n")),
    "mail, quoted": (
        "a.eml",
        repeated(b"=C3=BC=\r\n", _MAIL + b"Content-Transfer-Encoding: quoted-printable\r\n\r\n"),
    ),
    "DOCX": ("a.docx", word(_HEADING + _PARAGRAPH * 5)),
    "DOCX, <w:p/>": ("a.docx", word(b"<w:p/>")),
    "DOCX, paragraphs of a letter": ("a.docx", word(b"<w:p><w:r><w:t>a</w:t></w:r></w:p>")),
    "DOCX, <w:r/>": ("a.docx", word(b"<w:r/>")),
    "DOCX, runs of a letter": (
        "a.docx",
        lambda size: word(
            b"<w:p>" + b"<w:r><w:t>a</w:t></w:r>" * (size // 23) + b"</w:p>"
        )(size + 9),
    ),
    "DOCX, tables": ("a.docx", word(b"<w:tbl><w:tr>" + _CELL * 4 + b"</w:tr></w:tbl>")),
    "DOCX, rows": (
        "a.docx",
        lambda size: word(
            b"<w:tbl>" + (b"<w:tr>" + _CELL + b"</w:tr>") * (size // (len(_CELL) + 13))
            + b"</w:tbl>"
        )(size + 20),
    ),
    "DOCX, lists": ("a.docx", word(_BULLET % 0 + _BULLET % 1)),
    "DOCX, one text": (
        "a.docx",
        lambda size: word(b"<w:p><w:r><w:t>" + b"a" * size + b"</w:t></w:r></w:p>")(size + 40),
    ),
    "DOCX, breaks": (
        "a.docx",
        lambda size: word(b"<w:p><w:r>" + b"<w:br/>" * (size // 7) + b"</w:r></w:p>")(size + 30),
    ),
    "DOCX, tables within": ("a.docx", word(b"<w:tbl><w:tr><w:tc>", b"</w:tc></w:tr></w:tbl>")),
    "PDF": ("a.pdf", _pdf),
    "PDF, packed": ("a.pdf", _packed_pages),
    "PDF, one page": ("a.pdf", _long_page(_LINE)),
    "PDF, one page, q": ("a.pdf", _long_page(b"q ")),
    "PDF, one page, [": ("a.pdf", _long_page(b"[")),
    "PDF, one page, (": ("a.pdf", _long_page(b"(")),
    "PDF, one page, <<": ("a.pdf", _long_page(b"<<")),
    "PDF, one page, Tm": ("a.pdf", _long_page(b"1 0 0 1 0 0 Tm ( ) Tj\n")),
    "PDF, bookmarks": ("a.pdf", _bookmarked),
    "PDF, no table": ("a.pdf", _without_table),
    "PDF, not closed": ("a.pdf", repeated(b"1 0 obj\n<<\n", b"%PDF-1.7\n")),
}  # fmt: skip
