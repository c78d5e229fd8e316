"""What the code imports and what `pyproject.toml` declares, read without running the code.

`imports` gives every import of another project's module, those inside functions too. `Declared`
gives the distributions that the base and each extra name, and all that these bring with them.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, distribution, packages_distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

__all__ = ["BASE", "ROOT", "SOURCE", "Declared", "Import", "distribution_of", "imports", "modules"]

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "anaphora"
BASE = ""
"""The name of the base among the extras."""

_OURS = "anaphora"


@dataclass(frozen=True, slots=True)
class Import:
    """One import: `scope` is the module and the function it stands in, without `anaphora.`.

    `names` are the modules that it may mean: of `from a import b` both `a.b` and `a`. None stands
    for a name that is computed. A `probe` only asks whether the module is there.
    """

    scope: str
    line: int
    names: tuple[str, ...] | None
    guarded: bool = False
    probe: bool = False

    @property
    def root(self) -> str:
        """The top-level module."""
        return self.names[-1].partition(".")[0] if self.names else ""

    def __str__(self) -> str:
        return f"{self.scope}:{self.line} {self.names[-1] if self.names else '(computed)'}"


def modules() -> Iterator[tuple[str, Path]]:
    """Every module of the package by its name without `anaphora.`, with its file."""
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imports() -> Iterator[Import]:
    """Every import of a module that is neither ours nor Python's, except those for types alone."""
    for name, path in modules():
        yield from imports_in(name, path.read_text("utf-8"))


def imports_in(module: str, source: str) -> list[Import]:
    """The imports of one module; `module` is its name without `anaphora.`."""
    reader = _Reader(module)
    reader.visit(ast.parse(source))
    return reader.imports


class _Reader(ast.NodeVisitor):
    """Collects imports with the function that they stand in."""

    def __init__(self, module: str) -> None:
        self.imports: list[Import] = []
        self._scope = [module] if module else []
        self._guarded = False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._nested(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._nested(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._nested(node)

    def visit_If(self, node: ast.If) -> None:
        # What stands under TYPE_CHECKING is never executed; its `else` is.
        types_alone = ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}
        for part in node.orelse if types_alone else (*node.body, *node.orelse):
            self.visit(part)

    def visit_Try(self, node: ast.Try) -> None:
        before = self._guarded
        self._guarded = before or any(map(_catches_import_errors, node.handlers))
        for statement in node.body:
            self.visit(statement)
        self._guarded = before
        for part in (*node.handlers, *node.orelse, *node.finalbody):
            self.visit(part)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._add(node, (alias.name,))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.module and not node.level:
            for alias in node.names:
                self._add(node, (f"{node.module}.{alias.name}", node.module))

    def visit_Call(self, node: ast.Call) -> None:
        called = ast.unparse(node.func).rpartition(".")[2]
        if called in {"import_module", "__import__", "find_spec"} and node.args:
            self._add_call(node, probe=called == "find_spec")
        self.generic_visit(node)

    def _nested(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self._scope.append(node.name)
        self.generic_visit(node)
        self._scope.pop()

    def _add_call(self, node: ast.Call, *, probe: bool) -> None:
        name = node.args[0]
        if isinstance(name, ast.Constant):
            self._add(node, (str(name.value),), probe=probe)
        elif not ast.unparse(name).startswith((f"f'{_OURS}.", "f'{__name__}.")):
            self.imports.append(self._made(node, None, probe))

    def _add(
        self, node: ast.stmt | ast.expr, names: tuple[str, ...], *, probe: bool = False
    ) -> None:
        made = self._made(node, names, probe)
        if made.root not in sys.stdlib_module_names and made.root != _OURS:
            self.imports.append(made)

    def _made(
        self, node: ast.stmt | ast.expr, names: tuple[str, ...] | None, probe: bool
    ) -> Import:
        return Import(".".join(self._scope), node.lineno, names, self._guarded, probe)


def _catches_import_errors(handler: ast.ExceptHandler) -> bool:
    names = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}
    return handler.type is None or any(
        isinstance(part, ast.Name) and part.id in names for part in ast.walk(handler.type)
    )


@cache
def _distributions_by_root() -> dict[str, frozenset[str]]:
    listed = packages_distributions()
    return {root: frozenset(map(canonicalize_name, names)) for root, names in listed.items()}


@cache
def _modules_in(name: str) -> frozenset[str]:
    """Every module and package that an installed distribution has, by dotted name."""
    made: set[str] = set()
    for file in distribution(name).files or ():
        if file.suffix in {".py", ".so", ".pyd"}:
            parts = [*file.parts[:-1], file.name.partition(".")[0]]
            made.update(".".join(parts[:end]) for end in range(1, len(parts) + 1))
    return frozenset(made)


def distribution_of(wanted: Import) -> str:
    """The distribution that an imported module belongs to.

    Several may share a top-level package (`google`): then the one that has the module itself. Of a
    module that is not installed here, its own name.
    """
    owners = _distributions_by_root().get(wanted.root, frozenset())
    if len(owners) > 1:
        for name in wanted.names or ():
            having = [owner for owner in owners if name in _modules_in(owner)]
            if len(having) == 1:
                return having[0]
    return min(owners, default=canonicalize_name(wanted.root))


class Declared:
    """What a `pyproject.toml` declares, for the base (`BASE`) and each extra, on this platform."""

    def __init__(self, file: Path = ROOT / "pyproject.toml") -> None:
        project = tomllib.loads(file.read_text("utf-8"))["project"]
        listed = {BASE: project["dependencies"], **project["optional-dependencies"]}
        self._requirements = {
            extra: [Requirement(line) for line in lines] for extra, lines in listed.items()
        }

    @property
    def extras(self) -> list[str]:
        """The names of the extras."""
        return [name for name in self._requirements if name != BASE]

    def direct(self, extra: str) -> frozenset[str]:
        """The distributions that the base or an extra itself names, on any platform."""
        return frozenset(canonicalize_name(one.name) for one in self._requirements[extra])

    def closure(self, extra: str) -> frozenset[str]:
        """All distributions that installing the base with this extra brings, on this platform."""
        brought: set[tuple[str, str]] = set()
        waiting = [
            part
            for name in {BASE, extra}
            for one in self._requirements[name]
            if one.marker is None or one.marker.evaluate()
            for part in _with_extras(one)
        ]
        while waiting:
            name, asked = waiting.pop()
            if (name, asked) not in brought:
                brought.add((name, asked))
                waiting.extend(_required_by(distribution(name), asked))
        return frozenset(name for name, _ in brought)


def _with_extras(one: Requirement) -> list[tuple[str, str]]:
    return [(canonicalize_name(one.name), extra) for extra in ("", *one.extras)]


def _required_by(installed: Distribution, extra: str) -> Iterable[tuple[str, str]]:
    for line in installed.requires or ():
        one = Requirement(line)
        if one.marker is None or one.marker.evaluate({"extra": extra}):
            yield from _with_extras(one)


def importable(closure: Iterable[str]) -> tuple[list[str], list[str]]:
    """The top-level packages of these distributions alone, and the modules in shared packages."""
    within = frozenset(closure)
    roots, shared = set(), set()
    for root, owners in _distributions_by_root().items():
        if owners <= within:
            roots.add(root)
        elif present := owners & within:
            shared |= {
                name
                for owner in present
                for name in _modules_in(owner)
                if name.partition(".")[0] == root
            }
    return sorted(roots), sorted(shared)
