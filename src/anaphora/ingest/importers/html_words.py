"""The words of HTML, and the entries of a page of Google's "My Activity", one at a time.

Blocks and line breaks become lines, items of lists get a dash; scripts and styles say nothing.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from io import BufferedReader
from typing import Final

from anaphora.core.word_lists import words
from anaphora.ingest.importers.base import Malformed
from anaphora.ingest.markup import Attributes, MarkupReader

CELL: Final = "outer-cell"
"""The class of the element around each entry."""

_BLOCKS = frozenset(
    words("p div section article header footer ul ol table tr blockquote h1 h2 h3 h4 h5 h6 hr")
)
_SILENT = frozenset(("script", "style", "head", "template"))
_CHUNK = 1 << 18
# Markup that is open for so long has no end.
_MOST_OPEN = 1 << 22
_GAPS = re.compile(r"\n{3,}")
_SPACES = re.compile(r"[ \t\r\n\f]+")


class _WordCollector:
    """Collects the words of a document."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._silent = 0
        self._as_it_is = 0

    def begin(self, tag: str, attrs: Attributes) -> None:
        self._silent += tag in _SILENT
        self._as_it_is += tag == "pre"
        if tag == "br":
            self.parts.append("\n")
        elif tag == "li":
            self.parts.append("\n- ")
        elif tag in _BLOCKS or tag == "pre":
            self.parts.append("\n\n" if tag != "tr" else "\n")
        elif tag in ("td", "th"):
            self.parts.append("\t")

    def end_element(self, tag: str) -> None:
        self._silent = max(0, self._silent - (tag in _SILENT))
        self._as_it_is = max(0, self._as_it_is - (tag == "pre"))
        if tag in _BLOCKS or tag == "pre":
            self.parts.append("\n\n" if tag != "tr" else "\n")

    def add(self, data: str) -> None:
        if not self._silent:
            self.parts.append(data if self._as_it_is else _SPACES.sub(" ", data))


def words_of(html: str) -> str:
    """The words of a piece of HTML, in lines."""
    words = _WordCollector()
    reader = MarkupReader(words.begin, words.end_element, words.add)
    reader.feed(html)
    reader.close()
    text = "".join(words.parts)
    lines = (line.rstrip(" \t") for line in text.split("\n"))
    joined_text = "\n".join(
        line.lstrip(" ") if not line.startswith("    ") else line for line in lines
    )
    return _GAPS.sub("\n\n", joined_text).strip("\n")


class _Cells:
    """Finds entries: the title of each, a form feed, and the words of its first column."""

    def __init__(self, most: int) -> None:
        self.done: list[str] = []
        self._most = most
        self._depth = 0
        self._title: list[str] = []
        self._body: list[str] = []
        self._into: list[str] | None = None
        self._into_depth = 0
        self._length = 0

    def begin(self, tag: str, attrs: Attributes) -> None:
        classes = (dict(attrs).get("class") or "").split() if tag in ("div", "p") else []
        if tag == "div":
            if CELL in classes:
                self._finish()
                self._depth = 0
            self._depth += 1
            if "header-cell" in classes:
                self._begin(self._title)
            elif "content-cell" in classes and not self._body:
                self._begin(self._body)
        if self._into is None:
            return
        if tag == "br":
            self._append("\n")
        elif tag == "li":
            self._append("\n- ")
        elif tag in _BLOCKS and tag != "div":
            self._append("\n")

    def end_element(self, tag: str) -> None:
        if self._into is not None and tag in _BLOCKS and tag != "div":
            self._append("\n")
        if tag == "div":
            if self._into is not None and self._depth == self._into_depth:
                self._into = None
            self._depth -= 1

    def add(self, data: str) -> None:
        if self._into is not None:
            self._append(_SPACES.sub(" ", data))

    def _begin(self, into: list[str]) -> None:
        self._into, self._into_depth = into, self._depth
        into.append("")

    def _append(self, text: str) -> None:
        if self._into is not None and self._length <= self._most:
            self._length += len(text)
            self._into.append(text)

    def _finish(self) -> None:
        if self._title or self._body:
            body = _GAPS.sub("\n\n", "".join(self._body))
            self.done.append(f"{''.join(self._title).strip()}\f{body}")
        self._title, self._body, self._into, self._length = [], [], None, 0

    def end(self) -> None:
        """Finish the last entry."""
        self._finish()


def cells(raw: BufferedReader, most: int) -> Iterator[str]:
    """Every entry of a page: its product, a form feed, its words; at most `most` characters each.

    Raises Malformed for invalid markup.
    """
    entries = _Cells(most)
    reader = MarkupReader(entries.begin, entries.end_element, entries.add)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while chunk := raw.read(_CHUNK):
        reader.feed(decoder.decode(chunk))
        yield from _take_done(entries)
        if len(reader.held) > _MOST_OPEN:
            raise Malformed("a tag or comment that does not end")
    reader.close()
    entries.end()
    yield from _take_done(entries)


def _take_done(entries: _Cells) -> Iterator[str]:
    done_entries, entries.done = entries.done, []
    yield from done_entries
