"""Constants that a fit writes: where each stands, and how its value is exchanged in the source.

Only the characters of the value change: comments, docstrings and all else stay as they are.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

SOURCE: Final = Path(__file__).parents[2] / "src" / "anaphora"

Value: TypeAlias = float | tuple[float, ...]
NodeT = TypeVar("NodeT")


class UnknownConstant(ValueError):
    """There is no such constant in the module, or more than one."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant: its module below `SOURCE`, its name there, or CLASS.FIELD for a default.

    `digits` are those behind the point that are written. With `call` the value is the argument of
    that name in the call that the constant is.
    """

    module: str
    name: str
    digits: int = 2
    call: str | None = None

    @property
    def file(self) -> Path:
        """The module's file."""
        return SOURCE / self.module

    @property
    def shown(self) -> str:
        """As the table names it."""
        return f"{self.module}: {self.name}{f'({self.call})' if self.call else ''}"

    def written(self, value: Value) -> str:
        """A value as the source has it."""
        if isinstance(value, tuple):
            return f"({', '.join(self.written(one) for one in value)})"
        if not math.isfinite(value):
            raise ValueError(f"{self.shown} cannot be {value}")
        # -0.0 is 0.0.
        return repr(round(float(value), self.digits) + 0.0)

    def read(self, source: str | None = None) -> Value:
        """The value that stands in the source: a number, or a tuple of them.

        Raises `UnknownConstant`.
        """
        text = self.file.read_text("utf-8") if source is None else source
        found: Value = ast.literal_eval(_node(text, self))
        return found


def rewritten(source: str, constant: Constant, value: Value) -> str:
    """The source with another value for a constant. Raises `UnknownConstant`."""
    node = _node(source, constant)
    lines = source.encode().splitlines(keepends=True)
    # Positions of the syntax tree count bytes.
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    begin = starts[node.lineno - 1] + node.col_offset
    end = starts[node.end_lineno - 1] + node.end_col_offset
    whole = b"".join(lines)
    return (whole[:begin] + constant.written(value).encode() + whole[end:]).decode()


def write(values: Mapping[Constant, Value]) -> None:
    """Write values into their modules: all of them, or none where one is not known."""
    sources: dict[Path, str] = {}
    for constant, value in values.items():
        source = sources.get(constant.file) or constant.file.read_text("utf-8")
        sources[constant.file] = rewritten(source, constant, value)
    for file, source in sources.items():
        file.write_text(source, "utf-8")


def _node(source: str, constant: Constant) -> ast.expr:
    """The expression of a constant's value."""
    body: Sequence[ast.stmt] = ast.parse(source).body
    *classes, name = constant.name.split(".")
    for one in classes:
        found = [node for node in body if isinstance(node, ast.ClassDef) and node.name == one]
        body = _only(found, constant).body
    value = _only(list(_values(body, name)), constant)
    if constant.call is None:
        return value
    if not isinstance(value, ast.Call):
        raise UnknownConstant(f"{constant.shown} is no call")
    return _only([one.value for one in value.keywords if one.arg == constant.call], constant)


def _values(body: Sequence[ast.stmt], name: str) -> Iterable[ast.expr]:
    for node in body:
        match node:
            case ast.AnnAssign(target=ast.Name(id=found), value=ast.expr() as value):
                if found == name:
                    yield value
            case ast.Assign(targets=[ast.Name(id=found)], value=value):
                if found == name:
                    yield value


def _only(found: Sequence[NodeT], constant: Constant) -> NodeT:
    if len(found) != 1:
        raise UnknownConstant(f"{constant.shown}: {len(found)} of that name")
    return found[0]
