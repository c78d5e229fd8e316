"""What the symbol of a syntax node is called, where the grammar has no plain `name` for it.

In: a node of tree-sitter. Out: names, or the symbols of a statement that defines several. It reads
the node and nothing around it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from anaphora.ingest.projects.files.roles import words
from anaphora.ingest.projects.sections.base import Import

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


_LONGEST = 20_000
"""Bytes of a statement that are read; nobody writes longer ones."""
_QUOTED = re.compile(r"[\"'`]([^\"'`\n]+)[\"'`]")
_INCLUDED = re.compile(r"#\s*include\s*[<\"]([^>\"\n]+)[>\"]")
_JAVA = re.compile(r"import\s+(?:static\s+)?([\w.]+?)(\.\*)?\s*;")
_C_SHARP = re.compile(r"(?:global\s+)?using\s+(?:static\s+|unsafe\s+)*(?:(\w+)\s*=\s*)?([\w.:]+)")
_SOURCED = re.compile(r"(?:source|\.)\s+(\S+)")
_RUST_MOD = re.compile(r"\bmod\s+(?:r#)?(\w+)\s*;")
_RUST_CRATE = re.compile(r"extern\s+crate\s+(\w+)")
_RUST_USE = re.compile(r"\buse\s+(.*?);?\s*$", re.DOTALL)
_RUST_AS = re.compile(r"\s+as\s+\w+")
_PHP_USE = re.compile(r"^use\s+(?:function\s+|const\s+)?(.*?);?\s*$", re.DOTALL)

Found = tuple[str, tuple[str, ...]]


def imports_of(language: str, nodes: Sequence[Node]) -> tuple[Import, ...]:
    """The imports of a file in the order of their lines, each once.

    What is written in a few ways means one thing: `mod a;` of Rust is "self::a", and Ruby's
    `require_relative "a"` is "./a".
    """
    if language == "python":
        found = [each for node in nodes for each in _python(node)]
    else:
        read = _READERS[language]
        found = [
            Import(module, names, 0, node.start_point.row + 1)
            for node in nodes
            for module, names in read(node)
            if module
        ]
    return tuple(dict.fromkeys(sorted(found, key=lambda each: each.line)))


def _words(node: Node) -> str:
    return (node.text or b"")[:_LONGEST].decode("utf-8", "replace")


def _python(node: Node) -> Iterator[Import]:
    line = node.start_point.row + 1
    names = tuple(_python_name(each) for each in node.children_by_field_name("name"))
    if node.type == "import_statement":
        yield from (Import(name, (), 0, line) for name in names)
        return
    if any(child.type == "wildcard_import" for child in node.named_children):
        names = ("*",)
    module = node.child_by_field_name("module_name")
    written = _words(module) if module is not None else "__future__"
    bare = written.lstrip(". \t")
    yield Import(bare, names, written[: len(written) - len(bare)].count("."), line)


def _python_name(node: Node) -> str:
    named = node.child_by_field_name("name") if node.type == "aliased_import" else node
    return _words(named) if named is not None else ""


def _javascript(node: Node) -> Iterator[Found]:
    source = node.child_by_field_name("source")
    if source is None and node.type == "call_expression":
        source = node.child_by_field_name("arguments")
    quoted = _QUOTED.search(_words(source if source is not None else node))
    if quoted is None:
        return
    names: list[str] = []
    for child in node.named_children:
        if child.type in {"import_clause", "export_clause"}:
            names.extend(_javascript_names(child))
        elif child.type == "namespace_export":
            names.append("*")
    if node.type == "export_statement" and not names:
        names.append("*")
    yield quoted[1], tuple(names)


def _javascript_names(node: Node) -> Iterator[str]:
    for child in node.named_children:
        if child.type in {"import_specifier", "export_specifier"}:
            name = child.child_by_field_name("name")
            if name is not None:
                yield _words(name)
        elif child.type == "identifier":
            yield "default"
        elif child.type == "namespace_import":
            yield "*"
        else:
            yield from _javascript_names(child)


def _go(node: Node) -> Iterator[Found]:
    path = node.child_by_field_name("path")
    if path is not None:
        yield _words(path).strip('"`'), ()


def _rust(node: Node) -> Iterator[Found]:
    words = _words(node)
    if node.type == "mod_item":
        declared = _RUST_MOD.search(words)
        if declared is not None:
            yield f"self::{declared[1]}", ()
        return
    if node.type == "extern_crate_declaration":
        crate = _RUST_CRATE.search(words)
        if crate is not None:
            yield crate[1], ()
        return
    used = _RUST_USE.search(words)
    if used is not None:
        yield from _grouped(_RUST_AS.sub("", used[1]), "::")


def _grouped(written: str, separator: str) -> Iterator[Found]:
    """`a::b`, `a::*` and `a::{b, c::d}`; groups within groups keep their text as one name."""
    compact = "".join(written.split())
    base, opened, group = compact.partition("{")
    if opened:
        names = tuple(name for name in _top_level(group.removesuffix("}")) if name)
        yield base.removesuffix(separator) or separator, names
    elif compact.endswith(separator + "*"):
        yield compact.removesuffix(separator + "*"), ("*",)
    else:
        yield compact, ()


def _top_level(group: str) -> Iterator[str]:
    depth, start = 0, 0
    for at, character in enumerate(group):
        if character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
        elif character == "," and depth == 0:
            yield group[start:at]
            start = at + 1
    yield group[start:]


def _java(node: Node) -> Iterator[Found]:
    found = _JAVA.search(_words(node))
    if found is not None:
        yield found[1], ("*",) if found[2] else ()


def _c(node: Node) -> Iterator[Found]:
    found = _INCLUDED.search(_words(node))
    if found is not None:
        yield found[1], ()


def _ruby(node: Node) -> Iterator[Found]:
    words = _words(node)
    found = _QUOTED.search(words)
    if found is not None and "#{" not in found[1]:
        relative = words.startswith("require_relative") and not found[1].startswith(".")
        yield ("./" if relative else "") + found[1], ()


def _php(node: Node) -> Iterator[Found]:
    words = _words(node)
    used = _PHP_USE.match(words)
    if used is None:
        quoted = _QUOTED.search(words)
        if quoted is not None:
            yield ("." if "__DIR__" in words else "") + quoted[1], ()
        return
    plain = re.sub(r"\s+as\s+\w+", "", used[1])
    parts = [plain] if "{" in plain else plain.split(",")
    for part in parts:
        yield from _grouped(part.strip().lstrip("\\"), "\\")


def _c_sharp(node: Node) -> Iterator[Found]:
    found = _C_SHARP.match(_words(node))
    if found is not None:
        yield found[2], (found[1],) if found[1] else ()


def _bash(node: Node) -> Iterator[Found]:
    found = _SOURCED.match(_words(node))
    if found is not None:
        yield found[1].strip("\"'"), ()


_READERS: Final[Mapping[str, Callable[[Node], Iterator[Found]]]] = {
    "javascript": _javascript,
    "typescript": _javascript,
    "tsx": _javascript,
    "go": _go,
    "rust": _rust,
    "java": _java,
    "c": _c,
    "cpp": _c,
    "ruby": _ruby,
    "php": _php,
    "csharp": _c_sharp,
    "bash": _bash,
}
