"""`src/anaphora/api/aio.pyi`, made out of the code: the methods of `AsyncMemory` for type checkers.

`aio.py` makes these methods when it is imported, out of those of `Memory` and of the conversation
store; this writes the same down. `tools/reference.py` calls it.
"""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

PLACE: Final = Path(__file__).resolve().parents[1] / "src" / "anaphora" / "api" / "aio.pyi"
Function = ast.FunctionDef | ast.AsyncFunctionDef


def stub() -> str:
    """The text of the stub."""
    from anaphora.api import aio, memory
    from anaphora.calls.operation import public_members
    from anaphora.store.threads.file_store import ConversationStore

    own = ast.parse(inspect.getsource(aio))
    classes = {node.name: node for node in own.body if isinstance(node, ast.ClassDef)}
    imports = _imports(own, aio.__name__)
    made: list[str] = []
    for name, original in (
        ("AsyncConversations", ConversationStore),
        ("AsyncMemory", memory.Memory),
        ("Opening", object),
    ):
        body = _own(classes[name])
        for member, value in public_members(original):
            written, found = _written(value)
            imports = found | imports
            own_method = body.get(member)
            if own_method is not None and not isinstance(value, property):
                own_method.args = written.args
            elif own_method is None:
                body[member] = written if isinstance(value, property) else _awaited(written)
            body[member].body[0] = _said(f"As `{original.__name__}.{member}`.")
        node = classes[name]
        node.body = [*node.body[:1], *body.values()]
        made.append(ast.unparse(node))
    code = "\n\n".join(made)
    names = {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}
    lines = sorted({imports[name] for name in names & imports.keys()})
    head = '"""Made by tools/async_stub.py (`make docs`): change `aio.py` or `memory.py`."""'
    return _formatted("\n".join([head, *lines, code]))


def _own(node: ast.ClassDef) -> dict[str, Function]:
    """What a class of `aio.py` defines itself, without bodies and what is private."""
    found: dict[str, Function] = {}
    for one in node.body:
        if isinstance(one, Function) and (one.name[0] != "_" or one.name.endswith("__")):
            said = ast.get_docstring(one)
            one.body = [_said(said)] if said else [ast.Expr(ast.Constant(...))]
            found[one.name] = one
    return found


def _written(member: Any) -> tuple[Function, dict[str, str]]:
    """A method of the facade as it is written, without its body; the imports of its module."""
    function = inspect.unwrap(getattr(member, "__func__", getattr(member, "fget", member)))
    node = ast.parse(inspect.cleandoc("\n" + inspect.getsource(function))).body[0]
    assert isinstance(node, Function)
    node.body = [_said("")]
    node.decorator_list = [one for one in node.decorator_list if isinstance(one, ast.Name)]
    module = inspect.getmodule(function)
    assert module is not None
    return node, _imports(ast.parse(inspect.getsource(module)), module.__name__)


def _awaited(node: Function) -> Function:
    made = ast.AsyncFunctionDef(
        node.name, node.args, node.body, node.decorator_list, node.returns, node.type_comment
    )
    return ast.copy_location(made, node)


def _said(text: str) -> ast.Expr:
    return ast.Expr(ast.Constant(text))


def _imports(module: ast.Module, name: str) -> dict[str, str]:
    """The statement that imports each name that a module knows."""
    found: dict[str, str] = {}
    for node in _top(module.body):
        if isinstance(node, ast.Import):
            found |= {one.asname or one.name: ast.unparse(node) for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {
                one.asname or one.name: f"from {node.module} import {ast.unparse(one)}"
                for one in node.names
            }
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = f"from {name} import {node.targets[0].id}"
    return found


def _top(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield from _top(node.body) if isinstance(node, ast.If) else (node,)


def _formatted(code: str) -> str:
    ruff = Path(sys.executable).with_name("ruff")
    for command in (("check", "--select=I", "--fix", "-q"), ("format", "-q")):
        code = subprocess.run(
            [ruff, *command, f"--stdin-filename={PLACE}", "-"],
            input=code,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    return code


if __name__ == "__main__":
    PLACE.write_text(stub(), "utf-8")
