"""A folder as a person has one: twenty files of as many kinds, in the formats of their programs."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.document_files import docx, mail, pdf

_CHAT: Final = {"content_type": "text", "parts": ["My bicycle takes a tube of 47-622."]}
_MESSAGE: Final = {"id": "a", "author": {"role": "user"}, "content": _CHAT}
_NODE: Final[dict[str, object]] = {"id": "a", "parent": None, "children": [], "message": _MESSAGE}
_MEMORY: Final = {"id": "m", "memory": "Noor is allergic to hazelnuts.", "user_id": "noor"}
_CELL: Final = {"cell_type": "markdown", "metadata": {}, "source": ["High water is at noon."]}
_NOTEBOOK: Final = {"cells": [_CELL], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
_EVENT: Final = "BEGIN:VEVENT\r\nUID:1\r\nDTSTART:20260407T140000Z\r\nSUMMARY:Dentist\r\nEND:VEVENT"
_FROM: Final = "From a@b Tue Mar  3 09:00:00 2026\nFrom: a@b\n"


def packed(files: Mapping[str, str | bytes]) -> bytes:
    """A zip file of these."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


TAKEN: Final[dict[str, tuple[bytes, str, str]]] = {
    "ferry.jsonl": (b'{"role": "user", "text": "The ferry leaves at nine."}\n', "ferry", "turn"),
    "conversations.json": (
        json.dumps([{"id": "o", "mapping": {"a": _NODE}}]).encode(), "bicycle tube", "turn",
    ),
    "mem0.json": (json.dumps({"results": [_MEMORY]}).encode(), "hazelnuts", "memory"),
    "WhatsApp.zip": (
        packed({"_chat.txt": "[05/01/2026] Ola: It is under the pot"}), "under the pot", "document",
    ),
    "lease.pdf": (pdf([["The monthly rent is 1200 euros."]]), "rent", "document"),
    "handbook.docx": (docx([("Holidays", 1), ("Thirty days off.", 0)]), "holidays", "document"),
    "car.html": (b"<html><body><p>The inspection is due in <b>May</b>.", "inspection", "document"),
    "books.txt": (b"To read: The Leopard, by Lampedusa.", "Leopard", "document"),
    "expenses.csv": (b"date,item,price\n2026-01-05,Ladder,45.00\n", "ladder", "document"),
    "recipe.json": (b'{"recipe": "Waffles", "flour": "250 grams"}', "waffles", "document"),
    "band.md": (b"# Band\n\nRehearsal is every Thursday.\n", "rehearsal", "document"),
    "offer.eml": (mail("Roof", "The roof costs 3400 euros."), "roof", "document"),
    "club.mbox": (
        f"{_FROM}Subject: Dues\n\nDues are 80.\n\n{_FROM}Subject: Race\n\nAt Marken.\n".encode(),
        "dues", "document",
    ),
    "dentist.ics": (
        f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\n{_EVENT}\r\nEND:VCALENDAR\r\n".encode(),
        "dentist", "document",
    ),
    "tides.ipynb": (json.dumps(_NOTEBOOK).encode(), "high water", "document"),
}  # fmt: skip
"""What goes in: its bytes, words that find it, and the kind of the hit."""

LEFT: Final[dict[str, tuple[bytes, str]]] = {
    "photo.jpg": (b"\xff\xd8\xff\xe0" + bytes(range(256)), "picture"),
    "scan": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "picture"),
    "backup.tar.gz": (b"\x1f\x8b\x08\x00" + bytes(200), "archive: unpack it first"),
    "setup.exe": (b"MZ" + bytes(500), "program"),
    "budget.xlsx": (packed({"[Content_Types].xml": "", "xl/workbook.xml": ""}), "spreadsheet"),
}
"""What does not: its bytes, and what it is said to be."""


def write_everything(folder: Path) -> list[Path]:
    """All of them."""
    folder.mkdir()
    contents = {name: content for name, (content, *_) in TAKEN.items()}
    contents |= {name: content for name, (content, _) in LEFT.items()}
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return sorted(folder.iterdir())
