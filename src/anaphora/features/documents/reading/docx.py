"""The text of a Word document by its headings: mammoth makes HTML of it, `html` blocks of that.

A DOCX is a zip of XML. What it unpacks to and its elements are counted before anything of it is
held, and XML that declares entities of its own (billion laughs, external entities) is refused: Word
writes none.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from typing import Any, Final
from xml.etree import ElementTree
from xml.parsers.expat import ExpatError, ParserCreate

from anaphora.calls.moments import has_utc
from anaphora.errors import UnreadableDocument
from anaphora.features.documents.reading.base import (
    BROKEN,
    ExtractedDocument,
    Reading,
    meant_title,
    one_line,
)
from anaphora.features.documents.reading.html import read_markup
from anaphora.features.documents.reading.word_xml import readable_word

_BODY: Final = re.compile(r"word/document\d*\.xml\Z")
_CORE: Final = "docProps/core.xml"
_NAMES: Final = {
    "title": "{http://purl.org/dc/elements/1.1/}title",
    "author": "{http://purl.org/dc/elements/1.1/}creator",
    "date": "{http://purl.org/dc/terms/}modified",
}
_UNREAD_ELEMENT: Final = "An unrecognised element was ignored: "
_NAMED: Final = {
    "w:altChunk": "a document within it left out",
    "w:subDoc": "a document beside it left out",
}
_WORDLESS: Final = frozenset(
    ("w:tblPrEx", "w:softHyphen", "w:pgNum", "w:tblPrExChange", "w:sdtEndPr", "o:OLEObject",
     "w:separator", "w:continuationSeparator", "w:control", "w:dayLong", "w:dayShort",
     "w:monthLong", "w:monthShort", "w:yearLong", "w:yearShort", "w:delInstrText", "w:customXmlPr",
     "w:smartTagPr", "v:path", "v:stroke", "v:fill", "v:formulas", "v:handles", "v:line", "v:oval",
     "o:lock", "office-word:anchorlock", "w:framePr")
)  # fmt: skip
_BESIDE: Final = re.compile(
    r"word/(header|footer|comments|charts/chart|diagrams/data|embeddings/)\d*(?:\.xml\Z|[^/]+\Z)"
)
_COMMENT: Final = re.compile(rb"<(?:\w+:)?comment[\s>]")
_TEXT: Final = re.compile(rb"<(?:\w+:)?t(?:\s[^>]{0,100})?>[^<]")
_CHUNK: Final = 1 << 20
_LONGEST_RUN: Final = 4_000_000
"""Characters between two tags. A library puts them together piece by piece, at a cost that grows
with the square of their number."""


def read_docx(data: bytes, reading: Reading) -> ExtractedDocument:
    """The document's body with its lists, tables and notes. `UnreadableDocument`.

    Headers and footers of pages, pictures and comments are left out, which is noted.
    """
    import mammoth

    _refuse_hostile(data, reading)
    pictures: list[object] = []

    def leave_out(image: object) -> list[object]:
        pictures.append(image)
        return []

    try:
        html_page = mammoth.convert_to_html(
            io.BytesIO(readable_word(data)),
            convert_image=leave_out,
            include_embedded_style_map=False,
            external_file_access=False,
        )
    except (*BROKEN, zipfile.BadZipFile, ExpatError, ElementTree.ParseError) as error:
        raise reading.refuse(f"it is damaged, or not as Word writes it: {error}") from error
    if pictures:
        reading.problem("its pictures", f"{_count_noun(len(pictures), 'picture')} left out")
    for reason, count in _count_ignored(message.message for message in html_page.messages).items():
        reading.problem("its body", reason if count == 1 else f"{reason} ({count:,} times)")
    with suppress(*BROKEN, zipfile.BadZipFile):
        for position, reason in _find_beside_body(data):
            reading.problem(position, reason)
    page = read_markup(html_page.value, reading)
    if not page.blocks:
        raise reading.refuse("it has no text")
    properties: dict[str, Any] = {}
    with suppress(*BROKEN, zipfile.BadZipFile, ElementTree.ParseError):
        properties = _read_properties(data)
    title = meant_title(properties.pop("title", None)) or page.title
    return ExtractedDocument("docx", page.blocks, title, **properties)


def names_in(data: bytes) -> frozenset[str]:
    """The names in a zip file; none if it is not one."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return frozenset(archive.namelist())
    except (*BROKEN, zipfile.BadZipFile):
        return frozenset()


