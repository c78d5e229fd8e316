"""Where values come from: a figure of a result, any member of a result, a constant of the code.

Results are read below the root that a value is asked for; constants come from the imported code.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any

from tools.claims.model import ClaimError, Value

import anaphora

__all__ = [
    "Step",
    "at",
    "cell",
    "computed",
    "constant",
    "default",
    "derived",
    "figure",
    "mean",
    "target",
]
__all__ += ["written"]

Step = str | int | tuple[tuple[str, str], ...]
"""A member, a position, or the only entry of a list with these members."""


def figure(result: str, name: str, form: str = ",.0f", *, times: float = 1) -> Value:
    """A figure that `bench.figures` wrote, by its name."""
    return Value(
        lambda root: float(_figure(root, result, name)["value"]) * times, form, name, (result,)
    )


def target(result: str, name: str, form: str = "g", *, times: float = 1) -> Value:
    """The limit that a figure is to keep."""

    def read(root: Path) -> float:
        text = str(_figure(root, result, name)["target"])
        if not text:
            raise ClaimError(f"{result}.json: {name} has no target")
        return float(text.rsplit(maxsplit=1)[-1]) * times

    return Value(read, form, f"{name}: target", (result,))


def at(result: str, *steps: Step, form: str = ".2f", times: float = 1) -> Value:
    """A member of a result, by the way to it."""

    def read(root: Path) -> float | str:
        value = _walk(_result(root, result), steps, result)
        return value if isinstance(value, str) else float(value) * times

    return Value(read, form, " › ".join(map(_named, steps)), (result,))


def cell(result: str, row: tuple[str, ...], column: str, *, section: str = "") -> Value:
    """A cell of a table in a result's page, as it stands there: the row that begins so, under a
    heading that begins with `section`."""

    def read(root: Path) -> str:
        cells = [
            cells[head.index(column)]
            for heading, head, cells in _rows(root, result)
            if heading.startswith(section) and tuple(cells[: len(row)]) == row and column in head
        ]
        if len(cells) != 1:
            raise ClaimError(f"{result}.md has {len(cells)} cells at {row}, {column}")
        return cells[0]

    return Value(read, "", f"{' '.join(row)}: {column}", (result,))


def mean(result: str, chosen: Callable[[Any], bool], name: str, weight: str, source: str) -> Value:
    """The mean of a member over the chosen rows, each counted `weight` times."""

    def compute(content: Any) -> float:
        rows = [row for row in content["rows"] if chosen(row)]
        return float(
            sum(row[name] * row[weight] for row in rows) / sum(row[weight] for row in rows)
        )

    return computed(result, compute, source)


def computed(
    result: str,
    compute: Callable[[Any], float],
    source: str,
    form: str = ".2f",
    *,
    times: float = 1,
) -> Value:
    """What `compute` makes of a whole result; `source` says it in words."""

    def read(root: Path) -> float:
        try:
            return compute(_result(root, result)) * times
        except (KeyError, IndexError, TypeError, ZeroDivisionError) as error:
            raise ClaimError(f"{result}.json does not give {source}: {error!r}") from error

    return Value(read, form, source, (result,))


def constant(
    place: str, form: str = ",g", *, take: Callable[[Any], float] = float, times: float = 1
) -> Value:
    """A constant of the code, as `module:NAME`, `anaphora.` left out; `take` gets the number out of
    what stands there."""
    module, _, name = f"anaphora.{place}".partition(":")

    def read(root: Path) -> float:
        try:
            return take(attrgetter(name)(importlib.import_module(module))) * times
        except (ImportError, AttributeError, LookupError, TypeError) as error:
            raise ClaimError(f"{module}:{name}: {error}") from error

    return Value(read, form, f"{module}.{name}")


def default(place: str, parameter: str, form: str = ",g", *, times: float = 1) -> Value:
    """The default of a parameter of a function or of a field of a value, as `module:NAME`."""

    def take(owner: Any) -> float:
        return float(inspect.signature(owner).parameters[parameter].default)

    value = constant(place, form, take=take, times=times)
    return Value(value.read, form, f"{value.source}({parameter})")


def written(place: str, parameter: str, form: str = ",g") -> Value:
    """The same, read from the source, for modules that need a framework to be imported."""
    module, _, name = place.partition(":")
    file = Path(anaphora.__file__).parent.joinpath(*module.split(".")).with_suffix(".py")

    def read(root: Path) -> float:
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name == name:
                pairs = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
                for argument, default in pairs:
                    if argument.arg == parameter and default is not None:
                        return float(ast.literal_eval(default))
        raise ClaimError(f"{place} has no default for {parameter}")

    return Value(read, form, f"anaphora.{module}.{name}({parameter})")


def derived(form: str, compute: Callable[..., float], *values: Value, source: str = "") -> Value:
    """A value computed from others."""

    def read(root: Path) -> float:
        return compute(*(value.read(root) for value in values))

    results = tuple(sorted({name for value in values for name in value.results}))
    return Value(read, form, source or ", ".join(value.source for value in values), results)


def _figure(root: Path, result: str, name: str) -> Mapping[str, Any]:
    content = _result(root, result)
    for row in content.get("figures", ()) if isinstance(content, dict) else ():
        if row["name"] == name:
            figures: Mapping[str, Any] = row
            return figures
    raise ClaimError(f"{result}.json has no figure {name!r}")


def _result(root: Path, result: str) -> Any:
    file = root / "bench" / "results" / f"{result}.json"
    if not file.is_file():
        raise ClaimError(f"bench/results/{result}.json is missing")
    return _parsed(file, file.stat().st_mtime_ns)


@lru_cache(maxsize=128)
def _parsed(file: Path, changed: int) -> Any:
    return json.loads(file.read_text("utf-8"))


def _rows(root: Path, result: str) -> Iterator[tuple[str, list[str], list[str]]]:
    file = root / "bench" / "results" / f"{result}.md"
    if not file.is_file():
        raise ClaimError(f"bench/results/{result}.md is missing")
    heading = ""
    head: list[str] = []
    for line in file.read_text("utf-8").splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        if not line.startswith("|"):
            head = []
            continue
        cells = [text.strip() for text in line.strip("|").split("|")]
        if head and not line.startswith("|---"):
            yield heading, head, cells
        head = head or cells


def _walk(value: Any, steps: tuple[Step, ...], result: str) -> Any:
    for step in steps:
        if isinstance(step, tuple):
            rows = [row for row in value if all(str(row.get(k)) == v for k, v in step)]
            if len(rows) != 1:
                raise ClaimError(f"{result}.json has {len(rows)} entries with {_named(step)}")
            value = rows[0]
            continue
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError) as error:
            raise ClaimError(f"{result}.json has no {_named(step)}") from error
    return value


def _named(step: Step) -> str:
    if isinstance(step, tuple):
        return ", ".join(f"{key} = {text}" for key, text in step)
    return str(step)
