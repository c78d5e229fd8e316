"""Whether a command that shows a claim exists: its module and options, its test, its target.

Nothing is run and nothing heavy is imported: modules and tests are read as syntax.
"""

from __future__ import annotations

import ast
import re
import shlex
from functools import lru_cache
from pathlib import Path

from bench.results_page import SECTIONS

__all__ = ["ROOT", "cited_tests", "command_of", "missing", "promises"]

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
ROOT = Path(__file__).resolve().parents[2]


def command_of(result: str) -> str:
    """The command that makes a result; "" where no one is known."""
    commands = {made.name: made.command for _, section in SECTIONS for made in section}
    return commands.get(result, "")


def missing(command: str) -> str:
    """What of a command does not exist, in words; "" if it is all there."""
    words = shlex.split(command)
    if words[:2] == ["python", "-m"]:
        return _missing_module(words[2], words[3:])
    if words[:1] == ["pytest"]:
        return next((text for word in words[1:] if (text := _missing_test(word))), "")
    if words[:1] == ["make"]:
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
        return "" if words[1] in targets else f"make has no target {words[1]}"
    return f"{command!r} is no command that can be checked"


def promises() -> dict[str, str]:
    """The promises of tests/behaviours.py by id, the mark of their source left out."""
    tree = _tree(ROOT / "tests" / "behaviours.py")
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "PROMISES":
            assert node.value is not None
            values: dict[str, str] = ast.literal_eval(node.value)
            return {name: words.partition(" ")[2] for name, words in values.items()}
    raise LookupError("tests/behaviours.py has no PROMISES")


@lru_cache(maxsize=1)
def cited_tests() -> dict[str, tuple[str, ...]]:
    """The tests that cite each promise, as `tests/…py::test_…`, or the file for all of its"
    " tests."""
    tests: dict[str, list[str]] = {}
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        name = file.relative_to(ROOT).as_posix()
        tree = _tree(file)
        for test, node in _definitions(tree).items():
            for promise in _cited(node.decorator_list):
                tests.setdefault(promise, []).append(f"{name}::{test}")
        for promise in _cited([n for n in tree.body if isinstance(n, ast.Assign)]):
            tests.setdefault(promise, []).append(name)
    return {promise: tuple(dict.fromkeys(names)) for promise, names in tests.items()}


def _definitions(tree: ast.Module) -> dict[str, _Definition]:
    """Functions and classes at the top, and the methods of those classes, as pytest names them."""
    definitions: dict[str, _Definition] = {}
    for node in tree.body:
        if isinstance(node, _Definition):
            definitions[node.name] = node
        if isinstance(node, ast.ClassDef):
            methods = (method for method in node.body if isinstance(method, _Definition))
            definitions |= {f"{node.name}::{method.name}": method for method in methods}
    return definitions


def _cited(nodes: list[ast.expr] | list[ast.Assign]) -> list[str]:
    return [
        str(argument.value)
        for outer in nodes
        for node in ast.walk(outer)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if node.func.attr == "promise"
        for argument in node.args
        if isinstance(argument, ast.Constant)
    ]


def _missing_test(name: str) -> str:
    path, _, test = name.partition("::")
    file = ROOT / path
    if not file.is_file():
        return f"{path} is not there"
    definitions = [name for name in _definitions(_tree(file)) if name.lower().startswith("test")]
    return "" if not test or test in definitions else f"{path} has no {test}"


def _missing_module(module: str, words: list[str]) -> str:
    place = ROOT / Path(*module.split("."))
    file = next((f for f in (place.with_suffix(".py"), place / "__main__.py") if f.is_file()), None)
    if file is None:
        return f"there is no module {module}"
    strings = _strings(file)
    options = [word for word in words if word.startswith("--")]
    lacking = [option for option in options if option not in strings]
    if lacking:
        return f"{module} has no option {lacking[0]}"
    if "--only" in words:
        names = words[words.index("--only") + 1 :]
        chosen = names[: next((i for i, n in enumerate(names) if n.startswith("--")), len(names))]
        unknown = [name for name in chosen if name not in strings]
        return f"{module} --only knows no {unknown[0]}" if unknown else ""
    return ""


@lru_cache(maxsize=512)
def _strings(file: Path) -> frozenset[str]:
    return frozenset(
        node.value
        for node in ast.walk(_tree(file))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


@lru_cache(maxsize=512)
def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text("utf-8"))
