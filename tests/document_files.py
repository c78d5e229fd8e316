"""Documents to add in tests, made here: PDF and DOCX by hand, so that they are ours to the byte."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from email.message import EmailMessage

_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="xml" ContentType="application/xml"/>'
    '<Default Extension="rels" '
    'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-'
    'officedocument.wordprocessingml.document.main+xml"/></Types>'
)
_RELS = (
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/'
    'relationships/officeDocument" Target="word/document.xml"/></Relationships>'
)
_STYLES = "".join(
    f'<w:style w:type="paragraph" w:styleId="Heading{level}">'
    f'<w:name w:val="heading {level}"/></w:style>'
    for level in (1, 2)
)


def pdf(
    pages: Sequence[Sequence[str]],
    *,
    title: str = "",
    bookmarks: Sequence[tuple[str, int]] = (),
) -> bytes:
    """A PDF with these lines on its pages; `bookmarks` are titles and pages, from 1."""
    count = len(pages)
    first_page, font = 4, 4 + 2 * count
    first_mark = font + 1
    kids = " ".join(f"{first_page + 2 * at} 0 R" for at in range(count))
    outlines = ""
    marks = []
    if bookmarks:
        root = first_mark + len(bookmarks)
        outlines = f"/Outlines {root} 0 R"
        for at, (name, page) in enumerate(bookmarks):
            number = first_mark + at
            links = f"/Prev {number - 1} 0 R " if at else ""
            links += f"/Next {number + 1} 0 R " if at + 1 < len(bookmarks) else ""
            target = first_page + 2 * (page - 1)
            marks.append(
                f"<< /Title ({name}) /Parent {root} 0 R {links}/Dest [{target} 0 R /Fit] >>"
            )
        marks.append(
            f"<< /Type /Outlines /First {first_mark} 0 R "
            f"/Last {first_mark + len(bookmarks) - 1} 0 R /Count {len(bookmarks)} >>"
        )
    objects = [
        f"<< /Type /Catalog /Pages 2 0 R {outlines} >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {count} >>",
        f"<< /Title ({title}) /ModDate (D:20240305120000Z) >>",
    ]
    for at, lines in enumerate(pages):
        shown = " ".join(f"({line}) Tj T*" for line in lines)
        stream = f"BT /F1 12 Tf 14 TL 72 720 Td {shown} ET"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] "
            f"/Resources << /Font << /F1 {font} 0 R >> >> "
            f"/Contents {first_page + 2 * at + 1} 0 R >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    objects.append(
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
    )
    objects += marks
    out = io.BytesIO(b"")
    out.write(b"%PDF-1.7\n")
    places = []
    for number, one in enumerate(objects, start=1):
        places.append(out.tell())
        out.write(f"{number} 0 obj\n{one}\nendobj\n".encode("latin-1"))
    table = out.tell()
    out.write(f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode())
    out.write("".join(f"{place:010} 00000 n \n" for place in places).encode())
    trailer = f"<< /Size {len(objects) + 1} /Root 1 0 R /Info 3 0 R >>"
    out.write(f"trailer\n{trailer}\nstartxref\n{table}\n%%EOF\n".encode())
    return out.getvalue()


def docx(paragraphs: Sequence[tuple[str, int]], *, title: str = "", before: str = "") -> bytes:
    """A DOCX of these paragraphs, each with its level: 0 for text, 1 and 2 for headings.

    `before` stands before the first element of its body's part.
    """
    shown = []
    for text, level in paragraphs:
        style = f'<w:pPr><w:pStyle w:val="Heading{level}"/></w:pPr>' if level else ""
        shown.append(f"<w:p>{style}<w:r><w:t>{text}</w:t></w:r></w:p>")
    body = f"{before}<w:document {_W}><w:body>{''.join(shown)}</w:body></w:document>"
    parts = {
        "[Content_Types].xml": _TYPES,
        "_rels/.rels": _RELS,
        "word/document.xml": body,
        "word/styles.xml": f"<w:styles {_W}>{_STYLES}</w:styles>",
        "word/_rels/document.xml.rels": _RELS.replace('officeDocument" T', 'styles" T').replace(
            "word/document.xml", "styles.xml"
        ),
        "docProps/core.xml": (
            '<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/'
            'core-properties" xmlns:dc="http://purl.org/dc/elements/1.1/" '
            'xmlns:dcterms="http://purl.org/dc/terms/">'
            f"<dc:title>{title}</dc:title><dc:creator>Mara Lind</dc:creator>"
            "<dcterms:modified>2025-02-03T10:00:00Z</dcterms:modified></cp:coreProperties>"
        ),
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return out.getvalue()


def mail(
    subject: str, body: str, attachments: Sequence[tuple[str, bytes]] = (), *, html: str = ""
) -> bytes:
    """A mail with files attached."""
    message = EmailMessage()
    message["From"] = "Mara Lind <mara@example.org>"
    message["To"] = "Ode Farr <ode@example.org>"
    message["Subject"] = subject
    message["Date"] = "Mon, 02 Jun 2025 09:30:00 +0200"
    message.set_content(body)
    if html:
        message.add_alternative(html, subtype="html")
    for name, data in attachments:
        message.add_attachment(data, maintype="application", subtype="octet-stream", filename=name)
    return bytes(message)
