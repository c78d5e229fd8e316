"""What the symbol of a syntax node is called, where the grammar has no plain `name` for it.

In: a node of tree-sitter. Out: names, or the symbols of a statement that defines several. It reads
the node and nothing around it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from anaphora.ingest.files.values import words

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


def text_of(node: Node | None) -> str:
    """The words of a node in one line, at most 120 characters; "" for none."""
    if node is None or node.text is None:
        return ""
    # Four bytes hold any character, so this much is enough of a node of any size.
    shown = node.text[: 4 * _NAME].decode("utf-8", "replace")
    return " ".join(shown.split())[:_NAME]


def name_of(node: Node) -> str:
    """The name of a symbol, with dots where its language has `::`; "" if it has none."""
    special = _SPECIAL.get(node.type)
    name = special(node) if special is not None else text_of(node.child_by_field_name("name"))
    return name.replace("::", ".").replace("\\", ".").strip(".")


def constants_of(node: Node) -> Iterator[tuple[str, str]]:
    """The names that a statement defines without a body of its own, each with its kind or ""."""
    special = _MANY.get(node.type)
    if special is not None:
        yield from special(node)
        return
    name = name_of(node)
    if name:
        yield name, ""


def function_value(node: Node) -> tuple[str, str, Node] | None:
    """The name, kind and body holder of a JavaScript statement that gives a function a name.

    `const a = () => …`, `exports.a = function …`, `A.prototype.b = …`, `a = () => …` in a class,
    and a test framework's `it("does", () => …)`.
    """
    if node.type in {"lexical_declaration", "variable_declaration"}:
        declared = [child for child in node.named_children if child.type == "variable_declarator"]
        return _valued(declared[0], "name", "value") if len(declared) == 1 else None
    if node.type == "field_definition":
        return _valued(node, "property", "value")
    if node.type == "public_field_definition":
        return _valued(node, "name", "value")
    if node.type == "assignment_expression":
        return _valued(node, "left", "right")
    return _test_call(node) if node.type == "call_expression" else None


def _valued(node: Node, name: str, value: str) -> tuple[str, str, Node] | None:
    called, held = node.child_by_field_name(name), node.child_by_field_name(value)
    if called is None or held is None or called.type in {"object_pattern", "array_pattern"}:
        return None
    if held.type == "call_expression":
        # `const A = memo(() => …)`: the function is what the name stands for.
        held = _function_argument(held) or held
    if held.type not in _FUNCTIONS:
        return None
    parts = [part for part in text_of(called).split(".") if part != "prototype"]
    if len(parts) > 1 and parts[0] in {"exports", "module", "this", "self", "window"}:
        parts = parts[1:]
    return ".".join(parts), "class" if held.type == "class" else "function", held


def _function_argument(call: Node) -> Node | None:
    arguments = call.child_by_field_name("arguments")
    for argument in arguments.named_children if arguments is not None else []:
        if argument.type in _FUNCTIONS:
            return argument
    return None


def _test_call(node: Node) -> tuple[str, str, Node] | None:
    called = text_of(node.child_by_field_name("function")).split(".")[0]
    arguments = node.child_by_field_name("arguments")
    if called not in _TEST_CALLS or arguments is None or not arguments.named_children:
        return None
    title, body = arguments.named_children[0], _function_argument(node)
    if body is None or title.type not in {"string", "template_string"}:
        return None
    return text_of(title).strip("\"'`") or called, "test", body


def _declared(node: Node | None) -> str:
    """The name within a C declarator: through pointers, arrays and parameter lists."""
    for _ in range(20):
        if node is None:
            return ""
        if node.type not in _DECLARATORS:
            return text_of(node)
        inner = node.child_by_field_name("declarator")
        node = inner if inner is not None else next(iter(node.named_children), None)
    return ""


def _c_function(node: Node) -> str:
    return _ARGUMENTS.sub("", _declared(node.child_by_field_name("declarator")))


def _c_type(node: Node) -> str:
    """The name of a struct with a body; one without a body is only mentioned."""
    if node.child_by_field_name("body") is None:
        return ""
    return _ARGUMENTS.sub("", text_of(node.child_by_field_name("name")))


def _go_method(node: Node) -> str:
    receiver = text_of(node.child_by_field_name("receiver")).strip("()").split(" ")[-1]
    kind = re.split(r"\[", receiver.lstrip("*"))[0]
    return f"{kind}.{text_of(node.child_by_field_name('name'))}"


def _rust_impl(node: Node) -> str:
    return _ARGUMENTS.sub("", text_of(node.child_by_field_name("type")))


def _go_type(node: Node) -> str:
    return text_of(node.child_by_field_name("name"))


def _c_sharp_operator(node: Node) -> str:
    return f"operator {text_of(node.child_by_field_name('operator'))}"


def _typescript_module(node: Node) -> str:
    return text_of(node.child_by_field_name("name")).strip("\"'")


_SPECIAL: Final[Mapping[str, Callable[[Node], str]]] = {
    "struct_specifier": _c_type,
    "union_specifier": _c_type,
    "enum_specifier": _c_type,
    "class_specifier": _c_type,
    "method_declaration": lambda node: (
        _go_method(node)
        if node.child_by_field_name("receiver") is not None
        else text_of(node.child_by_field_name("name"))
    ),
    "impl_item": _rust_impl,
    "type_spec": _go_type,
    "operator_declaration": _c_sharp_operator,
    "module": lambda node: (
        _typescript_module(node) if node.child_by_field_name("name") is not None else ""
    ),
    "function_definition": lambda node: (
        _c_function(node)
        if node.child_by_field_name("declarator") is not None
        else text_of(node.child_by_field_name("name"))
    ),
}


def _left_names(node: Node) -> Iterator[tuple[str, str]]:
    """Python and Ruby: `A = 1`, not `a.b = 1` nor `a[0] = 1`."""
    left = node.child_by_field_name("left")
    if left is not None and left.type in {"identifier", "constant"}:
        yield text_of(left), ""


def _declarator_names(node: Node) -> Iterator[tuple[str, str]]:
    """JavaScript: `const a = 1, b = 2`."""
    for child in node.named_children:
        called = child.child_by_field_name("name")
        if child.type != "variable_declarator" or called is None or _is_required(child):
            continue
        if called.type == "identifier":
            yield text_of(called), ""


def _is_required(declarator: Node) -> bool:
    """`const fs = require("fs")` is an import."""
    value = declarator.child_by_field_name("value")
    return value is not None and text_of(value).startswith("require(")


def _c_declaration(node: Node) -> Iterator[tuple[str, str]]:
    for child in node.children_by_field_name("declarator"):
        name = _declared(child)
        if name:
            yield name, "function" if _is_function(child) else ""
    # `typedef struct { … } a;` and `struct a { … } b;` define the struct too.
    held = node.child_by_field_name("type")
    if held is not None and held.child_by_field_name("body") is not None:
        name = text_of(held.child_by_field_name("name"))
        if name:
            yield name, ""


def _is_function(declarator: Node) -> bool:
    node: Node | None = declarator
    while node is not None and node.type in _DECLARATORS:
        if node.type == "function_declarator":
            return True
        node = node.child_by_field_name("declarator")
    return False


def _children_names(node: Node) -> Iterator[tuple[str, str]]:
    """Go's `var a, b = 1, 2` and PHP's `const A = 1, B = 2;`."""
    for child in node.children_by_field_name("name"):
        yield text_of(child), ""
    for child in node.named_children:
        if child.type == "const_element" and child.named_children:
            yield text_of(child.named_children[0]), ""


_MANY: Final[Mapping[str, Callable[[Node], Iterator[tuple[str, str]]]]] = {
    "assignment": _left_names,
    "lexical_declaration": _declarator_names,
    "variable_declaration": _declarator_names,
    "declaration": _c_declaration,
    "type_definition": _c_declaration,
    "const_spec": _children_names,
    "var_spec": _children_names,
    "const_declaration": _children_names,
    "type_alias_statement": lambda node: iter(
        [(text_of(node.child_by_field_name("left")).split("[")[0], "")]
    ),
}
