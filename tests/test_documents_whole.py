"""Documents come in whole: every part of a mail, every row and field, and what is left out is told.

The samples are made here, each as programs write its kind.
"""

from __future__ import annotations

import binascii
import email.message
import io
import zipfile
from collections.abc import Iterator
from email.message import EmailMessage
from email.mime.message import MIMEMessage
from email.mime.multipart import MIMEMultipart
from email.mime.nonmultipart import MIMENonMultipart
from email.mime.text import MIMEText
from pathlib import Path

import pytest
from tests.document_files import docx, pdf

from anaphora import Memory
from anaphora.errors import UnreadableDocument

LETTER = "<p>The diver comes on Tuesday, and the hull is painted on Wednesday.</p>" * 12
EVENT = (
    "BEGIN:VCALENDAR\r\nMETHOD:REQUEST\r\nBEGIN:VEVENT\r\nSUMMARY:Hull inspection\r\n"
    "DTSTART;TZID=Europe/Oslo:20260302T100000\r\nDTEND;TZID=Europe/Oslo:20260302T113000\r\n"
    "LOCATION:Dry dock 2\r\nORGANIZER;CN=Ida:mailto:ida@example.org\r\n"
    "ATTENDEE;CN=Per;PARTSTAT=ACCEPTED:mailto:per@example.org\r\nDESCRIPTION:Bring\\nboots.\r\n"
    "END:VEVENT\r\nEND:VCALENDAR\r\n"
)


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    with Memory.open(tmp_path_factory.mktemp("home"), embedder="hashing") as opened:
        yield opened


def read(memory: Memory, name: str, data: bytes) -> tuple[str, str]:
    """The text of a document, a section a paragraph under its headings, and what is told of it."""
    done = memory.add_document(data, name=name)
    sections = memory.document_sections(done.document.id)
    text = "\n\n".join(f"{' > '.join(one.heading)}\n{one.text}".strip() for one in sections)
    return text, "\n".join(f"{one.place}: {one.reason}" for one in done.problems)


def headed(message: email.message.Message, subject: str = "Crane") -> email.message.Message:
    message["From"] = "Ida <ida@example.org>"
    message["To"] = "per@example.org"
    message["Subject"] = subject
    message["Date"] = "Mon, 02 Mar 2026 10:00:00 +0100"
    message["Message-ID"] = "<1@example.org>"
    return message


def many(kind: str, *parts: email.message.Message, **params: str) -> email.message.Message:
    message = MIMEMultipart(kind)
    for name, value in params.items():
        message.set_param(name.replace("_", "-"), value)
    for part in parts:
        message.attach(part)
    return message


def file(text: str, name: str | None, charset: str | None = None) -> email.message.Message:
    part = MIMEText(text, "plain", charset)
    part.add_header("Content-Disposition", "attachment", **({"filename": name} if name else {}))
    return part


def letter(subject: str, text: str) -> EmailMessage:
    message = EmailMessage()
    headed(message, subject)
    message.set_content(text)
    return message


def report(kind: str, text: str) -> email.message.Message:
    return email.message_from_string(f"Content-Type: {kind}\n\n{text}")


def raw(kind: str, body: str, **headers: str) -> email.message.Message:
    part = MIMENonMultipart(*kind.split("/"))
    part.set_payload(body)
    for name, value in headers.items():
        part[name.replace("_", "-")] = value
    return part


