"""The text of a page of HTML: blocks by its headings, lists, tables and preformatted text.

Nothing here recurses or fails: pages and mails nest elements a thousand deep, and what makes
Markdown of them runs out of stack at some 300 (python-markdownify 276). What a browser does not
show as text (scripts, styles, templates) is left out, and so are menus (`nav`); nothing that a page
names is fetched.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from anaphora.ingest.documents.base import ExtractedDocument, Reading, TextBlock, one_line
from anaphora.ingest.documents.encodings import decoded
from anaphora.ingest.markup import Attributes, MarkupReader

_UNSEEN: Final = frozenset(
    ("script", "style", "template", "noscript", "nav", "svg", "math", "head", "object", "iframe",
     "select", "button", "canvas")
)  # fmt: skip
_BLOCKS: Final = frozenset(
    ("address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details",
     "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "hr",
     "legend", "li", "main", "ol", "p", "pre", "section", "summary", "table", "tbody", "tfoot",
     "thead", "tr", "ul", "h1", "h2", "h3", "h4", "h5", "h6")
)  # fmt: skip
_HEADING: Final = re.compile(r"h([1-6])\Z")
_CELLS: Final = frozenset(("td", "th"))
_PARAGRAPHS: Final = frozenset(
    ("p", "pre", "blockquote", "table", "ul", "ol", "dl", "figure", "h1", "h2", "h3", "h4", "h5",
     "h6")
)  # fmt: skip
_CHARSET: Final = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.I)
_DEEPEST: Final = 12
_BOMS: Final = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)


def read_html(data: bytes, reading: Reading) -> ExtractedDocument:
    """The text of a page in the encoding that it declares, UTF-8 where it declares none."""
    return read_markup(decoded_html(data, reading), reading)


def read_markup(markup: str, reading: Reading) -> ExtractedDocument:
    """The same of a page that is text already."""
    page = _PageText()
    reader = MarkupReader(page.begin, page.end, page.add)
    reader.feed(markup)
    reader.close()
    blocks = reading.counted(page.finished())
    title = one_line("".join(page.title))
    return ExtractedDocument("html", blocks, title or _first_heading(blocks), page.author)


def decoded_html(data: bytes, reading: Reading) -> str:
    """The characters of a page; what its encoding does not have is noted, and marked U+FFFD."""
    encoding = next((name for mark, name in _BOMS if data.startswith(mark)), "")
    declared = _CHARSET.search(data[:4_096])
    if not encoding and declared is not None:
        encoding = declared[1].decode("ascii", "replace")
    return decoded(data, encoding or "utf-8", reading, "its characters")


def _first_heading(blocks: tuple[TextBlock, ...]) -> str | None:
    return next((block.heading[0] for block in blocks if block.heading), None)


class _PageText:
    """Collects the blocks of a page; `title` and `author` are what its head says."""

    def __init__(self) -> None:
        self.title: list[str] = []
        self.author: str | None = None
        self._blocks: list[TextBlock] = []
        self._lines: list[str] = []
        self._line: list[str] = []
        self._above: list[tuple[int, str]] = []
        self._unseen: list[str] = []
        self._unseen_open: Counter[str] = Counter()
        self._in_title = False
        self._pre = 0
        self._lists: list[int] = []
        self._mark = ""

    def finished(self) -> list[TextBlock]:
        """All blocks of the page."""
        self._end_block(last=True)
        return self._blocks

    def begin(self, tag: str, attributes: Attributes) -> None:
        """An element begins."""
        attrs = dict(attributes)
        self._look(tag, attrs)
        if self._unseen:
            return
        if tag == "br":
            self._end_line(keep=True)
        elif tag in _CELLS:
            if self._line:
                self._line.append(" | ")
        elif tag in _BLOCKS:
            self._begin(tag, attrs)

    def _look(self, tag: str, attrs: dict[str, str | None]) -> None:
        """What is said in the head, and what a page does not show."""
        if tag == "title":
            self._in_title = not self.title
        elif tag == "meta" and (attrs.get("name") or "").lower() == "author":
            self.author = one_line(attrs.get("content"))
        elif tag == "body":
            # A head that was never closed hides nothing of the page.
            self._unseen.clear()
            self._unseen_open.clear()
        elif tag in _UNSEEN:
            self._unseen.append(tag)
            self._unseen_open[tag] += 1

    def end(self, tag: str) -> None:
        """An element ends."""
        if tag == "title":
            self._in_title = False
        if self._unseen_open[tag]:
            closed = ""
            while closed != tag:
                closed = self._unseen.pop()
                self._unseen_open[closed] -= 1
        elif not self._unseen and tag in _BLOCKS:
            self._end(tag)

    def add(self, data: str) -> None:
        """Text."""
        if self._in_title:
            self.title.append(data)
        elif not self._unseen and self._pre:
            self._line.append(data)
        elif not self._unseen:
            joined = re.sub(r"[ \t\r\n\f]+", " ", data)
            if joined.strip(" ") or (joined and self._line):
                self._line.append(joined)

    def _begin(self, tag: str, attrs: dict[str, str | None]) -> None:
        self._end_line()
        if tag in _PARAGRAPHS and not (self._lists and tag in {"ul", "ol", "p"}):
            self._blank()
        if heading := _HEADING.match(tag):
            self._end_block()
            level = int(heading[1])
            while self._above and self._above[-1][0] >= level:
                self._above.pop()
            self._above.append((level, ""))
        elif tag in {"ul", "ol"}:
            self._lists.append(_number(attrs.get("start")) if tag == "ol" else 0)
        elif tag == "li":
            self._mark = self._next_mark()
        elif tag == "pre":
            self._pre += 1

    def _end(self, tag: str) -> None:
        if _HEADING.match(tag) and self._above and not self._above[-1][1]:
            said = " ".join("".join(self._line).split())
            self._above[-1] = (self._above[-1][0], said)
        self._end_line()
        if tag in {"ul", "ol"} and self._lists:
            self._lists.pop()
        elif tag == "pre" and self._pre:
            self._pre -= 1
        if tag in _PARAGRAPHS and not self._lists:
            self._blank()

    def _next_mark(self) -> str:
        if not self._lists:
            return "- "
        number = self._lists[-1]
        if number:
            self._lists[-1] += 1
        indent = "  " * min(len(self._lists) - 1, _DEEPEST)
        return f"{indent}{number}. " if number else f"{indent}- "

    def _end_line(self, *, keep: bool = False) -> None:
        text = "".join(self._line)
        self._line = []
        text = text.strip("\r\n") if self._pre else text.strip(" ")
        if text.strip() or keep:
            self._lines += (self._mark + text).split("\n")
            self._mark = ""

    def _blank(self) -> None:
        if self._lines and self._lines[-1]:
            self._lines.append("")

    def _end_block(self, *, last: bool = False) -> None:
        self._end_line()
        text = "\n".join(self._lines).strip("\n")
        heading = tuple(title for _, title in self._above if title)
        if heading and text == heading[-1] and not last:
            # A heading with nothing of its own under it goes with what comes under it.
            self._lines = [text, ""]
            return
        self._lines = []
        if text.strip():
            self._blocks.append(TextBlock(text, heading))


def _number(given: str | None) -> int:
    return int(given) if given is not None and given.isdecimal() and len(given) < 6 else 1
