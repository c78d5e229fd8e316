"""Count how readable the code is: vague names, prose, single-use helpers, statements, lines and words.

`python -m tools.house [TREE]` prints the table of a checkout, `--list NAME` every place behind one of
its rows, `--check` fails where a count is above its ceiling. A ceiling only falls.
"""

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
    """found one other others told said kept known given shown taken held made meant wanted wished asked
    seen left own some again whole those these which such both each either neither lacking standing gone
    put place places hers theirs what here there rest""".split()
)
GENERIC = frozenset("result item value data obj entry".split())
PERSONS = re.compile(
    r"\b(who|whom|whose|whoever|nobody|somebody|anybody|everybody|someone|anyone|whatever)\b", re.I
)
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Module:
    """A Python file: its path in the tree, its text and what it parses to."""

    path: str
    text: str
    tree: ast.Module


def parse_modules(tree: Path, folder: str) -> list[Module]:
    """All Python files below `folder`, in the order of their paths."""
    modules = []
    for path in sorted((tree / folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        modules.append(Module(path.relative_to(tree).as_posix(), text, ast.parse(text)))
    return modules


def walk_scope(function: Function) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions and classes defined inside it."""
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, Function | ast.ClassDef):
            pending.extend(ast.iter_child_nodes(node))


def list_functions(module: Module) -> list[Function]:
    return [node for node in ast.walk(module.tree) if isinstance(node, Function)]


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
    places, total = [], 0
    for module in modules:
        for function in list_functions(module):
            names = list_locals(function)
            total += len(names)
            places += [
                f"{module.path}:{function.lineno} {function.name}: {name}"
                for name in sorted(names & words)
            ]
    return places, total


def list_prose(module: Module) -> list[tuple[int, str]]:
    """Comments, consecutive lines as one, and the first paragraph of each docstring, with their line."""
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
    for node in ast.walk(module.tree):
        if isinstance(node, Function | ast.ClassDef | ast.Module):
            docstring = ast.get_docstring(node)
            if docstring:
                prose.append((getattr(node, "lineno", 1), docstring.split("\n\n")[0]))
    return prose


def name_persons(modules: list[Module]) -> tuple[list[str], int]:
    """Comments and first paragraphs of docstrings with a person for a subject, and how many there are."""
    places, total = [], 0
    for module in modules:
        prose = list_prose(module)
        total += len(prose)
        places += [
            f"{module.path}:{line} {' '.join(text.split())}"
            for line, text in prose
            if PERSONS.search(text)
        ]
    return places, total


def name_single_use(modules: list[Module], private: bool) -> tuple[list[str], int]:
    """Functions that their own file names once, private ones or public ones, and how many functions there are.

    A public function counts where all of `modules` name it once, since it is there for other files.
    """
    places, total = [], 0
    everywhere: Counter[str] = Counter()
    for module in modules:
        everywhere.update(count_names(module))
    for module in modules:
        uses = count_names(module)
        for function in list_functions(module):
            total += 1
            name = function.name
            if name.startswith("__"):
                continue
            if name.startswith("_") != private:
                continue
            if (uses if private else everywhere)[name] == 1:
                places.append(f"{module.path}:{function.lineno} {name}")
    return places, total


def count_names(module: Module) -> Counter[str]:
    """How often a file reads each name, as a name, as an attribute or in an import."""
    uses: Counter[str] = Counter()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Name):
            uses[node.id] += 1
        elif isinstance(node, ast.Attribute):
            uses[node.attr] += 1
    return uses


def name_classes(modules: list[Module]) -> list[str]:
    """Names of classes that stand twice or more, underscores removed, with their files."""
    files: dict[str, list[str]] = {}
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                files.setdefault(node.name.strip("_"), []).append(module.path)
    return [
        f"{name}: {', '.join(paths)}" for name, paths in sorted(files.items()) if len(paths) > 1
    ]


def count_statements(modules: list[Module]) -> int:
    return sum(isinstance(node, ast.stmt) for module in modules for node in ast.walk(module.tree))


def count_lines(tree: Path, *folders: str) -> int:
    return sum(
        len(path.read_bytes().splitlines())
        for folder in folders
        for path in (tree / folder).rglob("*.py")
    )


def count_words(tree: Path) -> int:
    return sum(len(path.read_text("utf-8").split()) for path in (tree / "docs").rglob("*.md"))


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: what is counted, how much, of how many, and the places behind it."""

    name: str
    says: str
    count: int
    total: int | None = None
    places: tuple[str, ...] = ()

    @property
    def figure(self) -> float:
        """The share in percent where there is a total, or else the count."""
        return round(100 * self.count / self.total, 2) if self.total else self.count

    def __str__(self) -> str:
        share = f" ({self.figure} % of {self.total:,})" if self.total else ""
        return f"{self.says:<62} {self.count:>8,}{share}"


def count_tree(tree: Path) -> list[Row]:
    """All rows of the table for the checkout at `tree`."""
    source = parse_modules(tree, "src")

    def share(name: str, says: str, counted: tuple[list[str], int]) -> Row:
        places, total = counted
        return Row(name, says, len(places), total, tuple(places))

    classes = name_classes(source)
    return [
        share("vague", "locals that say nothing", name_locals(source, VAGUE)),
        share("generic", "locals called result, item, value …", name_locals(source, GENERIC)),
        share("persons", "comments and docstrings about persons", name_persons(source)),
        share("helpers", "private functions used once", name_single_use(source, private=True)),
        share("public", "public functions used once", name_single_use(source, private=False)),
        Row(
            "classes",
            "class names used twice or more",
            len(classes),
            places=tuple(classes),
        ),
        Row("statements", "statements of src", count_statements(source)),
        Row("tests", "lines of tests", count_lines(tree, "tests")),
        Row("bench", "lines of bench and tools", count_lines(tree, "bench", "tools")),
        Row("docs", "words of docs", count_words(tree)),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tree", nargs="?", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--list", metavar="NAME", help="every place behind one row")
    parser.add_argument("--under", default="", help="with --list: paths that contain this")
    options = parser.parse_args()
    rows = count_tree(options.tree)
    for row in rows:
        if not options.list:
            print(f"{row.name:<11} {row}")
        elif row.name == options.list:
            print("\n".join(place for place in row.places if options.under in place))
    return 0


if __name__ == "__main__":
    sys.exit(main())
