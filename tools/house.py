"""Count what makes the code hard to read: vague names, riddles, single-use helpers, sheer size.

`python -m tools.house [TREE]` prints the table of a checkout, `--list NAME` every place behind one
of its rows, `--check` fails if a figure is above its ceiling. A ceiling may only fall.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

VAGUE = frozenset(
    [
        "found",
        "one",
        "other",
        "others",
        "told",
        "said",
        "kept",
        "known",
        "given",
        "shown",
        "taken",
        "held",
        "made",
        "meant",
        "wanted",
        "wished",
        "asked",
        "seen",
        "left",
        "own",
        "some",
        "again",
        "whole",
        "those",
        "these",
        "which",
        "such",
        "both",
        "each",
        "either",
        "neither",
        "lacking",
        "standing",
        "gone",
        "put",
        "place",
        "locations",
        "hers",
        "theirs",
        "what",
        "here",
        "there",
        "rest",
    ]
)
GENERIC = frozenset({"result", "item", "value", "data", "obj", "entry"})
PERSONS = re.compile(
    r"\b(who|whom|whose|whoever|nobody|somebody|anybody|everybody|someone|anyone|whatever)\b", re.I
)
CEILINGS = {
    "vague": 0.1,
    "generic": 0.2,
    "persons": 0.2,
    "helpers": 14.95,
    "public": 644,
    "classes": 0,
}
"""The most that each figure may be, in percent where the row has a total of its own and a count for
`public` and `classes`. Lower a ceiling when the figure falls; never raise one."""

SOURCE_ROWS = {
    "vague": "locals that say nothing",
    "generic": "locals called result, item, value …",
    "persons": "comments and docstrings about persons",
    "helpers": "private functions used once",
    "public": "public functions used once",
    "classes": "class names used twice or more",
    "statements": "statements of src",
}
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Module:
    """A Python file: its path in the tree, its text and what it parses to."""

    path: str
    text: str
    nodes: tuple[ast.AST, ...]

    @classmethod
    def parse(cls, path: str, text: str) -> Module:
        """Parse `text`, which is called `path`; a `SyntaxError` if it is no Python."""
        return cls(path, text, tuple(ast.walk(ast.parse(text))))

    @property
    def functions(self) -> list[Function]:
        """All functions and methods, nested ones too."""
        return [node for node in self.nodes if isinstance(node, Function)]


def parse_modules(tree: Path, folder: str, under: str = "") -> list[Module]:
    """The Python files below `folder` whose path contains `under`, in the order of their paths."""
    paths = [path for path in (tree / folder).rglob("*.py") if under in path.as_posix()]
    return [
        Module.parse(path.relative_to(tree).as_posix(), path.read_text("utf-8"))
        for path in sorted(paths)
    ]


def walk_scope(function: Function) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions and classes defined inside it."""
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, Function | ast.ClassDef):
            pending.extend(ast.iter_child_nodes(node))