PICTURE = raw("image/png", "iVBORw0KGgo=", Content_Transfer_Encoding="base64")
UUENCODED = "begin 644 oil.txt\n" + binascii.b2a_uu(b"The lamp oil is in the shed.").decode()
MAILS = {
    "an attachment below the form in HTML": (
        many(
            "alternative",
            MIMEText("See the quote."),
            many("mixed", MIMEText("<p>See the quote.", "html"), file("It costs 7300.", "q.txt")),
        ),
        ["See the quote.", "q.txt\nIt costs 7300."],
        [],
        ["See the quote.\n\nSee"],
    ),
    "the letter beside a blank form": (
        many("alternative", MIMEText("\n \n"), MIMEText("<p>Code <b>HERON-88</b></p>", "html")),
        ["Code HERON-88"],
        [],
        [],
    ),
    "a hint in place of the letter": (
        many("alternative", MIMEText("Your program shows no HTML."), MIMEText(LETTER, "html")),
        ["The diver comes on Tuesday"],
        [],
        [],
    ),
    "both forms say the same": (
        many("alternative", MIMEText("Plain words."), MIMEText("<h1>Plain words.</h1>", "html")),
        ["Plain words."],
        [],
        ["Plain words.\n\nPlain words."],
    ),
    "texts one after the other, and a footer of a list": (
        many("mixed", MIMEText(""), MIMEText("The ferry leaves."), MIMEText("To leave: no.")),
        ["The ferry leaves.", "To leave: no."],
        [],
        [],
    ),
    "signed, with an attachment": (
        many(
            "signed",
            many("mixed", MIMEText("Signed words."), file("The diver is Odd.", "d.txt")),
            file("0\x80sig", "smime.p7s"),
            protocol="application/pkcs7-signature",
        ),
        ["Signed words.", "d.txt\nThe diver is Odd."],
        ["attachment smime.p7s: it is a signature"],
        ["sig"],
    ),
    "encrypted": (
        many("encrypted", raw("application/pgp-encrypted", "Version: 1")),
        ["Subject: Crane"],
        ["it is encrypted"],
        ["Version: 1"],
    ),
    "a bounce": (
        many(
            "report",
            MIMEText("It did not arrive."),
            report("message/delivery-status", "Reporting-MTA: mx\n\nAction: failed\nStatus: 5.1"),
            MIMEMessage(letter("Rope", "Forty metres of rope.")),
            report_type="delivery-status",
        ),
        ["It did not arrive.", "Action: failed\nStatus: 5.1", "Rope\nForty metres of rope."],
        [],
        [],
    ),
    "a digest": (
        many("digest", MIMEMessage(letter("Rope", "Forty m.")), MIMEMessage(letter("Oil", "Ten."))),
        ["Rope\nForty m.", "Oil\nTen."],
        [],
        [],
    ),
    "pictures of a page, and a file without a name": (
        many("related", many("alternative", MIMEText("See it.")), PICTURE, file("Unnamed.", None)),
        ["See it.", "Unnamed."],
        ["attachment of image/png, unnamed: it is a picture"],
        [],
    ),
    "an invitation that is also attached": (
        many(
            "mixed",
            many("alternative", MIMEText(""), MIMEText(EVENT, "calendar")),
            raw("application/ics", EVENT, Content_Disposition='attachment; filename="invite.ics"'),
        ),
        [
            "Invitation: Hull inspection\nWhen: 2026-03-02 10:00 Europe/Oslo to "
            "2026-03-02 11:30 Europe/Oslo\nWhere: Dry dock 2\nOrganizer: Ida <ida@example.org>\n"
            "Attendees: Per <per@example.org> (accepted)\n\nBring\nboots.",
        ],
        [],
        ["BEGIN", "invite.ics"],
    ),
    "a calendar that is damaged": (
        many("mixed", MIMEText("Come."), MIMEText("BEGIN:VCALENDAR\nfoo", "calendar")),
        ["Come."],
        ["text/calendar, unnamed: it is a calendar that is damaged"],
        [],
    ),
    "a file in the letter": (
        MIMEText(f"Hello.\n\n{UUENCODED}`\nend\nBye."),
        ["Hello.\n\nBye.", "oil.txt\nThe lamp oil is in the shed."],
        [],
        ["begin 644"],
    ),
    "a file in the old encoding": (
        many(
            "mixed",
            MIMEText("Here."),
            raw("text/plain", f"{UUENCODED}`\nend\n", Content_Transfer_Encoding="x-uuencode",
                Content_Disposition="attachment; filename=oil.txt"),
        ),
        ["oil.txt\nThe lamp oil is in the shed."],
        [],
        [],
    ),
    "nothing but a file": (file("The code is 4412.", "g.txt"), ["g.txt\nThe code"], [], []),
    "parts that are none": (raw("multipart/mixed", "The winch is red."), ["The winch is"], [], []),
    "a file in an encoding that the mail names": (
        many("mixed", MIMEText("Here."), file("Łódź", "a.txt", charset="iso-8859-2")),
        ["a.txt\nŁódź"],
        [],
        [],
    ),
}  # fmt: skip


