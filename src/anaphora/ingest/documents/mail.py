"""The text of a mail (RFC 5322, MIME): who wrote what to whom, its body, and its attachments.

Of a body in several forms the plain one is taken. An attachment is read as the file that it is, and
stands under its name; what cannot be read, such as a picture, is a problem with its name.
"""

from __future__ import annotations

import email
import email.policy
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from email.message import EmailMessage
from typing import Any, Final, TypeAlias, cast

from anaphora.core.arguments import has_utc
from anaphora.errors import MissingExtra, UnreadableDocument
from anaphora.ingest.documents.base import BROKEN, ExtractedDocument, Reading, TextBlock, one_line
from anaphora.ingest.documents.html import read_markup

ReadPart: TypeAlias = Callable[[bytes, Reading], ExtractedDocument]

_SHOWN: Final = ("From", "To", "Cc", "Subject", "Date")
_UNNAMED: Final = "attachment"


def read_mail(data: bytes, reading: Reading, read_part: ReadPart) -> ExtractedDocument:
    """A mail; `read_part` reads a file that is attached to it."""
    try:
        message = email.message_from_bytes(data, policy=email.policy.default)
    except BROKEN as error:
        raise reading.refuse(f"it is damaged: {error}") from error
    return _read(message, reading, read_part)


def _read(message: EmailMessage, reading: Reading, read_part: ReadPart) -> ExtractedDocument:
    told = {name: _header(message, name) for name in _SHOWN}
    head = "\n".join(f"{name}: {value}" for name, value in told.items() if value)
    blocks = list(reading.counted([TextBlock(head)]))
    blocks += _body(message, reading)
    for name, part in _attachments(message, reading):
        blocks += _attached(name, part, reading, read_part)
    if not blocks:
        raise reading.refuse("it has no text")
    date = None
    with suppress(*BROKEN):
        date = cast(Any, message["date"]).datetime
    if date is not None and (date.tzinfo is None or not has_utc(date)):
        date = None
    return ExtractedDocument("mail", tuple(blocks), told["Subject"], told["From"], date)


def _header(message: EmailMessage, name: str) -> str | None:
    # A header that breaks the standard may raise anything when it is read.
    with suppress(*BROKEN):
        return one_line(message[name])
    return None


def _body(message: EmailMessage, reading: Reading) -> tuple[TextBlock, ...]:
    found: EmailMessage | None = None
    with suppress(*BROKEN):
        found = cast("EmailMessage | None", message.get_body(("plain", "html")))
    if found is None:
        return ()
    text = _text_of(found, reading, "its body")
    if found.get_content_type() == "text/html":
        return read_markup(text, reading).blocks
    return reading.counted([TextBlock(text.strip("\n"))])


def _text_of(part: EmailMessage, reading: Reading, place: str) -> str:
    try:
        text = part.get_content()
    except BROKEN as error:
        reading.problem(place, f"its encoding is not as it says ({error}); read as UTF-8")
        text = _bytes_of(part).decode("utf-8", "replace")
    return str(text).replace("\r\n", "\n").replace("\x00", "")


def _bytes_of(part: EmailMessage) -> bytes:
    found = part.get_payload(decode=True)
    return found if isinstance(found, bytes) else b""


def _attachments(message: EmailMessage, reading: Reading) -> Iterator[tuple[str, EmailMessage]]:
    try:
        parts = list(message.iter_attachments())
    except BROKEN as error:
        # A mail of one part has none; its library says so with an error.
        if message.is_multipart():
            reading.problem("its attachments", error)
        return
    if len(parts) > reading.limits.parts:
        most = reading.limits.parts
        raise reading.refuse(f"it has {len(parts):,} attachments; {most:,} at most")
    for part in parts:
        name = None
        with suppress(*BROKEN):
            name = one_line(part.get_filename())
        yield name or _UNNAMED, part


def _attached(
    name: str, part: EmailMessage, reading: Reading, read_part: ReadPart
) -> list[TextBlock]:
    inner = reading.part(name)
    try:
        if part.get_content_type() == "message/rfc822":
            found = _read(part.get_content(), inner, read_part)
            name = name if name != _UNNAMED else found.title or name
        else:
            found = read_part(_bytes_of(part), inner)
    except MissingExtra:
        raise
    except UnreadableDocument as error:
        # Over a limit that all parts share there is no use in going on.
        if "characters of text" in error.reason or "nested" in error.reason:
            raise reading.refuse(error.reason) from error
        reading.problem(f"attachment {name}", error.reason)
        return []
    except BROKEN as error:
        reading.problem(f"attachment {name}", error)
        return []
    return [replace(block, heading=(name, *block.heading)) for block in found.blocks]
