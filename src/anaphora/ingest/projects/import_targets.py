"""Which files, folders or packages the imports of a file mean, within one project.

In: imports as they are written, and the paths of the project. Out: targets. It reads nothing, and
where a language does not say enough (search paths, aliases of a bundler) it resolves only what can
be no other: what is left is a package, or nothing.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from anaphora.ingest.projects.sections.base import Import

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
class Target:
    """What an import means: a "file" or a "module" (a folder) by path, or a "package" by name."""

    kind: Literal["file", "module", "package"]
    name: str


@dataclass(slots=True)
class Layout:
    """The paths of a project, ready to be asked. `go_modules` maps a folder to its module path."""

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
    path: str, language: str | None, imports: Iterable[Import], layout: Layout
) -> tuple[Target, ...]:
    """What the imports of the file at `path` mean, each target once, the file itself left out."""
    read = _RESOLVERS.get(language or "")
    if read is None:
        return ()
    found = dict.fromkeys(
        target for one in imports for target in read(path, one, layout) if target.name != path
    )
    return tuple(found)


def _python(path: str, one: Import, layout: Layout) -> Iterator[Target]:
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
        yield Target("package", parts[0])


def _python_at(
    root: str, parts: list[str], names: tuple[str, ...], layout: Layout
) -> Iterator[Target]:
    """`names` that are modules of their own are meant, and else the module that has them."""
    base = posixpath.join(root, *parts)
    inner = [found for name in names if (found := _python_file(posixpath.join(base, name), layout))]
    own = _python_file(base, layout) if parts or root else None
    # A package of which only submodules are taken is not what the file works with.
    whole = own if own is not None and len(inner) < max(1, len(names)) else None
    for found in [*([whole] if whole else []), *inner]:
        yield Target("file", found)
    if own is None and not inner and len(parts) > 1:
        # `import a.b.name`: the last part may be something that a module has.
        outer = _python_file(posixpath.join(root, *parts[:-1]), layout)
        if outer is not None:
            yield Target("file", outer)


def _python_file(base: str, layout: Layout) -> str | None:
    for path in (f"{base}.py", f"{base}/__init__.py", f"{base}.pyi", f"{base}/__init__.pyi"):
        if path.lstrip("/") in layout.files:
            return path.lstrip("/")
    return None


def _javascript(path: str, one: Import, layout: Layout) -> Iterator[Target]:
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
            yield Target("package", package)
        return
    if found is not None:
        yield Target("file", found)


def _javascript_file(base: str, layout: Layout) -> str | None:
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


def _go(path: str, one: Import, layout: Layout) -> Iterator[Target]:
    for folder, module in layout.go_modules.items():
        if one.module == module or one.module.startswith(module + "/"):
            inner = posixpath.join(folder, one.module[len(module) :].lstrip("/")).rstrip("/")
            if inner in layout.folders:
                yield Target("module", inner)
            return
    first, *rest = one.module.split("/")
    if first.startswith("."):
        folder = _joined(posixpath.dirname(path), one.module)
        if folder in layout.folders:
            yield Target("module", folder)
    elif "." in first:
        # What is hosted at these is named by owner and repository.
        hosted = first in {"github.com", "gitlab.com", "bitbucket.org"}
        yield Target("package", "/".join([first, *rest[: 2 if hosted else 1]]))


def _rust(path: str, one: Import, layout: Layout) -> Iterator[Target]:
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
                yield Target("package", first)
            return
    for parts in [[*rest, name] for name in names] or [rest]:
        # The last names may be of what a module holds.
        tried = (
            _rust_file(posixpath.join(base, *parts[:n]), layout) for n in range(len(parts), 0, -1)
        )
        found = next((one for one in tried if one is not None), None)
        if found is not None:
            yield Target("file", found)


def _rust_folder(path: str) -> str:
    """The folder in which the modules of a file lie."""
    folder, name = posixpath.split(path)
    if name in {"mod.rs", "lib.rs", "main.rs", "build.rs"}:
        return folder
    return posixpath.join(folder, name.removesuffix(".rs"))


def _rust_root(path: str, layout: Layout) -> str:
    folder = posixpath.dirname(path)
    while folder and not {f"{folder}/lib.rs", f"{folder}/main.rs"} & layout.files:
        folder = posixpath.dirname(folder)
    return folder


def _rust_file(base: str, layout: Layout) -> str | None:
    for path in (f"{base}.rs", f"{base}/mod.rs"):
        if path in layout.files:
            return path
    return None


def _java(path: str, one: Import, layout: Layout) -> Iterator[Target]:
    parts = one.module.split(".")
    if one.names:
        folder = layout.folder_ending_in("/".join(parts))
        if folder is not None:
            yield Target("module", folder)
            return
    # A static import, or a class within a class, names more than the file.
    for end in range(len(parts), max(1, len(parts) - 2), -1):
        found = layout.ending_in("/".join(parts[:end]) + ".java")
        if found is not None:
            yield Target("file", found)
            return
    if not one.module.startswith(_OWN_OF_PLATFORM):
        lower = [part for part in parts if part[:1].islower()]
        yield Target("package", ".".join(lower[:3]) or one.module)


def _c(path: str, one: Import, layout: Layout) -> Iterator[Target]:
    near = _joined(posixpath.dirname(path), one.module)
    found = near if near in layout.files else layout.ending_in(one.module.lstrip("./"))
    if found is not None:
        yield Target("file", found)
    elif "/" in one.module and not one.module.startswith((".", "sys/", "bits/")):
        yield Target("package", one.module.split("/")[0])


def _ruby(path: str, one: Import, layout: Layout) -> Iterator[Target]:
    name = one.module.removesuffix(".rb")
    if name.startswith("."):
        found = _joined(posixpath.dirname(path), name) + ".rb"
        if found in layout.files:
            yield Target("file", found)
        return
    within = layout.ending_in(f"lib/{name}.rb")
    if within is not None:
        yield Target("file", within)
    else:
        yield Target("package", name.split("/")[0])


def _php(path: str, one: Import, layout: Layout) -> Iterator[Target]:
    if one.module.endswith((".php", ".inc")) or "/" in one.module:
        near = _joined(posixpath.dirname(path), one.module.lstrip("/"))
        found = near if near in layout.files else layout.ending_in(one.module.lstrip("./"))
        if found is not None:
            yield Target("file", found)
        return
    for name in one.names or ("",):
        parts = [part for part in (*one.module.split("\\"), name) if part]
        # A namespace begins above the folder of its files: names are matched from their end.
        tails = ("/".join(parts[start:]) + ".php" for start in range(max(1, len(parts) - 1)))
        fit = next((hit for tail in tails if (hit := layout.ending_in(tail))), None)
        if fit is not None:
            yield Target("file", fit)
        elif len(parts) > 1:
            yield Target("package", "/".join(parts[:2]).lower())


def _c_sharp(path: str, one: Import, layout: Layout) -> Iterator[Target]:
    parts = one.module.split(".")
    if parts[0] in {"System", "Microsoft"} and len(parts) < 3:
        return
    tails = ("/".join(parts[start:]) for start in range(len(parts)))
    folders = [one.module, *tails]
    found = next((hit for tail in folders if (hit := layout.folder_ending_in(tail))), None)
    if found is not None:
        yield Target("module", found)
    elif parts[0] != "System":
        yield Target("package", ".".join(parts[:2]))


def _bash(path: str, one: Import, layout: Layout) -> Iterator[Target]:
    # "$(dirname "$0")/x.sh" and the like: what follows the last variable is beside the file.
    name = re.sub(r"^.*[})\"]/|^\$\w+/", "", one.module)
    near = _joined(posixpath.dirname(path), name)
    found = near if near in layout.files else layout.ending_in(name.lstrip("./"))
    if found is not None:
        yield Target("file", found)


def _joined(folder: str, name: str) -> str:
    found = posixpath.normpath(posixpath.join(folder, name))
    return "" if found == "." else found


def _nearest(path: str) -> tuple[int, str]:
    return path.count("/"), path


_RESOLVERS: Final[Mapping[str, Callable[[str, Import, Layout], Iterator[Target]]]] = {
    "python": _python,
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