@pytest.mark.promise("documents.formats")
@pytest.mark.parametrize("name", MAILS)
def test_every_part_of_a_mail(memory: Memory, name: str) -> None:
    """It is read once, in its place or under its name, or told."""
    message, words, problems, absent = MAILS[name]
    if "From" not in message:
        headed(message, "Crane")
    text, told = read(memory, f"{name}.eml", bytes(message))
    assert not [one for one in words if one not in text], text
    assert not [one for one in problems if one not in told], told
    assert not [one for one in absent if one in text], text
    assert problems or not told


def test_a_file_of_mails(memory: Memory) -> None:
    """Each mail is a section under its subject with its sender and date, and told by itself."""
    broken = many("mixed", MIMEText("Rope: 40 metres.\n\n>From the shed."), file("\0\1", "a.bin"))
    mails = [headed(MIMEText("Use red lead.\n\nFrom the tin: two coats."), "Paint")]
    mails.append(headed(broken, "Rope"))
    line = b"From ida@example.org Mon Mar  2 10:00:00 2026\n"
    data = b"".join(line + bytes(mail) + b"\n\n" for mail in mails)
    text, told = read(memory, "letters", data)
    assert text == (
        "Paint\nFrom: Ida <ida@example.org>\nTo: per@example.org\nSubject: Paint\n"
        "Date: Mon, 02 Mar 2026 10:00:00 +0100\n\nUse red lead.\n\nFrom the tin: two coats.\n\n"
        "Rope\nFrom: Ida <ida@example.org>\nTo: per@example.org\nSubject: Rope\n"
        "Date: Mon, 02 Mar 2026 10:00:00 +0100\n\nRope: 40 metres.\n\nFrom the shed."
    )
    assert told.startswith("attachment a.bin: ")
    assert "Use red" in read(memory, "one.eml", line + bytes(mails[0]) + b"\n")[0]
    with pytest.raises(UnreadableDocument, match=r"6,000 mails; at most 5,000 are read"):
        memory.add_document((line + b"From: a@b\n\nx\n") * 6_000, name="all.mbox")


PRICE = "<html><head>{}</head><body><p>Café € 40 – “now”</p></body></html>"
CHINESE = "<meta charset={}><p>镕基 颐和园</p>"
PAGES = {
    "a name that is none": (PRICE.format("<meta charset=undefined>").encode(), "Café € 40", True),
    "a codec of Python": (PRICE.format("<meta charset=idna>").encode("cp1252"), "Café € 40", True),
    "Latin-1 by name": (PRICE.format("<meta charset=ISO-8859-1>").encode("cp1252"), "€ 40", False),
    "nothing": (PRICE.format("").encode("cp1252"), "Café € 40 – “now”", True),
    "nothing, and UTF-8": (PRICE.format("").encode(), "Café € 40 – “now”", False),
    "GB2312 by name": (CHINESE.format("gb2312").encode("gbk"), "镕基 颐和园", False),
    "UTF-16 by name": (CHINESE.format("utf-16").encode(), "镕基 颐和园", False),
    "a mark wins": (PRICE.format("<meta charset=gbk>").encode("utf-16"), "Café € 40", False),
    "UTF-16 without a mark": (PRICE.format("").encode("utf-16-le"), "Café € 40", False),
    "MacRoman": (PRICE.format("<meta charset=x-mac-roman>").encode("mac-roman"), "Café", False),
    "Shift_JIS with its additions": ("<meta charset=shift_jis>①".encode("cp932"), "①", False),
    "far behind": (
        PRICE.format(f"<style>{'a' * 9_000}</style><meta http-equiv=Content-Type "
                     "content='text/html; charset=windows-1250'>").replace("now", "łódź")
        .encode("cp1250"), "łódź", False),
    "in a comment": (
        PRICE.format("<!-- <meta charset=koi8-r> --><meta charset=utf-8>").encode(), "Café", False),
    "an XML declaration": (
        b"<?xml version='1.0' encoding='iso-8859-2'?>" + "<html><p>Łódź".encode("iso-8859-2"),
        "Łódź", False),
}  # fmt: skip


