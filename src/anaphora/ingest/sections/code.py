"""Code by symbol: each function, method and type is a section with the comments right above it.

What stands between the symbols (imports, constants, statements) becomes sections of its own where
it is long enough to say something, and otherwise belongs to the symbol before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from anaphora.ingest.sections.base import (
    MAX_CHARS,
    MAX_LINES,
    ImportedModule,
    SectionStart,
    Symbol,
    first_words,
    fits,
    is_wordy,
    joined_names,
)
from anaphora.ingest.sections.grammars import GRAMMARS, Grammar, language, query
from anaphora.ingest.sections.imports import imports_of
from anaphora.language.word_lists import words

if TYPE_CHECKING:
    from tree_sitter import Node


_NAME = 120
_DECLARATORS = words(
    "function_declarator pointer_declarator reference_declarator array_declarator "
    "parenthesized_declarator init_declarator attributed_declarator"
)
_FUNCTIONS = words("function_expression function arrow_function generator_function class")
_TEST_CALLS = words("describe it test suite context specify")
_ARGUMENTS = re.compile(r"<[^<>]*>")


_VALUED = {
    "field_definition": ("property", "value"),
    "public_field_definition": ("name", "value"),
    "assignment_expression": ("left", "right"),
}
"""The fields with the name and the value of what gives a function a name."""


def text_of(node: Node | None) -> str:
    """The words of a node in one line, at most 120 characters; "" for none."""
    if node is None or node.text is None:
        return ""
    # Four bytes hold any character, so this much is enough of a node of any size.
    beginning = node.text[: 4 * _NAME].decode("utf-8", "replace")
    return " ".join(beginning.split())[:_NAME]


def _read_text_at(node: Node, name: str) -> str:
    return text_of(node.child_by_field_name(name))


def name_of(node: Node) -> str:
    """The name of a symbol, with dots where its language has `::`; "" if it has none."""
    special = _SPECIAL.get(node.type)
    name = special(node) if special is not None else _read_text_at(node, "name")
    return name.replace("::", ".").replace("\\", ".").strip(".")


def constants_of(node: Node) -> Iterator[tuple[str, str]]:
    """The names that a statement defines without a body of its own, each with its kind or ""."""
    special = _MANY.get(node.type)
    if special is not None:
        yield from special(node)
    elif name := name_of(node):
        yield name, ""


def function_value(node: Node) -> tuple[str, str, Node] | None:
    """The name, kind and body holder of a JavaScript statement that gives a function a name.

    `const a = () => …`, `exports.a = function …`, `A.prototype.b = …`, `a = () => …` in a class,
    and a test framework's `it("does", () => …)`.
    """
    if node.type in {"lexical_declaration", "variable_declaration"}:
        declarators = [
            child for child in node.named_children if child.type == "variable_declarator"
        ]
        return _read_valued(declarators[0], "name", "value") if len(declarators) == 1 else None
    if node.type in _VALUED:
        return _read_valued(node, *_VALUED[node.type])
    if node.type != "call_expression":
        return None
    function_name = _read_text_at(node, "function").split(".")[0]
    arguments = node.child_by_field_name("arguments")
    if function_name not in _TEST_CALLS or arguments is None or not arguments.named_children:
        return None
    title, body = arguments.named_children[0], _function_argument(node)
    if body is None or title.type not in {"string", "template_string"}:
        return None
    return text_of(title).strip("\"'`") or function_name, "test", body


def _read_valued(node: Node, name: str, value: str) -> tuple[str, str, Node] | None:
    name_node, body = node.child_by_field_name(name), node.child_by_field_name(value)
    if name_node is None or body is None or name_node.type in {"object_pattern", "array_pattern"}:
        return None
    if body.type == "call_expression":
        # `const A = memo(() => …)`: the function is what the name stands for.
        body = _function_argument(body) or body
    if body.type not in _FUNCTIONS:
        return None
    parts = [part for part in text_of(name_node).split(".") if part != "prototype"]
    if len(parts) > 1 and parts[0] in {"exports", "module", "this", "self", "window"}:
        parts = parts[1:]
    return ".".join(parts), "class" if body.type == "class" else "function", body


def _function_argument(call: Node) -> Node | None:
    arguments = call.child_by_field_name("arguments")
    for argument in arguments.named_children if arguments is not None else []:
        if argument.type in _FUNCTIONS:
            return argument
    return None


def _read_declared(node: Node | None) -> str:
    """The name within a C declarator: through pointers, arrays and parameter lists."""
    for _ in range(20):
        if node is None:
            return ""
        if node.type not in _DECLARATORS:
            return text_of(node)
        declarator = node.child_by_field_name("declarator")
        node = declarator if declarator is not None else next(iter(node.named_children), None)
    return ""


def _name_function(node: Node) -> str:
    declarator = node.child_by_field_name("declarator")
    if declarator is None:
        return _read_text_at(node, "name")
    return _ARGUMENTS.sub("", _read_declared(declarator))


def _name_c_type(node: Node) -> str:
    """The name of a struct with a body; one without a body is only mentioned."""
    if node.child_by_field_name("body") is None:
        return ""
    return _ARGUMENTS.sub("", _read_text_at(node, "name"))


def _name_method(node: Node) -> str:
    """In Go with its receiver's type before it."""
    name, receiver = _read_text_at(node, "name"), node.child_by_field_name("receiver")
    if receiver is None:
        return name
    kind = text_of(receiver).strip("()").split(" ")[-1].lstrip("*")
    return f"{kind.partition('[')[0]}.{name}"


