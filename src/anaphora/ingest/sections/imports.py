"""What a file imports, as it is written.

In: the nodes that a language's query found. Out: imports with their lines. It resolves nothing:
which file or package is meant is for whoever knows the project.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from anaphora.ingest.sections.base import Import

if TYPE_CHECKING:
    from tree_sitter import Node

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