@pytest.mark.promise("documents.formats")
@pytest.mark.parametrize("name", PAGES)
def test_encodings_of_pages(memory: Memory, name: str) -> None:
    """As the standard reads their names; what is guessed is told."""
    data, words, is_told = PAGES[name]
    text, told = read(memory, f"{name}.html", data)
    assert words in text
    assert bool(told) == is_told, told


TABLES = {
    "paragraphs, lists and breaks in cells": (
        "<tr><th><p>Door</p></th><th><div>Code</div></th></tr>"
        "<tr><td><p>North</p><p>gate</p></td><td><ul><li>44<li>12</ul>or<br>5</td></tr>",
        ["Door | Code", "North gate | - 44 - 12 or 5"],
    ),
    "empty cells": ("<tr><td><td>x<td><p></p><td>y<tr><td>a<td>b", [" | x |  | y", "a | b"]),
    "cells over others": (
        "<tr><th rowspan=2>Door<th colspan=2>Code<tr><td>day<td>night"
        "<tr><td colspan=2>North<td>4412",
        ["Door | Code | ", " | day | night", "North |  | 4412"],
    ),
    "the head comes first": (
        "<tfoot><tr><td>sum<td>3</tfoot><tbody><tr><td>a<td>3</tbody>"
        "<thead><tr><th>what<th>many</thead>",
        ["what | many", "a | 3", "sum | 3"],
    ),
    "tables within": (
        "<tr><td>North<td>see<table><tr><td>day<td>44<tr><td>night<td>12</table><td>open",
        ["North | see | open", "day | 44", "night | 12"],
    ),
    "a letter that is laid out": (
        "<tr><td>&nbsp;<td><h2>News</h2><p>The crane moves.</p><p>Come.</p>",
        ["News", "The crane moves.", "Come."],
    ),
    "one column": ("<tr><td><p>First.</p><p>Second.</p>", ["First.", "Second."]),
}


@pytest.mark.promise("documents.formats")
@pytest.mark.parametrize("name", TABLES)
def test_rows_of_tables(memory: Memory, name: str) -> None:
    """A row is a line, and a cell keeps its column."""
    rows, lines = TABLES[name]
    done = memory.add_document(f"<p>{name}<table>{rows}</table>".encode(), name=f"{name}.html")
    text = "\n".join(one.text for one in memory.document_sections(done.document.id))
    assert [line for line in text.split("\n") if line] == [name, *lines]


NAMESPACES = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
    'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math" '
    'xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing"'
)


def word(body: str, **parts: str) -> bytes:
    """A DOCX with this body, and parts beside it."""
    out = io.BytesIO()
    parts = {f"word/{name}.xml": content for name, content in parts.items()}
    parts["word/document.xml"] = f"<w:document {NAMESPACES}><w:body>{body}</w:body></w:document>"
    with zipfile.ZipFile(io.BytesIO(docx([("", 0)], title="Document1"))) as old:
        parts = {name: old.read(name).decode() for name in old.namelist()} | parts
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return out.getvalue()


