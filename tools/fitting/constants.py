"""Numbers that a fit writes: where each stands in the one file of them, and how it is exchanged."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from anaphora.values.fitted import FILE

__all__ = ["FILE", "Constant", "UnknownConstant", "Value", "write"]

Value: TypeAlias = float | tuple[float, ...]


class UnknownConstant(ValueError):
    """The file has no such number."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A number, or a tuple of weights: its part of the file, and its name there.

    `digits` are those behind the point that are written.
    """

    part: str
    name: str
    digits: int = 2

    @property
    def shown(self) -> str:
        """As the table names it."""
        return f"{self.part}: {self.name}"

    def rounded(self, value: Value) -> Value:
        """A value as the file has it."""
        if isinstance(value, tuple):
            return tuple(self.rounded(one) for one in value)  # type: ignore[misc]
        if not math.isfinite(value):
            raise ValueError(f"{self.shown} cannot be {value}")
        # -0.0 is 0.0.
        return round(float(value), self.digits) + 0.0

    def read(self, file: Path = FILE) -> Value:
        """The value that stands in the file. Raises `UnknownConstant`."""
        numbers = json.loads(file.read_text("utf-8"))
        if self.name not in numbers.get(self.part, {}):
            raise UnknownConstant(self.shown)
        value: Value | list[float] = numbers[self.part][self.name]
        return tuple(value) if isinstance(value, list) else value


def write(values: Mapping[Constant, Value], file: Path = FILE) -> None:
    """Write values into the file: all of them, or none where one is not known."""
    numbers: dict[str, dict[str, Any]] = json.loads(file.read_text("utf-8"))
    for constant, value in values.items():
        constant.read(file)
        numbers[constant.part][constant.name] = constant.rounded(value)
    parts = []
    for part, named in numbers.items():
        lines = ",\n".join(
            f"  {json.dumps(name)}: {json.dumps(one)}" for name, one in named.items()
        )
        parts.append(f"{json.dumps(part)}: {{\n{lines}\n}}")
    text = "{\n" + ",\n".join(parts) + "\n}\n"
    file.write_text(text, "utf-8")
