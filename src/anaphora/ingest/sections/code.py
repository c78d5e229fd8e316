"""Code by symbol: each function, method and type is a section with what is written right above it.

In: lines, a language that has a grammar. Out: marks, symbols and imports. What stands between the
symbols (imports, constants, statements) becomes sections of its own where it is long enough to
say something, and otherwise belongs to the symbol before it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from anaphora.ingest.sections.base import Import, Symbol
from anaphora.ingest.sections.cutting import Mark, first_words, fits, is_wordy, named
from anaphora.ingest.sections.grammars import GRAMMARS, language, query
from anaphora.ingest.sections.imports import imports_of
from anaphora.ingest.sections.outline import Item, outline, symbols_of

if TYPE_CHECKING:
    from tree_sitter import Node

WHOLE_LINES = 30
"""A type of no more lines is one section with all its methods: apart they would say too little."""
GAP_LINES = 3
"""Lines with words between two symbols that make a section of their own."""
LONGEST_LINE = 5_000
DEEPEST = 500
MOST_HERE = 1_000
"""Bounds on a line's characters, on open brackets and on "<<" of code that is parsed."""

_THIN = frozenset({"module", "impl"})
_CONDITION = re.compile(r"\s*#\s*(?:if|ifdef|ifndef|elif|else|endif)\b")
"""A line of C's preprocessor that only says when the others count."""
_QUOTES = ('"""', "'''", '"', "'", 'r"""')


def code_marks(
    name: str, title: str, lines: Sequence[str]
) -> tuple[list[Mark], tuple[Symbol, ...], tuple[Import, ...]]:
    """The marks, symbols and imports of code in the language `name`, one of `GRAMMARS`.

    `title` is what lines without any words are called. There are no marks without symbols, nor for
    text that no one wrote as code and that a parser would recover from for minutes.
    """
    if _is_hopeless(lines):
        return [], (), ()
    from tree_sitter import Parser, QueryCursor

    # tree-sitter counts bytes; a lone surrogate has no UTF-8, and any one byte keeps the rows.
    # A NUL ends the text for some grammars.
    source = "\n".join(lines).replace("\0", " ").encode("utf-8", "replace")
    root = Parser(language(name)).parse(source).root_node
    found = QueryCursor(query(name)).captures(root)
    items = outline(root, GRAMMARS[name])
    marker = _Marker(lines, title, _rows_alone(lines, found.get("comment", [])))
    marker.mark(items, (), "", 1, len(lines))
    return (
        marker.marks if any(not item.minor for item in items) else [],
        tuple(symbols_of(items)),
        imports_of(name, found.get("import", [])),
    )


def _is_hopeless(lines: Sequence[str]) -> bool:
    """Whether brackets, lines or here-documents go beyond what code has.

    The parser cannot be stopped, and its recovery takes time that grows with the square of these.
    """
    if any(len(line) > LONGEST_LINE for line in lines):
        return True
    depth = here = 0
    for line in lines:
        here += line.count("<<")
        depth += sum(map(line.count, "([{")) - sum(map(line.count, ")]}"))
        if depth > DEEPEST or here > MOST_HERE:
            return True
        depth = max(depth, 0)
    return False


def _rows_alone(lines: Sequence[str], nodes: Sequence[Node]) -> frozenset[int]:
    """The lines (from 1) on which nothing stands before a comment or an attribute."""
    rows: set[int] = set()
    for node in nodes:
        first, column = node.start_point.row, node.start_point.column
        before = lines[first].encode("utf-8", "replace")[:column] if first < len(lines) else b"x"
        if before.strip():
            continue
        last = node.end_point.row - (1 if node.end_point.column == 0 else 0)
        rows.update(range(first + 1, max(first, last) + 2))
    return frozenset(rows)


def _says(line: str) -> bool:
    return is_wordy(line) and not _CONDITION.match(line)


@dataclass(slots=True)
class _Marker:
    """Collects the marks of one file."""

    lines: Sequence[str]
    title: str
    comments: frozenset[int]
    marks: list[Mark] = field(default_factory=list)

    def mark(
        self, items: Sequence[Item], heading: tuple[str, ...], above: str, start: int, end: int
    ) -> None:
        """Mark the items between lines `start` and `end`, and the gaps between them.

        Within another symbol (`above`) what is before the first item is its head, no gap.
        """
        at = start
        waiting: list[Item] = []
        for item in items:
            if item.minor:
                waiting.append(item)
                continue
            first = self._with_comments(item.start, at)
            if at > start or not above:
                self._gap(at, first - 1, waiting, heading)
            self._symbol(item, first, heading, above)
            waiting = []
            at = max(at, item.end + 1)
        self._gap(at, end, waiting, heading)

    def _symbol(self, item: Item, first: int, heading: tuple[str, ...], above: str) -> None:
        qualified = f"{above}.{item.name}" if above else item.name
        *outer, name = [item.name] if item.kind == "test" else item.name.split(".")
        within = (*heading, *outer)
        title = item.label or qualified
        parts = [child for child in item.children if not child.minor]
        if not parts or self._is_whole(first, item):
            self.marks.append(Mark(first, "symbol", title, within, qualified, item.kind))
            return
        head = range(first, self._with_comments(parts[0].start, first))
        inner, start = len(self.marks), first
        least = 3 if item.kind in _THIN else 2
        if sum(_says(self.lines[number - 1]) for number in head) < least:
            # A namespace or a bare `class A:` says nothing alone: it goes with its first part.
            start = head.stop
        else:
            # Up to the first part it is the type itself: its head, its fields.
            self.marks.append(Mark(first, "symbol", title, within, qualified, item.kind))
        self.mark(item.children, (*within, name), qualified, start, item.end)
        if start > first and len(self.marks) > inner:
            self.marks[inner] = replace(self.marks[inner], start=first)

    def _is_whole(self, first: int, item: Item) -> bool:
        return item.end - first < WHOLE_LINES and fits(self.lines, first, item.end)

    def _with_comments(self, start: int, floor: int) -> int:
        """The first line of the comments that end right above line `start`."""
        while start > floor and (start - 1) in self.comments:
            start -= 1
        return start

    def _gap(self, start: int, end: int, minor: Sequence[Item], heading: tuple[str, ...]) -> None:
        wordy = [number for number in range(start, end + 1) if _says(self.lines[number - 1])]
        if not wordy or (not minor and len(wordy) < GAP_LINES):
            return
        begins = next(number for number in range(start, end + 1) if self.lines[number - 1].strip())
        title = self._gap_title(start, end, wordy[0], minor)
        self.marks.append(Mark(begins, "lines", title, heading))

    def _gap_title(self, start: int, end: int, first: int, minor: Sequence[Item]) -> str:
        """What the file says of itself at its top, else the names in the gap, else its words."""
        words = first_words(self.lines[start - 1 : end])
        if start == 1:
            said = first in self.comments or self.lines[first - 1].lstrip().startswith(_QUOTES)
            return words if said and words else self.title
        names = dict.fromkeys(item.name for item in minor if not item.name.startswith("__"))
        return named(list(names)) or words or self.title