def list_locals(function: Function) -> set[str]:
    """The distinct names that a function stores, underscores at either end removed."""
    names = {
        node.id.strip("_")
        for node in walk_scope(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return names - {""}


def name_locals(modules: list[Module], words: frozenset[str]) -> tuple[list[str], int]:
    """Places of locals that are called one of `words`, and how many locals there are."""
    locations, total = [], 0
    for module in modules:
        for function in module.functions:
            names = list_locals(function)
            total += len(names)
            locations += [
                f"{module.path}:{function.lineno} {function.name}: {name}"
                for name in sorted(names & words)
            ]
    return locations, total


def list_prose(module: Module) -> list[tuple[int, str]]:
    """Comments, consecutive lines as one, and first paragraphs of docstrings, with their line."""
    prose: list[tuple[int, str]] = []
    last = -1
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        if token.type != tokenize.COMMENT:
            continue
        line, text = token.start[0], token.string.lstrip("# ")
        if line == last + 1 and prose:
            prose[-1] = (prose[-1][0], f"{prose[-1][1]} {text}")
        else:
            prose.append((line, text))
        last = line
    for node in module.nodes:
        if isinstance(node, Function | ast.ClassDef | ast.Module):
            docstring = ast.get_docstring(node)
            if docstring:
                prose.append((getattr(node, "lineno", 1), docstring.split("\n\n")[0]))
    return prose


def name_persons(modules: list[Module]) -> tuple[list[str], int]:
    """Places of comments and docstrings about persons, and how many comments there are."""
    locations, total = [], 0
    for module in modules:
        prose = list_prose(module)
        total += len(prose)
        locations += [
            f"{module.path}:{line} {' '.join(text.split())}"
            for line, text in prose
            if PERSONS.search(text)
        ]
    return locations, total


def name_single_use(modules: list[Module], private: bool) -> tuple[list[str], int]:
    """Places of functions that are used once, and how many functions there are.

    A private function is used once if its own file names it once; a public one, which is there for
    other files, if all of `modules` together do. A method that overrides one of a class of
    `modules` is no function of its own here: the use is that of the method it overrides.
    """
    locations, total = [], 0
    overrides = find_overrides(modules)
    everywhere: Counter[str] = Counter()
    for module in modules:
        everywhere.update(count_names(module))
    for module in modules:
        uses = count_names(module)
        for function in module.functions:
            total += 1
            name = function.name
            if name.startswith("__") or name.startswith("_") != private or function in overrides:
                continue
            if (uses if private else everywhere)[name] == 1:
                locations.append(f"{module.path}:{function.lineno} {name}")
    return locations, total


def find_overrides(modules: list[Module]) -> set[Function]:
    """Methods that override one of a base class, direct or further up, defined in `modules`."""
    classes = {
        node.name: node
        for module in modules
        for node in module.nodes
        if isinstance(node, ast.ClassDef)
    }

    def list_inherited(cls: ast.ClassDef) -> Iterator[str]:
        for base in cls.bases:
            # A generic base is subscripted, and one of an imported module is an attribute of it.
            name = ast.unparse(base).partition("[")[0].rpartition(".")[2]
            if name in classes and classes[name] is not cls:
                yield from (method.name for method in list_methods(classes[name]))
                yield from list_inherited(classes[name])

    return {
        method
        for cls in classes.values()
        for method in list_methods(cls)
        if method.name in set(list_inherited(cls))
    }


def list_methods(cls: ast.ClassDef) -> list[Function]:
    """The functions that stand directly in the body of a class."""
    return [node for node in cls.body if isinstance(node, Function)]


def count_names(module: Module) -> Counter[str]:
    """How often a file reads each name, as a name, as an attribute or in an import."""
    uses: Counter[str] = Counter()
    for node in module.nodes:
        if isinstance(node, ast.Name):
            uses[node.id] += 1
        elif isinstance(node, ast.Attribute):
            uses[node.attr] += 1
    return uses


def name_classes(modules: list[Module]) -> list[str]:
    """Names of classes that stand twice or more, underscores removed, with their files."""
    files: dict[str, list[str]] = {}
    for module in modules:
        for node in module.nodes:
            if isinstance(node, ast.ClassDef):
                files.setdefault(node.name.strip("_"), []).append(module.path)
    return [
        f"{name}: {', '.join(paths)}" for name, paths in sorted(files.items()) if len(paths) > 1
    ]


def count_statements(modules: list[Module]) -> int:
    """Statements of all files by their syntax trees, docstrings included."""
    return sum(isinstance(node, ast.stmt) for module in modules for node in module.nodes)


def count_lines(tree: Path, *folders: str) -> int:
    """Lines of Python below these folders."""
    return sum(
        len(path.read_bytes().splitlines())
        for folder in folders
        for path in (tree / folder).rglob("*.py")
    )


def count_words(tree: Path) -> int:
    """Words of the documentation that is committed: the reference is built."""
    pages = (tree / "docs").rglob("*.md")
    return sum(
        len(page.read_text("utf-8").split()) for page in pages if page.parent.name != "reference"
    )


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: what is counted, how much, of how many, and where."""

    name: str
    says: str
    count: int
    total: int | None = None
    locations: tuple[str, ...] = ()

    @property
    def figure(self) -> float:
        """The share in percent where there is a total, or else the count."""
        return round(100 * self.count / self.total, 2) if self.total else self.count

    def __str__(self) -> str:
        share = f" ({self.figure} % of {self.total:,})" if self.total else ""
        return f"{self.says:<62} {self.count:>8,}{share}"


def count_source(name: str, modules: list[Module]) -> Row:
    """The row `name` of the table for these files of src."""
    if name == "classes":
        locations = name_classes(modules)
        return Row(name, SOURCE_ROWS[name], len(locations), locations=tuple(locations))
    if name == "statements":
        return Row(name, SOURCE_ROWS[name], count_statements(modules))
    counters: dict[str, Callable[[], tuple[list[str], int]]] = {
        "vague": lambda: name_locals(modules, VAGUE),
        "generic": lambda: name_locals(modules, GENERIC),
        "persons": lambda: name_persons(modules),
        "helpers": lambda: name_single_use(modules, private=True),
        "public": lambda: name_single_use(modules, private=False),
    }
    locations, total = counters[name]()
    return Row(name, SOURCE_ROWS[name], len(locations), total, tuple(locations))


def count_tree(tree: Path) -> list[Row]:
    """All rows of the table for the checkout at `tree`."""
    modules = parse_modules(tree, "src")
    return [
        *(count_source(name, modules) for name in SOURCE_ROWS),
        Row("tests", "lines of tests", count_lines(tree, "tests")),
        Row("bench", "lines of bench and tools", count_lines(tree, "bench", "tools")),
        Row("docs", "words of docs", count_words(tree)),
    ]


def rows_above(rows: list[Row]) -> list[str]:
    """A sentence for each figure that is above its ceiling."""
    figures = {
        row.name: row.count if row.name in ("public", "classes") else row.figure for row in rows
    }
    return [
        f"{name}: {figures[name]} is above its ceiling, {ceiling}; see --list {name}"
        for name, ceiling in CEILINGS.items()
        if figures[name] > ceiling
    ]


def main() -> int:
    """Print the table, or one row's locations; 1 if a ceiling is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tree", nargs="?", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--list", choices=SOURCE_ROWS, help="every place behind one row")
    parser.add_argument(
        "--check", action="store_true", help="fail if a figure is above its ceiling"
    )
    parser.add_argument("--under", default="", help="with --list: paths that contain this")
    options = parser.parse_args()
    if options.list:
        modules = parse_modules(options.tree, "src", options.under)
        print("\n".join(count_source(options.list, modules).locations))
        return 0
    rows = count_tree(options.tree)
    if options.check:
        problems = rows_above(rows)
        print("\n".join(problems) or "all figures are below their ceilings")
        return int(bool(problems))
    for row in rows:
        print(f"{row.name:<11} {row}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