def run(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def mark(kind: str, inner: str = "") -> str:
    return f'<w:r><w:fldChar w:fldCharType="{kind}">{inner}</w:fldChar></w:r>'


def cells(*texts: str) -> str:
    paragraphs = [f"<w:p>{run(text) if text else ''}</w:p>" for text in texts]
    return f"<w:tr>{''.join(f'<w:tc>{one}</w:tc>' for one in paragraphs)}</w:tr>"


LIST = (
    '<w:ffData><w:ddList><w:result w:val="1"/><w:listEntry w:val="Oslo"/><w:listEntry w:val="Hel"/>'
)
BOX = f"<w:txbxContent><w:p>{run('In the box.')}</w:p></w:txbxContent>"
BODIES = {
    "a field": (
        f"{run('To ')}<w:fldSimple w:instr=' REF '>{run('Tromso')}</w:fldSimple>", "To Tromso"),
    "a field of parts": (
        mark("begin") + "<w:r><w:instrText> IF </w:instrText></w:r>" + mark("separate")
        + run("Tromso") + mark("end"), "Tromso"),
    "a list of a form": (mark("begin", f"{LIST}</w:ddList></w:ffData>") + mark("end"), "Hel"),
    "an equation": (
        "<m:oMathPara><m:oMath><m:r><m:t>load=</m:t></m:r><m:f><m:num><m:r><m:t>a+b</m:t></m:r>"
        "</m:num><m:den><m:r><m:t>2</m:t></m:r></m:den></m:f></m:oMath></m:oMathPara>",
        "load=(a+b)/2"),
    "words of another direction": (f"<w:bdo w:val='rtl'>{run('Turned.')}</w:bdo>", "Turned."),
    "a ruby": (
        f"<w:r><w:ruby><w:rubyPr/><w:rt>{run('minato')}</w:rt><w:rubyBase>{run('港')}</w:rubyBase>"
        "</w:ruby></w:r>", "港(minato)"),
    "a text box": (
        f"<w:r><w:drawing><wp:anchor>{BOX}</wp:anchor></w:drawing></w:r>", "In the box."),
}  # fmt: skip


@pytest.mark.promise("documents.formats")
@pytest.mark.parametrize("name", BODIES)
def test_words_of_a_word_document(memory: Memory, name: str) -> None:
    """Whatever element they stand in."""
    body, words = BODIES[name]
    text, told = read(memory, f"{name}.docx", word(f"<w:p>{run(name)}</w:p><w:p>{body}</w:p>"))
    assert text.split("\n")[-1].strip() == words
    assert not told


def test_what_a_word_document_leaves_out(memory: Memory) -> None:
    """Rows are lines; what stands beside the body is told, and "Document1" is no title."""
    table = cells("Item", "Fee", "Code") + cells("Storage", "", "4412")
    words = f"<w:p>{run('Beside.')}</w:p>"
    data = word(
        f"<w:tbl>{table}</w:tbl><w:p><w:altChunk/></w:p>",
        comments=f"<w:comments {NAMESPACES}><w:comment w:id='1'>{words}</w:comment></w:comments>",
        header1=f"<w:hdr {NAMESPACES}>{words}</w:hdr>",
        footer1=f"<w:ftr {NAMESPACES}><w:p/></w:ftr>",
    )
    text, told = read(memory, "fees.docx", data)
    assert text == "Item | Fee | Code\nStorage |  | 4412"
    assert told.split("\n") == [
        "its body: a document within it left out",
        "its headers: 1 header left out",
        "its comments: 1 comment left out",
    ]
    assert memory.document("fees.docx").title == "fees.docx"


def form() -> bytes:
    """A PDF of three pages: text with fields, a picture, and a blank page."""
    from pypdf import PdfReader, PdfWriter
    from pypdf.generic import (
        ArrayObject,
        DictionaryObject,
        NameObject,
        NumberObject,
        StreamObject,
        TextStringObject,
    )

    def names(**entries: object) -> DictionaryObject:
        return DictionaryObject({NameObject(f"/{key}"): value for key, value in entries.items()})

    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf([["Name of the vessel:"], [], []]))))
    kinds = [
        names(FT=NameObject("/Tx"), T=TextStringObject("vessel"), V=TextStringObject("Heron")),
        names(FT=NameObject("/Tx"), T=TextStringObject("empty")),
        names(FT=NameObject("/Btn"), T=TextStringObject("insured"), V=NameObject("/Yes")),
        names(FT=NameObject("/Btn"), T=TextStringObject("leased"), V=NameObject("/Off")),
        names(
            FT=NameObject("/Ch"), T=TextStringObject("p1"), TU=TextStringObject("Home port"),
            V=TextStringObject("h"), Opt=ArrayObject([
                ArrayObject([TextStringObject("h"), TextStringObject("Hel")])]),
        ),
    ]  # fmt: skip
    fields = ArrayObject()
    for field in kinds:
        field.update(names(Subtype=NameObject("/Widget"), Rect=ArrayObject([NumberObject(1)] * 4)))
        fields.append(writer._add_object(field))
    note = names(Subtype=NameObject("/FreeText"), Contents=TextStringObject("Paid in May."))
    writer.pages[0][NameObject("/Annots")] = ArrayObject([*fields, writer._add_object(note)])
    writer.root_object[NameObject("/AcroForm")] = names(Fields=fields)
    drawn = StreamObject()
    drawn.set_data(b"0 0 400 400 re f")
    writer.pages[1][NameObject("/Contents")] = writer._add_object(drawn)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


