"""The text of a Word document by its headings: mammoth makes HTML of it, `html` blocks of that.

A DOCX is a zip of XML. What it unpacks to and its elements are counted before anything of it is
held, and XML that declares entities of its own (billion laughs, external entities) is refused: Word
writes none.
"""

from __future__ import annotations

import io
import zipfile
from contextlib import suppress
from datetime import datetime
from typing import Any, Final
from xml.etree import ElementTree
from xml.parsers.expat import ExpatError, ParserCreate

from anaphora.core.arguments import has_utc
from anaphora.errors import MissingExtra, UnreadableDocument
from anaphora.ingest.documents.base import BROKEN, ExtractedDocument, Reading, one_line
from anaphora.ingest.documents.html import read_markup

DOCUMENT: Final = "word/document.xml"
_CORE: Final = "docProps/core.xml"
_NAMES: Final = {
    "title": "{http://purl.org/dc/elements/1.1/}title",
    "author": "{http://purl.org/dc/elements/1.1/}creator",
    "date": "{http://purl.org/dc/terms/}modified",
}
_CHUNK: Final = 1 << 20
_LONGEST_RUN: Final = 4_000_000
"""Characters between two tags. A library puts them together piece by piece, at a cost that grows
with the square of their number."""


def read_docx(data: bytes, reading: Reading) -> ExtractedDocument:
    """The document's body with its lists, tables and notes. `UnreadableDocument`, `MissingExtra`.

    Headers and footers of pages, pictures and comments are left out.
    """
    try:
        import mammoth
    except ImportError as error:
        raise MissingExtra("documents", "mammoth") from error
    _refuse_hostile(data, reading)
    try:
        made = mammoth.convert_to_html(
            io.BytesIO(data),
            convert_image=_no_image,
            include_embedded_style_map=False,
            external_file_access=False,
        )
    except (*BROKEN, zipfile.BadZipFile, ExpatError) as error:
        raise reading.refuse(f"it is damaged, or not as Word writes it: {error}") from error
    found = read_markup(made.value, reading)
    if not found.blocks:
        raise reading.refuse("it has no text")
    told: dict[str, Any] = {}
    with suppress(*BROKEN, zipfile.BadZipFile, ElementTree.ParseError):
        told = _told(data)
    title = told.pop("title", None) or found.title
    return ExtractedDocument("docx", found.blocks, title, **told)


def names_in(data: bytes) -> frozenset[str]:
    """What a zip file holds; nothing where it is none."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return frozenset(archive.namelist())
    except (*BROKEN, zipfile.BadZipFile):
        return frozenset()


def _no_image(_: object) -> list[object]:
    return []


def _refuse_hostile(data: bytes, reading: Reading) -> None:
    limits = reading.limits
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            if len(members) > limits.parts:
                raise reading.refuse(f"it has {len(members):,} parts; {limits.parts:,} at most")
            size = sum(one.file_size for one in members)
            if size > limits.unpacked:
                raise reading.refuse(f"it unpacks to {size:,} bytes; {limits.unpacked:,} at most")
            if any(one.flag_bits & 1 for one in members):
                raise reading.refuse("it is encrypted: save a copy without a password")
            for member in members:
                _inspect(archive, member, reading)
    except UnreadableDocument:
        raise
    except (*BROKEN, zipfile.BadZipFile) as error:
        raise reading.refuse(f"it is damaged: {error}") from error


def _inspect(archive: zipfile.ZipFile, member: zipfile.ZipInfo, reading: Reading) -> None:
    """Look through a part as a reader of XML does, whatever its name is: relations may name any.

    `UnreadableDocument` where it declares entities, or has too many elements. What is no XML is no
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


def _told(data: bytes) -> dict[str, Any]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if _CORE not in archive.namelist():
            return {}
        core = ElementTree.fromstring(archive.read(_CORE))  # noqa: S314 - without a DTD, see above
    found = {name: one_line(core.findtext(path)) for name, path in _NAMES.items()}
    told: dict[str, Any] = {name: found[name] for name in ("title", "author")}
    if found["date"]:
        date = datetime.fromisoformat(found["date"])
        if date.tzinfo is not None and has_utc(date):
            told["date"] = date
    return told
