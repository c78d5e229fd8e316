"""Arguments of a tool against its schema.

In: a tool and what the client gave. Out: the arguments with defaults filled in, or `InvalidInput`
that names the field. It never guesses what was meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from anaphora.errors import InvalidInput
from anaphora.surfaces.mcp_server.tools import TOOLS, ToolSpec

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

_MOST = 300


def checked(spec: ToolSpec, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """The arguments, defaults filled in. Raises `InvalidInput` naming the field."""
    # Some clients send null for what they leave out.
    kept = {
        name: value
        for name, value in (given or {}).items()
        if value is not None or name not in spec.parameters
    }
    unknown = [name for name in kept if name not in spec.parameters]
    if unknown:
        known = ", ".join(spec.parameters)
        raise InvalidInput(unknown[0], kept[unknown[0]], f"no such argument; there are {known}")
    for name in spec.required:
        if name not in kept:
            raise InvalidInput(name, None, "is required")
    wrong = min(_validator(spec.name).iter_errors(kept), key=_place, default=None)
    if wrong is not None:
        raise InvalidInput(_place(wrong), wrong.instance, wrong.message[:_MOST])
    defaults = {n: s["default"] for n, s in spec.parameters.items() if "default" in s}
    return {**defaults, **{name: _whole(spec, name, value) for name, value in kept.items()}}


def _place(error: ValidationError) -> str:
    """Where it is wrong, e.g. `turns[1].role`."""
    path = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in error.absolute_path)
    return path.removeprefix(".")


def _whole(spec: ToolSpec, name: str, value: Any) -> Any:
    """JSON knows one kind of number: 3.0 is an integer there."""
    return int(value) if spec.parameters[name].get("type") == "integer" else value


@cache
def _validator(name: str) -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(TOOLS[name].input_schema)
