"""Files that are made to be slow to read, of a size in bytes: what readers once took the square of
it for. Of a DOCX the size is that of what it unpacks to."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.document_files import docx, pdf

__all__ = ["DOCUMENTS", "IMPORTS"]

Maker = Callable[[int], bytes]

_LINE: Final = "The harbour opens at six in the morning."


def _repeated(part: bytes, head: bytes = b"", tail: bytes = b"") -> Maker:
    """Files of a part again and again, between a head and a tail."""
    return lambda size: head + part * (size // len(part)) + tail


def _said(message: Callable[[int], Any]) -> Maker:
    """Files of one value a line, which is made for the size."""
    return lambda size: json.dumps(message(size)).encode() + b"\n"


def _command(size: int) -> dict[str, Any]:
    message = {"role": "user", "content": "<command-name>" * (size // 14)}
    when = "2026-03-10T09:00:00.000Z"
    return {"type": "user", "uuid": "m", "parentUuid": None, "sessionId": "s", "timestamp": when,
            "message": message}  # fmt: skip


def _query(size: int) -> dict[str, Any]:
    text = " " * (size // 2) + "<user_query>" * (size // 24)
    return {"role": "user", "message": {"content": [{"type": "text", "text": text}]}}


DOCUMENTS: Final[Mapping[str, tuple[str, Maker]]] = {
    "DOCX, paragraphs of a letter": (
        "a.docx",
        lambda size: docx([("a", 0)] * (size // 34), title="a"),
    ),
    "Markdown, blanks in a heading": ("a.md", _repeated(b" ", b"# a", b"b")),
    "PDF, one page": ("a.pdf", lambda size: pdf([[_LINE] * (size // 50)])),
}
IMPORTS: Final[Mapping[str, tuple[str, Maker]]] = {
    "basic-memory, blanks": (
        "a.md",
        _repeated(b" ", b"---\ntitle: a\npermalink: a/b\n---\n\n# a\n- [decision] a", b"(b\n"),
    ),
    "note, blanks in front matter": (
        "a.md",
        _repeated(b" ", b"---\na: b", b"c\n- d\n---\n\n# Harbour\n\nIt opens.\n"),
    ),
    "Claude Code, one command": ("a.jsonl", _said(_command)),
    "Cursor, one query": ("a.jsonl", _said(_query)),
}
