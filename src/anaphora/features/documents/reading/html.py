"""The text of a page of HTML: blocks by its headings, lists, tables and preformatted text.

A row of a table is one line, its cells with " | " between them. A cell that holds a chapter rather
than a value, as in mails and pages that are laid out by tables, stands as it would without one.

Nothing here recurses or fails: pages and mails nest elements a thousand deep, and what makes
Markdown of them runs out of stack at some 300 (python-markdownify 276). What a browser does not
show as text (scripts, styles, templates) is left out, and so are menus (`nav`); nothing that a page
names is fetched.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from anaphora.features.documents.reading.base import (
    ExtractedDocument,
    Reading,
    TextBlock,
    meant_title,
    one_line,
)
from anaphora.features.documents.reading.encodings import declared_encoding, decoded, marked
from anaphora.ingest.markup import (
    BLOCKS,
    HEADINGS,
    UNSEEN,
    Attributes,
    MarkupReader,
    collapse_spaces,
)

BETWEEN_CELLS: Final = " | "

_UNSEEN: Final = frozenset(
    ("noscript", "nav", "svg", "annotation", "annotation-xml", "object", "iframe", "select",
     "button", "canvas", *UNSEEN)
)  # fmt: skip
_BLOCKS: Final = frozenset(
    ("address", "aside", "body", "caption", "center", "dd", "details", "dl", "dt", "fieldset",
     "figcaption", "figure", "form", "legend", "li", "main", "pre", "summary", "tbody", "tfoot",
     "thead", *BLOCKS)
)  # fmt: skip
_CELLS: Final = frozenset(("td", "th"))
_GROUPS: Final = {"thead": 0, "tbody": 1, "tfoot": 2}
_OF_TABLES: Final = frozenset(("table", "tr", *_CELLS, *_GROUPS))
_PARAGRAPHS: Final = frozenset(
    ("p", "pre", "blockquote", "table", "ul", "ol", "dl", "figure", *HEADINGS)
)
_CHARSET: Final = re.compile(r"""charset\s*=\s*["']?\s*([^\s"';>]{1,40})""", re.I)
_XML: Final = re.compile(
    rb"""\s*<\?xml[^>]{0,200}?\sencoding\s*=\s*["']([\w.:-]{1,40})["']""", re.I
)
_LOOKED_AT: Final = 1 << 20
_CHUNK: Final = 1 << 12
_DEEPEST: Final = 12
_DEEPEST_TABLE: Final = 20
"""Tables in one another: what is in a cell is looked at once for each table that it is in."""
_WIDEST: Final = 100
"""Columns and rows that one cell may take up, and columns that those above may push it over: an
attribute can say any number."""
_LONGEST_CELL: Final = 1_000


def read_html(data: bytes, reading: Reading) -> ExtractedDocument:
    """The text of a page in the encoding that it declares; see `decoded` where it declares none."""
    return read_markup(decoded_html(data, reading), reading)


def read_markup(markup: str, reading: Reading) -> ExtractedDocument:
    """The same of a page that is text already."""
    page = _PageText()
    MarkupReader(page.begin, page.end, page.add).read(markup)
    blocks = reading.counted(page.finished())
    title = meant_title("".join(page.title), of_page=True)
    return ExtractedDocument(
        "html",
        blocks,
        title or next((block.heading[0] for block in blocks if block.heading), None),
        page.author,
    )


def decoded_html(data: bytes, reading: Reading, place: str = "its characters") -> str:
    """The characters of a page; what its encoding does not have is noted, and marked U+FFFD."""
    if marked(data) is not None:
        return decoded(data, None, reading, place)
    # UTF-16 without a mark: every other byte of markup is zero.
    if data.startswith((b"<\0", b"\0<")):
        return decoded(data, "utf-16le" if data[1] == 0 else "utf-16be", reading, place)
    # The first declared encoding that is known, else the first.
    labels = list(_list_labels(data))
    return decoded(
        data,
        next((name for label in labels if (name := declared_encoding(label))), None)
        or next(iter(labels), None),
        reading,
        place,
    )


def _list_labels(data: bytes) -> Iterator[str]:
    """The encodings that a page's elements `meta` name, and then that of its XML declaration."""
    head = data[:_LOOKED_AT].decode("latin-1")
    if "charset" in head.lower():
        labels: list[str] = []
        ended_tags: list[str] = []

        def begin(tag: str, attributes: Attributes) -> None:
            if tag == "body":
                ended_tags.append(tag)
            elif tag == "meta" and not ended_tags:
                attrs = dict(attributes)
                label = attrs.get("charset")
                if not label and (attrs.get("http-equiv") or "").strip().lower() == "content-type":
                    charset_match = _CHARSET.search((attrs.get("content") or "")[:400])
                    label = charset_match[1] if charset_match else None
                if label and (declared_label := label.strip()[:40]):
                    labels.append(declared_label)

        reader = MarkupReader(begin, lambda _: None, lambda _: None)
        for start in range(0, len(head), _CHUNK):
            reader.feed(head[start : start + _CHUNK])
            yield from labels
            labels.clear()
            if ended_tags:
                break
    if (xml := _XML.match(data)) is not None:
        yield xml[1].decode("ascii", "replace")


class _Item(NamedTuple):
    """A line; `level` is 1 to 6 for a heading, `_ROW` for a row of a table with several columns."""

    text: str
    level: int = 0


_ROW: Final = -1


class _Flow:
    """Lines that follow one another: those of a page, or of one cell."""

    __slots__ = ("_heading", "_lists", "_mark", "items", "line", "pre")

    def __init__(self) -> None:
        self.items: list[_Item] = []
        self.line: list[str] = []
        self.pre = 0
        self._lists: list[int] = []
        self._mark = ""
        self._heading: int | None = None

    def begin(self, tag: str, attrs: dict[str, str | None]) -> None:
        """A block begins."""
        self.end_line()
        if tag in _PARAGRAPHS and not (self._lists and tag in {"ul", "ol", "p"}):
            self.blank()
        if tag in HEADINGS:
            self._heading = len(self.items)
            self.items.append(_Item("", HEADINGS.index(tag) + 1))
        elif tag in {"ul", "ol"}:
            self._lists.append(_parse_number(attrs.get("start")) if tag == "ol" else 0)
        elif tag == "li":
            if not self._lists:
                self._mark = "- "
            else:
                number = self._lists[-1]
                if number:
                    self._lists[-1] += 1
                indent = "  " * min(len(self._lists) - 1, _DEEPEST)
                self._mark = f"{indent}{number}. " if number else f"{indent}- "
        elif tag == "pre":
            self.pre += 1

    def end(self, tag: str) -> None:
        """A block ends."""
        self.end_line()
        if tag in HEADINGS and self._heading is not None:
            at, self._heading = self._heading, None
            words = " ".join(line.text for line in self.items[at:])
            self.items[at:] = [_Item(" ".join(words.split()), self.items[at].level)]
        elif tag in {"ul", "ol"} and self._lists:
            self._lists.pop()
        elif tag == "pre" and self.pre:
            self.pre -= 1
        if tag in _PARAGRAPHS and not self._lists:
            self.blank()

    def add(self, data: str) -> None:
        """Text."""
        if self.pre:
            self.line.append(data)
            return
        joined_text = collapse_spaces(data)
        if joined_text.strip(" ") or (joined_text and self.line):
            self.line.append(joined_text)

    def end_line(self, *, keep: bool = False) -> None:
        """The line ends; `keep`: also if it has nothing."""
        text = "".join(self.line)
        self.line = []
        text = text.strip("\r\n") if self.pre else text.strip(" ")
        if text.strip() or keep:
            self.items += [_Item(line) for line in (self._mark + text).split("\n")]
            self._mark = ""

    def blank(self) -> None:
        """An empty line, if there is none yet."""
        if self.items and (self.items[-1].text or self.items[-1].level):
            self.items.append(_Item(""))

    def put(self, items: Iterable[_Item]) -> None:
        """Lines of a table that ends here."""
        self.end_line()
        if not self._lists:
            self.blank()
        self.items += items
        if not self._lists:
            self.blank()


@dataclass(slots=True)
class _TableCell:
    """What stands in a cell, and how many columns and rows it takes up."""

    flow: _Flow
    columns: int = 1
    rows: int = 1

    def is_laid_out(self) -> bool:
        """Whether it holds a chapter: a heading with text under it, or more than a paragraph."""
        headings = sum(line.level > 0 for line in self.flow.items)
        lines = [line.text for line in self.flow.items if line.text.strip()]
        if headings:
            return len(lines) > headings
        return len(lines) > 1 and sum(map(len, lines)) > _LONGEST_CELL

    def line(self) -> str:
        """Its own words in one line, without the rows of tables in it."""
        return " ".join(
            " ".join(
                flow_line.text for flow_line in self.flow.items if flow_line.level >= 0
            ).split()
        )

    def rows_within(self) -> list[_Item]:
        """The rows of tables in it."""
        return [row for row in self.flow.items if row.level == _ROW]


@dataclass(slots=True)
class _HtmlTable:
    """A table that is being read: its rows by group, and what stands in it beside cells."""

    is_layout: bool = False
    beside: _Flow = field(default_factory=_Flow)
    rows: list[tuple[int, int, list[_TableCell]]] = field(default_factory=list)
    group: int = 1
    groups: int = 0
    in_row: bool = False
    in_cell: bool = False

    @property
    def flow(self) -> _Flow:
        """Where text goes."""
        return self.rows[-1][2][-1].flow if self.in_cell else self.beside

    def begin(self, tag: str, attrs: dict[str, str | None]) -> None:
        """A group, a row or a cell begins."""
        if tag in _GROUPS:
            self.begin_group(tag)
        elif tag == "tr":
            self.begin_row()
        else:
            # In a row of its own where none is open.
            self.end_cell()
            if not self.in_row:
                self.begin_row()
            columns = min(_parse_number(attrs.get("colspan")), _WIDEST)
            rows = min(_parse_number(attrs.get("rowspan")), _WIDEST)
            self.rows[-1][2].append(_TableCell(_Flow(), max(columns, 1), max(rows, 1)))
            self.in_cell = True

    def end(self, tag: str) -> None:
        """A group, a row or a cell ends."""
        self.end_cell()
        if tag in _GROUPS:
            self.begin_group("tbody")
        elif tag == "tr":
            self.in_row = False

    def begin_group(self, tag: str) -> None:
        """A head, body or foot begins."""
        self.end_cell()
        self.group = _GROUPS[tag]
        self.groups += 1
        self.in_row = False

    def begin_row(self) -> None:
        """A row begins."""
        self.end_cell()
        self.rows.append((self.group, self.groups, []))
        self.in_row = True

    def end_cell(self) -> None:
        """The cell that is open ends."""
        self.flow.end_line()
        self.in_cell = False

    def items(self) -> list[_Item]:
        """Its lines: what stands beside cells first, then its head, its body and its foot."""
        self.end_cell()
        items = self.beside.items
        rows = sorted(self.rows, key=lambda row: row[0])
        is_list = all(len(cells) <= 1 for _, _, cells in rows)
        covered_cells: dict[int, int] = {}
        group = None
        for _, row_group, cells in rows:
            if row_group != group:
                covered_cells, group = {}, row_group
            line = _place_cells(cells, covered_cells)
            if self.is_layout or is_list or any(cell.is_laid_out() for cell in cells):
                for cell in cells:
                    items += cell.flow.items
                    if len(cells) > 1 and cell.flow.items and cell.flow.items[-1].text:
                        items.append(_Item(""))
                continue
            if any(line):
                items.append(_Item(BETWEEN_CELLS.join(line), _ROW))
            for cell in cells:
                items += cell.rows_within()
        return items


def _place_cells(cells: list[_TableCell], covered: dict[int, int]) -> list[str]:
    """The cells of a row at their columns; `covered` are the rows that cells above reach down."""
    line: dict[int, str] = {}
    reaching: dict[int, int] = {}
    at = 0
    for cell in cells:
        while at < _WIDEST and covered.get(at, 0) > 0:
            at += 1
        line[at] = cell.line()
        # A cell over a whole row is its title; behind others it holds the place of all it covers.
        width = at + cell.columns if len(cells) > 1 else at + 1
        for column in range(at, min(at + cell.columns, max(_WIDEST, at + 1))):
            reaching[column] = cell.rows
            if column < width:
                line.setdefault(column, "")
        at += cell.columns
    for column, rows in covered.items():
        if rows > 0:
            line.setdefault(column, "")
    for column, rows in (*covered.items(), *reaching.items()):
        covered[column] = rows - 1
    return [line.get(column, "") for column in range(max(line, default=-1) + 1)]


class _PageText:
    """Collects the blocks of a page; `title` and `author` are what its head says."""

    def __init__(self) -> None:
        self.title: list[str] = []
        self.author: str | None = None
        self._page = _Flow()
        self._tables: list[_HtmlTable] = []
        self._too_deep = 0
        self._unseen: list[str] = []
        self._unseen_open: Counter[str] = Counter()
        self._in_title = False

    def finished(self) -> list[TextBlock]:
        """All blocks of the page."""
        while self._tables:
            self._end_table()
        self._page.end_line()
        blocks: list[TextBlock] = []
        outer_headings: list[tuple[int, str]] = []
        lines: list[str] = []

        def end_block(*, last: bool = False) -> None:
            nonlocal lines
            text = "\n".join(lines).strip("\n")
            heading = tuple(title for _, title in outer_headings if title)
            if heading and text == heading[-1] and not last:
                # A heading with nothing of its own under it goes with what comes under it.
                lines = [text, ""]
                return
            lines = []
            if text.strip():
                blocks.append(TextBlock(text, heading))

        for text, level in self._page.items:
            if level > 0:
                end_block()
                while outer_headings and outer_headings[-1][0] >= level:
                    outer_headings.pop()
                outer_headings.append((level, text))
            if text or level <= 0:
                lines.append(text)
        end_block(last=True)
        return blocks

    @property
    def _flow(self) -> _Flow:
        return self._tables[-1].flow if self._tables else self._page

    def begin(self, tag: str, attributes: Attributes) -> None:
        """An element begins."""
        attrs = dict(attributes)
        self._read_head(tag, attrs)
        if self._unseen:
            return
        if tag == "br":
            self._flow.end_line(keep=True)
        elif tag == "input" and (attrs.get("type") or "").lower() == "checkbox":
            self._flow.add("[x] " if "checked" in attrs else "[ ] ")
        elif tag in _OF_TABLES and (self._tables or tag == "table"):
            self._too_deep += tag == "table" and len(self._tables) >= _DEEPEST_TABLE
            if self._too_deep:
                self._flow.end_line()
            elif tag == "table":
                is_layout = (attrs.get("role") or "").strip().lower() in {"presentation", "none"}
                self._tables.append(_HtmlTable(is_layout))
            else:
                self._tables[-1].begin(tag, attrs)
        elif tag in _CELLS and self._flow.line:
            self._flow.line.append(BETWEEN_CELLS)
        elif tag in _BLOCKS:
            self._flow.begin(tag, attrs)

    def _read_head(self, tag: str, attrs: dict[str, str | None]) -> None:
        """Read the head of a page, and the elements that it does not show."""
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
            closed_tag = ""
            while closed_tag != tag:
                closed_tag = self._unseen.pop()
                self._unseen_open[closed_tag] -= 1
        elif self._unseen:
            return
        elif tag in _OF_TABLES and self._tables:
            if self._too_deep:
                self._too_deep -= tag == "table"
                self._flow.end_line()
            elif tag == "table":
                self._end_table()
            else:
                self._tables[-1].end(tag)
        elif tag in _BLOCKS:
            self._flow.end(tag)

    def _end_table(self) -> None:
        items = self._tables.pop().items()
        self._flow.put(items)

    def add(self, data: str) -> None:
        """Text. Soft hyphens in it are no part of its words."""
        if self._in_title:
            self.title.append(data)
        elif not self._unseen:
            self._flow.add(data.replace("\u00ad", ""))


def _parse_number(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() and len(text) < 6 else 1
