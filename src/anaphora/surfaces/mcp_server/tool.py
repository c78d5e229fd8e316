"""What a tool is: its name, description and schemas as clients see them, and what it does.

Arguments are validated against the schemas that clients are shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from anaphora.errors import InvalidInput
from anaphora.surfaces.mcp_server.schemas import Schema
from anaphora.text.display import one_line
from anaphora.values.conversations import Degraded

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

    from anaphora.api.memory import Memory

_NOTHING: Final = frozenset(("null", "None", "undefined"))
"""Texts that mean no value for an optional argument: of JSON, Python and JavaScript."""
_ALIASES: Final = {"query": "question", "question": "query"}
"""The two names of a question: clients may use the one that a tool does not list."""
_MOST: Final = 300
"""Maximum number of characters of a validation message."""


Arguments = Mapping[str, Any]
"""Arguments by the names of the facade's parameters, checked, defaults filled in."""


@dataclass(frozen=True, slots=True)
class CallContext:
    """Where a call comes from: its folder, its project, and notes about the project's indexing.

    `tell` receives the steps of a long call, each with its number; `background` runs work after the
    answer.
    """

    project: str | None = None
    degraded: tuple[Degraded, ...] = ()
    tell: Callable[[int, str], object] | None = None
    background: Callable[[Callable[[], object]], object] | None = None
    directory: str | None = None

    def in_project(self, arguments: Arguments) -> Arguments:
        """The arguments of a call, with the current project unless they name another one."""
        return {"project": self.project, **arguments}


@dataclass(frozen=True, slots=True)
class Answer:
    """The JSON form and the text form. `bare` answers are the whole result, without an envelope.

    If `text` is None, the text form is the result as one line of JSON, with `excerpts` instead of
    `data` if present. `note` tells the reader how to treat the result.
    """

    data: Any
    text: str | None
    degraded: Sequence[Degraded] = ()
    notices: Sequence[str] = ()
    confidence: float | None = None
    bare: bool = False
    note: str = ""
    excerpts: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class Tool:
    """One tool. Those not `by_default` are listed only with `--tools all`.

    `order` is the place in the list. A tool `in_project` is about the project that the client has
    open, and with `indexing` indexes it first. A `long` one takes minutes and tells its steps.
    `aliases` are the facade's names of arguments that differ by more than their spelling.
    """

    name: str
    call: Callable[[Memory, Arguments, CallContext], Answer]
    order: int
    description: str
    parameters: Mapping[str, Schema]
    result: Schema
    required: tuple[str, ...] = ()
    by_default: bool = True
    read_only: bool = True
    destructive: bool = False
    in_project: bool = False
    indexing: bool = False
    long: bool = False
    aliases: Mapping[str, str] = field(default_factory=dict)

    def argument(self, what: str) -> str:
        """This tool's name for a facade parameter quoted in an error: `topK` for `top_k`."""
        head = re.match(r"[A-Za-z_ ]*", what)
        assert head is not None
        parameter = head[0].replace(" ", "_")
        name_by_parameter = {self.parameter(name): name for name in self.parameters}.get(parameter)
        return what if name_by_parameter is None else name_by_parameter + what[head.end() :]

    def parameter(self, name: str) -> str:
        """The facade's name for an argument: `top_k` for `topK`."""
        return self.aliases.get(name) or re.sub(
            r"[A-Z]", lambda match: f"_{match[0].lower()}", name
        )

    @property
    def input_schema(self) -> Schema:
        """JSON Schema of the arguments, as far as it says more than `checked`."""
        return {
            "type": "object",
            "properties": dict(self.parameters),
            **({"required": list(self.required)} if self.required else {}),
        }


def checked(tool: Tool, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Validated arguments by the facade's names, with defaults. `InvalidInput` names the field."""
    given = given or {}
    named = {
        _ALIASES[name] if _ALIASES.get(name) in tool.parameters.keys() - given else name: argument
        for name, argument in given.items()
    }
    arguments = {
        name: argument
        for name, argument in ((n, _drop_blank(tool, n, v)) for n, v in named.items())
        if argument is not None or name not in tool.parameters
    }
    unknown = [name for name in arguments if name not in tool.parameters]
    if unknown:
        expected_names = ", ".join(tool.parameters)
        reason = f"unknown argument; expected one of {expected_names}"
        raise InvalidInput(one_line(unknown[0]), arguments[unknown[0]], reason)
    for name in tool.required:
        if _is_blank(arguments.get(name)):
            raise InvalidInput(name, arguments.get(name), "is required")
    wrong = min(_validator(tool).iter_errors(arguments), key=_place, default=None)
    if wrong is not None:
        reason = str(wrong.message)
        if wrong.validator == "anyOf":
            reason = f"expected {' or '.join(kind['type'] for kind in wrong.validator_value)}"
        if len(reason) > _MOST:
            # Without quoting a long value.
            reason = reason.removeprefix(repr(wrong.instance)).strip()
            if wrong.validator in {"maxLength", "maxItems"}:
                reason += f": at most {wrong.validator_value:,}, it has {len(wrong.instance):,}"
        raise InvalidInput(_place(wrong), wrong.instance, reason[:_MOST])
    defaults = {n: s["default"] for n, s in tool.parameters.items() if "default" in s}
    integers = {n for n, s in tool.parameters.items() if s.get("type") == "integer"}
    for name in integers & arguments.keys():
        # JSON has one kind of number: 3.0 is a valid integer.
        arguments[name] = int(arguments[name])
    arguments = {**defaults, **arguments}
    return {tool.parameter(name): argument for name, argument in arguments.items()}


def _drop_blank(tool: Tool, name: str, value: Any) -> Any:
    """The value of an argument; None for what some clients send instead of omitting it.

    That is null, its text, a blank text, or a list of only these. Required arguments are taken as
    they are: "null" may be the question.
    """
    if name in tool.required or name not in tool.parameters:
        return value
    if isinstance(value, list):
        return [member for member in value if not _is_nothing(member)] or None
    return None if _is_nothing(value) else value


def _is_nothing(value: Any) -> bool:
    return _is_blank(value) or (isinstance(value, str) and value.strip() in _NOTHING)


def _is_blank(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _place(error: ValidationError) -> str:
    """The path of the invalid value, e.g. `turns[1].role`."""
    path = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in error.absolute_path)
    return path.removeprefix(".")


@cache
def _validator(tool: Tool) -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(tool.input_schema)
