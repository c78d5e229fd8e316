"""The words of HTML, and the entries of a page of Google's "My Activity", one at a time.

Blocks and line breaks become lines, items of lists get a dash; scripts and styles say nothing.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from io import BufferedReader
from typing import Final

from anaphora.features.importing.formats.base import Malformed
from anaphora.ingest.markup import (
    BLOCKS,
    UNSEEN,
    Attributes,
    MarkupReader,
    collapse_spaces,
)

CELL: Final = "outer-cell"
"""The class of the element around each entry."""

_CHUNK = 1 << 18
# Markup that is open for so long has no end.
_MOST_OPEN = 1 << 22
_GAPS = re.compile(r"\n{3,}")

_INLINE = {"br": "\n", "li": "\n- "}
# What the beginning of an element says, and its end.
_AROUND_WORDS = {**dict.fromkeys((*BLOCKS, "pre"), "\n\n"), "tr": "\n"}
_BEFORE_WORDS = {**_AROUND_WORDS, **_INLINE, "td": "\t", "th": "\t"}
_AROUND_ENTRY = dict.fromkeys(BLOCKS - {"div"}, "\n")
_BEFORE_ENTRY = {**_AROUND_ENTRY, **_INLINE}


class _WordCollector:
    """Collects the words of a document."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._silent = 0
        self._as_it_is = 0

    def begin(self, tag: str, attributes: Attributes) -> None:
        self._silent += tag in UNSEEN
        self._as_it_is += tag == "pre"
        self.parts.append(_BEFORE_WORDS.get(tag, ""))

    def end(self, tag: str) -> None:
        self._silent = max(0, self._silent - (tag in UNSEEN))
        self._as_it_is = max(0, self._as_it_is - (tag == "pre"))
        self.parts.append(_AROUND_WORDS.get(tag, ""))

    def add(self, text: str) -> None:
        if not self._silent:
            self.parts.append(text if self._as_it_is else collapse_spaces(text))


def words_of(html: str) -> str:
    """The words of a piece of HTML, in lines."""
    words = _WordCollector()
    MarkupReader(words.begin, words.end, words.add).read(html)
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

    def begin(self, tag: str, attributes: Attributes) -> None:
        if tag == "div":
            classes = (dict(attributes).get("class") or "").split()
            if CELL in classes:
                self.finish()
                self._depth = 0
            self._depth += 1
            if "header-cell" in classes:
                self._begin(self._title)
            elif "content-cell" in classes and not self._body:
                self._begin(self._body)
        self._append(_BEFORE_ENTRY.get(tag, ""))

    def end(self, tag: str) -> None:
        self._append(_AROUND_ENTRY.get(tag, ""))
        if tag == "div":
            if self._into is not None and self._depth == self._into_depth:
                self._into = None
            self._depth -= 1

    def add(self, text: str) -> None:
        if self._into is not None:
            self._append(collapse_spaces(text))

    def _begin(self, into: list[str]) -> None:
        self._into, self._into_depth = into, self._depth
        into.append("")

    def _append(self, text: str) -> None:
        if self._into is not None and self._length <= self._most:
            self._length += len(text)
            self._into.append(text)

    def finish(self) -> None:
        """Finish the entry that is open."""
        if self._title or self._body:
            body = _GAPS.sub("\n\n", "".join(self._body))
            self.done.append(f"{''.join(self._title).strip()}\f{body}")
        self._title, self._body, self._into, self._length = [], [], None, 0


def cells(raw: BufferedReader, most: int) -> Iterator[str]:
    """Every entry of a page: its product, a form feed, its words; at most `most` characters each.

    Raises Malformed for invalid markup.
    """
    entries = _Cells(most)
    reader = MarkupReader(entries.begin, entries.end, entries.add)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while chunk := raw.read(_CHUNK):
        reader.feed(decoder.decode(chunk))
        yield from _take_done(entries)
        if len(reader.held) > _MOST_OPEN:
            raise Malformed("a tag or comment that does not end")
    reader.close()
    entries.finish()
    yield from _take_done(entries)


def _take_done(entries: _Cells) -> Iterator[str]:
    done_entries, entries.done = entries.done, []
    yield from done_entries
