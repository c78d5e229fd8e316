"""The target that reads documents: PDF, DOCX, HTML, mail, Markdown and text.

In: nothing. Out: a room. A file is refused with an error that says why, or gives sections that
are ranges of one text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.document_files import docx, mail, pdf

from anaphora.errors import UnreadableDocument
from anaphora.features.documents.reading.base import DocumentLimits
from anaphora.features.documents.reading.cutting import LONGEST, cut_document
from anaphora.features.documents.reading.reading import read_document

from .mutating import Mutator
from .rooms import OWN, Room, expect
from .shapes import mutant

__all__ = ["documents"]

_NAMES = ("a.pdf", "a.docx", "a.html", "a.eml", "a.md", "a.txt", "a")
_LIMITS = DocumentLimits(pages=50, characters=200_000, parts=50)
_PDF = pdf(
    [["The rent is 1200 euros."], ["Three months of notice."]],
    title="Lease",
    bookmarks=[("Rent", 1), ("Notice", 2)],
)
_DOCX = docx([("Handbook", 1), ("Holidays", 2), ("Thirty days.", 0)], title="Handbook")
_HTML = (
    b"<!doctype html><title>Bread</title><h1>Bread</h1><ul><li>flour<ol start=3><li>rye</ol></ul>"
    b"<table><tr><td>a<td>b</table><pre>x\n y</pre><h2>Oven</h2><p>230 &amp; hot<br>so"
)


@contextmanager
def documents(folder: Path, shared: Path | None) -> Iterator[Room]:
    """Files of every format, as a whole and as attachments."""
    attached = mail("Offer", "Attached.", [("a.pdf", _PDF), ("a.docx", _DOCX), ("a.html", _HTML)])
    pages = [path.read_bytes() for path in sorted(OWN.parent.glob("docs/how-to/*.md"))[:5]]
    corpus = (_PDF, _DOCX, _HTML, attached, mail("0", "1", html="<p>1"), *pages)
    yield Room(corpus, _check, _worse)


def _worse(mutator: Mutator, corpus: Sequence[bytes]) -> bytes:
    """As a rule bytes are changed; of every third one the keys and types."""
    if mutator.random.random() < 0.67:
        return mutator.choose(corpus)
    return mutant(mutator.random, "", mutator.random.choice(corpus))


def _check(data: bytes) -> None:
    name = _NAMES[len(data) % len(_NAMES)]
    try:
        found = read_document(name, data, _LIMITS)
    except UnreadableDocument as error:
        expect(name in str(error) and bool(error.reason), error)
        return
    cut = cut_document(found.blocks)
    last = 0
    for section in cut.sections:
        expect(0 < len(section.text) <= LONGEST, section)
        expect(last <= section.start < section.end <= cut.characters, section)
        expect(section.end - section.start == len(section.text), section)
        last = section.end
