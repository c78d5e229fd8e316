"""The imports of a file, as written and as resolved: files, folders or packages.

`imports_of` reads the nodes of a syntax tree, `resolve` knows the paths of a project and reads no
file. Where a language does not say enough (search paths, aliases of a bundler), only what can be no
other is resolved: the rest is a package, or nothing.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal

from anaphora.ingest.sections.base import ImportedModule
from anaphora.language.word_lists import words

if TYPE_CHECKING:
    from tree_sitter import Node

_LONGEST = 20_000
"""Bytes of a statement that are read, more than any real one has."""
_QUOTED = re.compile(r"[\"'`]([^\"'`\n]+)[\"'`]")
_RUST_MOD = re.compile(r"\bmod\s+(?:r#)?(\w+)\s*;")
_RUST_CRATE = re.compile(r"extern\s+crate\s+(\w+)")
_RUST_USE = re.compile(r"\buse\s+(.*?);?\s*$", re.DOTALL)
_AS = re.compile(r"\s+as\s+\w+")
_PHP_USE = re.compile(r"^use\s+(?:function\s+|const\s+)?(.*?);?\s*$", re.DOTALL)


def imports_of(language: str, nodes: Sequence[Node]) -> tuple[ImportedModule, ...]:
    """The imports of a file in the order of their lines, each once.

    What is written in a few ways means one thing: `mod a;` of Rust is "self::a", and Ruby's
    `require_relative "a"` is "./a".
    """
    statements = [
        replace(statement, line=node.start_point.row + 1)
        for node in nodes
        for statement in _READERS[language](node)
        if statement.module or language == "python"
    ]
    return tuple(dict.fromkeys(sorted(statements, key=lambda statement: statement.line)))


def _read_text(node: Node) -> str:
    return (node.text or b"")[:_LONGEST].decode("utf-8", "replace")


def _read_python(node: Node) -> Iterator[ImportedModule]:
    # Of `a as b` the name `a`.
    name_nodes = (
        name_node.child_by_field_name("name") if name_node.type == "aliased_import" else name_node
        for name_node in node.children_by_field_name("name")
    )
    names = tuple(_read_text(name) if name is not None else "" for name in name_nodes)
    if node.type == "import_statement":
        yield from map(ImportedModule, names)
        return
    if any(child.type == "wildcard_import" for child in node.named_children):
        names = ("*",)
    module = node.child_by_field_name("module_name")
    module_text = _read_text(module) if module is not None else "__future__"
    bare = module_text.lstrip(". \t")
    yield ImportedModule(bare, names, module_text[: len(module_text) - len(bare)].count("."))


def _read_javascript(node: Node) -> Iterator[ImportedModule]:
    source = node.child_by_field_name("source")
    if source is None and node.type == "call_expression":
        source = node.child_by_field_name("arguments")
    quoted_module = _QUOTED.search(_read_text(source if source is not None else node))
    if quoted_module is None:
        return
    names: list[str] = []
    for child in node.named_children:
        if child.type in {"import_clause", "export_clause"}:
            names.extend(_read_javascript_names(child))
        elif child.type == "namespace_export":
            names.append("*")
    if node.type == "export_statement" and not names:
        names.append("*")
    yield ImportedModule(quoted_module[1], tuple(names))


def _read_javascript_names(node: Node) -> Iterator[str]:
    for child in node.named_children:
        if child.type in {"import_specifier", "export_specifier"}:
            name = child.child_by_field_name("name")
            if name is not None:
                yield _read_text(name)
        elif child.type == "identifier":
            yield "default"
        elif child.type == "namespace_import":
            yield "*"
        else:
            yield from _read_javascript_names(child)


def _read_rust(node: Node) -> Iterator[ImportedModule]:
    statement = _read_text(node)
    if node.type == "mod_item":
        if mod_match := _RUST_MOD.search(statement):
            yield ImportedModule(f"self::{mod_match[1]}")
    elif node.type == "extern_crate_declaration":
        if crate := _RUST_CRATE.search(statement):
            yield ImportedModule(crate[1])
    elif use_match := _RUST_USE.search(statement):
        yield from _split_group(_AS.sub("", use_match[1]), "::")


def _split_group(written: str, separator: str) -> Iterator[ImportedModule]:
    """`a::b`, `a::*` and `a::{b, c::d}`; groups within groups keep their text as one name."""
    compact = "".join(written.split())
    base, brace, group = compact.partition("{")
    if brace:
        # Only the commas outside of inner groups separate names.
        depth, names = 0, [""]
        for character in group.removesuffix("}"):
            depth += (character == "{") - (character == "}")
            if character == "," and depth == 0:
                names.append("")
            else:
                names[-1] += character
        yield ImportedModule(base.removesuffix(separator) or separator, tuple(filter(None, names)))
    elif compact.endswith(separator + "*"):
        yield ImportedModule(compact.removesuffix(separator + "*"), ("*",))
    else:
        yield ImportedModule(compact)


def _read_ruby(node: Node) -> Iterator[ImportedModule]:
    statement = _read_text(node)
    quoted_module = _QUOTED.search(statement)
    if quoted_module is not None and "#{" not in quoted_module[1]:
        relative = statement.startswith("require_relative") and not quoted_module[1].startswith(".")
        yield ImportedModule(("./" if relative else "") + quoted_module[1])


def _read_php(node: Node) -> Iterator[ImportedModule]:
    statement = _read_text(node)
    use_match = _PHP_USE.match(statement)
    if use_match is None:
        if quoted_module := _QUOTED.search(statement):
            yield ImportedModule(("." if "__DIR__" in statement else "") + quoted_module[1])
        return
    plain = _AS.sub("", use_match[1])
    for part in [plain] if "{" in plain else plain.split(","):
        yield from _split_group(part.strip().lstrip("\\"), "\\")


def _make_reader(pattern: str) -> Callable[[Node], Iterator[ImportedModule]]:
    """Statements that begin as `pattern` says, with the groups "module" and perhaps "name"."""
    compiled_pattern = re.compile(pattern)

    def read(node: Node) -> Iterator[ImportedModule]:
        if match := compiled_pattern.match(_read_text(node)):
            name = match.groupdict().get("name")
            yield ImportedModule(match["module"], (name,) if name else ())

    return read


_INCLUDE = _make_reader(r"#\s*include\s*[<\"](?P<module>[^>\"\n]+)[>\"]")
_READERS: Final[Mapping[str, Callable[[Node], Iterator[ImportedModule]]]] = {
    "python": _read_python,
    "javascript": _read_javascript,
    "typescript": _read_javascript,
    "tsx": _read_javascript,
    "go": _make_reader(r"[^\"`]*[\"`]+(?P<module>[^\"`]*)"),
    "rust": _read_rust,
    "java": _make_reader(r"import\s+(?:static\s+)?(?P<module>[\w.]+?)(?:\.(?P<name>\*))?\s*;"),
    "c": _INCLUDE,
    "cpp": _INCLUDE,
    "ruby": _read_ruby,
    "php": _read_php,
    "csharp": _make_reader(
        r"(?:global\s+)?using\s+(?:static\s+|unsafe\s+)*(?:(?P<name>\w+)\s*=\s*)?(?P<module>[\w.:]+)"
    ),
    "bash": _make_reader(r"(?:source|\.)\s+[\"']*(?P<module>\S*?)[\"']*(?:\s|$)"),
}


_PYTHON_FILES: Final = (".py", "/__init__.py", ".pyi", "/__init__.pyi")
_PYTHON_ENDINGS: Final = (".py", ".pyi")
_RUST_FILES: Final = (".rs", "/mod.rs")
_JS_ENDINGS: Final = (
    ".ts", ".tsx", ".d.ts", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs", ".json", ".vue",
    ".svelte",
)  # fmt: skip
_NODE: Final = words(
    "assert async_hooks buffer child_process cluster console constants crypto dgram dns domain "
    "events fs http http2 https inspector module net os path perf_hooks process punycode "
    "querystring readline repl stream string_decoder sys test timers tls tty url util v8 vm wasi "
    "worker_threads zlib"
)
_OWN_OF_PLATFORM: Final = ("java.", "javax.", "jdk.", "sun.", "android.", "kotlin.")


@dataclass(frozen=True, slots=True)
class ImportTarget:
    """The target of an import: a "file" or "module" (a folder) by path, or a "package" by name."""

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
    python_names: dict[str, tuple[str, ...]] = field(init=False)
    """Of names of modules and packages the roots that they lie in, in the order of those."""

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
            posixpath.dirname(package)
            for package in packages
            if posixpath.dirname(package) not in packages
        }
        nearest = sorted(roots, key=lambda path: (path.count("/"), path))
        self.python_roots = tuple(dict.fromkeys(["", "src", *nearest]))
        ranks = {root: position for position, root in enumerate(self.python_roots)}
        roots_by_name: dict[str, set[str]] = {}
        for path in self.files:
            inner_path, folder_above = path if path.endswith(_PYTHON_ENDINGS) else "", ""
            while inner_path:
                if folder_above in ranks:
                    name = inner_path.partition("/")[0].partition(".")[0]
                    roots_by_name.setdefault(name, set()).add(folder_above)
                folder, _, inner_path = inner_path.partition("/")
                folder_above = f"{folder_above}/{folder}" if folder_above else folder
        self.python_names = {
            name: tuple(sorted(owners, key=ranks.__getitem__))
            for name, owners in roots_by_name.items()
        }

    def first(self, paths: Iterable[str]) -> str | None:
        """The first of these paths that there is."""
        return next((path for path in paths if path in self.files), None)

    def ending_in(self, tail: str) -> str | None:
        """The file with a path that is `tail` or ends in it, if there is only one."""
        if tail in self.files:
            return tail
        named_paths = self.by_name.get(posixpath.basename(tail), ())
        matches = [path for path in named_paths if path.endswith("/" + tail)]
        return matches[0] if len(matches) == 1 else None

    def folder_ending_in(self, tail: str) -> str | None:
        """The folder with a path that is `tail` or ends in it, if there is only one."""
        if tail in self.folders:
            return tail
        matches = [path for path in self.folders if path.endswith("/" + tail)]
        return matches[0] if len(matches) == 1 else None


def resolve(
    path: str, language: str | None, imports: Iterable[ImportedModule], layout: ProjectLayout
) -> tuple[ImportTarget, ...]:
    """The targets of the imports of the file at `path`, each once, without the file itself."""
    resolver = _RESOLVERS.get(language or "")
    if resolver is None:
        return ()
    targets = dict.fromkeys(
        target
        for statement in imports
        for target in resolver(path, statement, layout)
        if target.name != path
    )
    return tuple(targets)


def _resolve_python(
    path: str, imported: ImportedModule, layout: ProjectLayout
) -> Iterator[ImportTarget]:
    parts = [part for part in imported.module.split(".") if part]
    if imported.level:
        base = posixpath.dirname(path)
        for _ in range(imported.level - 1):
            base = posixpath.dirname(base)
        yield from _find_python(base, parts, imported.names, layout)
        return
    if not parts or parts[0] == "__future__":
        return
    for root in (*layout.python_names.get(parts[0], ()), posixpath.dirname(path)):
        targets = list(_find_python(root, parts, imported.names, layout))
        if targets:
            yield from targets
            return
    if parts[0] not in sys.stdlib_module_names:
        yield ImportTarget("package", parts[0])


def _find_python(
    root: str, parts: list[str], names: tuple[str, ...], layout: ProjectLayout
) -> Iterator[ImportTarget]:
    """`names` that are modules of their own are meant, and else the module that has them."""
    base = posixpath.join(root, *parts)
    inner_files = [
        file for name in names if (file := _find_python_file(posixpath.join(base, name), layout))
    ]
    module = _find_python_file(base, layout) if parts or root else None
    # A package of which only submodules are taken is not what the file works with.
    used_module = module if module is not None and len(inner_files) < max(1, len(names)) else None
    for file in [*([used_module] if used_module else []), *inner_files]:
        yield ImportTarget("file", file)
    if module is None and not inner_files and len(parts) > 1:
        # `import a.b.name`: the last part may be something that a module has.
        outer_file = _find_python_file(posixpath.join(root, *parts[:-1]), layout)
        if outer_file is not None:
            yield ImportTarget("file", outer_file)


def _find_python_file(base: str, layout: ProjectLayout) -> str | None:
    return layout.first(f"{base}{end}".lstrip("/") for end in _PYTHON_FILES)


def _resolve_javascript(
    path: str, imported: ImportedModule, layout: ProjectLayout
) -> Iterator[ImportTarget]:
    name = imported.module.partition("?")[0]
    if name.startswith((".", "/")):
        base = _join(posixpath.dirname(path), name.lstrip("/") if name[0] == "/" else name)
        file = _find_javascript_file(base, layout)
    elif name.startswith(("@/", "~/", "#/")):
        # A habit of bundlers; only what is there counts.
        file = _find_javascript_file("src/" + name[2:], layout) or _find_javascript_file(
            name[2:], layout
        )
    else:
        parts = name.split("/")
        package = "/".join(parts[: 2 if name.startswith("@") else 1])
        if package and not package.startswith("node:") and package not in _NODE:
            yield ImportTarget("package", package)
        return
    if file is not None:
        yield ImportTarget("file", file)


def _find_javascript_file(base: str, layout: ProjectLayout) -> str | None:
    stem, ending = posixpath.splitext(base)
    bases = [base, stem] if ending in {".js", ".jsx", ".mjs", ".cjs"} else [base]
    candidate_files = [candidate + end for candidate in bases for end in ("", *_JS_ENDINGS)]
    return layout.first((*candidate_files, *(f"{base}/index{end}" for end in _JS_ENDINGS)))


def _resolve_go(
    path: str, imported: ImportedModule, layout: ProjectLayout
) -> Iterator[ImportTarget]:
    for folder, module in layout.go_modules.items():
        if imported.module == module or imported.module.startswith(module + "/"):
            inner_folder = posixpath.join(
                folder, imported.module[len(module) :].lstrip("/")
            ).rstrip("/")
            if inner_folder in layout.folders:
                yield ImportTarget("module", inner_folder)
            return
    first_segment, *segments = imported.module.split("/")
    if first_segment.startswith("."):
        folder = _join(posixpath.dirname(path), imported.module)
        if folder in layout.folders:
            yield ImportTarget("module", folder)
    elif "." in first_segment:
        # What is hosted at these is named by owner and repository.
        is_hosted = first_segment in {"github.com", "gitlab.com", "bitbucket.org"}
        yield ImportTarget("package", "/".join([first_segment, *segments[: 2 if is_hosted else 1]]))


def _resolve_rust(
    path: str, imported: ImportedModule, layout: ProjectLayout
) -> Iterator[ImportTarget]:
    first_segment, *segments = [part for part in imported.module.split("::") if part] or [""]
    names = [name.split("::")[0] for name in imported.names if name not in {"*", "self"}]
    folder, name = posixpath.split(path)
    if name in {"mod.rs", "lib.rs", "main.rs", "build.rs"}:
        own_folder = folder
    else:
        own_folder = posixpath.join(folder, name.removesuffix(".rs"))
    if first_segment == "crate":
        base = posixpath.dirname(path)
        while base and not {f"{base}/lib.rs", f"{base}/main.rs"} & layout.files:
            base = posixpath.dirname(base)
    elif first_segment in {"self", "super"}:
        base = own_folder
        for part in (first_segment, *segments):
            base = posixpath.dirname(base) if part == "super" else base
        segments = [part for part in segments if part != "super"]
    else:
        base, segments = own_folder, [first_segment, *segments]
        if (
            layout.first(f"{posixpath.join(own_folder, first_segment)}{end}" for end in _RUST_FILES)
            is None
        ):
            if first_segment and first_segment not in {
                "std",
                "core",
                "alloc",
                "proc_macro",
                "test",
            }:
                yield ImportTarget("package", first_segment)
            return
    for parts in [[*segments, name] for name in names] or [segments]:
        # The last names may be of what a module holds.
        candidate_bases = [posixpath.join(base, *parts[:n]) for n in range(len(parts), 0, -1)]
        file = layout.first(
            f"{candidate}{end}" for candidate in candidate_bases for end in _RUST_FILES
        )
        if file is not None:
            yield ImportTarget("file", file)


def _resolve_java(
    path: str, imported: ImportedModule, layout: ProjectLayout
) -> Iterator[ImportTarget]:
    parts = imported.module.split(".")
    if imported.names:
        folder = layout.folder_ending_in("/".join(parts))
        if folder is not None:
            yield ImportTarget("module", folder)
            return
    # A static import, or a class within a class, names more than the file.
    for end in range(len(parts), max(1, len(parts) - 2), -1):
        file = layout.ending_in("/".join(parts[:end]) + ".java")
        if file is not None:
            yield ImportTarget("file", file)
            return
    if not imported.module.startswith(_OWN_OF_PLATFORM):
        lower = [part for part in parts if part[:1].islower()]
        yield ImportTarget("package", ".".join(lower[:3]) or imported.module)


def _resolve_c(
    path: str, imported: ImportedModule, layout: ProjectLayout
) -> Iterator[ImportTarget]:
    file = _find_near(path, imported.module, layout)
    if file is not None:
        yield ImportTarget("file", file)
    elif "/" in imported.module and not imported.module.startswith((".", "sys/", "bits/")):
        yield ImportTarget("package", imported.module.split("/")[0])


def _resolve_ruby(
    path: str, imported: ImportedModule, layout: ProjectLayout
) -> Iterator[ImportTarget]:
    name = imported.module.removesuffix(".rb")
    if name.startswith("."):
        file = _join(posixpath.dirname(path), name) + ".rb"
        if file in layout.files:
            yield ImportTarget("file", file)
        return
    within = layout.ending_in(f"lib/{name}.rb")
    if within is not None:
        yield ImportTarget("file", within)
    else:
        yield ImportTarget("package", name.split("/")[0])


def _resolve_php(
    path: str, imported: ImportedModule, layout: ProjectLayout
) -> Iterator[ImportTarget]:
    if imported.module.endswith((".php", ".inc")) or "/" in imported.module:
        if file := _find_near(path, imported.module.lstrip("/"), layout):
            yield ImportTarget("file", file)
        return
    for name in imported.names or ("",):
        parts = [part for part in (*imported.module.split("\\"), name) if part]
        # A namespace begins above the folder of its files: names are matched from their end.
        tails = ("/".join(parts[start:]) + ".php" for start in range(max(1, len(parts) - 1)))
        fit = next((hit for tail in tails if (hit := layout.ending_in(tail))), None)
        if fit is not None:
            yield ImportTarget("file", fit)
        elif len(parts) > 1:
            yield ImportTarget("package", "/".join(parts[:2]).lower())


def _resolve_c_sharp(
    path: str, imported: ImportedModule, layout: ProjectLayout
) -> Iterator[ImportTarget]:
    parts = imported.module.split(".")
    if parts[0] in {"System", "Microsoft"} and len(parts) < 3:
        return
    tails = ("/".join(parts[start:]) for start in range(len(parts)))
    folders = [imported.module, *tails]
    folder = next((hit for tail in folders if (hit := layout.folder_ending_in(tail))), None)
    if folder is not None:
        yield ImportTarget("module", folder)
    elif parts[0] != "System":
        yield ImportTarget("package", ".".join(parts[:2]))


def _resolve_bash(
    path: str, imported: ImportedModule, layout: ProjectLayout
) -> Iterator[ImportTarget]:
    # "$(dirname "$0")/x.sh" and the like: what follows the last variable is beside the file.
    name = re.sub(r"^.*[})\"]/|^\$\w+/", "", imported.module)
    if file := _find_near(path, name, layout):
        yield ImportTarget("file", file)


def _find_near(path: str, name: str, layout: ProjectLayout) -> str | None:
    """The file of this name seen from the file at `path`, else the only one that ends in it."""
    near_path = _join(posixpath.dirname(path), name)
    return near_path if near_path in layout.files else layout.ending_in(name.lstrip("./"))


def _join(folder: str, name: str) -> str:
    path = posixpath.normpath(posixpath.join(folder, name))
    return "" if path == "." else path


_RESOLVERS: Final[
    Mapping[str, Callable[[str, ImportedModule, ProjectLayout], Iterator[ImportTarget]]]
] = {
    "python": _resolve_python,
    # Imports of its cells in Python alone are read.
    "notebook": _resolve_python,
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