_SPECIAL: Final[Mapping[str, Callable[[Node], str]]] = {
    "struct_specifier": _name_c_type,
    "union_specifier": _name_c_type,
    "enum_specifier": _name_c_type,
    "class_specifier": _name_c_type,
    "method_declaration": _name_method,
    "impl_item": lambda node: _ARGUMENTS.sub("", _read_text_at(node, "type")),
    "operator_declaration": lambda node: f"operator {_read_text_at(node, 'operator')}",
    # TypeScript's may be in quotes.
    "module": lambda node: _read_text_at(node, "name").strip("\"'"),
    "function_definition": _name_function,
}


def _find_left_names(node: Node) -> Iterator[tuple[str, str]]:
    """Python and Ruby: `A = 1`, not `a.b = 1` nor `a[0] = 1`."""
    target = node.child_by_field_name("left")
    if target is not None and target.type in {"identifier", "constant"}:
        yield text_of(target), ""


def _find_declarator_names(node: Node) -> Iterator[tuple[str, str]]:
    """JavaScript: `const a = 1, b = 2`."""
    for child in node.named_children:
        name_node = child.child_by_field_name("name")
        if (
            child.type != "variable_declarator"
            or name_node is None
            or name_node.type != "identifier"
        ):
            continue
        # `const fs = require("fs")` is an import.
        if not _read_text_at(child, "value").startswith("require("):
            yield text_of(name_node), ""


def _find_c_names(node: Node) -> Iterator[tuple[str, str]]:
    for child in node.children_by_field_name("declarator"):
        declarator: Node | None = child
        while (
            declarator is not None
            and declarator.type in _DECLARATORS
            and declarator.type != "function_declarator"
        ):
            declarator = declarator.child_by_field_name("declarator")
        is_function = declarator is not None and declarator.type == "function_declarator"
        if name := _read_declared(child):
            yield name, "function" if is_function else ""
    # `typedef struct { … } a;` and `struct a { … } b;` define the struct too.
    declared_type = node.child_by_field_name("type")
    if declared_type is None or declared_type.child_by_field_name("body") is None:
        return
    if name := _read_text_at(declared_type, "name"):
        yield name, ""


