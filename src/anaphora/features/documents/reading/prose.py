"""Plain text and Markdown: unchanged, except for the byte order mark."""

from __future__ import annotations

from typing import Final

from anaphora.features.documents.reading.base import ExtractedDocument, Reading, TextBlock, one_line
from anaphora.features.documents.values import DocumentFormat

_HEAD: Final = 1_024
_MOSTLY: Final = 0.4
_CONTROLS: Final = frozenset(chr(code) for code in range(32)) - set("\t\n\r\f\v\x1b")


def read_text(data: bytes, reading: Reading) -> ExtractedDocument:
    """A file of plain text, in one block."""
    return _make_document(decoded_text(data, reading), "text", reading)


def read_markdown(data: bytes, reading: Reading) -> ExtractedDocument:
    """A file of Markdown, a block for each heading."""
    text = decoded_text(data, reading)
    plain = _make_document(text, "markdown", reading)
    blocks = tuple(prose_blocks(text))
    title = next((block.heading[0] for block in blocks if block.heading), None)
    return ExtractedDocument(plain.format, blocks or plain.blocks, title)


def read_notebook(data: bytes, reading: Reading) -> ExtractedDocument:
    """A notebook: the sources of its cells, as Markdown."""
    from anaphora.ingest.files.notebooks import BrokenNotebook, notebook_text

    try:
        text = notebook_text(decoded_text(data, reading))
    except BrokenNotebook as error:
        raise reading.refuse(str(error)) from error
    return read_markdown(text.encode("utf-8", "replace"), reading)


def decoded_text(data: bytes, reading: Reading) -> str:
    """UTF-8, UTF-16, else Windows-1252, which is noted.

    `UnreadableDocument` for anything else, such as a file of another program.
    """
    text = ""
    start = data[:_HEAD]
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = data.decode("utf-16", "replace")
    elif start[1::2].count(0) > _MOSTLY * len(start):
        # Without a mark, as Windows wrote it: every second byte of most letters is zero.
        text = data.decode("utf-16-le", "replace")
    else:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            try:
                text = data.decode("cp1252")
            except UnicodeDecodeError:
                raise reading.other(_UNKNOWN) from error
            reading.problem(f"byte {error.start:,}", "it is not UTF-8; read as Windows-1252")
    if not _CONTROLS.isdisjoint(text):
        raise reading.other(_UNKNOWN)
    return text


_UNKNOWN: Final = "it is no PDF, DOCX, HTML, mail, Markdown or plain text"


def prose_blocks(text: str) -> list[TextBlock]:
    """Markdown in blocks, each under its headings; nothing is left out."""
    from anaphora.ingest.sections.markdown import markdown_starts

    lines = text.split("\n")
    starts = markdown_starts(lines, "")
    blocks: list[TextBlock] = []
    for number, start in enumerate(starts):
        first_line = start.start - 1 if number else 0
        stop = starts[number + 1].start - 1 if number + 1 < len(starts) else len(lines)
        is_heading = start.kind == "heading" and start.title
        heading = (*start.heading, start.title) if is_heading else start.heading
        section_text = "\n".join(lines[first_line:stop]).strip("\n")
        if section_text.strip():
            blocks.append(TextBlock(section_text, tuple(title for title in heading if title)))
    return blocks


def _make_document(text: str, form: DocumentFormat, reading: Reading) -> ExtractedDocument:
    if not text.strip():
        raise reading.other("it has no text")
    return ExtractedDocument(form, (TextBlock(reading.count(text).strip("\n")),), one_line(None))
