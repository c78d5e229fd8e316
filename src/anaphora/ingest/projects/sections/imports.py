"""What a file imports, as it is written and as it is meant: files, folders or packages.

`imports_of` reads the nodes of a syntax tree, `resolve` knows the paths of a project and reads no
file. Where a language does not say enough (search paths, aliases of a bundler), only what can be no
other is resolved: the rest is a package, or nothing.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from anaphora.ingest.projects.sections.base import Import

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

ImportNames = tuple[str, tuple[str, ...]]


def imports_of(language: str, nodes: Sequence[Node]) -> tuple[Import, ...]:
    """The imports of a file in the order of their lines, each once.

    What is written in a few ways means one thing: `mod a;` of Rust is "self::a", and Ruby's
    `require_relative "a"` is "./a".
    """
    if language == "python":
        found = [each for node in nodes for each in _python_imports(node)]
    else:
        read = _READERS[language]
        found = [
            Import(module, names, 0, node.start_point.row + 1)
            for node in nodes
            for module, names in read(node)
            if module
        ]
    return tuple(dict.fromkeys(sorted(found, key=lambda each: each.line)))


def _text_of(node: Node) -> str:
    return (node.text or b"")[:_LONGEST].decode("utf-8", "replace")


def _python_imports(node: Node) -> Iterator[Import]:
    line = node.start_point.row + 1
    names = tuple(_python_name(each) for each in node.children_by_field_name("name"))
    if node.type == "import_statement":
        yield from (Import(name, (), 0, line) for name in names)
        return
    if any(child.type == "wildcard_import" for child in node.named_children):
        names = ("*",)
    module = node.child_by_field_name("module_name")
    written = _text_of(module) if module is not None else "__future__"
    bare = written.lstrip(". \t")
    yield Import(bare, names, written[: len(written) - len(bare)].count("."), line)


def _python_name(node: Node) -> str:
    named = node.child_by_field_name("name") if node.type == "aliased_import" else node
    return _text_of(named) if named is not None else ""


def _read_javascript(node: Node) -> Iterator[ImportNames]:
    source = node.child_by_field_name("source")
    if source is None and node.type == "call_expression":
        source = node.child_by_field_name("arguments")
    quoted = _QUOTED.search(_text_of(source if source is not None else node))
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
                yield _text_of(name)
        elif child.type == "identifier":
            yield "default"
        elif child.type == "namespace_import":
            yield "*"
        else:
            yield from _javascript_names(child)


def _read_go(node: Node) -> Iterator[ImportNames]:
    path = node.child_by_field_name("path")
    if path is not None:
        yield _text_of(path).strip('"`'), ()


def _read_rust(node: Node) -> Iterator[ImportNames]:
    words = _text_of(node)
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


def _grouped(written: str, separator: str) -> Iterator[ImportNames]:
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


def _read_java(node: Node) -> Iterator[ImportNames]:
    found = _JAVA.search(_text_of(node))
    if found is not None:
        yield found[1], ("*",) if found[2] else ()


def _read_c(node: Node) -> Iterator[ImportNames]:
    found = _INCLUDED.search(_text_of(node))
    if found is not None:
        yield found[1], ()


def _read_ruby(node: Node) -> Iterator[ImportNames]:
    words = _text_of(node)
    found = _QUOTED.search(words)
    if found is not None and "#{" not in found[1]:
        relative = words.startswith("require_relative") and not found[1].startswith(".")
        yield ("./" if relative else "") + found[1], ()


def _read_php(node: Node) -> Iterator[ImportNames]:
    words = _text_of(node)
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


def _read_c_sharp(node: Node) -> Iterator[ImportNames]:
    found = _C_SHARP.match(_text_of(node))
    if found is not None:
        yield found[2], (found[1],) if found[1] else ()


def _read_bash(node: Node) -> Iterator[ImportNames]:
    found = _SOURCED.match(_text_of(node))
    if found is not None:
        yield found[1].strip("\"'"), ()


_READERS: Final[Mapping[str, Callable[[Node], Iterator[ImportNames]]]] = {
    "javascript": _read_javascript,
    "typescript": _read_javascript,
    "tsx": _read_javascript,
    "go": _read_go,
    "rust": _read_rust,
    "java": _read_java,
    "c": _read_c,
    "cpp": _read_c,
    "ruby": _read_ruby,
    "php": _read_php,
    "csharp": _read_c_sharp,
    "bash": _read_bash,
}


_JS_ENDINGS: Final = (
    ".ts", ".tsx", ".d.ts", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs", ".json", ".vue",
    ".svelte",
)  # fmt: skip
_NODE: Final = frozenset(
    # A list of forty names would fill a page.
    "assert async_hooks buffer child_process cluster console constants crypto dgram dns domain "  # noqa: SIM905
    "events fs http http2 https inspector module net os path perf_hooks process punycode "
    "querystring readline repl stream string_decoder sys test timers tls tty url util v8 vm wasi "
    "worker_threads zlib".split()
)
_OWN_OF_PLATFORM: Final = ("java.", "javax.", "jdk.", "sun.", "android.", "kotlin.")


@dataclass(frozen=True, slots=True)
class ImportTarget:
    """What an import means: a "file" or a "module" (a folder) by path, or a "package" by name."""

    kind: Literal["file", "module", "package"]
    name: str


@dataclass(slots=True)
class ProjectLayout:
    """The paths of a project, indexed. `go_modules` maps a folder to its module path."""

    files: frozenset[str]
    go_modules: Mapping[str, str] = field(default_factory=dict)
    folders: frozenset[str] = field(init=False)
    by_name: dict[str, list[str]] = field(init=False)
    python_roots: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        folders: set[str] = set()
        self.by_name = {}
        for path in sorted(self.files):
            self.by_name.setdefault(posixpath.basename(path), []).append(path)
            folder = posixpath.dirname(path)
            while folder not in folders:
                folders.add(folder)
                folder = posixpath.dirname(folder)
        self.folders = frozenset(folders)
        # Where packages lie: beside the outermost folders that have an __init__.py.
        packages = {posixpath.dirname(path) for path in self.by_name.get("__init__.py", ())}
        roots = {
            posixpath.dirname(one) for one in packages if posixpath.dirname(one) not in packages
        }
        self.python_roots = tuple(dict.fromkeys(["", "src", *sorted(roots, key=_nearest)]))

    def ending_in(self, tail: str) -> str | None:
        """The file whose path is `tail` or ends in it, when there is only one."""
        if tail in self.files:
            return tail
        named = self.by_name.get(posixpath.basename(tail), ())
        found = [path for path in named if path.endswith("/" + tail)]
        return found[0] if len(found) == 1 else None

    def folder_ending_in(self, tail: str) -> str | None:
        """The folder whose path is `tail` or ends in it, when there is only one."""
        if tail in self.folders:
            return tail
        found = [path for path in self.folders if path.endswith("/" + tail)]
        return found[0] if len(found) == 1 else None


def resolve(
    path: str, language: str | None, imports: Iterable[Import], layout: ProjectLayout
) -> tuple[ImportTarget, ...]:
    """What the imports of the file at `path` mean, each target once, the file itself left out."""
    resolver = _RESOLVERS.get(language or "")
    if resolver is None:
        return ()
    found = dict.fromkeys(
        target for one in imports for target in resolver(path, one, layout) if target.name != path
    )
    return tuple(found)


def _resolve_python(path: str, one: Import, layout: ProjectLayout) -> Iterator[ImportTarget]:
    parts = [part for part in one.module.split(".") if part]
    if one.level:
        base = posixpath.dirname(path)
        for _ in range(one.level - 1):
            base = posixpath.dirname(base)
        yield from _python_at(base, parts, one.names, layout)
        return
    if not parts or parts[0] == "__future__":
        return
    for root in (*layout.python_roots, posixpath.dirname(path)):
        found = list(_python_at(root, parts, one.names, layout))
        if found:
            yield from found
            return
    if parts[0] not in sys.stdlib_module_names:
        yield ImportTarget("package", parts[0])


def _python_at(
    root: str, parts: list[str], names: tuple[str, ...], layout: ProjectLayout
) -> Iterator[ImportTarget]:
    """`names` that are modules of their own are meant, and else the module that has them."""
    base = posixpath.join(root, *parts)
    inner = [found for name in names if (found := _python_file(posixpath.join(base, name), layout))]
    own = _python_file(base, layout) if parts or root else None
    # A package of which only submodules are taken is not what the file works with.
    whole = own if own is not None and len(inner) < max(1, len(names)) else None
    for found in [*([whole] if whole else []), *inner]:
        yield ImportTarget("file", found)
    if own is None and not inner and len(parts) > 1:
        # `import a.b.name`: the last part may be something that a module has.
        outer = _python_file(posixpath.join(root, *parts[:-1]), layout)
        if outer is not None:
            yield ImportTarget("file", outer)


def _python_file(base: str, layout: ProjectLayout) -> str | None:
    for path in (f"{base}.py", f"{base}/__init__.py", f"{base}.pyi", f"{base}/__init__.pyi"):
        if path.lstrip("/") in layout.files:
            return path.lstrip("/")
    return None


def _resolve_javascript(path: str, one: Import, layout: ProjectLayout) -> Iterator[ImportTarget]:
    name = one.module.partition("?")[0]
    if name.startswith((".", "/")):
        base = _joined(posixpath.dirname(path), name.lstrip("/") if name[0] == "/" else name)
        found = _javascript_file(base, layout)
    elif name.startswith(("@/", "~/", "#/")):
        # A habit of bundlers; only what is there counts.
        found = _javascript_file("src/" + name[2:], layout) or _javascript_file(name[2:], layout)
    else:
        parts = name.split("/")
        package = "/".join(parts[: 2 if name.startswith("@") else 1])
        if package and not package.startswith("node:") and package not in _NODE:
            yield ImportTarget("package", package)
        return
    if found is not None:
        yield ImportTarget("file", found)


def _javascript_file(base: str, layout: ProjectLayout) -> str | None:
    stem, ending = posixpath.splitext(base)
    bases = [base, stem] if ending in {".js", ".jsx", ".mjs", ".cjs"} else [base]
    for one in bases:
        for path in (one, *(one + end for end in _JS_ENDINGS)):
            if path in layout.files:
                return path
    for end in _JS_ENDINGS:
        if f"{base}/index{end}" in layout.files:
            return f"{base}/index{end}"
    return None


def _resolve_go(path: str, one: Import, layout: ProjectLayout) -> Iterator[ImportTarget]:
    for folder, module in layout.go_modules.items():
        if one.module == module or one.module.startswith(module + "/"):
            inner = posixpath.join(folder, one.module[len(module) :].lstrip("/")).rstrip("/")
            if inner in layout.folders:
                yield ImportTarget("module", inner)
            return
    first, *rest = one.module.split("/")
    if first.startswith("."):
        folder = _joined(posixpath.dirname(path), one.module)
        if folder in layout.folders:
            yield ImportTarget("module", folder)
    elif "." in first:
        # What is hosted at these is named by owner and repository.
        hosted = first in {"github.com", "gitlab.com", "bitbucket.org"}
        yield ImportTarget("package", "/".join([first, *rest[: 2 if hosted else 1]]))


def _resolve_rust(path: str, one: Import, layout: ProjectLayout) -> Iterator[ImportTarget]:
    first, *rest = [part for part in one.module.split("::") if part] or [""]
    names = [name.split("::")[0] for name in one.names if name not in {"*", "self"}]
    own = _rust_folder(path)
    if first == "crate":
        base = _rust_root(path, layout)
    elif first in {"self", "super"}:
        base = own
        for part in (first, *rest):
            base = posixpath.dirname(base) if part == "super" else base
        rest = [part for part in rest if part != "super"]
    else:
        inside = _rust_file(posixpath.join(own, first), layout)
        base, rest = own, [first, *rest]
        if inside is None:
            if first and first not in {"std", "core", "alloc", "proc_macro", "test"}:
                yield ImportTarget("package", first)
            return
    for parts in [[*rest, name] for name in names] or [rest]:
        # The last names may be of what a module holds.
        tried = (
            _rust_file(posixpath.join(base, *parts[:n]), layout) for n in range(len(parts), 0, -1)
        )
        found = next((one for one in tried if one is not None), None)
        if found is not None:
            yield ImportTarget("file", found)


def _rust_folder(path: str) -> str:
    """The folder in which the modules of a file lie."""
    folder, name = posixpath.split(path)
    if name in {"mod.rs", "lib.rs", "main.rs", "build.rs"}:
        return folder
    return posixpath.join(folder, name.removesuffix(".rs"))


def _rust_root(path: str, layout: ProjectLayout) -> str:
    folder = posixpath.dirname(path)
    while folder and not {f"{folder}/lib.rs", f"{folder}/main.rs"} & layout.files:
        folder = posixpath.dirname(folder)
    return folder


def _rust_file(base: str, layout: ProjectLayout) -> str | None:
    for path in (f"{base}.rs", f"{base}/mod.rs"):
        if path in layout.files:
            return path
    return None


def _resolve_java(path: str, one: Import, layout: ProjectLayout) -> Iterator[ImportTarget]:
    parts = one.module.split(".")
    if one.names:
        folder = layout.folder_ending_in("/".join(parts))
        if folder is not None:
            yield ImportTarget("module", folder)
            return
    # A static import, or a class within a class, names more than the file.
    for end in range(len(parts), max(1, len(parts) - 2), -1):
        found = layout.ending_in("/".join(parts[:end]) + ".java")
        if found is not None:
            yield ImportTarget("file", found)
            return
    if not one.module.startswith(_OWN_OF_PLATFORM):
        lower = [part for part in parts if part[:1].islower()]
        yield ImportTarget("package", ".".join(lower[:3]) or one.module)


def _resolve_c(path: str, one: Import, layout: ProjectLayout) -> Iterator[ImportTarget]:
    near = _joined(posixpath.dirname(path), one.module)
    found = near if near in layout.files else layout.ending_in(one.module.lstrip("./"))
    if found is not None:
        yield ImportTarget("file", found)
    elif "/" in one.module and not one.module.startswith((".", "sys/", "bits/")):
        yield ImportTarget("package", one.module.split("/")[0])


def _resolve_ruby(path: str, one: Import, layout: ProjectLayout) -> Iterator[ImportTarget]:
    name = one.module.removesuffix(".rb")
    if name.startswith("."):
        found = _joined(posixpath.dirname(path), name) + ".rb"
        if found in layout.files:
            yield ImportTarget("file", found)
        return
    within = layout.ending_in(f"lib/{name}.rb")
    if within is not None:
        yield ImportTarget("file", within)
    else:
        yield ImportTarget("package", name.split("/")[0])


def _resolve_php(path: str, one: Import, layout: ProjectLayout) -> Iterator[ImportTarget]:
    if one.module.endswith((".php", ".inc")) or "/" in one.module:
        near = _joined(posixpath.dirname(path), one.module.lstrip("/"))
        found = near if near in layout.files else layout.ending_in(one.module.lstrip("./"))
        if found is not None:
            yield ImportTarget("file", found)
        return
    for name in one.names or ("",):
        parts = [part for part in (*one.module.split("\\"), name) if part]
        # A namespace begins above the folder of its files: names are matched from their end.
        tails = ("/".join(parts[start:]) + ".php" for start in range(max(1, len(parts) - 1)))
        fit = next((hit for tail in tails if (hit := layout.ending_in(tail))), None)
        if fit is not None:
            yield ImportTarget("file", fit)
        elif len(parts) > 1:
            yield ImportTarget("package", "/".join(parts[:2]).lower())


def _resolve_c_sharp(path: str, one: Import, layout: ProjectLayout) -> Iterator[ImportTarget]:
    parts = one.module.split(".")
    if parts[0] in {"System", "Microsoft"} and len(parts) < 3:
        return
    tails = ("/".join(parts[start:]) for start in range(len(parts)))
    folders = [one.module, *tails]
    found = next((hit for tail in folders if (hit := layout.folder_ending_in(tail))), None)
    if found is not None:
        yield ImportTarget("module", found)
    elif parts[0] != "System":
        yield ImportTarget("package", ".".join(parts[:2]))


def _resolve_bash(path: str, one: Import, layout: ProjectLayout) -> Iterator[ImportTarget]:
    # "$(dirname "$0")/x.sh" and the like: what follows the last variable is beside the file.
    name = re.sub(r"^.*[})\"]/|^\$\w+/", "", one.module)
    near = _joined(posixpath.dirname(path), name)
    found = near if near in layout.files else layout.ending_in(name.lstrip("./"))
    if found is not None:
        yield ImportTarget("file", found)


def _joined(folder: str, name: str) -> str:
    found = posixpath.normpath(posixpath.join(folder, name))
    return "" if found == "." else found


def _nearest(path: str) -> tuple[int, str]:
    return path.count("/"), path


_RESOLVERS: Final[Mapping[str, Callable[[str, Import, ProjectLayout], Iterator[ImportTarget]]]] = {
    "python": _resolve_python,
    "javascript": _resolve_javascript,
    "typescript": _resolve_javascript,
    "tsx": _resolve_javascript,
    "go": _resolve_go,
    "rust": _resolve_rust,
    "java": _resolve_java,
    "c": _resolve_c,
    "cpp": _resolve_c,
    "ruby": _resolve_ruby,
    "php": _resolve_php,
    "csharp": _resolve_c_sharp,
    "bash": _resolve_bash,
}