def _find_children_names(node: Node) -> Iterator[tuple[str, str]]:
    """Go's `var a, b = 1, 2` and PHP's `const A = 1, B = 2;`."""
    for child in node.children_by_field_name("name"):
        yield text_of(child), ""
    for child in node.named_children:
        if child.type == "const_element" and child.named_children:
            yield text_of(child.named_children[0]), ""


_MANY: Final[Mapping[str, Callable[[Node], Iterator[tuple[str, str]]]]] = {
    "assignment": _find_left_names,
    "lexical_declaration": _find_declarator_names,
    "variable_declaration": _find_declarator_names,
    "declaration": _find_c_names,
    "type_definition": _find_c_names,
    "const_spec": _find_children_names,
    "var_spec": _find_children_names,
    "const_declaration": _find_children_names,
    "type_alias_statement": lambda node: iter([(_read_text_at(node, "left").split("[")[0], "")]),
}


MAX_DEPTH = 16
"""Nodes that are looked through within one another; what lies deeper stays part of its holder."""

_TYPES = frozenset({"class", "struct", "interface", "trait", "enum", "union", "impl"})
_STATEMENTS = frozenset({"lexical_declaration", "variable_declaration", "call_expression"})
_STATEMENTS |= {"assignment_expression", "field_definition", "public_field_definition"}


@dataclass(slots=True)
class OutlineItem:
    """A symbol: its lines from 1, and what is in it. A minor one is a name without a section."""

    name: str
    kind: str
    start: int
    end: int
    minor: bool = False
    label: str = ""
    """Its title, if that is more than its name."""
    children: list[OutlineItem] = field(default_factory=list)


def _list_symbols(items: Iterable[OutlineItem], above: str = "") -> Iterator[Symbol]:
    """All symbols of an outline, with their qualified names; those in a function are left out."""
    for symbol in items:
        qualified_name = f"{above}.{symbol.name}" if above else symbol.name
        if symbol.kind != "impl":
            short_name = symbol.name if symbol.kind == "test" else symbol.name.rsplit(".", 1)[-1]
            yield Symbol(short_name, qualified_name, symbol.kind, symbol.start, symbol.end)
        if symbol.kind != "function":
            yield from _list_symbols(symbol.children, qualified_name)


def _find_items(
    holder_node: Node, grammar: Grammar, holder: str | None, depth: int
) -> Iterator[OutlineItem]:
    """The symbols among the children of a node and in what wraps them."""
    for node in holder_node.named_children if depth <= MAX_DEPTH else []:
        is_condition = node.type == "if_statement"
        if is_condition and _read_text_at(node, "condition").startswith("__name__"):
            # Names below Python's `if __name__ == "__main__":` cannot be imported.
            continue
        if node.type in grammar.symbols and (symbol := _symbol(node, grammar, holder, depth)):
            yield symbol
        elif node.type in _STATEMENTS and (statement := _read_statement(node, grammar, depth)):
            yield statement
        elif node.type in grammar.outer or node.type in grammar.wrappers or node.type == "ERROR":
            items = list(_find_items(node, grammar, holder, depth + 1))
            if len(items) == 1 and node.type in grammar.outer:
                # A single symbol in a decorator or an `export` gets all lines of the wrapper.
                items[0].start, items[0].end = _find_rows(node)
            yield from items
        elif node.type in grammar.minor and holder not in {*_TYPES, "function"}:
            start, end = _find_rows(node)
            for name, kind in constants_of(node):
                yield OutlineItem(name, kind or grammar.minor[node.type], start, end, minor=True)
        elif node.type == "call_expression" and _is_long(node):
            yield from _find_within_call(node, grammar, depth)


