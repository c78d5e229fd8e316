"""A file of many mails (RFC 4155, mbox): each is read as a mail, under its subject.

The line that begins with "From " and ends in a time stands before each; such a line within a mail
has a ">" before it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from anaphora.errors import MissingExtra, UnreadableDocument
from anaphora.features.documents.reading.base import (
    ExtractedDocument,
    Reading,
    TextBlock,
    TooMuch,
)
from anaphora.features.documents.reading.mail import ReadPart, read_mail

_BEGIN: Final = re.compile(
    rb"^From [^\n]{0,300}?\d\d?:\d\d[^\n]{0,60}\r?\n(?=[!-9;-~]{1,76}:|>From )", re.M
)
_QUOTED: Final = re.compile(rb"^>(>*From )", re.M)


def is_mbox(head: bytes) -> bool:
    """Whether a file begins with the line that stands before a mail."""
    return _BEGIN.match(head.lstrip(b"\xef\xbb\xbf\r\n")) is not None


def read_mbox(data: bytes, reading: Reading, read_part: ReadPart) -> ExtractedDocument:
    """Every mail of the file. `UnreadableDocument` for more mails than `limits.mails`.

    One mail alone is read as a mail.
    """
    starts = [match.span() for match in _BEGIN.finditer(data)]
    if len(starts) > reading.limits.mails:
        max_mails = reading.limits.mails
        raise reading.refuse(
            f"it has {len(starts):,} mails; at most {max_mails:,} are read: split it"
        )
    ends = [start for start, _ in starts[1:]] + [len(data)]
    mails = [
        _QUOTED.sub(rb"\1", data[start:end]) for (_, start), end in zip(starts, ends, strict=True)
    ]
    if len(mails) == 1:
        return read_mail(mails[0], reading, read_part)
    blocks: list[TextBlock] = []
    for number, mail in enumerate(mails, start=1):
        reading.renew("parts")
        try:
            mail_document = read_mail(mail, reading, read_part)
        except (MissingExtra, TooMuch):
            raise
        except UnreadableDocument as error:
            reading.problem(f"mail {number}", error.reason)
            continue
        subject = mail_document.title or f"mail {number}"
        # Sender and time share a block with the first text.
        head, *following = mail_document.blocks
        if following and not following[0].heading:
            head = replace(head, text=f"{head.text}\n\n{following.pop(0).text}")
        blocks += [
            replace(block, heading=(subject, *block.heading)) for block in (head, *following)
        ]
    if not blocks:
        raise reading.refuse("none of its mails can be read")
    return ExtractedDocument("mail", tuple(blocks))
