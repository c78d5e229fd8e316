"""The bytes of a file into text. It follows no link and waits for no pipe."""

from __future__ import annotations

import codecs
import hashlib
import os
import re
import stat
from typing import Final

from anaphora.ingest.files.notebooks import BrokenNotebook, notebook_text
from anaphora.ingest.files.walking import (
    MAX_BYTES,
    FileText,
    FoundFile,
    is_notebook,
    most_bytes,
)
from anaphora.values.files import Skipped

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    # The mark of UTF-32 begins with that of UTF-16, so it is looked at first.
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DECLARED = re.compile(rb"(?:coding|charset|encoding)[:=][ \t]*[\"']?([A-Za-z0-9._-]+)")
_CONTROL: Final = bytes(byte for byte in range(32) if byte not in b"\t\n\r\f\v\b\x1b") + b"\x7f"
_MOST_CONTROL: Final = 0.02
"""The share of control characters above which bytes are no text in a one-byte encoding."""
_SAMPLE: Final = 8_192
_LONG_LINE: Final = 2_000
_MINIFIED_BYTES: Final = 20_000


def read(found: FoundFile) -> FileText | Skipped:
    """The text of a file, or why it has none.

    Reasons: "binary", "too_large" (it grew), "gone", "unreadable", "not_a_file" (it became
    something else), "minified" (over 20 KB in lines of over 2,000 bytes on average),
    "broken_notebook". Of a notebook the sources of its cells are the text, and sizes are theirs.
    """
    # What the path names may have been exchanged for a link or a pipe since it was found.
    flags = os.O_RDONLY
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
        flags |= getattr(os, name, 0)
    max_bytes = most_bytes(found.path)
    try:
        with os.fdopen(os.open(found.absolute, flags), "rb") as open_file:
            if not stat.S_ISREG(os.fstat(open_file.fileno()).st_mode):
                return Skipped(found.path, "not_a_file")
            content = open_file.read(max_bytes + 1)
    except OSError as error:
        is_gone = isinstance(error, FileNotFoundError)
        return Skipped(found.path, "gone" if is_gone else "unreadable")
    if len(content) > max_bytes:
        return Skipped(found.path, "too_large")
    words = text_of(content)
    if words is None:
        return Skipped(found.path, "binary")
    size = len(content)
    if is_notebook(found.path):
        try:
            words = notebook_text(words)
        except BrokenNotebook:
            return Skipped(found.path, "broken_notebook")
        size = len(words)
        if size > MAX_BYTES:
            return Skipped(found.path, "too_large")
    if size > _MINIFIED_BYTES and size / (words.count("\n") + 1) > _LONG_LINE:
        return Skipped(found.path, "minified")
    return FileText(words, hashlib.sha256(content).hexdigest())


def text_of(data: bytes) -> str | None:
    """The text that bytes are, with lines that end in line feeds; None if they are none."""
    marked = next((encoding for mark, encoding in _MARKS if data.startswith(mark)), "")
    if marked:
        words = _decode_as(data, marked)
    elif b"\0" in data:
        # The likely UTF-16 encoding without a mark: half of the bytes are NUL, on one side.
        sample = data[:_SAMPLE]
        half = len(sample) // 2
        even, odd = sample[0::2].count(0), sample[1::2].count(0)
        if half and odd > 0.7 * half and even < 0.05 * half:
            encoding = "utf-16-le"
        elif half and even > 0.7 * half and odd < 0.05 * half:
            encoding = "utf-16-be"
        else:
            encoding = ""
        words = _decode_as(data, encoding) if encoding else None
        words = None if words is None or "\0" in words else words
    elif len(data) - len(data.translate(None, _CONTROL)) > _MOST_CONTROL * len(data):
        words = None
    else:
        # What is no UTF-8 is in the encoding that it declares, else in Western Windows' or Latin-1.
        declared = _DECLARED.search(b"\n".join(data[:1_000].split(b"\n", 2)[:2]))
        names = [declared[1].decode("ascii").lower()] if declared else []
        tried = (_decode_as(data, name) for name in ("utf-8", *names, "cp1252", "latin-1"))
        words = next((text for text in tried if text is not None), None)
    return None if words is None else words.replace("\r\n", "\n").replace("\r", "\n")


def _decode_as(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except (LookupError, ValueError):
        return None