@pytest.mark.promise("documents.formats")
def test_forms_and_pictures_of_a_pdf(memory: Memory) -> None:
    """Values stand with their names behind the text of their page; a page that is blank is fine."""
    text, told = read(memory, "form.pdf", form())
    assert text == (
        "Name of the vessel:\n\nvessel: Heron\ninsured: Yes\nHome port (p1): Hel\nPaid in May."
    )
    assert told == "page 2: no text: a picture, which an OCR must read first"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (
            ["The policy covers inun-", "dation, and more."],
            "The policy covers inundation,\nand more.",
        ),
        (["the gang-", "way of a well-", "known ship"], "the gangway\nof a well-known\nship"),
        (["nine thou-", "sand long-", "term"], "nine thousand\nlong-term"),
        (["a time-", "consuming co-", "owner"], "a time-consuming\nco-owner"),
        (
            ["the Anglo-", "Saxon GPS-", "based", "COVID-", "19"],
            "the Anglo-Saxon\nGPS-based\nCOVID-19",
        ),
        (["in-", "and outbound"], "in-\nand outbound"),
        (["mother-", "in-law, e-", "mail"], "mother-in-law,\ne-mail"),
        (["a notice-board and notice-", "board"], "a notice-board and notice-board"),
        (["Dampf-", "schiff", "a -", "b"], "Dampfschiff\na -\nb"),
        (["REFURBISH-", "MENT"], "REFURBISHMENT"),
    ],
)
def test_words_cut_at_the_end_of_a_line(memory: Memory, lines: list[str], words: str) -> None:
    """They are whole, and compounds keep their hyphens."""
    assert read(memory, f"{lines[0]}.pdf", pdf([lines]))[0] == words


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("Harbour rules", "Harbour rules"),
        ("untitled", "harbour.pdf"),
        ("Microsoft Word - rules.doc", "harbour.pdf"),
        ("10811.exe", "harbour.pdf"),
        ("Document1", "harbour.pdf"),
        ("  ", "harbour.pdf"),
    ],
)
def test_titles_that_mean_nothing(memory: Memory, title: str, shown: str) -> None:
    """They give way to the name of the file."""
    done = memory.add_document(pdf([[f"Called {title}."]], title=title), name="harbour.pdf")
    assert done.document.title == shown


@pytest.mark.promise("documents.hostile")
@pytest.mark.parametrize(
    ("name", "stream", "advice"),
    [
        ("letter.msg", "", "mail of Outlook: save it as a mail"),
        ("letter", "__nameid_version1.0", "mail of Outlook: save it as a mail"),
        ("table.xls", "Workbook", "spreadsheet of Excel 97 to 2003: save it as PDF"),
        ("locked.docx", "EncryptedPackage", "encrypted: save a copy without a password"),
    ],
)
def test_files_of_old_programs(memory: Memory, name: str, stream: str, advice: str) -> None:
    """The advice is that of their kind."""
    data = b"\xd0\xcf\x11\xe0" + bytes(600) + stream.encode("utf-16-le") + bytes(600)
    with pytest.raises(UnreadableDocument, match=advice):
        memory.add_document(data, name=name)


def test_the_title_falls_to_the_name(memory: Memory, tmp_path: Path) -> None:
    """Of a file the last part of its path is shown."""
    (tmp_path / "boat insurance.pdf").write_bytes(pdf([["Premium 840."]], title="untitled"))
    assert "boat insurance" in memory.add_document(tmp_path / "boat insurance.pdf").document.title
