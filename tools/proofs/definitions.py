"""Which tests of a change are new or changed: test files before and after, compared by syntax.

Docstrings, annotations, the names of local variables and marks that only label (`promise`,
`slow`) are no part of a test. A test whose code was in a file before and is gone from there has
moved or got another name; it is not new.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

_Function = ast.FunctionDef | ast.AsyncFunctionDef
# Marks that decide what runs; any other mark is a label.
_MARKS_THAT_COUNT = frozenset({"parametrize", "usefixtures", "skip", "skipif", "xfail"})


@dataclass(frozen=True, slots=True)
class Subject:
    """A part of a change to be judged, and the tests of which one must fail without the change.

    That is a new or changed test itself; or a definition in a test file (a helper, a fixture, a
    table of cases) that changed while no test that uses it did.
    """

    name: str
    tests: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is to be judged, and the tests that only moved or got another name."""

    subjects: tuple[Subject, ...]
    moved: tuple[str, ...]
    unread: tuple[str, ...]
    """Files of the change that are no Python."""


@dataclass(slots=True)
class _File:
    """The tests of a file and its other definitions: name → what it consists of."""

    tests: dict[str, str] = field(default_factory=dict)
    helpers: dict[str, str] = field(default_factory=dict)
    names: dict[str, set[str]] = field(default_factory=dict)
    """Names that a test or a definition uses."""

    def used_by(self, name: str) -> set[str]:
        """The definitions that are used, also through others."""
        reached: set[str] = set()
        waiting = [name]
        while waiting:
            more = (self.names.get(waiting.pop(), set()) & self.helpers.keys()) - reached
            reached |= more
            waiting.extend(more)
        return reached


def is_test_file(path: str) -> bool:
    """Whether pytest takes the file as one of tests."""
    name = PurePosixPath(path).name
    return name.endswith("_test.py") or (name.startswith("test_") and name.endswith(".py"))


def compare(files: Mapping[str, tuple[str | None, str | None]]) -> Comparison:
    """Compare files: path after the change → text before and after; None where there is no file.

    A file that is no Python before the change has no tests there.
    """
    before = {path: _read(old) or _File() for path, (old, _) in files.items()}
    parsed = {path: _read(new) for path, (_, new) in files.items()}
    unread = tuple(path for path, file in parsed.items() if file is None)
    after = {path: file for path, file in parsed.items() if file is not None}
    gone = Counter(
        code
        for path, file in before.items()
        for name, code in file.tests.items()
        if name not in after.get(path, _File()).tests
    )
    subjects: list[Subject] = []
    moved: list[str] = []
    for path, file in after.items():
        changed = set()
        for name, code in file.tests.items():
            test = f"{path}::{name}"
            if before[path].tests.get(name) == code:
                continue
            if gone[code]:
                gone[code] -= 1
                moved.append(test)
                continue
            changed.add(name)
            subjects.append(Subject(test, (test,)))
        subjects.extend(_helpers(path, before[path], file, changed))
    return Comparison(tuple(subjects), tuple(moved), unread)


def _helpers(path: str, before: _File, after: _File, changed: set[str]) -> Iterator[Subject]:
    """The changed definitions that unchanged tests alone use."""
    used = {test: after.used_by(test) for test in after.tests}
    for name, code in after.helpers.items():
        if before.helpers.get(name, code) == code:
            continue
        users = [test for test in after.tests if name in used[test]]
        if users and not changed.intersection(users):
            yield Subject(f"{path}: {name}", tuple(f"{path}::{test}" for test in users))


def _read(text: str | None) -> _File | None:
    """The definitions of a file, of which there are none where there is no file."""
    file = _File()
    try:
        module = ast.parse(text or "")
    except (SyntaxError, ValueError):
        return None
    for node in module.body:
        if isinstance(node, _Function):
            _add(file, node.name, node, is_test=node.name.startswith("test"))
        elif isinstance(node, ast.ClassDef):
            _add_class(file, node)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    # `TestHistories = Histories.TestCase`: a state machine that pytest collects.
                    _add(file, target.id, node, is_test=target.id.startswith("Test"))
    return file


def _add_class(file: _File, node: ast.ClassDef) -> None:
    """The methods of a class of tests are tests; what else it holds is used by each of them."""
    is_tests = node.name.startswith("Test")
    rest = copy.copy(node)
    rest.body = []
    for member in node.body:
        if is_tests and isinstance(member, _Function) and member.name.startswith("test"):
            name = f"{node.name}::{member.name}"
            _add(file, name, member, is_test=True)
            file.names[name].add(node.name)
        else:
            rest.body.append(member)
    _add(file, node.name, rest, is_test=False)


def _add(file: _File, name: str, node: ast.stmt, *, is_test: bool) -> None:
    (file.tests if is_test else file.helpers)[name] = _code(node)
    file.names[name] = _names(node)


def _names(node: ast.AST) -> set[str]:
    """Names and arguments (fixtures), and the strings of decorators (`usefixtures`)."""
    names: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            names.add(part.id)
        elif isinstance(part, ast.arg):
            names.add(part.arg)
    for decorator in getattr(node, "decorator_list", []):
        for part in ast.walk(decorator):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                names.add(part.value)
    return names


def _code(node: ast.stmt) -> str:
    """What a definition consists of, without its name and what has no effect."""
    plain = _Plain().visit(copy.deepcopy(node))
    if isinstance(plain, _Function | ast.ClassDef):
        plain.name = ""
    return ast.dump(plain)


class _Plain(ast.NodeTransformer):
    """Takes away docstrings, annotations of functions, labels, and the names of local variables."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """A function."""
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        """An async function."""
        return self._function(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """A class: its methods are functions too."""
        self.generic_visit(node)
        _strip(node)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        """A parameter without its annotation; its name may be that of a fixture."""
        node.annotation = None
        return node

    def _function(self, node: _Function) -> ast.AST:
        self.generic_visit(node)
        _strip(node)
        node.returns = None
        parts = [part for statement in node.body for part in ast.walk(statement)]
        fixed = {part.arg for part in ast.walk(node) if isinstance(part, ast.arg)}
        for part in parts:
            if isinstance(part, ast.Global | ast.Nonlocal):
                fixed.update(part.names)
        names = [part for part in parts if isinstance(part, ast.Name)]
        stored = [part.id for part in names if isinstance(part.ctx, ast.Store)]
        local = dict.fromkeys(name for name in stored if name not in fixed)
        numbers = {name: f"_{number}" for number, name in enumerate(local)}
        for part in names:
            part.id = numbers.get(part.id, part.id)
        return node


def _strip(node: _Function | ast.ClassDef) -> None:
    """Take away the docstring, and the marks that are labels."""
    if ast.get_docstring(node, clean=False) is not None:
        node.body = node.body[1:] or [ast.Pass()]
    node.decorator_list = [mark for mark in node.decorator_list if not _is_label(mark)]


def _is_label(decorator: ast.expr) -> bool:
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    return (
        isinstance(target, ast.Attribute)
        and ast.unparse(target.value) == "pytest.mark"
        and target.attr not in _MARKS_THAT_COUNT
    )
