"""Code by symbol: each function, method and type is a section with what is written right above it.

In: lines, a language that has a grammar. Out: marks, symbols and imports. What stands between the
symbols (imports, constants, statements) becomes sections of its own where it is long enough to
say something, and otherwise belongs to the symbol before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from anaphora.ingest.projects.sections.base import (
    MAX_CHARS,
    MAX_LINES,
    Import,
    Mark,
    Symbol,
    first_words,
    fits,
    is_wordy,
    named,
)
from anaphora.ingest.projects.sections.grammars import GRAMMARS, Grammar, language, query
from anaphora.ingest.projects.sections.syntax import (
    constants_of,
    function_value,
    imports_of,
    name_of,
    text_of,
)

if TYPE_CHECKING:
    from tree_sitter import Node


MAX_DEPTH = 16
"""Nodes that are looked through within one another; what lies deeper stays part of its holder."""

_TYPES = frozenset({"class", "struct", "interface", "trait", "enum", "union", "impl"})
_STATEMENTS = frozenset({"lexical_declaration", "variable_declaration", "call_expression"})
_STATEMENTS |= {"assignment_expression", "field_definition", "public_field_definition"}


@dataclass(slots=True)
class Item:
    """A symbol: its lines from 1, and what is in it. A minor one is a name without a section."""

    name: str
    kind: str
    start: int
    end: int
    minor: bool = False
    label: str = ""
    """What it is called as a title, where that is more than its name."""
    children: list[Item] = field(default_factory=list)


def outline(root: Node, grammar: Grammar) -> list[Item]:
    """The symbols of a file in the order of their lines."""
    return list(_items(root, grammar, None, 0))


def symbols_of(items: Iterable[Item], above: str = "") -> Iterator[Symbol]:
    """All symbols of an outline, with their qualified names; those in a function are left out."""
    for item in items:
        qualified = f"{above}.{item.name}" if above else item.name
        if item.kind != "impl":
            short = item.name if item.kind == "test" else item.name.rsplit(".", 1)[-1]
            yield Symbol(short, qualified, item.kind, item.start, item.end)
        if item.kind != "function":
            yield from symbols_of(item.children, qualified)


def _items(node: Node, grammar: Grammar, holder: str | None, depth: int) -> Iterator[Item]:
    for child in node.named_children:
        yield from _of(child, grammar, holder, depth)


def _of(node: Node, grammar: Grammar, holder: str | None, depth: int) -> Iterator[Item]:
    if depth > MAX_DEPTH or (node.type == "if_statement" and _is_main(node)):
        return
    if node.type in grammar.symbols:
        item = _symbol(node, grammar, holder, depth)
        if item is not None:
            yield item
            return
    if node.type in _STATEMENTS and (found := _statement(node, grammar, depth)) is not None:
        yield found
    elif node.type in grammar.outer:
        yield from _wrapped(node, grammar, holder, depth)
    elif node.type in grammar.wrappers or node.type == "ERROR":
        yield from _items(node, grammar, holder, depth + 1)
    elif node.type in grammar.minor and holder not in {*_TYPES, "function"}:
        start, end = _rows(node)
        for name, kind in constants_of(node):
            yield Item(name, kind or grammar.minor[node.type], start, end, minor=True)
    elif node.type == "call_expression" and _is_long(node):
        yield from _within_call(node, grammar, depth)


def _is_main(node: Node) -> bool:
    """Python's `if __name__ == "__main__":`, whose names are nobody else's."""
    return text_of(node.child_by_field_name("condition")).startswith("__name__")


def _symbol(node: Node, grammar: Grammar, holder: str | None, depth: int) -> Item | None:
    name = name_of(node)
    if not name or _is_only_named(node):
        return None
    kind = grammar.symbols[node.type]
    if kind == "function" and (holder in _TYPES or "." in name):
        kind = "method"
    elif kind == "method" and holder is None and "." not in name:
        kind = "function"
    start, end = _rows(node)
    item = Item(name, kind, start, end, minor=kind == "type" and start == end)
    if kind == "impl":
        item.label = " ".join(text_of(node).partition("{")[0].split())
    if node.type in grammar.holders or _is_long(node):
        held = kind if node.type in grammar.holders else "function"
        item.children = _body_items(node, grammar, held, depth)
    return item


def _is_only_named(node: Node) -> bool:
    """`mod a;` of Rust and `namespace A;` of PHP: what they name is not in them."""
    if node.type not in {"mod_item", "namespace_definition"}:
        return False
    return node.child_by_field_name("body") is None


def _body_items(node: Node, grammar: Grammar, held: str, depth: int) -> list[Item]:
    body = node.child_by_field_name("body")
    return list(_items(body if body is not None else node, grammar, held, depth + 1))


def _statement(node: Node, grammar: Grammar, depth: int) -> Item | None:
    """A JavaScript statement that names a function. Other languages have no such nodes."""
    found = function_value(node)
    if found is None:
        return None
    name, kind, held = found
    start, end = _rows(node)
    if kind == "function" and ("definition" in node.type or "." in name):
        kind = "method"
    item = Item(name, kind, start, end)
    if kind in {"class", "test"} or _is_long(node):
        item.children = _body_items(held, grammar, "class" if kind == "class" else "", depth)
    return item


def _within_call(node: Node, grammar: Grammar, depth: int) -> Iterator[Item]:
    """A long call of a function on the spot, or with one: its symbols are the file's own."""
    called, arguments = (node.child_by_field_name(name) for name in ("function", "arguments"))
    for held in [called, *(arguments.named_children if arguments is not None else [])]:
        inner = held.named_children[0] if held is not None and _is_bracketed(held) else held
        body = inner.child_by_field_name("body") if inner is not None else None
        if body is not None:
            yield from _items(body, grammar, None, depth + 1)


def _is_bracketed(node: Node) -> bool:
    return node.type == "parenthesized_expression" and bool(node.named_children)


def _wrapped(node: Node, grammar: Grammar, holder: str | None, depth: int) -> Iterator[Item]:
    """What is in a decorator or an `export`; a single symbol gets the lines of the whole."""
    items = list(_items(node, grammar, holder, depth + 1))
    if len(items) == 1:
        items[0].start, items[0].end = _rows(node)
    yield from items


def _rows(node: Node) -> tuple[int, int]:
    """First and last line. A node that ends at the beginning of a line ends on the one before."""
    start, end = node.start_point.row, node.end_point.row
    if node.end_point.column == 0 and end > start:
        end -= 1
    return start + 1, end + 1


def _is_long(node: Node) -> bool:
    lines = node.end_point.row - node.start_point.row + 1
    return lines > MAX_LINES or node.end_byte - node.start_byte > MAX_CHARS


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