def is_body(name: str) -> bool:
    """Whether a member of a zip file is what a Word document says."""
    return _BODY.match(name) is not None


def _count_noun(count: int, name: str) -> str:
    return f"{count:,} {name}{'' if count == 1 else 's'}"


def _count_ignored(messages: Iterable[str]) -> Counter[str]:
    """The elements that mammoth reports as ignored, with counts; unknown styles do not count."""
    ignored_counts: Counter[str] = Counter()
    for message in messages:
        name = message.removeprefix(_UNREAD_ELEMENT)
        if name != message:
            if name not in _WORDLESS and not name.endswith(("Start", "End")):
                ignored_counts[_NAMED.get(name, f"{name} left out")] += 1
        elif "ignored" in message:
            ignored_counts[message] += 1
    return ignored_counts


def _find_beside_body(data: bytes) -> Iterable[tuple[str, str]]:
    """What is in a document beside the text of its body, and is left out."""
    words: Counter[str] = Counter()
    embedded_counts: Counter[str] = Counter()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in dict.fromkeys(archive.namelist()):
            kind = _BESIDE.match(name)
            if kind is None:
                continue
            if kind[1] in {"charts/chart", "diagrams/data", "embeddings/"}:
                embedded_counts[kind[1]] += 1
            elif kind[1] == "comments":
                words["comment"] += len(_COMMENT.findall(archive.read(name)))
            elif _TEXT.search(archive.read(name)):
                words[kind[1]] += 1
    for name in ("header", "footer", "comment"):
        if words[name]:
            yield f"its {name}s", f"{_count_noun(words[name], name)} left out"
    for part, name in (("charts/chart", "chart"), ("diagrams/data", "diagram"),
                       ("embeddings/", "embedded file")):  # fmt: skip
        if embedded_counts[part]:
            yield f"its {name}s", f"{_count_noun(embedded_counts[part], name)} left out"


def _refuse_hostile(data: bytes, reading: Reading) -> None:
    limits = reading.limits
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            if len(members) > limits.parts:
                raise reading.refuse(f"it has {len(members):,} parts; {limits.parts:,} at most")
            size = sum(info.file_size for info in members)
            if size > limits.unpacked:
                raise reading.refuse(f"it unpacks to {size:,} bytes; {limits.unpacked:,} at most")
            if any(info.flag_bits & 1 for info in members):
                raise reading.refuse("it is encrypted: save a copy without a password")
            for member in members:
                _inspect(archive, member, reading)
    except UnreadableDocument:
        raise
    except (*BROKEN, zipfile.BadZipFile) as error:
        raise reading.refuse(f"it is damaged: {error}") from error


def _inspect(archive: zipfile.ZipFile, member: zipfile.ZipInfo, reading: Reading) -> None:
    """Scan a part as an XML reader does. Its name does not matter: relations may name any part.

    `UnreadableDocument` if it declares entities, or has too many elements. What is no XML is no
    trouble: no reader gets further than here.
    """
    run = 0

    def count(*_: object) -> None:
        nonlocal run
        run = 0
        reading.spend("elements")

    def begin(_: str, attributes: list[str]) -> None:
        count()
        reading.spend("elements", len(attributes) // 2)

    def refuse(*_: object) -> None:
        raise reading.refuse(f"{member.filename} in it declares entities, which Word never does")

    def measure(text: str) -> None:
        nonlocal run
        run += len(text)
        if run > _LONGEST_RUN:
            reason = f"a text in it has more than {_LONGEST_RUN:,} characters without an end"
            raise reading.refuse(reason)

    parser = ParserCreate()
    parser.ordered_attributes = True
    parser.buffer_text = True
    parser.StartElementHandler = begin
    parser.CommentHandler = parser.ProcessingInstructionHandler = count
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    parser.CharacterDataHandler = measure
    with archive.open(member) as file, suppress(ExpatError):
        while piece := file.read(_CHUNK):
            reading.spend("unpacked", len(piece))
            parser.Parse(piece, False)


def _read_properties(data: bytes) -> dict[str, Any]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if _CORE not in archive.namelist():
            return {}
        core = ElementTree.fromstring(archive.read(_CORE))  # noqa: S314 - without a DTD, see above
    texts = {name: one_line(core.findtext(path)) for name, path in _NAMES.items()}
    properties: dict[str, Any] = {name: texts[name] for name in ("title", "author")}
    if texts["date"]:
        date = datetime.fromisoformat(texts["date"])
        if date.tzinfo is not None and has_utc(date):
            properties["date"] = date
    return properties
