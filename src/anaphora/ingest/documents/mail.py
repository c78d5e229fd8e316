"""The text of a mail (RFC 5322, MIME): who wrote what to whom, its body, and its attachments.

Of a body in several forms the plain one is taken. An attachment is read as the file that it is, and
stands under its name; what cannot be read, such as a picture, is a problem with its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from email.feedparser import BytesFeedParser
from email.message import EmailMessage
from email.policy import EmailPolicy, Policy
from typing import Any, Final, TypeAlias, cast

from anaphora.core.arguments import has_utc
from anaphora.errors import MissingExtra, UnreadableDocument
from anaphora.ingest.documents.base import (
    BROKEN,
    BudgetName,
    ExtractedDocument,
    Reading,
    TextBlock,
    TooMuch,
    one_line,
)
from anaphora.ingest.documents.encodings import decoded
from anaphora.ingest.documents.html import read_markup

ReadPart: TypeAlias = Callable[[bytes, Reading], ExtractedDocument]

_SHOWN: Final = ("From", "To", "Cc", "Subject", "Date")
_UNNAMED: Final = "attachment"
_LONGEST_HEADER: Final = 8_000
"""Characters of a header: some 300 addresses."""
_DEEPEST: Final = 20
_CHUNK: Final = 1 << 16


def read_mail(data: bytes, reading: Reading, read_part: ReadPart) -> ExtractedDocument:
    """A mail; `read_part` reads a file that is attached to it."""
    try:
        message = _parsed(data, reading)
    except TooMuch:
        raise
    except BROKEN as error:
        raise reading.refuse(f"it is damaged: {error}") from error
    return _read(message, reading, read_part)


class _BoundedPolicy(EmailPolicy):
    """Keeps the beginning of a header that is too long: what a header says is only parsed when it
    is asked for, at a cost that grows with the square of its length."""

    spend: Callable[[BudgetName], None] | None = None

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        """The name and the value of a header, out of its lines."""
        if self.spend is not None:
            self.spend("elements")
        name, value = sourcelines[0].split(":", 1)
        parts, length = [value.lstrip(" \t")], len(value)
        for line in sourcelines[1:]:
            if length > _LONGEST_HEADER:
                break
            parts.append(line)
            length += len(line)
        return name, "".join(parts)[:_LONGEST_HEADER].rstrip("\r\n")


def _parsed(data: bytes, reading: Reading) -> EmailMessage:
    parsers: list[Any] = []

    def make_part(*, policy: Policy) -> EmailMessage:
        reading.spend("parts")
        # Each line of a part is looked at once for each part that it is in.
        if parsers and len(getattr(parsers[0], "_msgstack", ())) > _DEEPEST:
            raise TooMuch("document", reading.name, f"it is nested more than {_DEEPEST} deep")
        return EmailMessage(policy=policy)

    policy = cast(Any, _BoundedPolicy)(spend=reading.spend)
    # Its own kind of factory, of one argument by name, is the one that typeshed does not have.
    parser: Any = BytesFeedParser(cast(Any, make_part), policy=policy)
    parsers.append(parser)
    for start in range(0, len(data), _CHUNK):
        parser.feed(data[start : start + _CHUNK])
    return cast(EmailMessage, parser.close())


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
    data, name = _bytes_of(part), None
    with suppress(*BROKEN):
        name = part.get_content_charset()
    text = decoded(data, name or "utf-8", reading, place)
    return text.replace("\r\n", "\n").replace("\x00", "")


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
    except TooMuch:
        raise
    except UnreadableDocument as error:
        reading.problem(f"attachment {name}", error.reason)
        return []
    except BROKEN as error:
        reading.problem(f"attachment {name}", error)
        return []
    return [replace(block, heading=(name, *block.heading)) for block in found.blocks]
