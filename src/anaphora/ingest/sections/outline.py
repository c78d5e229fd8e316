"""The symbols of a syntax tree, as a tree of their own.

In: the root node of tree-sitter and the language's table. Out: items, each with its lines and the
items within it. Statements that are no symbols are left out; what is nested too deep is as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from anaphora.ingest.sections.base import MAX_CHARS, MAX_LINES, Symbol
from anaphora.ingest.sections.grammars import Grammar
from anaphora.ingest.sections.names import constants_of, function_value, name_of, text_of

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
