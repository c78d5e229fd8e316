"""Blocks of text as sections of one document: each a range of its characters, none too long.

A block that is too long is cut where its text has a break: between paragraphs, else lines, else
sentences, else words. Secrets are taken out before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from anaphora.features.documents.reading.base import TextBlock
from anaphora.ingest.problems import shortened
from anaphora.ingest.secrets.redacting import RedactedText, redact

LONGEST: Final = 3_000
"""Characters of a section: some 700 tokens, of which several fit into an answer."""
BETWEEN: Final = "\n\n"
"""What stands between two blocks in a document's text."""

_BREAKS: Final = ("\n\n", "\n", ". ", " ")


@dataclass(frozen=True, slots=True)
class CutSection:
    """A section: the characters `start` to before `end` of the text, and where it stands."""

    text: str
    start: int
    end: int
    heading: tuple[str, ...]
    page: int | None


@dataclass(frozen=True, slots=True)
class CutDocument:
    """The sections of a document in order, and the kinds of secrets that were taken out."""

    sections: tuple[CutSection, ...]
    redacted: tuple[str, ...]
    characters: int


def cut_document(blocks: Iterable[TextBlock]) -> CutDocument:
    """The sections of these blocks."""
    sections: list[CutSection] = []
    kinds: dict[str, None] = {}
    titles: dict[str, RedactedText] = {}
    at = 0
    for block in blocks:
        text = redact(block.text)
        for title in block.heading:
            if title not in titles:
                # Every section under a heading has it: one of a megabyte would be there often.
                titles[title] = redact(shortened(title))
        headings = [titles[title] for title in block.heading]
        for redacted_text in (text, *headings):
            kinds.update(dict.fromkeys(redacted_text.kinds))
        clean = replace(
            block, text=text.text, heading=tuple(headline.text for headline in headings)
        )
        if at:
            at += len(BETWEEN)
        # In parts that together leave out nothing but white space between them.
        start, size = 0, len(clean.text)
        while start < size:
            end = min(start + LONGEST, size)
            if end < size:
                # In the second half of the part, behind the best break that it has.
                half = start + (end - start) // 2
                breaks = ((clean.text.rfind(mark, half, end), len(mark)) for mark in _BREAKS)
                end = next((position + length for position, length in breaks if position >= 0), end)
            part = clean.text[start:end]
            if part.strip():
                text_start = start + len(part) - len(part.lstrip("\n"))
                text_end = start + len(part.rstrip())
                words = clean.text[text_start:text_end]
                sections.append(
                    CutSection(words, at + text_start, at + text_end, clean.heading, clean.page)
                )
            start = end
        at += size
    return CutDocument(tuple(sections), tuple(kinds), at)