def _symbol(node: Node, grammar: Grammar, holder: str | None, depth: int) -> OutlineItem | None:
    name = name_of(node)
    # `mod a;` of Rust and `namespace A;` of PHP: what they name is not in them.
    around = node.type in {"mod_item", "namespace_definition"}
    if not name or (around and node.child_by_field_name("body") is None):
        return None
    kind = grammar.symbols[node.type]
    if kind == "function" and (holder in _TYPES or "." in name):
        kind = "method"
    elif kind == "method" and holder is None and "." not in name:
        kind = "function"
    start, end = _find_rows(node)
    symbol = OutlineItem(name, kind, start, end, minor=kind == "type" and start == end)
    if kind == "impl":
        symbol.label = " ".join(text_of(node).partition("{")[0].split())
    if node.type in grammar.holders or _is_long(node):
        inner_holder = kind if node.type in grammar.holders else "function"
        symbol.children = _body_items(node, grammar, inner_holder, depth)
    return symbol


def _body_items(node: Node, grammar: Grammar, holder: str, depth: int) -> list[OutlineItem]:
    body = node.child_by_field_name("body")
    return list(_find_items(body if body is not None else node, grammar, holder, depth + 1))


def _read_statement(node: Node, grammar: Grammar, depth: int) -> OutlineItem | None:
    """A JavaScript statement that names a function. Other languages have no such nodes."""
    function = function_value(node)
    if function is None:
        return None
    name, kind, body = function
    start, end = _find_rows(node)
    if kind == "function" and ("definition" in node.type or "." in name):
        kind = "method"
    symbol = OutlineItem(name, kind, start, end)
    if kind in {"class", "test"} or _is_long(node):
        symbol.children = _body_items(body, grammar, "class" if kind == "class" else "", depth)
    return symbol


def _find_within_call(node: Node, grammar: Grammar, depth: int) -> Iterator[OutlineItem]:
    """A long call of a function on the spot, or with one: its symbols are the file's own."""
    function_node, arguments = (
        node.child_by_field_name(name) for name in ("function", "arguments")
    )
    for part in [function_node, *(arguments.named_children if arguments is not None else [])]:
        is_bracketed = part is not None and part.type == "parenthesized_expression"
        inner_node = (
            part.named_children[0] if part and is_bracketed and part.named_children else part
        )
        body = inner_node.child_by_field_name("body") if inner_node is not None else None
        if body is not None:
            yield from _find_items(body, grammar, None, depth + 1)


def _find_rows(node: Node) -> tuple[int, int]:
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


def code_starts(
    name: str, title: str, lines: Sequence[str]
) -> tuple[list[SectionStart], tuple[Symbol, ...], tuple[ImportedModule, ...]]:
    """The sections, symbols and imports of code in the language `name`, one of `GRAMMARS`.

    `title` is what lines without any words are called. There are no sections without symbols, nor
    for text that no one wrote as code and that a parser would recover from for minutes.
    """
    # The parser cannot be stopped, and its recovery takes time that grows with the square of the
    # brackets, lines or here-documents that exceed what code has.
    depth = heredocs = 0
    for line in lines:
        heredocs += line.count("<<")
        depth += sum(map(line.count, "([{")) - sum(map(line.count, ")]}"))
        if len(line) > LONGEST_LINE or depth > DEEPEST or heredocs > MOST_HERE:
            return [], (), ()
        depth = max(depth, 0)
    from tree_sitter import Parser, QueryCursor

    # tree-sitter counts bytes; a lone surrogate has no UTF-8, and any one byte keeps the rows.
    # A NUL ends the text for some grammars.
    source = "\n".join(lines).replace("\0", " ").encode("utf-8", "replace")
    root = Parser(language(name)).parse(source).root_node
    captures = QueryCursor(query(name)).captures(root)
    items = list(_find_items(root, GRAMMARS[name], None, 0))
    nodes = captures.get("comment", [])
    rows: set[int] = set()
    for node in nodes:
        first_row, column = node.start_point.row, node.start_point.column
        text_before = (
            lines[first_row].encode("utf-8", "replace")[:column] if first_row < len(lines) else b"x"
        )
        if text_before.strip():
            continue
        last_row = node.end_point.row - (1 if node.end_point.column == 0 else 0)
        rows.update(range(first_row + 1, max(first_row, last_row) + 2))
    comment_rows = frozenset(rows)
    starts = _Starts(lines, title, comment_rows)
    starts.add(items, 1, len(lines))
    return (
        starts.starts if any(not symbol.minor for symbol in items) else [],
        tuple(_list_symbols(items)),
        imports_of(name, captures.get("import", [])),
    )


