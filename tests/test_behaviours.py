"""Every promise is held by a test, and every citation names a promise."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

TESTS = Path(__file__).parent


def _promises() -> dict[str, str]:
    spec = importlib.util.spec_from_file_location("behaviours", TESTS / "behaviours.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    promises: dict[str, str] = module.PROMISES
    return promises


def _cited() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for file in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                if node.func.attr != "promise":
                    continue
                for argument in node.args:
                    assert isinstance(argument, ast.Constant), f"{file}: promise() takes strings"
                    found.setdefault(str(argument.value), []).append(file.name)
    return found


def test_every_promise_is_held_by_a_test() -> None:
    """Each promise has at least one test that cites it."""
    assert sorted(set(_promises()) - set(_cited())) == []


def test_every_citation_names_a_promise() -> None:
    """No test cites a promise that is not written down."""
    assert sorted(set(_cited()) - set(_promises())) == []
