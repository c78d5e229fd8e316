"""The text of a mail (RFC 5322, MIME): its headers, its letter, and its attachments.

A mail is a tree of parts, and every part is read: those of a letter in their order, the most
complete form of a letter that comes in several, and every other part, at any depth, as an
attachment. An attachment is read as the file that it is, under its name; an unreadable one, such
as a picture or a signature, is a problem with its name.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from email.feedparser import BytesFeedParser
from email.message import EmailMessage
from email.policy import EmailPolicy, Policy
from functools import cached_property
from typing import Any, Final, TypeAlias, cast

from anaphora.calls.moments import has_utc
from anaphora.errors import UnreadableDocument
from anaphora.features.documents.reading.base import (
    BROKEN,
    BudgetName,
    ExtractedDocument,
    Reading,
    TextBlock,
    TooMuch,
    one_line,
)
from anaphora.features.documents.reading.calendars import read_calendar
from anaphora.features.documents.reading.encodings import decoded
from anaphora.features.documents.reading.html import decoded_html, read_markup

ReadPart: TypeAlias = Callable[[bytes, Reading], ExtractedDocument]

_SHOWN: Final = ("From", "To", "Cc", "Subject", "Date")
_LONGEST_HEADER: Final = 8_000
"""Characters of a header: some 300 addresses."""
_BODY: Final = "its body"
_DEEPEST: Final = 20
_CHUNK: Final = 1 << 16
_LETTERS: Final = frozenset(("text/plain", "text/html", "text/enriched", "text/richtext"))
_REPORTS: Final = frozenset(("message/delivery-status", "message/disposition-notification",
    "message/feedback-report", "message/global-delivery-status", "text/rfc822-headers",
    "message/global-headers"))  # fmt: skip
_CALENDARS: Final = frozenset(("text/calendar", "application/ics", "text/x-vcalendar"))
_NOT_READ: Final = {
    "application/pkcs7-signature": "it is a signature, which is no text and was not checked",
    "application/x-pkcs7-signature": "it is a signature, which is no text and was not checked",
    "application/pgp-signature": "it is a signature, which is no text and was not checked",
    "application/pgp-keys": "it is a key, which is no text",
    "application/pkcs7-mime": "it is signed or encrypted (S/MIME) as a whole, and cannot be read",
    "application/x-pkcs7-mime": "it is signed or encrypted (S/MIME) as a whole, and cannot be read",
    "message/external-body": "it is kept elsewhere, and nothing is fetched",
    "message/partial": "it is a piece of a mail that was sent in several",
}
_SIGNATURE: Final = _NOT_READ["application/pgp-signature"]
_NOT_READ_BY_NAME: Final = {
    ".p7s": _SIGNATURE,
    ".sig": _SIGNATURE,
    ".p7m": _NOT_READ["application/pkcs7-mime"],
}
_ENCRYPTED: Final = "it is encrypted: save a copy that was decrypted"
_LEFT_TO_OTHERS: Final = 600
"""Characters of a plain letter that may be no more than a hint at the one in HTML beside it."""
_UUENCODED: Final = re.compile(
    r"^begin [0-7]{3,4} ([^\n]{1,200})\n((?:[ -`]{1,62}\r?\n)+?)end\b[^\n]*$\n?", re.M
)
_PREAMBLE: Final = re.compile(r"multi-?part|\bMIME\b", re.I)


def read_mail(data: bytes, reading: Reading, read_part: ReadPart) -> ExtractedDocument:
    """A mail; `read_part` reads a file that is attached to it."""
    try:
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
        message = cast(EmailMessage, parser.close())
    except TooMuch:
        raise
    except BROKEN as error:
        raise reading.refuse(f"it is damaged: {error}") from error
    return _read(message, reading, read_part)


class _BoundedPolicy(EmailPolicy):
    """Truncates a header that is too long: a header is parsed on first access, at a cost that grows
    with the square of its length."""

    spend: Callable[[BudgetName], None] | None = None

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        """The name and the value of a header, out of its lines."""
        if self.spend is not None:
            self.spend("elements")
        name, first_line = sourcelines[0].split(":", 1)
        parts, length = [first_line.lstrip(" \t")], len(first_line)
        for line in sourcelines[1:]:
            if length > _LONGEST_HEADER:
                break
            parts.append(line)
            length += len(line)
        return name, "".join(parts)[:_LONGEST_HEADER].rstrip("\r\n")


def _read(message: EmailMessage, reading: Reading, read_part: ReadPart) -> ExtractedDocument:
    headers: dict[str, str | None] = dict.fromkeys(_SHOWN)
    for name in _SHOWN:
        # A header that breaks the standard may raise anything when it is read.
        with suppress(*BROKEN):
            headers[name] = one_line(message[name])
    head = "\n".join(f"{name}: {text}" for name, text in headers.items() if text)
    blocks = list(reading.counted([TextBlock(head)]))
    content = _MailParts(reading)
    content.walk(message)
    for letter in content.letters:
        blocks += letter.blocks
    for file in content.files():
        blocks += _read_attached(file, reading, read_part)
    if not blocks:
        raise reading.refuse("it has no text")
    date = None
    with suppress(*BROKEN):
        date = cast(Any, message["date"]).datetime
    if date is not None and (date.tzinfo is None or not has_utc(date)):
        date = None
    return ExtractedDocument("mail", tuple(blocks), headers["Subject"], headers["From"], date)


class _Letter:
    """A part of the letter: its text, and whether it came as HTML. HTML is read lazily, as the same
    text is usually there in plain form too."""

    def __init__(self, read: Callable[[], tuple[TextBlock, ...]], *, is_page: bool) -> None:
        self._read = read
        self.is_page = is_page

    @cached_property
    def blocks(self) -> tuple[TextBlock, ...]:
        """Its text."""
        return self._read()

    def words(self) -> str:
        """Its text, without white space that layout may differ in."""
        return " ".join(" ".join(block.text for block in self.blocks).split())


@dataclass(frozen=True, slots=True)
class _File:
    """What is attached: a mail, or bytes with the name, type and encoding that they are given."""

    name: str | None
    kind: str
    data: bytes = b""
    charset: str | None = None
    mail: EmailMessage | None = None

    @property
    def place(self) -> str:
        """What it is called in a problem."""
        return f"attachment {self.name}" if self.name else f"attachment of {self.kind}, unnamed"


class _MailParts:
    """Takes a mail apart: `letters` are what it says, `files` gives what is attached to it."""

    def __init__(self, reading: Reading) -> None:
        self.letters: list[_Letter] = []
        self._reading = reading
        self._files: list[_File] = []

    def files(self) -> Iterator[_File]:
        """What is attached; an invitation that is attached as well comes once."""
        essences: set[bytes] = set()
        for file in self._files:
            if file.kind in _CALENDARS:
                essence = b"".join(file.data.split())
                if essence in essences:
                    continue
                essences.add(essence)
            yield file

    def walk(self, part: EmailMessage, *, in_letter: bool = False) -> None:
        """Look at a part and all parts in it; with `in_letter` a form of the letter has it."""
        kind = _read_kind(part)
        name = _read_name(part)
        # For a part that is not multipart, `get_payload` would decode the text with any encoding
        # that the part names.
        payload: Any = part.get_payload() if part.is_multipart() else ()
        children = [message for message in payload if isinstance(message, EmailMessage)]
        disposition = None
        with suppress(*BROKEN):
            disposition = part.get_content_disposition()
        is_shown = kind in _LETTERS and disposition != "attachment" and (in_letter or not name)
        # One that declares parts and has none is text.
        is_letter = not children and (is_shown or kind.startswith(("multipart/", "message/")))
        if kind.startswith("multipart/") and children:
            self._walk_many(part, kind, children)
        elif kind in _REPORTS:
            self._add_text(_read_report(part, children))
        elif reason := _NOT_READ.get(kind) or _NOT_READ_BY_NAME.get((name or "").lower()[-4:]):
            self._report_unread(name, kind, reason)
        elif kind == "message/rfc822" or (kind.startswith("message/") and children):
            for child in children or [part]:
                if child is not part:
                    self._files.append(_File(name, kind, mail=child))
        elif is_letter:
            if kind == "text/plain" or kind not in _LETTERS:
                self._add_text(
                    decoded(_read_bytes(part), _read_charset(part), self._reading, _BODY)
                )
            else:
                self.letters.append(_Letter(lambda: self._read_page(part, kind), is_page=True))
        else:
            self._files.append(_File(name, kind, _read_bytes(part), _read_charset(part)))

    def _walk_many(self, part: EmailMessage, kind: str, children: list[EmailMessage]) -> None:
        self._add_stray(part.preamble, is_preamble=True)
        if kind == "multipart/alternative":
            self._walk_alternatives(children)
        elif kind == "multipart/encrypted":
            self._report_unread(None, kind, _ENCRYPTED)
        elif kind == "multipart/signed":
            for child in children[:1] + children[2:]:
                self.walk(child)
            for child in children[1:2]:
                self._report_unread(_read_name(child), _read_kind(child), _SIGNATURE)
        else:
            for child in children:
                self.walk(child)
        self._add_stray(part.epilogue, is_preamble=False)

    def _walk_alternatives(self, children: list[EmailMessage]) -> None:
        """Of the forms of a letter, keep those in plain text that differ, or the one in HTML where
        that says more; what is attached to any of them is kept of all."""
        forms: list[list[_Letter]] = []
        outer_letters, self.letters = self.letters, []
        for child in children:
            self.letters = []
            self.walk(child, in_letter=True)
            forms.append(self.letters)
        self.letters = outer_letters
        plain = [form for form in forms if form and not any(letter.is_page for letter in form)]
        pages = [form for form in forms if any(letter.is_page for letter in form)]
        form_by_words: dict[str, list[_Letter]] = {}
        for form in plain:
            if words := " ".join(letter.words() for letter in form):
                form_by_words.setdefault(words, form)
        length = sum(map(len, form_by_words))
        if pages and length < _LEFT_TO_OTHERS:
            most_words = sum(len(letter.words()) for letter in pages[-1])
            if most_words > 2 * length + 200 * bool(length):
                form_by_words = {"": pages[-1]}
        for form in form_by_words.values():
            self.letters += form

    def _read_page(self, part: EmailMessage, kind: str) -> tuple[TextBlock, ...]:
        content, charset = _read_bytes(part), _read_charset(part)
        if charset is None and kind == "text/html":
            text = decoded_html(content, self._reading, _BODY)
        else:
            text = decoded(content, charset, self._reading, _BODY)
        return read_markup(_clean(text), self._reading).blocks

    def _add_text(self, text: str) -> None:
        def take_out(match: re.Match[str]) -> str:
            content = _uudecode(match[2])
            self._files.append(_File(one_line(match[1]), "application/octet-stream", content))
            return ""

        clean = _clean(text)
        if "begin " in clean:
            clean = _UUENCODED.sub(take_out, clean)
        blocks = self._reading.counted([TextBlock(clean.strip("\n"))])
        if blocks:
            self.letters.append(_Letter(lambda: blocks, is_page=False))

    def _add_stray(self, text: object, *, is_preamble: bool) -> None:
        """What stands before the first part or behind the last: lists put their footers there."""
        if isinstance(text, str) and any(map(str.isalnum, text)):
            if is_preamble and _PREAMBLE.search(text[:1_000]):
                return
            content = text.encode("utf-8", "surrogateescape")
            self._add_text(decoded(content, None, self._reading, _BODY))

    def _report_unread(self, name: str | None, kind: str, reason: str) -> None:
        self._reading.problem(_File(name, kind).place, reason)


def _read_kind(part: EmailMessage) -> str:
    with suppress(*BROKEN):
        return part.get_content_type()
    return "text/plain"


def _read_name(part: EmailMessage) -> str | None:
    with suppress(*BROKEN):
        return one_line(part.get_filename())
    return None


def _read_charset(part: EmailMessage) -> str | None:
    """The encoding that a part names; None for ASCII too, as its other bytes can be anything."""
    name = None
    with suppress(*BROKEN):
        name = part.get_content_charset()
    return None if name in {None, "", "us-ascii", "ascii", "ansi_x3.4-1968"} else name


def _read_report(part: EmailMessage, children: list[EmailMessage]) -> str:
    """The fields of a report on a mail: the recipients it did not reach, and why."""
    if not children:
        return _read_bytes(part).decode("utf-8", "replace")
    groups = []
    for child in children:
        lines = []
        for name in dict.fromkeys(child.keys()):
            with suppress(*BROKEN):
                lines += [f"{name}: {one_line(field)}" for field in child.get_all(name, [])]
        body = _read_bytes(child).decode("utf-8", "replace").strip()
        groups.append("\n".join([*lines, body]).strip())
    return "\n\n".join(group for group in groups if group)


def _clean(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\x00", "")


def _read_bytes(part: EmailMessage) -> bytes:
    try:
        content = part.get_payload(decode=True)
    except BROKEN:
        content = None
    if not isinstance(content, bytes):
        return b""
    if content.lstrip()[:6] == b"begin ":
        match = _UUENCODED.search(_clean(content.decode("latin-1")))
        return _uudecode(match[2]) if match and not match.start() else content
    return content


def _uudecode(lines: str) -> bytes:
    pieces = []
    for line in lines.splitlines():
        with suppress(*BROKEN):
            pieces.append(binascii.a2b_uu(line.rstrip("\r\n")))
    return b"".join(pieces)


def _read_attached(file: _File, reading: Reading, read_part: ReadPart) -> list[TextBlock]:
    attachment_reading = reading.part(file.name or file.kind)
    name = file.name
    try:
        if file.mail is not None:
            attached_document = _read(file.mail, attachment_reading, read_part)
            name = name or attached_document.title
        elif file.kind in _CALENDARS or (name or "").lower().endswith(".ics"):
            attached_document = read_calendar(file.data, attachment_reading, file.charset)
            name = name or "invitation"
        else:
            # A text with an encoding given by the mail is read as UTF-8 with its mark.
            if file.charset is None or not file.kind.startswith("text/"):
                content = file.data
            else:
                content = b"\xef\xbb\xbf" + decoded(
                    file.data, file.charset, attachment_reading, "its characters"
                ).encode("utf-8", "replace")
            attached_document = read_part(content, attachment_reading)
    except TooMuch:
        raise
    except UnreadableDocument as error:
        reading.problem(file.place, error.reason)
        return []
    except BROKEN as error:
        reading.problem(file.place, error)
        return []
    under = (name,) if name else ()
    return [replace(block, heading=(*under, *block.heading)) for block in attached_document.blocks]