def _is_telling(line: str) -> bool:
    return is_wordy(line) and not _CONDITION.match(line)


@dataclass(slots=True)
class _Starts:
    """Collects the starts of sections of one file."""

    lines: Sequence[str]
    title: str
    comments: frozenset[int]
    starts: list[SectionStart] = field(default_factory=list)

    def add(
        self,
        items: Sequence[OutlineItem],
        start: int,
        end: int,
        heading: tuple[str, ...] = (),
        above: str = "",
    ) -> None:
        """Mark the items between lines `start` and `end`, and the gaps between them.

        Within another symbol (`above`) what is before the first item is its head, no gap.
        """
        at = start
        waiting: list[OutlineItem] = []
        for symbol in items:
            if symbol.minor:
                waiting.append(symbol)
                continue
            first_line = self._with_comments(symbol.start, at)
            if at > start or not above:
                self._add_gap(at, first_line - 1, waiting, heading)
            self._symbol(symbol, first_line, heading, above)
            waiting = []
            at = max(at, symbol.end + 1)
        self._add_gap(at, end, waiting, heading)

    def _symbol(self, item: OutlineItem, first: int, heading: tuple[str, ...], above: str) -> None:
        qualified_name = f"{above}.{item.name}" if above else item.name
        *outer_names, name = [item.name] if item.kind == "test" else item.name.split(".")
        within = (*heading, *outer_names)
        title = item.label or qualified_name
        parts = [child for child in item.children if not child.minor]
        section = SectionStart(first, "symbol", title, within, qualified_name)
        is_short = item.end - first < WHOLE_LINES and fits(self.lines, first, item.end)
        if not parts or is_short:
            self.starts.append(section)
            return
        head = range(first, self._with_comments(parts[0].start, first))
        inner_index, start = len(self.starts), first
        min_lines = 3 if item.kind in _THIN else 2
        if sum(_is_telling(self.lines[number - 1]) for number in head) < min_lines:
            # A namespace or a bare `class A:` says nothing alone: it goes with its first part.
            start = head.stop
        else:
            # Up to the first part it is the type itself: its head, its fields.
            self.starts.append(section)
        self.add(item.children, start, item.end, (*within, name), qualified_name)
        if start > first and len(self.starts) > inner_index:
            self.starts[inner_index] = replace(self.starts[inner_index], start=first)

    def _with_comments(self, start: int, floor: int) -> int:
        """The first line of the comments that end right above line `start`."""
        while start > floor and (start - 1) in self.comments:
            start -= 1
        return start

    def _add_gap(
        self, start: int, end: int, minor: Sequence[OutlineItem], heading: tuple[str, ...]
    ) -> None:
        wordy = [number for number in range(start, end + 1) if _is_telling(self.lines[number - 1])]
        if not wordy or (not minor and len(wordy) < GAP_LINES):
            return
        begins = next(number for number in range(start, end + 1) if self.lines[number - 1].strip())
        first_line = wordy[0]
        words = first_words(self.lines[start - 1 : end])
        if start == 1:
            is_comment = first_line in self.comments or self.lines[
                first_line - 1
            ].lstrip().startswith(_QUOTES)
            title = words if is_comment and words else self.title
        else:
            names = dict.fromkeys(
                symbol.name for symbol in minor if not symbol.name.startswith("__")
            )
            title = joined_names(list(names)) or words or self.title
        self.starts.append(SectionStart(begins, "lines", title, heading))
